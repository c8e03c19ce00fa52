/* One operation over many tensors. */
#include "args_foreach.h"
#include "devices/op.h"
#include "lists.cuh"
#include "rows.cuh"

/* The new a, by enum plim_foreach. */
__device__ inline float mapped(uint32_t function, float a, float b, float c, float alpha)
{
    switch (function) {
    case PLIM_FOREACH_ADD:
        return a + alpha * b;
    case PLIM_FOREACH_MUL:
        return a * alpha;
    case PLIM_FOREACH_DIV:
        return a / alpha;
    case PLIM_FOREACH_LERP:
        return a + alpha * (b - a);
    case PLIM_FOREACH_ADDCMUL:
        return a + alpha * b * c;
    case PLIM_FOREACH_ADDCDIV:
        return a + alpha * b / c;
    default:
        return sqrtf(b); /* PLIM_FOREACH_SQRT */
    }
}

PLIM_KERNEL(foreach_map, plim_foreach_args, PLIM_FOREACH_THREADS)
{
    const plim_cuda_tensor_lists &lists = args.lists;
    list_chunk chunk = chunk_of_block(lists);
    float alpha = args.alpha;
    if (args.factor.data) alpha *= load_float(args.factor.data, args.factor.dtype, 0);
    chunk_visit(chunk, (int)lists.lists, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float a[N], b[N], c[N];
        for (int k = 0; k < N; k++) a[k] = 0, b[k] = c[k] = 1; /* a += alpha * 1 of one list */
        if (args.function != PLIM_FOREACH_SQRT) load_floats(chunk.data[0], lists.dtype[0], i, a);
        if (lists.lists > 1) load_floats(chunk.data[1], lists.dtype[1], i, b);
        if (lists.lists > 2) load_floats(chunk.data[2], lists.dtype[2], i, c);
        for (int k = 0; k < N; k++) a[k] = mapped(args.function, a[k], b[k], c[k], alpha);
        store_floats(chunk.data[0], lists.dtype[0], i, a);
    });
}

PLIM_KERNEL(foreach_unscale, plim_foreach_args, PLIM_FOREACH_THREADS)
{
    list_chunk chunk = chunk_of_block(args.lists);
    uint32_t dtype = args.lists.dtype[0];
    float factor = load_float(args.factor.data, args.factor.dtype, 0);
    bool finite = true;
    chunk_visit(chunk, 1, [&](int64_t i, auto width) {
        float a[decltype(width)::count];
        load_floats(chunk.data[0], dtype, i, a);
        for (float &x : a) {
            finite = finite && fabsf(x) < INFINITY;
            x *= factor;
        }
        store_floats(chunk.data[0], dtype, i, a);
    });
    if (!finite) store_float(args.found.data, args.found.dtype, 0, 1); /* all write the same */
}

PLIM_KERNEL(foreach_norm_chunks, plim_foreach_norm_args, PLIM_FOREACH_THREADS)
{
    list_chunk chunk = chunk_of_block(args.lists);
    uint32_t dtype = args.lists.dtype[0];
    sums mine = {0, 0};
    chunk_visit(chunk, 1, [&](int64_t i, auto width) {
        float b[decltype(width)::count];
        load_floats(chunk.data[0], dtype, i, b);
        for (float x : b) mine.a += x * x;
    });
    sums all = team_fold(mine);
    if (threadIdx.x == 0) ((float *)args.partial)[args.first + blockIdx.x] = all.a;
}

PLIM_KERNEL(foreach_norm_finish, plim_foreach_norm_args, PLIM_FOREACH_THREADS)
{
    const uint64_t *record = list_record(args.lists, (int)blockIdx.x);
    const float *partial =
        (const float *)args.partial + args.first + (int64_t)record[PLIM_RECORD_CHUNKS];
    int64_t chunks =
        ((int64_t)record[PLIM_RECORD_SIZE] + PLIM_FOREACH_CHUNK - 1) / PLIM_FOREACH_CHUNK;
    sums mine = {0, 0};
    for (int64_t i = threadIdx.x; i < chunks; i += blockDim.x) mine.a += partial[i];
    sums all = team_fold(mine);
    if (threadIdx.x == 0)
        store_float(record[PLIM_RECORD_DATA + 1], args.lists.dtype[1], 0, sqrtf(all.a));
}
