/* The convolutions of the models here: of images, with windows that do not overlap, and along rows, over all channels
 * together or per channel. Also pooling and unfolding of images. */
#include "devices/needs/needs.h"
#include "ops.h"

enum { INPUT, WEIGHT, BIAS };

/* Casts operands as autocast does, the last one first, the order in which C++ evaluates arguments, and holds them
 * during the call. */
static void enter(struct engine *e, int count, struct tensor **operands, bool *was)
{
    for (int i = count; i-- > 0;) {
        operands[i] = autocast_low(e, operands[i]);
        was[i] = tensor_enter(operands[i]);
    }
}

/* Returns a node that has saved the input and the weight; NULL if none is needed. */
static struct node *node_of(struct engine *e, const struct node_kind *kind, int count, struct tensor *const *operands)
{
    struct node *n = e->halted ? NULL : op_node(e, kind, count, operands);
    if (!n) return NULL;
    node_save(e, n, INPUT, operands[INPUT]);
    node_save(e, n, WEIGHT, operands[WEIGHT]);
    return n;
}

static struct tensor *leave(struct engine *e, struct node *n, struct tensor *y, int count,
                            struct tensor *const *operands, const bool *was)
{
    y = op_done(e, n, y, 0, NULL);
    for (int i = 0; i < count; i++) tensor_leave(e, operands[i], was[i]);
    return y;
}

/* --- an image as patches (Conv2d with kernel_size = stride), by cuDNN --------------------------- */

/* Frames count as channels, one after another. */
static struct plim_array flattened(const struct plim_array *x)
{
    struct plim_array flat = *x;
    if (x->ndim == 4) return flat;
    flat.ndim = 4;
    flat.shape[1] *= x->shape[2];
    for (int i = 2; i < 4; i++) flat.shape[i] = x->shape[i + 1];
    for (int i = 1; i < 4; i++) flat.stride[i] = x->stride[i + 1];
    return flat;
}

/* Launches with cuDNN's workspace, which is allocated for the call. */
static void launch_patches(struct engine *e, struct plim_op *op, const struct tensor *x,
                           const struct tensor *weight, const struct tensor *y)
{
    int64_t bytes = plim_patches_workspace_bytes(&e->device->info, &x->a, &weight->a, &y->a);
    struct tensor *workspace = bytes ? tensor_keep(tensor_empty_bytes(e, bytes)) : NULL;
    if (!e->halted) engine_launch(e, op);
    tensor_drop(e, workspace);
}

/* ConvolutionBackward0: the gradients of weight and bias; images have none. */
static void patches_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    struct tensor *x = node_saved(e, n, INPUT), *weight = node_saved(e, n, WEIGHT);
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)weight->a.dtype;
    if (node_wants(n, WEIGHT)) {
        struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
        struct tensor *dw = tensor_keep(tensor_empty_like(e, weight, dtype));
        struct plim_array flat_dw = flattened(&dw->a), flat_dy = flattened(&dy->a), flat_x = flattened(&x->a);
        struct plim_op op = {.kind = PLIM_OP_PATCHES_BACKWARD,
                             .n_out = 1,
                             .n_in = 2,
                             .out = {&flat_dw},
                             .in = {&flat_dy, &flat_x}};
        launch_patches(e, &op, x, weight, dy);
        tensor_drop(e, dy);
        out[WEIGHT] = dw;
    }
    if (n->edge_count > BIAS && node_wants(n, BIAS))
        out[BIAS] = tensor_keep(op_reduce(e, grads[0], ((1u << weight->a.ndim) - 1) & ~2u, false, PLIM_BINARY_ADD, 1,
                                          dtype));
}
static const struct node_kind patches_kind = {"ConvolutionBackward0", patches_backward};

