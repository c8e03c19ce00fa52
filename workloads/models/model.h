/* Transformer models as in transformers 5.17: decoders, and encoders, which differ in the tokens that a
 * token may see and in the head.
 *
 * A model is its parameters (struct decoder) and a family: how it is built, and what a block does.
 * decoder.c knows the families; decoder_parts.c has what families share (embedding, mask, the loop over the blocks with
 * checkpointing), rotary_body.c the body of those with rotary positions, head.c the heads and losses, states.c
 * the ordered list of tensors; each family has a file of its own for the rest.
 */
#ifndef PLIM_MODELS_MODEL_H
#define PLIM_MODELS_MODEL_H

#include "workloads/engine/checkpoint.h"
#include "workloads/nn/nn.h"
#include "workloads/spec/family.h"
#include "workloads/spec/spec.h"
#include "modules.h"
#include "vision.h"

/* The modules of one block; a family uses those it has. */
struct decoder_layer {
    struct linear q, k, v, o; /* or qkv, o where they are fused */
    struct linear qkv;
    struct linear q_a, q_b, kv_a, kv_b; /* latent attention (latent_attention.c): down to latents and up again; if there
                                         * is no q_a, q is used */
    struct norm q_a_norm, kv_a_norm;    /* of the latents */
    struct linear gate, up, down; /* gated MLP */
    struct linear gate_up;        /* gate and up fused */
    struct linear fc1, fc2;       /* plain MLP */
    struct linear cross_q, cross_k, cross_v, cross_o; /* a decoder's cross-attention to its encoder */
    struct linear distance_k, distance_q; /* deberta-v2: projections of the distance embeddings, if not shared */
    struct tensor *relative_bias; /* (buckets, A), t5: in a stack's first block, for all its blocks; else NULL */
    struct tensor *router, *router_bias; /* (experts, H), (experts) or NULL; without a router the layer has an MLP */
    struct tensor *experts_gate_up, *experts_down; /* (experts, 2 F, H), (experts, H, F); transposed in gpt_oss */
    struct tensor *experts_gate_up_bias, *experts_down_bias; /* (experts, 2 F), (experts, H), or NULL */
    struct tensor *router_correction; /* (experts) fp32, a buffer that is added to the scores by which experts are
                                       * chosen, or a frozen parameter (is_parameter); NULL: none */
    struct lora_adapter *router_lora, *experts_lora[2]; /* of the router's weight; of gate_up and down; or NULL */
    struct tensor *sinks; /* (A), gpt_oss: for each head an additional score that belongs to no token; else NULL */
    struct linear in_qkv, in_z, in_b, in_a, linear_out; /* linear attention, which replaces the usual one;
                                                         * qwen3_next: in_qkv contains z, and in_b contains a; a short
                                                         * convolution has in_qkv and linear_out */
    struct norm linear_norm;
    struct tensor *conv, *dt_bias, *a_log; /* linear attention: (channels, 1, taps), (value heads) twice, or NULL */
    struct tensor *xielu[4]; /* apertus: parameters (1), alpha_p and alpha_n, and buffers, beta and eps; else NULL */
    struct linear attention_gate; /* afmoe: attention's result is multiplied by the sigmoid of its own */
    struct linear router_proj;   /* gemma4, afmoe; gemma4's router has scales of its own: (H), (experts); */
    struct tensor *router_scale, *expert_scale;
    struct norm expert_norm[3]; /* of the result of the MLP beside the experts, of the experts' result and input */
    struct linear per_layer_gate, per_layer_out; /* gemma4: to the width of the per-layer embeddings, and back */
    struct norm per_layer_norm;
    struct tensor *sinusoids; /* gptj: a buffer, (positions, rotary_dim) */
    struct tensor *scales[2]; /* internvl's tower: factors for the results of attention and MLP, (W) each; else NULL */
    struct tensor *scalar; /* gemma4: a buffer, the factor for the block's result */
    struct linear shared_gate; /* the gate of the shared expert, which is gate, up, down */
    struct norm norm[4];          /* in the order of use; a family knows which it has */
    struct norm q_norm, k_norm;
    struct adapters adapters;
};

/* A module outside of the blocks of which a copy is trained (peft's ModulesToSaveWrapper): its weight and its bias,
 * NULL if it has none. The copy replaces the original, which is frozen. */
struct saved_module {
    struct tensor *original[2], *copy[2];
    const struct tensor *last; /* the original's last parameter, or that of the projector that it is a part of */
    bool is_tied; /* the original's weight is the embedding's */
};

/* The KV cache of a model while it generates: transformers' DynamicCache (cache_utils.py), for `layers` of its
 * layers. */
