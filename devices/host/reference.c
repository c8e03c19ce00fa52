/* The table of reference functions, and the checks that all of them need. */
#include "reference_internal.h"

#include <stdlib.h>

/* Nothing is computed: the value is read by plim_device_read(). */
enum plim_status plim_reference_read_back(const struct plim_op *op)
{
    (void)op;
    return PLIM_OK;
}

static const struct {
    plim_reference_function *run;
    uint8_t outs, ins, lists; /* required numbers */
} functions[PLIM_OP_KIND_COUNT] = {
#define FUNCTION(kind, name, outs, ins, lists)                                                     \
    [PLIM_OP_##kind] = {plim_reference_##name, outs, ins, lists},
    PLIM_OP_MAP(FUNCTION)
#undef FUNCTION
};

static bool is_sound(const struct plim_array *a)
{
    if (a->dtype >= PLIM_DTYPE_COUNT || a->ndim > PLIM_MAX_DIMS) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] < 0) return false;
    return true;
}

/* True if the first `needed` arrays exist and all that exist are valid; the others may be missing. */
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
