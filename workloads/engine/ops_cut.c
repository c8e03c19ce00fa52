#include "ops_cut.h"
#include "ops.h"
#include <math.h>

enum { LOCK_ROWS = 128, LOCK_COLUMNS = 64 }; /* what one lock guards */
enum { TILE = 128 };                         /* rows and classes of a block of threads */
enum { OUTPUTS = 2 };                        /* of a kernel, at most */
enum { X, WEIGHT, BIAS, LSE, TARGETS, VALIDS, AVERAGES };

static int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* A kernel that makes `products` products as long as x weight^T, tile by tile. Writes `out` but its NULLs. */
static void launch(struct engine *e, int products, int count, struct tensor *const *out,
                   struct tensor *x, struct tensor *weight)
{
    if (e->halted) return;
    int64_t rows = x->a.shape[0], classes = weight->a.shape[0];
    const struct op_products all = {2.0 * products * (double)rows * (double)classes * (double)x->a.shape[1],
                                    divide_up(rows, TILE) * divide_up(classes, TILE)};
    struct tensor *arrays[OUTPUTS + 2];
    int written = 0;
    for (int i = 0; i < count; i++)
        if (out[i]) arrays[written++] = out[i];
    arrays[written] = x;
    arrays[written + 1] = weight;
    op_fused_products(e, all, written, 2, arrays);
}