struct decoder_cache {
    int64_t tokens, layers;
    struct decoder_cache_layer {
        struct tensor *states[2]; /* keys and values (B, kv heads, tokens, head size), or the last of a window; named */
        struct tensor *window;    /* the window's length, a scalar (DynamicSlidingWindowLayer), named; NULL: none */
    } *layer;
};

struct convolution {
    struct tensor *weight, *bias; /* (k, channels, taps), (k) */
};

struct family;
struct block_call;

/* Hooks around each block (torch's forward hooks of a module): inside a checkpointed region,
 * and so called again when it is recomputed. */
struct decoder_hooks {
    /* Returns the block's input: `x` (lent), or a floating tensor; may change `c`. */
    struct tensor *(*before_block)(struct engine *e, void *context, struct block_call *c,
                                   struct tensor *x);
    /* `y`: the block's result (lent, floating). */
    void (*after_block)(struct engine *e, void *context, struct block_call *c, struct tensor *y);
    /* The same around a last norm without a weight, by which module_hooks could not identify it. */
    struct tensor *(*before_bare_norm)(struct engine *e, void *context, struct tensor *x);
    void (*after_bare_norm)(struct engine *e, void *context, struct tensor *y);
    /* Returns the logits to use: `logits` (lent), or a floating tensor. */
    struct tensor *(*logits)(struct engine *e, void *context, struct tensor *logits);
    void *context;
};

struct decoder {
    const struct plim_model_config *config;
    const struct plim_train_setting *setting;
    const struct family *family;
    struct parameters parameters;
    struct tensor *embedding, *position_embedding, *head; /* head == embedding where tied */
    struct tensor *head_bias;
    struct tensor *own_bias; /* of the module around the head's linear, perhaps the same as the linear's; NULL: none */
    struct tensor *class_token, *patch_weight, *patch_bias; /* vit */
    struct linear head_dense; /* encoders: the head's first linear, bert's pooler among them */
    struct norm head_norm;
    struct tensor *type_embedding, *position_ids, *type_ids; /* encoders; the latter two buffers */
    struct tensor *causal_bias;            /* gpt_bigcode: a buffer that is never read, (positions, positions) bool */
    struct tensor *embedding_scale;        /* gemma: a buffer, the factor for the embeddings */
    struct linear project_in, project_out; /* opt, electra, albert: for embeddings of another width */
    struct tensor *inputs, *attention_mask, *positions, *ends, *document; /* of the batch, lent during a forward */
    struct tensor *pixels, *token_types;   /* likewise; NULL: no images */
    struct tensor *answer_ends;             /* likewise */
    struct tensor *labels, *decoder_inputs; /* likewise, of an encoder-decoder; the latter may be NULL */
    struct tensor *kept; /* likewise: the tokens for which logits are computed (struct batch) */
    int64_t kept_tokens;
    struct tensor *encoded, *shifted;      /* during a forward: the encoder's (gemma3: the images') part of the
                                              output; the decoder's input */
    struct tensor *distance_embedding;     /* deberta-v2, mpnet: embeddings of token distances, (distances, H) or
                                            * (buckets, A); NULL: none */
    struct norm distance_norm;             /* its norm */
    bool has_scripts;                      /* a forward has run, so that TorchScript has compiled its functions */
    struct linear contacts;                /* esm: of a head that no forward runs */
    struct norm encoder_norm;              /* after the encoder's blocks */
    struct convolution hearing[2];         /* whisper: before the encoder's blocks, */
    struct tensor *source_positions;       /* and its positions, which are not trained (bart's are) */
    struct tensor *logits_bias;            /* bart: a buffer, (1, vocabulary), added to the logits */
    struct norm embedding_norms[2];        /* bart: after the embeddings of encoder and decoder */
    double embedding_factor;               /* bart: the factor for its embeddings; 0: none */
    struct vision vision;
    struct audio audio;
    struct tensor *pooled;                 /* bert: passed from the body to the head, else NULL */
    struct tensor **router_logits;         /* by layer, named, if forwards are to return them; else NULL */
    bool returns_router_logits;            /* such a forward is running */
    struct linear value_head;              /* for rewards (value_head.c); weight NULL: none */
    struct tensor **hidden_states;         /* each block's input, named, while a forward returns them, else NULL */
    struct adapters adapters;              /* of linears outside of the blocks */
    struct adapters adapters_behind;       /* of head_dense and the classifier */
    struct lora_adapter *head_lora, *embedding_lora; /* of the head's linear and of the tokens' embedding, or NULL */
    struct saved_module saved[8];          /* modules_to_save, in the order of named_modules() */
    size_t saved_count;
    int64_t replaced_elements;             /* of their originals, which are not used for any token */
    struct tensor *per_layer_embedding, *per_layer_scale; /* gemma4: token embeddings per layer, and their buffer */
    struct linear per_layer_projection;    /* of the usual token embeddings */
    struct norm per_layer_norm;
    struct tensor *per_layer;              /* both combined, (B, S, layers, width), during a forward; named */
    struct checkpoint_mapping *shared_states; /* keys and values that layers share, likewise */
    struct tensor *saved_scale;            /* gemma: the copy's own embedding_scale */
    struct norm embedding_norm, final_norm;
    struct rotary rotary,
        rotary_local; /* local: of the sliding layers, where they have their own */
    struct decoder_layer *layers;
    const struct decoder_hooks *hooks; /* lent; NULL: none */
    struct decoder_cache *cache;       /* lent; NULL: none */
    struct decoder_cache output_cache; /* of an encoder-decoder: keys and values in its output */
    char refusal[160]; /* why it cannot be built with this setting (HALT_UNSUPPORTED); "": it can */
};

