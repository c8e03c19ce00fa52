/* Which function computes what, and the checks that all of them need. */
#include "reference_internal.h"

#include <stdlib.h>

/* Nothing to compute: the value is read by plim_device_read(). */
static enum plim_status read_back(const struct plim_op *op)
{
    (void)op;
    return PLIM_OK;
}

/* The operands that have to be there; what a family asks for beyond them depends on its parameters
 * and is checked there. */
static const struct {
    plim_reference_function *run;
    uint8_t outs, ins, lists;
} functions[PLIM_OP_KIND_COUNT] = {
    [PLIM_OP_FILL] = {plim_reference_fill, 1, 0, 0},
    [PLIM_OP_ARANGE] = {plim_reference_arange, 1, 0, 0},
    [PLIM_OP_RANDOM] = {plim_reference_random, 1, 0, 0},
    [PLIM_OP_COPY] = {plim_reference_copy, 1, 1, 0},
    [PLIM_OP_UNARY] = {plim_reference_unary, 1, 1, 0},
    [PLIM_OP_UNARY_BACKWARD] = {plim_reference_unary_backward, 1, 2, 0},
    [PLIM_OP_BINARY] = {plim_reference_binary, 1, 1, 0},
    [PLIM_OP_WHERE] = {plim_reference_where, 1, 3, 0},
    [PLIM_OP_TRIL] = {plim_reference_tril, 1, 1, 0},
    [PLIM_OP_CAT] = {plim_reference_cat, 1, 0, 1},
    [PLIM_OP_REDUCE] = {plim_reference_reduce, 1, 1, 0},
    [PLIM_OP_CUMSUM] = {plim_reference_cumsum, 1, 1, 0},
    [PLIM_OP_EMBEDDING] = {plim_reference_embedding, 1, 2, 0},
    [PLIM_OP_EMBEDDING_BACKWARD] = {plim_reference_embedding_backward, 1, 2, 0},
    [PLIM_OP_LAYER_NORM] = {plim_reference_layer_norm, 3, 1, 0},
    [PLIM_OP_LAYER_NORM_BACKWARD] = {plim_reference_layer_norm_backward, 1, 4, 0},
    [PLIM_OP_LAYER_NORM_BACKWARD_PARAMS] = {plim_reference_layer_norm_backward_params, 1, 4, 0},
    [PLIM_OP_DROPOUT] = {plim_reference_dropout, 2, 1, 0},
    [PLIM_OP_SOFTMAX] = {plim_reference_softmax, 1, 1, 0},
    [PLIM_OP_SOFTMAX_BACKWARD] = {plim_reference_softmax_backward, 1, 2, 0},
    [PLIM_OP_LOG_SOFTMAX] = {plim_reference_log_softmax, 1, 1, 0},
    [PLIM_OP_LOG_SOFTMAX_BACKWARD] = {plim_reference_log_softmax_backward, 1, 2, 0},
    [PLIM_OP_NLL_LOSS] = {plim_reference_nll_loss, 2, 2, 0},
    [PLIM_OP_NLL_LOSS_BACKWARD] = {plim_reference_nll_loss_backward, 1, 3, 0},
    [PLIM_OP_MATMUL] = {plim_reference_matmul, 1, 2, 0},
    [PLIM_OP_ATTENTION] = {plim_reference_attention, 1, 3, 0},
    [PLIM_OP_ATTENTION_BACKWARD] = {plim_reference_attention_backward, 3, 6, 0},
    [PLIM_OP_FOREACH] = {plim_reference_foreach, 0, 0, 1},
    [PLIM_OP_OPTIMIZER] = {plim_reference_optimizer, 0, 0, 0},
    [PLIM_OP_READ_BACK] = {read_back, 0, 1, 0},
};

static bool is_sound(const struct plim_array *a)
{
    if (a->dtype >= PLIM_DTYPE_COUNT || a->ndim > PLIM_MAX_DIMS) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] < 0) return false;
    return true;
}

/* The first `needed` are there, the others may be missing. */
static bool are_sound(const struct plim_array *const *arrays, size_t count, size_t needed)
{
    if (count < needed) return false;
    for (size_t i = 0; i < count; i++) {
        if (!arrays[i] && i < needed) return false;
        if (arrays[i] && !is_sound(arrays[i])) return false;
    }
    return true;
}

static bool lists_are_sound(const struct plim_op *op, int needed)
{
    if (op->n_lists < needed || op->n_lists > PLIM_OP_MAX_LISTS) return false;
    for (int i = 0; i < op->n_lists && op->list_length > 0; i++)
        if (!op->lists[i] || !are_sound(op->lists[i], op->list_length, op->list_length))
            return false;
    return true;
}

enum plim_status plim_reference_run(const struct plim_op *op)
{
    if ((unsigned)op->kind >= PLIM_OP_KIND_COUNT || op->n_out > PLIM_OP_MAX_OUT ||
        op->n_in > PLIM_OP_MAX_IN)
        return PLIM_INVALID;
    if (!are_sound(op->out, op->n_out, functions[op->kind].outs) ||
        !are_sound(op->in, op->n_in, functions[op->kind].ins) ||
        !lists_are_sound(op, functions[op->kind].lists))
        return PLIM_INVALID;
    return functions[op->kind].run(op);
}

const struct plim_array *plim_reference_input(const struct plim_op *op, int i)
{
    return i < op->n_in ? op->in[i] : NULL;
}

double *plim_reference_numbers(int64_t count)
{
    return malloc((size_t)(count > 0 ? count : 1) * sizeof(double));
}
