#include "label_smoother.h"
#include "measures.h"

enum { MOST_CLASS = 1 << 30 }; /* torch.clamp(labels, min=0) has no upper bound */

/* logits[..., :-1, :].contiguous() and labels[..., 1:].contiguous(); both named */
static void shift(struct engine *e, struct tensor **logits, struct tensor **labels)
{
    int64_t rows = tensor_size(*labels, 1) - 1;
    *logits = tensor_keep(op_contiguous(e, op_slice(e, *logits, 1, 0, rows)));
    *labels = tensor_keep(op_contiguous(e, op_slice(e, *labels, 1, 1, rows)));
}

/* *x = x.sum() / (items * classes), x (.., 1). `items`, the number of labels in a step, is a tensor of Trainer's, so it
 * takes memory here only if it is multiplied (`classes` above 1), or if the smoother computes it (`active`, otherwise
 * NULL); its value is x's size. */
static void sum_and_divide(struct engine *e, struct tensor **x, struct tensor *active, int64_t classes)
{
    double items = (double)tensor_elements(*x);
    struct tensor *sum = tensor_keep(op_sum_all(e, *x)), *count = active && classes == 1 ? tensor_ref(active) : NULL;
    if (classes > 1) count = tensor_keep(op_full(e, PLIM_I64, 0, NULL, items * (double)classes));
    tensor_set(e, x, count ? op_div(e, sum, count) : op_div_scalar(e, sum, items));
    tensor_drop_all(e, sum, count);
}

/* (1 - epsilon) * nll + epsilon * smoothed; named */
static struct tensor *weigh(struct engine *e, double epsilon, struct tensor *nll, struct tensor *smoothed)
{
    struct tensor *a = tensor_keep(op_mul_scalar(e, nll, 1 - epsilon));
    struct tensor *b = tensor_keep(op_mul_scalar(e, smoothed, epsilon));
    struct tensor *loss = tensor_keep(op_add(e, a, b));
    tensor_drop_all(e, a, b);
    return loss;
}

/* Returns the number of labels that count, which the smoother computes unless Trainer does; named; NULL if Trainer
 * does. */
static struct tensor *count_active(struct engine *e, const struct decoder *m, struct tensor *padding)
{
    if (decoder_accepts_num_items(m) || e->halted) return NULL;
    struct tensor *wide = tensor_keep(op_to(e, padding, PLIM_I64)), *sum = measures_count(e, wide);
    tensor_drop(e, wide);
    struct tensor *active = tensor_keep(op_full(e, PLIM_I64, 0, NULL, (double)tensor_elements(padding)));
    tensor_drop(e, sum);
    return active;
}

/* LabelSmoother.__call__() after the shift, with its variable names. */
static struct tensor *smooth(struct engine *e, const struct decoder *m, struct tensor *logits, struct tensor *labels,
                             bool owns_labels)
{
    struct tensor *logs = tensor_keep(op_log_softmax(e, logits));
    tensor_set(e, &logs, op_neg(e, logs));
    struct tensor *column = tensor_keep(op_unsqueeze(e, labels, -1));
    if (owns_labels) tensor_drop(e, labels);
    struct tensor *padding = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, column, PLIM_IGNORED_TARGET));
    tensor_set(e, &column, op_clamp(e, column, 0, MOST_CLASS));
    struct tensor *nll = tensor_keep(op_gather_last(e, logs, column));
    struct tensor *smoothed = tensor_keep(op_sum_last_as(e, logs, PLIM_F32));
    tensor_set(e, &nll, op_masked_fill_(e, nll, padding, 0));
    tensor_set(e, &smoothed, op_masked_fill_(e, smoothed, padding, 0));
    struct tensor *active = count_active(e, m, padding);
    sum_and_divide(e, &nll, active, 1);
    sum_and_divide(e, &smoothed, active, e->halted ? 1 : tensor_size(logs, -1));
    struct tensor *loss = weigh(e, m->setting->label_smoothing, nll, smoothed);
    tensor_drop_all(e, nll, smoothed, padding, column, logs, active);
    return loss;
}

/* True if MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, in which Trainer looks up the model's class, contains it. Of the models of
 * images and text it has only gemma's. */
static bool is_causal(const struct plim_model_config *c)
{
    return !plim_vision_exists(&c->vision) || c->family == PLIM_FAMILY_GEMMA3 || c->family == PLIM_FAMILY_GEMMA4 ||
           c->family == PLIM_FAMILY_GEMMA4_UNIFIED;
}

/* Trainer recognises a causal model by the name of its class, which fully_shard() has changed; SFTTrainer does not need
 * the name. */
struct tensor *label_smoother_loss(struct engine *e, const struct decoder *m, struct tensor *logits,
                                   struct tensor *labels)
{
    if (e->halted) return e->poison;
    bool is_named = m->setting->sharding != PLIM_SHARDING_FSDP && is_causal(m->config);
    bool is_known = is_named || m->setting->loop == PLIM_LOOP_TRL_SFT;
    bool shifts = m->config->task == PLIM_TASK_CAUSAL_LM && is_known;
    if (shifts) shift(e, &logits, &labels);
    struct tensor *loss = smooth(e, m, logits, labels, shifts);
    if (shifts) tensor_drop(e, logits);
    return loss;
}
