#include "sft_loss.h"
#include "measures.h"

enum { MOST_ITEMS = 1 << 30 }; /* clamp(min=1) has no upper end */

struct measures {
    struct tensor *labels, *entropy, *correct;
};

static struct measures measure(struct engine *e, const struct fused_output *out, int64_t world)
{
    struct measures m;
    m.labels = measures_sum_of_ranks(e, measures_count(e, out->label_mask), world);
    struct tensor *entropy = op_reduce(e, out->entropy, 3, false, PLIM_BINARY_ADD, 1, PLIM_F32);
    m.entropy = measures_sum_of_ranks(e, tensor_keep(entropy), world);
    m.correct = measures_sum_of_ranks(e, measures_count(e, out->is_top1), world);
    measures_read_mean(e, m.labels);
    measures_read_mean(e, m.labels);
    return m;
}

/* -log_probs.sum() / number, times the ranks in training; *each, named, are the losses of the tokens */
static struct tensor *loss_of(struct engine *e, const struct fused_output *out, struct tensor *items, int64_t world,
                              struct tensor **each)
{
    *each = tensor_keep(op_neg(e, out->log_probs));
    struct tensor *number = items ? tensor_ref(items) : measures_count(e, out->label_mask);
    struct tensor *loss = tensor_keep(op_sum_all(e, *each));
    tensor_set(e, &number, op_clamp(e, number, 1, MOST_ITEMS));
    tensor_set(e, &loss, op_div(e, loss, number));
    tensor_drop(e, number);
    if (items) tensor_set(e, &loss, op_mul_scalar(e, loss, (double)world));
    return loss;
}

struct tensor *sft_loss(struct engine *e, struct fused_output *out, const struct batch *batch, struct tensor *items,
                        int64_t world)
{
    if (e->halted) return NULL;
    struct tensor *each, *loss = loss_of(e, out, items, world, &each);
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    struct measures m = measure(e, out, world);
    if (items && !e->halted) {
        struct tensor *own = batch->mask ? measures_count(e, batch->mask) : tensor_keep(op_full(e, PLIM_I64, 0, NULL, 1));
        struct tensor *tokens = measures_sum_of_ranks(e, own, world);
        engine_item(e, tokens);
        tensor_drop(e, tokens);
    }
    e->grad_enabled = grad;
    nn_fused_output_drop(e, out);
    tensor_drop_all(e, each, m.labels, m.entropy, m.correct);
    return loss;
}
