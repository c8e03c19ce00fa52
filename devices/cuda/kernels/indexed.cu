/* What stands where an index says. */
#include "args_indexed.h"
#include "kernel.cuh"

/* Where element i of `rows` stands in `named`; false: its index is out of range. */
__device__ inline bool named_place(const plim_by_index_args &args, uint64_t i, uint64_t &place)
{
    int64_t index[1];
    load(index, args.indices.dtype, args.indices.data + i * bytes_of(args.indices.dtype));
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
