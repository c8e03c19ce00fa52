/* axolotl's LoRA_QKV, LoRA_O and LoRA_MLP: the statements of Python's autograd.Functions, in order. */
#include "ops.h"
#include "ops_lora.h"
#include <string.h>

enum { PARTS = 3 };
enum { X, DROPPED, FIRST_MATRIX }; /* edges: those of x, then A and B of each projection */

/* The attributes of ctx other than saved tensors; holds references to the weights. */
struct lora_context {
    struct lora_projection part[PARTS];
    bool drops;
    enum plim_unary f; /* LoRA_MLP: the activation of its gate */
};

static void drop_context(struct engine *e, void *context)
{
    struct lora_context *c = context;
    for (int i = 0; i < PARTS; i++) tensor_drop(e, c->part[i].weight);
    engine_free_host(e, c);
}

/* --- shared by forward and backward ----------------------------------------------------------- */

/* (B, S, n) seen as (B S, n); named */
static struct tensor *rows_of(struct engine *e, struct tensor *x)
{
    int64_t width = tensor_size(x, -1);
    return tensor_hold(op_reshape(e, x, SHAPE(tensor_elements(x) / width, width)));
}

static struct tensor *transposed(struct engine *e, struct tensor *x)
{
    return op_transpose(e, x, 0, 1);
}

/* dequantize(): returns the weight itself, or a new matrix; named. */
static struct tensor *base_weight(struct engine *e, const struct lora_projection *p)
{
    return p->quantized ? tensor_keep(op_dequantize_4bit_late(e, p->quantized)) : tensor_ref(p->weight);
}

/* y += scaling (x left) right; the matrices, which may be floating, are cast to the type of x first. */
static void add_product(struct engine *e, struct tensor *y, struct tensor *x, struct tensor *left, struct tensor *right,
                        double scaling)
{
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    struct tensor *from = tensor_hold(op_to(e, left, dtype)), *to = tensor_hold(op_to(e, right, dtype));
    struct tensor *low = tensor_keep(op_matmul(e, x, from));
    op_mm_scaled(e, y, low, to, 1, scaling);
    tensor_drop_all(e, low, from, to);
}

/* matmul_lora(): (B, S, out) named */
static struct tensor *project(struct engine *e, const struct lora_projection *p, struct tensor *x,
                              struct tensor *dropped)
{
    if (e->halted) return e->poison;
    struct tensor *weight = base_weight(e, p), *rows = rows_of(e, x), *seen = rows_of(e, dropped ? dropped : x);
    struct tensor *y = tensor_keep(op_matmul(e, rows, transposed(e, weight)));
    tensor_drop(e, weight);
    add_product(e, y, seen, transposed(e, p->a), transposed(e, p->b), p->scaling);
    if (p->bias) op_add_(e, y, p->bias);
    tensor_set(e, &y, op_view(e, y, SHAPE(x->a.shape[0], x->a.shape[1], tensor_size(p->b, 0))));
    tensor_drop_all(e, rows, seen);
    return y;
}

/* Casts A and B of `count` projections to the type of x, kept for backward; named. */
static void convert(struct engine *e, struct tensor *x, const struct lora_projection *p, int count,
                    struct tensor **matrices)
{
    for (int i = 0; i < count; i++) {
        matrices[2 * i] = tensor_hold(op_to(e, p[i].a, (enum plim_dtype)x->a.dtype));
        matrices[2 * i + 1] = tensor_hold(op_to(e, p[i].b, (enum plim_dtype)x->a.dtype));
    }
}

/* Returns the node of a function of x and `count` projections, each with its own edges; NULL if nothing needs a
 * gradient. */
