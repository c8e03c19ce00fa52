/* Code that the families share. */
#include "model.h"
#include "workloads/engine/checkpoint.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum plim_dtype decoder_weights_dtype(enum plim_weights weights)
{
    return weights == PLIM_WEIGHTS_BF16   ? PLIM_BF16
           : weights == PLIM_WEIGHTS_FP16 ? PLIM_F16
                                          : PLIM_F32;
}

enum plim_dtype decoder_parameter_dtype(const struct plim_train_setting *setting)
{
    enum plim_weights weights = plim_precision_weights(setting->precision);
    if (weights == PLIM_WEIGHTS_AUTO) weights = setting->weights;
    return decoder_weights_dtype(weights);
}

void decoder_refuse(struct engine *e, struct decoder *m, const char *format, const char *name)
{
    snprintf(m->refusal, sizeof(m->refusal), format, name);
    engine_halt(e, HALT_UNSUPPORTED);
}

/* peft's lora.Embedding.forward(): rebinds *x, the result of the base's embedding, to *x + embed(ids, A.T) B.T *
 * scaling, in its own type. */
static void add_embedding_adapter(struct engine *e, const struct decoder *m, struct tensor *ids, struct tensor **x)
{
    const struct lora_adapter *lora = m->embedding_lora;
    if (e->halted) return;
    enum plim_dtype dtype = (enum plim_dtype)(*x)->a.dtype;
    const struct plim_quantization *q = &m->setting->quantization;
    bool is_leaf = q->type && q->prepared && m->setting->checkpointing == PLIM_CHECKPOINTING_FULL;
    if (is_leaf) tensor_require_input_grad(e, *x); /* prepare_model_for_kbit_training()'s hook, which the base has */
    struct tensor *a = tensor_keep(op_transpose(e, lora->a, 0, 1));
    struct tensor *b = tensor_keep(op_transpose(e, lora->b, 0, 1));
    struct tensor *low = tensor_keep(op_embedding(e, a, ids));
    struct tensor *y = tensor_keep(op_mul_scalar(e, op_matmul(e, low, b), lora->scaling));
    if (m->embedding_scale && !e->halted)
        tensor_set(e, &y, op_mul(e, y, op_to(e, m->embedding_scale, (enum plim_dtype)y->a.dtype)));
    tensor_set(e, x, op_add(e, *x, y));
    tensor_set(e, x, e->halted ? *x : op_to(e, *x, dtype));
    tensor_drop_all(e, a, b, low, y);
}

bool decoder_requires_input_grads(const struct decoder *m)
{
    const struct plim_train_setting *s = m->setting;
    bool is_of_tokens = !m->config->patch_size && !m->config->mel_bins;
    bool is_prepared = s->quantization.type && s->quantization.prepared;
    return s->checkpointing == PLIM_CHECKPOINTING_FULL &&
           (is_of_tokens || is_prepared || (s->lora.r && !plim_loop_is_trainers(s->loop)));
}

/* nn.Embedding, or gemma's, which scales its result; then PEFT's hook, which runs before that of a sharding */
static struct tensor *embedding(struct engine *e, const void *module, struct tensor *ids)
{
    const struct decoder *m = module;
    struct tensor *x = tensor_keep(op_embedding(e, m->embedding, ids));
    if (m->embedding_scale)
        tensor_set(e, &x, op_mul(e, x, op_to(e, m->embedding_scale, (enum plim_dtype)m->embedding->a.dtype)));
    if (m->embedding_factor > 0) tensor_set(e, &x, op_mul_scalar(e, x, m->embedding_factor));
    if (m->embedding_lora && !e->adapters_off) add_embedding_adapter(e, m, ids, &x);
    if (decoder_requires_input_grads(m)) tensor_require_input_grad(e, x);
    return tensor_yield(x);
}

struct tensor *decoder_embed(struct engine *e, struct decoder *m, struct tensor *ids)
{
    return tensor_keep(nn_run(e, (struct tensor *const[]){m->embedding, NULL}, NN_EMBEDDING, embedding, m, ids));
}

