/* A convolution along rows in which each channel has its own kernel. */
#include "reference_internal.h"

/* Rows (b, c, s), kernels (c, 1, k), results (b, c, l), with `padding` zeros at either end of a row. */
struct depthwise {
    const struct plim_array *x, *w, *y;
    int64_t batch, channels, length, kernel, results, padding;
};

static bool is_depthwise(const struct plim_array *x, const struct plim_array *w,
                         const struct plim_array *y, struct depthwise *d)
{
    if (x->ndim != 3 || w->ndim != 3 || y->ndim != 3 || w->shape[1] != 1 ||
        w->shape[0] != x->shape[1] || y->shape[0] != x->shape[0] || y->shape[1] != x->shape[1])
        return false;
    int64_t around = y->shape[2] - x->shape[2] + w->shape[2] - 1;
    *d = (struct depthwise){x,           w,           y,           x->shape[0], x->shape[1],
                            x->shape[2], w->shape[2], y->shape[2], around / 2};
    return around >= 0 && around % 2 == 0;
}

static double number(const struct plim_array *a, int64_t i)
{
    double x;
    plim_elements_read(a, i, 1, &x);
    return x;
}

/* to[i] <- bias (NULL: 0) plus the sum over k of from[i + k - padding] * w[k], or (`back`) of from[i - k + padding] *
 * w[k] */
static void convolve(const struct depthwise *d, const struct plim_array *from,
                     const struct plim_array *to, const struct plim_array *bias, bool back)
{
    int64_t length = from->shape[2], results = to->shape[2];
    for (int64_t row = 0; row < d->batch * d->channels; row++)
        for (int64_t i = 0; i < results; i++) {
            double sum = bias ? number(bias, row % d->channels) : 0;
            for (int64_t k = 0; k < d->kernel; k++) {
                int64_t at = back ? i - k + d->padding : i + k - d->padding;
                if (at < 0 || at >= length) continue;
                sum += number(from, row * length + at) *
                       number(d->w, row % d->channels * d->kernel + k);
            }
            plim_elements_write(to, row * results + i, 1, &sum);
        }
}

enum plim_status plim_reference_depthwise(const struct plim_op *op)
{
    struct depthwise d;
    if (!is_depthwise(op->in[0], op->in[1], op->out[0], &d)) return PLIM_INVALID;
    const struct plim_array *bias = op->n_in > 2 ? op->in[2] : NULL;
    if (bias && (bias->ndim != 1 || bias->shape[0] != d.channels)) return PLIM_INVALID;
    convolve(&d, d.x, d.y, bias, false);
    return PLIM_OK;
}

enum plim_status plim_reference_depthwise_backward(const struct plim_op *op)
{
    struct depthwise d;
    if (!is_depthwise(op->out[0], op->in[1], op->in[0], &d)) return PLIM_INVALID;
    convolve(&d, d.y, d.x, NULL, true);
    return PLIM_OK;
}

enum plim_status plim_reference_depthwise_backward_weight(const struct plim_op *op)
{
    struct depthwise d;
    if (!is_depthwise(op->in[1], op->out[0], op->in[0], &d)) return PLIM_INVALID;
    for (int64_t channel = 0; channel < d.channels; channel++)
        for (int64_t k = 0; k < d.kernel; k++) {
            double sum = 0;
            for (int64_t row = channel; row < d.batch * d.channels; row += d.channels)
                for (int64_t i = 0; i < d.results; i++) {
                    int64_t at = i + k - d.padding;
                    if (at >= 0 && at < d.length)
                        sum += number(d.y, row * d.results + i) * number(d.x, row * d.length + at);
                }
            plim_elements_write(d.w, channel * d.kernel + k, 1, &sum);
        }
    return PLIM_OK;
}
