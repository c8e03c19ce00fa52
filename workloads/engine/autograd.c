#include "autograd.h"
#include "ops.h"
#include <stdlib.h>
#include <string.h>

/* True if .grad may adopt this gradient's layout (obeys_layout_contract). */
static bool layout_obeys(const struct tensor *grad, const struct tensor *variable)
{
    if (!tensor_is_dense(variable)) return tensor_is_contiguous(grad);
    for (int i = 0; i < variable->a.ndim; i++)
        if (grad->a.shape[i] != 1 && grad->a.stride[i] != variable->a.stride[i]) return false;
    return true;
}

static void accumulate(struct engine *e, struct node *n, struct tensor *grad)
{
    struct tensor *variable = n->variable;
    if (variable->grad) {
        op_add_(e, variable->grad, grad);
        tensor_drop(e, grad);
        return;
    }
    if (grad->refs > 1 || !layout_obeys(grad, variable)) {
        struct tensor *copy = tensor_keep(op_copy_like(e, grad, variable));
        tensor_drop(e, grad);
        grad = copy;
    }
    variable->grad = grad;
    if (grad != e->poison) tensor_classify(e, grad, PLIM_MEMORY_GRADIENTS);
}

/* --- the pass ------------------------------------------------------------------------------- */

static bool push(struct engine *e, struct node *n)
{
    struct autograd *a = &e->autograd;
    if (a->ready_count == a->ready_capacity) {
        size_t capacity = a->ready_capacity ? 2 * a->ready_capacity : 256;
        struct node **heap = realloc(a->ready, capacity * sizeof(struct node *));
        if (!heap) {
            engine_fail(e, PLIM_NOMEM);
            return false;
        }
        a->ready = heap;
        a->ready_capacity = capacity;
    }
    a->ready[a->ready_count++] = n;
    return true;
}

static void heap_push(struct engine *e, struct node *n)
{
    if (!push(e, n)) return;
    struct node **h = e->autograd.ready;
    size_t i = e->autograd.ready_count - 1;
    while (i > 0 && h[(i - 1) / 2]->sequence < n->sequence) {
        h[i] = h[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h[i] = n;
}

static struct node *heap_pop(struct autograd *a)
{
    struct node **h = a->ready, *top = h[0], *last = h[--a->ready_count];
    size_t n = a->ready_count, i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && h[child + 1]->sequence > h[child]->sequence) child++;
        if (h[child]->sequence <= last->sequence) break;
        h[i] = h[child];
        i = child;
    }
    h[i] = last;
    return top;
}

/* Counts how many gradients each node waits for. */
static void count_dependencies(struct engine *e, struct node *root)
{
    struct autograd *a = &e->autograd;
    a->pass++;
    root->pass = a->pass;
    root->dependencies = 0;
    push(e, root);
    while (a->ready_count) {
        struct node *n = a->ready[--a->ready_count];
        for (int i = 0; i < n->edge_count; i++) {
            struct node *to = n->edge[i].node;
            if (!to) continue;
            if (to->pass != a->pass) {
                to->pass = a->pass;
                to->dependencies = 0;
                push(e, to);
            }
            to->dependencies++;
        }
    }
}

/* Converts a gradient to the shape and type of the forward tensor. */
static struct tensor *validated(struct engine *e, struct tensor *grad, const struct node_output *o)
{
    bool same = grad->a.ndim == o->ndim;
    for (int i = 0; same && i < o->ndim; i++) same = grad->a.shape[i] == o->shape[i];
    if (!same) {
        struct tensor *sum = tensor_keep(op_sum_to(e, grad, o->ndim, o->shape));
        tensor_drop(e, grad);
        grad = sum;
    }
    if (grad->a.dtype != o->dtype && !e->halted) {
        struct tensor *cast = tensor_keep(op_to(e, grad, o->dtype));
        tensor_drop(e, grad);
        grad = cast;
    }
    return grad;
}

/* InputBuffer::add. A view is never added to in place: others may see its storage. */
static void buffer_add(struct engine *e, struct node *to, int input, struct tensor *grad)
{
    struct tensor *old = to->grad[input];
    if (!old) {
        to->grad[input] = grad;
        return;
    }
    if (old->refs == 1 && old->storage->refs == 1 && !old->is_view && tensor_is_dense(old)) {
        op_add_(e, old, grad);
    } else {
        to->grad[input] = tensor_keep(op_add(e, old, grad));
        tensor_drop(e, old);
    }
    tensor_drop(e, grad);
}

