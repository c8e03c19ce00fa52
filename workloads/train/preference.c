#include "preference.h"
#include "measures.h"
#include "pairs.h"

static const double BETA = 0.1;        /* pref_beta; simpo_gamma's default, divided by it */
static const double SIMPO_MARGIN = 5;

/* --- log-probabilities of a row --------------------------------------------------------------- */

struct tensor *preference_log_probs(struct engine *e, struct tensor *logits, struct tensor *labels,
                                    struct tensor **count)
{
    if (e->halted) return NULL;
    int64_t rows = labels->a.shape[0], last = labels->a.shape[1] - 1;
    struct tensor *targets = tensor_keep(op_clone(e, op_slice(e, labels, 1, 1, last)));
    struct tensor *is_label = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, targets, PLIM_IGNORED_TARGET));
    struct tensor *is_hidden = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, targets, PLIM_IGNORED_TARGET));
    tensor_set(e, &targets, op_masked_fill_(e, targets, is_hidden, 0));
    tensor_drop(e, is_hidden);
    struct tensor *all = op_log_softmax(e, op_slice(e, logits, 1, 0, last));
    struct tensor *each = tensor_keep(op_view(e, op_gather_last(e, all, op_unsqueeze(e, targets, 2)),
                                              SHAPE(rows, last)));
    *count = tensor_keep(op_reduce(e, is_label, 1u << 1, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    struct tensor *counted = tensor_keep(op_mul(e, each, is_label));
    struct tensor *sums = tensor_keep(op_sum_dim(e, counted, 1));
    tensor_drop_all(e, counted, each, is_label, targets);
    return sums;
}

/* The results of concatenated_forward(); named. The logits are those of all rows. */
struct scores {
    struct pair log_probs;
    struct tensor *logits, *average; /* of the chosen completions, per token */
};

static void drop_scores(struct engine *e, struct scores *s)
{
    pair_drop(e, s->log_probs);
    tensor_drop_all(e, s->logits, s->average);
}

/* nested_detach(batch, clone=True) */
static struct batch copy_of(struct engine *e, const struct batch *batch)
{
    struct batch copy = *batch;
    copy.inputs = tensor_keep(op_detached_clone(e, batch->inputs));
    copy.mask = tensor_keep(op_detached_clone(e, batch->mask));
    copy.labels = tensor_keep(op_detached_clone(e, batch->labels));
    return copy;
}

static struct scores score(struct engine *e, enum plim_preference_loss loss, const struct batch *batch,
                           preference_forward *forward, void *user, bool by_reference)
{
    struct scores s = {0};
    bool copies = plim_preference_has_reference(loss), is_average = loss != PLIM_PREFERENCE_SIGMOID;
    struct batch given = copies ? copy_of(e, batch) : *batch;
    struct tensor *count = NULL;
    s.logits = forward(user, &given, by_reference);
    struct tensor *sums = preference_log_probs(e, s.logits, given.labels, &count);
    if (is_average && !e->halted) tensor_set(e, &sums, op_div(e, sums, count));
    if (!e->halted) {
        struct pair counts = pair_of(e, count);
        s.log_probs = pair_of(e, sums);
        s.average = is_average ? tensor_ref(s.log_probs.chosen)
                               : tensor_keep(op_div(e, s.log_probs.chosen, counts.chosen));
        pair_drop(e, counts);
    }
    tensor_drop_all(e, sums, count);
    if (copies) tensor_drop_all(e, given.inputs, given.mask, given.labels);
    return s;
}

/* compute_reference_log_probs(), without gradients; named */
static struct pair score_by_reference(struct engine *e, enum plim_preference_loss loss, const struct batch *batch,
                                      preference_forward *forward, void *user)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct scores s = score(e, loss, batch, forward, user, true);
    e->grad_enabled = grad;
    if (e->halted) return (struct pair){NULL, NULL};
    struct pair kept = {tensor_ref(s.log_probs.chosen), tensor_ref(s.log_probs.rejected)};
    drop_scores(e, &s);
    return kept;
}

/* --- the loss --------------------------------------------------------------------------------- */

struct tensor *preference_reward(struct engine *e, struct tensor *x)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *reward = tensor_keep(op_mul_scalar(e, x, BETA));
    e->grad_enabled = grad;
    return reward;
}

/* -logsigmoid(scale * x); floating */
static struct tensor *minus_log_sigmoid(struct engine *e, struct tensor *x, double scale)
{
    return op_neg(e, op_log_sigmoid(e, op_mul_scalar(e, x, scale)));
}

struct tensor *preference_smoothed(struct engine *e, struct tensor *delta)
{
    struct tensor *kept = tensor_keep(op_mul_scalar(e, minus_log_sigmoid(e, delta, BETA), 1));
    struct tensor *smoothed = op_mul_scalar(e, op_log_sigmoid(e, op_mul_scalar(e, delta, -BETA)), 0);
    struct tensor *losses = tensor_keep(op_sub(e, kept, smoothed));
    tensor_drop(e, kept);
    return losses;
}

