/* Softmax and related functions, cross entropy, embedding. */
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

/* --- softmax ---------------------------------------------------------------------------------- */

/* Replaces a row of x by that of the result; z: that of the second input, if there is one. */
typedef void row_function(double *x, const double *z, int64_t length);

static enum plim_status for_rows(const struct plim_op *op, row_function *f)
{
    const struct plim_array *y = op->out[0], *x = op->in[0], *z = plim_reference_input(op, 1);
    if (y->ndim < 1 || !plim_elements_same_shape(y, x)) return PLIM_INVALID;
    if (z && !plim_elements_same_shape(y, z)) return PLIM_INVALID;
    int64_t length = plim_elements_last(y), elements = plim_array_elements(y);
    double *row = plim_reference_numbers(2 * length);
    if (!row) return PLIM_NOMEM;
    for (int64_t first = 0; first < elements; first += length) {
        plim_elements_read(x, first, length, row);
        if (z) plim_elements_read(z, first, length, row + length);
        f(row, row + length, length);
        plim_elements_write(y, first, length, row);
    }
    free(row);
    return PLIM_OK;
}

static double row_maximum(const double *x, int64_t length)
{
    double most = -INFINITY;
    for (int64_t i = 0; i < length; i++) most = fmax(most, x[i]);
    return most;
}

static double row_sum(const double *x, int64_t length)
{
    double sum = 0;
    for (int64_t i = 0; i < length; i++) sum += x[i];
    return sum;
}

static void softmax_row(double *x, const double *z, int64_t length)
{
    (void)z;
    double most = row_maximum(x, length);
    for (int64_t i = 0; i < length; i++) x[i] = exp(x[i] - most);
    double sum = row_sum(x, length);
    for (int64_t i = 0; i < length; i++) x[i] /= sum;
}

static void log_softmax_row(double *x, const double *z, int64_t length)
{
    (void)z;
    double most = row_maximum(x, length), sum = 0;
    for (int64_t i = 0; i < length; i++) sum += exp(x[i] - most);
    for (int64_t i = 0; i < length; i++) x[i] = x[i] - most - log(sum);
}

/* x: dout * out, z: out */
static void softmax_backward_row(double *x, const double *z, int64_t length)
{
    double sum = row_sum(x, length);
    for (int64_t i = 0; i < length; i++) x[i] -= z[i] * sum;
}

/* x: dout, z: out, the logarithms */
static void log_softmax_backward_row(double *x, const double *z, int64_t length)
{
    double sum = row_sum(x, length);
    for (int64_t i = 0; i < length; i++) x[i] -= exp(z[i]) * sum;
}

enum plim_status plim_reference_softmax(const struct plim_op *op)
{
    return for_rows(op, softmax_row);
}

enum plim_status plim_reference_softmax_backward(const struct plim_op *op)
{
    return for_rows(op, softmax_backward_row);
}

enum plim_status plim_reference_log_softmax(const struct plim_op *op)
{
    return for_rows(op, log_softmax_row);
}

enum plim_status plim_reference_log_softmax_backward(const struct plim_op *op)
{
    return for_rows(op, log_softmax_backward_row);
}

/* --- cross entropy ---------------------------------------------------------------------------- */

/* Stores the class of a row, -1 if it is ignored. */
static enum plim_status target_class(const struct plim_array *target, int64_t row, int64_t classes,
                                     int64_t *class)
{
    plim_elements_read_integers(target, row, 1, class);
    if (*class == PLIM_IGNORED_TARGET)
        *class = -1;
    else if (*class < 0 || *class >= classes)
        return PLIM_INVALID;
    return PLIM_OK;
}

static bool are_log_probs(const struct plim_array *x, const struct plim_array *target)
{
    return x->ndim == 2 && target->ndim == 1 && x->shape[0] == target->shape[0] &&
           plim_elements_are_integers(target);
}

