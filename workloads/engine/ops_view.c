/* Views and copies. */
#include "ops.h"
#include <string.h>

static void pass_backward(struct engine *e, struct node *n, struct tensor **grads,
                          struct tensor **out)
{
    (void)e;
    (void)n;
    out[0] = tensor_ref(grads[0]);
}

static void reshape_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    out[0] = tensor_keep(op_reshape(e, grads[0], (int)n->ints[0], n->ints + 1));
}
static const struct node_kind view_kind = {"ViewBackward0", reshape_backward};
static const struct node_kind unsafe_view_kind = {"UnsafeViewBackward0", reshape_backward};

static struct tensor *view_as(struct engine *e, const struct node_kind *kind, struct tensor *x,
                              int ndim, const int64_t *shape, const int64_t *stride)
{
    struct node *n = op_node(e, kind, 1, &x);
    op_save_shape(n, x);
    struct tensor *y = tensor_alias(e, x, ndim, shape, stride, 0);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_view(struct engine *e, struct tensor *x, int ndim, const int64_t *shape)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t stride[PLIM_MAX_DIMS];
    if (!tensor_view_strides(x, ndim, shape, stride)) {
        engine_fail(e, PLIM_INTERNAL);
        return op_halted(e, 1, &x);
    }
    return view_as(e, &view_kind, x, ndim, shape, stride);
}

struct tensor *op_reshape(struct engine *e, struct tensor *x, int ndim, const int64_t *shape)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t stride[PLIM_MAX_DIMS];
    if (tensor_view_strides(x, ndim, shape, stride))
        return view_as(e, &view_kind, x, ndim, shape, stride);
    struct tensor *copy = op_clone(e, x);
    if (e->halted || !tensor_view_strides(copy, ndim, shape, stride)) return op_halted(e, 1, &copy);
    return view_as(e, &unsafe_view_kind, copy, ndim, shape, stride);
}

static void transpose_backward(struct engine *e, struct node *n, struct tensor **grads,
                               struct tensor **out)
{
    out[0] = tensor_keep(op_transpose(e, grads[0], (int)n->ints[0], (int)n->ints[1]));
}
static const struct node_kind transpose_kind = {"TransposeBackward0", transpose_backward};

struct tensor *op_transpose(struct engine *e, struct tensor *x, int a, int b)
{
    if (e->halted) return op_halted(e, 1, &x);
    a = tensor_dim(x, a);
    b = tensor_dim(x, b);
    struct node *n = op_node(e, &transpose_kind, 1, &x);
    if (n) n->ints[0] = a, n->ints[1] = b;
    struct tensor *y = tensor_alias(e, x, x->a.ndim, x->a.shape, x->a.stride, 0);
    y->a.shape[a] = x->a.shape[b];
    y->a.shape[b] = x->a.shape[a];
    y->a.stride[a] = x->a.stride[b];
    y->a.stride[b] = x->a.stride[a];
    return op_done(e, n, y, 1, &x);
}

static void permute_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    int inverse[PLIM_MAX_DIMS], ndim = grads[0]->a.ndim;
    for (int i = 0; i < ndim; i++) inverse[n->ints[i]] = i;
    out[0] = tensor_keep(op_permute(e, grads[0], ndim, inverse));
}
static const struct node_kind permute_kind = {"PermuteBackward0", permute_backward};

struct tensor *op_permute(struct engine *e, struct tensor *x, int ndim, const int *order)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &permute_kind, 1, &x);
    struct tensor *y = tensor_alias(e, x, ndim, x->a.shape, x->a.stride, 0);
    for (int i = 0; i < ndim; i++) {
        if (n) n->ints[i] = order[i];
        y->a.shape[i] = x->a.shape[order[i]];
        y->a.stride[i] = x->a.stride[order[i]];
    }
    return op_done(e, n, y, 1, &x);
}

static void unsqueeze_backward(struct engine *e, struct node *n, struct tensor **grads,
                               struct tensor **out)
{
    struct tensor *x = grads[0];
    int64_t shape[PLIM_MAX_DIMS], stride[PLIM_MAX_DIMS];
    int d = (int)n->ints[0], ndim = x->a.ndim - 1;
    for (int i = 0; i < ndim; i++) {
        shape[i] = x->a.shape[i + (i >= d)];
        stride[i] = x->a.stride[i + (i >= d)];
    }
    out[0] = tensor_keep(tensor_alias(e, x, ndim, shape, stride, 0));
}
static const struct node_kind unsqueeze_kind = {"UnsqueezeBackward0", unsqueeze_backward};

