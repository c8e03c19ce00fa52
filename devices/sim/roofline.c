#include "roofline.h"

#include <math.h>
#include <string.h>

/* --- rates ------------------------------------------------------------------------------------ */

/* Share of the data sheet's fp32 rate that cuBLAS reaches if no report exists for the GPU, from the catalogue's other
 * GPUs, and for 7.0 from published training steps in fp32 (a V100 runs above the clock of its data sheet). GPUs that
 * issue two fp32 instructions per clock through one set of operand ports (compute capability 8.6, 8.9, 12.0) reach
 * less. */
static double fp32_share(int compute_capability)
{
    static const struct {
        int compute_capability;
        double share;
    } shares[] = {{70, 1.02}, {75, 0.90}, {80, 0.93}, {90, 0.78}, {100, 0.83}, {103, 0.83}};
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
        if (shares[i].compute_capability == compute_capability) return shares[i].share;
    return 0.65;
}

static void set_rates(double rate[PLIM_RATE_COUNT], const struct plim_gpu *gpu)
{
    double seen = gpu->matmul_bf16_seen > 0 ? gpu->matmul_bf16_seen : gpu->matmul_fp16_seen;
    double tensor = gpu->bf16 > 0 ? gpu->bf16 : gpu->fp16;
    double share = seen > 0 && tensor > 0 ? seen / tensor : PLIM_TENSOR_SHARE;
    double fp32 = gpu->matmul_fp32_seen > 0 ? gpu->matmul_fp32_seen
                                            : gpu->fp32 * fp32_share(gpu->compute_capability);

    rate[PLIM_RATE_FP32] = fp32;
    rate[PLIM_RATE_TF32] = gpu->tf32 > 0 ? gpu->tf32 * share : fp32;
    rate[PLIM_RATE_FP16] = gpu->fp16 > 0 ? gpu->fp16 * share : fp32;
    rate[PLIM_RATE_BF16] = gpu->bf16 > 0 ? gpu->bf16 * share : fp32 * PLIM_EMULATED_BF16_SHARE;
    for (int i = 0; i < PLIM_RATE_COUNT; i++) rate[i] *= PLIM_SUSTAINED_SHARE;
}

/* Measured with element-wise kernels over eight times the L2 cache on a V100, a T4, an A100, an L4; over 300 MB on an
 * H200. */
static double memory_share(int compute_capability)
{
    static const struct {
        int compute_capability;
        double share;
    } shares[] = {{70, 0.91}, {75, 0.74}, {80, 0.87}, {89, 0.78}, {90, 0.76}};
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
        if (shares[i].compute_capability == compute_capability) return shares[i].share;
    return PLIM_MEMORY_SHARE;
}

void plim_roofline_host(struct plim_roofline *r, double share, bool is_known)
{
    r->host_share = share;
    r->host_doubt = is_known ? 1 : PLIM_HOST_SLOWEST;
}

