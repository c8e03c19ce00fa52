/* Attention on tensor cores, backward. Probabilities are computed again, once for the gradient of the
 * queries and once for those of keys and values, so that every sum has one owner and an order: seven
 * products where kernels that add with atomics have five. */
#include "flash.cuh"

namespace flash
{

/* The derivative of what softcapping makes a score, 1 - tanh^2, by the score; 0 of one that is not seen. */
__device__ inline float slope_at(float score, float cap)
{
    float t = fmaxf(score / cap, -1.0f);
    return 1 - t * t;
}

/* From scores `s` and dout v^T `dp`, with dropout's factors u: p u, the weights of dout in dv, into
 * `s`, and the gradient of the products, p (u dp - sum), times softcapping's slope, into `dp`. `base` and `sum` are
 * those of the accumulators' queries, by block and accumulator. */
template <bool TURNED, int N, class Base, class Sum>
__device__ inline void differentiate(float (&s)[N][4], float (&dp)[N][4],
                                     const plim_attention_args &args, const score_view &view,
                                     const score_place &first, Base base, Sum sum)
{
    uint32_t kept[N];
    float unit = args.dropout ? args.kept : 1;
    if (args.dropout) {
        draw<TURNED>(kept, args, view, first);
    } else {
        PLIM_UNROLL
        for (int n = 0; n < N; n++) kept[n] = 15;
    }
    PLIM_UNROLL
    for (int n = 0; n < N; n++) {
        PLIM_UNROLL
        for (int e = 0; e < 4; e++) {
            float p = exp2_normal(s[n][e] - base(n, e)), u = kept[n] >> e & 1 ? unit : 0;
            dp[n][e] = p * (u * dp[n][e] - sum(n, e));
            if (args.softcap > 0) dp[n][e] *= slope_at(s[n][e], args.softcap * LOG2_E);
            s[n][e] = p * u;
        }
    }
}

/* --- queries ---------------------------------------------------------------------------------- */

/* Of heads of COLUMNS, WIDTH columns of dq. */
template <class Math, int COLUMNS, int WIDTH, int WARPS, int KEYS>
__device__ inline void backward_queries(const plim_flash_args &flash)
{
    enum { QUERIES = WARPS * ROWS, THREADS = WARPS * 32 };
    typedef typename Math::element T;
    typedef tile<T, COLUMNS> rows_of_head;
    const plim_attention_args &args = flash.attention;
    PLIM_DYNAMIC_SHARED(T, shared);
    __shared__ span seen[QUERIES];
    rows_of_head q = {shared}, dout = {q.data + QUERIES * COLUMNS};
    rows_of_head k = {dout.data + QUERIES * COLUMNS}, v = {k.data + KEYS * COLUMNS};

    block_place at = place_of_block(args.q_length, args.heads, QUERIES);
    int sharer = at.head / args.sharing, warp_row = (int)threadIdx.x / 32 * ROWS;
    int first_column = (int)blockIdx.y * WIDTH;
    int64_t row = at.row + warp_row;
    span range = keys_of_tile(args, at.row, QUERIES, KEYS);
    head_view keys = view_of(args.k, at.batch, sharer, args.k_length, args.size);
    head_view values = view_of(args.v, at.batch, sharer, args.k_length, args.v_size);
    score_view view = scores_of(args, at.batch, at.head);
    load_tile<QUERIES, THREADS>(
        q, view_of(args.q, at.batch, at.head, args.q_length, args.size), at.row);
    load_tile<QUERIES, THREADS>(
        dout, view_of(args.dout, at.batch, at.head, args.q_length, args.v_size), at.row);
    load_tile<KEYS, THREADS>(k, keys, range.first);
    load_tile<KEYS, THREADS>(v, values, range.first);
    copy_commit();
    for (int i = (int)threadIdx.x; i < QUERIES; i += THREADS) seen[i] = keys_of(args, at.row + i);

    float dq[WIDTH / BLOCK][4] = {}, bases[2], sums[2];
    PLIM_UNROLL
    for (int r = 0; r < 2; r++) {
        bases[r] = base_of(flash, view.head, row + group() + 8 * r);
        sums[r] = sum_of(flash, view.head, row + group() + 8 * r);
    }
    for (int key = range.first; key < range.end; key += KEYS) {
        copy_wait<0>();
        __syncthreads(); /* keys and values are here */
        float s[KEYS / BLOCK][4] = {}, ds[KEYS / BLOCK][4] = {};
        score_place first = {row, key};
        multiply_rows<Math>(s, q, warp_row, k, args.size);
        multiply_rows<Math>(ds, dout, warp_row, v, args.v_size);
        __syncthreads(); /* the values are done with */
        if (key + KEYS < range.end) load_tile<KEYS, THREADS>(v, values, key + KEYS);
        make_scores<false>(s, args, view, first, seen + warp_row);
        differentiate<false>(
            s, ds, args, view, first, [&](int, int e) { return bases[e / 2]; },
            [&](int, int e) { return sums[e / 2]; });
        multiply_columns<Math>(dq, ds, k, first_column, args.size);
        __syncthreads(); /* the keys are done with */
        if (key + KEYS < range.end) load_tile<KEYS, THREADS>(k, keys, key + KEYS);
        copy_commit();
    }
    copy_wait<0>();
    const float scale[2] = {args.scale, args.scale};
    store_rows<T>(view_of(args.dq, at.batch, at.head, args.q_length, args.size), row, first_column,
                  dq, scale);
}

/* --- keys and values -------------------------------------------------------------------------- */

/* What is needed of QUERIES queries: their rows, and bases and sums. */
template <class T, int COLUMNS, int QUERIES> struct query_tile {
    tile<T, COLUMNS> q, dout;
    float *bases, *sums;

    enum { BYTES = 2 * QUERIES * COLUMNS * sizeof(T) + 2 * QUERIES * sizeof(float) };
    __device__ static query_tile at(unsigned char *shared)
    {
        query_tile x;
        x.q.data = (T *)shared;
        x.dout.data = x.q.data + QUERIES * COLUMNS;
        x.bases = (float *)(x.dout.data + QUERIES * COLUMNS);
        x.sums = x.bases + QUERIES;
        return x;
    }
    template <int THREADS>
    __device__ void load(const plim_flash_args &flash, int64_t batch, int head, int64_t row) const
    {
        const plim_attention_args &args = flash.attention;
        load_tile<QUERIES, THREADS>(q, view_of(args.q, batch, head, args.q_length, args.size), row);
        load_tile<QUERIES, THREADS>(
            dout, view_of(args.dout, batch, head, args.q_length, args.v_size), row);
        int64_t of_head = batch * args.heads + head;
        for (int i = (int)threadIdx.x; i < QUERIES; i += THREADS) {
            bases[i] = base_of(flash, of_head, row + i);
            sums[i] = sum_of(flash, of_head, row + i);
        }
    }
};

/* A step is a tile of queries: those of one head after the other, of all that share the keys. */
struct query_step {
    int64_t row;
    int head;
};

struct query_steps {
    int64_t first, end; /* rows of a head */
    int last_head;