/* _build_flat_valids() of utils.py: where a label behind the first counts, (found) int64; named */
static struct tensor *valid_places(struct engine *e, struct tensor *labels, int64_t found)
{
    int64_t length = tensor_size(labels, 1);
    struct tensor *later = tensor_hold(op_slice(e, labels, 1, 1, length - 1));
    struct tensor *counts =
        tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, later, PLIM_IGNORED_TARGET));
    struct tensor *places = tensor_keep(op_places(e, counts, found));
    tensor_drop_all(e, later, counts);
    if (e->halted) return places;
    struct tensor *pairs =
        tensor_hold(tensor_alias(e, places, SHAPE(found, 2), (const int64_t[]){2, 1}, 0));
    struct tensor *narrow = tensor_keep(op_to(e, pairs, PLIM_I32));
    tensor_drop_all(e, pairs, places);
    struct tensor *rows = tensor_hold(op_select(e, narrow, 1, 0));
    op_binary_scalar_(e, PLIM_BINARY_MUL, rows, (double)length);
    tensor_drop(e, rows);
    struct tensor *flat = tensor_keep(op_reduce(e, narrow, 2, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    tensor_drop(e, narrow);
    return flat;
}

/* sort_logit_avg() of cce.py: argsort, which TorchInductor leaves to ATen; named */
static struct tensor *order_of(struct engine *e, struct tensor *averages)
{
    struct tensor *sorted[2];
    op_sort(e, averages, sorted);
    tensor_drop(e, tensor_keep(sorted[0]));
    struct tensor *places = tensor_keep(sorted[1]),
                  *order = tensor_keep(op_to(e, places, PLIM_I32));
    tensor_drop(e, places);
    return order;
}

static struct tensor *locks_of(struct engine *e, int64_t rows, int64_t width)
{
    return tensor_keep(
        op_full(e, PLIM_I32, SHAPE(divide_up(rows, LOCK_ROWS), divide_up(width, LOCK_COLUMNS)), 0));
}

/* cce_backward_kernel() of cce_backward.py. The kernel makes the logits again and of them both gradients, of which it
 * leaves out blocks that are too small to count: here it is taken to make all. */
static void cut_backward(struct engine *e, struct node *n, struct tensor **grads,
                         struct tensor **out)
{
    struct tensor *x = node_saved(e, n, X), *weight = node_saved(e, n, WEIGHT),
                  *bias = node_saved(e, n, BIAS), *averages = node_saved(e, n, AVERAGES),
                  *locks[2] = {NULL}, *dbias = NULL;
    (void)grads;
    if (e->halted) return;
    struct tensor *order = averages ? order_of(e, averages) : NULL;
    if (node_wants(n, X)) out[X] = tensor_keep(op_full_like(e, x, 0));
    if (node_wants(n, WEIGHT)) out[WEIGHT] = tensor_keep(op_full_like(e, weight, 0));
    if (node_wants(n, BIAS)) dbias = tensor_keep(op_full(e, PLIM_F32, 1, bias->a.shape, 0));
    if (out[X]) locks[0] = locks_of(e, n->ints[0], tensor_size(x, 1));
    if (out[WEIGHT]) locks[1] = locks_of(e, tensor_size(weight, 0), tensor_size(x, 1));
    int products = 1 + (out[X] != NULL) + (out[WEIGHT] != NULL);
    launch(e, products, 2, (struct tensor *[]){out[X], out[WEIGHT]}, x, weight);
    if (dbias) out[BIAS] = tensor_keep(op_to(e, dbias, (enum plim_dtype)bias->a.dtype));
    tensor_drop_all(e, dbias, locks[0], locks[1], order);
}
static const struct node_kind cut_kind = {"LinearCrossEntropyFunctionBackward", cut_backward};

/* The negative logits of the targets (indexed_dot.py); named */
static struct tensor *target_logits(struct engine *e, const struct cut_call *c, struct tensor *x)
{
    struct tensor *y = tensor_keep(op_full(e, PLIM_F32, SHAPE(c->found), 0));
    launch(e, 0, 1, &y, x, x); /* and as many rows of the weight */
    if (!(c->softcap > 0)) return y;
    struct tensor *capped = tensor_keep(op_full_like(e, y, 0)); /* one kernel of TorchInductor's */
    tensor_drop(e, y);
    return capped;
}

static void save(struct engine *e, struct node *n, const struct cut_call *c, struct tensor *x,
                 struct tensor *targets, struct tensor *valids, struct tensor *lse,
                 struct tensor *averages)
{
    if (!n || e->halted) return;
    n->ints[0] = c->found;
    node_save(e, n, X, x);
    node_save(e, n, WEIGHT, c->weight);
    node_save(e, n, BIAS, c->bias);
    node_save(e, n, LSE, lse);
    node_save(e, n, TARGETS, targets);
    node_save(e, n, VALIDS, valids);
    node_save(e, n, AVERAGES, averages);
    node_hold(e, n, valids); /* ctx.params */
}

struct tensor *op_cut_cross_entropy(struct engine *e, const struct cut_call *c)
{
    if (e->halted) return e->poison;
    int64_t width = tensor_size(c->x, -1), rows = tensor_elements(c->x) / width,
            classes = tensor_size(c->weight, 0);
    struct tensor *dense = tensor_hold(op_contiguous(e, c->x));
    struct tensor *valids = valid_places(e, c->labels, c->found);
    struct tensor *x = tensor_hold(op_view(e, dense, SHAPE(rows, width)));
    struct tensor *targets = tensor_hold(op_view(e, c->labels, SHAPE(rows)));
    struct tensor *given[3] = {x, c->weight, c->bias}, *averages = NULL;
    bool grad = e->grad_enabled,
         learns = !e->halted && (x->requires_grad || c->weight->requires_grad);
    struct node *n = op_node(e, &cut_kind, 3, given);
    e->grad_enabled = false; /* as an autograd.Function's forward runs */
    struct tensor *lse = tensor_keep(op_full(e, PLIM_F32, SHAPE(c->found), -INFINITY));
    struct tensor *locks =
        tensor_keep(op_full(e, PLIM_I32, SHAPE(divide_up(c->found, LOCK_ROWS)), 0));
    if (learns) averages = tensor_keep(op_full(e, PLIM_F32, SHAPE(classes), 0));
    launch(e, 1, 2, (struct tensor *[]){lse, averages}, x, c->weight);
    tensor_drop(e, locks);
    struct tensor *losses = target_logits(e, c, x);
    op_add_(e, losses, lse);
    double factor = c->is_sum ? 1 : 1.0 / (double)c->found;
    struct tensor *y = op_reduce(e, losses, 1, false, PLIM_BINARY_ADD, factor, PLIM_F32);
    e->grad_enabled = grad;
    save(e, n, c, x, targets, valids, lse, averages);
    tensor_drop_all(e, losses, averages, lse, targets, x, valids, dense);
    return op_done(e, n, y, 0, NULL);
}
