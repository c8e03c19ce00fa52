#include "sft_loss.h"
#include "measures.h"

enum { MOST_ITEMS = 1 << 30 }; /* clamp(min=1) has no upper bound */

static void measure(struct engine *e, struct sft_held *held, int64_t world)
{
    const struct fused_output *out = &held->out;
    held->labels = measures_sum_of_ranks(e, measures_count(e, out->label_mask), world);
    enum plim_dtype dtype = e->halted ? PLIM_F32 : (enum plim_dtype)out->entropy->a.dtype;
    struct tensor *entropy = op_reduce(e, out->entropy, 3, false, PLIM_BINARY_ADD, 1, dtype);
    held->entropy = measures_sum_of_ranks(e, tensor_keep(entropy), world);
    held->correct = measures_sum_of_ranks(e, measures_count(e, out->is_top1), world);
    measures_read_mean(e, held->entropy, held->labels);
    measures_read_mean(e, held->correct, held->labels);
}

/* -log_probs.sum() / number, in training times the number of ranks, plus the load-balancing loss of the experts. Stores
 * its variables in *held. */
static struct tensor *loss_of(struct engine *e, struct tensor *items, int64_t world, const struct decoder *m,
                              struct sft_held *held)
{
    const struct fused_output *out = &held->out;
    held->tokens = tensor_keep(op_neg(e, out->log_probs));
    held->number = items ? tensor_ref(items) : measures_count(e, out->label_mask);
    struct tensor *loss = tensor_keep(op_sum_all(e, held->tokens));
    struct tensor *divisor = tensor_keep(op_clamp(e, held->number, 1, MOST_ITEMS));
    tensor_set(e, &loss, op_div(e, loss, divisor));
    tensor_drop(e, divisor);
    if (out->aux_loss) held->weighted = tensor_keep(op_mul_scalar(e, out->aux_loss, m->config->aux_loss_coef));
    if (items) tensor_set(e, &loss, op_mul_scalar(e, loss, (double)world));
    if (!held->weighted) return loss;
    struct tensor *share =
        tensor_keep(op_div_scalar(e, held->weighted, items ? (double)m->setting->accumulation : 1));
    tensor_set(e, &loss, op_add(e, loss, share));
    tensor_drop(e, share);
    return loss;
}

struct tensor *sft_loss(struct engine *e, struct fused_output out, const struct batch *batch, struct tensor *items,
                        const struct decoder *m, struct tensor *smoothed, struct sft_held *held)
{
    *held = (struct sft_held){.out = out};
    if (e->halted) return NULL;
    int64_t world = plim_setting_ranks(m->setting);
    struct tensor *loss = smoothed;
    if (!smoothed) loss = loss_of(e, items, world, m, held);
    else if (items) tensor_set(e, &loss, op_mul_scalar(e, loss, (double)world));
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    measure(e, held, world);
    if (!e->evaluates && !e->halted) {
        struct tensor *own =
            batch->mask ? measures_count(e, batch->mask)
                        : tensor_keep(op_full(e, PLIM_I64, 0, NULL, (double)tensor_elements(batch->inputs)));
        struct tensor *tokens = measures_sum_of_ranks(e, own, world);
        engine_item(e, tokens);
        tensor_drop(e, tokens);
    }
    if (out.aux_loss && !e->halted) {
        held->aux_loss = measures_sum_of_ranks(e, tensor_ref(out.aux_loss), world);
        engine_item(e, held->aux_loss);
    }
    e->grad_enabled = grad;
    return loss;
}

void sft_held_drop(struct engine *e, struct sft_held *held)
{
    nn_fused_output_drop(e, &held->out);
    tensor_drop_all(e, held->tokens, held->number, held->weighted);
    tensor_drop_all(e, held->aux_loss, held->labels, held->entropy, held->correct);
    *held = (struct sft_held){0};
}