static void evaluate(struct engine *e, struct node *n)
{
    struct tensor *own_grads[NODE_OUTPUTS] = {NULL}, *own_out[NODE_EDGES] = {NULL};
    struct tensor **grads = n->room ? n->grads : own_grads, **out = n->room ? n->out : own_out;
    memcpy(grads, n->grad, n->output_count * sizeof *grads);
    memset(out, 0, n->edge_count * sizeof *out);
    memset(n->grad, 0, n->output_count * sizeof *grads);
    if (n->variable) {
        if (!grads[0]) return;
        if (n->hook && !e->halted) n->hook->run(e, n->hook->context);
        accumulate(e, n, grads[0]);
        if (e->autograd.accumulated)
            e->autograd.accumulated(e, e->autograd.accumulated_context, n->variable);
        return;
    }
    if (n->hook && !e->halted) n->hook->run(e, n->hook->context);
    if (!e->halted) n->kind->backward(e, n, grads, out);
    if (n->hooks) node_release_unpacked(e, n);
    for (int i = 0; i < n->edge_count; i++)
        if (out[i] && n->edge[i].node)
            out[i] = validated(e, out[i], &n->edge[i].node->output[n->edge[i].input]);
    for (int i = 0; i < n->output_count; i++) tensor_drop(e, grads[i]);
    node_release_saved(e, n);
    for (int i = 0; i < n->edge_count; i++) {
        struct node *to = n->edge[i].node;
        if (!to) continue;
        if (out[i]) buffer_add(e, to, n->edge[i].input, out[i]);
        if (--to->dependencies == 0) heap_push(e, to);
    }
}

static void mark_backward(struct engine *e, struct node *n, struct tensor **grads,
                          struct tensor **out)
{
    (void)e;
    (void)n;
    out[0] = tensor_ref(grads[0]);
}
static const struct node_kind mark_kind = {"MarkBackward", mark_backward};

static void divided_backward(struct engine *e, struct node *n, struct tensor **grads,
                             struct tensor **out)
{
    out[0] = tensor_keep(op_div_scalar(e, grads[0], n->number));
}
static const struct node_kind divided_kind = {"DividedBackward", divided_backward};

/* Returns a tensor on the same memory with a node of its own, floating; or `x` itself if it needs no gradient. */
static struct tensor *behind_node(struct engine *e, struct tensor *x, const struct node_kind *kind,
                                  const struct node_hook *hook, double number)
{
    if (e->halted || !autograd_needed(e, 1, &x)) return x;
    struct node *n = node_create(e, kind, 1, &x);
    struct tensor *y = tensor_detach(e, x);
    if (e->halted) return e->poison;
    n->hook = hook;
    n->number = number;
    node_attach(n, y);
    return y;
}

struct tensor *autograd_mark(struct engine *e, struct tensor *x, const struct node_hook *hook)
{
    return behind_node(e, x, &mark_kind, hook, 0);
}

struct tensor *autograd_divided(struct engine *e, struct tensor *x, double divisor)
{
    return behind_node(e, x, &divided_kind, NULL, divisor);
}

/* Runs a backward pass from `y`. `grad` is lent: the Python caller holds it until the end. */
static void run_from(struct engine *e, struct tensor *y, struct tensor *grad)
{
    struct node *root = y->grad_fn;
    bool grad_enabled = e->grad_enabled;
    e->grad_enabled = false;
    count_dependencies(e, root);
    root->grad[y->output_number] = tensor_ref(grad);
    heap_push(e, root);
    while (e->autograd.ready_count) evaluate(e, heap_pop(&e->autograd));
    e->grad_enabled = grad_enabled;
}

void autograd_backward_within(struct engine *e, struct tensor *y, struct tensor *grad)
{
    if (e->halted || !y->grad_fn) return;
    struct autograd *a = &e->autograd;
    struct node **ready = a->ready;
    size_t count = a->ready_count, capacity = a->ready_capacity;
    a->ready = NULL;
    a->ready_count = a->ready_capacity = 0;
    run_from(e, y, grad);
    free(a->ready);
    a->ready = ready;
    a->ready_count = count;
    a->ready_capacity = capacity;
}

void autograd_backward(struct engine *e, struct tensor *loss)
{
    if (e->halted) return;
    enum thread thread = e->thread;
    struct tensor *one = tensor_keep(op_full_like(e, loss, 1.0));
    e->thread = THREAD_AUTOGRAD;
    run_from(e, loss, one);
    if (e->autograd.ended.run) e->autograd.ended.run(e, e->autograd.ended.context);
    tensor_drop(e, one);
    e->thread = thread;
}