struct preference_losses preference_losses_of(struct engine *e, bool is_ipo, struct pair own, struct pair reference)
{
    struct preference_losses l;
    struct pair of_completions;
    struct tensor *times_one = tensor_keep(op_mul_scalar(e, reference.chosen, 1));
    of_completions.chosen = tensor_keep(op_sub(e, own.chosen, times_one));
    tensor_set(e, &times_one, op_mul_scalar(e, reference.rejected, 1));
    of_completions.rejected = tensor_keep(op_sub(e, own.rejected, times_one));
    tensor_drop(e, times_one);
    struct tensor *ratios = tensor_keep(op_sub(e, own.chosen, own.rejected));
    struct tensor *of_reference = tensor_keep(op_sub(e, reference.chosen, reference.rejected));
    struct tensor *delta = tensor_keep(op_sub(e, ratios, of_reference));
    l.loss = is_ipo ? tensor_keep(op_pow_scalar(e, op_add_scalar(e, delta, -1 / (2 * BETA)), 2))
                    : preference_smoothed(e, delta);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    l.rewards.chosen = tensor_keep(op_mul_scalar(e, op_sub(e, own.chosen, reference.chosen), BETA));
    l.rewards.rejected = tensor_keep(op_mul_scalar(e, op_sub(e, own.rejected, reference.rejected), BETA));
    e->grad_enabled = grad;
    pair_drop(e, of_completions);
    tensor_drop_all(e, delta, ratios, of_reference);
    return l;
}

/* odds_ratio_loss(); named */
static struct tensor *odds_ratio_loss(struct engine *e, struct pair own)
{
    struct tensor *ratios = tensor_keep(op_sub(e, own.chosen, own.rejected));
    struct tensor *chosen = tensor_keep(op_log1p(e, op_neg(e, op_exp(e, own.chosen))));
    struct tensor *rejected = op_log1p(e, op_neg(e, op_exp(e, own.rejected)));
    struct tensor *odds = tensor_keep(op_sub(e, chosen, rejected));
    tensor_drop(e, chosen);
    tensor_set(e, &odds, op_sub(e, ratios, odds));
    tensor_drop(e, ratios);
    struct tensor *likely = tensor_keep(op_neg(e, own.chosen));
    struct tensor *unlikely = tensor_keep(op_neg(e, op_log_sigmoid(e, odds)));
    struct tensor *loss = tensor_keep(op_add(e, likely, op_mul_scalar(e, unlikely, BETA)));
    tensor_drop_all(e, odds, likely, unlikely);
    return loss;
}

/* simpo_loss(); named */
static struct tensor *simpo_loss(struct engine *e, struct pair own)
{
    struct tensor *ratios = tensor_keep(op_sub(e, own.chosen, own.rejected));
    struct tensor *over = tensor_keep(op_add_scalar(e, ratios, -SIMPO_MARGIN));
    struct tensor *loss = tensor_keep(minus_log_sigmoid(e, over, BETA));
    tensor_drop_all(e, ratios, over);
    return loss;
}

static struct preference_losses of_model_alone(struct engine *e, enum plim_preference_loss loss, struct pair own)
{
    struct preference_losses l = {.loss = loss == PLIM_PREFERENCE_ORPO ? odds_ratio_loss(e, own) : simpo_loss(e, own)};
    l.rewards.chosen = preference_reward(e, own.chosen);
    l.rewards.rejected = preference_reward(e, own.rejected);
    return l;
}

/* --- metrics ---------------------------------------------------------------------------------- */

static void measure(struct engine *e, const struct scores *s, const struct preference_losses *l, struct tensor *likely,
                    enum plim_preference_loss loss)
{
    struct pair rewards = l->rewards, logits = pair_of(e, s->logits);
    measures_read_own_mean(e, rewards.chosen);
    measures_read_own_mean(e, rewards.rejected);
    measures_read_own_mean(e, op_to(e, op_compare(e, PLIM_BINARY_GT, rewards.chosen, rewards.rejected), PLIM_F32));
    measures_read_own_mean(e, op_sub(e, rewards.chosen, rewards.rejected));
    measures_read_own_mean(e, s->log_probs.chosen);
    measures_read_own_mean(e, s->log_probs.rejected);
    if (!e->halted) measures_read_own_mean(e, logits.chosen);
    if (!e->halted) measures_read_own_mean(e, logits.rejected);
    pair_drop(e, logits);
    if (loss != PLIM_PREFERENCE_ORPO || e->halted) return;
    measures_read_own_mean(e, likely);
    measures_read_own_mean(e, op_div_scalar(e, op_sub(e, l->loss, likely), BETA));
}

struct tensor *preference_loss(struct engine *e, const struct decoder *m, const struct batch *batch,
                               preference_forward *forward, void *user)
{
    enum plim_preference_loss kind = m->setting->preference_loss;
    bool has_reference = plim_preference_has_reference(kind);
    struct scores s = score(e, kind, batch, forward, user, false);
    struct pair reference = {NULL, NULL};
    if (has_reference && !e->halted) reference = score_by_reference(e, kind, batch, forward, user);
    if (e->halted) return NULL;
    struct preference_losses l = has_reference ? preference_losses_of(e, false, s.log_probs, reference)
                                               : of_model_alone(e, kind, s.log_probs);
    struct tensor *likely = tensor_keep(op_neg(e, s.average)); /* -policy_chosen_logps_avg */
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (!e->halted) measure(e, &s, &l, likely, kind);
    e->grad_enabled = grad;
    struct tensor *mean = tensor_keep(op_mean_vector(e, l.loss));
    pair_drop(e, reference);
    pair_drop(e, l.rewards);
    tensor_drop_all(e, likely, l.loss);
    drop_scores(e, &s);
    return mean;
}
