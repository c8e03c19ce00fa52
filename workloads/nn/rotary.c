/* Rotary position embeddings, with the steps of their Python code. */
#include "nn.h"

void nn_rotary_create(struct engine *e, struct rotary *r)
{
    r->inv_freq = tensor_keep(nn_rope_frequencies(e, r));
    tensor_classify(e, r->inv_freq, PLIM_MEMORY_PARAMETERS);
    if (r->is_alone) return;
    r->original_inv_freq = tensor_keep(op_clone(e, r->inv_freq));
    tensor_classify(e, r->original_inv_freq, PLIM_MEMORY_PARAMETERS);
}

void nn_rotary_initialise(struct engine *e, const struct rotary *r)
{
    tensor_drop(e, tensor_keep(nn_rope_frequencies(e, r)));
}

void nn_rotary_initialise_both(struct engine *e, const struct rotary *a, const struct rotary *b)
{
    struct tensor *first =
        tensor_keep(nn_rope_frequencies(e, a)); /* lives until the variable is rebound */
    struct tensor *second = tensor_keep(nn_rope_frequencies(e, b));
    tensor_drop(e, first);
    tensor_drop(e, second);
}

/* Returns the angles (B, S, dim / 2) of positions (B, S); B is 1 if all rows are equal. If they are computed by a
 * matrix product, `variables` are Python variables that stay alive. */
static struct tensor *angles(struct engine *e, const struct rotary *r, struct tensor *positions,
                             struct tensor *variables[2])
{
    int64_t batch = tensor_size(positions, 0), half = (r->dim + 1) / 2;
    if (r->by_elements)
        return op_mul(e, op_to(e, op_unsqueeze(e, positions, 2), PLIM_F32), op_to(e, r->inv_freq, PLIM_F32));
    struct tensor *frequencies = op_view(e, r->inv_freq, SHAPE(1, half, 1));
    if (batch > 1) frequencies = op_expand(e, frequencies, SHAPE(batch, half, 1));
    variables[0] = tensor_hold(op_to(e, frequencies, PLIM_F32));
    variables[1] = tensor_keep(op_to(e, op_unsqueeze(e, positions, 1), PLIM_F32));
    return op_transpose(e, op_matmul(e, variables[0], variables[1]), 1, 2);
}

/* torch.cat((x, x), dim=-1) */
static struct tensor *twice(struct engine *e, struct tensor *x)
{
    return op_cat(e, 2, (struct tensor *[]){x, x}, -1);
}

/* Returns the angles (3, B, S, dim / 2) of positions (3, B, S). */
static struct tensor *grid_angles(struct engine *e, const struct rotary *r, struct tensor *positions,
                                  struct tensor *variables[2])
{
    if (e->halted) return e->poison;
    int64_t half = (r->dim + 1) / 2, grids = positions->a.shape[0], batch = positions->a.shape[1];
    struct tensor *frequencies = op_to(e, op_view(e, r->inv_freq, SHAPE(1, 1, half, 1)), PLIM_F32);
    variables[0] = tensor_keep(op_expand(e, frequencies, SHAPE(grids, batch, half, 1)));
    variables[1] = tensor_keep(op_to(e, op_unsqueeze(e, positions, 2), PLIM_F32));
    return op_transpose(e, op_matmul(e, variables[0], variables[1]), 2, 3);
}

/* recomposition_frequencies: concatenates the grids' sections of cos or sin (3, B, S, dim / 2); (B, S, dim). */
static struct tensor *join_sections(struct engine *e, const struct rotary *r, struct tensor *x)
{
    struct tensor *part[3];
    for (int i = 0, at = 0; i < 3; at += (int)r->sections[i++])
        part[i] = op_slice(e, op_select(e, x, 0, i), -1, at, r->sections[i]);
    struct tensor *once = tensor_keep(op_cat(e, 3, part, -1)), *y = twice(e, once);
    tensor_drop(e, once);
    return y;
}

/* The same with interleaved grids: the other grids replace every third element of the first ones. */
static struct tensor *interleave(struct engine *e, const struct rotary *r, struct tensor *x)
{
    struct tensor *first = tensor_keep(op_select(e, x, 0, 0));
    int64_t width = e->halted ? 0 : tensor_size(x, -1);
    for (int64_t i = 1; i < 3; i++) {
        int64_t end = 3 * r->sections[i] < width ? 3 * r->sections[i] : width;
        if (i >= end || e->halted) continue;
        struct tensor *into = tensor_keep(op_slice_steps(e, op_slice(e, first, -1, 0, end), i, 3));
        struct tensor *from = tensor_keep(op_slice_steps(e, op_slice(e, op_select(e, x, 0, i), -1, 0, end), i, 3));
        op_copy_(e, into, from);
        tensor_drop_all(e, into, from);
    }
    struct tensor *y = twice(e, first);
    tensor_drop(e, first);
    return y;
}

