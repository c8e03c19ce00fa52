/* Convolutions of patches, and along rows. */
#include "kernels/args_convolution.h"
#include "plan_rows.h"

enum { IMAGE_DIMS = 4, MAX_GRID_Y = 65535, MAX_BLOCKS = 0x7fffffff };

/* --- patches ---------------------------------------------------------------------------------- */

static struct plim_cuda_images images_of(const struct plim_array *a)
{
    struct plim_cuda_images x = {.data = a->data, .dtype = a->dtype};
    for (int d = 0; d < IMAGE_DIMS; d++) x.step[d] = a->stride[d];
    return x;
}

static bool are_patches(const struct plim_array *x, const struct plim_array *w, const struct plim_array *y)
{
    if (x->ndim != IMAGE_DIMS || w->ndim != IMAGE_DIMS || y->ndim != IMAGE_DIMS) return false;
    int64_t height = w->shape[2], width = w->shape[3];
    return height > 0 && width > 0 && w->shape[1] == x->shape[1] && y->shape[0] == x->shape[0] &&
           y->shape[1] == w->shape[0] && y->shape[2] == x->shape[2] / height && y->shape[3] == x->shape[3] / width;
}

static enum plim_status describe_patches(const struct plim_array *x, const struct plim_array *w,
                                         const struct plim_array *y, struct plim_patches_args *args)
{
    if (!are_patches(x, w, y)) return PLIM_INVALID;
    if (!plim_dtype_is_float(x->dtype) || !plim_dtype_is_float(w->dtype) || !plim_dtype_is_float(y->dtype) ||
        !plim_cuda_plan_is_contiguous(w))
        return PLIM_UNSUPPORTED;
    *args = (struct plim_patches_args){.images = images_of(x),
                                       .results = images_of(y),
                                       .weight = plim_cuda_plan_flat(w),
                                       .patches = y->shape[0] * y->shape[2] * y->shape[3],
                                       .kernels = w->shape[0],
                                       .elements = w->shape[1] * w->shape[2] * w->shape[3],
                                       .down = plim_cuda_plan_divider(y->shape[2]),
                                       .across = plim_cuda_plan_divider(y->shape[3]),
                                       .height = plim_cuda_plan_divider(w->shape[2]),
                                       .width = plim_cuda_plan_divider(w->shape[3])};
    return PLIM_OK;
}

static enum plim_status launch_product(const struct plim_cuda_plan *plan, const char *kernel, int64_t rows,
                                       int64_t columns, const struct plim_patches_args *args)
{
    int64_t down = (rows + PLIM_PATCHES_TILE - 1) / PLIM_PATCHES_TILE,
            across = (columns + PLIM_PATCHES_TILE - 1) / PLIM_PATCHES_TILE;
    if (!down || !across) return PLIM_OK;
    if (down > MAX_BLOCKS || across > MAX_GRID_Y) return PLIM_UNSUPPORTED;
    const struct plim_cuda_launch launch = {.kernel = kernel,
                                            .grid = {(uint32_t)down, (uint32_t)across, 1},
                                            .block = {PLIM_CONVOLUTION_THREADS, 1, 1},
                                            .args = args,
                                            .args_bytes = sizeof *args};
    return plan->emit(plan->user, &launch);
}

enum plim_status plim_cuda_plan_patches(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *bias = op->n_in > 2 ? op->in[2] : NULL;
    struct plim_patches_args args;
    enum plim_status st = describe_patches(op->in[0], op->in[1], op->out[0], &args);
    if (st != PLIM_OK) return st;
    if (bias && plim_array_elements(bias) != args.kernels) return PLIM_INVALID;
    if (bias && (!plim_dtype_is_float(bias->dtype) || !plim_cuda_plan_is_contiguous(bias))) return PLIM_UNSUPPORTED;
    args.bias = plim_cuda_plan_flat(bias);
    return launch_product(plan, "patches", args.patches, args.kernels, &args);
}

enum plim_status plim_cuda_plan_patches_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    struct plim_patches_args args;
    enum plim_status st = describe_patches(op->in[1], op->out[0], op->in[0], &args);
    return st ? st : launch_product(plan, "patches_backward", args.kernels, args.elements, &args);
}

/* --- along rows ------------------------------------------------------------------------------- */

/* Checks rows (b, c, s), kernels (c, 1, k), results (b, c, l), and stores the zeros at either end of a row in
 * *padding. */