struct tensor *op_patches(struct engine *e, struct tensor *x, struct tensor *weight,
                          struct tensor *bias)
{
    struct tensor *operands[3] = {x, weight, bias};
    int count = bias ? 3 : 2;
    bool was[3];
    if (e->halted) return op_halted(e, count, operands);
    enter(e, count, operands, was);
    x = operands[INPUT], weight = operands[WEIGHT], bias = operands[BIAS];
    struct node *n = node_of(e, &patches_kind, count, operands);
    struct tensor *y = e->poison;
    if (!e->halted) {
        int64_t shape[PLIM_MAX_DIMS] = {tensor_size(x, 0), tensor_size(weight, 0)};
        for (int i = 2; i < x->a.ndim; i++) shape[i] = tensor_size(x, i) / tensor_size(weight, i);
        y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape);
        struct plim_array flat_y = flattened(&y->a), flat_x = flattened(&x->a), flat_weight = flattened(&weight->a);
        struct plim_op op = {.kind = PLIM_OP_PATCHES,
                             .n_out = 1,
                             .n_in = count,
                             .out = {&flat_y},
                             .in = {&flat_x, &flat_weight, bias ? &bias->a : NULL}};
        if (!e->halted) launch_patches(e, &op, x, weight, y);
    }
    return leave(e, n, y, count, operands, was);
}

/* --- along rows, of all channels together (conv1d), by cuDNN -------------------------------------- */

/* A row (c, l) as an image (c, 1, l). */
static struct plim_array as_row(const struct plim_array *x)
{
    struct plim_array row = *x;
    row.ndim = 4;
    row.shape[3] = x->shape[2], row.stride[3] = x->stride[2];
    row.shape[2] = 1;
    return row;
}

/* `count` windows of rows x (b, c, s), `step` apart, as columns of an image; they must not overlap. */
static struct plim_array windows_of(const struct plim_array *x, int64_t taps, int64_t count, int64_t step)
{
    struct plim_array windows = *x;
    windows.ndim = 4;
    windows.shape[2] = taps, windows.stride[2] = x->stride[2];
    windows.shape[3] = count, windows.stride[3] = step * x->stride[2];
    return windows;
}

static struct plim_array as_columns_of(const struct plim_array *weight)
{
    struct plim_array columns = *weight;
    columns.ndim = 4;
    columns.shape[3] = columns.stride[3] = 1;
    return columns;
}

/* Returns x (b, c, s) in rows of `length`: its elements are `step` apart after `before` zeros, all others are zeros;
 * named. cuDNN's kernels need no memory for it: on a simulated device x itself is returned. */
static struct tensor *among_zeros(struct engine *e, struct tensor *x, int64_t length, int64_t before, int64_t step)
{
    if (e->halted || e->device->info.simulated) return tensor_ref(x);
    int64_t shape[] = {tensor_size(x, 0), tensor_size(x, 1), length}, stride[] = {shape[1] * length, length, step};
    struct tensor *y = tensor_keep(op_full(e, (enum plim_dtype)x->a.dtype, 3, shape, 0));
    if (e->halted) return y;
    struct tensor *part = tensor_keep(tensor_alias(e, y, 3, x->a.shape, stride, before));
    op_copy_(e, part, x);
    tensor_drop(e, part);
    return y;
}

/* Returns weight (k, c, taps) as (c, k, taps), with its taps reversed; named. On a simulated device the weight itself,
 * as in among_zeros(). */
static struct tensor *turned(struct engine *e, struct tensor *weight)
{
    if (e->halted || e->device->info.simulated) return tensor_ref(weight);
    const int64_t *n = weight->a.shape, shape[] = {n[1], n[0]};
    struct tensor *y = tensor_keep(tensor_empty(e, (enum plim_dtype)weight->a.dtype, SHAPE(n[1], n[0], n[2])));
    for (int64_t i = 0; i < n[2] && !e->halted; i++) {
        const int64_t to[] = {n[0] * n[2], n[2]}, from[] = {n[2], n[1] * n[2]};
        struct tensor *tap = tensor_keep(tensor_alias(e, y, 2, shape, to, i));
        struct tensor *other = tensor_keep(tensor_alias(e, weight, 2, shape, from, n[2] - 1 - i));
        op_copy_(e, tap, other);
        tensor_drop_all(e, tap, other);
    }
    return y;
}

/* out <- a, b, [bias]; `x`, `weight` and `y` are the convolution's operands and result, or their gradients. */
static void launch_conv1d(struct engine *e, struct plim_op op, bool is_forward, const struct tensor *x,
                          const struct tensor *weight, const struct tensor *y)
{
    int64_t bytes = plim_conv1d_workspace_bytes(&e->device->info, is_forward, &x->a, &weight->a, &y->a);
    struct tensor *workspace = bytes ? tensor_keep(tensor_empty_bytes(e, bytes)) : NULL;
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, workspace);
}

enum { STEP, PADDING }; /* indices of a node's ints */

