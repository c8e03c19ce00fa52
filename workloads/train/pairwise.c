#include "pairwise.h"

/* values.gather(-1, mask.sum(-1, keepdim=True) - 1).squeeze(), of one side's rows: (rows), floating */
static struct tensor *scores_of(struct engine *e, struct tensor *values, struct tensor *mask)
{
    struct tensor *tokens = op_reduce(e, mask, 1u << 1, true, PLIM_BINARY_ADD, 1, PLIM_I64);
    struct tensor *scores = op_gather_last(e, values, op_add_scalar(e, tokens, -1));
    return op_view(e, scores, SHAPE(e->halted ? 1 : values->a.shape[0]));
}

struct tensor *pairwise_loss(struct engine *e, struct tensor *values, struct tensor *mask, struct pair *scores)
{
    *scores = (struct pair){NULL, NULL};
    if (e->halted) return NULL;
    struct pair masks = pair_of(e, mask), rewards = pair_of(e, values);
    scores->chosen = tensor_keep(scores_of(e, rewards.chosen, masks.chosen));
    scores->rejected = tensor_keep(scores_of(e, rewards.rejected, masks.rejected));
    struct tensor *signs = op_log_sigmoid(e, op_sub(e, scores->chosen, scores->rejected));
    struct tensor *loss = tensor_keep(op_neg(e, op_mean_vector(e, signs)));
    pair_drop(e, masks);
    pair_drop(e, rewards);
    return loss;
}