/* A micro-batch: tokens (B, S), or images (B, channels, height, width); labels: tokens too, or
 * one label per row, (B); and an attention mask, (B, S), if rows are padded or with TRL's collators, else NULL.
 * Packed into one row (data.packing): tokens (1, B * S) with positions (1, B * S) int64, which restart at each
 * document; with TRL's collator also the documents' boundaries (documents + 1) int32, for queries and for keys, and the
 * document of each token, (1, B * S) int32. Else NULL.
 * token_types: (B, S) int64, 1 for an image's tokens; pixels: (T, elements of a patch) fp32; grids: (images, 3) int64,
 * for pixtral (images, 2).
 * completions: for DPOTrainer, (B, S), the tokens that are not prompt; its labels are made in a step (dpo.h). known:
 * the reference model's results for the chosen and the rejected rows, (B / 2) each, if computed before.
 * kl: inputs, attention mask and labels of LLaMA-Factory's kto stage, (B, S) each, from which the KL is estimated;
 * tags: which of its rows are desirable, (B) bool, assumed to be the first half. */
enum { BATCH_KL = 3 };
struct batch {
    struct tensor *inputs, *labels, *mask;
    struct tensor *positions, *ends[2], *document;
    struct tensor *completions, *known[2];
    struct tensor *token_types, *pixels, *grids; /* of images (vision.h), else NULL */
    struct tensor *answer_ends; /* (B) the ends of the answers, whose beginnings are the labels, or NULL */
    struct tensor *decoder_inputs; /* (B, T) of a target with labels (B, T); NULL: the model makes them */
    struct tensor *kl[BATCH_KL], *tags;
    struct tensor *kept;  /* (S) bool: the tokens for which logits are computed, or NULL, */
    int64_t kept_tokens;  /* and how many of a row they are; without a mask the last ones; 0: all */
};

/* The arguments of a block besides its input; lent for the whole forward and backward. */
struct block_call {
    const struct decoder *m;
    const struct decoder_layer *layer;
    /* The block's computation: x (B, S, H) lent -> the same shape, floating */
    struct tensor *(*block)(struct engine *e, const struct block_call *c, struct tensor *x);
    struct tensor *mask, *cos, *sin, *positions, *alibi;
    struct tensor *ends, *document; /* of the batch; NULL: positions say where documents end */
    struct tensor *encoded, *encoded_mask; /* of a decoder's block: the encoder's result and its mask */
    struct tensor *distances;  /* deberta-v2: the distance embeddings in this forward, or NULL; mpnet: a bias
                                * on scores, (B, A, S, S) */
    struct tensor **shared;    /* t5: two biases that a stack's first block makes for all of its blocks, */
    struct tensor *biases[2];  /* and their values when a block began */
    struct tensor *per_layer;            /* gemma4: this layer's embeddings of the tokens, (B, S, width), or NULL */
    struct checkpoint_mapping *states;   /* gemma4: keys and values by kind of layer */
    struct tensor *
        *outputs; /* bloom: holds a block's results besides x for the loop over the blocks */
};

struct family {
    /* Makes the parameters, in the order of the Python constructors. */
    void (*build)(struct engine *e, struct decoder *m);
    /* One block: x (B, S, H) lent -> (B, S, H) floating. */
    struct tensor *(*block)(struct engine *e, const struct block_call *c, struct tensor *x);
    /* From ids (B, S) to the head's input, (B, S, H). */
    struct tensor *(*body)(struct engine *e, struct decoder *m, struct tensor *ids);
};

