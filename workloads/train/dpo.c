#include "dpo.h"
#include "measures.h"

/* --- rows ------------------------------------------------------------------------------------- */

struct tensor *dpo_labels(struct engine *e, const struct batch *batch)
{
    if (e->halted) return NULL;
    struct tensor *is_prompt =
        tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, batch->completions, 0));
    struct tensor *labels = tensor_keep(op_masked_fill(e, batch->inputs, is_prompt, PLIM_IGNORED_TARGET));
    tensor_drop(e, is_prompt);
    return labels;
}

/* x[:, -(S - 1):] of x (B, S - 1), lent */
static struct tensor *tokens_of(struct engine *e, struct tensor *x)
{
    return tensor_keep(op_slice_end(e, x, 1, e->halted ? 0 : x->a.shape[1]));
}

struct tensor *dpo_log_probs(struct engine *e, const struct fused_output *out)
{
    if (e->halted) return NULL;
    struct tensor *each = tokens_of(e, out->log_probs);
    struct tensor *sums = tensor_keep(op_sum_dim(e, each, 1));
    tensor_drop(e, each);
    return sums;
}

/* --- the loss --------------------------------------------------------------------------------- */

static const double BETA = DPO_BETA;

static struct dpo_ratios compare(struct engine *e, struct dpo_compared *c, const struct batch *batch)
{
    struct dpo_ratios r = {.log_probs = pair_of(e, c->log_probs)};
    if (batch->known[0]) {
        r.reference = (struct pair){tensor_ref(batch->known[0]), tensor_ref(batch->known[1])};
    } else {
        bool grad = e->grad_enabled;
        e->grad_enabled = false;
        struct tensor *sums = dpo_log_probs(e, &c->reference);
        r.reference = pair_of(e, sums);
        tensor_drop(e, sums);
        e->grad_enabled = grad;
    }
    return r;
}

void dpo_ratios_compare(struct engine *e, struct dpo_ratios *r)
{
    r->ratio.chosen = tensor_keep(op_sub(e, r->log_probs.chosen, r->reference.chosen));
    r->ratio.rejected = tensor_keep(op_sub(e, r->log_probs.rejected, r->reference.rejected));
    r->delta = tensor_keep(op_sub(e, r->ratio.chosen, r->ratio.rejected));
}

void dpo_sigmoid_losses(struct engine *e, struct dpo_ratios *r)
{
    struct tensor *signs = tensor_keep(op_log_sigmoid(e, op_mul_scalar(e, r->delta, BETA)));
    r->losses = tensor_keep(op_neg(e, signs));
    tensor_drop(e, signs);
}

struct tensor *dpo_mean_loss(struct engine *e, const struct dpo_ratios *r)
{
    struct tensor *loss = tensor_keep(op_mean_vector(e, r->losses));
    tensor_set(e, &loss, op_mul_scalar(e, loss, 1));
    tensor_set(e, &loss, op_add_scalar(e, loss, 0));
    return loss;
}

