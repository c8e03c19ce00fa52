#include "work.h"
#include "roofline.h"

static uint8_t rate_of(const struct plim_op *op, enum plim_dtype dtype)
{
    if (dtype == PLIM_BF16) return PLIM_RATE_BF16;
    if (dtype == PLIM_F16) return PLIM_RATE_FP16;
    return op->tf32 ? PLIM_RATE_TF32 : PLIM_RATE_FP32;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static bool same_layout(const struct plim_array *a, const struct plim_array *b)
{
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i] || (a->stride[i] != b->stride[i] && a->shape[i] != 1))
            return false;
    return true;
}

static struct plim_work elementwise(const struct plim_op *op)
{
    struct plim_work w = {.kind = PLIM_WORK_MOVE, .bytes = plim_op_bytes(op)};
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i] && op->in[i]->ndim > 0 && !same_layout(op->in[i], op->out[0]))
            w.kind = PLIM_WORK_STRIDED;
    return w;
}

/* --- products --------------------------------------------------------------------------------- */

/* Returns log2 of the largest power of two up to 16 that divides the bytes from row to row. */
static uint8_t row_alignment(const struct plim_array *a)
{
    int64_t row = a->stride[a->ndim - 2], column = a->stride[a->ndim - 1];
    int64_t bytes = (row > column ? row : column) * plim_dtype_size(a->dtype);
    int log2 = 0;
    while (log2 < 4 && !(bytes >> log2 & 1)) log2++;
    return (uint8_t)log2;
}

static uint8_t lesser(int a, int b)
{
    return (uint8_t)(a < b ? a : b);
}

static struct plim_work matmul(const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0];
    struct plim_work w = {.kind = PLIM_WORK_PRODUCT,
                          .rate = rate_of(op, a->dtype),
                          .alignment = lesser(row_alignment(a), row_alignment(op->in[1])),
                          .result_alignment = row_alignment(out),
                          .m = out->shape[out->ndim - 2],
                          .n = out->shape[out->ndim - 1],
                          .k = a->shape[a->ndim - 1],
                          .batch = 1,
                          .times = 1,
                          .bytes = plim_op_bytes(op)};
    for (int i = 0; i < out->ndim - 2; i++) w.batch *= out->shape[i];
    return w;
}

/* Product of all rows with a weight that is first dequantised to a matrix; memory traffic in 16 bits. */
static struct plim_work matmul_quantized(const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0];
    int64_t n = out->shape[out->ndim - 1];
    return (struct plim_work){.kind = PLIM_WORK_PRODUCT,
                              .rate = a->dtype == PLIM_U8 ? PLIM_RATE_FP16 : rate_of(op, a->dtype),
                              .alignment = row_alignment(a),
                              .m = plim_array_elements(out) / n,
                              .n = n,
                              .k = a->shape[a->ndim - 1],
                              .batch = 1,
                              .times = 1,
                              .bytes = plim_op_bytes(op)};
}

/* One launch per group if there is no grouped kernel. */
static int64_t launches_of(const struct plim_op *op)
{
    bool one_by_one = op->kind == PLIM_OP_MATMUL_GROUPED && op->n_scratch == 0;
    return one_by_one ? plim_array_elements(op->in[2]) : 1;
}

/* Rows are assumed to be spread evenly over the groups. */
static struct plim_work matmul_grouped(const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0];
    bool summed = out->ndim == 3;
    int64_t groups = plim_array_elements(op->in[2]), times = launches_of(op),
            rows = (a->shape[summed] + groups - 1) / groups;
    return (struct plim_work){.kind = PLIM_WORK_PRODUCT,
                              .rate = rate_of(op, a->dtype),
                              .alignment = lesser(row_alignment(a), row_alignment(op->in[1])),
                              .m = summed ? out->shape[1] : rows,
                              .n = out->shape[out->ndim - 1],
                              .k = summed ? rows : a->shape[1],
                              .batch = groups / times,
                              .times = times,
                              .bytes = plim_op_bytes(op) / (double)times};
}

/* Counted as the matrix product of patches and kernels. */
static struct plim_work patches(const struct plim_op *op)
{
    enum { WHOLE_ROWS = 4 };
    bool backward = op->kind == PLIM_OP_PATCHES_BACKWARD;
    const struct plim_array *y = backward ? op->in[0] : op->out[0];
    const struct plim_array *w = backward ? op->out[0] : op->in[1];
    int64_t kernels = y->shape[1], rows = plim_array_elements(y) / kernels,
            k = plim_array_elements(w) / kernels;
    return (struct plim_work){.kind = PLIM_WORK_PRODUCT,
                              .rate = rate_of(op, y->dtype),
                              .alignment = WHOLE_ROWS,
                              .m = backward ? kernels : rows,
                              .n = backward ? k : kernels,
                              .k = backward ? rows : k,
                              .batch = 1,
                              .times = 1,
                              .bytes = plim_op_bytes(op)};
}

/* --- attention -------------------------------------------------------------------------------- */

/* q, k: (batch, heads, length, head size). All documents are assumed to have the same length. */
static struct plim_work attention(const struct plim_op *op)
{
    bool backward = op->kind == PLIM_OP_ATTENTION_BACKWARD;
    const struct plim_array *q = op->in[backward], *k = op->in[backward + 1];
    const struct plim_array *ends = plim_attention_ends(op);
    int64_t rows = ends ? plim_array_elements(ends) - 1 : 1;
    return (struct plim_work){.kind = PLIM_WORK_ATTENTION,
                              .rate = rate_of(op, q->dtype),
                              .sdpa = op->sdpa,
                              .causal = op->causal,
                              .backward = backward,
                              .m = (q->shape[2] + rows - 1) / rows,
                              .n = (k->shape[2] + rows - 1) / rows,
                              .k = q->shape[3],
                              .batch = q->shape[0] * q->shape[1] * rows,
                              .window = op->window,
                              .bytes = plim_op_bytes(op)};
}

