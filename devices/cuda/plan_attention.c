#include "devices/random.h"
#include "plan_flash.h"
#include "plan_rows.h"

enum { BATCH, HEADS, LENGTH, SIZE, DIMS, VECTOR = 8, VECTOR_BYTES = 16, MAX_BLOCKS = 0x7fffffff,
       MAX_LENGTH = 1 << 30 /* numbers of rows and tiles including padding fit into 32 bits */ };

static struct plim_cuda_heads heads_of(const struct plim_array *a)
{
    struct plim_cuda_heads x = {.data = a->data, .dtype = a->dtype};
    bool vectors = a->data % VECTOR_BYTES == 0 && a->shape[SIZE] % VECTOR == 0;
    for (int d = 0; d < DIMS; d++) {
        x.step[d] = a->stride[d];
        if (d < SIZE && a->shape[d] != 1 && a->stride[d] % VECTOR) vectors = false;
    }
    x.vectors = vectors && (a->stride[SIZE] == 1 || a->shape[SIZE] == 1);
    return x;
}

static bool has_shape(const struct plim_array *a, const struct plim_array *rows, int64_t size)
{
    return a && a->ndim == DIMS && a->shape[BATCH] == rows->shape[BATCH] &&
           a->shape[HEADS] == rows->shape[HEADS] && a->shape[LENGTH] == rows->shape[LENGTH] &&
           a->shape[SIZE] == size;
}

static enum plim_status check_inputs(const struct plim_array *q, const struct plim_array *k,
                                     const struct plim_array *v)
{
    if (q->ndim != DIMS || k->ndim != DIMS || v->ndim != DIMS) return PLIM_INVALID;
    if (k->shape[BATCH] != q->shape[BATCH] || k->shape[SIZE] != q->shape[SIZE] ||
        k->shape[HEADS] < 1 || q->shape[HEADS] % k->shape[HEADS] != 0 ||
        !has_shape(v, k, v->shape[SIZE]))
        return PLIM_INVALID;
    if (!plim_dtype_is_float(q->dtype) || !plim_dtype_is_float(k->dtype) || !plim_dtype_is_float(v->dtype))
        return PLIM_UNSUPPORTED;
    bool fits = q->shape[SIZE] >= 1 && q->shape[SIZE] <= PLIM_SDPA_MAX_SIZE &&
                v->shape[SIZE] >= 1 && v->shape[SIZE] <= PLIM_SDPA_MAX_SIZE;
    return fits ? PLIM_OK : PLIM_UNSUPPORTED;
}

/* Broadcasts the mask to the shape of the scores, with strides of 0. NULL: none. */
static enum plim_status describe_mask(const struct plim_array *mask, struct plim_attention_args *a,
                                      int64_t batch)
{
    if (!mask) return PLIM_OK;
    const int64_t shape[DIMS] = {batch, a->heads, a->q_length, a->k_length};
    if (mask->ndim > DIMS) return PLIM_INVALID;
    if (!plim_dtype_is_float(mask->dtype)) return PLIM_UNSUPPORTED;
    a->mask = (struct plim_cuda_heads){.data = mask->data, .dtype = mask->dtype};
    for (int from = mask->ndim - 1, to = DIMS - 1; from >= 0; from--, to--) {
        if (mask->shape[from] != 1 && mask->shape[from] != shape[to]) return PLIM_INVALID;
        a->mask.step[to] = mask->shape[from] == 1 ? 0 : mask->stride[from];
    }
    return PLIM_OK;
}

/* Describes boundaries (n + 1), int32, for both queries and keys. NULL: one document. */
static enum plim_status describe_documents(const struct plim_array *ends, struct plim_attention_args *a)
{
    if (!ends) return PLIM_OK;
    if (ends->ndim != 1 || ends->shape[0] < 2 || a->q_length != a->k_length) return PLIM_INVALID;
    if (ends->dtype != PLIM_I32 || ends->stride[0] != 1) return PLIM_UNSUPPORTED;
    a->ends = ends->data;
    a->documents = (int32_t)(ends->shape[0] - 1);
    return PLIM_OK;
}

static enum plim_status describe(const struct plim_op *op, const struct plim_array *const qkv[3],
                                 const struct plim_array *mask, struct plim_attention_args *args)
{
    const struct plim_array *q = qkv[0], *k = qkv[1], *v = qkv[2];
    enum plim_status st = check_inputs(q, k, v);
    if (st != PLIM_OK) return st;
    if (q->shape[LENGTH] > MAX_LENGTH || k->shape[LENGTH] > MAX_LENGTH) return PLIM_UNSUPPORTED;
    *args = (struct plim_attention_args){
        .q = heads_of(q),
        .k = heads_of(k),
        .v = heads_of(v),
        .q_length = q->shape[LENGTH],
        .k_length = k->shape[LENGTH],
        .heads = (int32_t)q->shape[HEADS],
        .sharing = (int32_t)(q->shape[HEADS] / k->shape[HEADS]),
        .size = (int32_t)q->shape[SIZE],
        .v_size = (int32_t)v->shape[SIZE],
        .scale = (float)op->beta,
        .softcap = (float)op->softcap,
        .window = (int32_t)(op->window < MAX_LENGTH ? op->window : 0),
        .dropout_limit = plim_dropout_limit(op->alpha),
        .kept = op->alpha < 1 ? (float)(1 / (1 - op->alpha)) : 0,
        .causal = op->causal,
        .dropout = op->alpha > 0,
        .seed = op->seed,
    };
    st = describe_documents(plim_attention_ends(op), args);
    return st ? st : describe_mask(mask, args, q->shape[BATCH]);
}