void dpo_ratios_drop(struct engine *e, struct dpo_ratios *r)
{
    pair_drop(e, r->log_probs);
    pair_drop(e, r->reference);
    pair_drop(e, r->ratio);
    tensor_drop_all(e, r->delta, r->losses);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static struct tensor *sum(struct engine *e, struct tensor *x)
{
    return measures_fold(e, x, PLIM_BINARY_ADD);
}

struct tensor *dpo_measure_entropy(struct engine *e, struct tensor *entropy, struct tensor *mask, int64_t world,
                                   struct tensor **total)
{
    struct tensor *counted = tensor_keep(op_mul(e, entropy, mask));
    struct tensor *own = sum(e, counted);
    tensor_drop(e, counted);
    struct tensor *tokens = measures_count(e, mask);
    struct tensor *all = measures_sum_of_ranks(e, own, world);
    *total = measures_sum_of_ranks(e, tokens, world);
    measures_read_mean(e, all, *total);
    return all;
}

/* x.mean(-1) of x (n, V), lent; floating */
static struct tensor *mean_of_last(struct engine *e, struct tensor *x)
{
    return op_reduce(e, x, 2, false, PLIM_BINARY_ADD, e->halted ? 1 : 1 / (double)x->a.shape[1], PLIM_F32);
}

/* mean_logits[mask.bool()].sum() and mask.sum(), named */
static struct pair logits_of(struct engine *e, struct tensor *logits, struct tensor *mask,
                             int64_t found)
{
    struct tensor *is_counted = tensor_keep(op_to(e, mask, PLIM_BOOL));
    bool is_whole = !e->halted && logits->a.ndim > 2;
    struct tensor *counted = tensor_keep(is_whole ? op_apart_where(e, logits, is_counted, found)
                                                  : op_rows_where(e, logits, is_counted, found));
    tensor_drop(e, is_counted);
    if (is_whole) tensor_set(e, &counted, mean_of_last(e, counted));
    struct tensor *flat = tensor_keep(op_view(e, counted, SHAPE(found)));
    struct tensor *total = sum(e, flat);
    tensor_drop_all(e, flat, counted);
    return (struct pair){total, measures_count(e, mask)};
}

void dpo_measure_logits_of(struct engine *e, struct pair each, struct pair masks, const int64_t found[2], int64_t world)
{
    struct pair chosen = logits_of(e, each.chosen, masks.chosen, found[0]);
    struct pair rejected = logits_of(e, each.rejected, masks.rejected, found[1]);
    measures_read_sum(e, chosen.chosen, world);
    measures_read_sum(e, chosen.rejected, world);
    measures_read_sum(e, rejected.chosen, world);
    measures_read_sum(e, rejected.rejected, world);
}

void dpo_measure_logits(struct engine *e, struct tensor *each, struct pair masks, int64_t labels, int64_t world)
{
    struct pair logits = pair_of(e, each);
    /* the last completion is a rejected one, and may have one token less */
    dpo_measure_logits_of(e, logits, masks, (const int64_t[]){(labels + 1) / 2, labels / 2}, world);
    pair_drop(e, logits);
}

/* Python variables that live until the function returns. */
enum { ACCURACY = 3 };

/* Accuracy of the chosen completions: how many of their tokens are the most probable ones. Tensors that stay alive are
 * stored in `kept`, named; *total is replaced. */
static void measure_accuracy(struct engine *e, const struct fused_output *out, struct tensor *mask,
                             int64_t world, struct tensor **total, struct tensor *kept[ACCURACY])
{
    struct tensor *each = tokens_of(e, out->is_top1);
    struct pair likeliest = pair_of(e, each);
    struct tensor *is_counted = tensor_keep(op_to(e, mask, PLIM_BOOL));
    kept[0] = tensor_keep(op_compare(e, PLIM_BINARY_AND, likeliest.chosen, is_counted));
    tensor_drop_all(e, is_counted, each);
    tensor_set(e, total, tensor_yield(measures_count(e, mask)));
    struct tensor *correct = measures_count(e, kept[0]);
    kept[1] = measures_gather(e, correct, world);
    tensor_drop(e, correct);
    struct tensor *tokens = measures_gather(e, *total, world);
    tensor_drop(e, *total);
    *total = tokens;
    kept[2] = sum(e, *total);
    measures_read_whether(e, kept[2]);
    struct tensor *all = sum(e, kept[1]);
    measures_read_quotient(e, all, kept[2]);
    tensor_drop(e, all);
    pair_drop(e, likeliest);
}

/* Rewards, beta times the ratios, and how many pairs have the larger reward for the chosen completion. Tensors that
 * stay alive are stored in `kept`, named. */
void dpo_measure_rewards(struct engine *e, const struct dpo_ratios *r, int64_t world,
                         struct tensor *kept[DPO_REWARDS])
{
    struct tensor *chosen = kept[0] = tensor_keep(op_mul_scalar(e, r->ratio.chosen, BETA));
    struct tensor *rejected = kept[1] = tensor_keep(op_mul_scalar(e, r->ratio.rejected, BETA));
    kept[2] = measures_gather(e, chosen, world);
    kept[3] = measures_gather(e, rejected, world);
    measures_read(e, measures_mean(e, kept[2]));
    measures_read(e, measures_mean(e, kept[3]));
    struct tensor *is_larger = tensor_keep(op_compare(e, PLIM_BINARY_GT, chosen, rejected));
    kept[4] = tensor_keep(op_to(e, is_larger, PLIM_F32));
    tensor_drop(e, is_larger);
    kept[5] = measures_gather(e, kept[4], world);
    measures_read(e, measures_mean(e, kept[5]));
    kept[6] = tensor_keep(op_sub(e, chosen, rejected));
    kept[7] = measures_gather(e, kept[6], world);
    measures_read(e, measures_mean(e, kept[7]));
    measures_read_gathered_mean(e, r->log_probs.chosen, world);
    measures_read_gathered_mean(e, r->log_probs.rejected, world);
}

/* Computes the metrics after the loss, in PyTorch's order. Their variables live until the function returns. */
static void measure(struct engine *e, const struct dpo_compared *c, const struct dpo_ratios *r,
                    const struct batch *batch, int64_t labels, int64_t world, bool trains)
{
    enum { KEPT = ACCURACY + DPO_REWARDS };
    struct tensor *kept[KEPT] = {NULL}, *total;
    struct tensor *mask =
        tensor_keep(op_slice_end(e, batch->completions, 1, batch->completions->a.shape[1] - 1));
    struct tensor *entropy = dpo_measure_entropy(e, c->model.entropy, mask, world, &total);
    if (trains && !e->halted) measures_read_tokens(e, batch->mask, world);
    struct pair masks = pair_of(e, mask);
    struct tensor *each = tokens_of(e, c->model.mean_logits);
    if (!e->halted) dpo_measure_logits(e, each, masks, labels, world);
    tensor_drop(e, each);
    if (!e->halted) measure_accuracy(e, &c->model, masks.chosen, world, &total, kept);
    if (!e->halted) dpo_measure_rewards(e, r, world, kept + ACCURACY);
    tensor_drop_list(e, kept, KEPT);
    pair_drop(e, masks);
    tensor_drop_all(e, mask, entropy, total);
}

struct tensor *dpo_loss(struct engine *e, struct dpo_compared *c, const struct batch *batch, const struct decoder *m,
                        bool trains)
{
    if (e->halted) return NULL;
    int64_t world = plim_setting_ranks(m->setting);
    struct dpo_ratios r = compare(e, c, batch);
    dpo_ratios_compare(e, &r);
    dpo_sigmoid_losses(e, &r);
    struct tensor *loss = dpo_mean_loss(e, &r);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    if (!e->halted) measure(e, c, &r, batch, decoder_labels(m), world, trains);
    e->grad_enabled = grad;
    dpo_ratios_drop(e, &r);
    nn_fused_output_drop(e, &c->model);
    nn_fused_output_drop(e, &c->reference);
    tensor_drop(e, c->log_probs);
    return loss;
}
