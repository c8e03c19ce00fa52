/* Rows and elements of a table by index, and the gradient of the table. An index that is out of
 * range reads zeros and writes nothing. */
#include "args_embedding.h"
#include "walk.cuh"

__device__ inline int64_t load_index(unsigned dtype, uint64_t address)
{
    int64_t index[1];
    load(index, dtype, address);
    return index[0];
}

/* V columns of row i from column j on. */
template <class A, int V>
__device__ inline void look_up(A (&x)[V], const struct plim_embedding_args &args, int64_t i,
                               int64_t j)
{
    PLIM_UNROLL
    for (int k = 0; k < V; k++) x[k] = 0;
    if (i < 0 || (uint64_t)i >= args.rows || j < 0 || (uint64_t)j >= args.columns) return;
    load(x, args.table_dtype,
         args.table + (uint64_t)(i * args.table_stride[0] + j * args.table_stride[1]));
}

/* out, indices; the walk's dimension 0 is the row of the table */
template <class A> struct embedding {
    template <int V>
    __device__ static void run(const struct plim_embedding_args &args, uint64_t first)
    {
        const struct plim_walk &w = args.walk;
        uint64_t at[2], row = plim_divide(first, &w.extent[0]);
        A x[V];
        walk_to(w, first, at);
        look_up(x, args, load_index(w.dtype[1], at[1]),
                (int64_t)(first - row * w.extent[0].divisor));
        store(w.dtype[0], at[0], x);
    }
};

/* out, i, j */
template <class A> struct gather {
    template <int V>
    __device__ static void run(const struct plim_embedding_args &args, uint64_t first)
    {
        const struct plim_walk &w = args.walk;
        uint64_t at[3];
        A x[1];
        walk_to(w, first, at);
        look_up(x, args, load_index(w.dtype[1], at[1]), load_index(w.dtype[2], at[2]));
        store(w.dtype[0], at[0], x);
    }
};

#define LOOK_UP(name, body, V)                                                                     \
    PLIM_KERNEL(name, struct plim_embedding_args, PLIM_EMBEDDING_THREADS)                          \
    {                                                                                              \
        for_elements<body, V>(args);                                                               \
    }

LOOK_UP(embedding_float_vector, embedding<float>, PLIM_WALK_VECTOR)
LOOK_UP(embedding_float_scalar, embedding<float>, 1)
LOOK_UP(embedding_integer_vector, embedding<int64_t>, PLIM_WALK_VECTOR)
LOOK_UP(embedding_integer_scalar, embedding<int64_t>, 1)
LOOK_UP(gather_float, gather<float>, 1)
LOOK_UP(gather_integer, gather<int64_t>, 1)

/* --- backward --------------------------------------------------------------------------------- */

__device__ inline int64_t index_of_token(const struct plim_walk &w, uint64_t token)
{
    uint64_t at[2];
    walk_to_row(w, token, at);
    return load_index(w.dtype[1], at[1]);
}

template <int V>
__device__ inline void add_to_table(const struct plim_embedding_args &e, uint64_t index,
                                    uint64_t column, float (&total)[V])
{
    uint64_t address =
        e.table + index * (uint64_t)e.table_stride[0] + column * (uint64_t)e.table_stride[1];
    float before[V];
    load(before, e.table_dtype, address);
    PLIM_UNROLL
    for (int k = 0; k < V; k++) total[k] += before[k];
    store(e.table_dtype, address, total);
}

/* Whether a token before this one has its index. The whole block asks together. */
__device__ inline bool is_repeated(const struct plim_walk &w, uint64_t token, int64_t index)
{
    for (uint64_t start = 0; start < token; start += PLIM_EMBEDDING_THREADS) {
        uint64_t t = start + threadIdx.x;
        if (__syncthreads_or(t < token && index_of_token(w, t) == index)) return true;
    }
    return false;
}

/* blockIdx.y: columns from `column` on, V a thread. The first token of an index adds up all of
 * them, in their order. */