enum plim_status plim_reference_nll_loss(const struct plim_op *op)
{
    const struct plim_array *x = op->in[0], *target = op->in[1];
    double sum = 0, number = 0;
    if (!are_log_probs(x, target)) return PLIM_INVALID;
    for (int64_t i = 0, class; i < x->shape[0]; i++) {
        double log_prob;
        enum plim_status st = target_class(target, i, x->shape[1], &class);
        if (st != PLIM_OK) return st;
        if (class < 0) continue;
        plim_elements_read(x, i * x->shape[1] + class, 1, &log_prob);
        sum -= log_prob;
        number++;
    }
    double mean = sum / number;
    plim_elements_write(op->out[0], 0, 1, &mean);
    plim_elements_write(op->out[1], 0, 1, &number);
    return PLIM_OK;
}

enum plim_status plim_reference_nll_loss_backward(const struct plim_op *op)
{
    const struct plim_array *dx = op->out[0], *target = op->in[1];
    if (!are_log_probs(dx, target)) return PLIM_INVALID;
    double slope = -plim_elements_scalar(op->in[0]) / plim_elements_scalar(op->in[2]);
    for (int64_t i = 0, class; i < dx->shape[0]; i++) {
        enum plim_status st = target_class(target, i, dx->shape[1], &class);
        if (st != PLIM_OK) return st;
        if (class >= 0) plim_elements_write(dx, i * dx->shape[1] + class, 1, &slope);
    }
    return PLIM_OK;
}

/* Replaces the logits x of a row by their gradient, and returns its loss; `class` -1: ignored. */
static double cross_entropy_row(const struct plim_op *op, double *x, int64_t length, int64_t class)
{
    double largest = -INFINITY, sum = 0, cap = op->beta;
    if (class < 0) {
        for (int64_t i = 0; i < length; i++) x[i] = 0;
        return 0;
    }
    for (int64_t i = 0; i < length; i++) {
        x[i] = cap > 0 ? cap * tanh(x[i] / cap) : x[i];
        largest = x[i] > largest || isnan(x[i]) ? x[i] : largest;
    }
    for (int64_t i = 0; i < length; i++) sum += exp(x[i] - largest);
    double loss = largest + log(sum) - x[class];
    for (int64_t i = 0; i < length; i++) {
        double slope = cap > 0 ? 1 - x[i] * x[i] / (cap * cap) : 1;
        x[i] = op->alpha * (exp(x[i] - largest) / sum - (i == class)) * slope;
    }
    return op->alpha * loss;
}

enum plim_status plim_reference_cross_entropy(const struct plim_op *op)
{
    const struct plim_array *x = op->in[0], *target = op->in[1], *dx = op->n_out > 1 ? op->out[1] : NULL;
    enum plim_status st = PLIM_OK;
    if (!are_log_probs(x, target) || !plim_elements_same_shape(op->out[0], target)) return PLIM_INVALID;
    if (dx && !plim_elements_same_shape(dx, x)) return PLIM_INVALID;
    double *row = plim_reference_numbers(x->shape[1]);
    if (!row) return PLIM_NOMEM;
    for (int64_t i = 0, n = x->shape[1], class; i < x->shape[0]; i++) {
        st = target_class(target, i, n, &class);
        if (st != PLIM_OK) break;
        plim_elements_read(x, i * n, n, row);
        double loss = cross_entropy_row(op, row, n, class);
        if (dx) plim_elements_write(dx, i * n, n, row);
        plim_elements_write(op->out[0], i, 1, &loss);
    }
    free(row);
    return st;
}

/* --- embedding -------------------------------------------------------------------------------- */