struct tensor *op_unsqueeze(struct engine *e, struct tensor *x, int dim)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t shape[PLIM_MAX_DIMS], stride[PLIM_MAX_DIMS];
    int d = dim < 0 ? dim + x->a.ndim + 1 : dim, ndim = x->a.ndim + 1;
    for (int i = 0; i < ndim; i++) {
        int from = i - (i > d);
        shape[i] = i == d ? 1 : x->a.shape[from];
        stride[i] =
            i == d ? (d < x->a.ndim ? x->a.shape[d] * x->a.stride[d] : 1) : x->a.stride[from];
    }
    struct node *n = op_node(e, &unsqueeze_kind, 1, &x);
    if (n) n->ints[0] = d;
    struct tensor *y = tensor_alias(e, x, ndim, shape, stride, 0);
    return op_done(e, n, y, 1, &x);
}

/* --- slices and parts ------------------------------------------------------------------------- */

/* x[..., start:start + length * step:step, ...] */
static struct tensor *steps(struct engine *e, const struct tensor *x, int dim, int64_t start,
                            int64_t length, int64_t step)
{
    struct tensor *y =
        tensor_alias(e, x, x->a.ndim, x->a.shape, x->a.stride, start * x->a.stride[dim]);
    if (y == e->poison) return y;
    y->a.shape[dim] = length;
    y->a.stride[dim] *= step;
    return y;
}

static struct tensor *part(struct engine *e, const struct tensor *x, int dim, int64_t start,
                           int64_t length)
{
    return steps(e, x, dim, start, length, 1);
}

void op_copy_(struct engine *e, struct tensor *to, struct tensor *from)
{
    struct plim_op op = {
        .kind = PLIM_OP_COPY, .n_out = 1, .n_in = 1, .out = {&to->a}, .in = {&from->a}};
    if (!e->halted) engine_launch(e, &op);
}

/* slice_backward: zeros of the whole shape, with the gradient copied into the slice. */
static void slice_backward(struct engine *e, struct node *n, struct tensor **grads,
                           struct tensor **out)
{
    struct tensor *zeros =
        tensor_keep(op_full(e, grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    int dim = (int)n->number;
    int64_t length = grads[0]->a.shape[dim], step = (int64_t)n->scale;
    struct tensor *into = tensor_keep(steps(e, zeros, dim, n->ints[7], length, step));
    op_copy_(e, into, grads[0]);
    tensor_drop(e, into);
    out[0] = zeros;
}
static const struct node_kind slice_kind = {"SliceBackward0", slice_backward};

static struct tensor *slice(struct engine *e, struct tensor *x, int d, int64_t start, int64_t length, int64_t step)
{
    struct node *n = op_node(e, &slice_kind, 1, &x);
    if (n) {
        op_save_shape(n, x);
        n->ints[7] = start;
        n->number = d;
        n->scale = (double)step;
    }
    return op_done(e, n, steps(e, x, d, start, length, step), 1, &x);
}

struct tensor *op_slice(struct engine *e, struct tensor *x, int dim, int64_t start, int64_t length)
{
    if (e->halted) return op_halted(e, 1, &x);
    int d = tensor_dim(x, dim);
    return start == 0 && length == x->a.shape[d] ? x : slice(e, x, d, start, length, 1);
}

struct tensor *op_slice_steps(struct engine *e, struct tensor *x, int64_t start, int64_t step)
{
    if (e->halted) return op_halted(e, 1, &x);
    int last = x->a.ndim - 1;
    return slice(e, x, last, start, (x->a.shape[last] - start + step - 1) / step, step);
}

struct tensor *op_slice_end(struct engine *e, struct tensor *x, int dim, int64_t length)
{
    if (e->halted) return op_halted(e, 1, &x);
    int d = tensor_dim(x, dim);
    return slice(e, x, d, x->a.shape[d] - length, length, 1);
}

static void select_backward(struct engine *e, struct node *n, struct tensor **grads,
                            struct tensor **out)
{
    struct tensor *zeros =
        tensor_keep(op_full(e, grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    struct tensor *into = tensor_keep(op_select(e, zeros, (int)n->number, n->ints[7]));
    op_copy_(e, into, grads[0]);
    tensor_drop(e, into);
    out[0] = zeros;
}
static const struct node_kind select_kind = {"SelectBackward0", select_backward};

struct tensor *op_select(struct engine *e, struct tensor *x, int dim, int64_t index)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t shape[PLIM_MAX_DIMS], stride[PLIM_MAX_DIMS];
    int d = tensor_dim(x, dim), ndim = x->a.ndim - 1;
    for (int i = 0; i < ndim; i++) {
        shape[i] = x->a.shape[i + (i >= d)];
        stride[i] = x->a.stride[i + (i >= d)];
    }
    struct node *n = op_node(e, &select_kind, 1, &x);
    if (n) {
        op_save_shape(n, x);
        n->ints[7] = index;
        n->number = d;
    }
    struct tensor *y = tensor_alias(e, x, ndim, shape, stride, index * x->a.stride[d]);
    return op_done(e, n, y, 1, &x);
}

static const struct node_kind alias_kind = {"AliasBackward0", pass_backward};

struct tensor *op_alias(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &alias_kind, 1, &x);
    return op_done(e, n, tensor_detach(e, x), 1, &x);
}

/* Concatenates the parts' gradients; a missing one counts as zeros. */
static void split_backward(struct engine *e, struct node *n, struct tensor **grads,
                           struct tensor **out)
{
    enum plim_dtype dtype = (enum plim_dtype)n->output[0].dtype;
    for (int i = 0; i < n->output_count; i++)
        if (!grads[i]) grads[i] = tensor_keep(op_full(e, dtype, n->output[i].ndim, n->output[i].shape, 0));
    out[0] = tensor_keep(op_cat(e, n->output_count, grads, (int)n->ints[0]));
}
static const struct node_kind split_kind = {"SplitWithSizesBackward0", split_backward};

void op_split(struct engine *e, struct tensor *x, int dim, int count, const int64_t *sizes,
              struct tensor **out)
{
    if (e->halted) {
        op_halted(e, 1, &x);
        for (int i = 0; i < count; i++) out[i] = e->poison;
        return;
    }
    int d = tensor_dim(x, dim);
    struct node *n = op_node(e, &split_kind, 1, &x);
    if (n && count > NODE_OUTPUTS) node_widen(e, n, NODE_EDGES, count);
    if (n) n->ints[0] = d;
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        out[i] = part(e, x, d, start, sizes[i]);
        start += sizes[i];
        if (n) node_attach(n, out[i]);
    }
    tensor_consume(e, x);
}

/* --- copies ----------------------------------------------------------------------------------- */

static const struct node_kind clone_kind = {"CloneBackward0", pass_backward};

struct tensor *op_clone(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &clone_kind, 1, &x);
    struct tensor *y = op_result(e, 1, &x, x->a.dtype, x->a.ndim, x->a.shape, NULL);
    op_copy_(e, y, x);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_detached_clone(struct engine *e, struct tensor *x)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *y = op_clone(e, x);
    e->grad_enabled = grad;
    return y;
}

