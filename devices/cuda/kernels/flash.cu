/* Attention on tensor cores, forward. While a product runs, the rows of the next one come. */
#include "flash.cuh"

namespace flash
{

/* The running softmax of a lane's two rows. `sum` is over the lane's columns only. */
struct softmax_rows {
    float maximum[2], sum[2];
};

/* Scores become exp2(score - maximum); factor[r] takes what was summed so far to the new maximum. A NaN is no maximum,
 * and makes the sum one. */
template <int N>
__device__ inline void advance(softmax_rows &rows, float (&s)[N][4], float (&factor)[2])
{
    PLIM_UNROLL
    for (int r = 0; r < 2; r++) {
        float maximum = rows.maximum[r];
        PLIM_UNROLL
        for (int n = 0; n < N; n++)
            maximum = fmaxf(fmaxf(maximum, s[n][2 * r]), s[n][2 * r + 1]);
        maximum = warp_fold(maximum, larger(), 4);
        float base = maximum == -INFINITY ? 0 : maximum;
        factor[r] = exp2_normal(rows.maximum[r] - base);
        rows.maximum[r] = maximum;
        rows.sum[r] *= factor[r];
        PLIM_UNROLL
        for (int n = 0; n < N; n++) {
            PLIM_UNROLL
            for (int c = 0; c < 2; c++) {
                float &x = s[n][2 * r + c];
                x = exp2_normal(x - base);
                rows.sum[r] += x;
            }
        }
    }
}

template <int N>
__device__ inline void drop(float (&p)[N][4], const plim_attention_args &args,
                            const score_view &view, const score_place &first)
{
    uint32_t kept[N];
    draw<false>(kept, args, view, first);
    PLIM_UNROLL
    for (int n = 0; n < N; n++) {
        PLIM_UNROLL
        for (int e = 0; e < 4; e++) p[n][e] *= kept[n] >> e & 1 ? args.kept : 0;
    }
}

/* logsumexp to memory, and 1 / sum to `factor`: 0 for a row that sees nothing. */
__device__ inline void finish(const plim_attention_args &args, const score_view &view, int64_t row,
                              const softmax_rows &rows, float (&factor)[2])
{
    PLIM_UNROLL
    for (int r = 0; r < 2; r++) {
        float sum = warp_fold(rows.sum[r], adding<float>(), 4);
        int64_t i = row + group() + 8 * r;
        factor[r] = sum == 0 ? 0 : 1 / sum;
        if (args.logsumexp && blockIdx.y == 0 && pair() == 0 && i < args.q_length)
            ((float *)args.logsumexp)[view.head * args.q_length + i] =
                rows.maximum[r] * LN_2 + logf(sum);
    }
}

/* Of heads of COLUMNS, WIDTH columns of the output. */
template <class Math, int COLUMNS, int WIDTH, int WARPS, int KEYS>
__device__ inline void forward(const plim_attention_args &args)
{
    enum { QUERIES = WARPS * ROWS, THREADS = WARPS * 32 };
    typedef typename Math::element T;
    typedef tile<T, COLUMNS> rows_of_head;
    PLIM_DYNAMIC_SHARED(T, shared);
    __shared__ span seen[QUERIES];
    rows_of_head q = {shared}, k = {q.data + QUERIES * COLUMNS};
    tile<T, WIDTH> v = {k.data + KEYS * COLUMNS};

    block_place at = place_of_block(args.q_length, args.heads, QUERIES);
    int sharer = at.head / args.sharing, warp_row = (int)threadIdx.x / 32 * ROWS;
    int first_column = (int)blockIdx.y * WIDTH;
    int64_t row = at.row + warp_row;
    span range = keys_of_tile(args, at.row, QUERIES, KEYS);
    head_view keys = view_of(args.k, at.batch, sharer, args.k_length, args.size);
    head_view values =
        columns_of<T>(view_of(args.v, at.batch, sharer, args.k_length, args.v_size), first_column);
    score_view view = scores_of(args, at.batch, at.head);
    load_tile<QUERIES, THREADS>(
        q, view_of(args.q, at.batch, at.head, args.q_length, args.size), at.row);
    load_tile<KEYS, THREADS>(k, keys, range.first);
    copy_commit();
    for (int i = (int)threadIdx.x; i < QUERIES; i += THREADS) seen[i] = keys_of(args, at.row + i);

    float out[WIDTH / BLOCK][4] = {}, factor[2];
    softmax_rows softmax = {{-INFINITY, -INFINITY}, {0, 0}};
    for (int key = range.first; key < range.end; key += KEYS) {
        copy_wait<0>();
        __syncthreads(); /* the keys are here; the values before them are done with */
        load_tile<KEYS, THREADS>(v, values, key);
        copy_commit();
        float p[KEYS / BLOCK][4] = {};
        score_place first = {row, key};
        multiply_rows<Math>(p, q, warp_row, k, args.size);
        make_scores<false>(p, args, view, first, seen + warp_row);
        advance(softmax, p, factor);
        if (args.dropout) drop(p, args, view, first);
        PLIM_UNROLL
        for (int n = 0; n < WIDTH / BLOCK; n++) {
            PLIM_UNROLL
            for (int e = 0; e < 4; e++) out[n][e] *= factor[e / 2];
        }
        copy_wait<0>();
        __syncthreads(); /* the values are here, the keys are done with */
        if (key + KEYS < range.end) load_tile<KEYS, THREADS>(k, keys, key + KEYS);
        copy_commit();
        multiply_columns<Math>(out, p, v, 0, values.size);
    }
    copy_wait<0>();
    finish(args, view, row, softmax, factor);
    store_rows<T>(view_of(args.out, at.batch, at.head, args.q_length, args.v_size), row,
                  first_column, out, factor);
}

} // namespace flash

#define FLASH_KERNEL(type, bytes, size, warps, keys, dq_keys, queries, stages, wide, columns)      \
    PLIM_KERNEL(flash_##type##_##size, plim_flash_args, 32 * warps, 1)                             \
    {                                                                                              \
        FLASH_BODY_##type(flash::forward<flash_##type, size, wide, warps, keys>(args.attention);)  \
    }

PLIM_FLASH_MAP(FLASH_KERNEL)
