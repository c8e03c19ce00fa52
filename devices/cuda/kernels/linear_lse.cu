/* The logsumexp of a linear layer's logits, and the logits of targets. */
#include "linear_loss.cuh"

namespace linear_loss
{

/* --- a sum of exponentials -------------------------------------------------------------------- */

/* Of numbers in units of log 2: the largest, and the sum of exp2(number - largest). */
struct exponentials {
    float maximum, sum;
};

__device__ inline float base_of(float maximum)
{
    return maximum == -INFINITY ? 0 : maximum;
}

__device__ inline exponentials merge(exponentials a, exponentials b)
{
    float maximum = fmaxf(a.maximum, b.maximum), base = base_of(maximum);
    return {maximum, a.sum * exp2_normal(a.maximum - base) + b.sum * exp2_normal(b.maximum - base)};
}

/* log(exp(a) + exp(b)) */
__device__ inline float log_add(float a, float b)
{
    float most = larger()(a, b), least = most == a ? b : a;
    return most == -INFINITY || most == INFINITY ? most : most + log1pf(expf(least - most));
}

/* Of each row what the warps of a column have: in registers they would spill. */
typedef exponentials row_parts[WARPS_OF_CLASSES][TILE];

__device__ inline void begin_rows(row_parts &parts)
{
    for (int i = (int)threadIdx.x; i < WARPS_OF_CLASSES * TILE; i += THREADS)
        parts[i / TILE][i % TILE] = {-INFINITY, 0};
}

/* Adds a tile's logits. A NaN is no maximum, and makes the sum one. */
__device__ inline void advance(row_parts &parts, const logits &z)
{
    PLIM_UNROLL
    for (int i = 0; i < ROW_BLOCKS * 2; i++) {
        exponentials row = {-INFINITY, 0};
        PLIM_UNROLL
        for (int n = 0; n < CLASS_BLOCKS * 2; n++)
            row.maximum = fmaxf(row.maximum, z[i / 2][n / 2][i % 2 * 2 + n % 2] * LOG2_E);
        row.maximum = fmaxf(row.maximum, lane_xor(row.maximum, 1));
        row.maximum = fmaxf(row.maximum, lane_xor(row.maximum, 2));
        PLIM_UNROLL
        for (int n = 0; n < CLASS_BLOCKS * 2; n++)
            row.sum += exp2_normal(z[i / 2][n / 2][i % 2 * 2 + n % 2] * LOG2_E - base_of(row.maximum));
        row.sum = warp_fold(row.sum, adding<float>(), 4);
        exponentials &all = parts[warp() % WARPS_OF_CLASSES][first_row() + i / 2 * ROWS + group() + i % 2 * 8];
        if (pair() == 0) all = merge(all, row);
    }
}

/* The logsumexp of the thread's row */
__device__ inline float finish_row(const row_parts &parts)
{
    exponentials all = parts[0][threadIdx.x];
    for (int i = 1; i < WARPS_OF_CLASSES; i++) all = merge(all, parts[i][threadIdx.x]);
    return all.maximum * LN_2 + logf(all.sum);
}

/* --- means ------------------------------------------------------------------------------------ */

__device__ inline int to_units(float x)
{
    return (int)rintf(fmaxf(fminf(x, 1e9f), -1e9f));
}

/* Adds what the warp's rows are of the means. */
__device__ inline void add_means(const plim_linear_lse_args &args, const logits &z, const int32_t (&rows)[TILE],
                                 int64_t first_class)
{
    float unit = PLIM_LINEAR_MEAN_UNITS / (float)args.head.count;
    PLIM_UNROLL
    for (int n = 0; n < CLASS_BLOCKS * 2; n++) {
        float sum = 0;
        PLIM_UNROLL
        for (int i = 0; i < ROW_BLOCKS * 2; i++)
            if (rows[first_row() + i / 2 * ROWS + group() + i % 2 * 8] >= 0) sum += z[i / 2][n / 2][i % 2 * 2 + n % 2];
        for (int lanes = 4; lanes < 32; lanes *= 2) sum += lane_xor(sum, lanes);
        int64_t of = first_class + first_column() + n / 2 * BLOCK + pair() + n % 2;
        if (group() == 0 && of < args.head.classes) atomicAdd((int *)args.means + of, to_units(sum * unit));
    }
}

/* --- the kernel ------------------------------------------------------------------------------- */

template <class Math> __device__ inline void forward(const plim_linear_lse_args &args)
{
    typedef typename Math::element T;
    const plim_linear_head_args &head = args.head;
    PLIM_DYNAMIC_SHARED(T, shared);
    __shared__ int32_t rows[TILE];
    __shared__ row_parts parts;
    uint32_t tiles = (uint32_t)((head.count + TILE - 1) / TILE), part = blockIdx.x / tiles, at = blockIdx.x % tiles;
    int64_t first = (int64_t)at * TILE, begin = part * args.classes_of_block;
    int64_t end = begin + args.classes_of_block < head.classes ? begin + args.classes_of_block : head.classes;
    find_rows(rows, head, first);
    begin_rows(parts);
    __syncthreads();

    for (int64_t of = begin; of < end; of += TILE) {
        logits z;
        make_logits<Math>(z, shared, head, [&](int r) { return rows[r]; }, of);
        if (args.means) add_means(args, z, rows, of);
        advance(parts, z);
    }
    uint64_t to = args.lse + (uint64_t)(first + threadIdx.x) * sizeof(float), turns = args.turns + at * sizeof(int32_t);
    wait_for_turn(turns, (int32_t)part); /* and for what all warps have of the rows */
    if (threadIdx.x < TILE && first + threadIdx.x < head.count)
        *(float *)to = log_add(load_shared_by_blocks<float>(to), finish_row(parts));
    end_turn(turns, (int32_t)part);
}

/* The columns that the lanes of a warp share, N each at a time. */
template <int N>
__device__ inline float dot_rows(const plim_linear_head_args &head, int64_t row, int64_t of)
{
    float sum = 0;
    for (int64_t c = lane() * N; c < head.width; c += 32 * N) {
        float x[N], w[N];
        load_floats(head.x, head.dtype, row * head.width + c, x);
        load_floats(head.weight, head.dtype, of * head.width + c, w);
        PLIM_UNROLL
        for (int i = 0; i < N; i++) sum += x[i] * w[i];
    }
    return warp_sum(sum);
}

} // namespace linear_loss