static enum plim_status describe_forward(const struct plim_op *op, struct plim_attention_args *args)
{
    const struct plim_array *out = op->out[0], *logsumexp = op->n_out > 1 ? op->out[1] : NULL;
    enum plim_status st = describe(op, op->in, op->n_in > 3 ? op->in[3] : NULL, args);
    if (st != PLIM_OK) return st;
    if (!has_shape(out, op->in[0], args->v_size)) return PLIM_INVALID;
    if (!plim_dtype_is_float(out->dtype)) return PLIM_UNSUPPORTED;
    args->out = heads_of(out);
    args->logsumexp = logsumexp ? logsumexp->data : 0;
    return PLIM_OK;
}

enum { DOUT, Q, K, V, OUT, LOGSUMEXP, MASK };

static enum plim_status describe_backward(const struct plim_op *op,
                                          struct plim_attention_args *args)
{
    const struct plim_array *const *in = op->in;
    enum plim_status st = describe(op, in + Q, op->n_in > MASK ? in[MASK] : NULL, args);
    if (st != PLIM_OK) return st;
    if (!has_shape(in[DOUT], in[Q], args->v_size) || !has_shape(in[OUT], in[Q], args->v_size) ||
        !has_shape(op->out[0], in[Q], args->size) || !has_shape(op->out[1], in[K], args->size) ||
        !has_shape(op->out[2], in[V], args->v_size) || !in[LOGSUMEXP])
        return PLIM_INVALID;
    if (!plim_dtype_is_float(in[DOUT]->dtype) || !plim_dtype_is_float(in[OUT]->dtype) ||
        !plim_dtype_is_float(op->out[0]->dtype) || !plim_dtype_is_float(op->out[1]->dtype) ||
        !plim_dtype_is_float(op->out[2]->dtype))
        return PLIM_UNSUPPORTED;
    args->dout = heads_of(in[DOUT]);
    args->out = heads_of(in[OUT]);
    args->dq = heads_of(op->out[0]);
    args->dk = heads_of(op->out[1]);
    args->dv = heads_of(op->out[2]);
    args->logsumexp = in[LOGSUMEXP]->data;
    const struct plim_array *dmask = plim_attention_mask_gradient(op);
    if (!dmask) return PLIM_OK;
    if (!has_shape(dmask, in[Q], args->k_length)) return PLIM_INVALID;
    bool is_plain = !op->causal && !args->window && !(op->softcap > 0) && !args->ends;
    if (!plim_dtype_is_float(dmask->dtype) || !is_plain) return PLIM_UNSUPPORTED;
    args->dmask = heads_of(dmask);
    return PLIM_OK;
}

/* `kernels`: for head sizes up to 64, 128, 256; `rows`: the array that is divided into tiles. */
static enum plim_status launch(const struct plim_cuda_plan *plan, const char *const kernels[3],
                               const struct plim_array *rows,
                               const struct plim_attention_args *args)
{
    int32_t size = args->size > args->v_size ? args->size : args->v_size;
    int64_t blocks = plim_cuda_plan_tiles(rows, PLIM_SDPA_TILE);
    if (blocks == 0) return PLIM_OK;
    if (blocks > MAX_BLOCKS) return PLIM_UNSUPPORTED;
    return plim_cuda_plan_launch(plan, kernels[(size > 64) + (size > 128)], blocks,
                                 PLIM_SDPA_THREADS, args, sizeof *args);
}

enum plim_status plim_cuda_plan_attention(const struct plim_cuda_plan *plan,
                                          const struct plim_op *op)
{
    static const char *const kernels[] = {"attention_64", "attention_128", "attention_256"};
    struct plim_attention_args args;
    enum plim_status st = describe_forward(op, &args);
    if (st != PLIM_OK) return st;
    const struct plim_flash *flash = plim_cuda_flash_find(plan->info, op, &args);
    return flash ? plim_cuda_plan_flash(plan, flash, op, &args)
                 : launch(plan, kernels, op->in[0], &args);
}

enum plim_status plim_cuda_plan_attention_backward(const struct plim_cuda_plan *plan,
                                                   const struct plim_op *op)
{
    static const char *const dq[] = {"attention_dq_64", "attention_dq_128", "attention_dq_256"};
    static const char *const dkv[] = {"attention_dkv_64", "attention_dkv_128", "attention_dkv_256"};
    struct plim_attention_args args;
    enum plim_status st = describe_backward(op, &args);
    if (st != PLIM_OK) return st;
    const struct plim_flash *flash = plim_cuda_flash_find(plan->info, op, &args);
    if (flash) return plim_cuda_plan_flash_backward(plan, flash, op, &args);
    st = launch(plan, dkv, op->in[K], &args);
    return st ? st : launch(plan, dq, op->in[Q], &args);
}

bool plim_cuda_attention_has_tensor_cores(const struct plim_device_info *info,
                                          const struct plim_op *op)
{
    struct plim_attention_args args;
    bool backward = op->kind == PLIM_OP_ATTENTION_BACKWARD;
    if ((backward ? describe_backward : describe_forward)(op, &args) != PLIM_OK) return false;
    return plim_cuda_flash_find(info, op, &args) != NULL;
}
