/* Folds over dimensions: along rows (what is folded is contiguous in memory, or the more so) and
 * down columns (what is kept is). Both in a fixed order. */
#include "args_reduce.h"
#include "functions.cuh"
#include "walk.cuh"

/* --- folds ------------------------------------------------------------------------------------ */

template <class A> __device__ inline A lowest();
template <class A> __device__ inline A highest();

template <> __device__ inline float lowest<float>()
{
    return -INFINITY;
}

template <> __device__ inline float highest<float>()
{
    return INFINITY;
}

template <> __device__ inline int64_t lowest<int64_t>()
{
    return INT64_MIN;
}

template <> __device__ inline int64_t highest<int64_t>()
{
    return INT64_MAX;
}

/* The result of folding nothing. */
template <class A> __device__ inline A identity_of(int fold)
{
    switch (fold) {
    case PLIM_BINARY_MUL:
    case PLIM_BINARY_AND: return 1;
    case PLIM_BINARY_MAX: return lowest<A>();
    case PLIM_BINARY_MIN: return highest<A>();
    default: return 0;
    }
}

template <class A, int V> __device__ inline void fold_into(A (&v)[V], const A (&b)[V], int fold)
{
    switch (fold) {
    case PLIM_BINARY_ADD: EACH(add(x, b[i]))
    case PLIM_BINARY_MUL: EACH(product(x, b[i]))
    case PLIM_BINARY_MAX: EACH(larger()(x, b[i]))
    case PLIM_BINARY_MIN: EACH(smaller()(x, b[i]))
    case PLIM_BINARY_AND: EACH((A)(x != 0 && b[i] != 0))
    case PLIM_BINARY_OR: EACH((A)(x != 0 || b[i] != 0))
    }
}

template <class A> struct folding {
    int fold;
    __device__ A operator()(A a, A b) const
    {
        A v[1] = {a}, w[1] = {b};
        fold_into(v, w, fold);
        return v[0];
    }
};

template <class A, int V>
__device__ inline void fold_elements(A (&total)[V], const struct plim_reduce_args &args,
                                     uint64_t address)
{
    A x[V];
    load(x, args.in_dtype, address);
    if (args.square) {
        PLIM_UNROLL
        for (int i = 0; i < V; i++) x[i] = product(x[i], x[i]);
    }
    fold_into(total, x, args.fold);
}

/* --- places ----------------------------------------------------------------------------------- */

__device__ inline uint64_t offset_of(uint64_t i, int dims, const struct plim_divider *extent,
                                     const int64_t *stride)
{
    uint64_t offset = 0;
    for (int d = 0; d < dims - 1; d++) {
        uint64_t next = plim_divide(i, &extent[d]);
        offset += (i - next * extent[d].divisor) * (uint64_t)stride[d];
        i = next;
    }
    return offset + i * (uint64_t)stride[dims - 1];
}

__device__ inline uint64_t address_of_output(const struct plim_reduce_args &args, uint64_t output)
{
    return args.in + offset_of(output, args.kept_dims, args.kept, args.kept_stride);
}

__device__ inline uint64_t offset_of_folded(const struct plim_reduce_args &args, uint64_t i)
{
    return offset_of(i, args.folded_dims, args.folded, args.folded_stride);
}

/* --- results ---------------------------------------------------------------------------------- */

__device__ inline void store_final(const struct plim_reduce_args &args, uint64_t address,
                                   float value)
{
    float y[1] = {(args.root ? sqrtf(value) : value) * (float)args.alpha};
    store(args.out_dtype, address, y);
}

__device__ inline void store_final(const struct plim_reduce_args &args, uint64_t address,
                                   int64_t value)
{
    bool exact = args.alpha == 1 && args.out_dtype >= PLIM_I64;
    int64_t whole[1] = {value};
    float y[1] = {(float)((double)value * args.alpha)};
    if (exact) store(args.out_dtype, address, whole);
    else store(args.out_dtype, address, y);
}

