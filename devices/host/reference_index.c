/* Selecting and moving rows: top k, sorting, counting, scattering, and products of groups of rows. */
#include "devices/grouped.h"
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
    if (isnan(a->value) || isnan(b->value)) order = (isnan(a->value) != 0) - (isnan(b->value) != 0);
    return order ? order : by_place(a, b);
}

static int decreasing(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = (a->value < b->value) - (a->value > b->value);
    return order ? order : by_place(a, b);
}

/* Sorts each row of `width` elements of x and writes its first `taken`. */
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
    if (op->part > 0) return PLIM_OK; /* part 0 has computed everything */
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

/* Moves elements between `rows`, which has the shape of `indices`, and the elements of `named` to which `indices`
 * refers, along the last dimension: from `named`, or into it, replacing or adding to what was there. */
enum move { OUT_OF_NAMED, INTO_NAMED, ADDED_TO_NAMED };
static enum plim_status move_by_index(const struct plim_array *rows, const struct plim_array *named,
                                      const struct plim_array *indices, enum move move)
{
    const struct plim_array *from = move == OUT_OF_NAMED ? named : rows, *to = move == OUT_OF_NAMED ? rows : named;
    int64_t width = plim_elements_last(rows), room = plim_elements_last(named);
    if (!plim_elements_same_shape(rows, indices) || width < 1 || room < 1 ||
        plim_array_elements(rows) / width != plim_array_elements(named) / room)
        return PLIM_INVALID;
    for (int64_t i = 0; i < plim_array_elements(rows); i++) {
        int64_t index;
        double value, before;
        plim_elements_read_integers(indices, i, 1, &index);
        if (index < 0 || index >= room) return PLIM_INVALID;
        int64_t place = i / width * room + index;
        plim_elements_read(from, move == OUT_OF_NAMED ? place : i, 1, &value);
        if (move == ADDED_TO_NAMED) {
            plim_elements_read(to, place, 1, &before);
            value += before;
        }
        plim_elements_write(to, move == OUT_OF_NAMED ? i : place, 1, &value);
    }
    return PLIM_OK;
}

enum plim_status plim_reference_scatter(const struct plim_op *op)
{
    return move_by_index(op->in[0], op->out[0], op->in[1], INTO_NAMED);
}

enum plim_status plim_reference_gather(const struct plim_op *op)
{
    return move_by_index(op->out[0], op->in[0], op->in[1], OUT_OF_NAMED);
}

enum plim_status plim_reference_add_by_index(const struct plim_op *op)
{
    return move_by_index(op->in[0], op->out[0], op->in[1], ADDED_TO_NAMED);
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

enum plim_status plim_reference_matmul_grouped(const struct plim_op *op)
{
    enum plim_status st = plim_grouped_check(op);
    int64_t groups = st ? 0 : plim_grouped_count(op);
    for (int64_t g = 0, from = 0, to; g < groups && st == PLIM_OK; g++, from = to) {
        struct plim_array parts[PLIM_GROUP_PARTS];
        plim_elements_read_integers(op->in[2], g, 1, &to);
        if (to < from || to > plim_grouped_rows(op)) return PLIM_INVALID;
        const struct plim_op product = plim_grouped_product(op, g, from, to, parts);
        st = plim_reference_matmul(&product);
    }
    return st;
}
