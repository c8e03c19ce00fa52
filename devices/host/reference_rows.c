/* Rows and elements by index and by mask. */
#include "reference_internal.h"

#include <stdlib.h>

/* --- by mask ---------------------------------------------------------------------------------- */

/* The row-major coordinates of element i of a. */
static void find_coordinates(const struct plim_array *a, int64_t i, int64_t at[PLIM_MAX_DIMS])
{
    for (int d = a->ndim - 1; d >= 0; d--) {
        at[d] = i % a->shape[d];
        i /= a->shape[d];
    }
}

enum plim_status plim_reference_nonzero(const struct plim_op *op)
{
    const struct plim_array *places = op->out[0], *a = op->in[0];
    bool has_columns = places->ndim == 2;
    if (places->ndim < 1 || places->ndim > 2 || (has_columns && places->shape[1] != a->ndim)) return PLIM_INVALID;
    int64_t found = 0, columns = has_columns ? a->ndim : 1, coordinates[PLIM_MAX_DIMS];
    for (int64_t i = 0; i < plim_array_elements(a) && found < places->shape[0]; i++) {
        double value;
        plim_elements_read(a, i, 1, &value);
        if (value == 0) continue;
        if (has_columns)
            find_coordinates(a, i, coordinates);
        else
            coordinates[0] = i;
        plim_elements_write_integers(places, found++ * columns, columns, coordinates);
    }
    const int64_t none = -1;
    for (int64_t i = found * columns; i < places->shape[0] * columns; i++)
        plim_elements_write_integers(places, i, 1, &none);
    return PLIM_OK;
}

enum plim_status plim_reference_masked_scatter(const struct plim_op *op)
{
    const struct plim_array *a = op->in[0], *mask = op->in[1], *source = op->in[2];
    int64_t taken = 0;
    if (!plim_elements_same_shape(op->out[0], a) || !plim_elements_same_shape(mask, a)) return PLIM_INVALID;
    for (int64_t i = 0; i < plim_array_elements(a); i++) {
        double value, is_set;
        plim_elements_read(mask, i, 1, &is_set);
        if (is_set != 0 && taken == plim_array_elements(source)) return PLIM_INVALID;
        plim_elements_read(is_set != 0 ? source : a, is_set != 0 ? taken++ : i, 1, &value);
        plim_elements_write(op->out[0], i, 1, &value);
    }
    return PLIM_OK;
}

/* --- by index --------------------------------------------------------------------------------- */

/* True if `rows` (n, ..) are rows of `named`, numbered by its leading dimensions. Then *width is the size of a row, and
 * *count the number of rows of `named`. */
static bool are_rows_of(const struct plim_array *rows, const struct plim_array *named,
                        const struct plim_array *indices, int64_t *width, int64_t *count)
{
    int leading = named->ndim - rows->ndim + 1;
    if (rows->ndim < 1 || leading < 1 || indices->ndim != 1 || indices->shape[0] != rows->shape[0]) return false;
    *width = *count = 1;
    for (int d = 0; d < leading; d++) *count *= named->shape[d];
    for (int d = 1; d < rows->ndim; d++) {
        if (rows->shape[d] != named->shape[leading - 1 + d]) return false;
        *width *= rows->shape[d];
    }
    return true;
}

static enum plim_status move_rows(const struct plim_array *rows, const struct plim_array *named,
                                  const struct plim_array *indices, bool into_named)
{
    int64_t width, count;
    if (!are_rows_of(rows, named, indices, &width, &count)) return PLIM_INVALID;
    double *row = plim_reference_numbers(width);
    enum plim_status st = row ? PLIM_OK : PLIM_NOMEM;
    for (int64_t i = 0; i < rows->shape[0] && !st; i++) {
        int64_t index;
        plim_elements_read_integers(indices, i, 1, &index);
        if (index < 0 || index >= count) {
            st = PLIM_INVALID;
            break;
        }
        int64_t from = into_named ? i : index, to = into_named ? index : i;
        plim_elements_read(into_named ? rows : named, from * width, width, row);
        plim_elements_write(into_named ? named : rows, to * width, width, row);
    }
    free(row);
    return st;
}

enum plim_status plim_reference_take_rows(const struct plim_op *op)
{
    return move_rows(op->out[0], op->in[0], op->in[1], false);
}

enum plim_status plim_reference_put_rows(const struct plim_op *op)
{
    return move_rows(op->in[0], op->out[0], op->in[1], true);
}

enum plim_status plim_reference_scatter_add(const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[0], *indices = op->in[1];
    if (out->ndim != 1 || plim_array_elements(a) != plim_array_elements(indices)) return PLIM_INVALID;
    double *sums = plim_reference_numbers(out->shape[0]);
    enum plim_status st = sums ? PLIM_OK : PLIM_NOMEM;
    if (!st) plim_elements_read(out, 0, out->shape[0], sums);
    for (int64_t i = 0; i < plim_array_elements(a) && !st; i++) {
        int64_t index;
        double value;
        plim_elements_read_integers(indices, i, 1, &index);
        plim_elements_read(a, i, 1, &value);
        if (index < 0 || index >= out->shape[0])
            st = PLIM_INVALID;
        else
            sums[index] += value;
    }
    if (!st) plim_elements_write(out, 0, out->shape[0], sums);
    free(sums);
    return st;
}
