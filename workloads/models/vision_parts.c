/* What the towers share. */
#include "model.h"
#include <math.h>

void vision_build_blocks(struct engine *e, struct decoder *m,
                         void (*build)(struct engine *e, struct decoder *m, struct decoder_layer *l))
{
    for (int64_t i = 0; i < m->config->vision.layers; i++) {
        m->parameters.layer = (int32_t)(i + 1);
        build(e, m, &m->vision.layers[i]);
    }
    m->parameters.layer = 0;
}

struct attention_call vision_attention(const struct decoder *m)
{
    const struct plim_vision *v = &m->config->vision;
    return (struct attention_call){.function = decoder_attention_function(m),
                                   .bidirectional = true,
                                   .groups = 1,
                                   .low = decoder_parameter_dtype(m->setting),
                                   .scaling = 1 / sqrt((double)(v->hidden_size / v->heads)),
                                   .softmax_fp32 = true};
}

struct tensor *vision_count(struct engine *e, struct tensor *mask)
{
    struct tensor *sum = tensor_keep(op_full(e, PLIM_I64, 0, NULL, 0));
    tensor_drop(e, tensor_keep(op_to(e, mask, PLIM_I64)));
    return sum;
}

struct tensor *vision_count_placeholders(struct engine *e, struct tensor *mask)
{
    struct tensor *found = vision_count(e, mask);
    struct tensor *elements = tensor_keep(op_full(e, PLIM_I64, 0, NULL, 0));
    struct tensor *same = tensor_keep(op_full(e, PLIM_BOOL, 0, NULL, 1));
    tensor_drop(e, elements);
    struct tensor *all = tensor_keep(op_full(e, PLIM_BOOL, 0, NULL, 1));
    if (!e->halted) engine_item(e, all);
    tensor_drop_all(e, all, same);
    return found;
}
