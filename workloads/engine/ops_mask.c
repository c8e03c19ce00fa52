/* Elements and rows selected by a mask, and writing rows. */
#include "devices/needs/needs.h"
#include "ops.h"
#include <string.h>

/* nonzero() of a mask: allocates a block of int64 and returns (found) indices or (found, dimensions) coordinates in
 * it. */
static struct tensor *nonzero(struct engine *e, struct tensor *mask, int64_t found, bool has_columns)
{
    enum { PLACES = PLIM_NONZERO_PLACES };
    if (e->halted) return op_halted(e, 1, &mask);
    const int64_t shape[] = {found, mask->a.ndim}, stride[] = {1, found};
    struct tensor *held[PLIM_NONZERO_NEEDS] = {NULL};
    struct plim_need needs[PLIM_NONZERO_NEEDS];
    plim_nonzero_needs(&e->device->info, tensor_elements(mask), found, mask->a.ndim, needs);
    op_allocate_needs(e, PLIM_NONZERO_NEEDS, needs, held);
    struct tensor *y = tensor_alias(e, held[PLACES], has_columns ? 2 : 1, shape, stride, 0);
    if (!e->halted) {
        y->a.dtype = PLIM_I64;
        op_launch(e, (struct plim_op){.kind = PLIM_OP_NONZERO}, 1, 1, (struct tensor *[]){y, mask});
    }
    op_release_needs(e, needs, held, PLIM_NONZERO_NEEDS, PLIM_NONZERO_NEEDS);
    tensor_drop(e, held[PLACES]);
    return op_done(e, NULL, y, 1, &mask);
}

struct tensor *op_nonzero(struct engine *e, struct tensor *mask, int64_t found)
{
    return nonzero(e, mask, found, false);
}

struct tensor *op_coordinates(struct engine *e, struct tensor *mask, int64_t found)
{
    return nonzero(e, mask, found, true);
}

static void launch(struct engine *e, enum plim_op_kind kind, struct tensor *y, struct tensor *x,
                   struct tensor *indices)
{
    op_launch(e, (struct plim_op){.kind = kind}, 1, 2, (struct tensor *[]){y, x, indices});
}

void op_scatter_add_(struct engine *e, struct tensor *y, struct tensor *indices, struct tensor *x)
{
    launch(e, PLIM_OP_SCATTER_ADD, y, x, indices);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* computeLinearIndex(): combines the one or two columns of the indices, wrapped and weighted, into a linear index; here
 * they are one already; named. */
static struct tensor *linear_index(struct engine *e, struct tensor *indices, int columns)
{
    int64_t items = tensor_elements(indices);
    struct tensor *outer = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
    struct tensor *index = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
    tensor_drop(e, outer);
    if (columns > 1) {
        struct tensor *inner = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
        struct tensor *weighted = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
        tensor_drop_all(e, inner, weighted);
    }
    op_copy_(e, index, indices);
    return index;
}

/* index_put_(accumulate=True) with a linear index, taken, below `count`: it is sorted, and rows are added in its
 * order. */
static void add_sorted(struct engine *e, struct tensor *dx, struct tensor *index, int64_t count, struct tensor *rows)
{
    enum { SORTED = 2, COUNT = PLIM_INDEX_ADD_NEEDS - SORTED }; /* preceded by what makes one column linear */
    struct tensor *held[PLIM_INDEX_ADD_NEEDS] = {NULL};
    struct plim_need needs[PLIM_INDEX_ADD_NEEDS];
    if (!e->halted) {
        plim_index_add_needs(&e->device->info, rows->a.shape[0], count, needs);
        for (int i = 0; i < COUNT; i++) needs[SORTED + i].before = COUNT;
        op_allocate_needs(e, COUNT, needs + SORTED, held);
        launch(e, PLIM_OP_PUT_ROWS, dx, rows, index);
        op_release_needs(e, needs + SORTED, held, COUNT, COUNT);
    }
    tensor_drop(e, index);
}

/* The same for zeros (a, b, ..) and indices (n), taken, below a * b, or below a if they have one column. */
static void add_rows(struct engine *e, struct tensor *dx, struct tensor *indices, int columns, struct tensor *rows)
{
    if (e->halted) {
        tensor_drop(e, indices);
        return;
    }
    int64_t count = dx->a.shape[0] * (columns > 1 ? dx->a.shape[1] : 1);
    struct tensor *index = linear_index(e, indices, columns);
    tensor_drop(e, indices);
    add_sorted(e, dx, index, count, rows);
}

/* index_backward: zeros, to which the rows are added. */
static void rows_where_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *mask = node_saved(e, n, 0);
    if (e->halted) return;
    out[0] = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    struct tensor *indices = tensor_keep(op_nonzero(e, mask, grads[0]->a.shape[0]));
    add_rows(e, out[0], indices, mask->a.ndim, grads[0]);
}
static const struct node_kind rows_where_kind = {"IndexBackward0", rows_where_backward};

