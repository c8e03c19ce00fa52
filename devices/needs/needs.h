/* The memory that operations need in addition to their outputs: temporaries and workspaces, in order of allocation.
 *
 * The results depend on the operation and on the GPU's compute capability and multiprocessors, never on the kind of
 * device that runs it: the engine allocates them and passes them as operands. All sizes are in bytes. The rules are
 * PyTorch 2.11's; each function names its source. */
#ifndef PLIM_DEVICES_NEEDS_H
#define PLIM_DEVICES_NEEDS_H

#include "devices/device.h"
#include "devices/reduce_launch.h"

/* Scratch memory of one reduction launch, in order of allocation and released in reverse. */
struct plim_reduce_scratch {
    int64_t accumulation_bytes; /* in the first launch only: carries 16-bit sums over the launches,
                                   released after the last of them; 0: none */
    int64_t partials_bytes, semaphores_bytes; /* for blocks that share an output; both 0: none */
};

/* Returns the scratch of one launch in which several thread blocks share an output; no accumulation. Source:
 * setReduceConfig in aten/src/ATen/native/cuda/Reduce.cuh, for blocks of 512 threads. */
struct plim_reduce_scratch plim_reduce_launch_needs(const struct plim_device_info *info,
                                                    const struct plim_reduce_launch *launch);

enum { PLIM_REDUCE_MAX_LAUNCHES = 64 };

/* The scratch of a reduction of `in` over the dimensions in the bit mask `dims`, into a new contiguous array of element
 * type `result`. ADD stands for sum, mean and 2-norm; MAX, MIN, AND, OR reduce in the input's type. A sum of int32,
 * uint8 or bool casts its input to int64 first: pass the cast array.
 *
 * An array that spans more than 2 GiB is reduced in several launches. Returns their number (0 for an empty array).
 * Launches beyond PLIM_REDUCE_MAX_LAUNCHES (128 GiB), which repeat these sizes, are omitted. The address of `in`
 * matters: its alignment determines how many outputs a thread computes.
 * Source: setReduceConfig, as above; reorder_dimensions, coalesce_dimensions, with_32bit_indexing in
 * aten/src/ATen/TensorIterator.cpp. */
int plim_reduce_needs(const struct plim_device_info *info, const struct plim_array *in,
                      unsigned dims, enum plim_binary fold, enum plim_dtype result,
                      struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES]);

/* The same for argmax along the last dimension, into int64: it reduces pairs of a value and an index.
 * Source: argmax_argmin_impl in aten/src/ATen/native/ReduceOps.cpp, ReduceArgMaxKernel.cu. */
int plim_argmax_needs(const struct plim_device_info *info, const struct plim_array *in,
                      struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES]);

/* The workspace of cuBLAS for a (thread, stream), allocated at its first use and kept; and that of cuBLASLt, which the
 * first matmul with a bias allocates, after cuBLAS's own if that does not exist yet. `torch_2_15`: PyTorch 2.15
 * allocates only one of them, for each call, and on Blackwell as much as on Hopper. (Not for every matmul with a bias:
 * addmm uses cuBLASLt if the bias is a contiguous row, and neither the inner dimension nor the result's last dimension
 * is 1.)
 * Source: getChosenWorkspaceSize in aten/src/ATen/cuda/CublasHandlePool.cpp. */
int64_t plim_cublas_workspace_bytes(const struct plim_device_info *info, bool torch_2_15);
int64_t plim_cublaslt_workspace_bytes(const struct plim_device_info *info);

/* A block that a composed operation allocates. */
struct plim_need {
    int64_t bytes;
    bool is_result; /* outlives the operation */
    int before;     /* a temporary is released just before the need with this index is allocated; the number of needs:
                     * at the end. If there are several: the last one first */
};

