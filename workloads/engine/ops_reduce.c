/* Reductions, and expand, which is their inverse. The scratch memory of a reduction follows PyTorch's launch
 * configuration (devices/needs/needs.h). */
#include "devices/needs/needs.h"
#include "ops.h"
#include <string.h>

/* Launches `op` for each part of a reduction, with the scratch memory that it needs. */
static void launch_parts(struct engine *e, struct plim_op *op, int launches, const struct plim_reduce_scratch *scratch)
{
    int64_t carried = launches ? scratch[0].accumulation_bytes : 0;
    struct tensor *accumulation = carried ? tensor_keep(tensor_empty_bytes(e, carried)) : NULL;
    for (int i = 0; i < launches; i++) {
        bool shared = scratch[i].partials_bytes > 0;
        struct tensor *partials =
            shared ? tensor_keep(tensor_empty_bytes(e, scratch[i].partials_bytes)) : NULL;
        struct tensor *semaphores =
            shared ? tensor_keep(tensor_empty_bytes(e, scratch[i].semaphores_bytes)) : NULL;
        op->part = (uint8_t)i;
        op->n_scratch = shared ? 2 : 0;
        op->scratch[0] = shared ? &partials->a : NULL;
        op->scratch[1] = shared ? &semaphores->a : NULL;
        if (!e->halted) engine_launch(e, op);
        tensor_drop(e, semaphores);
        tensor_drop(e, partials);
    }
    tensor_drop(e, accumulation);
}

struct tensor *op_reduce(struct engine *e, struct tensor *x, unsigned dims, bool keep,
                         enum plim_binary fold, double factor, enum plim_dtype result)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = 0;
    for (int i = 0; i < x->a.ndim; i++) {
        bool folded = dims >> i & 1;
        if (!folded || keep) shape[ndim++] = folded ? 1 : x->a.shape[i];
    }
    struct tensor *y = tensor_empty(e, result, ndim, shape);
    op_reduce_to(e, x, dims, fold, factor, y);
    return op_done(e, NULL, y, 1, &x);
}

void op_reduce_to(struct engine *e, struct tensor *x, unsigned dims, enum plim_binary fold, double factor,
                  struct tensor *y)
{
    if (e->halted) return;
    enum plim_dtype result = (enum plim_dtype)y->a.dtype;
    bool was = tensor_enter(x);
    /* integers are summed as int64 */
    struct tensor *in = tensor_hold(result == PLIM_I64 ? op_to(e, x, PLIM_I64) : x);
    struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES];
    int launches =
        e->halted ? 0 : plim_reduce_needs(&e->device->info, &in->a, dims, fold, result, scratch);
    struct plim_op op = {.kind = PLIM_OP_REDUCE,
                         .n_out = 1,
                         .n_in = 1,
                         .binary = (uint8_t)fold,
                         .dims = (uint8_t)dims,
                         .alpha = factor,
                         .out = {&y->a},
                         .in = {&in->a}};
    launch_parts(e, &op, launches, scratch);
    tensor_drop(e, in);
    tensor_leave(e, x, was);
}

void op_argmax_last_to(struct engine *e, struct tensor *x, struct tensor *y)
{
    struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES];
    int launches = e->halted ? 0 : plim_argmax_needs(&e->device->info, &x->a, scratch);
    struct plim_op op = {.kind = PLIM_OP_ARGMAX, .n_out = 1, .n_in = 1, .out = {&y->a}, .in = {&x->a}};
    launch_parts(e, &op, launches, scratch);
}

struct tensor *op_argmax_last(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *y = tensor_empty(e, PLIM_I64, x->a.ndim - 1, x->a.shape);
    op_argmax_last_to(e, x, y);
    return op_done(e, NULL, y, 1, &x);
}

struct tensor *op_sum_to(struct engine *e, struct tensor *x, int ndim, const int64_t *shape)
{
    if (e->halted) return op_halted(e, 1, &x);
    unsigned dims = 0;
    int lead = x->a.ndim - ndim;
    for (int i = 0; i < x->a.ndim; i++)
        if (i < lead || (shape[i - lead] == 1 && x->a.shape[i] != 1)) dims |= 1u << i;
    if (!dims) return tensor_alias(e, x, ndim, x->a.shape, x->a.stride, 0);
    /* at::sum_to keeps the dimensions and then drops the leading ones by a view */
    struct tensor *y = op_reduce(e, x, dims, true, PLIM_BINARY_ADD, 1, (enum plim_dtype)x->a.dtype);
    return lead ? op_view(e, y, ndim, shape) : y;
}

/* --- expand, whose derivative is a sum -------------------------------------------------------- */

static void expand_backward(struct engine *e, struct node *n, struct tensor **grads,
                            struct tensor **out)
{
    out[0] = tensor_keep(op_sum_to(e, grads[0], (int)n->ints[0], n->ints + 1));
}
static const struct node_kind expand_kind = {"ExpandBackward0", expand_backward};

