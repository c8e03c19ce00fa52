#include "engine.h"
#include <string.h>

bool autograd_needed(const struct engine *e, int count, struct tensor *const *operands)
{
    if (!e->grad_enabled) return false;
    for (int i = 0; i < count; i++)
        if (operands[i] && operands[i]->requires_grad) return true;
    return false;
}

/* --- releasing (tensors hold nodes, and nodes hold tensors) ----------------------------------- */

void node_release_unpacked(struct engine *e, struct node *n)
{
    for (int i = 0; i < n->saved_count; i++) {
        if (!n->handle[i]) continue;
        tensor_drop(e, n->saved[i]);
        n->saved[i] = NULL;
    }
}

void node_release_saved(struct engine *e, struct node *n)
{
    node_release_unpacked(e, n);
    for (int i = 0; i < n->saved_count; i++) {
        struct tensor *x = n->saved[i];
        n->saved[i] = NULL;
        if (!x) continue;
        storage_saved(e, x->storage, -1);
        tensor_drop(e, x);
    }
    for (int i = 0; i < n->saved_count; i++)
        if (n->handle[i]) n->hooks->drop(e, n->handle[i]);
    n->saved_count = 0;
}

/* A chain of nodes is released link by link, never by recursion. */
static void release(struct engine *e, struct node *n)
{
    struct autograd *a = &e->autograd;
    n->grad[0] = (struct tensor *)a->released; /* it holds no gradient: the slot links them */
    a->released = n;
    if (a->releasing) return;
    a->releasing = true;
    while (a->released) {
        struct node *gone = a->released;
        a->released = (struct node *)gone->grad[0];
        node_release_saved(e, gone);
        if (gone->held) storage_saved(e, gone->held->storage, -1);
        tensor_drop(e, gone->held);
        if (gone->context) gone->drop_context(e, gone->context);
        if (gone->variable && !gone->variable->is_parameter) {
            gone->variable->accumulator = NULL;
            tensor_drop(e, gone->variable);
        }
        for (int i = 0; i < gone->edge_count; i++) node_drop(e, gone->edge[i].node);
        engine_free_host(e, gone->room);
        pool_free(&e->nodes, gone);
    }
    a->releasing = false;
}

/* --- a node, and what it saves --------------------------------------------------------------- */

static struct node *node_new(struct engine *e, const struct node_kind *kind)
{
    struct node *n = pool_allocate(&e->nodes, sizeof *n);
    if (!n) {
        engine_fail(e, PLIM_NOMEM);
        return NULL;
    }
    n->kind = kind;
    n->sequence = e->autograd.sequence++;
    n->head = (struct node_head){.refs = 1, .release = release};
    n->edge_count = n->output_count = n->saved_count = 0;
    n->hook = NULL;
    n->hooks = NULL;
    n->held = NULL;
    n->context = NULL;
    n->variable = NULL;
    n->pass = 0;
    n->edge = n->own_edge;
    n->output = n->own_output;
    n->grad = n->own_grad;
    n->ints = n->own_ints;
    n->room = NULL;
    memset(n->own_grad, 0, sizeof n->own_grad);
    return n;
}

void node_widen(struct engine *e, struct node *n, int edges, int outputs)
{
    size_t in = (size_t)edges, out = (size_t)outputs;
    n->room = engine_allocate_host(e, (in + NODE_INTS) * sizeof *n->ints + in * sizeof *n->edge +
                                      out * sizeof *n->output + (in + 2 * out) * sizeof *n->grad);
    if (!n->room) return;
    n->ints = n->room;
    n->output = (struct node_output *)(n->ints + in + NODE_INTS);
    struct edge *edge = (struct edge *)(n->output + out);
    memcpy(edge, n->edge, n->edge_count * sizeof *edge);
    n->edge = edge;
    n->grad = (struct tensor **)(n->edge + in);
    n->grads = n->grad + out;
    n->out = n->grads + out;
}