extern const struct family plim_family_llama, plim_family_gpt2, plim_family_phi,
    plim_family_gpt_neox, plim_family_opt, plim_family_bloom, plim_family_bert,
    plim_family_modernbert, plim_family_vit, plim_family_stablelm, plim_family_falcon,
    plim_family_gpt_bigcode, plim_family_t5, plim_family_gemma4, plim_family_deberta_v2,
    plim_family_whisper, plim_family_bart, plim_family_esm, plim_family_albert, plim_family_mpnet,
    plim_family_gptj;

/* Builds the model on the engine's device (which may run out of memory: engine.halted); a model that will
 * be sharded by FSDP or ZeRO has no memory yet. */
enum plim_status decoder_create(struct engine *e, const struct plim_model_config *config,
                                const struct plim_train_setting *setting,
                                struct decoder *m) PLIM_MUST_CHECK;
/* model.to(device) for a model that was built without memory (engine.meta), as if on the host. Nothing is copied: only
 * for simulated GPUs. */
enum plim_status decoder_move(struct engine *e, struct decoder *m) PLIM_MUST_CHECK;
/* Loads the weights, perhaps quantised, of a model that was built without memory (engine.meta); quantised weights
 * that are loaded on the host still have no device memory (and engine.meta stays set). */
void decoder_load(struct engine *e, struct decoder *m);
/* Does from_pretrained() bring the model to the GPU, before anything shards it? */
bool decoder_is_loaded(const struct plim_train_setting *setting);
/* Casts parameters after loading (train.upcast, train.quantization.prepare); does nothing without these keys. */
void decoder_upcast(struct engine *e, struct decoder *m);
/* Converts each 16-bit parameter to fp32, one after the other. */
void decoder_widen(struct engine *e, struct decoder *m);
/* The quantised weight with these codes; NULL: they are not codes of one. */
const struct quantized *decoder_quantized(const struct decoder *m, const struct tensor *codes);
/* module.bfloat16() of a loaded model: every floating-point tensor gets the type of the parameters. `states`: room for
 * decoder_states(), which are stored in the order of modules. Returns their number. */
size_t decoder_cast_loaded(struct engine *e, const struct decoder *m, struct tensor **states);
/* Would a cast of all floating-point tensors to `dtype` destroy codes of quantised weights, because these are stored in
 * tensors of another floating type? */
bool decoder_cast_loses_codes(const struct plim_train_setting *setting, enum plim_dtype dtype);
/* get_peft_model(): freezes the model and adds the adapters of setting->lora. Where peft fails, m->refusal says why. */
void decoder_add_lora(struct engine *e, struct decoder *m);
/* The trained parameters in the order of named_parameters(). */
void decoder_sort_trained(struct engine *e, struct decoder *m);
/* _set_trainable(): copies the modules of lora.modules_to_save, for decoder_add_lora(). */
void decoder_save_modules(struct engine *e, struct decoder *m);
void decoder_finish(struct decoder *m); /* host memory; tensors go with the engine */

/* A random micro-batch of the setting's size, by `seed`; made before the first step; named tensors. */
struct batch decoder_batch(struct engine *e, const struct decoder *m, uint64_t seed);
/* The same for Trainer and TRL's trainers: labels are a separate tensor, in which prompts and padding are masked */
struct batch decoder_trainers_batch(struct engine *e, const struct decoder *m, uint64_t seed);

/* The results of model(inputs, labels=labels): the loss, a named scalar, and *logits, named (NULL: Liger makes none).
 * With label smoothing the model does not get the labels: the loss is NULL. */
struct tensor *decoder_loss(struct engine *e, struct decoder *m, const struct batch *batch, struct tensor **logits);
/* The same for a causal model with TRL's fused head; wanted: TRL_... (workloads/engine/ops_trl.h) */
struct fused_output decoder_fused(struct engine *e, struct decoder *m, const struct batch *batch, unsigned wanted);
/* Does the model take num_items_in_batch (accepts_loss_kwargs)? Models of images and text do not,
 * except qwen2_vl. */
bool decoder_takes_items(const struct decoder *m);
/* The result of model(inputs, past_key_values=cache, logits_to_keep=1), which adds the batch's tokens to the cache: the
 * logits of each row's last token, (B, 1, vocabulary), named. The batch has positions (B, S) and a mask of all tokens
 * so far. */
struct tensor *decoder_next_logits(struct engine *e, struct decoder *m, const struct batch *batch,
                                   struct decoder_cache *cache);
/* Drops the rest of the model's output, which is freed with its logits: only for an encoder-decoder */
void decoder_drop_output(struct engine *e, struct decoder *m);
/* The results of TRL's AutoModelForCausalLMWithValueHead: a number for each token (B, S), named; and in *loss and
 * *logits, named, the results of the model inside for the labels, the logits in fp32. */