void plim_roofline_init(struct plim_roofline *r, const struct plim_gpu *gpu)
{
    double clock = gpu->boost_mhz * 1e6;
    memset(r, 0, sizeof(*r));
    plim_roofline_host(r, 1, false);
    set_rates(r->rate, gpu);
    r->aligns_results = gpu->compute_capability >= 90;
    r->tensor[PLIM_RATE_TF32] = gpu->tf32 > 0;
    r->tensor[PLIM_RATE_FP16] = gpu->fp16 > 0;
    r->tensor[PLIM_RATE_BF16] = gpu->bf16 > 0;
    /* If the number of multiprocessors is unknown, waves are not quantised. */
    r->multiprocessors = gpu->multiprocessors > 0 ? gpu->multiprocessors : 1;
    double mma_sync = PLIM_MMA_SYNC_FLOPS_PER_CLOCK * r->multiprocessors * clock;
    for (int i = 0; i < PLIM_RATE_COUNT; i++) {
        bool capped = gpu->multiprocessors > 0 && clock > 0 && r->rate[i] > mma_sync;
        r->attention_rate[i] = capped ? mma_sync : r->rate[i];
    }
    /* Attention on fp32 tensors multiplies with three TF32 products (OpMultiplyAddFastF32 in PyTorch's
     * mem_eff_attention/gemm_kernel_utils.h) if the GPU has TF32. */
    if (gpu->tf32 > 0) r->attention_rate[PLIM_RATE_FP32] = r->attention_rate[PLIM_RATE_TF32] / 3;
    r->softmax_seconds = clock > 0 ? PLIM_SOFTMAX_CLOCKS / clock : 0;
    double bandwidth = gpu->bandwidth * memory_share(gpu->compute_capability);
    r->seconds_per_byte = bandwidth > 0 ? 1 / bandwidth : 0;
    double link = plim_gpu_host_bandwidth(gpu);
    r->seconds_per_link_byte = link > 0 ? 1 / link : r->seconds_per_byte;
    r->l2_seconds_per_byte = r->seconds_per_byte / PLIM_L2_SPEEDUP;
    r->l2_bytes = (double)gpu->l2_bytes;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Data that fits into half of the L2 cache is still there from the previous kernel; from half to all of the cache a
 * decreasing share is. */
static double memory_seconds(const struct plim_roofline *r, double bytes)
{
    if (bytes >= r->l2_bytes) return bytes * r->seconds_per_byte;
    double missing = 2 * bytes / r->l2_bytes - 1;
    if (missing < 0) missing = 0;
    double cached = bytes * r->l2_seconds_per_byte;
    return cached + missing * (bytes * r->seconds_per_byte - cached);
}

/* --- matmul ----------------------------------------------------------------------------------- */

/* Tiles of cuBLAS's kernels, and the share of the rate at which one keeps the tensor cores busy: a tile of tm x tn
 * loads (tm + tn) k values for tm tn k products. The fp32 units are so slow that they never wait for loads. */
static const struct tile {
    double m, n, share;
} tiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.95}, {128, 64, 0.85},
             {64, 128, 0.85}, {64, 64, 0.70}};

enum { MAX_SPLIT = 16, LEAST_SPLIT_K = 256 };

/* Returns the compute time of the best kernel; one that splits k is followed by another, which adds its partial
 * sums. */
static double tiled_seconds(const struct plim_roofline *r, double m, double n, double k,
                            double batch, double rate, bool tensor)
{
    double best = INFINITY;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); i++) {
        const struct tile *t = &tiles[i];
        double count = ceil(m / t->m) * ceil(n / t->n) * batch;
        double product = 2 * t->m * t->n * r->multiprocessors / (rate * (tensor ? t->share : 1));
        double used = 1 - PLIM_FIRST_WAVE_LOSS / ceil(count / r->multiprocessors);
        for (int split = 1; split <= MAX_SPLIT; split *= 2) {
            if (split > 1 && k / split < LEAST_SPLIT_K) break;
            double waves = ceil(count * split / r->multiprocessors);
            double seconds = waves * (PLIM_TILE_SECONDS + k / split * product / used);
            double partials = 2.0 * sizeof(float) * m * n * batch * split;
            if (split > 1) seconds += PLIM_KERNEL_SECONDS + memory_seconds(r, partials);
            if (seconds < best) best = seconds;
        }
    }
    return best;
}

/* Returns the rate that a product reaches, which is lower if its rows are not aligned. */
static double aligned_rate(const struct plim_roofline *r, const struct plim_work *w)
{
    static const double shares[] = {PLIM_ALIGNED_2_SHARE, PLIM_ALIGNED_2_SHARE,
                                    PLIM_ALIGNED_4_SHARE, PLIM_ALIGNED_8_SHARE, 1};
    bool by_result = r->aligns_results && w->result_alignment && shares[w->result_alignment] < 1;
    if (!r->tensor[w->rate] || (shares[w->alignment] == 1 && !by_result)) return r->rate[w->rate];
    double share = shares[w->alignment];
    if (by_result) share = fmin(share, shares[w->result_alignment] * PLIM_UNALIGNED_RESULT_SHARE);
    return r->attention_rate[w->rate] * share;
}

