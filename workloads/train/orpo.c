#include "orpo.h"
#include "measures.h"
#include "selective.h"

static const double BETA = 0.1, SIMPO_MARGIN = 0.5 / 0.1, SWIFT_SIMPO_MARGIN = 1 / 0.1; /* simpo_gamma / beta */

static bool is_orpo(const struct decoder *m)
{
    return m->setting->loop == PLIM_LOOP_SWIFT_ORPO || m->setting->loop == PLIM_LOOP_TRL_ORPO;
}

static bool is_simpo(const struct decoder *m)
{
    return m->setting->preference_loss == PLIM_PREFERENCE_SIMPO;
}

static bool is_trls(const struct decoder *m)
{
    return plim_loop_is_trl_orpo(m->setting->loop);
}

/* --- scores ----------------------------------------------------------------------------------- */

/* cross_entropy_loss() of the chosen completions; all lent; named */
static struct tensor *cross_entropy(struct engine *e, struct tensor *logits, struct tensor *labels)
{
    if (e->halted) return NULL;
    int64_t pairs = logits->a.shape[0] / 2, tokens = logits->a.shape[1] - 1, classes = logits->a.shape[2];
    struct tensor *chosen = tensor_keep(op_slice(e, logits, 0, 0, pairs));
    struct tensor *targets = tensor_keep(op_slice(e, labels, 0, 0, pairs));
    tensor_set(e, &chosen, op_contiguous(e, op_slice(e, chosen, 1, 0, tokens)));
    tensor_set(e, &targets, op_contiguous(e, op_slice(e, targets, 1, 1, tokens)));
    tensor_set(e, &chosen, op_view(e, chosen, SHAPE(pairs * tokens, classes)));
    tensor_set(e, &targets, op_view(e, targets, SHAPE(pairs * tokens)));
    struct tensor *loss = tensor_keep(op_cross_entropy(e, chosen, targets));
    tensor_drop_all(e, chosen, targets);
    return loss;
}

/* The labels of cross_entropy_loss(): of ORPO all tokens, prompts as well, where there is no padding; named */
static struct tensor *labels_of(struct engine *e, const struct decoder *m, const struct batch *batch)
{
    struct tensor *labels = tensor_keep(op_clone(e, batch->labels));
    if (!is_orpo(m)) return labels;
    struct tensor *is_token = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, batch->mask, 1));
    tensor_set(e, &labels, op_where(e, is_token, labels, NULL, PLIM_I64, 0, PLIM_IGNORED_TARGET));
    tensor_drop(e, is_token);
    return labels;
}

/* Sets the labels that are hidden to 0. */
static void zero_hidden(struct engine *e, const struct decoder *m, struct tensor **labels)
{
    struct tensor *is_hidden = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, *labels, PLIM_IGNORED_TARGET));
    if (is_orpo(m)) tensor_set(e, labels, op_where(e, is_hidden, NULL, *labels, PLIM_I64, 0, 0));
    else tensor_set(e, labels, op_masked_fill_(e, *labels, is_hidden, 0));
    tensor_drop(e, is_hidden);
}

/* get_batch_logps() of logits (rows, S, V) and labels (rows, S), lent: (rows), named */
static struct tensor *log_probs_of(struct engine *e, const struct decoder *m, struct tensor *logits,
                                   struct tensor *given)
{
    if (e->halted) return NULL;
    bool grad = e->grad_enabled, is_average = is_orpo(m) || is_simpo(m);
    int64_t rows = logits->a.shape[0], last = logits->a.shape[1] - 1;
    e->grad_enabled = false;
    struct tensor *labels = tensor_keep(op_clone(e, op_slice(e, given, 1, 1, last)));
    e->grad_enabled = grad;
    struct tensor *all = tensor_keep(op_slice(e, logits, 1, 0, last));
    struct tensor *is_label = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, labels, PLIM_IGNORED_TARGET));
    zero_hidden(e, m, &labels);
    struct tensor *each = is_trls(m) ? tensor_keep(op_label_log_probs(e, all, labels))
                                     : selective_log_probs(e, all, labels);
    if (!is_trls(m)) tensor_set(e, &each, op_view(e, each, SHAPE(rows, last)));
    struct tensor *counted = tensor_keep(op_mul(e, each, is_label));
    struct tensor *sums = tensor_keep(op_sum_dim(e, counted, 1));
    tensor_drop(e, counted);
    if (is_average) {
        struct tensor *count = tensor_keep(op_reduce(e, is_label, 1u << 1, false, PLIM_BINARY_ADD, 1, PLIM_I64));
        tensor_set(e, &sums, op_div(e, sums, count));
        tensor_drop(e, count);
    }
    tensor_drop_all(e, each, is_label, all, labels);
    return sums;
}

