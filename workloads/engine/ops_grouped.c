/* Matrix products of groups of rows, with one matrix per group (experts). */
#include "blas_workspace.h"
#include "devices/needs/needs.h"
#include "ops.h"

enum { SELF, MAT2, ENDS };

/* _grouped_mm: y <- a, b, ends. The kernels read `ends`; if PyTorch multiplies group by group, the host reads it. */
static void launch(struct engine *e, struct tensor *y, struct tensor *a, struct tensor *b,
                   struct tensor *ends)
{
    struct tensor *held[PLIM_GROUPED_MATMUL_NEEDS] = {NULL};
    struct plim_need needs[PLIM_GROUPED_MATMUL_NEEDS];
    if (e->halted) return;
    int count = plim_grouped_matmul_needs(&e->device->info, (enum plim_dtype)a->a.dtype,
                                          tensor_elements(ends), needs);
    op_allocate_needs(e, count, needs, held);
    struct plim_op read = {.kind = PLIM_OP_READ_BACK, .n_in = 1, .in = {&ends->a}};
    if (!count && !e->halted) engine_launch(e, &read);
    for (int64_t i = 0; !count && i < tensor_elements(ends); i++)
        blas_workspace_release(e, blas_workspace_acquire(e, false));
    struct plim_op op = {.kind = PLIM_OP_MATMUL_GROUPED,
                         .n_out = 1,
                         .n_in = 3,
                         .n_scratch = (uint8_t)count,
                         .alpha = 1,
                         .tf32 = e->tf32,
                         .out = {&y->a},
                         .in = {&a->a, &b->a, &ends->a}};
    for (int i = 0; i < count; i++) op.scratch[i] = &held[i]->a;
    if (!e->halted) engine_launch(e, &op);
    op_release_needs(e, needs, held, count, count);
}

static void grouped_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    struct tensor *ends = node_saved(e, n, ENDS), *dy = grads[0];
    struct tensor *b = node_wants(n, SELF) ? node_saved(e, n, MAT2) : NULL;
    struct tensor *a = node_wants(n, MAT2) ? node_saved(e, n, SELF) : NULL;
    enum plim_dtype dtype = (enum plim_dtype)dy->a.dtype;
    if (e->halted) return;
    if (a) { /* in the layout of b, which may be the transpose of a weight */
        bool turned = n->ints[0];
        struct tensor *left = turned ? dy : a, *right = turned ? a : dy;
        struct tensor *dw = tensor_keep(tensor_empty(
            e, dtype, SHAPE(tensor_elements(ends), tensor_size(left, 1), tensor_size(right, 1))));
        left = tensor_keep(op_transpose(e, left, 0, 1));
        launch(e, dw, left, right, ends);
        tensor_drop(e, left);
        out[MAT2] = turned ? tensor_keep(op_transpose(e, tensor_yield(dw), 1, 2)) : dw;
    }
    if (b) {
        out[SELF] = tensor_keep(tensor_empty(e, dtype, SHAPE(tensor_size(dy, 0), tensor_size(b, 1))));
        struct tensor *right = tensor_keep(op_transpose(e, b, 1, 2));
        launch(e, out[SELF], dy, right, ends);
        tensor_drop(e, right);
    }
}
static const struct node_kind grouped_kind = {"GroupedMmBackward0", grouped_backward};

struct tensor *op_grouped_mm(struct engine *e, struct tensor *x, struct tensor *b,
                             struct tensor *ends)
{
    struct tensor *operands[3] = {x, b, ends};
    if (e->halted) return op_halted(e, 3, operands);
    struct node *n = op_node(e, &grouped_kind, 2, operands);
    if (n) {
        if (x->requires_grad) node_save(e, n, MAT2, b);
        if (b->requires_grad) node_save(e, n, SELF, x);
        node_save(e, n, ENDS, ends);
        n->ints[0] = b->a.stride[1] == 1;
    }
    struct tensor *y = tensor_empty(e, (enum plim_dtype)x->a.dtype,
                                    SHAPE(tensor_size(x, 0), tensor_size(b, 2)));
    launch(e, y, x, b, ends);
    return op_done(e, n, y, 3, operands);
}
