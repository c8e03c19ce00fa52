#include "reward.h"
#include "measures.h"

enum { CHOSEN, REJECTED };

/* coefficient * mean((chosen + rejected) ** 2), which centres rewards around 0; floating */
static struct tensor *distance_from_zero(struct engine *e, struct tensor *const pair[2], double coefficient)
{
    struct tensor *squares = op_pow_scalar(e, op_add(e, pair[CHOSEN], pair[REJECTED]), 2);
    return op_mul_scalar(e, op_mean_vector(e, squares), coefficient);
}

/* Reads the smallest reward, their mean and the largest, over all ranks. Returns the variable that stays alive,
 * named. */
static struct tensor *measure_rewards(struct engine *e, struct tensor *rewards, int64_t world)
{
    struct tensor *all = measures_gather(e, rewards, world);
    measures_read(e, measures_fold(e, all, PLIM_BINARY_MIN));
    measures_read(e, measures_mean(e, all));
    measures_read(e, measures_fold(e, all, PLIM_BINARY_MAX));
    return all;
}

/* Reads the share of pairs whose chosen completion has the larger reward. */
static void measure_accuracy(struct engine *e, struct tensor *const pair[2], int64_t world)
{
    struct tensor *is_larger = op_compare(e, PLIM_BINARY_GT, pair[CHOSEN], pair[REJECTED]);
    struct tensor *as_numbers = tensor_keep(op_to(e, is_larger, PLIM_F32));
    struct tensor *mean = measures_mean(e, as_numbers);
    tensor_drop(e, as_numbers);
    measures_read_gathered_mean(e, mean, world);
    tensor_drop(e, mean);
}

/* Reads the mean difference of the two rewards. Returns the variable that stays alive, named. */
static struct tensor *measure_margin(struct engine *e, struct tensor *const pair[2], int64_t world)
{
    struct tensor *margins = tensor_keep(op_sub(e, pair[CHOSEN], pair[REJECTED]));
    struct tensor *own = measures_mean(e, margins);
    tensor_drop(e, margins);
    struct tensor *all = measures_gather(e, own, world), *mean = measures_mean(e, all);
    tensor_drop_all(e, all, own);
    engine_item(e, mean);
    return mean;
}

static void measure(struct engine *e, struct tensor *rewards, struct tensor *const pair[2], int64_t world)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *all = measure_rewards(e, rewards, world);
    if (!e->halted) measure_accuracy(e, pair, world);
    struct tensor *margin = e->halted ? NULL : measure_margin(e, pair, world);
    tensor_drop_all(e, all, margin);
    e->grad_enabled = grad;
}

struct tensor *reward_loss(struct engine *e, struct tensor *rewards, const struct batch *batch, const struct decoder *m,
                           bool trains)
{
    if (e->halted) return NULL;
    int64_t world = plim_setting_ranks(m->setting), rows = rewards->a.shape[0], pairs = rows / 2;
    struct tensor *pair[2];
    op_split(e, op_view(e, rewards, SHAPE(rows)), 0, 2, (int64_t[]){pairs, pairs}, pair);
    for (int i = CHOSEN; i <= REJECTED; i++) pair[i] = tensor_keep(pair[i]);
    struct tensor *signs = op_log_sigmoid(e, op_sub(e, pair[CHOSEN], pair[REJECTED]));
    struct tensor *loss = tensor_keep(op_neg(e, op_mean_vector(e, signs)));
    double coefficient = m->setting->center_rewards;
    if (coefficient > 0) tensor_set(e, &loss, op_plus_(e, loss, distance_from_zero(e, pair, coefficient)));
    if (trains && !e->halted) measures_read_tokens(e, batch->mask, world);
    if (!e->halted) measure(e, rewards, pair, world);
    tensor_drop_all(e, pair[CHOSEN], pair[REJECTED]);
    return loss;
}

/* --- ms-swift's RewardTrainer ----------------------------------------------------------------- */

struct tensor *swift_reward_loss(struct engine *e, struct tensor *rewards, const struct decoder *m)
{
    if (e->halted) return NULL;
    int64_t rows = rewards->a.shape[0], pairs = rows / 2;
    struct tensor *pair[2];
    op_split(e, op_view(e, rewards, SHAPE(rows)), 0, 2, (int64_t[]){pairs, pairs}, pair);
    for (int i = CHOSEN; i <= REJECTED; i++) pair[i] = tensor_keep(pair[i]);
    struct tensor *signs = op_log_sigmoid(e, op_sub(e, pair[CHOSEN], pair[REJECTED]));
    struct tensor *loss = tensor_keep(op_neg(e, op_mean_vector(e, signs))), *centre = NULL;
    double coefficient = m->setting->center_rewards;
    if (coefficient > 0) {
        centre = tensor_keep(distance_from_zero(e, pair, coefficient));
        tensor_set(e, &loss, op_plus_(e, loss, centre));
        if (!e->halted) engine_item(e, centre);
    }
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (!e->halted) {
        measures_read_own_mean(e, pair[CHOSEN]);
        measures_read_own_mean(e, pair[REJECTED]);
        measures_read_own_mean(e, op_to(e, op_compare(e, PLIM_BINARY_GT, pair[CHOSEN], pair[REJECTED]), PLIM_F32));
        measures_read_own_mean(e, op_sub(e, pair[CHOSEN], pair[REJECTED]));
    }
    e->grad_enabled = grad;
    tensor_drop_all(e, pair[CHOSEN], pair[REJECTED], centre);
    return loss;
}