int64_t decoder_documents(const struct decoder *m)
{
    return m->setting->packing == PLIM_PACKING_ONE_ROW ? m->setting->micro_batch * m->setting->documents : 0;
}

bool decoder_accepts_num_items(const struct decoder *m)
{
    enum plim_family f = m->config->family; /* only gemma3's inner model declares that it does not */
    if (m->config->task == PLIM_TASK_QUESTION_ANSWERING) return false; /* its targets are not named labels */
    if (f == PLIM_FAMILY_ESM) return false; /* accepts_loss_kwargs */
    return !plim_vision_exists(&m->config->vision) || f == PLIM_FAMILY_QWEN2_VL || f == PLIM_FAMILY_GEMMA3 ||
           f == PLIM_FAMILY_MISTRAL3 || f == PLIM_FAMILY_LLAVA || f == PLIM_FAMILY_INTERNVL;
}

int64_t decoder_unlearned(const struct decoder *m)
{
    return m->setting->prompt ? m->setting->prompt : 1;
}

int64_t decoder_labels(const struct decoder *m)
{
    const struct plim_train_setting *s = m->setting;
    int64_t rows = s->micro_batch * plim_loop_rows(s->loop), documents = decoder_documents(m);
    if (!documents) documents = rows;
    return rows * s->seq - documents - rows * (decoder_unlearned(m) - 1) - decoder_hides_padding(s);
}

int64_t decoder_longest_document(const struct decoder *m)
{
    const struct plim_train_setting *s = m->setting;
    return s->packing == PLIM_PACKING_ONE_ROW ? (s->seq + s->documents - 1) / s->documents : 0;
}

void decoder_create_rotary(struct engine *e, const struct decoder *m, enum plim_rope rope, struct rotary *r)
{
    double dim = (double)m->config->head_dim * m->config->partial_rotary_factor;
    decoder_create_rotary_of(e, m, rope, (int64_t)dim, r);
}

void decoder_create_rotary_of(struct engine *e, const struct decoder *m, enum plim_rope rope, int64_t dim,
                              struct rotary *r)
{
    const struct plim_model_config *c = m->config;
    static const struct rope *const ropes[PLIM_ROPE_COUNT] = {
        [PLIM_ROPE_DEFAULT] = &nn_rope_default,     [PLIM_ROPE_LINEAR] = &nn_rope_linear,
        [PLIM_ROPE_DYNAMIC] = &nn_rope_dynamic,     [PLIM_ROPE_YARN] = &nn_rope_yarn,
        [PLIM_ROPE_LONGROPE] = &nn_rope_longrope,   [PLIM_ROPE_LLAMA3] = &nn_rope_llama3,
        [PLIM_ROPE_PROPORTIONAL] = &nn_rope_linear,
    };
    *r = (struct rotary){.rope = ropes[rope],
                         .positions = c->positions,
                         .original_positions = c->rope_original_positions,
                         .longest_document = decoder_longest_document(m),
                         .dim = dim,
                         .is_alone = c->family == PLIM_FAMILY_ESM,
                         .turning = (int64_t)(c->partial_rotary_factor * (double)dim / 2),
                         .by_elements = m->setting->transformers == PLIM_TRANSFORMERS_5_24};
    if (rope == PLIM_ROPE_PROPORTIONAL && c->global_head_dim) r->rope = &nn_rope_proportional;
    nn_rotary_create(e, r);
}

struct tensor *decoder_positions(struct engine *e, const struct decoder *m, int64_t seq)
{
    if (m->positions) return tensor_ref(m->positions);
    struct tensor *x = op_add_scalar(e, op_arange(e, PLIM_I64, seq, 0, 1), 0);
    return tensor_keep(op_unsqueeze(e, x, 0));
}

enum attention_function decoder_attention_function(const struct decoder *m)
{
    static const enum attention_function functions[PLIM_ATTENTION_COUNT] = {
        [PLIM_ATTENTION_SDPA] = ATTENTION_SDPA,
        [PLIM_ATTENTION_EAGER] = ATTENTION_EAGER,
        [PLIM_ATTENTION_FLASH2] = ATTENTION_FLASH2,
    };
    return functions[m->setting->attention];
}