struct tensor *decoder_values(struct engine *e, struct decoder *m, const struct batch *batch, struct tensor **loss,
                              struct tensor **logits);
/* How many tokens at the beginning of a row are never learned: those of its prompt, or only the first */
int64_t decoder_unlearned(const struct decoder *m);
/* How many tokens of a batch are labels of their predecessors: all except the first of each row, its prompt and the
 * padding, which is assumed to be one token */
int64_t decoder_labels(const struct decoder *m);
/* Does a batch's attention mask hide anything? Not for a single row, which is padded to its own length. */
static inline bool decoder_hides_padding(const struct plim_train_setting *setting)
{
    bool has_others = setting->micro_batch * plim_loop_rows(setting->loop) > 1;
    if (setting->loop == PLIM_LOOP_TRL_GRPO) has_others = true; /* all of a generation */
    return setting->padding == PLIM_PADDING_YES || (setting->padding == PLIM_PADDING_LONGEST && has_others);
}

/* Floating-point operations of the model per token, forward and backward, as MFU counts them (PaLM,
 * arXiv:2204.02311, appendix B): 6 for each weight in a matmul and 12 layers * heads *
 * head size * sequence for attention; for linear attention 18 heads * key size * value size: a state is read
 * by a key, written, and read by a query. A frozen weight has no gradient of its own: 4. Recomputation by
 * checkpointing is not counted. DPOTrainer's reference counts as another forward, and so do each of GRPOTrainer's
 * scores of a sample, and its generation, if they are in every step. */
double decoder_flops_per_token(const struct decoder *m);

/* The same for an encoder-decoder (seq2seq.c), per token of source and target, or of the target alone for sounds: the
 * weights of each half are used for its own tokens, keys and values of cross-attention for those of the source. */
double seq2seq_flops_per_token(const struct decoder *m);

/* Freezes the positions of whisper's encoder, or all of it (setting->freeze_encoder). */
void whisper_freeze(struct engine *e, struct decoder *m);

/* --- the head (head.c) ------------------------------------------------------------------------ */

/* Build an encoder's head for its task, after the model or (xlm-roberta) before it; for bert's classification the
 * pooler, which belongs to the model and is made at its end; and at last replace the head's weight by the embedding, if
 * the two are tied. */
void head_build(struct engine *e, struct decoder *m);
void head_build_pooler(struct engine *e, struct decoder *m);
void head_tie(struct engine *e, struct decoder *m);
/* Runs the pooler, if there is one, on x (B, S, H) at the end of a body: sets m->pooled. */
void head_pool(struct engine *e, struct decoder *m, struct tensor *x);
/* The loss for the body's result x (B, S, H), lent; named, NULL if there are no labels */
struct tensor *head_loss(struct engine *e, struct decoder *m, struct tensor *x, struct tensor *labels,
                         struct tensor **logits);
/* The last linear, to the logits; its tensors are lent. */
struct linear head_linear(const struct decoder *m);
/* The number of weights that are used for one token of a row, not for all. */
int64_t head_weights_a_row(const struct decoder *m);

/* --- the head of rewards (value_head.c) --------------------------------------------------------- */

/* TRL's ValueHead (0.24, models/modeling_value_head.py), a linear to one number in fp32, built after the model's
 * adapters. Only in the loop of LLaMA-Factory's rm stage; does nothing in others. */
void value_head_build(struct engine *e, struct decoder *m);
/* x (B, S, H), lent: (B, S), named */
struct tensor *value_head_run(struct engine *e, const struct decoder *m, struct tensor *x);

/* --- its states (states.c) -------------------------------------------------------------------- */

/* All parameters and buffers, in the order of named_parameters() and then named_buffers(); lent.
 * `out` (NULL: nothing is written) must have room for all; returns how many. */
size_t decoder_states(const struct decoder *m, struct tensor **out);
/* The block of a parameter or buffer; NULL: it is outside of the blocks, or in a vision tower. */
const struct decoder_layer *decoder_layer_of(const struct decoder *m, const struct tensor *x);
/* The base model's embedding; m->embedding may be a trained copy of it */
const struct tensor *decoder_base_embedding(const struct decoder *m);
/* The adapter that has this parameter as its magnitude; NULL: none. */
const struct lora_adapter *decoder_adapter_of_magnitude(const struct decoder *m, const struct tensor *x);
/* The same in the order of Module._apply() (to(), to_empty()): first the children, then a module's own
 * parameters, then its buffers. */
