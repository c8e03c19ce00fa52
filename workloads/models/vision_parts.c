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

struct tensor *vision_patches(struct engine *e, const struct decoder *m, struct tensor *images)
{
    if (e->halted) return e->poison;
    struct tensor *pixels = tensor_hold(op_to(e, images, (enum plim_dtype)m->vision.patch_weight->a.dtype));
    struct tensor *grid = tensor_keep(op_patches(e, pixels, m->vision.patch_weight, m->vision.patch_bias));
    tensor_drop(e, pixels);
    bool needs_grad = m->setting->checkpointing == PLIM_CHECKPOINTING_FULL && !e->halted;
    if (needs_grad) tensor_require_input_grad(e, grid); /* enable_input_require_grads(), which checkpointing calls */
    return grid;
}

struct tensor *vision_block(struct engine *e, const struct block_call *b, struct tensor *x,
                            struct tensor *(*attention)(struct engine *e, const struct block_call *b, struct tensor *x,
                                                        struct tensor **weights),
                            struct tensor *(*mlp)(struct engine *e, const struct block_call *b, struct tensor *x))
{
    const struct decoder_layer *l = b->layer;
    struct tensor *weights, *residual = tensor_ref(x), *h = tensor_keep(nn_norm(e, &l->norm[0], x));
    tensor_set(e, &h, attention(e, b, h, &weights));
    tensor_set(e, &h, op_add(e, residual, h));
    tensor_set(e, &residual, h);
    tensor_set(e, &h, nn_norm(e, &l->norm[1], h));
    tensor_set(e, &h, mlp(e, b, h));
    tensor_set(e, &h, op_add(e, residual, h));
    tensor_drop_all(e, residual, weights);
    return tensor_yield(h);
}

struct tensor **vision_split(struct engine *e, struct tensor *x, int64_t count)
{
    struct tensor **parts = engine_take_room(e, (size_t)count * sizeof *parts);
    int64_t *lengths = engine_take_room(e, (size_t)count * sizeof *lengths);
    for (int64_t i = 0; i < count && !e->halted; i++) lengths[i] = tensor_size(x, 0) / count;
    if (!e->halted) op_split(e, x, 0, (int)count, lengths, parts);
    engine_give_room(e, lengths);
    return parts;
}

void vision_place(struct engine *e, const struct seen_images *seen, struct tensor **embeddings)
{
    struct tensor *mask = tensor_keep(op_unsqueeze(e, seen->mask, -1));
    tensor_set(e, embeddings, op_masked_scatter(e, *embeddings, mask, seen->rows));
    tensor_drop(e, mask);
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