static struct mask_request mask_request(const struct decoder *m, const struct tensor *embeddings)
{
    return (struct mask_request){.batch = embeddings->a.shape[0],
                                 .seq = embeddings->a.shape[1],
                                 .past = m->cache ? m->cache->tokens : 0,
                                 .dtype = (enum plim_dtype)embeddings->a.dtype,
                                 .function = decoder_attention_function(m),
                                 .packed = m->setting->packing == PLIM_PACKING_YES || decoder_documents(m) > 1,
                                 .padded = decoder_hides_padding(m->setting),
                                 .attention_mask = m->attention_mask,
                                 .by_position = m->setting->transformers == PLIM_TRANSFORMERS_5_24};
}

struct tensor *decoder_mask_of_blocks(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                      struct tensor *positions, struct tensor *blocks, int64_t window)
{
    struct mask_request r = mask_request(m, embeddings);
    r.window = window;
    r.positions = positions;
    r.blocks = blocks;
    r.blocks_last = m->config->vision.has_no_blocks;
    r.packed = r.packed && positions;
    r.attention_mask = m->attention_mask;
    return e->halted ? NULL : nn_causal_mask(e, &r);
}

struct tensor *decoder_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                            struct tensor *positions, int64_t window)
{
    return decoder_mask_of_blocks(e, m, embeddings, positions, NULL, window);
}

struct tensor *decoder_padding_mask(struct engine *e, const struct decoder *m,
                                    struct tensor *embeddings, struct tensor *attention_mask)
{
    struct mask_request r = mask_request(m, embeddings);
    r.attention_mask = attention_mask;
    r.always = m->config->family == PLIM_FAMILY_FALCON;
    r.packed = m->setting->packing == PLIM_PACKING_YES; /* one packed row is not detected: no positions are passed */
    return e->halted ? NULL : nn_causal_mask(e, &r);
}

struct tensor *decoder_full_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                 struct tensor *ones)
{
    struct mask_request r = mask_request(m, embeddings);
    r.attention_mask = ones;
    r.packed = r.padded = false;
    return e->halted ? NULL : nn_causal_mask(e, &r);
}

struct tensor *decoder_open_mask(struct engine *e, const struct decoder *m,
                                 struct tensor *embeddings, int64_t window)
{
    if (e->halted) return NULL;
    struct mask_request r = mask_request(m, embeddings);
    r.window = window;
    return nn_bidirectional_mask(e, &r);
}

struct tensor *decoder_cross_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                  struct tensor *encoded)
{
    if (e->halted) return NULL;
    struct mask_request r = mask_request(m, embeddings);
    r.keys = encoded->a.shape[1];
    r.dtype = (enum plim_dtype)encoded->a.dtype;
    return nn_bidirectional_mask(e, &r);
}

struct tensor *decoder_heads(struct engine *e, struct tensor *x, int64_t heads, int64_t head_dim)
{
    if (e->halted) return op_halted(e, 1, &x);
    struct tensor *split = op_view(e, x, SHAPE(x->a.shape[0], x->a.shape[1], heads, head_dim));
    return op_transpose(e, split, 1, 2);
}

void decoder_project_heads(struct engine *e, const struct block_call *b, struct tensor *x, int64_t heads,
                           int64_t head_dim, struct tensor *qkv[3])
{
    const struct linear *projections[3] = {&b->layer->q, &b->layer->k, &b->layer->v};
    for (int i = 0; i < 3; i++)
        qkv[i] = tensor_keep(decoder_heads(e, nn_linear(e, projections[i], x), heads, head_dim));
}

/* Attention's result (B, S, A, D) -> (B, S, A * D), a view if possible */
static struct tensor *merge_heads(struct engine *e, struct tensor *x)
{
    if (e->halted) return op_halted(e, 1, &x);
    int64_t width = tensor_size(x, 2) * tensor_size(x, 3);
    return op_contiguous(e, op_reshape(e, x, SHAPE(x->a.shape[0], x->a.shape[1], width)));
}

