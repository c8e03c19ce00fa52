/* Rotary positions: pairs of elements of a head are rotated by the angle of their row. */
#include "reference_internal.h"

#include <stdlib.h>

enum { BATCH, LENGTH, HEADS, SIZE, DIMS };

static bool is_in_place(const struct plim_array *y, const struct plim_array *x)
{
    for (int i = 0; i < x->ndim; i++)
        if (y->stride[i] != x->stride[i]) return false;
    return plim_elements_same_shape(y, x) && y->data == x->data && y->dtype == x->dtype;
}

/* True if these are angles of at least `pairs` pairs for each row of `x`, or of one batch element for all. */
static bool are_angles(const struct plim_array *a, const struct plim_array *x, int64_t pairs)
{
    return a->ndim == 3 && (a->shape[BATCH] == 1 || a->shape[BATCH] == x->shape[BATCH]) &&
           a->shape[LENGTH] == x->shape[LENGTH] && a->shape[2] >= pairs;
}

static enum plim_status check(const struct plim_op *op)
{
    for (int i = 0; i < 2; i++) {
        const struct plim_array *x = op->in[i];
        bool fits = x->ndim == DIMS && 2 * op->pairs <= x->shape[SIZE] && op->pairs > 0;
        if (!fits || !is_in_place(op->out[i], x)) return PLIM_INVALID;
        if (!are_angles(op->in[2], x, op->pairs)) return PLIM_INVALID;
    }
    bool have_one_batch = op->in[0]->shape[BATCH] == op->in[1]->shape[BATCH];
    return have_one_batch && plim_elements_same_shape(op->in[2], op->in[3]) ? PLIM_OK : PLIM_INVALID;
}

/* `row` counts in row-major order of (b, s). */
static void read_angles(const struct plim_array *a, int64_t row, int64_t pairs, double *to)
{
    int64_t length = a->shape[LENGTH], own = a->shape[BATCH] == 1 ? row % length : row;
    plim_elements_read(a, own * a->shape[2], pairs, to);
}

/* Rotates a head, numbered in row-major order of (b, s, heads); values: room for two per pair. */
static void rotate_head(const struct plim_array *x, int64_t head, int64_t pairs, const double *cos, const double *sin,
                        double *values)
{
    int64_t first = head * x->shape[SIZE];
    plim_elements_read(x, first, 2 * pairs, values);
    for (int64_t i = 0; i < pairs; i++) {
        double a = values[i], b = values[i + pairs];
        values[i] = a * cos[i] - b * sin[i];
        values[i + pairs] = b * cos[i] + a * sin[i];
    }
    plim_elements_write(x, first, 2 * pairs, values);
}

enum plim_status plim_reference_rotate(const struct plim_op *op)
{
    enum plim_status st = check(op);
    if (st != PLIM_OK) return st;
    int64_t rows = op->in[0]->shape[BATCH] * op->in[0]->shape[LENGTH], pairs = op->pairs;
    double *cos = plim_reference_numbers(4 * pairs), *sin = cos + pairs, *values = sin + pairs;
    if (!cos) return PLIM_NOMEM;
    for (int64_t row = 0; row < rows; row++) {
        read_angles(op->in[2], row, pairs, cos);
        read_angles(op->in[3], row, pairs, sin);
        for (int64_t i = 0; i < pairs; i++) sin[i] *= op->beta;
        for (int i = 0; i < 2; i++)
            for (int64_t heads = op->in[i]->shape[HEADS], head = 0; head < heads; head++)
                rotate_head(op->out[i], row * heads + head, pairs, cos, sin, values);
    }
    free(cos);
    return PLIM_OK;
}