struct tensor *op_expand(struct engine *e, struct tensor *x, int ndim, const int64_t *shape)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t full[PLIM_MAX_DIMS], stride[PLIM_MAX_DIMS];
    int lead = ndim - x->a.ndim;
    for (int i = 0; i < ndim; i++) {
        int64_t have = i < lead ? 1 : x->a.shape[i - lead];
        full[i] = shape[i] < 0 ? have : shape[i];
        stride[i] = i < lead ? 0 : have == 1 && full[i] != 1 ? 0 : x->a.stride[i - lead];
    }
    struct node *n = op_node(e, &expand_kind, 1, &x);
    op_save_shape(n, x);
    struct tensor *y = tensor_alias(e, x, ndim, full, stride, 0);
    return op_done(e, n, y, 1, &x);
}

struct tensor *op_repeat(struct engine *e, struct tensor *x, int64_t times)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t shape[PLIM_MAX_DIMS] = {times}, flat[PLIM_MAX_DIMS];
    int ndim = x->a.ndim;
    for (int i = 0; i < ndim; i++) shape[i + 1] = flat[i] = x->a.shape[i];
    flat[0] *= times;
    struct tensor *wide = op_expand(e, op_unsqueeze(e, x, 0), ndim + 1, shape);
    return op_view(e, op_clone(e, wide), ndim, flat);
}

struct tensor *op_repeat_each(struct engine *e, struct tensor *x, int dim, int64_t times)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t shape[PLIM_MAX_DIMS], flat[PLIM_MAX_DIMS];
    int d = tensor_dim(x, dim), ndim = x->a.ndim;
    for (int i = 0; i <= ndim; i++) shape[i] = i == d + 1 ? times : x->a.shape[i - (i > d)];
    for (int i = 0; i < ndim; i++) flat[i] = x->a.shape[i] * (i == d ? times : 1);
    struct tensor *wide = op_expand(e, op_unsqueeze(e, x, d + 1), ndim + 1, shape);
    return op_view(e, op_clone(e, wide), ndim, flat);
}

static void sum_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    struct tensor *kept = op_unsqueeze(e, grads[0], (int)n->number);
    out[0] = tensor_keep(op_expand(e, kept, (int)n->ints[0], n->ints + 1));
}
static const struct node_kind sum_kind = {"SumBackward1", sum_backward};

struct tensor *op_sum_dim(struct engine *e, struct tensor *x, int dim)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &sum_kind, 1, &x);
    op_save_shape(n, x);
    if (n) n->number = dim;
    bool was = tensor_enter(x);
    bool widens = e->autocast.on && (x->a.dtype == PLIM_BF16 || x->a.dtype == PLIM_F16);
    enum plim_dtype dtype = widens ? PLIM_F32 : (enum plim_dtype)x->a.dtype;
    struct tensor *y = op_reduce(e, x, 1u << dim, false, PLIM_BINARY_ADD, 1, dtype);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

static void sum_kept_backward(struct engine *e, struct node *n, struct tensor **grads,
                              struct tensor **out)
{
    out[0] = tensor_keep(op_expand(e, grads[0], (int)n->ints[0], n->ints + 1));
}
static const struct node_kind sum_kept_kind = {"SumBackward1", sum_kept_backward};

static struct tensor *sum_kept(struct engine *e, struct tensor *x, unsigned dims, bool keep, enum plim_dtype result)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &sum_kept_kind, 1, &x);
    op_save_shape(n, x);
    bool was = tensor_enter(x);
    struct tensor *y = op_reduce(e, x, dims, keep, PLIM_BINARY_ADD, 1, result);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

struct tensor *op_sum_last_as(struct engine *e, struct tensor *x, enum plim_dtype result)
{
    return e->halted ? op_halted(e, 1, &x) : sum_kept(e, x, 1u << (x->a.ndim - 1), true, result);
}

struct tensor *op_sum_last(struct engine *e, struct tensor *x)
{
    return op_sum_last_as(e, x, (enum plim_dtype)x->a.dtype);
}

struct tensor *op_sum_all(struct engine *e, struct tensor *x)
{
    return sum_kept(e, x, (1u << x->a.ndim) - 1, false, (enum plim_dtype)x->a.dtype);
}

/* --- mean, cumsum ----------------------------------------------------------------------------- */

/* grad, expanded, divided by the number of elements */
static void mean_backward(struct engine *e, struct node *n, struct tensor **grads,
                          struct tensor **out)
{
    struct tensor *wide = op_expand(e, grads[0], (int)n->ints[0], n->ints + 1);
    out[0] = tensor_keep(op_div_scalar(e, wide, (double)n->ints[n->ints[0]]));
}
static const struct node_kind mean_kind = {"MeanBackward1", mean_backward};

