/* Nodes and the backward pass. */
#include "autograd.h"
#include "checkpoint.h"
#include "ops.h"
#include <stdlib.h>
#include <string.h>

/* --- nodes ---------------------------------------------------------------------------------- */

bool autograd_needed(const struct graph *g, int count, struct tensor *const *operands)
{
    if (!g->grad_enabled) return false;
    for (int i = 0; i < count; i++)
        if (operands[i] && operands[i]->requires_grad) return true;
    return false;
}

static struct node *node_new(struct graph *g, const struct node_kind *kind)
{
    struct node *n = pool_take(&g->nodes);
    if (!n) {
        graph_fail(g, PLIM_NOMEM);
        return NULL;
    }
    n->kind = kind;
    n->sequence = g->sequence++;
    n->refs = 1;
    n->edge_count = n->output_count = n->saved_count = 0;
    n->packed = false;
    n->variable = NULL;
    n->custom = NULL;
    n->pass = 0;
    memset(n->grad, 0, sizeof n->grad);
    return n;
}

struct node *node_create(struct graph *g, const struct node_kind *kind, int count,
                         struct tensor *const *operands)
{
    struct node *n = node_new(g, kind);
    if (!n) return NULL;
    n->edge_count = (uint8_t)count;
    for (int i = 0; i < count; i++) {
        struct tensor *x = operands[i];
        struct node *to = x && x->requires_grad ? x->grad_fn ? x->grad_fn : x->accumulator : NULL;
        n->edge[i].node = to;
        n->edge[i].input = to && x->grad_fn ? x->output_number : 0;
        if (to) to->refs++;
    }
    return n;
}

static void save(struct graph *g, struct node *n, int slot, struct tensor *x)
{
    while (n->saved_count <= slot) {
        n->saved[n->saved_count] = NULL;
        n->holder[n->saved_count++] = NULL;
    }
    if (g->recompute) checkpoint_repack(g, x);
    if (g->frame) {
        n->packed = true;
        n->holder[slot] = checkpoint_pack(g);
        tensor_drop(g, x);
        return;
    }
    n->saved[slot] = x;
    if (x) storage_saved(g, x->storage, +1);
}

void node_save(struct graph *g, struct node *n, int slot, struct tensor *x)
{
    if (g->halted) return;
    save(g, n, slot, x ? tensor_ref(x) : NULL);
}

void node_save_output(struct graph *g, struct node *n, int slot, struct tensor *x)
{
    if (g->halted) return;
    save(g, n, slot, tensor_keep(tensor_detach(g, x)));
}

void node_attach(struct graph *g, struct node *n, struct tensor *x)
{
    (void)g;
    struct node_output *o = &n->output[n->output_count];
    memcpy(o->shape, x->a.shape, sizeof o->shape);
    o->ndim = x->a.ndim;
    o->dtype = x->a.dtype;
    x->grad_fn = n;
    x->output_number = n->output_count++;
    x->requires_grad = true;
    if (x->output_number > 0) n->refs++; /* the first output takes the creator's reference */
}

struct tensor *node_saved(struct graph *g, struct node *n, int slot)
{
    if (n->packed && n->holder[slot] && !n->saved[slot])
        n->saved[slot] = checkpoint_unpack(g, n->holder[slot]);
    return n->saved[slot];
}

static void release_saved(struct graph *g, struct node *n)
{
    for (int i = 0; i < n->saved_count; i++) {
        struct tensor *x = n->saved[i];
        n->saved[i] = NULL;
        if (!x) continue;
        if (!n->packed) storage_saved(g, x->storage, -1);
        tensor_drop(g, x);
    }
}

static void release_variables(struct graph *g, struct node *n)
{
    release_saved(g, n);
    for (int i = 0; i < n->saved_count; i++) {
        if (n->holder[i]) checkpoint_holder_drop(g, n->holder[i]);
        n->holder[i] = NULL;
    }
    n->saved_count = 0;
}

