#include "grpo_balance.h"
#include "measures.h"

struct tensor *grpo_balance_mean(struct engine *e, struct tensor *aux_loss)
{
    struct tensor *view = tensor_hold(op_view(e, aux_loss, SHAPE(1)));
    struct tensor *all = tensor_keep(op_cat(e, 1, &view, 0));
    struct tensor *mean = tensor_keep(op_mean_vector(e, all));
    tensor_drop_all(e, view, all);
    return mean;
}

void grpo_balance_add(struct engine *e, const struct decoder *model, struct tensor *mean,
                      struct tensor **loss)
{
    const struct plim_train_setting *s = model->setting;
    if (e->halted) return;
    struct tensor *weighted = op_mul_scalar(e, mean, model->config->aux_loss_coef);
    tensor_set(e, loss, op_add(e, *loss, op_div_scalar(e, weighted, (double)s->accumulation)));
    bool grad = e->grad_enabled;
    e->grad_enabled = false;
    measures_read_gathered_mean(e, mean, plim_setting_ranks(s));
    e->grad_enabled = grad;
}
