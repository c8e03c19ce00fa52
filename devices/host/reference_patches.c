/* A convolution whose windows do not overlap. */
#include "reference_internal.h"

#include <stdlib.h>

/* Views an image (b, c, h, w) as patches (b, rows, columns, c, height, width), as large as the kernels w. */
static struct plim_array as_patches(const struct plim_array *x, const struct plim_array *w)
{
    const int64_t *s = x->stride, height = w->shape[2], width = w->shape[3];
    return (struct plim_array){
        .data = x->data,
        .ndim = 6,
        .dtype = x->dtype,
        .shape = {x->shape[0], x->shape[2] / height, x->shape[3] / width, x->shape[1], height, width},
        .stride = {s[0], height * s[2], width * s[3], s[1], s[2], s[3]}};
}

/* Views (b, k, rows, columns) so that element (patch, k) belongs to a patch. */
static struct plim_array by_patch(const struct plim_array *y)
{
    struct plim_array view = *y;
    static const int order[4] = {0, 2, 3, 1};
    for (int d = 0; d < 4; d++) {
        view.shape[d] = y->shape[order[d]];
        view.stride[d] = y->stride[order[d]];
    }
    return view;
}

static bool fits(const struct plim_array *x, const struct plim_array *w, const struct plim_array *y)
{
    return x->ndim == 4 && w->ndim == 4 && y->ndim == 4 && w->shape[2] > 0 && w->shape[3] > 0 &&
           w->shape[1] == x->shape[1] && y->shape[0] == x->shape[0] &&
           y->shape[1] == w->shape[0] && y->shape[2] == x->shape[2] / w->shape[2] &&
           y->shape[3] == x->shape[3] / w->shape[3];
}

enum plim_status plim_reference_patches(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *w = op->in[1], *bias = plim_reference_input(op, 2);
    if (!fits(op->in[0], w, y)) return PLIM_INVALID;
    struct plim_array x = as_patches(op->in[0], w), out = by_patch(y);
    int64_t kernels = w->shape[0], k = w->shape[1] * w->shape[2] * w->shape[3];
    double *patch = plim_reference_numbers(2 * k);
    if (!patch) return PLIM_NOMEM;
    for (int64_t i = 0; i < plim_array_elements(&out) / kernels; i++) {
        plim_elements_read(&x, i * k, k, patch);
        for (int64_t j = 0; j < kernels; j++) {
            double sum = 0;
            if (bias) plim_elements_read(bias, j, 1, &sum);
            plim_elements_read(w, j * k, k, patch + k);
            for (int64_t l = 0; l < k; l++) sum += patch[l] * patch[k + l];
            plim_elements_write(&out, i * kernels + j, 1, &sum);
        }
    }
    free(patch);
    return PLIM_OK;
}

enum plim_status plim_reference_patches_backward(const struct plim_op *op)
{
    const struct plim_array *dw = op->out[0], *dy = op->in[0];
    if (!fits(op->in[1], dw, dy)) return PLIM_INVALID;
    struct plim_array x = as_patches(op->in[1], dw), grad = by_patch(dy);
    int64_t kernels = dw->shape[0], k = dw->shape[1] * dw->shape[2] * dw->shape[3];
    double *patch = plim_reference_numbers(2 * k);
    if (!patch) return PLIM_NOMEM;
    for (int64_t j = 0; j < kernels; j++) {
        for (int64_t l = 0; l < k; l++) patch[k + l] = 0;
        for (int64_t i = 0; i < plim_array_elements(&grad) / kernels; i++) {
            double g;
            plim_elements_read(&x, i * k, k, patch);
            plim_elements_read(&grad, i * kernels + j, 1, &g);
            for (int64_t l = 0; l < k; l++) patch[k + l] += g * patch[l];
        }
        plim_elements_write(dw, j * k, k, patch + k);
    }
    free(patch);
    return PLIM_OK;
}
