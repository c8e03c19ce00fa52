#include "op.h"

enum { SECTOR_BYTES = 32 }; /* the minimum that a GPU reads from memory */

const char *plim_op_name(enum plim_op_kind kind)
{
    static const char *const names[PLIM_OP_KIND_COUNT] = {
#define PLIM_OP_NAME(kind, name, outs, ins, lists) #name,
        PLIM_OP_MAP(PLIM_OP_NAME)
#undef PLIM_OP_NAME
    };
    return (unsigned)kind < PLIM_OP_KIND_COUNT ? names[kind] : "unknown";
}

int64_t plim_array_elements(const struct plim_array *a)
{
    int64_t count = 1;
    for (int i = 0; i < a->ndim; i++) count *= a->shape[i];
    return count;
}

int64_t plim_array_bytes(const struct plim_array *a)
{
    int64_t count = plim_dtype_size(a->dtype);
    for (int i = 0; i < a->ndim; i++) {
        if (a->stride[i] != 0) count *= a->shape[i];
        else if (a->shape[i] == 0) return 0;
    }
    return count;
}

const struct plim_array *plim_attention_ends(const struct plim_op *op)
{
    int place = op->kind == PLIM_OP_ATTENTION_BACKWARD ? 7 : 4;
    return op->n_in > place ? op->in[place] : NULL;
}

const struct plim_array *plim_attention_mask_gradient(const struct plim_op *op)
{
    return op->n_out > 3 ? op->out[3] : NULL;
}

bool plim_op_has(const struct plim_op *op, int outs, int ins)
{
    if (op->n_out != outs || op->n_in != ins) return false;
    for (int i = 0; i < outs; i++)
        if (!op->out[i]) return false;
    for (int i = 0; i < ins; i++)
        if (!op->in[i]) return false;
    return true;
}

bool plim_op_is_delta(enum plim_op_kind kind)
{
    return kind >= PLIM_OP_DELTA_INVERSE && kind <= PLIM_OP_DELTA_SOLVE_BACKWARD;
}

bool plim_foreach_has_its_lists(const struct plim_op *op)
{
    static const struct {
        uint8_t least, most;
    } lists[PLIM_FOREACH_UNSCALE + 1] = {
        [PLIM_FOREACH_ADD] = {1, 2},     [PLIM_FOREACH_MUL] = {1, 1},
        [PLIM_FOREACH_DIV] = {1, 1},     [PLIM_FOREACH_LERP] = {2, 2},
        [PLIM_FOREACH_ADDCMUL] = {3, 3}, [PLIM_FOREACH_ADDCDIV] = {3, 3},
        [PLIM_FOREACH_SQRT] = {2, 2},    [PLIM_FOREACH_NORM] = {2, 2},
        [PLIM_FOREACH_UNSCALE] = {1, 1},
    };
    return op->foreach <= PLIM_FOREACH_UNSCALE && op->n_lists >= lists[op->foreach].least &&
           op->n_lists <= lists[op->foreach].most;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int64_t arrays_bytes(const struct plim_array *const *arrays, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        if (arrays[i]) bytes += plim_array_bytes(arrays[i]);
    return bytes;
}

static int64_t list_bytes(const struct plim_array *const *list, size_t length)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < length; i++) bytes += plim_array_bytes(list[i]);
    return bytes;
}

/* Counts every list once, the first `updated` of them twice: what is updated in place is read and written. A list that
 * occurs twice (addcmul of a square) is read once. */
static int64_t lists_bytes(const struct plim_op *op, int updated)
{
    int64_t bytes = 0;
    for (int i = 0; i < op->n_lists; i++) {
        if (i > 0 && op->lists[i] == op->lists[i - 1]) continue;
        bytes += list_bytes(op->lists[i], op->list_length) * (i < updated ? 2 : 1);
    }
    return bytes;
}

static int64_t foreach_bytes(const struct plim_op *op)
{
    bool update = op->foreach != PLIM_FOREACH_SQRT && op->foreach != PLIM_FOREACH_NORM;
    return lists_bytes(op, update) + arrays_bytes(op->in, op->n_in) +
           arrays_bytes(op->out, op->n_out);
}

/* The first lists, parameter and moments, are updated. */
static int64_t optimizer_bytes(const struct plim_op *op)
{
    if (op->foreach > PLIM_TORCHAO_ADAMW) /* what is updated is in both */
        return arrays_bytes(op->out, op->n_out) + arrays_bytes(op->in, op->n_in);
    return lists_bytes(op, 3) + arrays_bytes(op->in, op->n_in) +
           2 * arrays_bytes(op->out, op->n_out);
}

/* Counts the required inputs, without the boundaries of documents. */
static double bytes_without_documents(const struct plim_op *op)
{
    static const uint8_t needed[PLIM_OP_KIND_COUNT] = {
#define PLIM_OP_NEEDED(kind, name, outs, ins, lists) ins,
        PLIM_OP_MAP(PLIM_OP_NEEDED)
#undef PLIM_OP_NEEDED
    };
    return (double)(arrays_bytes(op->out, op->n_out) + arrays_bytes(op->in, needed[op->kind]));
}

double plim_op_bytes(const struct plim_op *op)
{
    if (plim_op_is_delta(op->kind)) return bytes_without_documents(op);
    switch (op->kind) {
    case PLIM_OP_EMBEDDING: /* only the selected rows */
    case PLIM_OP_TAKE_ROWS:
        return 2.0 * (double)plim_array_bytes(op->out[0]) + (double)plim_array_bytes(op->in[1]);
    case PLIM_OP_PUT_ROWS:
    case PLIM_OP_EMBEDDING_BACKWARD:
        return 2.0 * (double)plim_array_bytes(op->in[0]) + (double)plim_array_bytes(op->in[1]);
    case PLIM_OP_NLL_LOSS: /* one class per row */
    case PLIM_OP_NLL_LOSS_BACKWARD:
        return (double)SECTOR_BYTES * (double)plim_array_elements(op->in[1]);
    case PLIM_OP_CAUSAL_CONV:
    case PLIM_OP_CAUSAL_CONV_BACKWARD:
    case PLIM_OP_CHUNK_SUMS: return bytes_without_documents(op);
    case PLIM_OP_LINEAR_TARGET: /* as many rows of the weight as x has */
        return (double)(plim_array_bytes(op->out[0]) + 2 * plim_array_bytes(op->in[0]));
    case PLIM_OP_LINEAR_LSE: /* arrays with one number per row or class are negligible */
        return (double)(arrays_bytes(op->out, op->n_out) + arrays_bytes(op->in, 2));
    case PLIM_OP_LINEAR_LSE_BACKWARD:
        return (double)(arrays_bytes(op->out, op->n_out < 2 ? op->n_out : 2) + arrays_bytes(op->in + 1, 2));
    case PLIM_OP_ROW_STATISTICS: /* in place */
        return (double)(2 * arrays_bytes(op->out, op->n_out) + arrays_bytes(op->in, op->n_in));
    case PLIM_OP_FOREACH: return (double)foreach_bytes(op);
    case PLIM_OP_OPTIMIZER: return (double)optimizer_bytes(op);
    case PLIM_OP_CAT:
        return (double)(arrays_bytes(op->out, op->n_out) + lists_bytes(op, 0) +
                        arrays_bytes(op->in, op->n_in));
    default: return (double)(arrays_bytes(op->out, op->n_out) + arrays_bytes(op->in, op->n_in));
    }
}