template <int V>
__device__ inline void sum_tokens(const struct plim_embedding_backward_args &args, uint64_t token,
                                  int64_t index, uint64_t column)
{
    __shared__ unsigned matches[PLIM_EMBEDDING_THREADS / 32]; /* a bit for a token */
    const struct plim_walk &w = args.e.walk;
    bool takes_part = column < args.e.columns;
    float total[V] = {};
    for (uint64_t start = token; start < args.tokens; start += PLIM_EMBEDDING_THREADS) {
        uint64_t t = start + threadIdx.x;
        bool match = t < args.tokens && index_of_token(w, t) == index;
        unsigned ballot = __ballot_sync(0xffffffffu, match);
        if (threadIdx.x % 32 == 0) matches[threadIdx.x / 32] = ballot;
        __syncthreads();
        for (unsigned i = 0; i < PLIM_EMBEDDING_THREADS / 32 && takes_part; i++)
            for (unsigned bits = matches[i]; bits != 0; bits &= bits - 1) {
                uint64_t at[1];
                float x[V];
                walk_to_row(w, start + 32 * i + (unsigned)__ffs((int)bits) - 1, at);
                load(x, w.dtype[0], at[0] + column * (uint64_t)w.stride[0][0]);
                PLIM_UNROLL
                for (int k = 0; k < V; k++) total[k] += x[k];
            }
        __syncthreads();
    }
    if (takes_part) add_to_table(args.e, (uint64_t)index, column, total);
}

template <int V>
__device__ inline void embedding_backward(const struct plim_embedding_backward_args &args)
{
    uint64_t column = ((uint64_t)blockIdx.y * PLIM_EMBEDDING_THREADS + threadIdx.x) * V;
    for (uint64_t token = blockIdx.x; token < args.tokens; token += gridDim.x) {
        int64_t index = index_of_token(args.e.walk, token);
        if (index < 0 || (uint64_t)index >= args.e.rows) continue;
        if (!is_repeated(args.e.walk, token, index)) sum_tokens<V>(args, token, index, column);
    }
}

PLIM_KERNEL(embedding_backward_vector, struct plim_embedding_backward_args, PLIM_EMBEDDING_THREADS,
            1)
{
    embedding_backward<PLIM_WALK_VECTOR>(args);
}

PLIM_KERNEL(embedding_backward_scalar, struct plim_embedding_backward_args, PLIM_EMBEDDING_THREADS)
{
    embedding_backward<1>(args);
}

/* --- backward of many tokens ------------------------------------------------------------------ */

/* Tokens are sorted by their index: from the lowest digit to the highest, each time stably. Then
 * equal indices lie beside each other, as a segment, and chunks of them are summed: what lies within
 * a chunk goes to the table, what does not is put together by the chunk where it begins. Every sum
 * has one order, so that the same tokens give the same bits. */

/* An index that is out of range counts as the one behind the last row: it comes last. */
__device__ inline uint64_t pair_at(const struct plim_embedding_sorted_args &args, uint64_t token)
{
    if (args.from) return reinterpret_cast<const uint64_t *>(args.from)[token];
    int64_t index = index_of_token(args.b.e.walk, token);
    bool known = index >= 0 && (uint64_t)index < args.b.e.rows;
    return (known ? (uint64_t)index : args.b.e.rows) << 32 | token;
}

__device__ inline unsigned digit_of(const struct plim_embedding_sorted_args &args, uint64_t pair)
{
    return (unsigned)(pair >> (32 + args.shift)) % PLIM_EMBEDDING_DIGITS;
}

PLIM_KERNEL(embedding_sort_count, struct plim_embedding_sorted_args, PLIM_EMBEDDING_THREADS)
{
    __shared__ unsigned found[PLIM_EMBEDDING_DIGITS];
    for (uint64_t tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        found[threadIdx.x] = 0;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < PLIM_EMBEDDING_TILE; i += PLIM_EMBEDDING_THREADS) {
            uint64_t t = tile * PLIM_EMBEDDING_TILE + i;
            if (t < args.b.tokens) atomicAdd(&found[digit_of(args, pair_at(args, t))], 1u);
        }
        __syncthreads();
        reinterpret_cast<uint32_t *>(args.counts)[tile * PLIM_EMBEDDING_DIGITS + threadIdx.x] =
            found[threadIdx.x];
        __syncthreads();
    }
}

/* The sum of the values of the threads before this one. */
__device__ inline unsigned sum_of_threads_before(unsigned value)
{
    __shared__ unsigned upto[PLIM_EMBEDDING_THREADS];
    upto[threadIdx.x] = value;
    for (unsigned step = 1; step < PLIM_EMBEDDING_THREADS; step *= 2) {
        __syncthreads();
        unsigned before = threadIdx.x >= step ? upto[threadIdx.x - step] : 0;
        __syncthreads();
        upto[threadIdx.x] += before;
    }
    return upto[threadIdx.x] - value;
}