/* Returns the gradient of x (b, c, s): dy's elements, as far apart as the windows, convolved with the reversed kernels;
 * named. */
static struct tensor *conv1d_input_gradient(struct engine *e, const struct node *n, struct tensor *x,
                                            struct tensor *weight, struct tensor *dy)
{
    int64_t taps = tensor_size(weight, 2), length = tensor_size(x, 2);
    struct tensor *dx = tensor_keep(tensor_empty_like(e, x, (enum plim_dtype)dy->a.dtype));
    struct tensor *spread = among_zeros(e, dy, length + taps - 1, taps - 1 - n->ints[PADDING], n->ints[STEP]);
    struct tensor *kernels = turned(e, weight);
    if (e->halted) return dx;
    struct plim_array out = as_row(&dx->a), columns = as_columns_of(&kernels->a);
    struct plim_array windows = windows_of(&spread->a, taps, length, 1);
    columns.shape[0] = tensor_size(x, 1), columns.shape[1] = tensor_size(dy, 1);
    columns.stride[0] = columns.shape[1] * taps, columns.stride[1] = taps;
    launch_conv1d(e, (struct plim_op){.kind = PLIM_OP_PATCHES, .n_out = 1, .n_in = 2, .out = {&out},
                                      .in = {&windows, &columns}}, false, x, weight, dy);
    tensor_drop_all(e, spread, kernels);
    return dx;
}

static struct tensor *conv1d_weight_gradient(struct engine *e, const struct node *n, struct tensor *x,
                                             struct tensor *weight, struct tensor *dy)
{
    int64_t taps = tensor_size(weight, 2);
    struct tensor *dw = tensor_keep(tensor_empty_like(e, weight, (enum plim_dtype)dy->a.dtype));
    struct tensor *padded = among_zeros(e, x, tensor_size(x, 2) + 2 * n->ints[PADDING], n->ints[PADDING], 1);
    if (e->halted) return dw;
    struct plim_array out = as_columns_of(&dw->a), rows = as_row(&dy->a);
    struct plim_array windows = windows_of(&padded->a, taps, tensor_size(dy, 2), n->ints[STEP]);
    launch_conv1d(e, (struct plim_op){.kind = PLIM_OP_PATCHES_BACKWARD, .n_out = 1, .n_in = 2, .out = {&out},
                                      .in = {&rows, &windows}}, false, x, weight, dy);
    tensor_drop(e, padded);
    return dw;
}

static void conv1d_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, INPUT), *weight = node_saved(e, n, WEIGHT);
    if (e->halted) return;
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    if (node_wants(n, INPUT) && !e->halted) out[INPUT] = conv1d_input_gradient(e, n, x, weight, dy);
    if (node_wants(n, WEIGHT) && !e->halted) out[WEIGHT] = conv1d_weight_gradient(e, n, x, weight, dy);
    tensor_drop(e, dy);
    if (node_wants(n, BIAS) && !e->halted)
        out[BIAS] = tensor_keep(op_reduce(e, grads[0], 5, false, PLIM_BINARY_ADD, 1, (enum plim_dtype)weight->a.dtype));
}
static const struct node_kind conv1d_kind = {"ConvolutionBackward0", conv1d_backward};

struct tensor *op_conv1d(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias, int64_t step,
                         int64_t padding)
{
    enum { OPERANDS = 3 };
    struct tensor *operands[OPERANDS] = {x, weight, bias};
    bool was[OPERANDS], grad = e->grad_enabled;
    if (e->halted) return op_halted(e, OPERANDS, operands);
    enter(e, OPERANDS, operands, was);
    x = operands[INPUT], weight = operands[WEIGHT], bias = operands[BIAS];
    struct node *n = node_of(e, &conv1d_kind, OPERANDS, operands);
    if (n) n->ints[STEP] = step, n->ints[PADDING] = padding;
    struct tensor *y = e->poison;
    e->grad_enabled = false;
    if (!e->halted) {
        int64_t taps = tensor_size(weight, 2), length = tensor_size(x, 2) + 2 * padding;
        int64_t count = (length - taps) / step + 1;
        y = tensor_empty(e, (enum plim_dtype)x->a.dtype, SHAPE(tensor_size(x, 0), tensor_size(weight, 0), count));
        struct tensor *padded = among_zeros(e, x, length, padding, 1);
        struct plim_array out = as_row(&y->a), columns = as_columns_of(&weight->a);
        struct plim_array windows = windows_of(&padded->a, taps, count, step);
        if (!e->halted)
            launch_conv1d(e, (struct plim_op){.kind = PLIM_OP_PATCHES, .n_out = 1, .n_in = 3, .out = {&out},
                                              .in = {&windows, &columns, &bias->a}}, true, x, weight, y);
        tensor_drop(e, padded);
    }
    e->grad_enabled = grad;
    return leave(e, n, y, OPERANDS, operands, was);
}