static struct node *begin(struct engine *e, const struct node_kind *kind, struct tensor *x, struct tensor *dropped,
                          const struct lora_projection *p, int count)
{
    struct tensor *given[FIRST_MATRIX + 2 * PARTS] = {x, dropped};
    for (int i = 0; i < count; i++) {
        given[FIRST_MATRIX + 2 * i] = p[i].a;
        given[FIRST_MATRIX + 2 * i + 1] = p[i].b;
    }
    struct node *n = op_node(e, kind, FIRST_MATRIX + 2 * count, given);
    if (!n) return NULL;
    struct lora_context *c = engine_allocate_host(e, sizeof *c);
    if (!c) return n;
    memcpy(c->part, p, sizeof *p * (size_t)count);
    for (int i = 0; i < count; i++) tensor_ref(p[i].weight);
    c->drops = dropped;
    n->context = c;
    n->drop_context = drop_context;
    return n;
}

static void save_in_order(struct engine *e, struct node *n, int count, struct tensor *const *saved)
{
    for (int i = 0; n && i < count; i++) node_save(e, n, i, saved[i]);
}

/* Backward of one projection: the gradient of its result, dy (B S, out), and, after adapter_gradients(), that times B,
 * low (B S, r). */
struct gradient {
    const struct lora_projection *part;
    struct tensor *a, *b; /* in the type of x, lent */
    struct tensor *dy, *low;
};

static const struct lora_projection *part_of(const struct node *n, int i)
{
    return &((const struct lora_context *)n->context)->part[i];
}

/* dA = scaling (dy B)^T x and dB = scaling dy^T (x A^T), of x (B S, in) */
static void adapter_gradients(struct engine *e, struct gradient *g, struct tensor *x, struct tensor *out[2])
{
    enum plim_dtype dtype = (enum plim_dtype)g->a->a.dtype;
    g->low = tensor_keep(op_matmul(e, g->dy, g->b));
    out[0] = tensor_keep(tensor_empty(e, dtype, 2, g->a->a.shape));
    out[1] = tensor_keep(tensor_empty(e, dtype, 2, g->b->a.shape));
    op_mm_scaled(e, out[0], transposed(e, g->low), x, 0, g->part->scaling);
    struct tensor *seen = tensor_keep(op_matmul(e, g->a, transposed(e, x)));
    op_mm_scaled(e, out[1], transposed(e, g->dy), transposed(e, seen), 0, g->part->scaling);
    tensor_drop(e, seen);
}

/* Returns the sum of dy W over `count` projections; (B S, in), named. */
static struct tensor *base_gradient(struct engine *e, const struct gradient *g, int count)
{
    struct tensor *dx = NULL;
    for (int i = 0; i < count; i++) {
        struct tensor *weight = base_weight(e, g[i].part);
        if (dx)
            op_mm_scaled(e, dx, g[i].dy, weight, 1, 1);
        else
            dx = tensor_keep(op_matmul(e, g[i].dy, weight));
        tensor_drop(e, weight);
    }
    return dx;
}

/* dx += scaling low A over `count` projections */
static void add_adapter_gradients(struct engine *e, struct tensor *dx, const struct gradient *g, int count)
{
    for (int i = 0; i < count; i++) op_mm_scaled(e, dx, g[i].low, g[i].a, 1, g[i].part->scaling);
}

/* Stores a gradient in the shape of x (named), if it is needed; `dx` is taken. */
static void give(struct engine *e, struct node *n, int edge, struct tensor *dx, const struct tensor *x,
                 struct tensor **out)
{
    if (node_wants(n, edge)) out[edge] = tensor_keep(op_view(e, dx, 3, x->a.shape));
    tensor_drop(e, dx);
}

/* --- queries, keys and values ----------------------------------------------------------------- */

