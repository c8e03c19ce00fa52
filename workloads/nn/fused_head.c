/* TRL's fused head (add_fused_lm_head in trainer/utils.py of 1.16): the forward by which its trainers replace a causal
 * model's own. */
#include "nn.h"

/* new_zeros(mask.shape).masked_scatter(mask, x); named. NULL if x is NULL. */
static struct tensor *spread(struct engine *e, struct tensor *mask, struct tensor *x)
{
    if (!x) return NULL;
    if (e->halted) return e->poison;
    struct tensor *zeros = op_full(e, (enum plim_dtype)x->a.dtype, mask->a.ndim, mask->a.shape, 0);
    return tensor_keep(op_masked_scatter(e, zeros, mask, x));
}

/* Returns the tensor to use for the head's weight or bias outside of the head (struct module_hooks), named, or NULL. */
static struct tensor *full_weight(struct engine *e, struct tensor *weight)
{
    if (!weight || e->halted) return NULL;
    const struct module_hooks *hooks = e->modules;
    return hooks && hooks->full_weight ? hooks->full_weight(e, hooks->context, weight) : tensor_ref(weight);
}

static void release_weight(struct engine *e, struct tensor *weight)
{
    const struct module_hooks *hooks = e->modules;
    if (weight && hooks && hooks->release_weight && !e->halted) hooks->release_weight(e, hooks->context, weight);
}

/* The model's own loss, which the trainers do not use: -sum / number of labels. */
static void make_loss(struct engine *e, struct fused_output *out)
{
    enum { MOST_LABELS = 1 << 30 }; /* clamp(min=1) has no upper bound */
    struct tensor *sum = tensor_keep(op_sum_all(e, out->log_probs));
    tensor_set(e, &sum, op_neg(e, sum));
    out->count = tensor_keep(op_reduce(e, out->label_mask, 3, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    tensor_set(e, &out->count, op_clamp(e, out->count, 1, MOST_LABELS));
    out->loss = tensor_keep(op_div(e, sum, out->count));
    tensor_drop(e, sum);
    if (e->grad_enabled) return;
    tensor_drop(e, out->count);
    out->count = NULL;
}

struct fused_output nn_fused_head(struct engine *e, const struct linear *head, struct logit_transform transform,
                                  struct tensor *x, struct tensor *labels, int64_t found, unsigned wanted,
                                  struct tensor *lent[2])
{
    struct fused_output out = {0};
    lent[0] = lent[1] = NULL;
    if (e->halted) return out;
    int64_t rows = tensor_size(labels, 1) - 1;
    struct tensor *hidden = tensor_hold(op_slice(e, x, 1, 0, rows));
    struct tensor *shifted = tensor_hold(op_slice(e, labels, 1, 1, rows));
    nn_access_weight(e, NULL, NN_MODEL, head->weight); /* reads its device */
    out.label_mask = tensor_keep(op_compare_scalar(e, PLIM_BINARY_NE, shifted, PLIM_IGNORED_TARGET));
    if (head->bias) nn_access_weight(e, NULL, NN_MODEL, head->bias);
    lent[0] = full_weight(e, head->weight);
    lent[1] = full_weight(e, head->bias);
    struct tensor *counted = tensor_keep(op_rows_where(e, hidden, out.label_mask, found));
    struct tensor *targets = tensor_keep(op_rows_where(e, shifted, out.label_mask, found));
    struct token_scores scores = op_trl_token_scores(e, counted, lent[0], lent[1], targets, transform, wanted);
    tensor_drop_all(e, counted, targets);
    release_weight(e, head->weight);
    release_weight(e, head->bias);
    out.log_probs = spread(e, out.label_mask, scores.log_probs);
    out.entropy = spread(e, out.label_mask, scores.entropy);
    out.mean_logits = spread(e, out.label_mask, scores.mean_logits);
    out.is_top1 = spread(e, out.label_mask, scores.is_top1);
    tensor_drop_all(e, scores.log_probs, scores.entropy, scores.mean_logits, scores.is_top1);
    make_loss(e, &out);
    tensor_drop_all(e, hidden, shifted);
    return out;
}

void nn_fused_output_drop(struct engine *e, struct fused_output *out)
{
    tensor_drop_all(e, out->loss, out->log_probs, out->entropy, out->mean_logits, out->is_top1, out->label_mask,
                    out->aux_loss, out->count);
    *out = (struct fused_output){0};
}
