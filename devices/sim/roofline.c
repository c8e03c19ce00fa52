#include "roofline.h"

#include <math.h>
#include <string.h>

/* --- rates ------------------------------------------------------------------------------------ */

/* Share of the data sheet's fp32 that cuBLAS reaches where no report exists for the GPU, from
 * the catalogue's other GPUs, and for 7.0 from published training steps in fp32 (a V100 runs above the
 * clock of its data sheet). Those that issue two fp32 instructions a clock through one set of
 * operand ports (compute capability 8.6, 8.9, 12.0) keep less. */
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

/* Element-wise kernels over eight times the L2 cache, measured on a V100, a T4, an A100 and an L4. */
static double memory_share(int compute_capability)
{
    static const struct {
        int compute_capability;
        double share;
    } shares[] = {{70, 0.91}, {75, 0.74}, {80, 0.87}, {89, 0.78}};
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
        if (shares[i].compute_capability == compute_capability) return shares[i].share;
    return PLIM_MEMORY_SHARE;
}

void plim_roofline_init(struct plim_roofline *r, const struct plim_gpu *gpu)
{
    double clock = gpu->boost_mhz * 1e6;
    memset(r, 0, sizeof(*r));
    set_rates(r->rate, gpu);
    r->tensor[PLIM_RATE_TF32] = gpu->tf32 > 0;
    r->tensor[PLIM_RATE_FP16] = gpu->fp16 > 0;
    r->tensor[PLIM_RATE_BF16] = gpu->bf16 > 0;
    /* Without a count of multiprocessors nothing is quantised. */
    r->multiprocessors = gpu->multiprocessors > 0 ? gpu->multiprocessors : 1;
    double mma_sync = PLIM_MMA_SYNC_FLOPS_PER_CLOCK * r->multiprocessors * clock;
    for (int i = 0; i < PLIM_RATE_COUNT; i++) {
        bool capped = gpu->multiprocessors > 0 && clock > 0 && r->rate[i] > mma_sync;
        r->attention_rate[i] = capped ? mma_sync : r->rate[i];
    }
    /* Attention on fp32 tensors multiplies as three TF32 products (OpMultiplyAddFastF32 in
     * PyTorch's mem_eff_attention/gemm_kernel_utils.h) where the GPU has them. */
    if (gpu->tf32 > 0) r->attention_rate[PLIM_RATE_FP32] = r->attention_rate[PLIM_RATE_TF32] / 3;
    r->softmax_seconds = clock > 0 ? PLIM_SOFTMAX_CLOCKS / clock : 0;
    double bandwidth = gpu->bandwidth * memory_share(gpu->compute_capability);
    r->seconds_per_byte = bandwidth > 0 ? 1 / bandwidth : 0;
    r->l2_seconds_per_byte = r->seconds_per_byte / PLIM_L2_SPEEDUP;
    r->l2_bytes = (double)gpu->l2_bytes;
}

static int rate_of(const struct plim_op *op, enum plim_dtype dtype)
{
    if (dtype == PLIM_BF16) return PLIM_RATE_BF16;
    if (dtype == PLIM_F16) return PLIM_RATE_FP16;
    return op->tf32 ? PLIM_RATE_TF32 : PLIM_RATE_FP32;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* What fits in half of the L2 cache is still there from the kernel before; from there to all of it
 * less and less is. */
static double memory_seconds(const struct plim_roofline *r, double bytes)
{
    if (bytes >= r->l2_bytes) return bytes * r->seconds_per_byte;
    double missing = 2 * bytes / r->l2_bytes - 1;
    if (missing < 0) missing = 0;
    double cached = bytes * r->l2_seconds_per_byte;
    return cached + missing * (bytes * r->seconds_per_byte - cached);
}

static bool same_layout(const struct plim_array *a, const struct plim_array *b)
{
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i] || (a->stride[i] != b->stride[i] && a->shape[i] != 1))
            return false;
    return true;
}

static double elementwise_seconds(const struct plim_roofline *r, const struct plim_op *op)
{
    double seconds = memory_seconds(r, plim_op_bytes(op));
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i] && op->in[i]->ndim > 0 && !same_layout(op->in[i], op->out[0]))
            return seconds / PLIM_STRIDED_SHARE;
    return seconds;
}

/* --- matmul ----------------------------------------------------------------------------------- */

/* Tiles of cuBLAS's kernels, and the share of the rate at which one keeps the tensor cores busy: a
 * tile of tm x tn loads (tm + tn) k values for tm tn k products. The fp32 units are too slow to
 * wait. */