struct attention_call decoder_attention(const struct block_call *b)
{
    const struct plim_model_config *c = b->m->config;
    bool slides = c->layer_is_sliding[b->layer - b->m->layers];
    return (struct attention_call){.function = decoder_attention_function(b->m),
                                   .positions = b->positions,
                                   .ends = b->ends,
                                   .documents = decoder_documents(b->m),
                                   .window = slides ? c->sliding_window : 0,
                                   .low = decoder_parameter_dtype(b->m->setting),
                                   .mask = b->mask,
                                   .groups = c->heads / c->kv_heads,
                                   .dropout = c->dropout_attention,
                                   .scaling = c->attention_multiplier > 0 ? c->attention_multiplier
                                                                          : 1 / sqrt((double)c->head_dim),
                                   .softmax_fp32 = true};
}

struct tensor *decoder_context(struct engine *e, const struct attention_call *call,
                               struct tensor *const qkv[3], struct tensor **weights)
{
    struct tensor *y = tensor_keep(nn_attention(e, call, qkv[0], qkv[1], qkv[2], weights));
    tensor_set(e, &y, merge_heads(e, y));
    return y;
}

struct tensor *decoder_project_out(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct linear *o = &b->layer->o;
    bool fuses = b->m->setting->lora.o_kernel && o->lora && !e->adapters_off;
    return (fuses ? nn_lora_o : nn_linear)(e, o, x);
}

struct tensor *decoder_attend(struct engine *e, const struct block_call *b,
                              const struct attention_call *call, struct tensor *const qkv[3],
                              struct tensor **weights)
{
    struct tensor *y = decoder_context(e, call, qkv, weights);
    tensor_set(e, &y, decoder_project_out(e, b, y));
    return tensor_yield(y);
}

struct tensor *decoder_attend_rotated(struct engine *e, const struct block_call *b, struct tensor *const qkv[3],
                                      struct tensor **weights)
{
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 1)), *sin = tensor_keep(op_unsqueeze(e, b->sin, 1));
    struct tensor *joined[3] = {NULL, NULL, qkv[2]}, *rotated[2];
    nn_rotate_then_join(e, qkv, cos, sin, joined, rotated);
    decoder_cache_update(e, b, joined);
    struct attention_call call = decoder_attention(b);
    struct tensor *y = decoder_attend(e, b, &call, joined, weights);
    tensor_drop_all(e, cos, sin, qkv[0], qkv[1], joined[0], joined[1], joined[2], rotated[0], rotated[1]);
    return y;
}

void decoder_rotate_wide(struct engine *e, const struct block_call *b, struct tensor *qkv[3])
{
    struct tensor *cos = tensor_keep(op_unsqueeze(e, b->cos, 1)),
                  *sin = tensor_keep(op_unsqueeze(e, b->sin, 1));
    struct tensor *rotated[2], *cast[2];
    for (int i = 0; i < 2; i++) rotated[i] = tensor_keep(nn_rotate_wide(e, qkv[i], cos, sin));
    for (int i = 0; i < 2; i++)
        cast[i] = tensor_hold(op_to(e, rotated[i], (enum plim_dtype)qkv[i]->a.dtype));
    tensor_drop_all(e, cos, sin, rotated[0], rotated[1], qkv[0], qkv[1]);
    qkv[0] = cast[0];
    qkv[1] = cast[1];
}

struct tensor *decoder_mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct plim_model_config *c = b->m->config;
    nn_begin(e);
    struct tensor *h = tensor_keep(nn_linear(e, &b->layer->fc1, x));
    tensor_set(e, &h, decoder_activation(e, c->activation, h));
    tensor_set(e, &h, nn_linear(e, &b->layer->fc2, h));
    enum plim_family f = c->family;
    bool drops = f == PLIM_FAMILY_GPT2 || f == PLIM_FAMILY_GPT_BIGCODE || f == PLIM_FAMILY_GPTJ ||
                 f == PLIM_FAMILY_DISTILBERT;
    if (drops) tensor_set(e, &h, nn_dropout(e, h, c->dropout_residual));
    return nn_end(e, tensor_yield(h));
}