    __device__ bool has(const query_step &at) const
    {
        return at.head <= last_head && first < end;
    }
    __device__ void advance(query_step &at, int queries) const
    {
        at.row += queries;
        if (at.row < end) return;
        at.row = first;
        at.head++;
    }
};

template <class Math, int COLUMNS, int WARPS, int QUERIES, int STAGES, int WIDTH>
__device__ inline void backward_keys(const plim_flash_args &flash)
{
    enum { KEYS = WARPS * ROWS, THREADS = WARPS * 32 };
    typedef typename Math::element T;
    typedef query_tile<T, COLUMNS, QUERIES> queries;
    const plim_attention_args &args = flash.attention;
    PLIM_DYNAMIC_SHARED(unsigned char, shared);
    __shared__ span seen[KEYS];
    tile<T, COLUMNS> k = {(T *)shared}, v = {k.data + KEYS * COLUMNS};
    unsigned char *stages = (unsigned char *)(v.data + KEYS * COLUMNS);

    block_place at = longest_keys_first(args.k_length, args.heads / args.sharing, KEYS);
    int warp_row = (int)threadIdx.x / 32 * ROWS, first_column = (int)blockIdx.y * WIDTH;
    int64_t row = at.row + warp_row;
    span range = queries_of_tile(args, at.row, KEYS, QUERIES);
    query_step step = {range.first, at.head * args.sharing}, coming = step;
    query_steps steps = {range.first, range.end, step.head + args.sharing - 1};
    load_tile<KEYS, THREADS>(
        k, view_of(args.k, at.batch, at.head, args.k_length, args.size), at.row);
    load_tile<KEYS, THREADS>(
        v, view_of(args.v, at.batch, at.head, args.k_length, args.v_size), at.row);
    for (int i = (int)threadIdx.x; i < KEYS; i += THREADS) seen[i] = queries_of(args, at.row + i);
    int loaded = 0;
    auto load = [&] {
        if (steps.has(coming))
            queries::at(stages + loaded++ % STAGES * queries::BYTES)
                .template load<THREADS>(flash, at.batch, coming.head, coming.row);
        steps.advance(coming, QUERIES);
        copy_commit();
    };
    load();

    float dk[WIDTH / BLOCK][4] = {}, dv[WIDTH / BLOCK][4] = {};
    for (int i = 0; steps.has(step); i++, steps.advance(step, QUERIES)) {
        if (STAGES == 2) load();
        copy_wait<STAGES - 1>();
        __syncthreads(); /* the queries of this step are here */
        queries x = queries::at(stages + i % STAGES * queries::BYTES);
        float s[QUERIES / BLOCK][4] = {}, ds[QUERIES / BLOCK][4] = {};
        score_place first = {step.row, row};
        score_view view = scores_of(args, at.batch, step.head);
        multiply_rows<Math>(s, k, warp_row, x.q, args.size);
        multiply_rows<Math>(ds, v, warp_row, x.dout, args.v_size);
        make_scores<true>(s, args, view, first, seen + warp_row);
        differentiate<true>(
            s, ds, args, view, first,
            [&](int n, int e) { return x.bases[n * BLOCK + pair() + e % 2]; },
            [&](int n, int e) { return x.sums[n * BLOCK + pair() + e % 2]; });
        multiply_columns<Math>(dv, s, x.dout, first_column, args.v_size);
        multiply_columns<Math>(dk, ds, x.q, first_column, args.size);
        __syncthreads(); /* and done with */
        if (STAGES == 1) load();
    }
    copy_wait<0>();
    const float one[2] = {1, 1}, scale[2] = {args.scale, args.scale};
    store_rows<T>(view_of(args.dk, at.batch, at.head, args.k_length, args.size), row, first_column,
                  dk, scale);
    store_rows<T>(view_of(args.dv, at.batch, at.head, args.k_length, args.v_size), row, first_column,
                  dv, one);
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Of the rows of dout out, PLIM_FLASH_SUMS_LANES each: a head of 64 in 16 bits is one access of each of them. */
__device__ inline void sum_rows(const plim_flash_args &flash)
{
    const plim_attention_args &args = flash.attention;
    enum { LANES = PLIM_FLASH_SUMS_LANES };
    int64_t rows = flash.batch * args.heads * args.q_length;
    int64_t of_warp = (int64_t)(grid_thread() / 32) * (32 / LANES);
    for (; of_warp < rows; of_warp += (int64_t)(grid_threads() / LANES)) {
        bool is_row = of_warp + lane() / LANES < rows;
        int64_t i = is_row ? of_warp + lane() / LANES : of_warp;
        int64_t head = i / args.q_length, row = i % args.q_length;
        int64_t batch = head / args.heads;
        int of_batch = (int)(head % args.heads);
        head_view dout = view_of(args.dout, batch, of_batch, args.q_length, args.v_size);
        head_view out = view_of(args.out, batch, of_batch, args.q_length, args.v_size);
        float sum = 0;
        for (int c = lane() % LANES * VECTOR; c < args.v_size; c += LANES * VECTOR) {
            float a[VECTOR], b[VECTOR];
            load_floats(dout.data, dout.dtype, row * dout.step + c, a);
            load_floats(out.data, out.dtype, row * out.step + c, b);
            PLIM_UNROLL
            for (int e = 0; e < VECTOR; e++) sum += a[e] * b[e];
        }
        sum = warp_fold(sum, adding<float>(), LANES);
        if (is_row && lane() % LANES == 0) ((float *)flash.sums)[i] = sum;
    }
}

} // namespace flash

PLIM_KERNEL(flash_sums, plim_flash_args, PLIM_FLASH_SUMS_THREADS)
{
    flash::sum_rows(args);
}

#define FLASH_KERNELS(type, bytes, size, warps, keys, dq_keys, queries, stages, wide, columns)     \
    PLIM_KERNEL(flash_dq_##type##_##size, plim_flash_args, 32 * warps, 1)                          \
    {                                                                                              \
        FLASH_BODY_##type(flash::backward_queries<flash_##type, size, wide, warps, dq_keys>(args);) \
    }                                                                                              \
    PLIM_KERNEL(flash_dkv_##type##_##size, plim_flash_args, 32 * warps, 1)                         \
    {                                                                                              \
        FLASH_BODY_##type(flash::backward_keys<flash_##type, size, warps, queries, stages, columns>(args);) \
    }

PLIM_FLASH_MAP(FLASH_KERNELS)
