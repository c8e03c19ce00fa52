/* Losses of a linear layer's logits, which are computed in blocks of rows and classes. */
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 32, CLASSES = 64 }; /* of a block */

/* The operands of one call, and memory for a block. */
struct head {
    const struct plim_array *x, *weight, *bias, *targets, *places;
    int64_t rows, classes, width; /* rows: places */
    double cap;
    int shift;
    int64_t place[ROWS], target[ROWS]; /* a target of -1: none */
    double *of_rows, *of_classes, *z;  /* (ROWS, width), (CLASSES, width), (ROWS, CLASSES) */
};

static bool is_list(const struct plim_array *a, int64_t count)
{
    return a->ndim == 1 && a->shape[0] == count;
}

static enum plim_status head_init(struct head *h, const struct plim_op *op)
{
    if (h->x->ndim != 2 || h->weight->ndim != 2 || h->places->ndim != 1) return PLIM_INVALID;
    h->rows = h->places->shape[0];
    h->classes = h->weight->shape[0];
    h->width = h->weight->shape[1];
    h->cap = op->softcap;
    h->shift = op->dim;
    if (h->x->shape[1] != h->width || !plim_elements_are_integers(h->places)) return PLIM_INVALID;
    if (h->bias && !is_list(h->bias, h->classes)) return PLIM_INVALID;
    if (h->targets && (!is_list(h->targets, h->x->shape[0]) || !plim_elements_are_integers(h->targets)))
        return PLIM_INVALID;
    h->of_rows = plim_reference_numbers((ROWS + CLASSES) * h->width + ROWS * CLASSES);
    if (!h->of_rows) return PLIM_NOMEM;
    h->of_classes = h->of_rows + ROWS * h->width;
    h->z = h->of_classes + CLASSES * h->width;
    return PLIM_OK;
}