/* --- means of squares of an image (AvgPool2d with stride = kernel_size), by ATen's kernels (AveragePool2d.cu) ----- */

enum { SQUARE_ROWS = 3, SQUARE_COLUMNS = 5 }; /* dimensions of an image as squares: (b, c, h, size, w, size) */

static struct tensor *as_squares(struct engine *e, struct tensor *x, int64_t size)
{
    int64_t rows = tensor_size(x, 2) / size, columns = tensor_size(x, 3) / size;
    return op_view(e, x, SHAPE(tensor_size(x, 0), tensor_size(x, 1), rows, size, columns, size));
}

static void avg_pool_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    int64_t size = n->ints[0];
    struct tensor *x = node_saved(e, n, INPUT);
    if (e->halted) return;
    struct tensor *dx = tensor_keep(tensor_empty_like(e, x, (enum plim_dtype)x->a.dtype));
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    int64_t few[] = {tensor_size(dy, 0), tensor_size(dy, 1), tensor_size(dy, 2), 1, tensor_size(dy, 3), 1};
    int64_t all[] = {few[0], few[1], few[2], size, few[4], size};
    struct tensor *squares = tensor_keep(as_squares(e, dx, size));
    struct tensor *wide = tensor_keep(op_expand(e, op_view(e, dy, 6, few), 6, all));
    op_copy_(e, squares, wide);
    op_binary_scalar_(e, PLIM_BINARY_MUL, dx, 1 / (double)(size * size));
    tensor_drop_all(e, squares, wide, dy);
    out[INPUT] = dx;
}
static const struct node_kind avg_pool_kind = {"AvgPool2DBackward0", avg_pool_backward};

struct tensor *op_avg_pool(struct engine *e, struct tensor *x, int64_t size)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &avg_pool_kind, 1, &x);
    if (n) node_save(e, n, INPUT, x);
    if (n) n->ints[0] = size;
    bool was = tensor_enter(x), grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *squares = tensor_keep(as_squares(e, x, size));
    struct tensor *y = op_reduce(e, squares, 1u << SQUARE_ROWS | 1u << SQUARE_COLUMNS, false, PLIM_BINARY_ADD,
                                 1 / (double)(size * size), (enum plim_dtype)x->a.dtype);
    tensor_drop(e, squares);
    e->grad_enabled = grad;
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

/* --- squares of an image as columns (unfold with stride = kernel_size), by ATen's kernels (Im2Col.cu) ------------ */

/* Returns a view (b, c, size, size, h / size, w / size) of x (b, c, h, w), named. */
static struct tensor *as_columns(struct engine *e, struct tensor *x, int64_t size)
{
    static const int order[] = {0, 1, SQUARE_ROWS, SQUARE_COLUMNS, SQUARE_ROWS - 1, SQUARE_COLUMNS - 1};
    return tensor_keep(op_permute(e, as_squares(e, x, size), 6, order));
}

/* Returns a view of y (b, c size size, squares) in the shape of as_columns(), named. */
static struct tensor *as_they_are(struct engine *e, struct tensor *y, const struct tensor *columns)
{
    return tensor_keep(op_view(e, y, 6, columns->a.shape));
}

static void unfold_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    enum { SHAPE_AT = 1 };
    struct tensor *dx = tensor_keep(tensor_empty(e, (enum plim_dtype)grads[0]->a.dtype, 4, n->ints + SHAPE_AT));
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0]));
    if (e->halted) return;
    struct tensor *columns = as_columns(e, dx, n->ints[0]), *given = as_they_are(e, dy, columns);
    op_copy_(e, columns, given);
    tensor_drop_all(e, columns, given, dy);
    out[INPUT] = dx;
}
static const struct node_kind unfold_kind = {"Im2ColBackward0", unfold_backward};