struct plim_liger_patches decoder_liger(const struct decoder *m)
{
    return plim_family_liger(m->config, m->setting);
}

void decoder_patch_norm(struct norm *n, enum plim_liger_norm how)
{
    static const enum norm_kind kinds[] = {[PLIM_LIGER_NORM_IN_PLACE] = NORM_RMS_LIGER,
                                           [PLIM_LIGER_NORM_APART] = NORM_RMS_LIGER_APART,
                                           [PLIM_LIGER_NORM_LAYER] = NORM_LAYER_LIGER};
    if (how == PLIM_LIGER_NORM_NONE) return;
    n->offset = n->kind == NORM_RMS_GEMMA ? 1 : 0;
    n->kind = kinds[how];
}

struct tensor *decoder_gated_mlp(struct engine *e, enum plim_activation f,
                                 const struct decoder_layer *l, struct tensor *x)
{
    struct tensor *gate = decoder_activation(e, f, nn_linear(e, &l->gate, x));
    return nn_linear(e, &l->down, op_mul(e, gate, nn_linear(e, &l->up, x)));
}

struct tensor *decoder_layer_mlp(struct engine *e, const struct block_call *b, struct tensor *x)
{
    const struct decoder_layer *l = b->layer;
    bool has_adapters = l->gate.lora && l->up.lora && l->down.lora && !e->adapters_off;
    enum plim_activation f = b->m->config->activation;
    if (!b->m->setting->lora.mlp_kernel || !has_adapters) return decoder_gated_mlp(e, f, l, x);
    /* lora_kernels.py uses the erf formula for every gelu. */
    enum plim_unary gates = f == PLIM_ACTIVATION_SILU ? PLIM_UNARY_SILU : PLIM_UNARY_GELU;
    return nn_lora_mlp(e, gates, (const struct linear *const[]){&l->gate, &l->up, &l->down}, x);
}

/* --- the loops over the blocks ---------------------------------------------------------------- */

void decoder_build_layers(struct engine *e, struct decoder *m,
                          void (*build)(struct engine *e, struct decoder *m,
                                        struct decoder_layer *l))
{
    for (int64_t i = 0; i < m->config->layers; i++) {
        m->parameters.layer = (int32_t)(m->config->vision.layers + i + 1);
        build(e, m, &m->layers[i]);
    }
    m->parameters.layer = 0;
}

static struct tensor *block_itself(struct engine *e, const void *context, struct tensor *x)
{
    const struct block_call *c = context;
    return c->block(e, c, x);
}

/* Runs a block between its hooks, which may cast cos and sin. The blocks of internvl's tower have parameters of their
 * own and run with the hooks of their module. */
static struct tensor *between_hooks(struct engine *e, const void *context, struct tensor *x)
{
    struct block_call c = *(const struct block_call *)context;
    const struct decoder_hooks *hooks = c.m->hooks;
    struct tensor *const own[] = {c.layer->scales[0], c.layer->scales[1], NULL};
    bool is_plain = !hooks || !hooks->before_block;
    if (is_plain && own[0]) return nn_run(e, own, NN_NORM, block_itself, &c, x);
    nn_begin(e);
    if (is_plain) return nn_end(e, c.block(e, &c, x));
    struct tensor *input = tensor_hold(hooks->before_block(e, hooks->context, &c, x));
    struct tensor *y = c.block(e, &c, input);
    hooks->after_block(e, hooks->context, &c, y);
    tensor_drop(e, input);
    return y;
}

struct tensor *decoder_run_block(struct engine *e, const struct block_call *c, struct tensor *x)
{
    const struct plim_train_setting *s = c->m->setting;
    struct tensor *const held[CHECKPOINT_HELD] = {c->mask, c->cos, c->sin, c->positions, c->alibi, c->ends,
                                                  c->document, c->encoded, c->encoded_mask, c->biases[0],
                                                  c->biases[1], c->per_layer, c->distances, c->linear_mask};
    if (s->checkpointing == PLIM_CHECKPOINTING_NONE || e->evaluates || e->checkpointing_off)
        return between_hooks(e, c, x);
    return (s->use_reentrant ? checkpoint_run_reentrant : checkpoint_run)(e, between_hooks, c, sizeof *c, held,
                                                                          c->states, x);
}