#define LINEAR_LSE(type)                                                                           \
    PLIM_KERNEL(linear_lse_##type, plim_linear_lse_args, PLIM_LINEAR_LOSS_THREADS, 2)              \
    {                                                                                              \
        TENSOR_FROM_80(linear_loss::forward<linear_loss_##type>(args);)                            \
    }

LINEAR_LSE(bf16)
LINEAR_LSE(fp16)

PLIM_KERNEL(linear_means, plim_linear_means_args, PLIM_LINEAR_LOSS_THREADS)
{
    for (uint64_t i = grid_thread(); i < args.classes; i += grid_threads()) {
        int units = ((const int *)args.means)[i];
        ((float *)args.means)[i] = (float)units / PLIM_LINEAR_MEAN_UNITS;
    }
}

PLIM_KERNEL(linear_target, plim_linear_target_args, PLIM_LINEAR_TARGET_THREADS)
{
    const plim_linear_head_args &head = args.head;
    for (int64_t i = (int64_t)(grid_thread() / 32); i < head.count; i += (int64_t)(grid_threads() / 32)) {
        int64_t row = ((const int64_t *)head.places)[i], at = row + head.shift;
        bool has_target = row >= 0 && row < head.rows && at >= 0 && at < head.rows;
        int64_t of = has_target ? ((const int64_t *)head.targets)[at] : -1;
        float z = 0;
        if (of >= 0 && of < head.classes) {
            z = head.whole ? linear_loss::dot_rows<VECTOR>(head, row, of) : linear_loss::dot_rows<1>(head, row, of);
            if (head.bias.data) z += load_float(head.bias.data, head.bias.dtype, of);
        }
        if (fragments::lane() == 0) ((float *)args.out)[i] = -z;
    }
}