struct tensor *op_unfold(struct engine *e, struct tensor *x, int64_t size)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &unfold_kind, 1, &x);
    if (n) n->ints[0] = size;
    for (int i = 0; i < 4 && n; i++) n->ints[1 + i] = x->a.shape[i];
    bool was = tensor_enter(x), grad = e->grad_enabled;
    e->grad_enabled = false;
    int64_t squares = tensor_size(x, 2) / size * (tensor_size(x, 3) / size);
    struct tensor *y = tensor_keep(tensor_empty(
        e, (enum plim_dtype)x->a.dtype, SHAPE(tensor_size(x, 0), tensor_size(x, 1) * size * size, squares)));
    struct tensor *images = tensor_hold(op_contiguous(e, x)), *columns = as_columns(e, images, size);
    struct tensor *into = e->halted ? NULL : as_they_are(e, y, columns);
    if (!e->halted) op_copy_(e, into, columns);
    tensor_drop_all(e, into, columns, images);
    e->grad_enabled = grad;
    y = op_done(e, n, tensor_yield(y), 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

/* --- along rows, each channel with a kernel of its own (conv1d with groups = channels), by ATen's own kernels
 * (native/cuda/DepthwiseConv2d.cu) --------------------------------------------------------------- */

static void launch_depthwise(struct engine *e, enum plim_op_kind kind, struct tensor *out, struct tensor *a,
                             struct tensor *b, struct tensor *bias)
{
    struct plim_op op = {.kind = kind,
                         .n_out = 1,
                         .n_in = bias ? 3 : 2,
                         .out = {&out->a},
                         .in = {&a->a, &b->a, bias ? &bias->a : NULL}};
    if (!e->halted) engine_launch(e, &op);
}

/* convolution_backward: a row becomes an image, for which it must be contiguous; the
 * weight's gradient is computed first, the bias's last. */
static void depthwise_backward(struct engine *e, struct node *n, struct tensor **grads,
                               struct tensor **out)
{
    struct tensor *x = node_saved(e, n, INPUT), *weight = node_saved(e, n, WEIGHT);
    if (e->halted) return;
    struct tensor *dy = tensor_hold(op_contiguous(e, grads[0])),
                  *rows = tensor_hold(op_contiguous(e, x));
    enum plim_dtype dtype = (enum plim_dtype)dy->a.dtype;
    if (node_wants(n, WEIGHT)) {
        out[WEIGHT] = tensor_keep(tensor_empty(e, dtype, weight->a.ndim, weight->a.shape));
        launch_depthwise(e, PLIM_OP_DEPTHWISE_BACKWARD_WEIGHT, out[WEIGHT], dy, rows, NULL);
    }
    if (node_wants(n, INPUT)) {
        out[INPUT] = tensor_keep(tensor_empty(e, dtype, x->a.ndim, x->a.shape));
        launch_depthwise(e, PLIM_OP_DEPTHWISE_BACKWARD, out[INPUT], dy, weight, NULL);
    }
    tensor_drop_all(e, rows, dy);
    if (n->edge_count > BIAS && node_wants(n, BIAS))
        out[BIAS] = tensor_keep(op_reduce(e, grads[0], 5, false, PLIM_BINARY_ADD, 1, dtype));
}
static const struct node_kind depthwise_kind = {"ConvolutionBackward0", depthwise_backward};

struct tensor *op_depthwise(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias,
                            int64_t padding)
{
    struct tensor *operands[3] = {x, weight, bias};
    int count = bias ? 3 : 2;
    bool was[3];
    if (e->halted) return op_halted(e, count, operands);
    enter(e, count, operands, was);
    x = operands[INPUT], weight = operands[WEIGHT], bias = operands[BIAS];
    struct node *n = node_of(e, &depthwise_kind, count, operands);
    struct tensor *y = e->poison;
    if (!e->halted) {
        struct tensor *rows = tensor_hold(tensor_is_contiguous(x) ? x : op_detached_clone(e, x));
        int64_t length = tensor_size(x, 2) + 2 * padding - tensor_size(weight, 2) + 1;
        y = tensor_empty(e, (enum plim_dtype)x->a.dtype,
                         SHAPE(tensor_size(x, 0), tensor_size(x, 1), length));
        launch_depthwise(e, PLIM_OP_DEPTHWISE, y, rows, weight, bias);
        tensor_drop(e, rows);
    }
    return leave(e, n, y, count, operands, was);
}