static const struct tile {
    double m, n, share;
} tiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.95}, {128, 64, 0.85},
             {64, 128, 0.85}, {64, 64, 0.70}};

enum { MAX_SPLIT = 16, LEAST_SPLIT_K = 256 };

/* The compute time of the best kernel; one that splits k is followed by another, which adds up its
 * partial sums. */
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

/* The largest power of two up to 16 that divides the bytes from row to row, in log2. */
static int row_alignment(const struct plim_array *a)
{
    int64_t row = a->stride[a->ndim - 2], column = a->stride[a->ndim - 1];
    int64_t bytes = (row > column ? row : column) * plim_dtype_size(a->dtype);
    int log2 = 0;
    while (log2 < 4 && !(bytes >> log2 & 1)) log2++;
    return log2;
}

/* `e` without its seconds: looked up, or computed and kept. */
static double matmul_lookup(struct plim_roofline *r, struct plim_matmul_entry e, double bytes)
{
    static const double shares[] = {PLIM_ALIGNED_2_SHARE, PLIM_ALIGNED_2_SHARE,
                                    PLIM_ALIGNED_4_SHARE, PLIM_ALIGNED_8_SHARE, 1};
    uint64_t hash = (uint64_t)e.m * 0x9e3779b97f4a7c15u + (uint64_t)e.n * 0xc2b2ae3d27d4eb4fu +
                    (uint64_t)e.k * 0x165667b19e3779f9u + (uint64_t)e.batch * 0x27d4eb2f165667c5u +
                    (uint64_t)(e.rate * 8 + e.alignment) * 0x9fb21c651e98df25u;
    struct plim_matmul_entry *slot = &r->cache[hash >> 32 & (PLIM_MATMUL_CACHE - 1)];
    if (slot->m == e.m && slot->n == e.n && slot->k == e.k && slot->batch == e.batch &&
        slot->rate == e.rate && slot->alignment == e.alignment && slot->bytes == bytes)
        return slot->seconds;

    bool tensor = r->tensor[e.rate];
    double rate = r->rate[e.rate] * (tensor ? shares[e.alignment] : 1);
    double compute = tiled_seconds(r, (double)e.m, (double)e.n, (double)e.k, (double)e.batch, rate,
                                   tensor);
    double memory = memory_seconds(r, bytes);
    e.bytes = bytes;
    e.seconds = PLIM_KERNEL_SECONDS + (compute > memory ? compute : memory);
    *slot = e;
    return e.seconds;
}

static double matmul_seconds(struct plim_roofline *r, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0];
    int a_alignment = row_alignment(a), b_alignment = row_alignment(op->in[1]);
    struct plim_matmul_entry e = {
        .m = out->shape[out->ndim - 2],
        .n = out->shape[out->ndim - 1],
        .k = a->shape[a->ndim - 1],
        .batch = 1,
        .rate = rate_of(op, a->dtype),
        .alignment = a_alignment < b_alignment ? a_alignment : b_alignment,
    };
    for (int i = 0; i < out->ndim - 2; i++) e.batch *= out->shape[i];
    return matmul_lookup(r, e, plim_op_bytes(op));
}

/* All rows at once, by a weight that is made a matrix on the way; bytes at the rate of 16 bits. */
static double matmul_quantized_seconds(struct plim_roofline *r, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0];
    int64_t n = out->shape[out->ndim - 1];
    struct plim_matmul_entry e = {.m = plim_array_elements(out) / n,
                                  .n = n,
                                  .k = a->shape[a->ndim - 1],
                                  .batch = 1,
                                  .rate = a->dtype == PLIM_U8 ? PLIM_RATE_FP16
                                                              : rate_of(op, a->dtype),
                                  .alignment = row_alignment(a)};
    return matmul_lookup(r, e, plim_op_bytes(op));
}

static int64_t groups_of(const struct plim_op *op)
{
    return plim_array_elements(op->in[2]);
}

/* Rows are taken as spread evenly over the groups. Without a kernel for all of them the products are
 * made one after the other. */
static double matmul_grouped_seconds(struct plim_roofline *r, const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0];
    bool summed = out->ndim == 3, at_once = op->n_scratch > 0;
    int64_t groups = groups_of(op), rows = (a->shape[summed] + groups - 1) / groups;
    int a_alignment = row_alignment(a), b_alignment = row_alignment(op->in[1]);
    struct plim_matmul_entry e = {
        .m = summed ? out->shape[1] : rows,
        .n = out->shape[out->ndim - 1],
        .k = summed ? rows : a->shape[1],
        .batch = at_once ? groups : 1,
        .rate = rate_of(op, a->dtype),
        .alignment = a_alignment < b_alignment ? a_alignment : b_alignment,
    };
    double bytes = plim_op_bytes(op);
    return at_once ? matmul_lookup(r, e, bytes)
                   : (double)groups * matmul_lookup(r, e, bytes / (double)groups);
}

