/* The start and end of operations, and the memory layout of their results. */
#include "devices/needs/needs.h"
#include "ops.h"
#include <string.h>

struct tensor *op_in_place(struct engine *e, const struct tensor *x)
{
    return tensor_alias(e, x, x->a.ndim, x->a.shape, x->a.stride, 0);
}

struct tensor *op_halted(struct engine *e, int count, struct tensor *const *operands)
{
    for (int i = 0; i < count; i++) tensor_consume(e, operands[i]);
    return e->poison;
}

struct tensor *op_done(struct engine *e, struct node *n, struct tensor *y, int count,
                       struct tensor *const *operands)
{
    if (e->halted) {
        if (y) tensor_drop(e, y);
        if (n && !n->output_count) node_drop(e, n);
        y = e->poison;
    } else if (n) {
        node_attach(n, y);
    }
    for (int i = 0; i < count; i++) tensor_consume(e, operands[i]);
    return y;
}

struct node *op_node(struct engine *e, const struct node_kind *kind, int count,
                     struct tensor *const *operands)
{
    return autograd_needed(e, count, operands) ? node_create(e, kind, count, operands) : NULL;
}

void op_launch(struct engine *e, struct plim_op op, int n_out, int n_in, struct tensor *const *arrays)
{
    if (e->halted) return;
    op.n_out = (uint8_t)n_out;
    op.n_in = (uint8_t)n_in;
    for (int i = 0; i < n_out; i++) op.out[i] = &arrays[i]->a;
    for (int i = 0; i < n_in; i++) op.in[i] = &arrays[n_out + i]->a;
    engine_launch(e, &op);
}

void op_save_shape(struct node *n, const struct tensor *x)
{
    if (!n) return;
    n->ints[0] = x->a.ndim;
    memcpy(n->ints + 1, x->a.shape, sizeof(int64_t) * (size_t)x->a.ndim);
}

void op_allocate_needs(struct engine *e, int count, const struct plim_need *needs, struct tensor **held)
{
    for (int i = 0; i < count; i++) {
        op_release_needs(e, needs, held, i, i);
        held[i] = tensor_keep(tensor_empty_bytes(e, needs[i].bytes));
    }
}

void op_release_needs(struct engine *e, const struct plim_need *needs, struct tensor **held,
                      int taken, int before)
{
    for (int i = taken - 1; i >= 0; i--)
        if (held[i] && needs[i].before == before) {
            tensor_drop(e, held[i]);
            held[i] = NULL;
        }
}

/* --- layout of results ------------------------------------------------------------------------ */

static bool plain(int count, struct tensor *const *x, int ndim, const int64_t *shape)
{
    for (int i = 0; i < count; i++) {
        if (x[i]->a.ndim != ndim || !tensor_is_contiguous(x[i])) return false;
        if (memcmp(x[i]->a.shape, shape, sizeof *shape * (size_t)ndim) != 0) return false;
    }
    return true;
}

static int64_t operand_stride(const struct tensor *x, int ndim, const int64_t *shape, int dim)
{
    int own = dim - (ndim - x->a.ndim);
    if (own < 0 || (x->a.shape[own] == 1 && shape[dim] != 1)) return 0;
    return x->a.stride[own];
}

/* Compares two dimensions by their strides: > 0 if `a` should come after `b`, 0 if undecided. */
static int compare_dimensions(int count, struct tensor *const *x, int ndim, const int64_t *shape,
                              int a, int b)
{
    for (int i = 0; i < count; i++) {
        int64_t sa = operand_stride(x[i], ndim, shape, a),
                sb = operand_stride(x[i], ndim, shape, b);
        if (sa == 0 || sb == 0) continue;
        if (sa != sb) return sa < sb ? -1 : 1;
        if (shape[a] > shape[b]) return 1;
    }
    return 0;
}

void op_result_strides(int count, struct tensor *const *operands, int ndim, const int64_t *shape,
                       int64_t *stride)
{
    int perm[PLIM_MAX_DIMS]; /* fastest dimension first */
    for (int i = 0; i < ndim; i++) perm[i] = ndim - 1 - i;
    if (!plain(count, operands, ndim, shape)) {
        /* TensorIterator::reorder_dimensions: insertion sort with a comparison that may be undecided */
        for (int i = 1; i < ndim; i++) {
            int moving = i;
            for (int j = i - 1; j >= 0; j--) {
                int c = compare_dimensions(count, operands, ndim, shape, perm[j], perm[moving]);
                if (c < 0) break;
                if (c == 0) continue;
                int swap = perm[j];
                perm[j] = perm[moving];
                perm[moving] = swap;
                moving = j;
            }
        }
    }
    int64_t step = 1;
    for (int i = 0; i < ndim; i++) {
        stride[perm[i]] = step;
        step *= shape[perm[i]];
    }
}

struct tensor *op_result(struct engine *e, int count, struct tensor *const *operands,
                         enum plim_dtype dtype, int ndim, const int64_t *shape,
                         const int64_t *stride)
{
    enum plim_memory_class before = e->memory.new_class;
    if (before == PLIM_MEMORY_LOGITS) e->memory.new_class = PLIM_MEMORY_TEMPORARIES;
    for (int i = 0; i < count; i++)
        if (operands[i]->storage->memory_class == PLIM_MEMORY_LOGITS)
            e->memory.new_class = PLIM_MEMORY_LOGITS;
    struct tensor *y = tensor_empty_strided(e, dtype, ndim, shape, stride);
    e->memory.new_class = before;
    return y;
}
