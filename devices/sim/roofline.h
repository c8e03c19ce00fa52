/* The clock of the simulated device: seconds of one operation on one GPU.
 *
 * Every operation is one kernel. It takes the longer of the times for its arithmetic and its memory traffic, plus a
 * fixed time to start; launching it takes a separate time on the host. Nothing is fitted to a model or a GPU:
 * differences between GPUs come from the catalogue, the rest are the constants below, one set for all, each with its
 * source ("as remembered": from memory, the source was not looked up again).
 *
 *   kernel     = KERNEL_SECONDS + max(arithmetic, bytes / (bandwidth * its architecture's share))
 *                bytes: every operand once. A kernel that touches less than the L2 cache holds
 *                finds its operands there and is L2_SPEEDUP times as fast. An element-wise
 *                kernel on differing layouts takes 1 / STRIDED_SHARE times as long.
 *
 *   matmul     = min over tiles tm x tn and splits of k:
 *                waves * (TILE_SECONDS
 *                         + 2 tm tn k / split / (rate / multiprocessors * share of the tile)
 *                           / (1 - FIRST_WAVE_LOSS / waves without splits))
 *                waves = ceil(ceil(m/tm) ceil(n/tn) batch split / multiprocessors)
 *                rate  = SUSTAINED_SHARE * (the best matmul seen on the GPU, or the data sheet's
 *                        rate * TENSOR_SHARE); if the rows of an operand (from Hopper on also of
 *                        the result) are not multiples of 16 bytes: mma.sync's rate
 *                        * ALIGNED_n_SHARE
 *                So one row beyond full tiles costs a whole tile, one tile beyond full waves a whole wave.
 *
 *   attention  = scores / multiprocessors * (4 d / rate of one + SOFTMAX_CLOCKS / clock)
 *                A score is one (query, key) pair; the causal mask leaves half of them and half of
 *                the blocks on the diagonal. Backward has 10 d, * SDPA_BACKWARD_SLOWDOWN.
 *
 *   step       the host launches one operation after another and runs ahead; the device starts
 *              an operation when it is free and the launch has arrived. Reading a value makes the host
 *              wait. Launches from autograd's thread take less time: no Python runs there.
 *
 * All of this was compared with published speeds: tests/golden/speed_ratios.py computes the deviations.
 *
 * Types. tf32 only if the operation allows it and the GPU has it. bf16 on a GPU whose tensor cores lack it (Volta,
 * Turing) runs as PyTorch runs it there: emulated, slower than fp32; fp16 has tensor rates on all. A rate that is
 * missing in the catalogue is never invented: the rate of the next simpler type is used. */
#ifndef PLIM_DEVICES_ROOFLINE_H
#define PLIM_DEVICES_ROOFLINE_H

#include "devices/aligned.h"
#include "devices/catalogue/catalogue.h"
#include "devices/op.h"
#include "work.h"

/* --- the host --------------------------------------------------------------------------------- */

/* Launching one operation: Python, dispatcher, autograd, allocator and driver; without Python when autograd runs
 * backward. In published steps that are host-bound, hosts needed 20 to 37 us in forward, the better of them 12 us in
 * backward. A training step of PyTorch 2.11 with transformers 5.17 takes 11 to 15 us per operation, forward and
 * backward, on an EPYC of 2025 (measured on the oracle's virtual GPU, without the driver's 2 to 3 us). */
#define PLIM_HOST_SECONDS 20e-6
#define PLIM_HOST_BACKWARD_SECONDS 12e-6
/* The slowest host of these rows relative to this value: the uncertainty of a host that was not measured. */
#define PLIM_HOST_SLOWEST (37.0 / 20)
/* A kernel over a list of tensors collects their addresses (same measurement: AdamW, per tensor). */
#define PLIM_HOST_SECONDS_PER_TENSOR 1e-6

/* A driver call that allocates or frees memory (cudaMalloc, cudaFree, mapping and unmapping of pages). On an H200 with
 * driver 580 (tests/gpu/records: driver): 0.03 to 0.04 ms to allocate or map up to 256 MiB, 0.17 ms for 2 GiB; 0.03 to
 * 0.1 and 0.6 ms to free it. Freeing first waits for the GPU ("Fast, Flexible Allocation for NVIDIA CUDA with RAPIDS
 * Memory Manager", developer.nvidia.com). */
#define PLIM_DRIVER_MEMORY_SECONDS 0.05e-3

/* --- the kernel ------------------------------------------------------------------------------- */

/* Start and drain of a kernel that follows another: 2 to 3 us on these GPUs (as remembered). */
#define PLIM_KERNEL_SECONDS 2.5e-6
/* The share of the data sheet's bandwidth that PyTorch's streaming kernels reach on architectures that
 * were not measured (roofline.c): 0.75 to 0.85 (as remembered; upper bound by BabelStream: 0.85 to
 * 0.93). */