struct tensor *op_contiguous(struct engine *e, struct tensor *x)
{
    return e->halted || !tensor_is_contiguous(x) ? op_clone(e, x) : x;
}

static void to_backward(struct engine *e, struct node *n, struct tensor **grads,
                        struct tensor **out)
{
    struct tensor *y = op_to(e, grads[0], (enum plim_dtype)n->ints[0]);
    out[0] = y == grads[0] ? tensor_ref(y) : tensor_keep(y);
}
static const struct node_kind to_kind = {"ToCopyBackward0", to_backward};

/* stride NULL: contiguous */
static struct tensor *cast(struct engine *e, struct tensor *x, enum plim_dtype dtype, const int64_t *stride)
{
    struct node *n = op_node(e, &to_kind, 1, &x);
    if (n) n->ints[0] = x->a.dtype;
    struct tensor *y = op_result(e, 1, &x, dtype, x->a.ndim, x->a.shape, stride);
    op_copy_(e, y, x);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_to(struct engine *e, struct tensor *x, enum plim_dtype dtype)
{
    if (e->halted) return op_halted(e, 1, &x);
    if (x->a.dtype == dtype) return x;
    int64_t stride[PLIM_MAX_DIMS];
    op_result_strides(1, &x, x->a.ndim, x->a.shape, stride);
    return cast(e, x, dtype, stride);
}

struct tensor *op_to_contiguous(struct engine *e, struct tensor *x, enum plim_dtype dtype)
{
    if (e->halted) return op_halted(e, 1, &x);
    return x->a.dtype == dtype ? x : cast(e, x, dtype, NULL);
}

struct tensor *op_copy_like(struct engine *e, struct tensor *x, const struct tensor *like)
{
    struct tensor *y = tensor_empty_strided(e, x->a.dtype, x->a.ndim, x->a.shape, like->a.stride);
    op_copy_(e, y, x);
    return y;
}

enum { PAD_START, PAD_END, PAD_DIM }; /* indices of a node's ints */

static struct tensor *pad(struct engine *e, struct tensor *x, int dim, int64_t start, int64_t end);

static void pad_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    out[0] = tensor_keep(pad(e, grads[0], (int)n->ints[PAD_DIM], -n->ints[PAD_START], -n->ints[PAD_END]));
}
static const struct node_kind pad_kind = {"ConstantPadNdBackward0", pad_backward};