/* Returns the time of a single launch, from the cache or computed. */
static double product_seconds(struct plim_roofline *r, const struct plim_work *w)
{
    uint64_t hash =
        (uint64_t)w->m * 0x9e3779b97f4a7c15u + (uint64_t)w->n * 0xc2b2ae3d27d4eb4fu +
        (uint64_t)w->k * 0x165667b19e3779f9u + (uint64_t)w->batch * 0x27d4eb2f165667c5u +
        (uint64_t)(w->rate * 64 + w->alignment * 8 + w->result_alignment) * 0x9fb21c651e98df25u;
    struct plim_product_entry *slot = &r->cache[hash >> 32 & (PLIM_PRODUCT_CACHE - 1)];
    const struct plim_work *kept = &slot->work;
    if (kept->m == w->m && kept->n == w->n && kept->k == w->k && kept->batch == w->batch &&
        kept->rate == w->rate && kept->alignment == w->alignment &&
        kept->result_alignment == w->result_alignment && kept->bytes == w->bytes)
        return slot->seconds;

    double compute = tiled_seconds(r, (double)w->m, (double)w->n, (double)w->k, (double)w->batch,
                                   aligned_rate(r, w), r->tensor[w->rate]);
    slot->work = *w;
    slot->seconds = PLIM_KERNEL_SECONDS + fmax(compute, memory_seconds(r, w->bytes));
    return slot->seconds;
}

/* --- attention -------------------------------------------------------------------------------- */

/* Thread blocks of a causal kernel differ in length, and the long ones start first: the kernel ends when all work is
 * done, but not before the longest block. */
static double attention_seconds(const struct plim_roofline *r, const struct plim_work *w)
{
    double block = PLIM_SDPA_BLOCK, queries = (double)w->m, keys = (double)w->n;
    if (w->window) keys = fmin(keys, (double)w->window * (w->causal ? 1 : 2) + block);
    double keys_seen = w->causal && !w->window ? fmin(keys, (keys + block) / 2) : keys;
    double blocks = (double)w->batch * ceil(queries / block);

    const double *rates = w->sdpa == PLIM_SDPA_CUDNN ? r->rate : r->attention_rate;
    double rate = rates[w->rate] / r->multiprocessors;
    double products = 4 * (double)w->k / rate;
    if (w->backward) products *= 2.5 * PLIM_SDPA_BACKWARD_SLOWDOWN;
    double score = products + r->softmax_seconds;
    if (w->sdpa == PLIM_SDPA_EFFICIENT) score *= PLIM_EFFICIENT_SLOWDOWN;

    double work = blocks * block * keys_seen * score / r->multiprocessors;
    double longest = block * keys * score;
    double memory = memory_seconds(r, w->bytes);
    return PLIM_KERNEL_SECONDS + fmax(fmax(work, longest), memory);
}

/* Returns the time of the products in a Triton kernel, which uses the same instructions as attention kernels; with
 * fewer thread blocks than multiprocessors some of these are idle. */
static double fused_seconds(const struct plim_roofline *r, const struct plim_work *w)
{
    if (w->flops <= 0) return 0;
    double busy = fmin(1, (double)w->batch / r->multiprocessors);
    return w->flops / (r->attention_rate[w->rate] * busy);
}

/* --- all kinds of work ------------------------------------------------------------------------ */

double plim_roofline_seconds(struct plim_roofline *r, const struct plim_work *work)
{
    switch ((enum plim_work_kind)work->kind) {
    case PLIM_WORK_MOVE:
        return PLIM_KERNEL_SECONDS + fmax(fused_seconds(r, work), memory_seconds(r, work->bytes));
    case PLIM_WORK_STRIDED:
        return PLIM_KERNEL_SECONDS + memory_seconds(r, work->bytes) / PLIM_STRIDED_SHARE;
    case PLIM_WORK_PRODUCT: return (double)work->times * product_seconds(r, work);
    case PLIM_WORK_ATTENTION: return attention_seconds(r, work);
    case PLIM_WORK_LINK: return PLIM_KERNEL_SECONDS + work->bytes * r->seconds_per_link_byte;
    case PLIM_WORK_HOST: return 0;
    }
    return 0;
}

double plim_roofline_device_seconds(struct plim_roofline *r, const struct plim_op *op)
{
    const struct plim_work work = plim_work_of(op, false);
    return plim_roofline_seconds(r, &work);
}
