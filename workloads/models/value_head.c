#include "model.h"

static const double DROPOUT = 0.1; /* summary_dropout_prob, if the model's configuration has none */

void value_head_build(struct engine *e, struct decoder *m)
{
    if (m->setting->loop != PLIM_LOOP_LLAMAFACTORY_RM || e->halted) return;
    enum plim_dtype dtype = m->parameters.dtype;
    m->parameters.dtype = PLIM_F32; /* regardless of the model's type */
    nn_linear_create(e, &m->parameters, &m->value_head, tensor_size(m->head, 1), 1, true);
    m->parameters.dtype = dtype;
}

struct tensor *value_head_run(struct engine *e, const struct decoder *m, struct tensor *x)
{
    if (e->halted) return e->poison;
    int64_t rows = x->a.shape[0], tokens = x->a.shape[1];
    struct tensor *input = op_to(e, nn_dropout(e, x, DROPOUT), PLIM_F32);
    return tensor_keep(op_view(e, nn_linear(e, &m->value_head, input), SHAPE(rows, tokens)));
}
