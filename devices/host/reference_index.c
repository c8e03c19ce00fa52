/* What chooses and moves rows: top k, sorting, counting, scattering, and products of groups of rows. */
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

/* --- the order of numbers --------------------------------------------------------------------- */

struct ranked {
    double value;
    int64_t index;
};

static int by_place(const struct ranked *a, const struct ranked *b)
{
    return (a->index > b->index) - (a->index < b->index);
}

static int increasing(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = (a->value > b->value) - (a->value < b->value);
    return order ? order : by_place(a, b);
}

static int decreasing(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = (a->value < b->value) - (a->value > b->value);
    return order ? order : by_place(a, b);
}

/* Ranks each row of `width` elements of x and writes its first `taken`. */
static enum plim_status rank(const struct plim_op *op, int64_t width, int64_t taken,
                             int (*compare)(const void *, const void *))
{
    const struct plim_array *x = op->in[0];
    struct ranked *row = malloc(sizeof(*row) * (size_t)(width > 0 ? width : 1));
    if (!row) return PLIM_NOMEM;
    for (int64_t i = 0; width > 0 && i < plim_array_elements(x) / width; i++) {
        for (int64_t j = 0; j < width; j++) {
            row[j].index = j;
            plim_elements_read(x, i * width + j, 1, &row[j].value);
        }
        qsort(row, (size_t)width, sizeof(*row), compare);
        for (int64_t j = 0; j < taken; j++) {
            plim_elements_write(op->out[0], i * taken + j, 1, &row[j].value);
            plim_elements_write_integers(op->out[1], i * taken + j, 1, &row[j].index);
        }
    }
    free(row);
    return PLIM_OK;
}

enum plim_status plim_reference_top_k(const struct plim_op *op)
{
    const struct plim_array *x = op->in[0], *y = op->out[0];
    int64_t width = plim_elements_last(x), taken = plim_elements_last(y);
    int64_t rows = width > 0 ? plim_array_elements(x) / width : 0;
    if (taken > width || plim_array_elements(y) != rows * taken ||
        !plim_elements_same_shape(y, op->out[1]))
        return PLIM_INVALID;
    return rank(op, width, taken, decreasing);
}

enum plim_status plim_reference_argmax(const struct plim_op *op)
{
    const struct plim_array *x = op->in[0], *y = op->out[0];
    int64_t width = plim_elements_last(x), rows = plim_array_elements(y);
    if (width < 1 || plim_array_elements(x) != rows * width) return PLIM_INVALID;
    if (op->part > 0) return PLIM_OK; /* part 0 did it all */
    for (int64_t i = 0; i < rows; i++) {
        double largest, value;
        int64_t place = 0;
        plim_elements_read(x, i * width, 1, &largest);
        for (int64_t j = 1; j < width && !isnan(largest); j++) {
            plim_elements_read(x, i * width + j, 1, &value);
            if (value <= largest) continue;
            largest = value;
            place = j;
        }
        plim_elements_write_integers(y, i, 1, &place);
    }
    return PLIM_OK;
}

enum plim_status plim_reference_sort(const struct plim_op *op)
{
    const struct plim_array *x = op->in[0];
    if (x->ndim != 1 || !plim_elements_same_shape(x, op->out[0]) ||
        !plim_elements_same_shape(x, op->out[1]))
        return PLIM_INVALID;
    return rank(op, x->shape[0], x->shape[0], increasing);
}

/* --- counting and scattering ------------------------------------------------------------------ */

enum plim_status plim_reference_histogram(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *x = op->in[0];
    int64_t bins = plim_array_elements(y), zero = 0;
    for (int64_t i = 0; i < bins; i++) plim_elements_write_integers(y, i, 1, &zero);
    for (int64_t i = 0; i < plim_array_elements(x); i++) {
        int64_t bin, count;
        plim_elements_read_integers(x, i, 1, &bin);
        if (bin < 0 || bin >= bins) continue;
        plim_elements_read_integers(y, bin, 1, &count);
        count++;
        plim_elements_write_integers(y, bin, 1, &count);
    }
    return PLIM_OK;
}

