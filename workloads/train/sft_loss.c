#include "sft_loss.h"

enum { MOST_ITEMS = 1 << 30 }; /* clamp(min=1) has no upper end */

/* accelerator.gather_for_metrics(x).sum(), x a scalar, taken; of one rank it is x again. Named */
static struct tensor *sum_of_ranks(struct engine *e, struct tensor *x, int64_t world)
{
    if (e->halted) return x;
    enum plim_dtype dtype = (enum plim_dtype)x->a.dtype;
    if (world > 1) {
        struct tensor *own = tensor_keep(op_clone(e, x));
        struct tensor *all = tensor_keep(tensor_empty(e, dtype, 1, &world));
        tensor_drop_all(e, own, x);
        x = all;
    }
    struct tensor *sum = tensor_keep(op_full(e, dtype, 0, NULL, 1));
    tensor_drop(e, x);
    return sum;
}

static struct tensor *count(struct engine *e, struct tensor *x)
{
    return tensor_keep(op_reduce(e, x, 3, false, PLIM_BINARY_ADD, 1, PLIM_I64));
}

/* (sum / number).item() if number > 0: a mean, which the host reads */
static void read_mean(struct engine *e, struct tensor *number)
{
    struct tensor *is_any = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GT, number, 0));
    engine_item(e, is_any);
    tensor_drop(e, is_any);
    struct tensor *mean = tensor_keep(tensor_empty(e, PLIM_F32, 0, NULL));
    engine_item(e, mean);
    tensor_drop(e, mean);
}

struct measures {
    struct tensor *labels, *entropy, *correct;
};

static struct measures measure(struct engine *e, const struct fused_output *out, int64_t world)
{
    struct measures m;
    m.labels = sum_of_ranks(e, count(e, out->label_mask), world);
    struct tensor *entropy = op_reduce(e, out->entropy, 3, false, PLIM_BINARY_ADD, 1, PLIM_F32);
    m.entropy = sum_of_ranks(e, tensor_keep(entropy), world);
    m.correct = sum_of_ranks(e, count(e, out->is_top1), world);
    read_mean(e, m.labels);
    read_mean(e, m.labels);
    return m;
}

/* -log_probs.sum() / number, times the ranks in training; *each, named, are the losses of the tokens */
static struct tensor *loss_of(struct engine *e, const struct fused_output *out, struct tensor *items, int64_t world,
                              struct tensor **each)
{
    *each = tensor_keep(op_neg(e, out->log_probs));
    struct tensor *number = items ? tensor_ref(items) : count(e, out->label_mask);
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
        struct tensor *tokens = sum_of_ranks(e, count(e, batch->mask), world);
        engine_item(e, tokens);
        tensor_drop(e, tokens);
    }
    e->grad_enabled = grad;
    nn_fused_output_drop(e, out);
    tensor_drop_all(e, each, m.labels, m.entropy, m.correct);
    return loss;
}