/* The results of concatenated_forward(); named */
struct orpo_scores {
    struct pair log_probs, logits;
    struct tensor *nll;
};

/* concatenated_inputs(); named */
static struct batch concatenated(struct engine *e, const struct batch *batch)
{
    struct tensor *const chosen[BATCH_REJECTED] = {batch->inputs, batch->mask, batch->labels};
    struct tensor *all[BATCH_REJECTED];
    for (int i = 0; i < BATCH_REJECTED; i++)
        all[i] = tensor_keep(op_cat(e, 2, (struct tensor *[]){chosen[i], batch->rejected[i]}, 0));
    return (struct batch){.inputs = all[0], .mask = all[1], .labels = all[2]};
}

static struct orpo_scores score(struct engine *e, const struct decoder *m, const struct batch *batch,
                                preference_forward *forward, void *user)
{
    struct orpo_scores s = {0};
    struct tensor *logits = forward(user, batch, false);
    if (e->halted) return s;
    struct tensor *labels = labels_of(e, m, batch);
    s.nll = cross_entropy(e, logits, labels);
    struct tensor *sums = log_probs_of(e, m, logits, batch->labels);
    if (e->halted) return s;
    s.log_probs = pair_of(e, sums);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    int64_t tokens = logits->a.shape[1] - is_orpo(m);
    s.logits = pair_of(e, logits);
    tensor_set(e, &s.logits.chosen, op_slice(e, s.logits.chosen, 1, 0, tokens));
    tensor_set(e, &s.logits.rejected, op_slice(e, s.logits.rejected, 1, 0, tokens));
    e->grad_enabled = grad;
    tensor_drop_all(e, sums, labels, logits);
    return s;
}

/* --- losses ----------------------------------------------------------------------------------- */

/* The losses of the pairs, and what ORPO measures besides; named */
struct orpo_losses {
    struct tensor *each, *ratio, *odds;
};

/* log1mexp(): log(1 - exp(x)), named */
static struct tensor *log1mexp(struct engine *e, struct tensor *x)
{
    struct tensor *is_small = tensor_keep(op_compare_scalar(e, PLIM_BINARY_LT, x, -0.6931471805599453));
    struct tensor *small = tensor_keep(op_log1p(e, op_neg(e, op_exp(e, x))));
    struct tensor *large = tensor_keep(op_log(e, op_neg(e, op_expm1(e, x))));
    struct tensor *y = tensor_keep(op_where(e, is_small, small, large, PLIM_F32, 0, 0));
    tensor_drop_all(e, is_small, small, large);
    return y;
}

/* odds_ratio_loss() */
static struct orpo_losses odds_ratios(struct engine *e, struct pair own)
{
    struct tensor *delta = tensor_keep(op_sub(e, own.chosen, own.rejected));
    struct tensor *chosen = log1mexp(e, own.chosen), *rejected = log1mexp(e, own.rejected);
    struct tensor *odds = tensor_keep(op_sub(e, chosen, rejected));
    tensor_drop_all(e, chosen, rejected);
    tensor_set(e, &odds, op_sub(e, delta, odds));
    tensor_drop(e, delta);
    struct tensor *ratio = tensor_keep(op_log_sigmoid(e, odds));
    struct orpo_losses l = {.each = tensor_keep(op_mul_scalar(e, ratio, BETA))};
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    l.ratio = tensor_keep(op_mean_vector(e, ratio));
    l.odds = tensor_keep(op_mean_vector(e, odds));
    e->grad_enabled = grad;
    tensor_drop_all(e, ratio, odds);
    return l;
}

/* cpo_loss() */
static struct orpo_losses contrasts(struct engine *e, const struct decoder *m, struct pair own)
{
    struct tensor *delta = tensor_keep(op_sub(e, own.chosen, own.rejected));
    double margin = is_trls(m) ? SIMPO_MARGIN : SWIFT_SIMPO_MARGIN;
    if (is_simpo(m)) tensor_set(e, &delta, op_add_scalar(e, delta, -margin));
    struct orpo_losses l = {.each = preference_smoothed(e, delta)};
    tensor_drop(e, delta);
    return l;
}

