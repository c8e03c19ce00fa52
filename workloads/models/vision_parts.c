/* The parts that vision towers share. */
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

void vision_require_grads(struct engine *e, const struct decoder *m, struct tensor *patches)
{
    bool needs_grad = m->setting->checkpointing == PLIM_CHECKPOINTING_FULL && !e->halted;
    if (needs_grad) tensor_require_input_grad(e, patches);
}

/* The convolution that embeds patches. It is the tower's input embedding for enable_input_require_grads(), unless the
 * module that contains it is (has_tiles). */
static struct tensor *convolve(struct engine *e, const void *module, struct tensor *pixels)
{
    const struct decoder *m = module;
    struct tensor *grid = tensor_keep(op_patches(e, pixels, m->vision.patch_weight, m->vision.patch_bias));
    if (!m->config->vision.has_tiles) vision_require_grads(e, m, grid);
    return tensor_yield(grid);
}

struct tensor *vision_convolve(struct engine *e, const struct decoder *m, struct tensor *pixels)
{
    struct tensor *const own[] = {m->vision.patch_weight, m->vision.patch_bias, NULL};
    return nn_run(e, own, NN_LINEAR, convolve, m, pixels);
}

struct tensor *vision_patches(struct engine *e, const struct decoder *m, struct tensor *images)
{
    if (e->halted) return e->poison;
    struct tensor *pixels = tensor_hold(op_to(e, images, (enum plim_dtype)m->vision.patch_weight->a.dtype));
    struct tensor *grid = tensor_keep(vision_convolve(e, m, pixels));
    tensor_drop(e, pixels);
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

void vision_project_first(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor *qkv[3])
{
    const struct plim_vision *v = &b->m->config->vision;
    const struct linear *projections[3] = {&b->layer->q, &b->layer->k, &b->layer->v};
    for (int i = 0; i < 3; i++) qkv[i] = tensor_keep(nn_linear(e, projections[i], x));
    for (int i = 0; i < 2 && v->has_tiles; i++) tensor_set(e, &qkv[i], nn_dropout(e, qkv[i], 0)); /* an Identity */
    for (int i = 0; i < 3; i++)
        tensor_set(e, &qkv[i], decoder_heads(e, qkv[i], v->heads, v->hidden_size / v->heads));
}

/* SiglipAttention and CLIPAttention: x (N, T, W) -> the same shape, floating. The caller drops *weights. */
static struct tensor *plain_attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                      struct tensor **weights)
{
    const struct plim_vision *v = &b->m->config->vision;
    const struct attention_call call = vision_attention(b->m);
    struct tensor *qkv[3];
    nn_begin(e);
    if (v->has_class) vision_project_first(e, b, x, qkv);
    else decoder_project_heads(e, b, x, v->heads, v->hidden_size / v->heads, qkv);
    struct tensor *y = decoder_context(e, &call, qkv, weights);
    tensor_set(e, &y, nn_linear(e, &b->layer->o, y));
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2]);
    return nn_end(e, tensor_yield(y));
}

struct tensor *vision_plain_mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    nn_begin(e);
    struct tensor *inner = tensor_keep(nn_linear(e, &b->layer->fc1, x));
    tensor_set(e, &inner, decoder_activation(e, b->m->config->vision.activation, inner));
    tensor_set(e, &inner, nn_linear(e, &b->layer->fc2, inner));
    return nn_end(e, tensor_yield(inner));
}

struct tensor *vision_plain_block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    return vision_block(e, b, x, plain_attention, vision_plain_mlp);
}

struct tensor *vision_positions(struct engine *e, const struct decoder *m)
{
    if (e->halted) return e->poison;
    int64_t positions = tensor_size(m->vision.position_ids, 0);
    struct tensor *position_ids = tensor_keep(op_view(e, m->vision.position_ids, SHAPE(1, positions)));
    struct tensor *y = nn_embedding(e, m->vision.positions, position_ids);
    tensor_drop(e, position_ids);
    return y;
}

void vision_build_position_ids(struct engine *e, struct decoder *m, int64_t positions)
{
    m->vision.position_ids = nn_buffer(e, op_arange(e, PLIM_I64, positions, 0, 1));
}

void vision_initialise_position_ids(struct engine *e, const struct decoder *m)
{
    if (e->halted) return;
    struct tensor *ids = tensor_keep(op_arange(e, PLIM_I64, tensor_size(m->vision.position_ids, 0), 0, 1));
    op_copy_(e, m->vision.position_ids, ids);
    tensor_drop(e, ids);
}

struct tensor **vision_split(struct engine *e, struct tensor *x, int64_t count)
{
    struct tensor **parts = engine_allocate_host(e, (size_t)count * sizeof *parts);
    int64_t *lengths = engine_allocate_host(e, (size_t)count * sizeof *lengths);
    for (int64_t i = 0; i < count && !e->halted; i++) lengths[i] = tensor_size(x, 0) / count;
    if (!e->halted) op_split(e, x, 0, (int)count, lengths, parts);
    engine_free_host(e, lengths);
    return parts;
}

void vision_scatter(struct engine *e, const struct encoded_images *encoded, struct tensor **embeddings)
{
    struct tensor *mask = tensor_keep(op_unsqueeze(e, encoded->mask, -1));
    tensor_set(e, embeddings, op_masked_scatter(e, *embeddings, mask, encoded->rows));
    tensor_drop(e, mask);
}

void vision_scatter_rows(struct engine *e, struct decoder *m, struct encoded_images *encoded,
                         struct tensor **embeddings)
{
    bool by_ids = m->config->vision.by_ids;
    double image = by_ids ? (double)(m->config->vocab_size - 1) : 1;
    if (e->halted) return;
    tensor_set(e, &encoded->rows, op_to(e, encoded->rows, (enum plim_dtype)(*embeddings)->a.dtype));
    m->encoded = tensor_ref(encoded->rows); /* image_hidden_states */
    encoded->mask = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, by_ids ? m->inputs : m->token_types, image));
    tensor_drop(e, vision_count_placeholders(e, encoded->mask));
    vision_scatter(e, encoded, embeddings);
}

struct tensor *vision_run_blocks(struct engine *e, const struct decoder *m, struct tensor *x,
                                 struct tensor *(*block)(struct engine *e, const struct block_call *b,
                                                         struct tensor *x))
{
    struct tensor *y = tensor_ref(x);
    struct block_call call = {.m = m, .block = block};
    for (int64_t i = 0; i < m->config->vision.layers; i++) {
        call.layer = &m->vision.layers[i];
        tensor_set(e, &y, decoder_run_block(e, &call, y));
    }
    return y;
}

void vision_project(struct engine *e, const struct vision_merger *projector, struct tensor **x)
{
    tensor_set(e, x, nn_linear(e, &projector->fc1, *x));
    tensor_set(e, x, decoder_activation(e, PLIM_ACTIVATION_GELU, *x));
    tensor_set(e, x, nn_linear(e, &projector->fc2, *x));
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