struct tensor *op_rows_where(struct engine *e, struct tensor *x, struct tensor *mask, int64_t found)
{
    struct tensor *operands[2] = {x, mask};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &rows_where_kind, 1, &x);
    op_save_shape(n, x);
    if (n) node_save(e, n, 0, mask);
    int64_t shape[2] = {found, x->a.ndim > mask->a.ndim ? tensor_size(x, -1) : 1};
    struct tensor *indices = tensor_keep(op_nonzero(e, mask, found));
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim - mask->a.ndim + 1, shape);
    launch(e, PLIM_OP_TAKE_ROWS, y, x, indices);
    tensor_drop(e, indices);
    return op_done(e, n, y, 2, operands);
}

static void rows_at_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *indices = node_saved(e, n, 0);
    if (e->halted) return;
    out[0] = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    add_rows(e, out[0], tensor_ref(indices), 2, grads[0]);
}
static const struct node_kind rows_at_kind = {"IndexBackward0", rows_at_backward};

struct tensor *op_rows_at(struct engine *e, struct tensor *x, struct tensor *columns)
{
    struct tensor *operands[2] = {x, columns};
    if (e->halted) return op_halted(e, 2, operands);
    int64_t rows = x->a.shape[0];
    struct tensor *indices = tensor_keep(op_arange(e, PLIM_I64, rows, 0, (double)x->a.shape[1]));
    op_binary_(e, PLIM_BINARY_ADD, indices, columns); /* PyTorch's index() does this inside its kernel */
    struct node *n = op_node(e, &rows_at_kind, 1, &x);
    op_save_shape(n, x);
    if (n) {
        node_save(e, n, 0, indices);
        node_save(e, n, 1, columns);
    }
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, SHAPE(rows, x->a.shape[2]));
    launch(e, PLIM_OP_TAKE_ROWS, y, x, indices);
    tensor_drop(e, indices);
    return op_done(e, n, y, 2, operands);
}

/* Indices that are kept on the host. */
struct host_indices {
    bool has_values;
    int64_t at[];
};

static void keep_indices(struct engine *e, struct node *n, int64_t count, const int64_t *indices)
{
    size_t bytes = indices ? (size_t)count * sizeof(*indices) : 0;
    struct host_indices *kept = engine_allocate_host(e, sizeof *kept + bytes);
    if (!kept) return;
    kept->has_values = indices != NULL;
    if (indices) memcpy(kept->at, indices, bytes);
    n->context = kept;
    n->drop_context = engine_free_host;
}

/* Copies the indices to the device; named. */
static struct tensor *send(struct engine *e, int64_t count, const int64_t *indices)
{
    struct tensor *index = tensor_keep(tensor_empty(e, PLIM_I64, 1, &count));
    if (indices && !e->halted) engine_write(e, index, indices, (size_t)count * sizeof(*indices));
    return index;
}

static void rows_in_order_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    const struct host_indices *indices = n->context;
    int64_t rows = n->ints[1];
    if (e->halted) return;
    out[0] = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    add_sorted(e, out[0], send(e, rows, indices->has_values ? indices->at : NULL), rows, grads[0]);
}
static const struct node_kind rows_in_order_kind = {"IndexBackward0", rows_in_order_backward};

struct tensor *op_rows_in_order(struct engine *e, struct tensor *x, const int64_t *indices)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t rows = x->a.shape[0];
    struct node *n = op_node(e, &rows_in_order_kind, 1, &x);
    op_save_shape(n, x);
    if (n) keep_indices(e, n, rows, indices);
    struct tensor *index = send(e, rows, indices);
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape);
    launch(e, PLIM_OP_TAKE_ROWS, y, x, index);
    tensor_drop(e, index);
    return op_done(e, n, y, 1, &x);
}

/* grad[indices] */
static void put_rows_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    out[0] = tensor_keep(op_rows(e, grads[0], node_saved(e, n, 0)));
}
static const struct node_kind put_rows_kind = {"IndexPutFirstAxisBackward", put_rows_backward};

struct tensor *op_put_rows(struct engine *e, struct tensor *x, struct tensor *indices, int64_t count)
{
    struct tensor *operands[2] = {x, indices};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &put_rows_kind, 1, &x);
    if (n) node_save(e, n, 0, indices);
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[0] = count;
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *y = tensor_keep(op_full(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape, 0));
    launch(e, PLIM_OP_PUT_ROWS, y, x, indices);
    e->grad_enabled = grad;
    return op_done(e, n, tensor_yield(y), 2, operands);
}

/* index_put_(): the gradient of the overwritten tensor is a copy with zero rows at the mask's positions; that of the
 * rows is gathered from the incoming gradient. */