void node_drop(struct graph *g, struct node *n)
{
    if (!n || --n->refs > 0) return;
    n->grad[0] = (struct tensor *)g->dead; /* dead nodes hold no gradient: the slot links them */
    g->dead = n;
    if (g->burying) return;
    g->burying = true;
    while (g->dead) {
        struct node *dead = g->dead;
        g->dead = (struct node *)dead->grad[0];
        release_variables(g, dead);
        if (dead->variable && !dead->variable->is_parameter) {
            dead->variable->accumulator = NULL;
            tensor_drop(g, dead->variable);
        }
        for (int i = 0; i < dead->edge_count; i++) node_drop(g, dead->edge[i].node);
        pool_give(&g->nodes, dead);
    }
    g->burying = false;
}

/* --- leaves --------------------------------------------------------------------------------- */

static const struct node_kind accumulate_grad = {"AccumulateGrad", NULL};

void tensor_require_grad(struct graph *g, struct tensor *x)
{
    if (g->halted) return;
    struct node *n = node_new(g, &accumulate_grad);
    if (!n) return;
    g->sequence--; /* PyTorch gives it no number of its own */
    n->sequence = UINT64_MAX;
    n->variable = x;
    n->output_count = 1;
    memcpy(n->output[0].shape, x->a.shape, sizeof x->a.shape);
    n->output[0].ndim = x->a.ndim;
    n->output[0].dtype = x->a.dtype;
    x->accumulator = n;
    x->requires_grad = true;
}

void tensor_require_input_grad(struct graph *g, struct tensor *x)
{
    if (g->halted || x->requires_grad) return;
    tensor_require_grad(g, x);
    if (!x->accumulator) return;
    tensor_ref(x);
    x->accumulator->refs = 0; /* only edges hold it; it holds the leaf */
}

/* May .grad take over this layout as it is? (obeys_layout_contract) */
static bool layout_obeys(const struct tensor *grad, const struct tensor *variable)
{
    if (!tensor_is_dense(variable)) return tensor_is_contiguous(grad);
    for (int i = 0; i < variable->a.ndim; i++)
        if (grad->a.shape[i] != 1 && grad->a.stride[i] != variable->a.stride[i]) return false;
    return true;
}

static void accumulate(struct graph *g, struct node *n, struct tensor *grad)
{
    struct tensor *variable = n->variable;
    if (variable->grad) {
        op_add_(g, variable->grad, grad);
        tensor_drop(g, grad);
        return;
    }
    if (grad->refs > 1 || !layout_obeys(grad, variable)) {
        struct tensor *copy = tensor_keep(op_copy_like(g, grad, variable));
        tensor_drop(g, grad);
        grad = copy;
    }
    variable->grad = grad;
    if (grad != g->poison) tensor_classify(g, grad, PLIM_MEMORY_GRADIENTS);
}

/* --- the pass ------------------------------------------------------------------------------- */

static bool push(struct graph *g, struct node *n)
{
    if (g->heap_count == g->heap_capacity) {
        size_t capacity = g->heap_capacity ? 2 * g->heap_capacity : 256;
        struct node **heap = realloc(g->heap, capacity * sizeof(struct node *));
        if (!heap) {
            graph_fail(g, PLIM_NOMEM);
            return false;
        }
        g->heap = heap;
        g->heap_capacity = capacity;
    }
    g->heap[g->heap_count++] = n;
    return true;
}

