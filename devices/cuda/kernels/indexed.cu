/* What stands where an index says. */
#include "args_indexed.h"
#include "walk.cuh"

/* Where element i of `rows` stands in `named`; false: its index is out of range. */
__device__ inline bool named_place(const plim_by_index_args &args, uint64_t i, uint64_t &place)
{
    int64_t index[1];
    uint64_t at = i - plim_divide(i, &args.period) * args.period.divisor;
    load(index, args.indices.dtype, args.indices.data + at * bytes_of(args.indices.dtype));
    place = plim_divide(i, &args.width) * args.room + (uint64_t)index[0];
    return index[0] >= 0 && (uint64_t)index[0] < args.room;
}

template <class A> __device__ inline void gather(const plim_by_index_args &args)
{
    for (uint64_t i = grid_thread(); i < args.elements; i += grid_threads()) {
        uint64_t place;
        A x[1] = {0};
        if (named_place(args, i, place))
            load(x, args.named.dtype, args.named.data + place * bytes_of(args.named.dtype));
        store(args.rows.dtype, args.rows.data + i * bytes_of(args.rows.dtype), x);
    }
}

/* The indices of a row differ. */
template <class A> __device__ inline void scatter(const plim_by_index_args &args)
{
    for (uint64_t i = grid_thread(); i < args.elements; i += grid_threads()) {
        uint64_t place;
        A x[1];
        if (!named_place(args, i, place)) continue;
        load(x, args.rows.dtype, args.rows.data + i * bytes_of(args.rows.dtype));
        store(args.named.dtype, args.named.data + place * bytes_of(args.named.dtype), x);
    }
}

PLIM_KERNEL(take_float, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    gather<float>(args);
}

PLIM_KERNEL(take_integer, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    gather<int64_t>(args);
}

PLIM_KERNEL(put_float, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    scatter<float>(args);
}

PLIM_KERNEL(put_integer, plim_by_index_args, PLIM_INDEXED_THREADS)
{
    scatter<int64_t>(args);
}

/* A warp has a row, of which each lane adds to every 32nd place. */
PLIM_KERNEL(add_by_index, plim_add_by_index_args, PLIM_INDEXED_THREADS)
{
    uint64_t width = args.by.width.divisor, lane = threadIdx.x % PLIM_INDEXED_WARP;
    for (uint64_t row = grid_thread() / PLIM_INDEXED_WARP; row * width < args.by.elements;
         row += grid_threads() / PLIM_INDEXED_WARP) {
        uint64_t outer = plim_divide(row, &args.count), inner = row - outer * args.count.divisor;
        int64_t from = (int64_t)outer * args.step[0] + (int64_t)inner * args.step[1];
        for (uint64_t i = 0; i < width; i++, from += args.step[2]) {
            uint64_t place;
            if (!named_place(args.by, row * width + i, place) || place % PLIM_INDEXED_WARP != lane) continue;
            float sum[1], more[1];
            uint64_t at = args.by.named.data + place * bytes_of(args.by.named.dtype);
            load(sum, args.by.named.dtype, at);
            load(more, args.by.rows.dtype, args.by.rows.data + (uint64_t)from * bytes_of(args.by.rows.dtype));
            sum[0] += more[0];
            store(args.by.named.dtype, at, sum);
        }
    }
}

/* --- whole rows ------------------------------------------------------------------------------- */

/* How far row `index` is from the first; false: there is none. */
__device__ inline bool find_row(const plim_rows_by_index_args &args, uint64_t at, uint64_t &distance)
{
    int64_t index[1];
    load(index, args.walk.dtype[2], at);
    uint64_t rest = (uint64_t)index[0];
    distance = 0;
    if (index[0] < 0 || rest >= args.count) return false;
    for (uint32_t d = 0; d < args.leading; d++) {
        uint64_t next = plim_divide(rest, &args.extent[d]);
        distance += (rest - next * args.extent[d].divisor) * (uint64_t)args.step[d];
        rest = next;
    }
    return true;
}

template <class A> struct take_rows {
    template <int V> __device__ static void run(const plim_rows_by_index_args &args, uint64_t first)
    {
        const struct plim_walk &w = args.walk;
        uint64_t at[3], distance;
        A x[V] = {};
        walk_to(w, first, at);
        if (find_row(args, at[2], distance)) load(x, w.dtype[1], at[1] + distance);
        store(w.dtype[0], at[0], x);
    }
};

template <class A> struct put_rows {
    template <int V> __device__ static void run(const plim_rows_by_index_args &args, uint64_t first)
    {
        const struct plim_walk &w = args.walk;
        uint64_t at[3], distance;
        A x[V];
        walk_to(w, first, at);
        if (!find_row(args, at[2], distance)) return;
        load(x, w.dtype[0], at[0]);
        store(w.dtype[1], at[1] + distance, x);
    }
};

#define ROWS_BY_INDEX(name, body, V)                                                               \
    PLIM_KERNEL(name, plim_rows_by_index_args, PLIM_INDEXED_THREADS)                               \
    {                                                                                              \
        for_elements<body, V>(args);                                                               \
    }

ROWS_BY_INDEX(take_rows_float_vector, take_rows<float>, PLIM_WALK_VECTOR)
ROWS_BY_INDEX(take_rows_float_scalar, take_rows<float>, 1)
ROWS_BY_INDEX(take_rows_integer_scalar, take_rows<int64_t>, 1)
ROWS_BY_INDEX(put_rows_float_vector, put_rows<float>, PLIM_WALK_VECTOR)
ROWS_BY_INDEX(put_rows_float_scalar, put_rows<float>, 1)
ROWS_BY_INDEX(put_rows_integer_scalar, put_rows<int64_t>, 1)