/* constant_pad_nd with zeros at the start and at the end of `dim`, one of which has none; negative numbers crop. */
static struct tensor *pad(struct engine *e, struct tensor *x, int dim, int64_t start, int64_t end)
{
    if (e->halted) return op_halted(e, 1, &x);
    int d = tensor_dim(x, dim);
    int64_t count = start + end;
    struct node *n = op_node(e, &pad_kind, 1, &x);
    if (n) n->ints[PAD_START] = start, n->ints[PAD_END] = end, n->ints[PAD_DIM] = d;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[d] += count;
    int64_t common = count < 0 ? shape[d] : x->a.shape[d];
    struct tensor *from = tensor_keep(part(e, x, d, start < 0 ? -start : 0, common));
    struct tensor *y = count > 0 ? tensor_empty(e, dtype, x->a.ndim, shape) : tensor_empty_like(e, from, dtype);
    struct tensor *into = tensor_keep(part(e, y, d, start > 0 ? start : 0, common));
    if (count > 0) op_fill_(e, y, 0);
    op_copy_(e, into, from);
    tensor_drop(e, into);
    tensor_drop(e, from);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_pad(struct engine *e, struct tensor *x, int dim, int64_t count)
{
    return pad(e, x, dim, 0, count);
}

struct tensor *op_pad_start(struct engine *e, struct tensor *x, int dim, int64_t count)
{
    return pad(e, x, dim, count, 0);
}

static void cat_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    int dim = (int)n->ints[0];
    int64_t start = 0;
    for (int i = 0; i < n->edge_count; i++) {
        if (node_wants(n, i)) out[i] = tensor_keep(part(e, grads[0], dim, start, n->ints[1 + i]));
        start += n->ints[1 + i];
    }
}
static const struct node_kind cat_kind = {"CatBackward0", cat_backward};

/* is_channels_last_strides_2d_s4() (c10/core/MemoryFormat.h): true if the strides of four dimensions increase in the
 * order of channels last. */
static bool has_channels_last(const struct plim_array *x)
{
    static const int order[] = {1, 3, 2, 0};
    int64_t least = 0;
    if (x->ndim != 4 || x->stride[1] == 0) return false;
    for (int i = 0; i < 4; i++) {
        int d = order[i];
        if (x->shape[d] == 0 || x->stride[d] < least || (d == 0 && least == x->stride[1])) return false;
        least = x->stride[d] * x->shape[d];
    }
    return true;
}

/* cat_compute_output_memory_format(): returns a tensor of these dimensions, in channels last if all inputs are. */
static struct tensor *empty_for_cat(struct engine *e, enum plim_dtype dtype, int count, struct tensor *const *x,
                                    const int64_t *shape)
{
    bool is_last = true;
    for (int i = 0; i < count; i++) is_last = is_last && has_channels_last(&x[i]->a);
    if (!is_last) return tensor_empty(e, dtype, x[0]->a.ndim, shape);
    const int64_t stride[] = {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
    return tensor_empty_strided(e, dtype, 4, shape, stride);
}

struct tensor *op_cat(struct engine *e, int count, struct tensor *const *x, int dim)
{
    if (e->halted) return op_halted(e, count, x);
    int d = tensor_dim(x[0], dim);
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x[0]->a.shape, sizeof shape);
    shape[d] = 0;
    for (int i = 0; i < count; i++) shape[d] += x[i]->a.shape[d];
    struct node *n = op_node(e, &cat_kind, count, x);
    if (n) {
        n->ints[0] = d;
        for (int i = 0; i < count; i++) n->ints[1 + i] = x[i]->a.shape[d];
    }
    bool mixed = false; /* floats of different types give fp32 */
    for (int i = 1; i < count; i++) mixed = mixed || x[i]->a.dtype != x[0]->a.dtype;
    enum plim_dtype dtype = mixed ? PLIM_F32 : (enum plim_dtype)x[0]->a.dtype;
    struct tensor *y = empty_for_cat(e, dtype, count, x, shape);
    struct plim_op op = {.kind = PLIM_OP_CAT,
                         .n_out = 1,
                         .n_lists = 1,
                         .dim = (int8_t)d,
                         .out = {&y->a},
                         .lists = {(const struct plim_array *const *)x}, /* a tensor starts with its array */
                         .list_length = (size_t)count};
    if (!e->halted) engine_launch(e, &op);
    return op_done(e, n, y, count, x);
}
