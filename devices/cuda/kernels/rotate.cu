/* Rotary positions: queries and keys turn where they lie. A thread has both elements of its pairs. */
#include "args_rotate.h"
#include "vector.cuh"

template <int N> __device__ inline void turn(const plim_rotate_args &args, uint64_t unit)
{
    uint64_t head = plim_divide(unit, &args.units), row = plim_divide(head, &args.heads);
    int64_t pair = (int64_t)(unit - head * args.units.divisor) * N;
    int64_t of_row = (int64_t)(head - row * args.heads.divisor);
    bool key = of_row >= args.of_x[0];
    if (key) of_row -= args.of_x[0];
    const plim_cuda_flat_operand &x = args.x[key];
    int64_t at = ((int64_t)row * args.of_x[key] + of_row) * args.size + pair;
    int64_t angle = (int64_t)(row - plim_divide(row, &args.rows) * args.rows.divisor) * args.width + pair;

    float a[N], b[N], cos[N], sin[N], first[N], second[N];
    load_floats(x.data, x.dtype, at, a);
    load_floats(x.data, x.dtype, at + args.pairs, b);
    load_floats(args.cos.data, args.cos.dtype, angle, cos);
    load_floats(args.sin.data, args.sin.dtype, angle, sin);
    PLIM_UNROLL
    for (int k = 0; k < N; k++) {
        float s = sin[k] * args.direction;
        first[k] = a[k] * cos[k] - b[k] * s;
        second[k] = b[k] * cos[k] + a[k] * s;
    }
    store_floats(x.data, x.dtype, at, first);
    store_floats(x.data, x.dtype, at + args.pairs, second);
}

PLIM_KERNEL(rotate, plim_rotate_args, PLIM_ROTATE_THREADS)
{
    for (uint64_t unit = grid_thread(); unit < (uint64_t)args.work; unit += grid_threads()) {
        if (args.vectors)
            turn<PLIM_ROTATE_VECTOR>(args, unit);
        else
            turn<1>(args, unit);
    }
}
