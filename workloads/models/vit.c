/* vit: the patches of an image, a class token, learned positions, and norms before attention and MLP. The class token
 * and the patches correspond to the row of tokens of other models. */
#include "model.h"

/* --- the modules ------------------------------------------------------------------------------ */

static void norm_create(struct engine *e, struct decoder *m, struct norm *n)
{
    nn_norm_create(e, &m->parameters, n, NORM_LAYER, m->config->hidden_size, true);
    n->epsilon = 1e-12;
}

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, f = c->intermediate_size;
    nn_linear_create(e, p, &l->q, h, h, c->attention_bias);
    nn_linear_create(e, p, &l->k, h, h, c->attention_bias);
    nn_linear_create(e, p, &l->v, h, h, c->attention_bias);
    nn_linear_create(e, p, &l->o, h, h, true);
    norm_create(e, m, &l->norm[0]);
    norm_create(e, m, &l->norm[1]);
    nn_linear_create(e, p, &l->fc1, h, f, true);
    nn_linear_create(e, p, &l->fc2, f, h, true);
}

/* Creates the parameters. named_parameters() lists the embeddings' own ones before their convolution's. */
static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, size = c->patch_size;
    m->class_token = nn_parameter(e, p, INIT_WEIGHT, SHAPE(1, 1, h));
    m->patch_weight = nn_parameter(e, p, INIT_WEIGHT, SHAPE(h, c->channels, size, size));
    m->patch_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(h));
    m->position_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(1, c->positions, h));
    nn_move_last(p, 1);
    decoder_build_layers(e, m, build_layer);
    norm_create(e, m, &m->final_norm);
    m->head = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->labels, h));
    m->head_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(c->labels));
}

/* --- the forward ------------------------------------------------------------------------------ */

static struct tensor *project(struct engine *e, const void *module, struct tensor *images)
{
    const struct decoder *m = module;
    return op_patches(e, images, m->patch_weight, m->patch_bias);
}

/* ViTPatchEmbeddings: images -> (B, patches, H), named. */
static struct tensor *patches_of(struct engine *e, const struct decoder *m, struct tensor *images)
{
    const struct plim_model_config *c = m->config;
    int64_t batch = images->a.shape[0], h = c->hidden_size;
    struct tensor *const weights[] = {m->patch_weight, m->patch_bias, NULL};
    nn_begin(e);
    struct tensor *grid = nn_run(e, weights, NN_LINEAR, project, m, images);
    struct tensor *rows = op_view(e, grid, SHAPE(batch, h, c->positions - 1));
    struct tensor *patches = tensor_keep(op_transpose(e, rows, 1, 2));
    if (decoder_requires_input_grads(m)) tensor_require_input_grad(e, patches);
    return tensor_keep(nn_end(e, tensor_yield(patches)));
}

/* ViTEmbeddings: images (B, channels, image, image) -> (B, S, H), floating. */
static struct tensor *embed(struct engine *e, const void *module, struct tensor *images)
{
    const struct decoder *m = module;
    struct tensor *patches = patches_of(e, m, images);
    struct tensor *first = tensor_keep(op_expand(e, m->class_token, SHAPE(images->a.shape[0], -1, -1)));
    struct tensor *parts[2] = {first, patches};
    struct tensor *x = tensor_keep(op_cat(e, 2, parts, 1));
    tensor_drop(e, patches);
    tensor_set(e, &x, op_add(e, x, m->position_embedding));
    tensor_set(e, &x, nn_dropout(e, x, m->config->dropout_embedding));
    tensor_drop(e, first);
    return tensor_yield(x);
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *qkv[3];
    nn_begin(e);
    decoder_project_heads(e, b, x, c->heads, c->head_dim, qkv);
    struct attention_call call = decoder_attention(b);
    call.bidirectional = true;
    struct tensor *y = decoder_attend(e, b, &call, qkv, weights);
    for (int i = 0; i < 3; i++) tensor_drop(e, qkv[i]);
    return nn_end(e, y);
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    double p = b->m->config->dropout_residual;
    struct tensor *weights, *residual = tensor_ref(x), *h = tensor_keep(nn_norm(e, &l->norm[0], x));
    tensor_set(e, &h, attention(e, b, h, &weights));
    tensor_set(e, &h, nn_dropout(e, h, p));
    tensor_set(e, &h, op_add(e, h, residual));
    tensor_set(e, &residual, h);
    tensor_set(e, &h, nn_norm(e, &l->norm[1], h));
    tensor_set(e, &h, decoder_mlp(e, b, h));
    tensor_set(e, &h, nn_dropout(e, h, p));
    tensor_set(e, &h, op_add(e, h, residual));
    tensor_drop(e, residual);
    tensor_drop(e, weights);
    return tensor_yield(h);
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *images)
{
    struct tensor *const weights[] = {m->class_token, m->position_embedding, NULL};
    nn_access_weight(e, m->patch_weight, NN_MODEL, m->patch_weight); /* reads its type */
    struct tensor *pixels = tensor_hold(op_to(e, images, (enum plim_dtype)m->patch_weight->a.dtype));
    struct tensor *embeddings = tensor_keep(nn_run(e, weights, NN_EMBEDDING, embed, m, pixels));
    struct block_call call = {.mask = decoder_open_mask(e, m, embeddings, 0)};
    struct tensor *x = decoder_blocks(e, m, tensor_ref(embeddings), &call, NULL);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_drop_all(e, call.mask, embeddings, pixels);
    return x;
}

const struct family plim_family_vit = {.build = build, .block = block, .body = body};
