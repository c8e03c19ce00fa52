/* What operations ask for besides their outputs: temporaries and workspaces, in order.
 *
 * The answers depend on the operation and on the GPU's compute capability and multiprocessors,
 * never on the device that runs it: the engine allocates them, every device finds them as operands.
 * All sizes are bytes. The rules are PyTorch 2.11's; each function names its source.
 */
#ifndef PLIM_DEVICES_NEEDS_H
#define PLIM_DEVICES_NEEDS_H

#include "devices/device.h"
#include "devices/reduce_launch.h"

/* Scratch memory of one reduction launch, in order of allocation and released in reverse. */
struct plim_reduce_scratch {
    int64_t accumulation_bytes; /* in the first launch only: carries 16-bit sums over the launches,
                                   released after the last of them; 0: none */
    int64_t partials_bytes, semaphores_bytes; /* of the blocks that share an output; both 0: none */
};

/* What one launch asks for where several thread blocks share an output; no accumulation.
 * Source: setReduceConfig in aten/src/ATen/native/cuda/Reduce.cuh, of blocks of 512 threads. */
struct plim_reduce_scratch plim_reduce_launch_needs(const struct plim_device_info *info,
                                                    const struct plim_reduce_launch *launch);

enum { PLIM_REDUCE_MAX_LAUNCHES = 64 };

/* A reduction of `in` over the dimensions in the bit mask `dims`, into a new contiguous array of
 * element type `result`. ADD stands for sum, mean and 2-norm; MAX, MIN, AND, OR fold in the input's
 * type. A sum of int32, uint8 or bool casts its input to int64 first: give the cast array.
 *
 * An array that spans more than 2 GiB is reduced in several launches, one after the other. Returns
 * how many (0 for an empty array). Beyond PLIM_REDUCE_MAX_LAUNCHES (128 GiB) the rest, which
 * repeat these sizes, are left out. The place of `in` matters: its alignment decides how many
 * outputs a thread takes.
 * Source: setReduceConfig, as above; reorder_dimensions, coalesce_dimensions, with_32bit_indexing in
 * aten/src/ATen/TensorIterator.cpp. */
int plim_reduce_needs(const struct plim_device_info *info, const struct plim_array *in,
                      unsigned dims, enum plim_binary fold, enum plim_dtype result,
                      struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES]);

/* The same of where the largest along the last dimension stands, into int64: what is folded are pairs of a value and a
 * place.
 * Source: argmax_argmin_impl in aten/src/ATen/native/ReduceOps.cpp, ReduceArgMaxKernel.cu. */
int plim_argmax_needs(const struct plim_device_info *info, const struct plim_array *in,
                      struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES]);

/* cuBLAS workspace of a (thread, stream), taken at its first use and kept; the same of cuBLASLt,
 * which a matmul with a bias takes at its first use, after cuBLAS's own if that is not there yet.
 * `torch_2_15`: PyTorch 2.15 takes one of them, anew for each, and on Blackwell as much as on Hopper.
 * (Not every one: addmm goes to cuBLASLt where the bias is a contiguous row, and neither the summed
 * dimension nor the result's last is 1.)
 * Source: getChosenWorkspaceSize in aten/src/ATen/cuda/CublasHandlePool.cpp. */
int64_t plim_cublas_workspace_bytes(const struct plim_device_info *info, bool torch_2_15);
int64_t plim_cublaslt_workspace_bytes(const struct plim_device_info *info);

/* One block that a composed operation asks for. */
struct plim_need {
    int64_t bytes;
    bool is_result; /* outlives the operation */
    int before;     /* a temporary is released just before the need of this index is allocated;
                       the number of needs: at the end. Several at once: the last one first */
};

/* What the embedding's backward asks for, of `tokens` indices into `rows` x `width`, in order; the
 * gradient of the weight is among them. Up to 3072 tokens it is the only one; more are sorted.
 * A padding index changes nothing. `torch_2_15`: of PyTorch 2.15, which sorts by the bits that `rows` has
 * and no more. Returns how many.
 * Source: embedding_dense_backward_cuda, embedding_backward_cuda_kernel in
 * aten/src/ATen/native/cuda; temporary storage of CUB 3.0's DeviceRadixSort, DeviceSelect and
 * DeviceScan for the code that the PyTorch wheel brings for this compute capability. */
enum { PLIM_EMBEDDING_MAX_NEEDS = 16 };
int plim_embedding_backward_needs(const struct plim_device_info *info, enum plim_dtype dtype,
                                  int64_t tokens, int64_t rows, int64_t width, bool torch_2_15,
                                  struct plim_need needs[PLIM_EMBEDDING_MAX_NEEDS]);

/* The temporary of a cumulative sum of int64, int32 or fp32 along the last dimension, allocated after the
 * result: a single row is scanned by CUB; with more rows there is none (0). What is to be
 * summed in another type is cast first, and the cast array is released after it.
 * Source: scan_dim in aten/src/ATen/native/cuda/ScanUtils.cuh. */
int64_t plim_cumsum_temporary_bytes(enum plim_dtype dtype, int64_t rows, int64_t length);

/* What sorting `items` int64 or fp32 asks for besides values and places, in order.
 * Source: sort_stable_kernel in aten/src/ATen/native/cuda/Sort.cpp. */
enum { PLIM_SORT_MAX_NEEDS = 2 };
int plim_sort_needs(const struct plim_device_info *info, enum plim_dtype dtype, int64_t items,
                    struct plim_need needs[PLIM_SORT_MAX_NEEDS]);

/* What adding rows to an array of `rows` by `items` indices asks for (index_put_ with accumulate=True,
 * the backward of x[indices]), in order: the indices, made linear and sorted.
 * Source: index_put_with_sort_kernel in aten/src/ATen/native/cuda/Indexing.cu. */