/* As the product of patches and kernels. */
static double patches_seconds(struct plim_roofline *r, const struct plim_op *op)
{
    bool backward = op->kind == PLIM_OP_PATCHES_BACKWARD;
    const struct plim_array *y = backward ? op->in[0] : op->out[0];
    const struct plim_array *w = backward ? op->out[0] : op->in[1];
    int64_t patches = plim_array_elements(y) / y->shape[1], k = plim_array_elements(w) / y->shape[1];
    struct plim_matmul_entry e = {.m = backward ? y->shape[1] : patches,
                                  .n = backward ? k : y->shape[1],
                                  .k = backward ? patches : k,
                                  .batch = 1,
                                  .rate = rate_of(op, y->dtype),
                                  .alignment = 4};
    return matmul_lookup(r, e, plim_op_bytes(op));
}

/* --- attention -------------------------------------------------------------------------------- */

/* q, k: (batch, heads, length, head size). Thread blocks of a causal kernel differ in length, and
 * the long ones start first: the GPU is done when the work is, or the longest block. */
static double attention_seconds(const struct plim_roofline *r, const struct plim_op *op)
{
    bool backward = op->kind == PLIM_OP_ATTENTION_BACKWARD;
    const struct plim_array *q = op->in[backward], *k = op->in[backward + 1];
    double block = PLIM_SDPA_BLOCK, queries = (double)q->shape[2], keys = (double)k->shape[2];
    double keys_seen = op->causal ? fmin(keys, (keys + block) / 2) : keys;
    double blocks = (double)(q->shape[0] * q->shape[1]) * ceil(queries / block);

    const double *rates = op->sdpa == PLIM_SDPA_CUDNN ? r->rate : r->attention_rate;
    double rate = rates[rate_of(op, q->dtype)] / r->multiprocessors;
    double products = 4 * (double)q->shape[3] / rate;
    if (backward) products *= 2.5 * PLIM_SDPA_BACKWARD_SLOWDOWN;
    double score = products + r->softmax_seconds;
    if (op->sdpa == PLIM_SDPA_EFFICIENT) score *= PLIM_EFFICIENT_SLOWDOWN;

    double work = blocks * block * keys_seen * score / r->multiprocessors;
    double longest = block * keys * score;
    double memory = memory_seconds(r, plim_op_bytes(op));
    return PLIM_KERNEL_SECONDS + fmax(fmax(work, longest), memory);
}

/* --- all -------------------------------------------------------------------------------------- */

double plim_roofline_device_seconds(struct plim_roofline *r, const struct plim_op *op)
{
    switch (op->kind) {
    case PLIM_OP_MATMUL: return matmul_seconds(r, op);
    case PLIM_OP_PATCHES:
    case PLIM_OP_PATCHES_BACKWARD: return patches_seconds(r, op);
    case PLIM_OP_MATMUL_GROUPED: return matmul_grouped_seconds(r, op);
    case PLIM_OP_MATMUL_4BIT:
    case PLIM_OP_MATMUL_INT8: return matmul_quantized_seconds(r, op);
    case PLIM_OP_ATTENTION:
    case PLIM_OP_ATTENTION_BACKWARD: return attention_seconds(r, op);
    case PLIM_OP_COPY:
    case PLIM_OP_UNARY:
    case PLIM_OP_TRIL:
    case PLIM_OP_UNARY_BACKWARD:
    case PLIM_OP_BINARY:
    case PLIM_OP_MASKED_FILL:
    case PLIM_OP_WHERE: return PLIM_KERNEL_SECONDS + elementwise_seconds(r, op);
    default: return PLIM_KERNEL_SECONDS + memory_seconds(r, plim_op_bytes(op));
    }
}

double plim_roofline_host_seconds(const struct plim_op *op, bool in_autograd)
{
    double call = in_autograd ? PLIM_HOST_BACKWARD_SECONDS : PLIM_HOST_SECONDS;
    if (op->kind == PLIM_OP_MATMUL_GROUPED && op->n_scratch == 0)
        return call * (double)groups_of(op);
    return call + PLIM_HOST_SECONDS_PER_TENSOR * (double)op->list_length;
}