static void heap_push(struct graph *g, struct node *n)
{
    if (!push(g, n)) return;
    struct node **h = g->heap;
    size_t i = g->heap_count - 1;
    while (i > 0 && h[(i - 1) / 2]->sequence < n->sequence) {
        h[i] = h[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h[i] = n;
}

static struct node *heap_pop(struct graph *g)
{
    struct node **h = g->heap, *top = h[0], *last = h[--g->heap_count];
    size_t n = g->heap_count, i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && h[child + 1]->sequence > h[child]->sequence) child++;
        if (h[child]->sequence <= last->sequence) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = last;
    return top;
}

/* How many gradients each node waits for. */
static void count_dependencies(struct graph *g, struct node *root)
{
    g->pass++;
    root->pass = g->pass;
    root->dependencies = 0;
    push(g, root);
    while (g->heap_count) {
        struct node *n = g->heap[--g->heap_count];
        for (int i = 0; i < n->edge_count; i++) {
            struct node *to = n->edge[i].node;
            if (!to) continue;
            if (to->pass != g->pass) {
                to->pass = g->pass;
                to->dependencies = 0;
                push(g, to);
            }
            to->dependencies++;
        }
    }
}

/* Gives a gradient the shape and type of the forward tensor. */
static struct tensor *validated(struct graph *g, struct tensor *grad, const struct node_output *o)
{
    bool same = grad->a.ndim == o->ndim;
    for (int i = 0; same && i < o->ndim; i++) same = grad->a.shape[i] == o->shape[i];
    if (!same) {
        struct tensor *sum = tensor_keep(op_sum_to(g, grad, o->ndim, o->shape));
        tensor_drop(g, grad);
        grad = sum;
    }
    if (grad->a.dtype != o->dtype && !g->halted) {
        struct tensor *cast = tensor_keep(op_to(g, grad, o->dtype));
        tensor_drop(g, grad);
        grad = cast;
    }
    return grad;
}

/* InputBuffer::add. A view is never added to in place: its storage may be seen elsewhere. */
static void buffer_add(struct graph *g, struct node *to, int input, struct tensor *grad)
{
    struct tensor *old = to->grad[input];
    if (!old) {
        to->grad[input] = grad;
        return;
    }
    if (old->refs == 1 && old->storage->refs == 1 && !old->is_view && tensor_is_dense(old)) {
        op_add_(g, old, grad);
    } else {
        to->grad[input] = tensor_keep(op_add(g, old, grad));
        tensor_drop(g, old);
    }
    tensor_drop(g, grad);
}

static void evaluate(struct graph *g, struct node *n)
{
    struct tensor *grads[NODE_MAX_OUTPUTS], *out[NODE_MAX_EDGES] = {NULL};
    memcpy(grads, n->grad, sizeof grads);
    memset(n->grad, 0, sizeof n->grad);
    if (n->kind == &accumulate_grad) {
        if (grads[0]) accumulate(g, n, grads[0]);
        return;
    }
    if (!g->halted) n->kind->backward(g, n, grads, out);
    if (n->packed) release_saved(g, n);
    for (int i = 0; i < n->edge_count; i++)
        if (out[i] && n->edge[i].node)
            out[i] = validated(g, out[i], &n->edge[i].node->output[n->edge[i].input]);
    for (int i = 0; i < n->output_count; i++) tensor_drop(g, grads[i]);
    release_variables(g, n);
    for (int i = 0; i < n->edge_count; i++) {
        struct node *to = n->edge[i].node;
        if (!to) continue;
        if (out[i]) buffer_add(g, to, n->edge[i].input, out[i]);
        if (--to->dependencies == 0) heap_push(g, to);
    }
}

void autograd_backward(struct graph *g, struct tensor *loss)
{
    if (g->halted) return;
    enum thread thread = g->thread;
    bool grad_enabled = g->grad_enabled;
    struct node *root = loss->grad_fn;
    struct tensor *one = tensor_keep(op_full_like(g, loss, 1.0));
    g->thread = THREAD_AUTOGRAD;
    g->grad_enabled = false;
    count_dependencies(g, root);
    root->grad[0] = tensor_ref(one); /* Python's caller holds it too, to the end */
    heap_push(g, root);
    while (g->heap_count) evaluate(g, heap_pop(g));
    tensor_drop(g, one);
    g->grad_enabled = grad_enabled;
    g->thread = thread;
}
