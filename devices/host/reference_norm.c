/* Layer norm over the last dimension. With r = rstd and n = (x - mean) r, the result is n w + b. Also RMSNorm, whose
 * mean is 0 and whose weight has an offset. */
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

/* The operands of one call: rows of `width`. */
struct norm {
    int64_t rows, width;
    double *x, *dy, *n, *weight, *bias; /* a row each */
};

/* True if there is one number per row: (rows), or any shape with as many elements. */
static bool is_column(const struct plim_array *a, int64_t rows)
{
    return plim_array_elements(a) == rows;
}

static bool is_row(const struct plim_array *a, int64_t width)
{
    return !a || (a->ndim == 1 && a->shape[0] == width);
}

static enum plim_status norm_init(struct norm *k, const struct plim_array *x,
                                  const struct plim_array *weight, const struct plim_array *bias)
{
    *k = (struct norm){.width = plim_elements_last(x)};
    if (x->ndim < 1 || k->width < 1) return PLIM_INVALID;
    k->rows = plim_array_elements(x) / k->width;
    if (!is_row(weight, k->width) || !is_row(bias, k->width)) return PLIM_INVALID;
    k->x = plim_reference_numbers(5 * k->width);
    if (!k->x) return PLIM_NOMEM;
    k->dy = k->x + k->width;
    k->n = k->dy + k->width;
    k->weight = k->n + k->width;
    k->bias = k->weight + k->width;
    for (int64_t j = 0; j < k->width; j++) k->weight[j] = 1, k->bias[j] = 0;
    if (weight) plim_elements_read(weight, 0, k->width, k->weight);
    if (bias) plim_elements_read(bias, 0, k->width, k->bias);
    return PLIM_OK;
}

static void norm_finish(struct norm *k)
{
    free(k->x);
}

static void normalize(struct norm *k, double mean, double rstd)
{
    for (int64_t j = 0; j < k->width; j++) k->n[j] = (k->x[j] - mean) * rstd;
}

/* --- forward ---------------------------------------------------------------------------------- */

static void moments(const double *x, int64_t width, double epsilon, double *mean, double *rstd)
{
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < width; j++) sum += x[j];
    *mean = sum / (double)width;
    for (int64_t j = 0; j < width; j++) squares += (x[j] - *mean) * (x[j] - *mean);
    *rstd = 1 / sqrt(squares / (double)width + epsilon);
}

enum plim_status plim_reference_layer_norm(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *x = op->in[0];
    struct norm k;
    if (!plim_elements_same_shape(y, x)) return PLIM_INVALID;
    enum plim_status st =
        norm_init(&k, x, plim_reference_input(op, 1), plim_reference_input(op, 2));
    if (st == PLIM_OK && !(is_column(op->out[1], k.rows) && is_column(op->out[2], k.rows)))
        st = PLIM_INVALID;
    for (int64_t i = 0; i < k.rows && st == PLIM_OK; i++) {
        double mean, rstd;
        plim_elements_read(x, i * k.width, k.width, k.x);
        moments(k.x, k.width, op->alpha, &mean, &rstd);
        normalize(&k, mean, rstd);
        for (int64_t j = 0; j < k.width; j++) k.n[j] = k.n[j] * k.weight[j] + k.bias[j];
        plim_elements_write(y, i * k.width, k.width, k.n);
        plim_elements_write(op->out[1], i, 1, &mean);
        plim_elements_write(op->out[2], i, 1, &rstd);
    }
    norm_finish(&k);
    return st;
}

/* --- backward --------------------------------------------------------------------------------- */

/* in: dout, x, mean, rstd */
static enum plim_status backward_init(struct norm *k, const struct plim_op *op,
                                      const struct plim_array *weight)
{
    if (!plim_elements_same_shape(op->in[0], op->in[1])) {
        *k = (struct norm){0};
        return PLIM_INVALID;
    }
    enum plim_status st = norm_init(k, op->in[1], weight, NULL);
    if (st == PLIM_OK && !(is_column(op->in[2], k->rows) && is_column(op->in[3], k->rows)))
        st = PLIM_INVALID;
    return st;
}

/* Reads dy and n of row i; returns its rstd. */
static double backward_row(struct norm *k, const struct plim_op *op, int64_t i)
{
    double mean, rstd;
    plim_elements_read(op->in[0], i * k->width, k->width, k->dy);
    plim_elements_read(op->in[1], i * k->width, k->width, k->x);
    plim_elements_read(op->in[2], i, 1, &mean);
    plim_elements_read(op->in[3], i, 1, &rstd);
    normalize(k, mean, rstd);
    return rstd;
}