static void put_rows_where_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    enum { BASE, ROWS };
    struct tensor *mask = node_saved(e, n, 0);
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)grads[0]->a.dtype;
    if (node_wants(n, BASE)) {
        struct tensor *zeros = tensor_keep(op_full(e, dtype, (int)n->ints[0], n->ints + 1, 0));
        out[BASE] = tensor_keep(op_clone(e, grads[0]));
        struct tensor *indices = tensor_keep(op_nonzero(e, mask, n->ints[1]));
        launch(e, PLIM_OP_PUT_ROWS, out[BASE], zeros, indices);
        tensor_drop_all(e, indices, zeros);
    }
    if (!node_wants(n, ROWS)) return;
    struct tensor *indices = tensor_keep(op_nonzero(e, mask, n->ints[1]));
    out[ROWS] = tensor_keep(tensor_empty(e, dtype, (int)n->ints[0], n->ints + 1));
    launch(e, PLIM_OP_TAKE_ROWS, out[ROWS], grads[0], indices);
    tensor_drop(e, indices);
}
static const struct node_kind put_rows_where_kind = {"IndexPutBackward0", put_rows_where_backward};

struct tensor *op_put_rows_where_(struct engine *e, struct tensor *x, struct tensor *mask, struct tensor *rows)
{
    struct tensor *operands[3] = {x, rows, mask};
    if (e->halted) return op_halted(e, 3, operands);
    struct node *n = op_node(e, &put_rows_where_kind, 2, operands);
    op_save_shape(n, rows);
    if (n) node_save(e, n, 0, mask);
    struct tensor *y = op_in_place(e, x), *indices = tensor_keep(op_nonzero(e, mask, tensor_size(rows, 0)));
    launch(e, PLIM_OP_PUT_ROWS, y, rows, indices);
    tensor_drop(e, indices);
    return op_done(e, n, y, 3, operands);
}

/* --- elements --------------------------------------------------------------------------------- */

enum { SELF, SOURCE }; /* operands of masked_scatter() */

/* Returns the mask expanded to the shape of `x`, contiguous; named. */
static struct tensor *widened(struct engine *e, struct tensor *mask, const struct tensor *x)
{
    return tensor_hold(op_contiguous(e, op_expand(e, mask, x->a.ndim, x->a.shape)));
}

/* grad.masked_fill(mask, 0), and grad.masked_select(mask), with as many elements as in forward, whose coordinates
 * nonzero() finds. */
static void masked_scatter_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *mask = node_saved(e, n, 0);
    if (e->halted) return;
    if (node_wants(n, SELF)) out[SELF] = tensor_keep(op_masked_fill(e, grads[0], mask, 0));
    if (!node_wants(n, SOURCE)) return;
    int64_t items = 1;
    for (int64_t i = 0; i < n->ints[0]; i++) items *= n->ints[1 + i];
    struct tensor *wide = widened(e, mask, grads[0]);
    struct tensor *indices = tensor_keep(op_nonzero(e, wide, items));
    tensor_drop(e, wide);
    out[SOURCE] = tensor_keep(tensor_empty(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0], n->ints + 1));
    struct tensor *flat = tensor_keep(op_view(e, out[SOURCE], 1, &items));
    struct tensor *all = tensor_hold(op_contiguous(e, grads[0]));
    int64_t elements = tensor_elements(all);
    tensor_set(e, &all, op_view(e, all, 1, &elements));
    launch(e, PLIM_OP_TAKE_ROWS, flat, all, indices);
    tensor_drop_all(e, all, flat, indices);
}
static const struct node_kind masked_scatter_kind = {"MaskedScatterBackward0", masked_scatter_backward};

struct tensor *op_masked_scatter(struct engine *e, struct tensor *x, struct tensor *mask, struct tensor *source)
{
    enum { SUMS, SCAN };
    struct tensor *operands[3] = {[SELF] = x, [SOURCE] = source, mask};
    struct plim_need needs[PLIM_MASKED_SCATTER_NEEDS];
    if (e->halted) return op_halted(e, 3, operands);
    struct node *n = op_node(e, &masked_scatter_kind, 2, operands);
    op_save_shape(n, source);
    if (n) node_save(e, n, 0, mask);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape);
    plim_masked_scatter_needs(tensor_elements(x), needs);
    struct tensor *sums = tensor_keep(tensor_empty_bytes(e, needs[SUMS].bytes)), *wide = widened(e, mask, x);
    struct tensor *scan = needs[SCAN].bytes ? tensor_keep(tensor_empty_bytes(e, needs[SCAN].bytes)) : NULL;
    int64_t items = e->halted ? 0 : tensor_elements(source);
    struct tensor *flat = tensor_keep(op_view(e, source, 1, &items));
    op_launch(e, (struct plim_op){.kind = PLIM_OP_MASKED_SCATTER}, 1, 3, (struct tensor *[]){y, x, wide, flat});
    tensor_drop_all(e, flat, scan, wide, sums);
    e->grad_enabled = grad;
    return op_done(e, n, y, 3, operands);
}