size_t decoder_states_by_module(const struct decoder *m, struct tensor **out);
/* A block's own buffers, and what corrects a router, which may be a frozen parameter; returns how many. */
enum { LAYER_BUFFERS = 2 };
size_t decoder_layer_buffers(const struct decoder_layer *l, struct tensor *out[LAYER_BUFFERS]);
/* The buffers alone, those of towers first, and then those of blocks: DECODER_BUFFERS at most. */
enum { DECODER_BUFFERS_BESIDE = 14,
       DECODER_BUFFERS = LAYER_BUFFERS * PLIM_MAX_LAYERS + DECODER_BUFFERS_BESIDE + VISION_BUFFERS };
size_t decoder_buffers(const struct decoder *m, struct tensor **out);

/* Why this device cannot train the model with the setting's kernels; NULL: it can. On a real GPU our own kernels
 * are used, whose attention supports neither windows nor softcapping. */
const char *decoder_refuses(const struct plim_device_info *info,
                            const struct plim_model_config *config,
                            const struct plim_train_setting *setting);

/* --- activation functions (activation.c) --------------------------------------------------------- */

/* ACT2FN[f](x); floating */
struct tensor *decoder_activation(struct engine *e, enum plim_activation f, struct tensor *x);

/* --- for the families (decoder_parts.c) ------------------------------------------------------- */

/* Notes why the model cannot be built with this setting (`format` has one %s, for `name`), and halts. */
void decoder_refuse(struct engine *e, struct decoder *m, const char *format, const char *name);
enum plim_dtype decoder_weights_dtype(enum plim_weights weights); /* AUTO is fp32 */
/* The type that the setting loads the weights in */
enum plim_dtype decoder_parameter_dtype(const struct plim_train_setting *setting);
/* Calls `build` for each layer in turn; parameters that it makes with nn_parameter() belong to that layer. */
void decoder_build_layers(struct engine *e, struct decoder *m,
                          void (*build)(struct engine *e, struct decoder *m,
                                        struct decoder_layer *l));
/* Builds a decoder's head, after the model: a linear to the vocabulary, with or without a bias, whose weight may be the
 * embedding; or for classification a linear to the labels, `score`. */
void decoder_build_head(struct engine *e, struct decoder *m, bool bias);
/* Builds embeddings, layers, a last LayerNorm, a rotary embedding and a head. */
void decoder_build_rotary(struct engine *e, struct decoder *m,
                          void (*build_layer)(struct engine *e, struct decoder *m, struct decoder_layer *l));
/* A body: embeddings, masks, rotary positions, blocks, the final norm (rotary_body.c). */
struct tensor *decoder_rotary_body(struct engine *e, struct decoder *m, struct tensor *ids);
/* Runs every block on `x` (taken over), with checkpointing if the setting says so; a named tensor. */
struct tensor *decoder_blocks(struct engine *e, struct decoder *m, struct tensor *x,
                              const struct block_call *full, const struct block_call *sliding);
/* One block between its hooks, under checkpointing where the setting says so: x (lent) -> floating */
struct tensor *decoder_run_block(struct engine *e, const struct block_call *c, struct tensor *x);
/* decoder_blocks() for the layers from `first` up to but not including `end` */
struct tensor *decoder_blocks_between(struct engine *e, struct decoder *m, struct tensor *x,
                                      const struct block_call *call, int64_t first, int64_t end);
/* The same for a model with images (NULL: none), which are added after the first blocks. */
struct tensor *decoder_blocks_seeing(struct engine *e, struct decoder *m, struct tensor *x,
                                     const struct block_call *full, const struct block_call *sliding,
                                     struct seen_images *seen);
/* Are inputs made to require a gradient (enable_input_require_grads())? In Trainer only for models of tokens, unless
 * peft prepared a quantised base. */
bool decoder_requires_input_grads(const struct decoder *m);
/* The token embeddings (B, S, H) of ids; named. Under LoRA with checkpointing they are made to require
 * a gradient (enable_input_require_grads), else nothing before the first adapter would be recomputed. */
struct tensor *decoder_embed(struct engine *e, struct decoder *m, struct tensor *ids);
/* Positions of ids (B, S), counted among those that are no padding: (cumsum(ids != padding) * (ids != padding)).long()
 * + padding, in steps of int32; named (bert.c) */
struct tensor *decoder_counted_positions(struct engine *e, const struct decoder *m, struct tensor *ids);
/* Is there a layer that is sliding / not sliding? */
bool decoder_has_layers(const struct decoder *m, bool sliding);
/* The number of documents in a packed micro-batch, which is one row; 0: its rows are the samples. */
int64_t decoder_documents(const struct decoder *m);
int64_t decoder_longest_document(const struct decoder *m); /* of them, in tokens; 0 as there */
/* The documents of one row: `of_longest` documents of `longest` tokens, as many as leave one token for each of the
 * others; then one document with the `rest` (0: none), and `single` documents of one token. */
