#include "dpo_logits.h"
#include "dpo.h"
#include "measures.h"
#include "selective.h"
#include <stdlib.h>

/* --- log-probabilities of a row --------------------------------------------------------------- */

/* The parts of a batch for the logits of all tokens but the last: the next tokens and which of them count, (2 B, n);
 * named. */
struct shifted {
    struct tensor *labels, *mask;
};

/* Returns the sum of the log-probabilities of each row's completion, and stores those of the tokens (2 B, n) in *each;
 * both named. logits (2 B, n, V). */
static struct tensor *log_probs_of(struct engine *e, struct tensor *logits, const struct shifted *s,
                                   struct tensor **each)
{
    *each = NULL;
    if (e->halted) return NULL;
    struct tensor *tokens = selective_log_probs(e, logits, s->labels);
    struct tensor *is_prompt = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, s->mask, 0));
    *each = tensor_keep(op_zero_where_(e, tokens, is_prompt));
    tensor_drop_all(e, tokens, is_prompt);
    return tensor_keep(op_sum_dim(e, *each, 1));
}

/* --- the loss --------------------------------------------------------------------------------- */

/* x / mask.sum(dim=1).clamp(min=1.0), for the chosen or the rejected rows; named */
static struct tensor *per_token(struct engine *e, struct tensor *x, struct tensor *mask)
{
    struct tensor *tokens = tensor_keep(op_reduce(e, mask, 2, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    struct tensor *count = tensor_keep(op_to(e, tokens, PLIM_F32)); /* at least one */
    tensor_drop(e, tokens);
    struct tensor *mean = tensor_keep(op_div(e, x, count));
    tensor_drop(e, count);
    return mean;
}

/* Python variables of the ipo loss, named. */
struct ipo {
    struct tensor *chosen, *rejected, *delta;
};

/* (mean of the chosen completion - mean of the rejected one - 1 / (2 * beta)) ** 2 */
static struct ipo ipo_losses(struct engine *e, struct dpo_ratios *r, struct tensor *completions)
{
    struct pair masks = pair_of(e, completions);
    struct ipo p = {.chosen = per_token(e, r->ratio.chosen, masks.chosen)};
    p.rejected = per_token(e, r->ratio.rejected, masks.rejected);
    p.delta = tensor_keep(op_sub(e, p.chosen, p.rejected));
    r->losses = tensor_keep(op_pow_scalar(e, op_add_scalar(e, p.delta, -1 / (2 * DPO_BETA)), 2));
    pair_drop(e, masks);
    return p;
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* Writes x (n) to the elements of y that start at `first`. */
static void put_chunk(struct engine *e, struct tensor *y, int64_t first, struct tensor *x)
{
    struct tensor *part = tensor_keep(tensor_alias(e, y, 1, x->a.shape, x->a.stride, first));
    op_copy_(e, part, x);
    tensor_drop(e, part);
}

/* entropy_from_logits() (trainer/utils.py) of each token (2 B, n), named. */
static struct tensor *entropy_of(struct engine *e, struct tensor *logits)
{
    enum { CHUNK = 128 };
    if (e->halted) return NULL;
    int64_t rows = logits->a.shape[0], tokens = logits->a.shape[1], classes = logits->a.shape[2], all = rows * tokens;
    struct tensor *flat = tensor_keep(op_reshape(e, logits, SHAPE(all, classes))), *logs = NULL;
    struct tensor *entropy = NULL, **own = calloc((size_t)(all / CHUNK + 1), sizeof(struct tensor *));
    size_t chunks = 0;
    if (!own) engine_fail(e, PLIM_NOMEM);
    for (int64_t from = 0; from < all && !e->halted; from += CHUNK) {
        int64_t count = all - from < CHUNK ? all - from : CHUNK;
        struct tensor *chunk = tensor_hold(op_slice(e, flat, 0, from, count));
        tensor_set(e, &logs, op_log_softmax(e, chunk));
        struct tensor *weighed = tensor_keep(op_mul(e, op_exp(e, logs), logs));
        struct tensor *sums = tensor_keep(op_reduce(e, weighed, 2, false, PLIM_BINARY_ADD, 1, PLIM_F32));
        tensor_drop(e, weighed);
        own[chunks++] = tensor_keep(op_neg(e, sums));
        tensor_drop_all(e, sums, chunk);
    }
    if (!e->halted) entropy = tensor_keep(tensor_empty(e, PLIM_F32, 2, logits->a.shape));
    for (size_t i = 0; i < chunks && !e->halted; i++) put_chunk(e, entropy, (int64_t)i * CHUNK, own[i]);
    for (size_t i = 0; i < chunks; i++) tensor_drop(e, own[i]);
    free(own);
    tensor_drop_all(e, logs, flat);
    return entropy;
}

enum { ACCURACY = 5, KEPT = ACCURACY + DPO_REWARDS };

/* Accuracy of the chosen completions: how many of their tokens are the most probable ones. Python variables are stored
 * in `kept`, named; *total is replaced. */
static void measure_accuracy(struct engine *e, struct tensor *logits, const struct shifted *s, int64_t world,
                             struct tensor **total, struct tensor *kept[ACCURACY])
{
    struct pair all = pair_of(e, logits), masks = pair_of(e, s->mask), labels = pair_of(e, s->labels);
    kept[0] = tensor_keep(op_argmax_last(e, all.chosen));
    kept[1] = tensor_keep(op_to(e, masks.chosen, PLIM_BOOL));
    struct tensor *is_likeliest = tensor_keep(op_compare(e, PLIM_BINARY_EQ, kept[0], labels.chosen));
    kept[2] = tensor_keep(op_compare(e, PLIM_BINARY_AND, is_likeliest, kept[1]));
    tensor_drop(e, is_likeliest);
    tensor_set(e, total, tensor_yield(measures_count(e, kept[1])));
    struct tensor *correct = measures_count(e, kept[2]), *tokens = *total;
    kept[3] = measures_gather(e, correct, world);
    *total = measures_gather(e, tokens, world);
    tensor_drop_all(e, tokens, correct);
    kept[4] = measures_fold(e, *total, PLIM_BINARY_ADD);
    measures_read_whether(e, kept[4]);
    struct tensor *sum = measures_fold(e, kept[3], PLIM_BINARY_ADD);
    measures_read_quotient(e, sum, kept[4]);
    tensor_drop(e, sum);
    pair_drop(e, all);
    pair_drop(e, masks);
    pair_drop(e, labels);
}

static void measure(struct engine *e, struct tensor *logits, const struct shifted *s, const struct dpo_ratios *r,
                    const struct batch *batch, int64_t labels, int64_t world, bool trains)
{
    struct tensor *kept[KEPT] = {NULL}, *total = NULL, *entropy = entropy_of(e, logits), *mean = NULL;
    if (!e->halted) mean = dpo_measure_entropy(e, entropy, s->mask, world, &total);
    if (trains && !e->halted) measures_read_tokens(e, batch->mask, world);
    struct pair masks = pair_of(e, s->mask);
    if (!e->halted) dpo_measure_logits(e, logits, masks, labels, world);
    if (!e->halted) measure_accuracy(e, logits, s, world, &total, kept);
    if (!e->halted) dpo_measure_rewards(e, r, world, kept + ACCURACY);
    tensor_drop_list(e, kept, KEPT);
    pair_drop(e, masks);
    tensor_drop_all(e, entropy, mean, total);
}

/* --- a micro-step ----------------------------------------------------------------------------- */

struct tensor *dpo_logits_loss(struct engine *e, const struct decoder *m, const struct batch *batch, bool trains,
                               preference_forward *forward, void *user)
{
    bool grad = e->grad_enabled;
    struct dpo_ratios r = {0};
    struct tensor *own = forward(user, batch, false), *each[2] = {NULL}, *shifted[2] = {NULL};
    if (e->halted) return NULL;
    int64_t tokens = batch->inputs->a.shape[1] - 1;
    struct shifted s = {tensor_keep(op_slice(e, batch->inputs, 1, 1, tokens)),
                        tensor_keep(op_slice(e, batch->completions, 1, 1, tokens))};
    shifted[0] = tensor_keep(op_slice(e, own, 1, 0, tokens));
    struct tensor *sums = log_probs_of(e, shifted[0], &s, &each[0]);
    r.log_probs = pair_of(e, sums);
    tensor_drop(e, sums);
    e->grad_enabled = false;
    struct tensor *reference = e->halted ? NULL : forward(user, batch, true);
    if (e->halted) return NULL;
    shifted[1] = tensor_keep(op_slice(e, reference, 1, 0, tokens));
    sums = log_probs_of(e, shifted[1], &s, &each[1]);
    r.reference = pair_of(e, sums);
    tensor_drop(e, sums);
    e->grad_enabled = grad;
    if (e->halted) return NULL;
    struct ipo ipo = {NULL, NULL, NULL};
    dpo_ratios_compare(e, &r);
    if (m->setting->preference_loss == PLIM_PREFERENCE_IPO) ipo = ipo_losses(e, &r, batch->completions);
    else dpo_sigmoid_losses(e, &r);
    struct tensor *loss = dpo_mean_loss(e, &r);
    e->grad_enabled = false;
    if (!e->halted)
        measure(e, shifted[0], &s, &r, batch, decoder_labels(m), plim_setting_ranks(m->setting), trains);
    e->grad_enabled = grad;
    dpo_ratios_drop(e, &r);
    tensor_drop_all(e, ipo.chosen, ipo.rejected, ipo.delta);
    tensor_drop_list(e, each, 2);
    tensor_drop_list(e, shifted, 2);
    tensor_drop_all(e, own, reference, s.labels, s.mask);
    return loss;
}
