/* modernbert: rotary attention with a fused projection, to the whole row or within a window in both directions, and a
 * gated MLP, with a LayerNorm before each. */
#include "model.h"

static void build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    int64_t h = c->hidden_size, f = c->intermediate_size;
    if (l != m->layers) nn_norm_create(e, p, &l->norm[0], NORM_LAYER, h, c->norm_bias);
    nn_linear_create(e, p, &l->qkv, h, 3 * h, c->attention_bias);
    nn_linear_create(e, p, &l->o, h, h, c->attention_bias);
    nn_norm_create(e, p, &l->norm[1], NORM_LAYER, h, c->norm_bias);
    nn_linear_create(e, p, &l->gate_up, h, 2 * f, c->mlp_bias);
    nn_linear_create(e, p, &l->down, f, h, c->mlp_bias);
}

/* Builds a rotary embedding for each kind of layer in the model. */
static void build_rotaries(struct engine *e, struct decoder *m)
{
    bool full = decoder_has_layers(m, false), sliding = decoder_has_layers(m, true);
    if (full) decoder_create_rotary(e, m, m->config->rope, &m->rotary);
    if (sliding) decoder_create_rotary(e, m, m->config->rope, &m->rotary_local);
    if (full && sliding)
        nn_rotary_initialise_both(e, &m->rotary, &m->rotary_local);
    else
        nn_rotary_initialise(e, full ? &m->rotary : &m->rotary_local);
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    nn_norm_create(e, p, &m->embedding_norm, NORM_LAYER, c->hidden_size, c->norm_bias);
    decoder_build_layers(e, m, build_layer);
    nn_norm_create(e, p, &m->final_norm, NORM_LAYER, c->hidden_size, c->norm_bias);
    build_rotaries(e, m);
    head_build(e, m);
    head_tie(e, m);
}

/* --- the block -------------------------------------------------------------------------------- */

/* Stores queries, keys and values (B, A, S, D), which are views of one projection; returns the projection, which Python
 * holds, too. All named. */
static struct tensor *project(struct engine *e, const struct block_call *b, struct tensor *x,
                              struct tensor *qkv[3])
{
    const struct plim_model_config *c = b->m->config;
    int64_t batch = x->a.shape[0], seq = x->a.shape[1];
    struct tensor *parts[3], *all = nn_linear(e, &b->layer->qkv, x);
    all = tensor_keep(op_view(e, all, SHAPE(batch, seq, 3, c->heads, c->head_dim)));
    op_split(e, all, 2, 3, (int64_t[]){1, 1, 1}, parts);
    for (int i = 0; i < 3; i++) {
        struct tensor *part = op_view(e, parts[i], SHAPE(batch, seq, c->heads, c->head_dim));
        qkv[i] = tensor_keep(op_transpose(e, part, 1, 2));
    }
    return all;
}

static struct tensor *attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights)
{
    struct tensor *qkv[3], *all = project(e, b, x, qkv);
    decoder_rotate_wide(e, b, qkv);
    struct attention_call call = decoder_attention(b);
    call.bidirectional = true;
    if (call.window) call.window++; /* the tokens on one side, and the token itself */
    struct tensor *y = decoder_context(e, &call, qkv, weights);
    tensor_set(e, &y, op_dropout(e, nn_linear(e, &b->layer->o, y), b->m->config->dropout_attention));
    tensor_drop_all(e, all, qkv[0], qkv[1], qkv[2]);
    return tensor_yield(y);
}

static struct tensor *mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *part[2];
    int64_t width = c->intermediate_size;
    bool was = tensor_enter(x);
    op_split(e, nn_linear(e, &b->layer->gate_up, x), 2, 2, (int64_t[]){width, width}, part);
    struct tensor *input = tensor_keep(part[0]), *gate = tensor_keep(part[1]);
    struct tensor *h = op_mul(e, decoder_activation(e, c->activation, input), gate);
    struct tensor *y = nn_linear(e, &b->layer->down, op_dropout(e, h, c->dropout_mlp));
    tensor_drop(e, input);
    tensor_drop(e, gate);
    tensor_leave(e, x, was);
    return y;
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    struct tensor *weights, *given = l->norm[0].weight ? nn_norm(e, &l->norm[0], x) : x;
    bool was = tensor_enter(given);
    struct tensor *attended = tensor_keep(attention(e, b, given, &weights));
    tensor_leave(e, given, was);
    struct tensor *h = tensor_keep(op_add(e, x, attended));
    tensor_set(e, &h, op_add(e, h, mlp(e, b, nn_norm(e, &l->norm[1], h))));
    tensor_drop(e, attended);
    tensor_drop(e, weights);
    return tensor_yield(h);
}

/* --- the forward ------------------------------------------------------------------------------ */

enum { FULL, SLIDING };

static struct tensor *embed(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *x = nn_norm(e, &m->embedding_norm, tensor_yield(decoder_embed(e, m, ids)));
    return tensor_keep(op_dropout(e, x, m->config->dropout_embedding));
}

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *range = op_arange(e, PLIM_I64, tensor_size(ids, 1), 0, 1);
    struct tensor *positions = tensor_keep(op_unsqueeze(e, range, 0));
    struct tensor *embeddings = embed(e, m, ids);
    struct block_call calls[2] = {{.positions = NULL}, {.positions = NULL}};
    struct rotary *rotary[2] = {&m->rotary, &m->rotary_local};
    calls[FULL].mask = decoder_open_mask(e, m, embeddings, 0);
    calls[SLIDING].mask = decoder_open_mask(e, m, embeddings, m->config->sliding_window);
    for (int kind = FULL; kind <= SLIDING; kind++)
        if (rotary[kind]->dim)
            nn_rotary(e, rotary[kind], positions, (enum plim_dtype)embeddings->a.dtype,
                      &calls[kind].cos, &calls[kind].sin);
    struct tensor *x = decoder_blocks(e, m, tensor_ref(embeddings), &calls[FULL], &calls[SLIDING]);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    for (int kind = FULL; kind <= SLIDING; kind++) {
        tensor_drop(e, calls[kind].mask);
        tensor_drop(e, calls[kind].cos);
        tensor_drop(e, calls[kind].sin);
    }
    tensor_drop(e, positions);
    tensor_drop(e, embeddings);
    return x;
}

const struct family plim_family_modernbert = {.build = build, .block = block, .body = body};