#define PLIM_MEMORY_SHARE 0.80
/* Element-wise kernels whose operands differ in layout (a broadcast weight, a transposed view) read
 * element by element through an offset calculation (elementwise_kernel against
 * vectorized_elementwise_kernel in PyTorch's CUDALoops.cuh); their speed relative to the others. */
#define PLIM_STRIDED_SHARE 0.7
/* Speed of the L2 cache relative to memory (A100: 4 to 5 against 1.6 TB/s, as remembered; less here because
 * written data still goes to memory). */
#define PLIM_L2_SPEEDUP 2.0

/* --- matmul ----------------------------------------------------------------------------------- */

/* The best matmul relative to the data sheet, if none was reported for the GPU: the median of the catalogue's GPUs that
 * have a reported one. */
#define PLIM_TENSOR_SHARE 0.81
/* The share of the best matmul's rate that is left in a training step: real data (zeros run up to 13 % faster), a warm
 * GPU, a cold L2. */
#define PLIM_SUSTAINED_SHARE 0.95
/* The share of the rate that a single wave of tiles loses, because nothing overlaps the first tiles' loads
 * and the last tiles' stores; n waves lose 1 / n of it. From 563 published rows over many GPUs and
 * models; without it the eager rows of tests/golden/speed-ratios.csv are off by 6.1 % in the median, with
 * it and the shares of roofline.c by 3.6 %. */
#define PLIM_FIRST_WAVE_LOSS 0.25
/* Filling the pipeline and writing the result of a tile: two to three trips to memory. */
#define PLIM_TILE_SECONDS 1.5e-6
/* Speed of emulated bf16 relative to fp32: 0.5 (T4), 0.56 (2080 Ti), 0.74 (V100) in
 * zzc0721/torch-performance-test-data. */
#define PLIM_EMULATED_BF16_SHARE 0.6

/* --- the link to the host ----------------------------------------------------------------------- */

/* Factor by which a copy from pageable memory takes longer, because the driver first copies it to pinned memory. An
 * estimate. */
#define PLIM_PAGEABLE_SLOWDOWN 2

/* --- attention -------------------------------------------------------------------------------- */

/* Clocks of a multiprocessor for the softmax of one score: exp on 16 special function units, and
 * the scaling, maximum and conversion around it. With this value FlashAttention-2 reaches the 0.6 of peak
 * (head size 128) that its paper reports for the A100 (as remembered, like all of this section). */
#define PLIM_SOFTMAX_CLOCKS 0.12
/* Flops per clock and multiprocessor that mma.sync reaches. Newer tensor cores do more, but only
 * through instructions that FlashAttention-2 and CUTLASS's efficient attention do not use (0.62 of
 * Hopper's rate, FlashAttention-3 paper). cuDNN's kernels use them. */
#define PLIM_MMA_SYNC_FLOPS_PER_CLOCK 2540.0
/* Time of the backward kernel's arithmetic relative to the ideal (same papers). */
#define PLIM_SDPA_BACKWARD_SLOWDOWN 1.4
/* Time of efficient attention relative to flash, forward and backward (FlashAttention-2 paper, xformers). */
#define PLIM_EFFICIENT_SLOWDOWN 2.0
#define PLIM_SDPA_BLOCK 128 /* queries of one thread block */

/* --- the clock -------------------------------------------------------------------------------- */

enum { PLIM_PRODUCT_CACHE = 256 };

/* The numbers of one GPU. Private to roofline.c. */
struct plim_roofline {
    double rate[PLIM_RATE_COUNT];           /* flops per second that a large matmul sustains */
    double attention_rate[PLIM_RATE_COUNT]; /* the same through mma.sync */
    bool tensor[PLIM_RATE_COUNT];           /* runs on tensor cores */
    bool aligns_results;                    /* products need aligned results as well as operands */
    double multiprocessors;
    double softmax_seconds;                 /* for one score on one multiprocessor */
    double seconds_per_byte, l2_seconds_per_byte;
    double seconds_per_link_byte; /* between host and GPU */
    double l2_bytes;
    double host_share; /* launch times of the host relative to the constants above */
    double host_doubt; /* factor by which the host may be slower than that */
    struct plim_product_entry {
        struct plim_work work;
        double seconds;
    } cache[PLIM_PRODUCT_CACHE]; /* a training step repeats a few dozen shapes */
};

void plim_roofline_init(struct plim_roofline *roofline, const struct plim_gpu *gpu);

/* Sets the host's launch times to `share` times the constants above; `is_known`: this was measured and is not
 * uncertain. After init: 1, and not known. */
void plim_roofline_host(struct plim_roofline *roofline, double share, bool is_known);

/* Returns the seconds that the GPU is busy with this work, including all its launches. */
double plim_roofline_seconds(struct plim_roofline *roofline, const struct plim_work *work);
/* The same for an operation. */
double plim_roofline_device_seconds(struct plim_roofline *roofline, const struct plim_op *op);

#endif