/* The needs of the embedding's backward, for `tokens` indices into a weight of `rows` x `width`, in order; the gradient
 * of the weight is among them. Up to 3072 tokens it is the only one; more tokens are sorted. A padding index changes
 * nothing. `torch_2_15`: PyTorch 2.15 sorts only by as many bits as `rows` needs. Returns the number of needs.
 * Source: embedding_dense_backward_cuda, embedding_backward_cuda_kernel in aten/src/ATen/native/cuda; temporary storage
 * of CUB 3.0's DeviceRadixSort, DeviceSelect and DeviceScan for the code that the PyTorch wheel has for this compute
 * capability. */
enum { PLIM_EMBEDDING_MAX_NEEDS = 16 };
int plim_embedding_backward_needs(const struct plim_device_info *info, enum plim_dtype dtype,
                                  int64_t tokens, int64_t rows, int64_t width, bool torch_2_15,
                                  struct plim_need needs[PLIM_EMBEDDING_MAX_NEEDS]);

/* The temporary of a cumulative sum of int64, int32 or fp32 along the last dimension, allocated after the result: a
 * single row is scanned by CUB; with more rows there is no temporary (0). An input that is summed in another type is
 * cast first, and the cast array is released after the temporary.
 * Source: scan_dim in aten/src/ATen/native/cuda/ScanUtils.cuh. */
int64_t plim_cumsum_temporary_bytes(enum plim_dtype dtype, int64_t rows, int64_t length);

/* The needs of sorting `items` int64 or fp32 in addition to values and indices, in order.
 * Source: sort_stable_kernel in aten/src/ATen/native/cuda/Sort.cpp. */
enum { PLIM_SORT_MAX_NEEDS = 2 };
int plim_sort_needs(const struct plim_device_info *info, enum plim_dtype dtype, int64_t items,
                    struct plim_need needs[PLIM_SORT_MAX_NEEDS]);

/* The needs of adding `items` rows by index to an array of `rows` (index_put_ with accumulate=True,
 * the backward of x[indices]), in order: the linearised and sorted indices.
 * Source: index_put_with_sort_kernel in aten/src/ATen/native/cuda/Indexing.cu. */
enum { PLIM_INDEX_ADD_NEEDS = 6 };
void plim_index_add_needs(const struct plim_device_info *info, int64_t items, int64_t rows,
                          struct plim_need needs[PLIM_INDEX_ADD_NEEDS]);

/* The needs of nonzero() of a mask with `dims` dimensions and `items` elements, `found` of them true, in order; the
 * resulting indices are among them. x[mask] and masked_select() start with it.
 * Source: nonzero_cuda_out_impl in aten/src/ATen/native/cuda/Nonzero.cu; temporary storage of CUB's DeviceReduce and
 * DeviceSelect. */
enum { PLIM_NONZERO_NEEDS = 4, PLIM_NONZERO_PLACES = 2 /* index of the places */ };
void plim_nonzero_needs(const struct plim_device_info *info, int64_t items, int64_t found, int dims,
                        struct plim_need needs[PLIM_NONZERO_NEEDS]);

/* The needs of masked_scatter_(): the number of selected elements before each element, and the temporary for counting.
 * Source: launch_masked_scatter_kernel in aten/src/ATen/native/cuda/IndexKernel.cu. */
enum { PLIM_MASKED_SCATTER_NEEDS = 2 };
void plim_masked_scatter_needs(int64_t items, struct plim_need needs[PLIM_MASKED_SCATTER_NEEDS]);

/* The needs of matrix products of groups of rows (torch.nn.functional.grouped_mm). In bf16 on Hopper and Blackwell one
 * kernel computes all groups and needs tables of sizes and addresses and a workspace. Otherwise PyTorch reads the ends
 * of the groups on the host, multiplies one group after another and needs nothing: returns 0. Checked against PyTorch
 * on the virtual GPU for compute capability 9.0.
 * Source: aten/src/ATen/native/cuda/GroupedBlas.cpp, GroupMM.cu. */
