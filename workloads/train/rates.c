#include "rates.h"

static struct tensor *make_rate(struct engine *e)
{
    return tensor_keep(op_full(e, PLIM_F32, 0, NULL, 0));
}

/* AcceleratedOptimizer (accelerate's optimizer.py): the rates are moved to the GPU, and load_state_dict() makes deep
 * copies; a copy's storage is allocated before its tensor, which initially has an element of its own. The copies are
 * kept. */
static void prepare(struct engine *e)
{
    struct tensor *moved[RATE_GROUPS];
    for (int i = 0; i < RATE_GROUPS; i++) moved[i] = make_rate(e);
    for (int i = 0; i < RATE_GROUPS; i++) {
        make_rate(e);
        tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_F32, 0, NULL)));
    }
    for (int i = RATE_GROUPS; i-- > 0;) tensor_drop(e, moved[i]);
}

/* _update_lr() in lr_scheduler.py: computes new rates, which are copied into the optimizer's, and copies of these. */
static void update(struct engine *e, struct rates *rates)
{
    struct tensor *values[RATE_GROUPS], *last[RATE_GROUPS];
    for (int i = 0; i < RATE_GROUPS; i++) values[i] = make_rate(e);
    for (int i = 0; i < RATE_GROUPS; i++) last[i] = make_rate(e);
    for (int i = RATE_GROUPS; i-- > 0;) tensor_drop(e, rates->last[i]);
    for (int i = 0; i < RATE_GROUPS; i++) {
        tensor_drop(e, values[i]);
        rates->last[i] = last[i];
    }
}

void rates_create(struct engine *e, struct rates *rates)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    rates->exist = true;
    prepare(e);
    for (int i = 0; i < 2 * RATE_GROUPS; i++)
        make_rate(e); /* initial_lr of the groups, then base_lrs */
    update(e, rates);
    engine_set_class(e, before);
}

void rates_step(struct engine *e, struct rates *rates)
{
    if (!rates->exist) return;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_OPTIMIZER);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    update(e, rates);
    e->grad_enabled = grad;
    engine_set_class(e, before);
}