/* out[i] = table[rows[i], columns[i]] */
static enum plim_status look_up(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *table = op->in[0];
    struct plim_array index[2];
    if (table->ndim != 2) return PLIM_INVALID;
    for (int k = 0; k < 2; k++)
        if (!plim_elements_are_integers(op->in[1 + k]) ||
            plim_elements_broadcast(op->in[1 + k], y, &index[k]) != PLIM_OK)
            return PLIM_INVALID;
    for (int64_t n = 0; n < plim_array_elements(y); n++) {
        int64_t i, j;
        double x;
        plim_elements_read_integers(&index[0], n, 1, &i);
        plim_elements_read_integers(&index[1], n, 1, &j);
        if (i < 0 || i >= table->shape[0] || j < 0 || j >= table->shape[1]) return PLIM_INVALID;
        plim_elements_read(table, i * table->shape[1] + j, 1, &x);
        plim_elements_write(y, n, 1, &x);
    }
    return PLIM_OK;
}

/* True if `rows` are rows of a (V, h) table, one for each of `indices`. */
static bool is_embedding(const struct plim_array *table, const struct plim_array *indices,
                         const struct plim_array *rows)
{
    return table->ndim == 2 && plim_elements_are_integers(indices) &&
           plim_elements_last(rows) == table->shape[1] &&
           plim_array_elements(rows) == plim_array_elements(indices) * table->shape[1];
}

enum plim_status plim_reference_embedding(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *weight = op->in[0], *indices = op->in[1];
    if (plim_reference_input(op, 2)) return look_up(op);
    if (!is_embedding(weight, indices, y)) return PLIM_INVALID;
    int64_t width = weight->shape[1];
    double *row = plim_reference_numbers(width);
    if (!row) return PLIM_NOMEM;
    enum plim_status st = PLIM_OK;
    for (int64_t n = 0; n < plim_array_elements(indices) && st == PLIM_OK; n++) {
        int64_t index;
        plim_elements_read_integers(indices, n, 1, &index);
        if (index < 0 || index >= weight->shape[0]) {
            st = PLIM_INVALID;
        } else {
            plim_elements_read(weight, index * width, width, row);
            plim_elements_write(y, n * width, width, row);
        }
    }
    free(row);
    return st;
}

/* Builds linked lists of the tokens of each row of the weight: a row's last, a token's previous; -1 ends a list. */
static enum plim_status chain_tokens(const struct plim_array *indices, int64_t rows, int64_t *last,
                                     int64_t *previous)
{
    for (int64_t i = 0; i < rows; i++) last[i] = -1;
    for (int64_t n = 0; n < plim_array_elements(indices); n++) {
        int64_t index;
        plim_elements_read_integers(indices, n, 1, &index);
        if (index < 0 || index >= rows) return PLIM_INVALID;
        previous[n] = last[index];
        last[index] = n;
    }
    return PLIM_OK;
}

/* The gradients of a row are summed before they are rounded. */
enum plim_status plim_reference_embedding_backward(const struct plim_op *op)
{
    const struct plim_array *dw = op->out[0], *dy = op->in[0], *indices = op->in[1];
    if (!is_embedding(dw, indices, dy)) return PLIM_INVALID;
    int64_t rows = dw->shape[0], width = dw->shape[1], tokens = plim_array_elements(indices);
    double *sum = plim_reference_numbers(2 * width);
    int64_t *last = calloc((size_t)(rows + tokens + 1), sizeof(*last));
    enum plim_status st = sum && last ? PLIM_OK : PLIM_NOMEM;
    if (st == PLIM_OK) st = chain_tokens(indices, rows, last, last + rows);
    for (int64_t i = 0; i < rows && st == PLIM_OK; i++) {
        if (last[i] < 0) continue;
        plim_elements_read(dw, i * width, width, sum);
        for (int64_t n = last[i]; n >= 0; n = last[rows + n]) {
            plim_elements_read(dy, n * width, width, sum + width);
            for (int64_t j = 0; j < width; j++) sum[j] += sum[width + j];
        }
        plim_elements_write(dw, i * width, width, sum);
    }
    free(last);
    free(sum);
    return st;
}