static void head_finish(struct head *h)
{
    free(h->of_rows);
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static int64_t target_of(const struct head *h, int64_t place)
{
    int64_t target = -1, at = place + h->shift;
    if (h->targets && at >= 0 && at < h->x->shape[0]) plim_elements_read_integers(h->targets, at, 1, &target);
    return target < h->classes ? target : -1;
}

static enum plim_status read_rows(struct head *h, int64_t first, int64_t *count)
{
    *count = lesser(ROWS, h->rows - first);
    plim_elements_read_integers(h->places, first, *count, h->place);
    for (int64_t i = 0; i < *count; i++) {
        if (h->place[i] < 0 || h->place[i] >= h->x->shape[0]) return PLIM_INVALID;
        plim_elements_read(h->x, h->place[i] * h->width, h->width, h->of_rows + i * h->width);
        h->target[i] = target_of(h, h->place[i]);
    }
    return PLIM_OK;
}

static int64_t read_classes(struct head *h, int64_t first)
{
    int64_t count = lesser(CLASSES, h->classes - first);
    plim_elements_read(h->weight, first * h->width, count * h->width, h->of_classes);
    return count;
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static double bias_of(const struct head *h, int64_t class)
{
    double bias = 0;
    if (h->bias) plim_elements_read(h->bias, class, 1, &bias);
    return bias;
}

/* Computes the logits of the rows and classes that were read last. */
static void make_logits(struct head *h, int64_t rows, int64_t first_class, int64_t classes)
{
    for (int64_t c = 0; c < classes; c++) {
        double bias = bias_of(h, first_class + c);
        for (int64_t i = 0; i < rows; i++) {
            double z = dot(h->of_rows + i * h->width, h->of_classes + c * h->width, h->width) + bias;
            h->z[i * CLASSES + c] = h->cap > 0 ? h->cap * tanh(z / h->cap) : z;
        }
    }
}

/* --- forward ---------------------------------------------------------------------------------- */

/* log(exp(a) + exp(b)); keeps NaN */
static double log_add(double a, double b)
{
    double most = a > b || isnan(a) ? a : b, least = a > b || isnan(a) ? b : a;
    return isinf(most) ? most : most + log1p(exp(least - most));
}

static enum plim_status logsumexp_of_rows(struct head *h, int64_t first, double lse[ROWS], double *sums)
{
    int64_t rows;
    enum plim_status st = read_rows(h, first, &rows);
    for (int i = 0; i < ROWS; i++) lse[i] = -INFINITY;
    for (int64_t at = 0; at < h->classes && st == PLIM_OK; at += CLASSES) {
        int64_t classes = read_classes(h, at);
        make_logits(h, rows, at, classes);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < classes; c++) {
                lse[i] = log_add(lse[i], h->z[i * CLASSES + c]);
                sums[at + c] += h->z[i * CLASSES + c];
            }
    }
    return st;
}

enum plim_status plim_reference_linear_lse(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *means = op->n_out > 1 ? op->out[1] : NULL;
    struct head h = {.x = op->in[0], .weight = op->in[1], .places = op->in[2], .bias = plim_reference_input(op, 3)};
    enum plim_status st = head_init(&h, op);
    if (st != PLIM_OK) return st;
    double lse[ROWS], *sums = plim_reference_numbers(h.classes);
    if (!sums) st = PLIM_NOMEM;
    else if (!is_list(y, h.rows) || (means && !is_list(means, h.classes))) st = PLIM_INVALID;
    for (int64_t c = 0; st == PLIM_OK && c < h.classes; c++) sums[c] = 0;
    for (int64_t first = 0; first < h.rows && st == PLIM_OK; first += ROWS) {
        st = logsumexp_of_rows(&h, first, lse, sums);
        if (st == PLIM_OK) plim_elements_write(y, first, lesser(ROWS, h.rows - first), lse);
    }
    for (int64_t c = 0; c < h.classes && st == PLIM_OK && means && h.rows > 0; c++) {
        double mean = sums[c] / (double)h.rows;
        plim_elements_write(means, c, 1, &mean);
    }
    free(sums);
    head_finish(&h);
    return st;
}

enum plim_status plim_reference_linear_target(const struct plim_op *op)
{
    struct head h = {.x = op->in[0],
                     .weight = op->in[1],
                     .targets = op->in[2],
                     .places = op->in[3],
                     .bias = plim_reference_input(op, 4)};
    enum plim_status st = head_init(&h, op);
    if (st != PLIM_OK) return st;
    if (!is_list(op->out[0], h.rows)) st = PLIM_INVALID;
    for (int64_t first = 0, rows = 0; first < h.rows && st == PLIM_OK; first += ROWS) {
        st = read_rows(&h, first, &rows);
        for (int64_t i = 0; i < rows && st == PLIM_OK; i++) {
            double z = 0;
            if (h.target[i] >= 0) {
                plim_elements_read(h.weight, h.target[i] * h.width, h.width, h.of_classes);
                z = dot(h.of_rows + i * h.width, h.of_classes, h.width) + bias_of(&h, h.target[i]);
            }
            z = -z;
            plim_elements_write(op->out[0], first + i, 1, &z);
        }
    }
    head_finish(&h);
    return st;
}

/* --- backward --------------------------------------------------------------------------------- */

/* State of the backward, which computes the gradient of the losses' sum with respect to the logits before their cap. */
struct slopes {
    struct head h;
    const struct plim_array *lse, *dx, *dweight, *dbias;
    double scale; /* of the losses */
};

/* Replaces z by the gradient of the logits of the rows and classes that were read last. */
static void make_slopes(struct slopes *s, int64_t first, int64_t rows, int64_t first_class, int64_t classes)
{
    struct head *h = &s->h;
    double lse[ROWS];
    make_logits(h, rows, first_class, classes);
    plim_elements_read(s->lse, first, rows, lse);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < classes; c++) {
            double *z = &h->z[i * CLASSES + c], capped = h->cap > 0 ? *z / h->cap : 0;
            double d = exp(*z - lse[i]) - (first_class + c == h->target[i] ? 1 : 0);
            *z = s->scale * d * (1 - capped * capped);
        }
}

static void add_scaled(double *to, double factor, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] += factor * from[i];
}