enum { PLIM_INDEX_ADD_NEEDS = 6 };
void plim_index_add_needs(const struct plim_device_info *info, int64_t items, int64_t rows,
                          struct plim_need needs[PLIM_INDEX_ADD_NEEDS]);

/* What finding where a mask (`dims` dimensions, `items` elements) is true asks for, in order; the places, `found` of
 * them, are among it (nonzero(), by which x[mask] and masked_select() begin).
 * Source: nonzero_cuda_out_impl in aten/src/ATen/native/cuda/Nonzero.cu; temporary storage of CUB's DeviceReduce and
 * DeviceSelect. */
enum { PLIM_NONZERO_NEEDS = 4, PLIM_NONZERO_PLACES = 2 /* index of the places */ };
void plim_nonzero_needs(const struct plim_device_info *info, int64_t items, int64_t found, int dims,
                        struct plim_need needs[PLIM_NONZERO_NEEDS]);

/* What masked_scatter_() asks for: how many elements are chosen before each, and how that is counted.
 * Source: launch_masked_scatter_kernel in aten/src/ATen/native/cuda/IndexKernel.cu. */
enum { PLIM_MASKED_SCATTER_NEEDS = 2 };
void plim_masked_scatter_needs(int64_t items, struct plim_need needs[PLIM_MASKED_SCATTER_NEEDS]);

/* A product for each group of rows (torch.nn.functional.grouped_mm): one kernel for all groups, which
 * asks for tables of sizes and addresses and a workspace, where Hopper or Blackwell multiply bf16.
 * Elsewhere PyTorch reads on the host where groups end, multiplies them one after the other, and asks
 * for nothing: returns 0. Checked against PyTorch on the virtual GPU for compute capability 9.0.
 * Source: aten/src/ATen/native/cuda/GroupedBlas.cpp, GroupMM.cu. */
enum { PLIM_GROUPED_MATMUL_NEEDS = 2 };
int plim_grouped_matmul_needs(const struct plim_device_info *info, enum plim_dtype dtype,
                              int64_t groups, struct plim_need needs[PLIM_GROUPED_MATMUL_NEEDS]);

/* A triangular solve's list of the addresses of its matrices a (.., n, n), of which there are two; 0: it goes without
 * (triangular_solve_kernel, native/cuda/linalg/BatchLinearAlgebra.cpp). */
int64_t plim_triangular_list_bytes(const struct plim_array *a);

/* cuDNN's workspace for a convolution of images whose stride is its kernel's size, forward and
 * backward: where it takes tensor cores it turns images, kernels and result into another layout, with
 * channels padded to 16 bytes. An estimate where cuDNN's heuristic takes another engine (small images
 * and batches; half types on Turing and 8.6; the backward, which may also split its sum); all of it is
 * given back at once.
 * Source: what cuDNN 9.19 said for the virtual GPU's compute capabilities 7.5, 8.0, 8.6 and 9.0. */
int64_t plim_patches_workspace_bytes(const struct plim_device_info *info,
                                     const struct plim_array *images,
                                     const struct plim_array *weight,
                                     const struct plim_array *result);

/* The same for a convolution along rows (conv1d) of x (b, c, s), weight (k, c, taps) and result (b, k, l), whose
 * windows overlap. An estimate in fp32, and of the weight's gradient, whose sums may be split: tests/golden/KNOWN.md
 * says of whisper's two how far it is one. */
int64_t plim_conv1d_workspace_bytes(const struct plim_device_info *info, bool is_forward, const struct plim_array *x,
                                    const struct plim_array *weight, const struct plim_array *result);

/* Layer norm's backward sums the gradients of weight and bias in one pass, or, where rows are many
 * and columns few, in two. Returns the rows of the first pass's partial sums, 0 for one pass. The
 * same for the weight of torch.nn.functional.rms_norm.
 *
 * With two passes, after the gradients of input, weight and bias: the partial sums of weight and
 * bias, (rows returned, width) each in the weight's type; then for weight, then for bias, a
 * reduction over dimension 0 into a new array, after which the first gradient is released; then the
 * partial sums, the bias's first. Without a bias to train its part is missing.
 * Source: LaunchGammaBetaBackwardCUDAKernel in aten/src/ATen/native/cuda/layer_norm_kernel.cu. */
int64_t plim_layer_norm_partial_rows(const struct plim_device_info *info, int64_t rows,
                                     int64_t width);

/* bitsandbytes multiplies a (m, k) by a 4-bit weight of (n, k) in one kernel where rows are few, and
 * asks for nothing besides the result. Else it makes the weight a matrix in the type of `a` first.
 * `block`: elements of a scale.
 * Source: gemm_4bit and _gemm_4bit_use_custom_cuda in bitsandbytes 0.50.2, backends/cuda/ops.py: by
 * what was measured on each GPU. */
bool plim_matmul_4bit_is_fused(const struct plim_device_info *info, enum plim_dtype dtype,
                               int64_t m, int64_t n, int64_t k, int64_t block);

/* The tables of addresses and sizes, released after the kernel, of the two that FSDP packs and
 * unpacks its buffers with: `count` tensors, of each of which every one of `ranks` has `chunks` bytes
 * (padded; as in the result of chunk_cat).
 * Source: split_with_sizes_copy_out_cuda_contiguous_no_cast and get_chunk_cat_metadata in
 * aten/src/ATen/native/cuda/TensorShape.cu. */
int64_t plim_split_copy_table_bytes(const struct plim_device_info *info, size_t count,
                                    const int64_t *chunks, int64_t ranks);
int64_t plim_chunk_cat_table_bytes(size_t count, const int64_t *chunks);

#endif