struct documents {
    int64_t longest, of_longest, rest, single;
};
struct documents decoder_cut_documents(const struct decoder *m, int64_t tokens); /* all of the row */
/* The constructor of a model's rotary embedding; the same for heads of which `dim` elements are rotated. */
void decoder_create_rotary(struct engine *e, const struct decoder *m, enum plim_rope rope, struct rotary *r);
void decoder_create_rotary_of(struct engine *e, const struct decoder *m, enum plim_rope rope, int64_t dim,
                              struct rotary *r);
/* The batch's positions, else arange(S) + 0 as (1, S); named */
struct tensor *decoder_positions(struct engine *e, const struct decoder *m, int64_t seq);
/* The causal mask of this forward; named or NULL */
struct tensor *decoder_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                            struct tensor *positions, int64_t window);
/* The same for rows in which some tokens see their whole block; blocks: (B, S) int64, or NULL */
struct tensor *decoder_mask_of_blocks(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                      struct tensor *positions, struct tensor *blocks, int64_t window);
/* The same for a model that passes no positions, but an attention mask (B, S) of ones, or NULL (opt, bloom,
 * falcon) */
struct tensor *decoder_padding_mask(struct engine *e, const struct decoder *m,
                                    struct tensor *embeddings, struct tensor *attention_mask);
/* The same for an attention mask of ones, whatever the batch's own mask hides */
struct tensor *decoder_whole_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                  struct tensor *ones);
/* The mask of a model whose tokens see the whole row, or a window around them;
 * named or NULL */
struct tensor *decoder_open_mask(struct engine *e, const struct decoder *m,
                                 struct tensor *embeddings, int64_t window);
/* The mask for tokens that see all tokens of the encoder, (B, S, H); named or NULL */
struct tensor *decoder_cross_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                  struct tensor *encoded);
/* (B, S, A * D) -> (B, A, S, D), a view */
struct tensor *decoder_heads(struct engine *e, struct tensor *x, int64_t heads, int64_t head_dim);
/* Queries, keys and values (B, heads, S, head_dim) of x (B, S, W) by a linear of the block each; named */
void decoder_project_heads(struct engine *e, const struct block_call *b, struct tensor *x, int64_t heads,
                           int64_t head_dim, struct tensor *qkv[3]);
enum attention_function decoder_attention_function(const struct decoder *m); /* of the setting */
/* The attention call of a block. */
struct attention_call decoder_attention(const struct block_call *b);
/* Attention of q, k, v (lent), heads merged; named. *weights as in nn_attention(). */
struct tensor *decoder_context(struct engine *e, const struct attention_call *call,
                               struct tensor *const qkv[3], struct tensor **weights);
/* The output projection of attention's result; floating */
struct tensor *decoder_project_out(struct engine *e, const struct block_call *b, struct tensor *x);
/* Attention of q, k, v (lent), heads merged, the output projection; floating. *weights as of
 * nn_attention. */
struct tensor *decoder_attend(struct engine *e, const struct block_call *b,
                              const struct attention_call *call, struct tensor *const qkv[3],
                              struct tensor **weights);
/* The same after rotating a part of each head of queries and keys; takes over qkv. */
struct tensor *decoder_attend_turned(struct engine *e, const struct block_call *b, struct tensor *const qkv[3],
                                     struct tensor **weights);
/* Rebinds queries and keys to themselves turned in fp32 by their positions (modernbert, esm). */
void decoder_turn_wide(struct engine *e, const struct block_call *b, struct tensor *qkv[3]);
/* The plain MLP: fc2(activation(fc1(x))), each result replaces the variable of the one before; floating. */
struct tensor *decoder_mlp(struct engine *e, const struct block_call *b, struct tensor *x);
/* For bert's relatives. A LayerNorm with bert's epsilon; the modules of the embeddings, and of a block; what
 * _init_weights() does to the embeddings; the embeddings of ids, (B, S, width), named; how a block attends */
void bert_norm_create(struct engine *e, struct decoder *m, struct norm *n, int64_t width);
void bert_build_embeddings(struct engine *e, struct decoder *m);
void bert_build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l);
void bert_initialise(struct engine *e, const struct decoder *m);
struct tensor *bert_embed(struct engine *e, struct decoder *m, struct tensor *ids);
struct attention_call bert_attention(const struct block_call *b);
/* BertSelfOutput and BertOutput: norm(dropout(l(x)) + residual), all lent; floating. n NULL: without the norm */
struct tensor *bert_output(struct engine *e, const struct block_call *b, const struct linear *l, const struct norm *n,
                           struct tensor *x, struct tensor *residual);
