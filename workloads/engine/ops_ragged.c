/* Rows of different lengths: where their tokens stand, and back to there. */
#include "devices/needs/needs.h"
#include "ops.h"
#include <string.h>

struct tensor *op_places(struct engine *e, struct tensor *mask, int64_t found)
{
    enum { PLACES = PLIM_NONZERO_PLACES };
    if (e->halted) return op_halted(e, 1, &mask);
    struct tensor *held[PLIM_NONZERO_NEEDS] = {NULL};
    struct plim_need needs[PLIM_NONZERO_NEEDS];
    plim_nonzero_needs(&e->device->info, tensor_elements(mask), found, mask->a.ndim, needs);
    op_take_needs(e, PLIM_NONZERO_NEEDS, needs, held);
    struct tensor *y = tensor_alias(e, held[PLACES], 1, &found, (const int64_t[]){1}, 0);
    if (!e->halted) {
        y->a.dtype = PLIM_I64;
        struct plim_op op = {.kind = PLIM_OP_CUMSUM, .n_out = 1, .n_in = 1, .out = {&y->a}, .in = {&mask->a}};
        engine_launch(e, &op);
    }
    op_release_needs(e, needs, held, PLIM_NONZERO_NEEDS, PLIM_NONZERO_NEEDS);
    tensor_drop(e, held[PLACES]);
    return op_done(e, NULL, y, 1, &mask);
}

/* grad[places] */
static void put_rows_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    out[0] = tensor_keep(op_rows(e, grads[0], node_saved(e, n, 0)));
}
static const struct node_kind put_rows_kind = {"IndexPutFirstAxisBackward", put_rows_backward};

struct tensor *op_put_rows(struct engine *e, struct tensor *x, struct tensor *places, int64_t count)
{
    struct tensor *operands[2] = {x, places};
    if (e->halted) return op_halted(e, 2, operands);
    struct node *n = op_node(e, &put_rows_kind, 1, &x);
    if (n) node_save(e, n, 0, places);
    int64_t shape[PLIM_MAX_DIMS];
    memcpy(shape, x->a.shape, sizeof shape);
    shape[0] = count;
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *y = tensor_keep(op_full(e, (enum plim_dtype)x->a.dtype, x->a.ndim, shape, 0));
    struct tensor *into = tensor_keep(tensor_alias(e, y, x->a.ndim, x->a.shape, y->a.stride, 0));
    op_copy_(e, into, x); /* to the first rows, which takes as long */
    tensor_drop(e, into);
    e->grad_enabled = grad;
    return op_done(e, n, tensor_yield(y), 2, operands);
}