void nn_rotary(struct engine *e, struct rotary *r, struct tensor *positions, enum plim_dtype dtype,
               struct tensor **cos, struct tensor **sin)
{
    bool grad = e->grad_enabled, autocast = e->autocast.on;
    if (r->fp32) dtype = PLIM_F32;
    e->grad_enabled = e->autocast.on = false;
    nn_rope_update(e, r, positions);
    struct tensor *variables[2] = {NULL, NULL};
    struct tensor *freqs = tensor_keep((r->of_grids ? grid_angles : angles)(e, r, positions, variables));
    if (r->is_complex) {
        *cos = tensor_keep(op_mul_scalar(e, op_unit_complex(e, freqs), 1));
        *sin = NULL;
        tensor_drop_all(e, variables[0], variables[1], freqs);
        e->autocast.on = autocast;
        e->grad_enabled = grad;
        return;
    }
    struct tensor *emb = r->half || r->of_grids ? tensor_ref(freqs)
                         : r->pairs             ? tensor_keep(op_repeat_each(e, freqs, -1, 2))
                                                : tensor_keep(twice(e, freqs));
    struct tensor *c = tensor_keep(op_mul_scalar(e, op_unary(e, emb, PLIM_UNARY_COS), 1));
    struct tensor *s = tensor_keep(op_mul_scalar(e, op_unary(e, emb, PLIM_UNARY_SIN), 1));
    if (r->of_grids) {
        tensor_set(e, &s, (r->by_sections ? join_sections : interleave)(e, r, s));
        tensor_set(e, &c, (r->by_sections ? join_sections : interleave)(e, r, c));
    }
    *cos = tensor_hold(op_to(e, c, dtype));
    *sin = tensor_hold(op_to(e, s, dtype));
    tensor_drop_all(e, variables[0], variables[1], freqs, emb, c, s);
    e->autocast.on = autocast;
    e->grad_enabled = grad;
}

/* cat((-x2, x1)) of the two halves of the last dimension */
static struct tensor *rotate_half(struct engine *e, struct tensor *x)
{
    int64_t dim = tensor_size(x, -1), half = dim / 2;
    struct tensor *x1 = tensor_keep(op_slice(e, x, -1, 0, half));
    struct tensor *x2 = tensor_keep(op_slice(e, x, -1, half, dim - half));
    struct tensor *parts[2] = {op_neg(e, x2), x1};
    struct tensor *y = op_cat(e, 2, parts, -1);
    tensor_drop(e, x1);
    tensor_drop(e, x2);
    return y;
}

struct tensor *nn_rotate(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct tensor *straight = op_mul(e, x, cos);
    struct tensor *rotated = op_mul(e, rotate_half(e, x), sin);
    struct tensor *y = op_add(e, straight, rotated);
    tensor_leave(e, x, was);
    return y;
}

/* cat((x1 cos - x2 sin, x2 cos + x1 sin)) of the parts x1 and x2, which float */
static struct tensor *rotate_parts(struct engine *e, struct tensor *part[2], struct tensor *cos, struct tensor *sin)
{
    struct tensor *rotated[2];
    for (int i = 0; i < 2; i++) tensor_keep(part[i]);
    struct tensor *straight = op_mul(e, part[0], cos);
    rotated[0] = tensor_keep(op_sub(e, straight, op_mul(e, part[1], sin)));
    straight = op_mul(e, part[1], cos);
    rotated[1] = tensor_keep(op_add(e, straight, op_mul(e, part[0], sin)));
    struct tensor *y = op_cat(e, 2, rotated, -1);
    tensor_drop_all(e, part[0], part[1], rotated[0], rotated[1]);
    return y;
}

struct tensor *nn_rotate_halves(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t half = tensor_size(x, -1) / 2;
    struct tensor *part[2];
    op_split(e, x, -1, 2, (int64_t[]){half, half}, part);
    return rotate_parts(e, part, cos, sin);
}

struct tensor *nn_rotate_apart(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct tensor *part[2] = {op_slice_steps(e, x, 0, 2), op_slice_steps(e, x, 1, 2)};
    tensor_leave(e, x, was);
    return rotate_parts(e, part, cos, sin);
}

/* stack((-x2, x1), dim=-1).flatten(-2) of adjacent elements x1 and x2. */
static struct tensor *rotate_neighbours(struct engine *e, struct tensor *x)
{
    int64_t shape[PLIM_MAX_DIMS];
    int ndim = x->a.ndim;
    for (int i = 0; i < ndim; i++) shape[i] = x->a.shape[i];
    struct tensor *x1 = tensor_keep(op_slice_steps(e, x, 0, 2));
    struct tensor *x2 = tensor_keep(op_slice_steps(e, x, 1, 2));
    struct tensor *parts[2] = {op_unsqueeze(e, op_neg(e, x2), -1), op_unsqueeze(e, x1, -1)};
    struct tensor *y = op_view(e, op_cat(e, 2, parts, -1), ndim, shape);
    tensor_drop_all(e, x1, x2);
    return y;
}

