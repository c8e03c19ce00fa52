#include "swift_dpo.h"
#include "measures.h"
#include "swift_tokens.h"
#include <math.h>

/* The results of concatenated_forward(); named. Of the reference the log-probabilities alone count. */
struct swift_scores {
    struct pair log_probs, logits; /* sums of completions; means of their tokens' mean logits, scalars */
    struct tensor *counts, *nll;
    struct swift_tokens tokens;
};

static void drop_scores(struct engine *e, struct swift_scores *s)
{
    pair_drop(e, s->log_probs);
    pair_drop(e, s->logits);
    tensor_drop_all(e, s->counts, s->nll);
    swift_tokens_drop(e, &s->tokens);
}

/* x[mask].mean() of x (rows, n); a scalar, named */
static struct tensor *mean_where(struct engine *e, struct tensor *x, struct tensor *mask, int64_t found)
{
    return tensor_keep(op_mean_vector(e, op_rows_where(e, x, mask, found)));
}

static struct swift_scores score(struct engine *e, const struct decoder *m, const struct batch *batch,
                                 preference_forward *forward, void *user, bool by_reference)
{
    struct swift_scores s = {.tokens = swift_tokens_score(e, m, batch, false, forward, user, by_reference)};
    struct swift_tokens *t = &s.tokens;
    if (e->halted) return s;
    /* the last completion is a rejected one, and may have one token less */
    int64_t found[2] = {(decoder_labels(m) + 1) / 2, decoder_labels(m) / 2};
    s.counts = tensor_keep(op_reduce(e, t->is_label, 1u << 1, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    struct pair masks = pair_of(e, t->is_label), means = pair_of(e, t->reduced);
    if (!by_reference) {
        struct tensor *chosen = tensor_keep(op_slice(e, t->log_probs, 0, 0, tensor_size(t->log_probs, 0) / 2));
        s.nll = mean_where(e, chosen, masks.chosen, found[0]);
        tensor_set(e, &s.nll, op_neg(e, s.nll));
        tensor_drop(e, chosen);
    }
    struct tensor *sums = tensor_keep(op_sum_dim(e, t->log_probs, 1));
    s.log_probs = pair_of(e, sums);
    s.logits.chosen = mean_where(e, means.chosen, masks.chosen, found[0]);
    s.logits.rejected = mean_where(e, means.rejected, masks.rejected, found[1]);
    pair_drop(e, masks);
    pair_drop(e, means);
    tensor_drop(e, sums);
    swift_tokens_leave(e, t);
    return s;
}

/* compute_ref_log_probs(); named */
static struct pair score_by_reference(struct engine *e, const struct decoder *m, const struct batch *batch,
                                      preference_forward *forward, void *user)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct swift_scores s = score(e, m, batch, forward, user, true);
    e->grad_enabled = grad;
    if (e->halted) return (struct pair){NULL, NULL};
    struct pair kept = {tensor_ref(s.log_probs.chosen), tensor_ref(s.log_probs.rejected)};
    drop_scores(e, &s);
    return kept;
}

/* _get_ipo_sequence_logps(): x / counts.to(x).clamp_min(1); floating */
static struct tensor *per_token(struct engine *e, struct tensor *x, struct tensor *counts)
{
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct tensor *count = tensor_keep(op_clamp(e, op_to(e, counts, PLIM_F32), 1, INFINITY));
    e->grad_enabled = grad;
    struct tensor *mean = op_div(e, x, count);
    tensor_drop(e, count);
    return mean;
}

/* The log-probabilities that a loss compares: of ipo means over the tokens of a completion; named */
struct compared {
    struct pair own, reference;
};

static struct compared compared_of(struct engine *e, bool is_ipo, const struct swift_scores *s, struct pair reference)
{
    struct pair own = s->log_probs;
    if (!is_ipo)
        return (struct compared){{tensor_ref(own.chosen), tensor_ref(own.rejected)},
                                 {tensor_ref(reference.chosen), tensor_ref(reference.rejected)}};
    struct pair counts = pair_of(e, s->counts);
    struct compared c = {.own.chosen = tensor_keep(per_token(e, own.chosen, counts.chosen))};
    c.own.rejected = tensor_keep(per_token(e, own.rejected, counts.rejected));
    c.reference.chosen = tensor_keep(per_token(e, reference.chosen, counts.chosen));
    c.reference.rejected = tensor_keep(per_token(e, reference.rejected, counts.rejected));
    pair_drop(e, counts);
    return c;
}

/* 0 + x * 1.0: what one loss_type adds to a sum; named */
static struct tensor *summed(struct engine *e, struct tensor *x)
{
    return tensor_keep(op_add_scalar(e, op_mul_scalar(e, x, 1), 0));
}

static void read_mean(struct engine *e, struct tensor *x, int64_t world)
{
    struct tensor *kept = tensor_hold(x);
    measures_read_gathered_mean(e, kept, world);
    tensor_drop(e, kept);
}

static void measure(struct engine *e, const struct plim_train_setting *setting, const struct swift_scores *s,
                    struct pair rewards)
{
    int64_t world = plim_setting_ranks(setting);
    struct tensor *accuracies =
        tensor_keep(op_to(e, op_compare(e, PLIM_BINARY_GT, rewards.chosen, rewards.rejected), PLIM_F32));
    read_mean(e, rewards.chosen, world);
    read_mean(e, rewards.rejected, world);
    read_mean(e, accuracies, world);
    read_mean(e, op_sub(e, rewards.chosen, rewards.rejected), world);
    read_mean(e, s->log_probs.chosen, world);
    read_mean(e, s->log_probs.rejected, world);
    if (setting->preference_loss == PLIM_PREFERENCE_IPO) {
        struct pair counts = pair_of(e, s->counts);
        read_mean(e, per_token(e, s->log_probs.chosen, counts.chosen), world);
        read_mean(e, per_token(e, s->log_probs.rejected, counts.rejected), world);
        pair_drop(e, counts);
    }
    read_mean(e, s->logits.chosen, world);
    read_mean(e, s->logits.rejected, world);
    if (setting->rpo_alpha > 0) read_mean(e, s->nll, world);
    tensor_drop(e, accuracies);
}

struct tensor *swift_dpo_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                              preference_forward *forward, void *user)
{
    struct swift_scores s = score(e, m, batch, forward, user, false);
    struct pair reference = {NULL, NULL}, rewards = {NULL, NULL};
    if (!e->halted) reference = score_by_reference(e, m, batch, forward, user);
    if (e->halted) return NULL;
    bool is_ipo = m->setting->preference_loss == PLIM_PREFERENCE_IPO;
    struct compared c = compared_of(e, is_ipo, &s, reference);
    struct preference_losses l = preference_losses_of(e, is_ipo, c.own, c.reference);
    struct tensor *losses = summed(e, l.loss);
    if (m->setting->rpo_alpha > 0)
        tensor_set(e, &losses, op_add(e, losses, op_mul_scalar(e, s.nll, m->setting->rpo_alpha)));
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    rewards.chosen = summed(e, l.rewards.chosen);
    rewards.rejected = summed(e, l.rewards.rejected);
    if (!e->halted) measure(e, m->setting, &s, rewards);
    e->grad_enabled = grad;
    struct tensor *loss = tensor_keep(op_mean_vector(e, losses));
    pair_drop(e, rewards);
    pair_drop(e, l.rewards);
    pair_drop(e, reference);
    pair_drop(e, c.own);
    pair_drop(e, c.reference);
    tensor_drop_all(e, losses, l.loss);
    drop_scores(e, &s);
    if (trains) tensor_set(e, &loss, op_div_scalar(e, loss, (double)m->setting->accumulation));
    return loss;
}
