/* Matrix products, in blocks: products are summed in fp32 over DEPTH elements of the inner dimension, and these partial
 * sums in double. */
#include "reference_internal.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 16, DEPTH = 64 };

/* The sizes of one call, and memory for one product of the batch. */
struct product {
    int64_t m, n, k, batch, padded; /* padded: n in whole COLUMNS */
    struct plim_array a_view, b_view, c_view;
    bool has_c;
    float *a, *b; /* (m, k), (k, padded) */
};

/* Broadcasts x over the batch of `like`; its last two dimensions are unchanged. */
static enum plim_status broadcast_batch(const struct plim_array *x, const struct plim_array *like,
                                        struct plim_array *view)
{
    struct plim_array shape = *like;
    if (x->ndim < 2) return PLIM_INVALID;
    for (int d = 1; d <= 2; d++) shape.shape[shape.ndim - d] = x->shape[x->ndim - d];
    return plim_elements_broadcast(x, &shape, view);
}

static enum plim_status product_init(struct product *p, const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *c = plim_reference_input(op, 2);
    enum plim_status st;
    *p = (struct product){.has_c = c && op->beta != 0};
    if (y->ndim < 2) return PLIM_INVALID;
    if ((st = broadcast_batch(op->in[0], y, &p->a_view)) != PLIM_OK) return st;
    if ((st = broadcast_batch(op->in[1], y, &p->b_view)) != PLIM_OK) return st;
    if (c && (st = plim_elements_broadcast(c, y, &p->c_view)) != PLIM_OK) return st;
    p->m = y->shape[y->ndim - 2];
    p->n = y->shape[y->ndim - 1];
    p->k = p->a_view.shape[y->ndim - 1];
    if (p->a_view.shape[y->ndim - 2] != p->m || p->b_view.shape[y->ndim - 2] != p->k ||
        p->b_view.shape[y->ndim - 1] != p->n)
        return PLIM_INVALID;
    if (op->epilogue == PLIM_EPILOGUE_BIAS && !(c && c->ndim == 1 && c->shape[0] == p->n))
        return PLIM_INVALID;
    p->batch = plim_array_elements(y) ? plim_array_elements(y) / (p->m * p->n) : 0;
    p->padded = (p->n + COLUMNS - 1) / COLUMNS * COLUMNS;
    p->a = malloc((size_t)(p->m * p->k + p->k * p->padded + 1) * sizeof(float));
    if (!p->a) return PLIM_NOMEM;
    p->b = p->a + p->m * p->k;
    return PLIM_OK;
}

/* Copies matrix `index` of a batch to rows of `padded` floats. */
static void pack(const struct plim_array *x, int64_t index, int64_t padded, float *to)
{
    double v[PLIM_ELEMENTS_RUN];
    int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1];
    for (int64_t i = 0; i < rows; i++, to += padded) {
        memset(to + columns, 0, (size_t)(padded - columns) * sizeof(*to));
        for (int64_t j = 0, count; j < columns; j += count) {
            count = columns - j < PLIM_ELEMENTS_RUN ? columns - j : PLIM_ELEMENTS_RUN;
            plim_elements_read(x, (index * rows + i) * columns + j, count, v);
            for (int64_t c = 0; c < count; c++) to[j + c] = (float)v[c];
        }
    }
}

/* sum[j] = a[0 .. k) times column j of b. Half of the time of tests with sanitizers went here: of UBSan's checks, which
 * keep compilers from using vectors, it has none. ASan's are there. */
__attribute__((no_sanitize("undefined")))
static void multiply_row(const float *a, const float *b, int64_t k, int64_t padded,
                         double sum[COLUMNS])
{
    for (int j = 0; j < COLUMNS; j++) sum[j] = 0;
    for (int64_t start = 0; start < k; start += DEPTH) {
        int64_t end = start + DEPTH < k ? start + DEPTH : k;
        float part[COLUMNS] = {0};
        for (int64_t l = start; l < end; l++) {
            const float *row = b + l * padded;
            for (int j = 0; j < COLUMNS; j++) part[j] += a[l] * row[j];
        }
        for (int j = 0; j < COLUMNS; j++) sum[j] += (double)part[j];
    }
}

static void multiply(const struct product *p, const struct plim_op *op, int64_t index)
{
    double sum[COLUMNS], c[COLUMNS];
    for (int64_t start = 0; start < p->n; start += COLUMNS) {
        int64_t count = p->n - start < COLUMNS ? p->n - start : COLUMNS;
        for (int64_t i = 0; i < p->m; i++) {
            int64_t first = (index * p->m + i) * p->n + start;
            multiply_row(p->a + i * p->k, p->b + start, p->k, p->padded, sum);
            if (p->has_c) plim_elements_read(&p->c_view, first, count, c);
            for (int64_t j = 0; j < count; j++)
                sum[j] = op->alpha * sum[j] + (p->has_c ? op->beta * c[j] : 0);
            plim_elements_write(op->out[0], first, count, sum);
        }
    }
}

enum plim_status plim_reference_matmul(const struct plim_op *op)
{
    struct product p;
    enum plim_status st = product_init(&p, op);
    for (int64_t index = 0; index < p.batch && st == PLIM_OK; index++) {
        pack(&p.a_view, index, p.k, p.a);
        pack(&p.b_view, index, p.padded, p.b);
        multiply(&p, op, index);
    }
    free(p.a);
    return st;
}

/* --- triangular systems ------------------------------------------------------------------------- */

/* Solves column `j` of matrix `m` by substitution, starting at the row with a single unknown. */
static void solve_column(const struct plim_op *op, int64_t m, int64_t j, double *x)
{
    const struct plim_array *y = op->out[0];
    int64_t n = y->shape[y->ndim - 2], columns = y->shape[y->ndim - 1];
    for (int64_t done = 0; done < n; done++) {
        int64_t i = op->upper ? n - 1 - done : done;
        plim_elements_read(op->in[1], (m * n + i) * columns + j, 1, &x[i]);
        for (int64_t before = 0; before < done; before++) {
            int64_t k = op->upper ? n - 1 - before : before;
            double a;
            plim_elements_read(op->in[0], (m * n + i) * n + k, 1, &a);
            x[i] -= a * x[k];
        }
        plim_elements_write(y, (m * n + i) * columns + j, 1, &x[i]);
    }
}

enum plim_status plim_reference_solve_triangular(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *a = op->in[0];
    if (y->ndim < 2 || a->ndim != y->ndim || !plim_elements_same_shape(y, op->in[1])) return PLIM_INVALID;
    int64_t n = y->shape[y->ndim - 2], columns = y->shape[y->ndim - 1], size = n * columns;
    for (int d = 0; d < y->ndim; d++)
        if (a->shape[d] != (d < y->ndim - 1 ? y->shape[d] : n)) return PLIM_INVALID;
    double *x = plim_reference_numbers(n);
    if (!x) return PLIM_NOMEM;
    for (int64_t i = 0; size > 0 && i < plim_array_elements(y) / n; i++) solve_column(op, i / columns, i % columns, x);
    free(x);
    return PLIM_OK;
}