struct node *node_create(struct engine *e, const struct node_kind *kind, int count,
                         struct tensor *const *operands)
{
    struct node *n = node_new(e, kind);
    if (n && count > NODE_EDGES) node_widen(e, n, count, NODE_OUTPUTS);
    if (!n || (count > NODE_EDGES && !n->room)) return NULL;
    n->edge_count = (uint16_t)count;
    for (int i = 0; i < count; i++) {
        struct tensor *x = operands[i];
        struct node *to = x && x->requires_grad ? x->grad_fn ? x->grad_fn : x->accumulator : NULL;
        n->edge[i].node = to;
        n->edge[i].input = to && x->grad_fn ? x->output_number : 0;
        if (to) to->head.refs++;
    }
    return n;
}

/* Takes `x` over. */
static void save(struct engine *e, struct node *n, int slot, struct tensor *x)
{
    const struct saved_tensors_hooks *hooks = e->autograd.hooks;
    while (n->saved_count <= slot) {
        n->saved[n->saved_count] = NULL;
        n->handle[n->saved_count++] = NULL;
    }
    void *handle = hooks && x ? hooks->pack(e, x) : NULL; /* SavedVariable packs no undefined tensor */
    if (handle) {
        n->hooks = hooks;
        n->handle[slot] = handle;
        tensor_drop(e, x);
        return;
    }
    n->saved[slot] = x;
    if (x) storage_saved(e, x->storage, +1);
}

void node_save(struct engine *e, struct node *n, int slot, struct tensor *x)
{
    if (e->halted) return;
    save(e, n, slot, x ? tensor_ref(x) : NULL);
}

void node_save_output(struct engine *e, struct node *n, int slot, struct tensor *x)
{
    if (e->halted) return;
    save(e, n, slot, tensor_keep(tensor_detach(e, x)));
}

void node_retain(struct engine *e, struct node *n, struct tensor *x)
{
    n->held = tensor_ref(x);
    storage_saved(e, x->storage, +1);
}

void node_attach(struct node *n, struct tensor *x)
{
    struct node_output *o = &n->output[n->output_count];
    memcpy(o->shape, x->a.shape, sizeof o->shape);
    o->ndim = x->a.ndim;
    o->dtype = x->a.dtype;
    x->grad_fn = n;
    x->output_number = n->output_count++;
    x->requires_grad = true;
    if (x->output_number > 0) n->head.refs++; /* the first output takes the creator's reference */
}

struct tensor *node_saved(struct engine *e, struct node *n, int slot)
{
    if (slot >= n->saved_count) return NULL;
    if (n->hooks && n->handle[slot] && !n->saved[slot])
        n->saved[slot] = n->hooks->unpack(e, n->handle[slot]);
    return n->saved[slot];
}

/* --- leaves --------------------------------------------------------------------------------- */

static const struct node_kind accumulate_grad = {"AccumulateGrad", NULL};

void tensor_require_grad(struct engine *e, struct tensor *x)
{
    if (e->halted) return;
    struct node *n = node_new(e, &accumulate_grad);
    if (!n) return;
    e->autograd.sequence--; /* PyTorch gives it no number of its own */
    n->sequence = UINT64_MAX;
    n->variable = x;
    n->output_count = 1;
    memcpy(n->output[0].shape, x->a.shape, sizeof x->a.shape);
    n->output[0].ndim = x->a.ndim;
    n->output[0].dtype = x->a.dtype;
    x->accumulator = n;
    x->requires_grad = true;
}

void tensor_require_input_grad(struct engine *e, struct tensor *x)
{
    if (e->halted || x->accumulator || x->grad_fn) return;
    x->requires_grad = true;
    if (!e->grad_enabled) return; /* no edge leads to it */
    tensor_require_grad(e, x);
    if (!x->accumulator) return;
    tensor_ref(x);
    x->accumulator->head.refs = 0; /* only edges hold it; it holds the leaf */
}
