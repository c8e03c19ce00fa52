/* The load-balancing loss of experts (load_balancing_loss_func in transformers' modeling_mixtral.py, 5.17), which TRL's
 * SFTTrainer and GRPOTrainer add to their own: how often each expert is selected times its mean probability, over all
 * layers. */
#include "model.h"

bool experts_are_balanced(const struct plim_model_config *config, const struct plim_train_setting *setting)
{
    bool balances = setting->loop == PLIM_LOOP_TRL_SFT || setting->loop == PLIM_LOOP_TRL_GRPO;
    return balances && config->experts && config->aux_loss_coef > 0;
}

/* The variables in Python; all named */
struct balance {
    struct tensor *mask;                  /* (N), fp32 */
    struct tensor *chosen, *likely;       /* (experts), fp32 */
    struct tensor *rows;                  /* scalar; NULL: 0.0 */
    struct tensor *weights;               /* (N, experts), of the last layer */
    struct tensor *largest, *experts;     /* (N, k), of the last layer */
};

/* *sum = *sum + more (floating or named) */
static void add(struct engine *e, struct tensor **sum, struct tensor *more)
{
    tensor_set(e, sum, op_add(e, *sum, more));
}

/* chosen + zeros(experts).scatter_add_(0, experts.reshape(-1), mask.repeat_interleave(k)) */
static void add_chosen(struct engine *e, struct balance *b, int64_t experts, int64_t k)
{
    struct tensor *zeros = tensor_keep(op_full(e, PLIM_F32, 1, &experts, 0));
    struct tensor *flat = tensor_keep(op_reshape(e, b->experts, SHAPE(tensor_elements(b->experts))));
    struct tensor *column = op_unsqueeze(e, b->mask, -1);
    struct tensor *each = tensor_keep(op_clone(e, op_expand(e, column, SHAPE(tensor_elements(b->mask), k))));
    op_scatter_add_(e, zeros, flat, each);
    tensor_drop_all(e, each, flat);
    add(e, &b->chosen, zeros);
    tensor_drop(e, zeros);
}

static void add_layer(struct engine *e, struct balance *b, const struct plim_model_config *c, struct tensor *logits)
{
    struct tensor *top[2];
    enum plim_dtype dtype = e->autocast.on ? PLIM_F32 : (enum plim_dtype)logits->a.dtype;
    tensor_set(e, &b->weights, op_softmax(e, logits, dtype));
    op_top_k(e, b->weights, c->experts_per_token, top);
    tensor_set(e, &b->largest, top[0]);
    tensor_set(e, &b->experts, top[1]);
    add_chosen(e, b, c->experts, c->experts_per_token);
    struct tensor *wide = op_to(e, b->weights, PLIM_F32);
    struct tensor *masked = tensor_keep(op_mul(e, wide, op_unsqueeze(e, b->mask, -1)));
    struct tensor *sum = tensor_keep(op_sum_dim(e, masked, 0));
    tensor_drop(e, masked);
    add(e, &b->likely, sum);
    tensor_drop(e, sum);
    struct tensor *rows = tensor_keep(op_sum_all(e, b->mask));
    tensor_set(e, &b->rows, b->rows ? op_add(e, b->rows, rows) : op_add_scalar(e, rows, 0));
    tensor_drop(e, rows);
}

struct tensor *experts_balance(struct engine *e, const struct decoder *m, struct tensor *mask)
{
    const struct plim_model_config *c = m->config;
    struct balance b = {0};
    if (e->halted) return NULL;
    b.chosen = tensor_keep(op_full(e, PLIM_F32, 1, &c->experts, 0));
    b.likely = tensor_keep(op_full(e, PLIM_F32, 1, &c->experts, 0));
    b.mask = tensor_keep(op_to(e, op_reshape(e, mask, SHAPE(tensor_elements(mask))), PLIM_F32));
    for (int64_t i = 0; i < c->layers && !e->halted; i++)
        if (m->router_logits[i]) add_layer(e, &b, c, m->router_logits[i]);
    struct tensor *chosen = tensor_keep(op_div(e, b.chosen, b.rows));
    struct tensor *likely = tensor_keep(op_div(e, b.likely, b.rows));
    struct tensor *product = tensor_keep(op_mul(e, chosen, op_unsqueeze(e, likely, 0)));
    struct tensor *loss = tensor_keep(op_sum_all(e, product));
    tensor_drop(e, product);
    tensor_set(e, &loss, op_mul_scalar(e, loss, (double)c->experts));
    tensor_drop_all(e, chosen, likely, b.mask, b.chosen, b.likely, b.rows, b.weights, b.largest, b.experts);
    return loss;
}