static enum plim_status check_depthwise(const struct plim_array *x, const struct plim_array *w,
                                        const struct plim_array *y, int64_t *padding)
{
    if (x->ndim != 3 || w->ndim != 3 || y->ndim != 3 || w->shape[1] != 1 || w->shape[0] != x->shape[1] ||
        y->shape[0] != x->shape[0] || y->shape[1] != x->shape[1])
        return PLIM_INVALID;
    int64_t around = y->shape[2] - x->shape[2] + w->shape[2] - 1;
    if (around < 0 || around % 2) return PLIM_INVALID;
    *padding = around / 2;
    bool flat = plim_cuda_plan_is_contiguous(x) && plim_cuda_plan_is_contiguous(w) && plim_cuda_plan_is_contiguous(y);
    return flat && plim_dtype_is_float(x->dtype) && plim_dtype_is_float(w->dtype) && plim_dtype_is_float(y->dtype)
               ? PLIM_OK
               : PLIM_UNSUPPORTED;
}

static enum plim_status convolve(const struct plim_cuda_plan *plan, const struct plim_array *to,
                                 const struct plim_array *from, const struct plim_array *weight,
                                 const struct plim_array *bias, int64_t padding, bool back)
{
    struct plim_depthwise_args args = {.to = plim_cuda_plan_flat(to),
                                             .from = plim_cuda_plan_flat(from),
                                             .weight = plim_cuda_plan_flat(weight),
                                             .elements = (uint64_t)plim_array_elements(to),
                                             .to_length = plim_cuda_plan_divider(to->shape[2]),
                                             .channels = plim_cuda_plan_divider(to->shape[1]),
                                             .from_length = from->shape[2],
                                             .kernel = weight->shape[2],
                                             .padding = padding,
                                             .back = back};
    if (!args.elements) return PLIM_OK;
    if (bias) args.bias = plim_cuda_plan_flat(bias);
    return plim_cuda_plan_launch(plan, "depthwise",
                                 plim_cuda_plan_all_blocks((int64_t)args.elements, PLIM_CONVOLUTION_THREADS),
                                 PLIM_CONVOLUTION_THREADS, &args, sizeof args);
}

enum plim_status plim_cuda_plan_depthwise(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    int64_t padding;
    enum plim_status st = check_depthwise(op->in[0], op->in[1], op->out[0], &padding);
    const struct plim_array *bias = op->n_in > 2 ? op->in[2] : NULL;
    if (st) return st;
    if (bias && (bias->ndim != 1 || bias->shape[0] != op->in[1]->shape[0])) return PLIM_INVALID;
    if (bias && !(plim_cuda_plan_is_contiguous(bias) && plim_dtype_is_float(bias->dtype))) return PLIM_UNSUPPORTED;
    return convolve(plan, op->out[0], op->in[0], op->in[1], bias, padding, false);
}

enum plim_status plim_cuda_plan_depthwise_backward(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    int64_t padding;
    enum plim_status st = check_depthwise(op->out[0], op->in[1], op->in[0], &padding);
    return st ? st : convolve(plan, op->out[0], op->in[0], op->in[1], NULL, padding, true);
}

enum plim_status plim_cuda_plan_depthwise_backward_weight(const struct plim_cuda_plan *plan, const struct plim_op *op)
{
    const struct plim_array *dout = op->in[0], *x = op->in[1], *dweight = op->out[0];
    struct plim_depthwise_weight_args args = {.dweight = plim_cuda_plan_flat(dweight),
                                              .dout = plim_cuda_plan_flat(dout),
                                              .x = plim_cuda_plan_flat(x)};
    enum plim_status st = check_depthwise(x, dweight, dout, &args.padding);
    if (st != PLIM_OK) return st;
    args.results = plim_cuda_plan_divider(dout->shape[2]);
    args.batch = dout->shape[2] > 0 ? x->shape[0] : 0;
    args.channels = x->shape[1];
    args.length = x->shape[2];
    args.kernel = dweight->shape[2];
    int64_t elements = args.channels * args.kernel;
    if (!elements) return PLIM_OK;
    int64_t blocks = plim_cuda_plan_all_blocks(elements * PLIM_CONVOLUTION_THREADS, PLIM_CONVOLUTION_THREADS);
    return plim_cuda_plan_launch(plan, "depthwise_backward_weight", blocks, PLIM_CONVOLUTION_THREADS, &args,
                                 sizeof args);
}