/* One block: where the first token of each tile goes that has the digit of this thread. */
PLIM_KERNEL(embedding_sort_scan, struct plim_embedding_sorted_args, PLIM_EMBEDDING_THREADS)
{
    uint32_t *counts = reinterpret_cast<uint32_t *>(args.counts) + threadIdx.x;
    unsigned all = 0;
    for (uint64_t tile = 0; tile < args.tiles; tile++) all += counts[tile * PLIM_EMBEDDING_DIGITS];
    unsigned place = sum_of_threads_before(all);
    for (uint64_t tile = 0; tile < args.tiles; tile++) {
        unsigned count = counts[tile * PLIM_EMBEDDING_DIGITS];
        counts[tile * PLIM_EMBEDDING_DIGITS] = place;
        place += count;
    }
}

/* The lanes of this warp with the same digit; the bit 256 is set where there is no token. */
__device__ inline unsigned lanes_with(unsigned digit)
{
    unsigned lanes = 0xffffffffu;
    for (unsigned bit = 0; bit <= PLIM_EMBEDDING_DIGIT_BITS; bit++) {
        bool is_set = digit >> bit & 1;
        unsigned with = __ballot_sync(0xffffffffu, is_set);
        lanes &= is_set ? with : ~with;
    }
    return lanes;
}

/* A tile, as many tokens at a time as there are threads, in their order. */
PLIM_KERNEL(embedding_sort_place, struct plim_embedding_sorted_args, PLIM_EMBEDDING_THREADS)
{
    const unsigned WARPS = PLIM_EMBEDDING_THREADS / 32, NO_DIGIT = PLIM_EMBEDDING_DIGITS;
    __shared__ unsigned places[WARPS][PLIM_EMBEDDING_DIGITS];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t *to = reinterpret_cast<uint64_t *>(args.to);
    for (uint64_t tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        uint64_t first = tile * PLIM_EMBEDDING_TILE;
        unsigned next = /* of the digit of this thread */
            reinterpret_cast<const uint32_t *>(
                args.counts)[tile * PLIM_EMBEDDING_DIGITS + threadIdx.x];
        for (uint64_t start = first;
             start < first + PLIM_EMBEDDING_TILE && start < args.b.tokens;
             start += PLIM_EMBEDDING_THREADS) {
            uint64_t t = start + threadIdx.x, pair = t < args.b.tokens ? pair_at(args, t) : 0;
            unsigned digit = t < args.b.tokens ? digit_of(args, pair) : NO_DIGIT;
            unsigned same = lanes_with(digit), before = same & ((1u << lane) - 1);
            for (unsigned w = 0; w < WARPS; w++) places[w][threadIdx.x] = 0;
            __syncthreads();
            if (before == 0 && t < args.b.tokens) places[warp][digit] = (unsigned)__popc(same);
            __syncthreads();
            for (unsigned w = 0; w < WARPS; w++) {
                unsigned count = places[w][threadIdx.x];
                places[w][threadIdx.x] = next;
                next += count;
            }
            __syncthreads();
            if (t < args.b.tokens) to[places[warp][digit] + (unsigned)__popc(before)] = pair;
            __syncthreads();
        }
    }
}

__device__ inline uint64_t index_at(const struct plim_embedding_sorted_args &args, uint64_t place)
{
    return reinterpret_cast<const uint64_t *>(args.from)[place] >> 32;
}

enum { BEGAN_BEFORE, GOES_ON };

__device__ inline uint64_t partial_of(const struct plim_embedding_sorted_args &args, uint64_t chunk,
                                      unsigned which, uint64_t column)
{
    return args.partials + ((chunk * 2 + which) * args.b.e.columns + column) * sizeof(float);
}