/* --- rows ------------------------------------------------------------------------------------- */

/* PyTorch's softmax kernels keep rows of up to this many bytes on the multiprocessor, and read longer ones a second
 * time (SoftMax.cu: can_use_smem; H200: tests/gpu/records). */
enum { SOFTMAX_ROW_BYTES = 48 << 10 };

static struct plim_work softmax(const struct plim_op *op)
{
    const struct plim_array *x = op->in[0];
    struct plim_work w = {.kind = PLIM_WORK_MOVE, .bytes = plim_op_bytes(op)};
    int64_t row_bytes = x->shape[x->ndim - 1] * plim_dtype_size(x->dtype);
    if (row_bytes > SOFTMAX_ROW_BYTES)
        w.bytes += (double)(plim_array_elements(x) * plim_dtype_size(x->dtype));
    return w;
}

/* The kernels of the gated delta rule contain matrix products. */
static struct plim_work delta(const struct plim_op *op)
{
    return (struct plim_work){.kind = PLIM_WORK_MOVE,
                              .rate = rate_of(op, op->in[0]->dtype),
                              .batch = op->blocks,
                              .flops = op->flops,
                              .bytes = plim_op_bytes(op)};
}

/* All rows of x are assumed to count. One product for the logits, and in backward one for each large gradient. */
static struct plim_work linear_loss(const struct plim_op *op)
{
    enum { TILE = PLIM_LINEAR_LOSS_TILE };
    bool backward = op->kind == PLIM_OP_LINEAR_LSE_BACKWARD;
    const struct plim_array *x = op->in[backward], *weight = op->in[backward + 1];
    int64_t rows = x->shape[0], classes = weight->shape[0];
    int products = 1 + (backward && op->out[0]) + (backward && op->out[1]);
    return (struct plim_work){.kind = PLIM_WORK_MOVE,
                              .rate = rate_of(op, x->dtype),
                              .batch = ((rows + TILE - 1) / TILE) * ((classes + TILE - 1) / TILE),
                              .flops = 2.0 * products * (double)rows * (double)classes * (double)x->shape[1],
                              .bytes = plim_op_bytes(op)};
}

/* --- all operations --------------------------------------------------------------------------- */

static struct plim_work sizes_of(const struct plim_op *op)
{
    if (plim_op_is_delta(op->kind)) return delta(op);
    switch (op->kind) {
    case PLIM_OP_MATMUL: return matmul(op);
    case PLIM_OP_PATCHES:
    case PLIM_OP_PATCHES_BACKWARD: return patches(op);
    case PLIM_OP_MATMUL_GROUPED: return matmul_grouped(op);
    case PLIM_OP_MATMUL_4BIT:
    case PLIM_OP_MATMUL_INT8: return matmul_quantized(op);
    case PLIM_OP_LINEAR_LSE:
    case PLIM_OP_LINEAR_LSE_BACKWARD: return linear_loss(op);
    case PLIM_OP_ATTENTION:
    case PLIM_OP_ATTENTION_BACKWARD: return attention(op);
    case PLIM_OP_SOFTMAX:
    case PLIM_OP_LOG_SOFTMAX:
    case PLIM_OP_SOFTMAX_BACKWARD:
    case PLIM_OP_LOG_SOFTMAX_BACKWARD:
        return softmax(op);
    case PLIM_OP_READ_BACK: return (struct plim_work){.kind = PLIM_WORK_LINK, .bytes = plim_op_bytes(op)};
    case PLIM_OP_COPY:
    case PLIM_OP_UNARY:
    case PLIM_OP_TRIL:
    case PLIM_OP_UNARY_BACKWARD:
    case PLIM_OP_BINARY:
    case PLIM_OP_MASKED_FILL:
    case PLIM_OP_COMPLEX_MUL:
    case PLIM_OP_WHERE: return elementwise(op);
    default: return (struct plim_work){.kind = PLIM_WORK_MOVE, .bytes = plim_op_bytes(op)};
    }
}

struct plim_work plim_work_of(const struct plim_op *op, bool in_autograd)
{
    struct plim_work w = sizes_of(op);
    double call = in_autograd ? PLIM_HOST_BACKWARD_SECONDS : PLIM_HOST_SECONDS;
    w.waits = op->kind == PLIM_OP_READ_BACK;
    w.host_seconds = call * (double)launches_of(op) +
                     PLIM_HOST_SECONDS_PER_TENSOR * (double)op->list_length;
    return w;
}

enum plim_device_task plim_work_task(const struct plim_work *work)
{
    switch ((enum plim_work_kind)work->kind) {
    case PLIM_WORK_PRODUCT: return PLIM_DEVICE_MATMUL;
    case PLIM_WORK_ATTENTION: return PLIM_DEVICE_ATTENTION;
    case PLIM_WORK_LINK: return PLIM_DEVICE_LINK;
    case PLIM_WORK_MOVE:
    case PLIM_WORK_STRIDED:
    case PLIM_WORK_HOST: break;
    }
    return PLIM_DEVICE_OTHER;
}