/* to += sums, rounded once */
static void add_to(const struct plim_array *to, int64_t first, int64_t count, const double *sums)
{
    for (int64_t i = 0; i < count; i++) {
        double value;
        plim_elements_read(to, first + i, 1, &value);
        value += sums[i];
        plim_elements_write(to, first + i, 1, &value);
    }
}

static enum plim_status rows_backward(struct slopes *s, double *sums)
{
    struct head *h = &s->h;
    enum plim_status st = PLIM_OK;
    for (int64_t first = 0, rows = 0; first < h->rows && st == PLIM_OK; first += ROWS) {
        st = read_rows(h, first, &rows);
        for (int64_t i = 0; i < ROWS * h->width; i++) sums[i] = 0;
        for (int64_t at = 0; at < h->classes && st == PLIM_OK; at += CLASSES) {
            int64_t classes = read_classes(h, at);
            make_slopes(s, first, rows, at, classes);
            for (int64_t i = 0; i < rows; i++)
                for (int64_t c = 0; c < classes; c++)
                    add_scaled(sums + i * h->width, h->z[i * CLASSES + c], h->of_classes + c * h->width, h->width);
        }
        for (int64_t i = 0; i < rows && st == PLIM_OK; i++)
            add_to(s->dx, h->place[i] * h->width, h->width, sums + i * h->width);
    }
    return st;
}

static enum plim_status classes_backward(struct slopes *s, double *sums)
{
    struct head *h = &s->h;
    enum plim_status st = PLIM_OK;
    for (int64_t at = 0; at < h->classes && st == PLIM_OK; at += CLASSES) {
        int64_t classes = read_classes(h, at);
        double bias[CLASSES] = {0};
        for (int64_t i = 0; i < CLASSES * h->width; i++) sums[i] = 0;
        for (int64_t first = 0, rows = 0; first < h->rows && st == PLIM_OK; first += ROWS) {
            st = read_rows(h, first, &rows);
            if (st != PLIM_OK) break;
            make_slopes(s, first, rows, at, classes);
            for (int64_t i = 0; i < rows; i++)
                for (int64_t c = 0; c < classes; c++) {
                    add_scaled(sums + c * h->width, h->z[i * CLASSES + c], h->of_rows + i * h->width, h->width);
                    bias[c] += h->z[i * CLASSES + c];
                }
        }
        if (st == PLIM_OK && s->dweight) add_to(s->dweight, at * h->width, classes * h->width, sums);
        if (st == PLIM_OK && s->dbias) add_to(s->dbias, at, classes, bias);
    }
    return st;
}

static bool are_of_shape(const struct slopes *s)
{
    const struct head *h = &s->h;
    return (!s->dx || plim_elements_same_shape(s->dx, h->x)) &&
           (!s->dweight || plim_elements_same_shape(s->dweight, h->weight)) &&
           (!s->dbias || is_list(s->dbias, h->classes)) && is_list(s->lse, h->rows);
}

enum plim_status plim_reference_linear_lse_backward(const struct plim_op *op)
{
    struct slopes s = {.h = {.x = op->in[1],
                             .weight = op->in[2],
                             .targets = op->in[4],
                             .places = op->in[5],
                             .bias = plim_reference_input(op, 6)},
                       .lse = op->in[3],
                       .dx = op->n_out > 0 ? op->out[0] : NULL,
                       .dweight = op->n_out > 1 ? op->out[1] : NULL,
                       .dbias = op->n_out > 2 ? op->out[2] : NULL};
    enum plim_status st = head_init(&s.h, op);
    if (st != PLIM_OK) return st;
    double *sums = plim_reference_numbers(CLASSES * s.h.width);
    if (!sums) st = PLIM_NOMEM;
    else if (!are_of_shape(&s) || plim_array_elements(op->in[0]) != 1) st = PLIM_INVALID;
    if (st == PLIM_OK) s.scale = op->beta * plim_elements_scalar(op->in[0]);
    if (st == PLIM_OK && s.dx) st = rows_backward(&s, sums);
    if (st == PLIM_OK && (s.dweight || s.dbias)) st = classes_backward(&s, sums);
    free(sums);
    head_finish(&s.h);
    return st;
}