template <class A>
__device__ inline void store_result(const struct plim_reduce_args &args, uint64_t output,
                                    uint64_t partial, A value)
{
    if (args.is_final)
        store_final(args, args.out + offset_of(output, args.kept_dims, args.kept, args.out_stride),
                    value);
    else
        reinterpret_cast<A *>(args.out)[partial] = value;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* What one lane of a group folds of the elements [start, end) of an output. */
template <class A, int V>
__device__ inline A fold_share(const struct plim_reduce_args &args, uint64_t address,
                               uint64_t start, uint64_t end, unsigned lane)
{
    A total[V], rest[1] = {identity_of<A>(args.fold)};
    PLIM_UNROLL
    for (int i = 0; i < V; i++) total[i] = rest[0];
    uint64_t e = start + (uint64_t)lane * V;
    for (; e + V <= end; e += (uint64_t)args.lanes * V)
        fold_elements(total, args, address + offset_of_folded(args, e));
    for (; e < end && V > 1; e++) /* the last, incomplete pack is one lane's */
        fold_elements(rest, args, address + offset_of_folded(args, e));
    folding<A> fold = {args.fold};
    PLIM_UNROLL
    for (int i = 0; i < V; i++) rest[0] = fold(rest[0], total[i]);
    return rest[0];
}

template <class A, int V> __device__ inline void reduce_rows(const struct plim_reduce_args &args)
{
    unsigned groups = blockDim.x / args.lanes;
    unsigned group = threadIdx.x / args.lanes, lane = threadIdx.x % args.lanes;
    uint64_t units = args.outputs * args.chunks.divisor; /* a chunk of an output each */
    folding<A> fold = {args.fold};
    for (uint64_t first = (uint64_t)blockIdx.x * groups; first < units;
         first += (uint64_t)gridDim.x * groups) {
        uint64_t unit = first + group, output = plim_divide(unit, &args.chunks);
        A value = identity_of<A>(args.fold);
        if (unit < units) {
            uint64_t start = (unit - output * args.chunks.divisor) * args.chunk_elements;
            uint64_t end = start + args.chunk_elements;
            if (end > args.folded_elements) end = args.folded_elements;
            value = fold_share<A, V>(args, address_of_output(args, output), start, end, lane);
        }
        if (args.lanes > 32) value = block_fold(value, identity_of<A>(args.fold), fold);
        else value = warp_fold(value, fold, (int)args.lanes);
        if (lane == 0 && unit < units) store_result(args, output, unit, value);
    }
}

/* --- columns ---------------------------------------------------------------------------------- */

/* A tile: `width` threads side by side with V outputs each; the threads below them take every
 * height-th element of a chunk. */
template <class A, int V> __device__ inline void reduce_columns(const struct plim_reduce_args &args)
{
    __shared__ A shared[PLIM_REDUCE_THREADS][V];
    unsigned height = blockDim.x / args.width;
    unsigned x = threadIdx.x % args.width, y = threadIdx.x / args.width;
    uint64_t units = args.tiles.divisor * args.chunks.divisor;
    for (uint64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
        uint64_t chunk = plim_divide(unit, &args.tiles);
        uint64_t output = ((unit - chunk * args.tiles.divisor) * args.width + x) * V;
        uint64_t start = chunk * args.chunk_elements, end = start + args.chunk_elements;
        if (end > args.folded_elements) end = args.folded_elements;
        A(&total)[V] = shared[threadIdx.x];
        A own[V];
        PLIM_UNROLL
        for (int i = 0; i < V; i++) own[i] = identity_of<A>(args.fold);
        if (output < args.outputs) {
            uint64_t address = address_of_output(args, output);
            for (uint64_t e = start + y; e < end; e += height)
                fold_elements(own, args, address + offset_of_folded(args, e));
        }
        PLIM_UNROLL
        for (int i = 0; i < V; i++) total[i] = own[i];
        for (unsigned step = height / 2; step > 0; step /= 2) {
            __syncthreads();
            if (y < step) fold_into(total, shared[threadIdx.x + step * args.width], args.fold);
        }
        if (y == 0 && output < args.outputs)
            for (int i = 0; i < V; i++)
                store_result(args, output + i, chunk * args.outputs + output + i, total[i]);
        __syncthreads(); /* before the next tile writes */
    }
}

#define REDUCE(name, body, type)                                                                   \
    PLIM_KERNEL(name##_vector, struct plim_reduce_args, PLIM_REDUCE_THREADS)                       \
    {                                                                                              \
        body<type, PLIM_WALK_VECTOR>(args);                                                        \
    }                                                                                              \
    PLIM_KERNEL(name##_scalar, struct plim_reduce_args, PLIM_REDUCE_THREADS)                       \
    {                                                                                              \
        body<type, 1>(args);                                                                       \
    }

REDUCE(reduce_rows_float, reduce_rows, float)
REDUCE(reduce_rows_integer, reduce_rows, int64_t)
REDUCE(reduce_columns_float, reduce_columns, float)
REDUCE(reduce_columns_integer, reduce_columns, int64_t)