static void qkv_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct gradient g[PARTS];
    struct tensor *x = node_saved(e, n, X), *dropped = node_saved(e, n, DROPPED);
    for (int i = 0; i < PARTS; i++)
        g[i] = (struct gradient){.part = part_of(n, i),
                                 .a = node_saved(e, n, FIRST_MATRIX + 2 * i),
                                 .b = node_saved(e, n, FIRST_MATRIX + 2 * i + 1)};
    if (e->halted) return;
    bool drops = ((const struct lora_context *)n->context)->drops;
    struct tensor *rows = rows_of(e, dropped);
    for (int i = 0; i < PARTS; i++) g[i].dy = rows_of(e, grads[i]);
    for (int i = 0; i < PARTS; i++) adapter_gradients(e, &g[i], rows, &out[FIRST_MATRIX + 2 * i]);
    struct tensor *dx = base_gradient(e, g, PARTS), *apart = drops ? tensor_keep(op_full_like(e, rows, 0)) : NULL;
    add_adapter_gradients(e, drops ? apart : dx, g, PARTS);
    give(e, n, X, dx, x, out);
    if (drops) give(e, n, DROPPED, apart, x, out);
    for (int i = 0; i < PARTS; i++) tensor_drop_all(e, g[i].dy, g[i].low);
    tensor_drop(e, rows);
}
static const struct node_kind qkv_kind = {"LoRA_QKVBackward", qkv_backward};

void op_lora_qkv(struct engine *e, struct tensor *x, struct tensor *dropped, const struct lora_projection p[3],
                 struct tensor *y[3])
{
    y[0] = y[1] = y[2] = e->poison;
    if (e->halted) return;
    struct node *n = begin(e, &qkv_kind, x, dropped, p, PARTS);
    bool grad = e->grad_enabled;
    struct tensor *matrices[2 * PARTS];
    e->grad_enabled = false;
    for (int i = 0; i < PARTS; i++) y[i] = project(e, &p[i], x, dropped);
    convert(e, x, p, PARTS, matrices);
    e->grad_enabled = grad;
    save_in_order(e, n, 8, (struct tensor *[]){x, dropped ? dropped : x, matrices[0], matrices[1], matrices[2],
                                               matrices[3], matrices[4], matrices[5]});
    tensor_drop_list(e, matrices, 2 * PARTS);
    for (int i = 0; n && i < PARTS && !e->halted; i++) node_attach(n, y[i]);
    if (n && !n->output_count) node_drop(e, n);
}

/* --- one projection --------------------------------------------------------------------------- */

enum { O_A, O_B, O_X, O_DROPPED };

static void o_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, O_X), *dropped = node_saved(e, n, O_DROPPED);
    struct gradient g = {.part = part_of(n, 0), .a = node_saved(e, n, O_A), .b = node_saved(e, n, O_B)};
    if (e->halted) return;
    struct tensor *rows = rows_of(e, dropped);
    g.dy = rows_of(e, grads[0]);
    adapter_gradients(e, &g, rows, &out[FIRST_MATRIX]);
    struct tensor *dx = base_gradient(e, &g, 1);
    if (((const struct lora_context *)n->context)->drops) {
        struct tensor *apart = op_mul_scalar(e, op_matmul(e, g.low, g.a), g.part->scaling);
        give(e, n, DROPPED, tensor_keep(apart), x, out);
    } else {
        add_adapter_gradients(e, dx, &g, 1);
    }
    give(e, n, X, dx, x, out);
    tensor_drop_all(e, g.dy, g.low, rows);
}
static const struct node_kind o_kind = {"LoRA_OBackward", o_backward};

struct tensor *op_lora_o(struct engine *e, struct tensor *x, struct tensor *dropped, const struct lora_projection *p)
{
    struct tensor *matrices[2];
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct node *n = begin(e, &o_kind, x, dropped, p, 1);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *y = project(e, p, x, dropped);
    convert(e, x, p, 1, matrices);
    e->grad_enabled = grad;
    save_in_order(e, n, 4, (struct tensor *[]){matrices[0], matrices[1], x, dropped ? dropped : x});
    tensor_drop_all(e, matrices[0], matrices[1]);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return tensor_yield(y);
}

/* --- the gated MLP ---------------------------------------------------------------------------- */

enum { GATE, UP, DOWN };
enum { MLP_GATE = 2, MLP_UP, MLP_MATRICES }; /* saved after x and the adapters' input */