/* `pairs` has one more on either side, of an index that there is not where there is no token. */
template <int V>
__device__ inline void sum_chunk(const struct plim_embedding_sorted_args &args, uint64_t chunk,
                                 unsigned count, const uint64_t *pairs, uint64_t column)
{
    enum { AT_ONCE = 4 }; /* rows on their way */
    const struct plim_walk &w = args.b.e.walk;
    bool began_before = pairs[0] >> 32 == pairs[1] >> 32;
    float total[V] = {};
    for (unsigned start = 1; start <= count; start += AT_ONCE) {
        float x[AT_ONCE][V] = {};
        PLIM_UNROLL
        for (unsigned k = 0; k < AT_ONCE; k++) {
            uint64_t at[1];
            if (start + k > count || pairs[start + k] >> 32 >= args.b.e.rows) break;
            walk_to_row(w, (uint32_t)pairs[start + k], at);
            load(x[k], w.dtype[0], at[0] + column * (uint64_t)w.stride[0][0]);
        }
        PLIM_UNROLL
        for (unsigned k = 0; k < AT_ONCE; k++) {
            unsigned i = start + k;
            uint64_t index = pairs[i < count ? i : count] >> 32;
            if (i > count || index >= args.b.e.rows) break;
            PLIM_UNROLL
            for (int v = 0; v < V; v++) total[v] += x[k][v];
            bool goes_on = pairs[i + 1] >> 32 == index;
            if (goes_on && i < count) continue;
            if (began_before)
                store(PLIM_F32, partial_of(args, chunk, BEGAN_BEFORE, column), total);
            else if (goes_on)
                store(PLIM_F32, partial_of(args, chunk, GOES_ON, column), total);
            else
                add_to_table(args.b.e, index, column, total);
            began_before = false;
            PLIM_UNROLL
            for (int v = 0; v < V; v++) total[v] = 0;
        }
    }
}

/* blockIdx.y: columns from `column` on, V a thread. */
template <int V>
__device__ inline void sum_chunks(const struct plim_embedding_sorted_args &args)
{
    __shared__ uint64_t pairs[PLIM_EMBEDDING_CHUNK + 2];
    uint64_t column = ((uint64_t)blockIdx.y * PLIM_EMBEDDING_THREADS + threadIdx.x) * V;
    const uint64_t most = PLIM_EMBEDDING_CHUNK, chunks = (args.b.tokens + most - 1) / most;
    for (uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        uint64_t first = chunk * most, left = args.b.tokens - first;
        __syncthreads(); /* the last chunk's pairs have been read */
        if (threadIdx.x < PLIM_EMBEDDING_CHUNK + 2) {
            uint64_t t = first + threadIdx.x - 1; /* before the first it is out of range, too */
            pairs[threadIdx.x] = t < args.b.tokens ? pair_at(args, t) : ~(uint64_t)0;
        }
        __syncthreads();
        if (column < args.b.e.columns)
            sum_chunk<V>(args, chunk, (unsigned)(left < most ? left : most), pairs, column);
    }
}

/* A segment that goes on behind the chunk where it began: all of it. */
template <int V>
__device__ inline void sum_long_segments(const struct plim_embedding_sorted_args &args)
{
    uint64_t column = ((uint64_t)blockIdx.y * PLIM_EMBEDDING_THREADS + threadIdx.x) * V;
    if (column >= args.b.e.columns) return;
    for (uint64_t chunk = blockIdx.x;; chunk += gridDim.x) {
        uint64_t first = chunk * PLIM_EMBEDDING_CHUNK, end = first + PLIM_EMBEDDING_CHUNK;
        if (end >= args.b.tokens) return;
        uint64_t index = index_at(args, end);
        bool crosses = index < args.b.e.rows && index_at(args, end - 1) == index;
        if (!crosses || (chunk > 0 && index_at(args, first - 1) == index)) continue;
        float total[V], more[V];
        load(total, PLIM_F32, partial_of(args, chunk, GOES_ON, column));
        for (uint64_t next = chunk + 1; end < args.b.tokens && index_at(args, end) == index;
             next++, end += PLIM_EMBEDDING_CHUNK) {
            load(more, PLIM_F32, partial_of(args, next, BEGAN_BEFORE, column));
            PLIM_UNROLL
            for (int k = 0; k < V; k++) total[k] += more[k];
        }
        add_to_table(args.b.e, index, column, total);
    }
}

PLIM_KERNEL(embedding_sum_vector, struct plim_embedding_sorted_args, PLIM_EMBEDDING_THREADS)
{
    sum_chunks<PLIM_WALK_VECTOR>(args);
}

PLIM_KERNEL(embedding_sum_scalar, struct plim_embedding_sorted_args, PLIM_EMBEDDING_THREADS)
{
    sum_chunks<1>(args);
}

PLIM_KERNEL(embedding_sum_long_vector, struct plim_embedding_sorted_args, PLIM_EMBEDDING_THREADS)
{
    sum_long_segments<PLIM_WALK_VECTOR>(args);
}

PLIM_KERNEL(embedding_sum_long_scalar, struct plim_embedding_sorted_args, PLIM_EMBEDDING_THREADS)
{
    sum_long_segments<1>(args);
}
