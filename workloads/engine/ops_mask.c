/* Elements and rows that a mask chooses. */
#include "devices/needs/needs.h"
#include "ops.h"
#include <string.h>

/* Where the mask (B, S) is true: here everywhere. Held until tensor_drop(); the host waits for their number. */
static struct tensor *places_of(struct engine *e, struct tensor *mask)
{
    struct tensor *held[PLIM_NONZERO_NEEDS] = {NULL};
    struct plim_need needs[PLIM_NONZERO_NEEDS];
    if (e->halted) return e->poison;
    int64_t items = tensor_elements(mask);
    plim_nonzero_needs(&e->device->info, items, items, mask->a.ndim, needs);
    op_take_needs(e, PLIM_NONZERO_NEEDS, needs, held);
    struct tensor *places = held[PLIM_NONZERO_PLACES];
    held[PLIM_NONZERO_PLACES] = NULL;
    struct plim_op op = {.kind = PLIM_OP_FUSED, .n_out = 1, .n_in = 1, .out = {&places->a}, .in = {&mask->a}};
    if (!e->halted) engine_launch(e, &op);
    op_release_needs(e, needs, held, PLIM_NONZERO_NEEDS, PLIM_NONZERO_NEEDS);
    return places;
}

/* What writes y, reading x and the places. */
static void launch_by_places(struct engine *e, struct tensor *y, struct tensor *x, struct tensor *places)
{
    struct plim_op op = {.kind = PLIM_OP_FUSED, .n_out = 1, .n_in = 2, .out = {&y->a}, .in = {&x->a, &places->a}};
    if (!e->halted) engine_launch(e, &op);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* computeLinearIndex(): both columns of the places, wrapped and weighted, become one index; named */
static struct tensor *linear_index(struct engine *e, int64_t items)
{
    struct tensor *outer = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
    struct tensor *index = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
    tensor_drop(e, outer);
    struct tensor *inner = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
    struct tensor *weighted = tensor_keep(tensor_empty(e, PLIM_I64, 1, &items));
    tensor_drop_all(e, inner, weighted);
    return index;
}

/* index_put_(accumulate=True): the indices are sorted, and rows added in their order. */
static void add_rows(struct engine *e, struct tensor *dx, struct tensor *mask, struct tensor *rows)
{
    enum { SORTED = 2, COUNT = PLIM_INDEX_ADD_NEEDS - SORTED }; /* behind what makes one column linear */
    struct tensor *held[PLIM_INDEX_ADD_NEEDS] = {NULL};
    struct plim_need needs[PLIM_INDEX_ADD_NEEDS];
    struct tensor *places = places_of(e, mask);
    if (e->halted) return;
    int64_t items = tensor_elements(mask);
    struct tensor *index = linear_index(e, items);
    tensor_drop(e, places);
    plim_index_add_needs(&e->device->info, items, items, needs);
    for (int i = 0; i < COUNT; i++) needs[SORTED + i].before = COUNT;
    op_take_needs(e, COUNT, needs + SORTED, held);
    launch_by_places(e, dx, rows, index);
    op_release_needs(e, needs + SORTED, held, COUNT, COUNT);
    tensor_drop(e, index);
}

/* index_backward: zeros, to which the rows are added */
static void rows_where_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *mask = node_saved(e, n, 0);
    if (e->halted) return;
    out[0] = tensor_keep(op_full(e, (enum plim_dtype)grads[0]->a.dtype, (int)n->ints[0], n->ints + 1, 0));
    add_rows(e, out[0], mask, grads[0]);
}
static const struct node_kind rows_where_kind = {"IndexBackward0", rows_where_backward};

struct tensor *op_rows_where(struct engine *e, struct tensor *x, struct tensor *mask)
{
    struct tensor *operands[2] = {x, mask};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &rows_where_kind, 1, &x);
    op_note_shape(n, x);
    if (n) node_save(e, n, 0, mask);
    int64_t shape[2] = {tensor_elements(mask), x->a.ndim > mask->a.ndim ? tensor_size(x, -1) : 1};
    struct tensor *places = places_of(e, mask);
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim - mask->a.ndim + 1, shape);
    launch_by_places(e, y, x, places);
    tensor_drop(e, places);
    return op_done(e, n, y, 2, operands);
}

/* --- elements --------------------------------------------------------------------------------- */

/* grad.masked_select(mask): as many as there were */
static void masked_scatter_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *mask = node_saved(e, n, 0);
    if (e->halted) return;
    int64_t items = tensor_elements(mask);
    struct tensor *places = places_of(e, mask);
    out[0] = tensor_keep(tensor_empty(e, (enum plim_dtype)grads[0]->a.dtype, 1, &items));
    launch_by_places(e, out[0], grads[0], places);
    tensor_drop(e, places);
}
static const struct node_kind masked_scatter_kind = {"MaskedScatterBackward0", masked_scatter_backward};

struct tensor *op_masked_scatter(struct engine *e, struct tensor *x, struct tensor *mask, struct tensor *source)
{
    struct tensor *operands[3] = {source, mask, x}, *held[PLIM_MASKED_SCATTER_NEEDS] = {NULL};
    struct plim_need needs[PLIM_MASKED_SCATTER_NEEDS];
    if (e->halted) return op_halted(e, 3, operands);
    struct node *n = op_node(e, &masked_scatter_kind, 1, &source);
    if (n) node_save(e, n, 0, mask);
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype, x->a.ndim, x->a.shape);
    plim_masked_scatter_needs(tensor_elements(x), needs);
    op_take_needs(e, PLIM_MASKED_SCATTER_NEEDS, needs, held);
    launch_by_places(e, y, source, mask);
    op_release_needs(e, needs, held, PLIM_MASKED_SCATTER_NEEDS, PLIM_MASKED_SCATTER_NEEDS);
    return op_done(e, n, y, 3, operands);
}