/* Elements between a row's own places and those that `indices` names, along the last dimension: into `named`, or out of
 * it into `rows`, which has the shape of `indices`. */
static enum plim_status move_by_index(const struct plim_array *rows, const struct plim_array *named,
                                      const struct plim_array *indices, bool into_named)
{
    int64_t width = plim_elements_last(rows), room = plim_elements_last(named);
    if (!plim_elements_same_shape(rows, indices) || width < 1 || room < 1 ||
        plim_array_elements(rows) / width != plim_array_elements(named) / room)
        return PLIM_INVALID;
    for (int64_t i = 0; i < plim_array_elements(rows); i++) {
        int64_t index;
        double value;
        plim_elements_read_integers(indices, i, 1, &index);
        if (index < 0 || index >= room) return PLIM_INVALID;
        int64_t place = i / width * room + index;
        plim_elements_read(into_named ? rows : named, into_named ? i : place, 1, &value);
        plim_elements_write(into_named ? named : rows, into_named ? place : i, 1, &value);
    }
    return PLIM_OK;
}

enum plim_status plim_reference_scatter(const struct plim_op *op)
{
    return move_by_index(op->in[0], op->out[0], op->in[1], true);
}

enum plim_status plim_reference_gather(const struct plim_op *op)
{
    return move_by_index(op->out[0], op->in[0], op->in[1], false);
}

enum plim_status plim_reference_masked_fill(const struct plim_op *op)
{
    struct plim_array x, mask;
    enum plim_status st = plim_elements_broadcast(op->in[0], op->out[0], &x);
    if (st == PLIM_OK) st = plim_elements_broadcast(op->in[1], op->out[0], &mask);
    for (int64_t i = 0; st == PLIM_OK && i < plim_array_elements(op->out[0]); i++) {
        int64_t hidden;
        double value = op->alpha;
        plim_elements_read_integers(&mask, i, 1, &hidden);
        if (!hidden) plim_elements_read(&x, i, 1, &value);
        plim_elements_write(op->out[0], i, 1, &value);
    }
    return st;
}

/* --- products of groups ----------------------------------------------------------------------- */

/* Elements `from` to `to` of dimension `dim`. */
static struct plim_array part(const struct plim_array *a, int dim, int64_t from, int64_t to)
{
    struct plim_array view = *a;
    view.shape[dim] = to - from;
    view.data += (uint64_t)(from * a->stride[dim] * plim_dtype_size((enum plim_dtype)a->dtype));
    return view;
}

/* Matrix `index` of a batch. */
static struct plim_array matrix(const struct plim_array *a, int64_t index)
{
    struct plim_array view = part(a, 0, index, index + 1);
    for (int d = 0; d < 2; d++) {
        view.shape[d] = view.shape[d + 1];
        view.stride[d] = view.stride[d + 1];
    }
    view.ndim = 2;
    return view;
}

enum plim_status plim_reference_matmul_grouped(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *a = op->in[0], *b = op->in[1], *ends = op->in[2];
    bool summed = y->ndim == 3;
    if (a->ndim != 2 || b->ndim != (summed ? 2 : 3) || y->ndim != (summed ? 3 : 2))
        return PLIM_INVALID;
    int64_t groups = summed ? y->shape[0] : b->shape[0], rows = a->shape[summed];
    if (plim_array_elements(ends) != groups) return PLIM_INVALID;
    enum plim_status st = PLIM_OK;
    for (int64_t g = 0, from = 0, to; g < groups && st == PLIM_OK; g++, from = to) {
        plim_elements_read_integers(ends, g, 1, &to);
        if (to < from || to > rows) return PLIM_INVALID;
        struct plim_array y_part = summed ? matrix(y, g) : part(y, 0, from, to);
        struct plim_array a_part = part(a, summed, from, to);
        struct plim_array b_part = summed ? part(b, 0, from, to) : matrix(b, g);
        struct plim_op product = {.kind = PLIM_OP_MATMUL,
                                  .n_out = 1,
                                  .n_in = 2,
                                  .alpha = 1,
                                  .tf32 = op->tf32,
                                  .out = {&y_part},
                                  .in = {&a_part, &b_part}};
        st = plim_reference_matmul(&product);
    }
    return st;
}