enum { PLIM_GROUPED_MATMUL_NEEDS = 2 };
int plim_grouped_matmul_needs(const struct plim_device_info *info, enum plim_dtype dtype,
                              int64_t groups, struct plim_need needs[PLIM_GROUPED_MATMUL_NEEDS]);

/* Returns the bytes of the list of addresses of the matrices a (.., n, n) that a triangular solve allocates twice; 0 if
 * it needs none (triangular_solve_kernel, native/cuda/linalg/BatchLinearAlgebra.cpp). */
int64_t plim_triangular_list_bytes(const struct plim_array *a);

/* Returns the size of cuDNN's workspace for a convolution of images whose stride is its kernel size, forward and
 * backward: if it uses tensor cores it converts images, kernels and result to another layout, with channels padded to
 * 16 bytes. An estimate if cuDNN's heuristic chooses another engine (small images and batches; half types on Turing and
 * 8.6; the backward, which may also split its sum). The workspace is released immediately after the call.
 * Source: cuDNN 9.19's answers for the virtual GPU's compute capabilities 7.5, 8.0, 8.6 and 9.0. */
int64_t plim_patches_workspace_bytes(const struct plim_device_info *info,
                                     const struct plim_array *images,
                                     const struct plim_array *weight,
                                     const struct plim_array *result);

/* The same for a convolution along rows (conv1d) of x (b, c, s), weight (k, c, taps) and result (b, k, l), whose
 * windows overlap. An estimate in fp32, and for the weight's gradient, whose sums may be split: tests/golden/KNOWN.md
 * lists the differences for whisper's two convolutions. */
int64_t plim_conv1d_workspace_bytes(const struct plim_device_info *info, bool is_forward, const struct plim_array *x,
                                    const struct plim_array *weight, const struct plim_array *result);

/* Layer norm's backward sums the gradients of weight and bias in one pass, or, with many rows and few columns, in two.
 * Returns the number of rows of the first pass's partial sums, 0 for one pass. The same for the weight of
 * torch.nn.functional.rms_norm.
 *
 * With two passes, after the gradients of input, weight and bias are allocated: the partial sums of weight and bias,
 * (rows returned, width) each in the weight's type; then for weight, then for bias, a reduction over dimension 0 into a
 * new array, after which the first gradient is released; then the partial sums are released, the bias's first. Without
 * a trainable bias its part is omitted.
 * Source: LaunchGammaBetaBackwardCUDAKernel in aten/src/ATen/native/cuda/layer_norm_kernel.cu. */
int64_t plim_layer_norm_partial_rows(const struct plim_device_info *info, int64_t rows,
                                     int64_t width);

/* True if bitsandbytes multiplies a (m, k) by a 4-bit weight (n, k) in one fused kernel, which needs only the result.
 * It does for few rows; otherwise it first dequantises the weight to the type of `a`. `block`: number of elements that
 * share a scale.
 * Source: gemm_4bit and _gemm_4bit_use_custom_cuda in bitsandbytes 0.50.2, backends/cuda/ops.py, whose limits were
 * measured on each GPU. */
bool plim_matmul_4bit_is_fused(const struct plim_device_info *info, enum plim_dtype dtype,
                               int64_t m, int64_t n, int64_t k, int64_t block);

/* Return the bytes of the tables of addresses and sizes of the two kernels with which FSDP unpacks and packs its
 * buffers; released after the kernel. There are `count` tensors; each of `ranks` ranks has chunks[i] bytes of tensor i
 * (padded, as in the result of chunk_cat).
 * Source: split_with_sizes_copy_out_cuda_contiguous_no_cast and get_chunk_cat_metadata in
 * aten/src/ATen/native/cuda/TensorShape.cu. */
int64_t plim_split_copy_table_bytes(const struct plim_device_info *info, size_t count,
                                    const int64_t *chunks, int64_t ranks);
int64_t plim_chunk_cat_table_bytes(size_t count, const int64_t *chunks);

#endif
