/* causal-conv1d's convolution along rows, through silu (causal_conv1d_ref() of causal-conv1d 1.7.0,
 * causal_conv1d/causal_conv1d_interface.py). */
#include "reference_internal.h"

#include <math.h>

/* x (b, channels, s), weight (channels, taps), document (b, s) or NULL */
struct causal {
    const struct plim_array *x, *weight, *document;
    int64_t batch, channels, length, taps;
};

static bool is_causal(const struct plim_array *x, const struct plim_array *weight, const struct plim_array *document,
                      struct causal *c)
{
    if (x->ndim != 3 || weight->ndim != 2 || weight->shape[0] != x->shape[1]) return false;
    *c = (struct causal){x, weight, document, x->shape[0], x->shape[1], x->shape[2], weight->shape[1]};
    return !document || (document->ndim == 2 && document->shape[0] == c->batch && document->shape[1] == c->length);
}

static double number(const struct plim_array *a, int64_t i)
{
    double x;
    plim_elements_read(a, i, 1, &x);
    return x;
}

/* True if token `to` of a row may use token `from`: it exists and belongs to the same document. */
static bool may_use(const struct causal *c, int64_t row, int64_t to, int64_t from)
{
    if (from < 0 || to >= c->length) return false;
    int64_t first = row / c->channels * c->length;
    return !c->document || number(c->document, first + to) == number(c->document, first + from);
}

/* Returns the sum for token t; a row is one channel of one batch element. */
static double sum_at(const struct causal *c, int64_t row, int64_t t)
{
    double sum = 0;
    for (int64_t i = 0; i < c->taps; i++) {
        int64_t from = t + i - c->taps + 1;
        if (!may_use(c, row, t, from)) continue;
        sum += number(c->x, row * c->length + from) * number(c->weight, row % c->channels * c->taps + i);
    }
    return sum;
}

enum plim_status plim_reference_causal_conv(const struct plim_op *op)
{
    struct causal c;
    if (!is_causal(op->in[0], op->in[1], plim_reference_input(op, 2), &c) ||
        !plim_elements_same_shape(op->out[0], c.x))
        return PLIM_INVALID;
    for (int64_t row = 0; row < c.batch * c.channels; row++)
        for (int64_t t = 0; t < c.length; t++) {
            double sum = sum_at(&c, row, t), y = sum / (1 + exp(-sum));
            plim_elements_write(op->out[0], row * c.length + t, 1, &y);
        }
    return PLIM_OK;
}

/* Returns the gradient of the sum for token t. */
static double sum_gradient(const struct causal *c, const struct plim_array *dout, int64_t row, int64_t t)
{
    double sum = sum_at(c, row, t), gate = 1 / (1 + exp(-sum));
    return number(dout, row * c->length + t) * gate * (1 + sum * (1 - gate));
}

static void weight_gradient(const struct causal *c, const struct plim_array *dout, const struct plim_array *dweight)
{
    for (int64_t place = 0; place < c->channels * c->taps; place++) {
        double sum = 0;
        for (int64_t row = place / c->taps; row < c->batch * c->channels; row += c->channels)
            for (int64_t t = 0; t < c->length; t++) {
                int64_t from = t + place % c->taps - c->taps + 1;
                if (may_use(c, row, t, from))
                    sum += sum_gradient(c, dout, row, t) * number(c->x, row * c->length + from);
            }
        plim_elements_write(dweight, place, 1, &sum);
    }
}

enum plim_status plim_reference_causal_conv_backward(const struct plim_op *op)
{
    const struct plim_array *dx = op->out[0], *dweight = op->out[1], *dout = op->in[0];
    struct causal c;
    if (!is_causal(op->in[1], op->in[2], plim_reference_input(op, 3), &c) || !plim_elements_same_shape(dx, c.x) ||
        !plim_elements_same_shape(dout, c.x) || !plim_elements_same_shape(dweight, c.weight))
        return PLIM_INVALID;
    for (int64_t row = 0; row < c.batch * c.channels; row++)
        for (int64_t t = 0; t < c.length; t++) {
            double sum = 0;
            for (int64_t i = 0; i < c.taps; i++) {
                int64_t to = t - i + c.taps - 1;
                if (may_use(&c, row, to, t))
                    sum += sum_gradient(&c, dout, row, to) * number(c.weight, row % c.channels * c.taps + i);
            }
            plim_elements_write(dx, row * c.length + t, 1, &sum);
        }
    weight_gradient(&c, dout, dweight);
    return PLIM_OK;
}
