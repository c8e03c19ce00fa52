/* ForCausalLMLoss: fp32 logits, labels shifted by padding, mean cross entropy. */
#include "nn.h"
#include "workloads/engine/ops_cut.h"
#include "workloads/engine/ops_liger.h"

/* pad(labels, (0, 1), value=-100); named */
static struct tensor *padded_by_one(struct engine *e, struct tensor *labels)
{
    int64_t b = labels->a.shape[0], s = labels->a.shape[1];
    struct tensor *y = tensor_keep(op_full(e, PLIM_I64, SHAPE(b, s + 1), -100));
    struct tensor *into = tensor_keep(op_slice(e, y, 1, 0, s));
    op_copy_(e, into, labels);
    tensor_drop(e, into);
    return y;
}

struct tensor *nn_causal_lm_loss(struct engine *e, struct tensor *logits, struct tensor *labels, bool is_liger,
                                 bool is_sum)
{
    if (e->halted) return e->poison;
    int64_t classes = tensor_size(logits, -1), rows = tensor_elements(logits) / classes;
    struct tensor *wide = tensor_hold(op_to(e, logits, PLIM_F32));
    struct tensor *padded = padded_by_one(e, labels);
    struct tensor *target =
        tensor_hold(op_contiguous(e, op_slice(e, padded, 1, 1, tensor_size(labels, 1))));
    struct tensor *(*cross_entropy)(struct engine *, struct tensor *, struct tensor *) =
        is_liger ? op_liger_cross_entropy : op_cross_entropy;
    struct tensor *loss = tensor_keep(cross_entropy(e, op_view(e, wide, SHAPE(rows, classes)),
                                                    op_view(e, target, SHAPE(rows))));
    if (is_sum) tensor_set(e, &loss, op_div_scalar(e, loss, 1));
    tensor_drop(e, wide);
    tensor_drop(e, padded);
    tensor_drop(e, target);
    return tensor_yield(loss);
}

struct tensor *nn_liger_causal_lm_loss(struct engine *e, struct tensor *x, struct tensor *weight,
                                       struct tensor *labels, int64_t budget, double softcap, bool is_sum)
{
    if (e->halted) return e->poison;
    int64_t width = tensor_size(x, -1), rows = tensor_elements(x) / width;
    struct tensor *padded = padded_by_one(e, labels);
    struct tensor *shifted =
        tensor_hold(op_contiguous(e, op_slice(e, padded, 1, 1, tensor_size(labels, 1))));
    struct tensor *target = tensor_keep(op_view(e, shifted, SHAPE(rows)));
    struct tensor *loss = tensor_keep(
        op_liger_linear_cross_entropy(e, op_view(e, x, SHAPE(rows, width)), weight, target, budget, softcap));
    if (is_sum) tensor_set(e, &loss, op_div_scalar(e, loss, 1));
    tensor_drop_all(e, padded, shifted, target);
    return tensor_yield(loss);
}

struct tensor *nn_cut_causal_lm_loss(struct engine *e, const struct linear *head, struct tensor *x,
                                     struct tensor *labels, int64_t found, double softcap, bool is_sum)
{
    if (e->halted) return e->poison;
    struct tensor *narrow = tensor_hold(op_to(e, x, (enum plim_dtype)head->weight->a.dtype));
    const struct cut_call call = {.x = narrow,
                                  .weight = head->weight,
                                  .bias = head->bias,
                                  .labels = labels,
                                  .found = found,
                                  .softcap = softcap,
                                  .is_sum = is_sum};
    struct tensor *loss = tensor_keep(op_cut_cross_entropy(e, &call));
    tensor_drop(e, narrow);
    if (is_sum) tensor_set(e, &loss, op_div_scalar(e, loss, (double)found)); /* num_items_in_batch */
    return tensor_yield(loss);
}
