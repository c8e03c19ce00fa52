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
    uint64_t address = args.e.table + (uint64_t)(index * args.e.table_stride[0]) +
                       column * (uint64_t)args.e.table_stride[1];
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
    if (!takes_part) return;
    float before[V];
    load(before, args.e.table_dtype, address);
    PLIM_UNROLL
    for (int k = 0; k < V; k++) total[k] += before[k];
    store(args.e.table_dtype, address, total);
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
