/* The block's share of the tensors of a launch. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_LISTS_CUH
#define PLIM_DEVICES_CUDA_KERNELS_LISTS_CUH

#include "args_foreach.h"
#include "vector.cuh"

__device__ inline const uint64_t *list_record(const plim_cuda_tensor_lists &lists, int i)
{
    return lists.word + i * (int)(lists.lists + PLIM_RECORD_DATA);
}

/* Elements [begin, end) of one tensor. */
struct list_chunk {
    const uint64_t *data; /* a list's array each */
    int64_t begin, end;
};

/* The last record with no more chunks before it than blockIdx.x: empty tensors have none. */
__device__ inline list_chunk chunk_of_block(const plim_cuda_tensor_lists &lists)
{
    int low = 0, high = (int)lists.tensors;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (list_record(lists, middle)[PLIM_RECORD_CHUNKS] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    const uint64_t *record = list_record(lists, low);
    int64_t index = (int64_t)(blockIdx.x - record[PLIM_RECORD_CHUNKS]);
    int64_t size = (int64_t)record[PLIM_RECORD_SIZE], begin = index * PLIM_FOREACH_CHUNK;
    int64_t end = begin + PLIM_FOREACH_CHUNK;
    return {record + PLIM_RECORD_DATA, begin, end < size ? end : size};
}

/* visit(element, lanes<N>) for the elements of the chunk: eight at a time where all arrays of the
 * tensor (of the first `count` lists) allow it. */
template <class Visit>
__device__ inline void chunk_visit(const list_chunk &chunk, int count, Visit visit)
{
    uint64_t places = 0;
    for (int i = 0; i < count; i++) places |= chunk.data[i];
    int64_t tail = chunk.begin;
    if (places % 16 == 0) tail += (chunk.end - chunk.begin) / VECTOR * VECTOR;
    for (int64_t i = chunk.begin + (int64_t)threadIdx.x * VECTOR; i < tail;
         i += blockDim.x * VECTOR)
        visit(i, lanes<VECTOR>());
    for (int64_t i = tail + threadIdx.x; i < chunk.end; i += blockDim.x) visit(i, lanes<1>());
}

#endif
