/* esm (ESM-2, ESM-1b): bert's linears with norms before attention and MLP, a rotary embedding or learned positions, and
 * embeddings that are zero for masked tokens. */
#include "model.h"
#include <math.h>

/* --- the modules ------------------------------------------------------------------------------ */

static bool turns(const struct decoder *m)
{
    return m->config->position_kind == PLIM_POSITIONS_ROTARY;
}

static void build_embeddings(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    if (c->norms_embeddings) bert_norm_create(e, m, &m->embedding_norm, c->hidden_size);
    m->position_ids = nn_buffer(e, op_arange(e, PLIM_I64, c->positions, 0, 1));
    if (!turns(m)) m->position_embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->positions, c->hidden_size));
}

static void build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    build_embeddings(e, m);
    if (turns(m)) decoder_create_rotary(e, m, c->rope, &m->rotary);
    decoder_build_layers(e, m, bert_build_layer);
    bert_norm_create(e, m, &m->final_norm, c->hidden_size);
    nn_linear_create(e, &m->parameters, &m->contacts, c->layers * c->heads, 1, true);
    tensor_drop(e, tensor_keep(op_arange(e, PLIM_I64, c->positions, 0, 1))); /* _init_weights() of the embeddings */
    if (turns(m)) nn_rotary_initialise(e, &m->rotary);
    head_build(e, m);
    head_tie(e, m);
}

/* --- the embeddings --------------------------------------------------------------------------- */

/* Returns which tokens are masked, (B, S) bool; floating */
static struct tensor *masked(struct engine *e, const struct decoder *m, struct tensor *ids)
{
    return op_compare_scalar(e, PLIM_BINARY_EQ, ids, (double)m->config->mask_token_id);
}

/* token_dropout: sets the embeddings of masked tokens to zero and scales the others as if the share of masked tokens
 * were that of pretraining. Rebinds *x (B, S, H). held: the lengths of the rows, NULL without an attention mask, and
 * the share of their tokens that is masked; named */
static void leave_out_masked(struct engine *e, const struct decoder *m, struct tensor *ids, struct tensor **x,
                             struct tensor *held[2])
{
    static const double trained = 0.15 * 0.8;
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)(*x)->a.dtype;
    tensor_set(e, x, op_masked_fill(e, *x, op_unsqueeze(e, masked(e, m, ids), 2), 0));
    struct tensor *lengths = NULL, *seen = m->attention_mask;
    if (seen) lengths = tensor_keep(op_reduce(e, seen, 2, false, PLIM_BINARY_ADD, 1, PLIM_I64));
    struct tensor *count = op_reduce(e, masked(e, m, ids), 2, false, PLIM_BINARY_ADD, 1, PLIM_I64);
    count = op_to(e, count, PLIM_F32);
    struct tensor *share = tensor_keep(lengths ? op_div(e, count, lengths)
                                               : op_div_scalar(e, count, (double)tensor_size(ids, 1)));
    struct tensor *scaled = op_mul_scalar(e, *x, 1 - trained);
    struct tensor *left = op_unsqueeze(e, op_unsqueeze(e, op_rsub_scalar(e, share, 1), 1), 2);
    struct tensor *y = op_div(e, scaled, left);
    tensor_set(e, x, e->halted ? y : op_to(e, y, dtype));
    held[0] = lengths;
    held[1] = share;
}

/* EsmEmbeddings of ids (B, S); named */
static struct tensor *embed(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *held[2] = {NULL}, *position_embeddings = NULL;
    nn_begin(e);
    struct tensor *positions = decoder_counted_positions(e, m, ids), *tokens = decoder_embed(e, m, ids);
    struct tensor *x = tensor_ref(tokens);
    if (m->config->token_dropout) leave_out_masked(e, m, ids, &x, held);
    if (m->position_embedding) {
        position_embeddings = tensor_keep(nn_embedding(e, m->position_embedding, positions));
        tensor_set(e, &x, op_add(e, x, position_embeddings));
    }
    if (m->embedding_norm.weight) tensor_set(e, &x, nn_norm(e, &m->embedding_norm, x));
    if (m->attention_mask) tensor_set(e, &x, op_mul(e, x, op_unsqueeze(e, m->attention_mask, -1)));
    tensor_set(e, &x, nn_end(e, x));
    tensor_drop_all(e, positions, tokens, held[0], held[1], position_embeddings);
    return x;
}

/* --- the block -------------------------------------------------------------------------------- */

/* EsmSelfAttention of x, lent, which scales queries before it rotates them; named */
static struct tensor *attend(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor **weights)
{
    const struct plim_model_config *c = b->m->config;
    struct tensor *qkv[3];
    nn_begin(e);
    decoder_project_heads(e, b, x, c->heads, c->head_dim, qkv);
    tensor_set(e, &qkv[0], op_mul_scalar(e, qkv[0], 1 / sqrt((double)c->head_dim)));
    if (turns(b->m)) decoder_rotate_wide(e, b, qkv);
    struct attention_call call = bert_attention(b);
    call.scaling = 1;
    struct tensor *y = decoder_context(e, &call, qkv, weights);
    tensor_drop_all(e, qkv[0], qkv[1], qkv[2]);
    tensor_set(e, &y, nn_end(e, y));
    return y;
}

/* EsmAttention: x + attention(norm(x)); named */
static struct tensor *attend_normed(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    struct tensor *weights;
    nn_begin(e);
    struct tensor *normed = tensor_keep(nn_norm(e, &l->norm[0], x)), *y = attend(e, b, normed, &weights);
    tensor_set(e, &y, bert_output(e, b, &l->o, NULL, y, x));
    tensor_drop_all(e, normed, weights);
    tensor_set(e, &y, nn_end(e, y));
    return y;
}

/* x + mlp(norm(x)); floating */
static struct tensor *feed_normed(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *normed = tensor_keep(nn_norm(e, &b->layer->norm[1], x)), *y = bert_feed(e, b, NULL, normed, x);
    tensor_drop(e, normed);
    return y;
}

static struct tensor *block(struct engine *e, const struct block_call *b, struct tensor *x)
{
    struct tensor *attended = attend_normed(e, b, x), *y = feed_normed(e, b, attended);
    tensor_drop(e, attended);
    return y;
}

/* --- the forward ------------------------------------------------------------------------------ */

static struct tensor *body(struct engine *e, struct decoder *m, struct tensor *ids)
{
    struct tensor *embeddings = embed(e, m, ids), *positions = NULL;
    struct block_call call = {.mask = decoder_open_mask(e, m, embeddings, 0)};
    if (turns(m) && !e->halted) {
        positions = tensor_keep(op_unsqueeze(e, op_arange(e, PLIM_I64, tensor_size(ids, 1), 0, 1), 0));
        nn_rotary(e, &m->rotary, positions, (enum plim_dtype)embeddings->a.dtype, &call.cos, &call.sin);
    }
    nn_begin(e);
    struct tensor *x = decoder_blocks(e, m, tensor_ref(embeddings), &call, NULL);
    tensor_set(e, &x, nn_norm(e, &m->final_norm, x));
    tensor_set(e, &x, nn_end(e, x));
    tensor_drop_all(e, call.mask, call.cos, call.sin, positions, embeddings);
    return x;
}

const struct family plim_family_esm = {.build = build, .block = block, .body = body};