struct tensor *nn_rotate_pairs(struct engine *e, struct tensor *x, struct tensor *cos,
                               struct tensor *sin)
{
    if (e->halted) return op_halted(e, 1, &x);
    bool was = tensor_enter(x);
    struct tensor *straight = op_mul(e, x, cos);
    struct tensor *y = op_add(e, straight, op_mul(e, rotate_neighbours(e, x), sin));
    tensor_leave(e, x, was);
    return y;
}

struct tensor *nn_rotate_pairs_wide(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *straight = op_mul(e, op_to(e, x, PLIM_F32), cos);
    return op_add(e, straight, op_mul(e, op_to(e, rotate_neighbours(e, x), PLIM_F32), sin));
}

struct tensor *nn_rotate_wide(struct engine *e, struct tensor *x, struct tensor *cos,
                              struct tensor *sin)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *straight = op_mul(e, op_to(e, x, PLIM_F32), cos);
    struct tensor *wide = op_to(e, x, PLIM_F32);
    bool was = tensor_enter(wide);
    struct tensor *half = rotate_half(e, wide);
    tensor_leave(e, wide, was);
    return op_add(e, straight, op_mul(e, half, sin));
}

void nn_rotate_complex(struct engine *e, struct tensor *const x[2], struct tensor *angles, struct tensor *y[2])
{
    struct tensor *numbers[2];
    y[0] = y[1] = e->poison;
    for (int i = 0; i < 2 && !e->halted; i++) {
        const int64_t *shape = x[i]->a.shape;
        struct tensor *pairs = op_reshape(e, op_to(e, x[i], PLIM_F32),
                                          SHAPE(shape[0], shape[1], shape[2], shape[3] / 2, 2));
        numbers[i] = tensor_keep(op_view_complex(e, pairs));
    }
    if (e->halted) return;
    struct tensor *by = tensor_keep(op_unsqueeze(e, angles, 1));
    for (int i = 0; i < 2; i++) {
        struct tensor *rotated = op_view_complex(e, op_mul_complex(e, numbers[i], by));
        if (e->halted) break;
        rotated = op_reshape(e, rotated, x[i]->a.ndim, x[i]->a.shape);
        y[i] = tensor_hold(op_to(e, rotated, (enum plim_dtype)x[i]->a.dtype));
    }
    tensor_drop_all(e, numbers[0], numbers[1], by);
}

/* Stores x[..., :dim] and x[..., dim:], named. */
static void cut(struct engine *e, struct tensor *x, int64_t dim, struct tensor **turns,
                struct tensor **stays)
{
    int64_t rest = tensor_size(x, -1) - dim;
    *turns = tensor_keep(rest ? op_slice(e, x, -1, 0, dim) : op_alias(e, x));
    *stays = tensor_keep(op_slice(e, x, -1, dim, rest));
}

void nn_rotate_parts(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                     struct tensor *sin, struct tensor *y[2])
{
    y[0] = y[1] = e->poison;
    if (e->halted) return;
    struct tensor *turns[2], *stays[2];
    for (int i = 0; i < 2; i++) cut(e, x[i], tensor_size(cos, -1), &turns[i], &stays[i]);
    for (int i = 0; i < 2; i++) {
        struct tensor *parts[2] = {nn_rotate(e, turns[i], cos, sin), stays[i]};
        y[i] = tensor_keep(op_cat(e, 2, parts, -1));
    }
    for (int i = 0; i < 2; i++) {
        tensor_drop(e, turns[i]);
        tensor_drop(e, stays[i]);
    }
}

typedef struct tensor *rotation(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin);

static void rotate_then_join(struct engine *e, rotation *rotate, struct tensor *const x[2], struct tensor *cos,
                             struct tensor *sin, struct tensor *y[2], struct tensor *rotated[2])
{
    struct tensor *turns[2], *stays[2], *own[2];
    bool keep = rotated != NULL;
    if (!keep) rotated = own;
    for (int i = 0; i < 2; i++) y[i] = rotated[i] = e->poison;
    if (e->halted) return;
    for (int i = 0; i < 2; i++) cut(e, x[i], tensor_size(cos, -1), &turns[i], &stays[i]);
    for (int i = 0; i < 2; i++) rotated[i] = tensor_keep(rotate(e, turns[i], cos, sin));
    for (int i = 0; i < 2; i++) {
        struct tensor *parts[2] = {rotated[i], stays[i]};
        y[i] = tensor_keep(op_cat(e, 2, parts, -1));
        if (!keep) tensor_drop(e, rotated[i]);
    }
    for (int i = 0; i < 2; i++) {
        tensor_drop(e, turns[i]);
        tensor_drop(e, stays[i]);
    }
}

void nn_rotate_then_join(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                         struct tensor *sin, struct tensor *y[2], struct tensor *rotated[2])
{
    rotate_then_join(e, nn_rotate, x, cos, sin, y, rotated);
}

void nn_rotate_pairs_then_join(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                               struct tensor *sin, struct tensor *y[2])
{
    rotate_then_join(e, nn_rotate_pairs, x, cos, sin, y, NULL);
}
