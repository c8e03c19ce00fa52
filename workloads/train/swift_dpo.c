#include "swift_dpo.h"
#include "measures.h"
#include "swift_tokens.h"

/* The results of concatenated_forward(); named. Of the reference the log-probabilities alone count. */
struct swift_scores {
    struct pair log_probs, logits; /* sums of answers; means of their tokens' mean logits, scalars */
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
    struct tensor *mean = op_mean_last(e, op_rows_where(e, x, mask, found));
    return tensor_keep(op_view(e, mean, 0, (const int64_t[]){0}));
}

static struct swift_scores score(struct engine *e, const struct decoder *m, const struct batch *batch,
                                 preference_forward *forward, void *user, bool by_reference)
{
    struct swift_scores s = {.tokens = swift_tokens_score(e, m, batch, false, forward, user, by_reference)};
    struct swift_tokens *t = &s.tokens;
    if (e->halted) return s;
    /* the last answer is a rejected one, and may have one token less */
    int64_t found[2] = {(decoder_labels(m) + 1) / 2, decoder_labels(m) / 2};
    s.counts = tensor_keep(op_reduce(e, t->is_label, 1u << 1, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    struct pair masks = pair_of(e, t->is_label), each = pair_of(e, t->log_probs), means = pair_of(e, t->reduced);
    if (!by_reference) {
        s.nll = mean_where(e, each.chosen, masks.chosen, found[0]);
        tensor_set(e, &s.nll, op_neg(e, s.nll));
    }
    pair_drop(e, each);
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
static struct pair judge(struct engine *e, const struct decoder *m, const struct batch *batch,
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

static void measure(struct engine *e, const struct swift_scores *s, struct pair rewards, int64_t world)
{
    struct tensor *accuracies =
        tensor_keep(op_to(e, op_compare(e, PLIM_BINARY_GT, rewards.chosen, rewards.rejected), PLIM_F32));
    read_mean(e, rewards.chosen, world);
    read_mean(e, rewards.rejected, world);
    read_mean(e, accuracies, world);
    read_mean(e, op_sub(e, rewards.chosen, rewards.rejected), world);
    read_mean(e, s->log_probs.chosen, world);
    read_mean(e, s->log_probs.rejected, world);
    read_mean(e, s->logits.chosen, world);
    read_mean(e, s->logits.rejected, world);
    tensor_drop(e, accuracies);
}

struct tensor *swift_dpo_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                              preference_forward *forward, void *user)
{
    struct swift_scores s = score(e, m, batch, forward, user, false);
    struct pair reference = {NULL, NULL}, rewards = {NULL, NULL};
    if (!e->halted) reference = judge(e, m, batch, forward, user);
    if (e->halted) return NULL;
    struct preference_losses l = preference_sigmoid_losses(e, s.log_probs, reference);
    struct tensor *losses = summed(e, l.loss);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    rewards.chosen = summed(e, l.rewards.chosen);
    rewards.rejected = summed(e, l.rewards.rejected);
    if (!e->halted) measure(e, &s, rewards, plim_setting_ranks(m->setting));
    e->grad_enabled = grad;
    struct tensor *loss = tensor_keep(op_view(e, op_mean_last(e, losses), 0, (const int64_t[]){0}));
    pair_drop(e, rewards);
    pair_drop(e, l.rewards);
    pair_drop(e, reference);
    tensor_drop_all(e, losses, l.loss);
    drop_scores(e, &s);
    if (trains) tensor_set(e, &loss, op_div_scalar(e, loss, (double)m->setting->accumulation));
    return loss;
}