/* dx = r (g - mean(g) - n mean(g n)), g = dy w */
enum plim_status plim_reference_layer_norm_backward(const struct plim_op *op)
{
    struct norm k;
    enum plim_status st = backward_init(&k, op, plim_reference_input(op, 4));
    if (st == PLIM_OK && !plim_elements_same_shape(op->out[0], op->in[1])) st = PLIM_INVALID;
    for (int64_t i = 0; i < k.rows && st == PLIM_OK; i++) {
        double rstd = backward_row(&k, op, i), mean_g = 0, mean_gn = 0;
        for (int64_t j = 0; j < k.width; j++) {
            k.dy[j] *= k.weight[j];
            mean_g += k.dy[j] / (double)k.width;
            mean_gn += k.dy[j] * k.n[j] / (double)k.width;
        }
        for (int64_t j = 0; j < k.width; j++)
            k.dy[j] = rstd * (k.dy[j] - mean_g - k.n[j] * mean_gn);
        plim_elements_write(op->out[0], i * k.width, k.width, k.dy);
    }
    norm_finish(&k);
    return st;
}

static int64_t params_parts(const struct plim_array *a, int64_t width)
{
    bool sound = (a->ndim == 1 || a->ndim == 2) && plim_elements_last(a) == width;
    return !sound ? 0 : a->ndim == 2 ? a->shape[0] : 1;
}

/* Row p of the results sums the rows from p rows / parts on: dweight = sum dy n, dbias = sum dy. The sums use the
 * memory of weight and bias, which this operation does not have. */
enum plim_status plim_reference_layer_norm_backward_params(const struct plim_op *op)
{
    struct norm k;
    const struct plim_array *dweight = op->out[0], *dbias = op->n_out > 1 ? op->out[1] : NULL;
    enum plim_status st = backward_init(&k, op, NULL);
    int64_t parts = st == PLIM_OK ? params_parts(dweight, k.width) : 0;
    if (st == PLIM_OK && (!parts || (dbias && !plim_elements_same_shape(dbias, dweight))))
        st = PLIM_INVALID;
    for (int64_t p = 0; p < parts && st == PLIM_OK; p++) {
        for (int64_t j = 0; j < k.width; j++) k.weight[j] = k.bias[j] = 0;
        for (int64_t i = p * k.rows / parts; i < (p + 1) * k.rows / parts; i++) {
            backward_row(&k, op, i);
            for (int64_t j = 0; j < k.width; j++) {
                k.weight[j] += k.dy[j] * k.n[j];
                k.bias[j] += k.dy[j];
            }
        }
        plim_elements_write(dweight, p * k.width, k.width, k.weight);
        if (dbias) plim_elements_write(dbias, p * k.width, k.width, k.bias);
    }
    norm_finish(&k);
    return st;
}

/* --- RMSNorm ---------------------------------------------------------------------------------- */

/* Returns 1 / sqrt(mean(x^2) + epsilon) of the row in k->x. */
static double reciprocal_rms(const struct norm *k, double epsilon)
{
    double squares = 0;
    for (int64_t j = 0; j < k->width; j++) squares += k->x[j] * k->x[j];
    return 1 / sqrt(squares / (double)k->width + epsilon);
}

enum plim_status plim_reference_rms_norm(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *x = op->in[0];
    struct norm k;
    if (!plim_elements_same_shape(y, x)) return PLIM_INVALID;
    enum plim_status st = norm_init(&k, x, op->in[1], NULL);
    if (st == PLIM_OK && !is_column(op->out[1], k.rows)) st = PLIM_INVALID;
    for (int64_t i = 0; i < k.rows && st == PLIM_OK; i++) {
        plim_elements_read(x, i * k.width, k.width, k.x);
        double rstd = reciprocal_rms(&k, op->alpha);
        normalize(&k, 0, rstd);
        for (int64_t j = 0; j < k.width; j++) k.n[j] *= op->beta + k.weight[j];
        plim_elements_write(y, i * k.width, k.width, k.n);
        plim_elements_write(op->out[1], i, 1, &rstd);
    }
    norm_finish(&k);
    return st;
}