/* BertIntermediate of x, and bert_output() with `n` and `residual`; all lent; floating */
struct tensor *bert_feed(struct engine *e, const struct block_call *b, const struct norm *n, struct tensor *x,
                         struct tensor *residual);
/* GPT2Block: x + `attend` of the first norm, which sets *weights like nn_attention(), plus the plain MLP of the second
 * norm; x (B, S, H) lent -> (B, S, H) floating. */
struct tensor *gpt2_run_block(struct engine *e, const struct block_call *b, struct tensor *x,
                              struct tensor *(*attend)(struct engine *e, const struct block_call *b,
                                                       struct tensor *x, struct tensor **weights));

/* The parts of the family that Liger's kernels replace. */
struct plim_liger_patches decoder_liger(const struct decoder *m);
/* Replaces an existing norm by Liger's. */
void decoder_patch_norm(struct norm *n, enum plim_liger_norm how);

/* The gated MLP: down(activation(gate(x)) * up(x)); floating. */
struct tensor *decoder_gated_mlp(struct engine *e, enum plim_activation f,
                                 const struct decoder_layer *l, struct tensor *x);
/* The MLP of a layer, or axolotl's function that replaces it; floating */
struct tensor *decoder_layer_mlp(struct engine *e, const struct block_call *b, struct tensor *x);

/* --- while it generates (cache.c) --------------------------------------------------------------- */

enum plim_status decoder_cache_create(const struct decoder *m, struct decoder_cache *cache) PLIM_MUST_CHECK;
void decoder_cache_drop(struct engine *e, struct decoder_cache *cache);
/* past_key_values.update(): rebinds keys and values to the cached ones followed by these. Does nothing without a
 * cache. */
void decoder_remember(struct engine *e, const struct block_call *b, struct tensor *qkv[3]);
/* The same for a layer of a cache that takes a single update, with its gradients. */
void decoder_remember_once(struct engine *e, const struct decoder *m, int64_t layer, struct tensor *qkv[3]);

/* --- experts (experts.c) ---------------------------------------------------------------------- */

/* At most: a layer's router, two stacks of weights, four linears of a shared expert, and the adapters' matrices. */
enum { EXPERTS_WEIGHTS = 15 };

/* The parameters of a layer's experts and router. */
void experts_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Only the parameters of the experts. */
void experts_build_stacks(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* The experts' result for rows (N, H): for each row k experts with their weights, both (N, k), lent;
 * floating */
struct tensor *experts_multiply(struct engine *e, const struct block_call *b, struct tensor *rows,
                                struct tensor *weights, struct tensor *experts);
/* --- linear attention (delta_net.c) ------------------------------------------------------------- */

/* The module that replaces attention in a layer of linear attention (Qwen3_5GatedDeltaNet and
 * Qwen3NextGatedDeltaNet). */
void delta_net_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Initialises those of all layers again, after all were built. */
void delta_net_initialise(struct engine *e, const struct decoder *m);
/* x (B, S, H) lent -> (B, S, H) floating */
struct tensor *delta_net(struct engine *e, const struct block_call *b, struct tensor *x);

/* --- latent attention (latent_attention.c) ------------------------------------------------------ */

/* The same for DeepseekV3Attention; *weights as in nn_attention() */
void latent_attention_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
struct tensor *latent_attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights);

/* --- xIELU (xielu.c) ---------------------------------------------------------------------------- */

/* The parameters and buffers of a layer's activation function, and it itself; floating */
void xielu_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
struct tensor *xielu(struct engine *e, const struct decoder_layer *l, struct tensor *x);

/* --- short convolutions (short_conv.c) ---------------------------------------------------------- */

/* The same for Lfm2ShortConv. */
void short_conv_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
struct tensor *short_conv(struct engine *e, const struct block_call *b, struct tensor *x);
/* apply_mask_to_padding_states(): rebinds x (B, S, H) to zeros where a token is padded; mask (B, S) or NULL */
void decoder_hide_padding(struct engine *e, struct tensor *mask, struct tensor **x);

/* The experts that replace the MLP: x (B, S, H) -> (B, S, H); floating. gpt_oss rebinds *besides (named or
 * NULL) to the weights of each row's experts; other families leave it. */
struct tensor *experts_block(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor **besides);
/* Does SFTTrainer add a loss that balances the experts? */
bool experts_are_balanced(const struct plim_model_config *config, const struct plim_train_setting *setting);
/* load_balancing_loss_func() of the router logits that a forward returned, for the tokens in the attention mask (B, S);
 * named, NULL if the engine is halted. */
struct tensor *experts_balance(struct engine *e, const struct decoder *m, struct tensor *mask);
/* The number of experts' weights that are not used for a token. */
int64_t experts_idle_weights(const struct decoder *m);

#endif