/* The whole loss; named */
static struct tensor *loss_of(struct engine *e, const struct decoder *m, const struct orpo_losses *l,
                              struct tensor *nll)
{
    struct tensor *mean = tensor_keep(op_mean_vector(e, l->each)), *loss;
    if (is_orpo(m)) {
        loss = tensor_keep(op_sub(e, nll, mean));
    } else { /* cpo_alpha is 1 */
        struct tensor *weighed = tensor_keep(op_mul_scalar(e, nll, 1));
        loss = tensor_keep(op_add(e, mean, weighed));
        tensor_drop(e, weighed);
    }
    tensor_drop(e, mean);
    return loss;
}

/* --- metrics ---------------------------------------------------------------------------------- */

enum { METRICS = 11 };

/* accelerator.gather_for_metrics(x).mean() of x, lent, named; ORPO reads it when all are known, CPO at once. */
static struct tensor *metric(struct engine *e, const struct decoder *m, struct tensor *x)
{
    struct tensor *all = measures_gather(e, x, plim_setting_ranks(m->setting)), *mean = measures_mean(e, all);
    tensor_drop(e, all);
    if (is_orpo(m)) return mean;
    measures_read(e, mean);
    return NULL;
}

static struct tensor *metric_of(struct engine *e, const struct decoder *m, struct tensor *x)
{
    struct tensor *kept = tensor_hold(x), *mean = metric(e, m, kept);
    tensor_drop(e, kept);
    return mean;
}

static struct tensor *metric_of_logits(struct engine *e, const struct decoder *m, struct tensor *logits)
{
    struct tensor *own = measures_mean(e, logits), *mean = metric(e, m, own);
    tensor_drop(e, own);
    return mean;
}

static void measure(struct engine *e, const struct decoder *m, const struct orpo_scores *s, struct pair rewards,
                    const struct orpo_losses *l)
{
    struct tensor *known[METRICS] = {NULL}, *accuracies;
    accuracies = tensor_keep(op_to(e, op_compare(e, PLIM_BINARY_GT, rewards.chosen, rewards.rejected), PLIM_F32));
    known[0] = metric(e, m, rewards.chosen);
    known[1] = metric(e, m, rewards.rejected);
    known[2] = metric(e, m, accuracies);
    known[3] = metric_of(e, m, op_sub(e, rewards.chosen, rewards.rejected));
    known[4] = metric(e, m, s->log_probs.rejected);
    known[5] = metric(e, m, s->log_probs.chosen);
    known[6] = metric_of_logits(e, m, s->logits.rejected);
    known[7] = metric_of_logits(e, m, s->logits.chosen);
    known[8] = metric(e, m, s->nll);
    if (l->ratio) known[9] = metric(e, m, l->ratio);
    if (l->odds) known[10] = metric(e, m, l->odds);
    for (int i = 0; i < METRICS; i++)
        if (known[i] && !e->halted) engine_item(e, known[i]);
    tensor_drop_list(e, known, METRICS);
    tensor_drop(e, accuracies);
}

struct tensor *orpo_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                         preference_forward *forward, void *user)
{
    if (e->halted) return NULL;
    struct batch rows = is_trls(m) ? concatenated(e, batch) : *batch;
    struct orpo_scores s = score(e, m, &rows, forward, user);
    if (is_trls(m)) tensor_drop_all(e, rows.labels, rows.mask, rows.inputs);
    if (e->halted) return NULL;
    struct orpo_losses l = is_orpo(m) ? odds_ratios(e, s.log_probs) : contrasts(e, m, s.log_probs);
    struct pair rewards = {preference_reward(e, s.log_probs.chosen), preference_reward(e, s.log_probs.rejected)};
    struct tensor *loss = loss_of(e, m, &l, s.nll);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (!e->halted) measure(e, m, &s, rewards, &l);
    e->grad_enabled = grad;
    pair_drop(e, rewards);
    pair_drop(e, s.log_probs);
    pair_drop(e, s.logits);
    tensor_drop_all(e, s.nll, l.each, l.ratio, l.odds);
    if (trains && !is_trls(m)) tensor_set(e, &loss, op_div_scalar(e, loss, (double)m->setting->accumulation));
    return loss;
}