static void mlp_backward(struct engine *e, struct node *n, struct tensor **grads, struct tensor **out)
{
    struct tensor *x = node_saved(e, n, X), *dropped = node_saved(e, n, DROPPED), *gate = node_saved(e, n, MLP_GATE),
                  *up = node_saved(e, n, MLP_UP);
    struct gradient g[PARTS];
    for (int i = 0; i < PARTS; i++)
        g[i] = (struct gradient){.part = part_of(n, i),
                                 .a = node_saved(e, n, MLP_MATRICES + 2 * i),
                                 .b = node_saved(e, n, MLP_MATRICES + 2 * i + 1)};
    if (e->halted) return;
    const struct lora_context *context = n->context;
    bool drops = context->drops;
    struct tensor *rows = rows_of(e, dropped);
    g[DOWN].dy = rows_of(e, grads[0]);
    g[GATE].dy = rows_of(e, gate);
    g[UP].dy = rows_of(e, up);
    struct tensor *hidden = base_gradient(e, &g[DOWN], 1);
    add_product(e, hidden, g[DOWN].dy, g[DOWN].b, g[DOWN].a, g[DOWN].part->scaling);
    /* The product of activation and up overwrites its gradient, and the gradients of gate and up overwrite those. */
    struct plim_op op = {.kind = PLIM_OP_GATED_BACKWARD, .unary = (uint8_t)context->f};
    struct tensor *const indices[] = {g[GATE].dy, g[UP].dy, hidden, hidden, g[GATE].dy, g[UP].dy};
    op_launch(e, op, 3, 3, indices);
    adapter_gradients(e, &g[DOWN], hidden, &out[FIRST_MATRIX + 2 * DOWN]);
    adapter_gradients(e, &g[UP], rows, &out[FIRST_MATRIX + 2 * UP]);
    adapter_gradients(e, &g[GATE], rows, &out[FIRST_MATRIX + 2 * GATE]);
    if (node_wants(n, X)) {
        const struct gradient inputs[] = {g[UP], g[GATE]};
        struct tensor *dx = base_gradient(e, inputs, 2);
        struct tensor *apart = drops ? tensor_keep(op_full_like(e, rows, 0)) : NULL;
        add_adapter_gradients(e, drops ? apart : dx, inputs, 2);
        give(e, n, X, dx, x, out);
        if (drops) give(e, n, DROPPED, apart, x, out);
    }
    for (int i = 0; i < PARTS; i++) tensor_drop_all(e, g[i].dy, g[i].low);
    tensor_drop_all(e, hidden, rows);
}
static const struct node_kind mlp_kind = {"LoRA_MLPBackward", mlp_backward};

struct tensor *op_lora_mlp(struct engine *e, enum plim_unary f, struct tensor *x, struct tensor *dropped,
                           const struct lora_projection p[3])
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct node *n = begin(e, &mlp_kind, x, dropped, p, PARTS);
    if (n && !e->halted) ((struct lora_context *)n->context)->f = f;
    bool grad = e->grad_enabled;
    struct tensor *m[2 * PARTS];
    e->grad_enabled = false;
    struct tensor *gate = project(e, &p[GATE], x, dropped), *up = project(e, &p[UP], x, dropped);
    struct tensor *hidden = tensor_keep(tensor_empty(e, (enum plim_dtype)gate->a.dtype, gate->a.ndim, gate->a.shape));
    struct plim_op op = {.kind = PLIM_OP_GATED, .unary = (uint8_t)f};
    op_launch(e, op, 1, 2, (struct tensor *[]){hidden, gate, up});
    struct tensor *y = project(e, &p[DOWN], hidden, NULL);
    convert(e, x, p, PARTS, m);
    e->grad_enabled = grad;
    save_in_order(e, n, MLP_MATRICES + 2 * PARTS,
                  (struct tensor *[]){x, dropped ? dropped : x, gate, up, m[0], m[1], m[2], m[3], m[4], m[5]});
    tensor_drop_list(e, m, 2 * PARTS);
    tensor_drop_all(e, hidden, gate, up);
    y = op_done(e, n, y, 0, NULL);
    tensor_leave(e, x, was);
    return tensor_yield(y);
}