/* dx = r (g - n mean(g n)), g = dy (beta + w), of the row in k->dy and k->n; replaces k->dy. */
static void rms_norm_row_backward(struct norm *k, double offset, double rstd)
{
    double mean_gn = 0;
    for (int64_t j = 0; j < k->width; j++) {
        k->dy[j] *= offset + k->weight[j];
        mean_gn += k->dy[j] * k->n[j] / (double)k->width;
    }
    for (int64_t j = 0; j < k->width; j++) k->dy[j] = rstd * (k->dy[j] - k->n[j] * mean_gn);
}

/* Part p sums the rows from p rows / parts on; without sums there is one part. They use the memory of bias, which this
 * operation does not have. */
enum plim_status plim_reference_rms_norm_backward(const struct plim_op *op)
{
    const struct plim_array *dx = op->out[0], *dweight = op->n_out > 1 ? op->out[1] : NULL;
    struct norm k;
    if (!plim_elements_same_shape(op->in[0], op->in[1]) || !plim_elements_same_shape(dx, op->in[1]))
        return PLIM_INVALID;
    enum plim_status st = norm_init(&k, op->in[1], op->in[2], NULL);
    int64_t parts = st == PLIM_OK && dweight ? params_parts(dweight, k.width) : 1;
    if (st == PLIM_OK && (!is_column(op->in[3], k.rows) || !parts)) st = PLIM_INVALID;
    for (int64_t p = 0; p < parts && st == PLIM_OK; p++) {
        for (int64_t j = 0; j < k.width; j++) k.bias[j] = 0;
        for (int64_t i = p * k.rows / parts; i < (p + 1) * k.rows / parts; i++) {
            double rstd;
            plim_elements_read(op->in[0], i * k.width, k.width, k.dy);
            plim_elements_read(op->in[1], i * k.width, k.width, k.x);
            plim_elements_read(op->in[3], i, 1, &rstd);
            normalize(&k, 0, rstd);
            for (int64_t j = 0; j < k.width; j++) k.bias[j] += k.dy[j] * k.n[j];
            rms_norm_row_backward(&k, op->beta, rstd);
            plim_elements_write(dx, i * k.width, k.width, k.dy);
        }
        if (dweight) plim_elements_write(dweight, p * k.width, k.width, k.bias);
    }
    norm_finish(&k);
    return st;
}

/* --- L2 norm ---------------------------------------------------------------------------------- */

enum plim_status plim_reference_l2_norm(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *x = op->in[0];
    struct norm k;
    if (!plim_elements_same_shape(y, x)) return PLIM_INVALID;
    enum plim_status st = norm_init(&k, x, NULL, NULL);
    if (st == PLIM_OK && !is_column(op->out[1], k.rows)) st = PLIM_INVALID;
    for (int64_t i = 0; i < k.rows && st == PLIM_OK; i++) {
        double squares = op->alpha;
        plim_elements_read(x, i * k.width, k.width, k.x);
        for (int64_t j = 0; j < k.width; j++) squares += k.x[j] * k.x[j];
        double rstd = 1 / sqrt(squares);
        normalize(&k, 0, rstd);
        plim_elements_write(y, i * k.width, k.width, k.n);
        plim_elements_write(op->out[1], i, 1, &rstd);
    }
    norm_finish(&k);
    return st;
}

/* dx = r (dy - y sum(dy y)) */
enum plim_status plim_reference_l2_norm_backward(const struct plim_op *op)
{
    const struct plim_array *dx = op->out[0], *y = op->in[0], *dy = op->in[2];
    struct norm k;
    if (!plim_elements_same_shape(dx, y) || !plim_elements_same_shape(dy, y)) return PLIM_INVALID;
    enum plim_status st = norm_init(&k, y, NULL, NULL);
    if (st == PLIM_OK && !is_column(op->in[1], k.rows)) st = PLIM_INVALID;
    for (int64_t i = 0; i < k.rows && st == PLIM_OK; i++) {
        double rstd, sum = 0;
        plim_elements_read(y, i * k.width, k.width, k.n);
        plim_elements_read(dy, i * k.width, k.width, k.dy);
        plim_elements_read(op->in[1], i, 1, &rstd);
        for (int64_t j = 0; j < k.width; j++) sum += k.dy[j] * k.n[j];
        for (int64_t j = 0; j < k.width; j++) k.dy[j] = rstd * (k.dy[j] - k.n[j] * sum);
        plim_elements_write(dx, i * k.width, k.width, k.dy);
    }
    norm_finish(&k);
    return st;
}