struct tensor *decoder_blocks(struct engine *e, struct decoder *m, struct tensor *x,
                              const struct block_call *full, const struct block_call *sliding)
{
    return decoder_blocks_with_images(e, m, x, full, sliding, NULL);
}

/* Runs the blocks from layers[0] up to but not including layers[1]. */
static struct tensor *run_blocks(struct engine *e, struct decoder *m, struct tensor *x, const int64_t layers[2],
                                 const struct block_call *full, const struct block_call *sliding,
                                 struct encoded_images *encoded)
{
    struct tensor *per_layer = NULL;
    for (int64_t i = layers[0]; i < layers[1]; i++) {
        bool is_other = m->config->layer_is_sliding[i] || m->config->layer_is_linear[i];
        struct block_call call = sliding && is_other ? *sliding : *full;
        if (plim_model_layer_feeds(m->config, i)) call.mask = NULL;
        if (call.shared) memcpy(call.biases, call.shared, sizeof(call.biases));
        call.m = m;
        call.layer = &m->layers[i];
        call.block = m->family->block;
        call.ends = m->ends;
        call.document = m->document;
        if (m->per_layer) tensor_set(e, &per_layer, op_select(e, m->per_layer, 2, i));
        call.per_layer = per_layer;
        call.states = m->shared_states;
        if (m->hidden_states) m->hidden_states[i] = tensor_ref(x);
        tensor_set(e, &x, decoder_run_block(e, &call, x));
        if (encoded) vision_deepen(e, encoded, i, &x);
    }
    tensor_drop(e, per_layer);
    return x;
}

struct tensor *decoder_blocks_with_images(struct engine *e, struct decoder *m, struct tensor *x,
                                          const struct block_call *full, const struct block_call *sliding,
                                          struct encoded_images *encoded)
{
    return run_blocks(e, m, x, (const int64_t[2]){0, m->config->layers}, full, sliding, encoded);
}

struct tensor *decoder_blocks_between(struct engine *e, struct decoder *m, struct tensor *x,
                                      const struct block_call *call, int64_t first, int64_t end)
{
    return run_blocks(e, m, x, (const int64_t[2]){first, end}, call, NULL, NULL);
}

bool decoder_has_layers(const struct decoder *m, bool sliding)
{
    for (int64_t i = 0; i < m->config->layers; i++)
        if (m->config->layer_is_sliding[i] == sliding) return true;
    return false;
}

void decoder_build_head(struct engine *e, struct decoder *m, bool bias)
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    bool classifies = plim_task_classifies(c->task);
    int64_t classes = classifies ? c->labels : c->vocab_size, width = e->halted ? 0 : tensor_size(m->embedding, 1);
    m->head = nn_parameter(e, p, INIT_WEIGHT, SHAPE(classes, width));
    if (classifies) return;
    if (bias) m->head_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(classes));
    if (!c->tie_word_embeddings) return;
    nn_tie(e, p, &m->head, m->embedding);
    if (bias) nn_renew(e, m->head_bias); /* _adjust_bias: padding by 0 elements copies it */
}

void decoder_build_rotary(struct engine *e, struct decoder *m,
                          void (*build_layer)(struct engine *e, struct decoder *m, struct decoder_layer *l))
{
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    m->embedding = nn_parameter(e, p, INIT_WEIGHT, SHAPE(c->vocab_size, c->hidden_size));
    decoder_build_layers(e, m, build_layer);
    nn_norm_create(e, p, &m->final_norm, NORM_LAYER, c->hidden_size, true);
    decoder_create_rotary(e, m, c->rope, &m->rotary);
    nn_rotary_initialise(e, &m->rotary);
    decoder_build_head(e, m, false);
}