struct tensor *op_mean_last(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct node *n = op_node(e, &mean_kind, 1, &x);
    op_save_shape(n, x);
    bool was = tensor_enter(x);
    struct tensor *y = op_reduce(e, x, 1u << (x->a.ndim - 1), true, PLIM_BINARY_ADD,
                                 1.0 / (double)tensor_size(x, -1), (enum plim_dtype)x->a.dtype);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

struct tensor *op_mean_vector(struct engine *e, struct tensor *x)
{
    return op_view(e, op_mean_last(e, x), 0, (const int64_t[]){0});
}

/* --- sum and mean without NaN ------------------------------------------------------------------- */

struct tensor *op_nansum(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    return op_reduce(e, x, (1u << x->a.ndim) - 1, false, PLIM_BINARY_ADD, 1, (enum plim_dtype)x->a.dtype);
}

/* isnan(): self != self; bool, named */
static struct tensor *is_no_number(struct engine *e, struct tensor *x)
{
    return tensor_keep(op_compare(e, PLIM_BINARY_NE, x, x));
}

/* grad.expand(..) * self.isnan().logical_not() */
static void nansum_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, 0);
    if (e->halted) return;
    struct tensor *wide = tensor_keep(op_expand(e, grads[0], x->a.ndim, x->a.shape));
    struct tensor *nan = is_no_number(e, x), *is_number = tensor_keep(op_unary(e, nan, PLIM_UNARY_NOT));
    out[0] = tensor_keep(op_mul(e, wide, is_number));
    tensor_drop_all(e, wide, nan, is_number); /* temporaries of one Python expression */
}
static const struct node_kind nansum_kind = {"NansumBackward0", nansum_backward};

struct tensor *op_nanmean(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct tensor *numbers = is_no_number(e, x);
    op_unary_(e, PLIM_UNARY_NOT, numbers);
    struct tensor *count =
        tensor_keep(op_reduce(e, numbers, (1u << x->a.ndim) - 1, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    tensor_drop(e, numbers);
    struct node *n = op_node(e, &nansum_kind, 1, &x);
    if (n) node_save(e, n, 0, x);
    struct tensor *sum = tensor_keep(op_done(e, n, op_nansum(e, x), 0, NULL));
    struct tensor *mean = op_div(e, sum, count);
    tensor_drop_all(e, sum, count);
    tensor_leave(e, x, was);
    return mean;
}

/* x with dimension `dim` and the last one swapped, for kernels that work along the last one. */
static struct plim_array with_last(const struct tensor *x, int dim)
{
    struct plim_array y = x->a;
    int last = y.ndim - 1;
    y.shape[dim] = x->a.shape[last], y.stride[dim] = x->a.stride[last];
    y.shape[last] = x->a.shape[dim], y.stride[last] = x->a.stride[dim];
    return y;
}

/* x.flip(dim); no autograd */
static struct tensor *flip(struct engine *e, struct tensor *x, int dim)
{
    struct tensor *y = tensor_empty_like(e, x, (enum plim_dtype)x->a.dtype);
    if (e->halted) return y;
    struct plim_array to = with_last(y, dim), from = with_last(x, dim);
    struct plim_op op = {.kind = PLIM_OP_FLIP, .n_out = 1, .n_in = 1, .out = {&to}, .in = {&from}};
    engine_launch(e, &op);
    return y;
}

/* grad.flip(dim).cumsum(dim).flip(dim) */
static void cumsum_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    int dim = (int)n->ints[0];
    enum plim_dtype dtype = (enum plim_dtype)grads[0]->a.dtype;
    struct tensor *backwards = tensor_keep(flip(e, grads[0], dim));
    struct tensor *sums = tensor_keep(op_cumsum(e, backwards, dim, dtype));
    if (!e->halted) out[0] = tensor_keep(flip(e, sums, dim));
    tensor_drop_all(e, sums, backwards);
}
static const struct node_kind cumsum_kind = {"CumsumBackward0", cumsum_backward};

struct tensor *op_cumsum(struct engine *e, struct tensor *x, int dim, enum plim_dtype dtype)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    int along = tensor_dim(x, dim);
    struct node *n = op_node(e, &cumsum_kind, 1, &x);
    if (n) n->ints[0] = along;
    struct tensor *y = tensor_empty(e, dtype, x->a.ndim, x->a.shape);
    struct tensor *wide = tensor_hold(op_to(e, x, dtype));
    tensor_set(e, &wide, op_contiguous(e, wide));
    int64_t length = tensor_size(x, along);
    int64_t scratch_bytes = e->halted ? 0 : plim_cumsum_temporary_bytes(dtype, tensor_elements(x) / length, length);
    struct tensor *scratch =
        scratch_bytes ? tensor_keep(tensor_empty_bytes(e, scratch_bytes)) : NULL;
    if (!e->halted) {
        struct plim_array to = with_last(y, along), from = with_last(wide, along);
        engine_launch(e, &(struct plim_op){
                             .kind = PLIM_OP_CUMSUM, .n_out = 1, .n_in = 1, .out = {&to}, .in = {&from}});
    }
    tensor_drop(e, scratch);
    tensor_drop(e, wide);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return y;
}

struct tensor *op_cumsum_last(struct engine *e, struct tensor *x, enum plim_dtype dtype)
{
    return op_cumsum(e, x, -1, dtype);
}
