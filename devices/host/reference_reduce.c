/* Reductions over dimensions, and running sums. */
#include "formula.h"
#include "reference_internal.h"

#include <math.h>

/* --- reductions ------------------------------------------------------------------------------- */

/* Returns a view with the dimensions that are kept, followed by those that are reduced: the elements that are reduced
 * to element i of the result are its i-th range. */
static struct plim_array folded_last(const struct plim_array *a, unsigned dims, int64_t *folded)
{
    struct plim_array view = *a;
    int n = 0;
    *folded = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < a->ndim; d++) {
            if ((dims >> d & 1) != (unsigned)pass) continue;
            view.shape[n] = a->shape[d];
            view.stride[n++] = a->stride[d];
            if (pass) *folded *= a->shape[d];
        }
    return view;
}

static double first_value(enum plim_binary fold)
{
    switch (fold) {
    case PLIM_BINARY_MUL:
    case PLIM_BINARY_AND:
        return 1;
    case PLIM_BINARY_MAX:
        return -INFINITY;
    case PLIM_BINARY_MIN:
        return INFINITY;
    default:
        return 0;
    }
}

static double fold_floats(const struct plim_array *a, int64_t first, int64_t count,
                          enum plim_binary fold)
{
    double x[PLIM_ELEMENTS_RUN], total = first_value(fold);
    bool norm = fold == PLIM_BINARY_HYPOT; /* sums squares: doubles do not overflow */
    plim_binary_formula *f = plim_binary_formulas[norm ? PLIM_BINARY_ADD : fold];
    for (int64_t taken; count > 0; first += taken, count -= taken) {
        taken = count < PLIM_ELEMENTS_RUN ? count : PLIM_ELEMENTS_RUN;
        plim_elements_read(a, first, taken, x);
        for (int64_t i = 0; i < taken; i++) total = f(total, norm ? x[i] * x[i] : x[i]);
    }
    return norm ? sqrt(total) : total;
}

static int64_t fold_integers(const struct plim_array *a, int64_t first, int64_t count,
                             enum plim_binary fold)
{
    int64_t x[PLIM_ELEMENTS_RUN], total = 0;
    if (fold == PLIM_BINARY_MUL || fold == PLIM_BINARY_AND) total = 1;
    if (fold == PLIM_BINARY_MAX) total = INT64_MIN;
    if (fold == PLIM_BINARY_MIN) total = INT64_MAX;
    for (int64_t taken; count > 0; first += taken, count -= taken) {
        taken = count < PLIM_ELEMENTS_RUN ? count : PLIM_ELEMENTS_RUN;
        plim_elements_read_integers(a, first, taken, x);
        for (int64_t i = 0; i < taken; i++) total = plim_binary_integers[fold](total, x[i]);
    }
    return total;
}

static bool can_fold(enum plim_binary fold, int64_t folded)
{
    switch (fold) {
    case PLIM_BINARY_ADD:
    case PLIM_BINARY_MUL:
    case PLIM_BINARY_HYPOT:
    case PLIM_BINARY_AND:
    case PLIM_BINARY_OR:
        return true;
    case PLIM_BINARY_MAX:
    case PLIM_BINARY_MIN:
        return folded > 0; /* an empty range has no minimum */
    default:
        return false;
    }
}

enum plim_status plim_reference_reduce(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *x = op->in[0];
    enum plim_binary fold = (enum plim_binary)op->binary;
    int64_t folded, results = plim_array_elements(y);
    if (op->dims >> x->ndim) return PLIM_INVALID;
    struct plim_array view = folded_last(x, op->dims, &folded);
    int64_t kept = folded > 0 ? plim_array_elements(x) / folded : results;
    if (kept != results || !can_fold(fold, folded)) return PLIM_INVALID;
    if (op->part > 0) return PLIM_OK; /* part 0 has computed everything */
    bool integers = plim_elements_are_integers(x) && plim_elements_are_integers(y) &&
                    fold != PLIM_BINARY_HYPOT && op->alpha == 1;
    for (int64_t i = 0; i < results; i++) {
        if (integers) {
            int64_t total = fold_integers(&view, i * folded, folded, fold);
            plim_elements_write_integers(y, i, 1, &total);
        } else {
            double total = op->alpha * fold_floats(&view, i * folded, folded, fold);
            plim_elements_write(y, i, 1, &total);
        }
    }
    return PLIM_OK;
}

/* --- running sums ----------------------------------------------------------------------------- */

static void cumsum_row(const struct plim_array *y, const struct plim_array *x, int64_t first,
                       int64_t length)
{
    double v[PLIM_ELEMENTS_RUN], total = 0;
    for (int64_t taken; length > 0; first += taken, length -= taken) {
        taken = length < PLIM_ELEMENTS_RUN ? length : PLIM_ELEMENTS_RUN;
        plim_elements_read(x, first, taken, v);
        for (int64_t i = 0; i < taken; i++) v[i] = total += v[i];
        plim_elements_write(y, first, taken, v);
    }
}

static void cumsum_integer_row(const struct plim_array *y, const struct plim_array *x,
                               int64_t first, int64_t length)
{
    int64_t v[PLIM_ELEMENTS_RUN];
    uint64_t total = 0;
    for (int64_t taken; length > 0; first += taken, length -= taken) {
        taken = length < PLIM_ELEMENTS_RUN ? length : PLIM_ELEMENTS_RUN;
        plim_elements_read_integers(x, first, taken, v);
        for (int64_t i = 0; i < taken; i++) v[i] = (int64_t)(total += (uint64_t)v[i]);
        plim_elements_write_integers(y, first, taken, v);
    }
}

enum plim_status plim_reference_cumsum(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *x = op->in[0];
    int64_t length = plim_elements_last(x), elements = plim_array_elements(x);
    if (!plim_elements_same_shape(y, x)) return PLIM_INVALID;
    bool integers = plim_elements_are_integers(x) && plim_elements_are_integers(y);
    for (int64_t first = 0; first < elements; first += length)
        (integers ? cumsum_integer_row : cumsum_row)(y, x, first, length);
    return PLIM_OK;
}
