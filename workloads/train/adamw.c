/* torch.optim.AdamW: foreach (the default on CUDA) and fused. */
#include "optimizer.h"
#include <math.h>

enum { EXP_AVG, EXP_AVG_SQ, STEP };

/* Returns the index of parameter `x` among those of the step, usually `next`; o->count if it has no gradient. */
static size_t place_of(const struct optimizer *o, const struct tensor *x, size_t next)
{
    if (next < o->count && o->params[next] == x) return next;
    size_t i = 0;
    while (i < o->count && o->params[i] != x) i++;
    return i;
}

/* Allocates the states in the order of the parameters, whatever their types. */
static void make_states(struct engine *e, struct optimizer *o, bool fused)
{
    size_t next = 0;
    for (size_t k = 0; k < o->parameters->count && !o->started; k++) {
        struct tensor *x = o->parameters->list[k];
        size_t i = place_of(o, x, next);
        if (i == o->count) continue;
        next = i + 1;
        if (fused) { /* the step counter is on the device */
            enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
            o->state[STEP][i] = tensor_keep(op_full(e, PLIM_F32, 0, NULL, 0));
            engine_set_class(e, before);
        }
        o->state[EXP_AVG][i] = optimizer_state_like(e, x, (enum plim_dtype)x->a.dtype);
        o->state[EXP_AVG_SQ][i] = optimizer_state_like(e, x, (enum plim_dtype)x->a.dtype);
    }
}

static void drop_roots(struct engine *e, struct tensor **root, size_t n)
{
    for (size_t i = n; i-- > 0;) tensor_drop(e, root[i]);
}

/* _multi_tensor_adam of the parameters of one type, indices `start` to `end`. Allocates one list of temporaries, the
 * square roots, which a Python variable holds until those of the next type exist; `before` is the number of roots held
 * from the previous type. */
static void step_group(struct engine *e, struct optimizer *o, size_t start, size_t end, size_t before)
{
    size_t n = end - start;
    struct tensor **params = o->params + start, **grads = o->grads + start, **m = o->state[EXP_AVG] + start,
                  **v = o->state[EXP_AVG_SQ] + start;
    struct tensor **root = o->scratch + start;
    struct plim_adam a = optimizer_adam(o);
    double correction1 = 1 - pow(a.beta1, (double)a.step),
           correction2 = 1 - pow(a.beta2, (double)a.step);
    optimizer_foreach(e, PLIM_FOREACH_MUL, n, 1, (struct tensor * *const[]){params},
                      1 - a.rate * a.weight_decay);
    optimizer_foreach(e, PLIM_FOREACH_LERP, n, 2, (struct tensor * *const[]){m, grads},
                      1 - a.beta1);
    optimizer_foreach(e, PLIM_FOREACH_MUL, n, 1, (struct tensor * *const[]){v}, a.beta2);
    optimizer_foreach(e, PLIM_FOREACH_ADDCMUL, n, 3, (struct tensor * *const[]){v, grads, grads},
                      1 - a.beta2);
    for (size_t i = 0; i < n; i++)
        root[i] = tensor_keep(tensor_empty_like(e, v[i], (enum plim_dtype)v[i]->a.dtype));
    optimizer_foreach(e, PLIM_FOREACH_SQRT, n, 2, (struct tensor * *const[]){root, v}, 0);
    drop_roots(e, root - before, before);
    optimizer_foreach(e, PLIM_FOREACH_DIV, n, 1, (struct tensor * *const[]){root},
                      sqrt(correction2));
    optimizer_foreach(e, PLIM_FOREACH_ADD, n, 1, (struct tensor * *const[]){root}, a.epsilon);
    optimizer_foreach(e, PLIM_FOREACH_ADDCDIV, n, 3, (struct tensor * *const[]){params, m, root},
                      -a.rate / correction1);
}

static void foreach_step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                         struct tensor *grad_scale)
{
    (void)found_inf;
    (void)grad_scale;
    optimizer_group(o);
    make_states(e, o, false);
    size_t before = 0, end;
    for (size_t start = 0; start < o->count; start = end) {
        end = optimizer_group_end(o, start);
        step_group(e, o, start, end, before);
        before = end - start;
    }
    drop_roots(e, o->scratch + o->count - before, before);
}

static void fused_step(struct engine *e, struct optimizer *o, struct tensor *found_inf,
                       struct tensor *grad_scale)
{
    make_states(e, o, true);
    struct plim_adam adam = optimizer_adam(o);
    struct plim_op op = {
        .kind = PLIM_OP_OPTIMIZER,
        .foreach = PLIM_FUSED_ADAMW,
        .n_lists = 5,
        .n_in = 2,
        .adam = &adam,
        .list_length = o->count,
        .lists = {(const struct plim_array *const *)o->params,
                  (const struct plim_array *const *)o->state[EXP_AVG],
                  (const struct plim_array *const *)o->state[EXP_AVG_SQ],
                  (const struct plim_array *const *)o->state[STEP],
                  (const struct plim_array *const *)o->grads},
        .in = {found_inf ? &found_inf->a : NULL, grad_scale ? &grad_scale->a : NULL}};
    if (!e->halted) engine_launch(e, &op);
}

const struct optimizer_kind optimizer_adamw = {.name = "adamw", .step = foreach_step};
const struct optimizer_kind optimizer_adamw_fused = {
    .name = "adamw-fused", .step = fused_step, .takes_scaler = true};
