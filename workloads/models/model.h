/* Transformer models as in transformers 5.17: decoders, and encoders, which differ in the attention mask and in the
 * head.
 *
 * A model is its parameters (struct decoder) and a family, which builds it and runs its blocks. decoder.c lists the
 * families; decoder_parts.c has the parts that families share (embedding, mask, the loop over the blocks with
 * checkpointing), rotary_body.c the body of those with rotary embeddings, head.c the heads and losses, states.c the
 * ordered list of tensors; each family has a file of its own for the rest. */
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
    struct linear q, k, v, o; /* or qkv and o if they are fused */
    struct linear qkv;
    struct linear q_a, q_b, kv_a, kv_b; /* latent attention (latent_attention.c): projections to the latents and from
                                         * them; without q_a, q is used */
    struct norm q_a_norm, kv_a_norm;    /* of the latents */
    struct linear gate, up, down; /* gated MLP */
    struct linear gate_up;        /* gate and up fused */
    struct linear fc1, fc2;       /* plain MLP */
    struct linear cross_q, cross_k, cross_v, cross_o; /* a decoder's cross-attention to its encoder */
    struct linear distance_k, distance_q; /* deberta-v2: projections of the distance embeddings, if not shared */
    struct tensor *relative_bias; /* (buckets, A), t5: in a stack's first block, for all its blocks; otherwise NULL */
    struct tensor *router, *router_bias; /* (experts, H), (experts) or NULL; without a router the layer has an MLP */
    struct tensor *experts_gate_up, *experts_down; /* (experts, 2 F, H), (experts, H, F); transposed in gpt_oss */
    struct tensor *experts_gate_up_bias, *experts_down_bias; /* (experts, 2 F), (experts, H), or NULL */
    struct tensor *router_correction; /* (experts), a buffer that is added to the scores by which experts are chosen, or
                                       * a frozen parameter (is_parameter); NULL: none */
    struct lora_adapter *router_lora, *experts_lora[2]; /* of the router's weight; of gate_up and down; or NULL */
    struct tensor *sinks; /* (A), gpt_oss: an additional score per head that belongs to no token; otherwise NULL */
    struct linear in_qkv, in_z, in_b, in_a, linear_out; /* linear attention, which replaces the usual one;
                                                         * qwen3_next: in_qkv contains z, and in_b contains a; a short
                                                         * convolution has in_qkv and linear_out */
    struct norm linear_norm;
    struct tensor *conv, *dt_bias, *a_log; /* linear attention: (channels, 1, taps), (value heads) twice, or NULL */
    struct tensor *mup; /* falcon_h1: a buffer, factors of the mamba part's first projection, (1, 1, its width) */
    struct tensor *conv_bias, *skip; /* mamba: (channels) or NULL, and D, (heads); its other parts are linear
                                      * attention's: in_qkv computes the gate, x, B, C and the step sizes */
    struct tensor *xielu[4]; /* apertus: parameters alpha_p and alpha_n, (1), and buffers beta and eps; otherwise
                              * NULL */
    struct linear attention_gate; /* afmoe: attention's result is multiplied by the sigmoid of its result */
    struct linear router_proj;    /* gemma4, afmoe: the router's linear */
    struct tensor *router_scale, *expert_scale; /* gemma4: scales of the router, (H) and (experts) */
    struct norm expert_norm[3]; /* of the result of the MLP parallel to the experts, of the experts' result and input */
    struct linear per_layer_gate, per_layer_out; /* gemma4: to the width of the per-layer embeddings, and back */
    struct norm per_layer_norm;
    struct tensor *sinusoids; /* gptj: a buffer, (positions, rotary_dim) */
    struct tensor *scales[2]; /* internvl's tower: factors for the results of attention and MLP, (W) each, or NULL */
    struct tensor *scalar; /* gemma4: a buffer, the factor for the block's result */
    struct linear shared_gate; /* the gate of the shared expert, whose linears are gate, up and down */
    struct norm norm[4];          /* in the order of use; a family has some of them */
    struct norm q_norm, k_norm;
    struct adapters adapters;
};

/* A module outside of the blocks that is trained as a copy (peft's ModulesToSaveWrapper): its weight and its bias, NULL
 * if it has none. The copy replaces the original, which is frozen. */
struct saved_module {
    struct tensor *original[2], *copy[2];
    const struct tensor *last; /* the original's last parameter, or that of the projector that contains it */
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

/* Hooks around each block (torch's forward hooks of a module). They are inside a checkpointed region, and so are called
 * again when it is recomputed. */
struct decoder_hooks {
    /* Returns the block's input: `x` (lent), or a floating tensor; may change `c`. */
    struct tensor *(*before_block)(struct engine *e, void *context, struct block_call *c,
                                   struct tensor *x);
    /* `y`: the block's result (lent, floating). */
    void (*after_block)(struct engine *e, void *context, struct block_call *c, struct tensor *y);
    /* The same around a final norm without a weight, which module_hooks cannot identify. */
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
    struct tensor *embedding, *position_embedding, *head; /* head == embedding if tied */
    struct tensor *head_bias;
    struct tensor *own_bias; /* of the module that contains the head's linear, may be the linear's; NULL: none */
    struct tensor *class_token, *patch_weight, *patch_bias; /* vit */
    struct linear head_dense; /* encoders: the head's first linear, or bert's pooler */
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
    struct tensor *encoded, *shifted;      /* during a forward: the encoder's (or the images') part of the output; the
                                              decoder's input */
    struct tensor *distance_embedding;     /* deberta-v2, mpnet: embeddings of token distances, (distances, H) or
                                            * (buckets, A); NULL: none */
    struct norm distance_norm;             /* its norm */
    bool has_scripts;                      /* TorchScript has compiled its functions, because a forward has run */
    struct linear contacts;                /* esm: of a head that no forward runs */
    struct norm encoder_norm;              /* after the encoder's blocks */
    struct convolution hearing[2];         /* whisper: before the encoder's blocks */
    struct tensor *source_positions;       /* the encoder's positions; whisper's are not trained, bart's are */
    struct tensor *logits_bias;            /* bart: a buffer, (1, vocabulary), added to the logits */
    struct norm embedding_norms[2];        /* bart: after the embeddings of encoder and decoder */
    double embedding_factor;               /* bart: the factor for its embeddings; 0: none */
    struct vision vision;
    struct audio audio;
    struct tensor *pooled;                 /* bert: passed from the body to the head, otherwise NULL */
    struct tensor **router_logits;         /* by layer, named, if forwards return them; otherwise NULL */
    bool returns_router_logits;            /* true during such a forward */
    struct linear value_head;              /* for rewards (value_head.c); weight NULL: none */
    struct tensor **hidden_states;         /* each block's input, named, while a forward returns them; or NULL */
    struct adapters adapters;              /* of linears before the blocks */
    struct adapters adapters_behind;       /* of linears after the blocks: head_dense and the classifier */
    struct lora_adapter *head_lora, *embedding_lora; /* of the head's linear and of the token embedding, or NULL */
    struct saved_module saved[8];          /* modules_to_save, in the order of named_modules() */
    size_t saved_count;
    int64_t replaced_elements;             /* number of elements of their originals, which the copies replace */
    struct tensor *per_layer_embedding, *per_layer_scale; /* gemma4: token embeddings per layer, and their buffer */
    struct linear per_layer_projection;    /* projects the usual token embeddings to all layers' */
    struct norm per_layer_norm;
    struct tensor *per_layer;              /* both combined, (B, S, layers, width), during a forward; named */
    struct checkpoint_mapping *shared_states; /* keys and values that layers share, during a forward */
    struct tensor *saved_scale;            /* gemma: the embedding_scale of the embedding's trained copy */
    struct norm embedding_norm, final_norm;
    struct rotary rotary,
        rotary_local; /* local: of the sliding layers, if they have their own */
    struct decoder_layer *layers;
    const struct decoder_hooks *hooks; /* lent; NULL: none */
    struct decoder_cache *cache;       /* lent; NULL: none */
    struct decoder_cache output_cache; /* of an encoder-decoder: keys and values in its output */
    char refusal[160]; /* why it cannot be built with this setting (HALT_UNSUPPORTED); "" if it can */
};

/* A micro-batch: tokens (B, S), or images (B, channels, height, width); labels: tokens, too, or one label per row, (B);
 * and an attention mask, (B, S), if rows are padded or with TRL's collators, otherwise NULL.
 * Packed into one row (data.packing): tokens (1, B * S) with positions (1, B * S) int64, which restart at each
 * document; with TRL's collator also the documents' boundaries (documents + 1) int32, for queries and for keys, and the
 * document of each token, (1, B * S) int32. Otherwise NULL.
 * token_types: (B, S) int64, 1 for an image's tokens; pixels: (T, elements of a patch) fp32; grids: (images, 3) int64,
 * for pixtral (images, 2).
 * completions: for DPOTrainer, (B, S), the tokens outside of the prompt; its labels are made in a step (dpo.h). known:
 * the reference model's results for the chosen and the rejected rows, (B / 2) each, if computed before.
 * kl: inputs, attention mask and labels of LLaMA-Factory's kto stage, (B, S) each, from which the KL is estimated;
 * tags: which of its rows are desirable, (B) bool, assumed to be the first half. */
enum { BATCH_KL = 3, BATCH_REJECTED = 3 };
struct batch {
    struct tensor *inputs, *labels, *mask;
    struct tensor *positions, *ends[2], *document;
    struct tensor *completions, *known[2];
    struct tensor *token_types, *pixels, *grids; /* of images (vision.h), or NULL */
    struct tensor *answer_ends; /* (B): the ends of the answers, whose starts are the labels, or NULL */
    struct tensor *decoder_inputs; /* (B, T) for labels (B, T); NULL: the model makes them */
    struct tensor *kl[BATCH_KL], *tags;
    struct tensor *rejected[BATCH_REJECTED], *prompts[2]; /* of TRL's ORPOTrainer: inputs, mask, labels; inputs, mask */
    struct tensor *kept;  /* (S) bool: the tokens for which logits are computed, or NULL */
    int64_t kept_tokens;  /* their number in a row: without a mask the last ones; 0: all */
};

/* The arguments of a block besides its input; lent for the whole forward and backward. */
struct block_call {
    const struct decoder *m;
    const struct decoder_layer *layer;
    /* The block's computation: x (B, S, H) lent -> the same shape, floating. */
    struct tensor *(*block)(struct engine *e, const struct block_call *c, struct tensor *x);
    struct tensor *mask, *cos, *sin, *positions, *alibi;
    struct tensor *ends, *document; /* of the batch; NULL: documents are found from positions */
    struct tensor *encoded, *encoded_mask; /* of a decoder's block: the encoder's result and its mask */
    struct tensor *distances;  /* deberta-v2: the distance embeddings in this forward, or NULL; mpnet: a bias
                                * on scores, (B, A, S, S) */
    struct tensor **shared;    /* t5: two biases that a stack's first block makes for all of its blocks */
    struct tensor *biases[2];  /* t5: their values at the start of this block */
    struct tensor *linear_mask; /* falcon_h1: mask of the Mamba-2 part of each block, (B, S), or NULL */
    struct tensor *per_layer;            /* gemma4: this layer's embeddings of the tokens, (B, S, width), or NULL */
    struct checkpoint_mapping *states;   /* gemma4: shared keys and values by kind of layer */
    struct tensor *
        *outputs; /* bloom: holds a block's further results, besides x, for the loop over the blocks */
};

struct family {
    /* Creates the parameters, in the order of the Python constructors. */
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
    plim_family_gptj, plim_family_falcon_h1, plim_family_nemotron_h;

/* Builds the model on the engine's device (which may run out of memory: engine.halted). A model that will be sharded by
 * FSDP or ZeRO has no memory yet. */
enum plim_status decoder_create(struct engine *e, const struct plim_model_config *config,
                                const struct plim_train_setting *setting,
                                struct decoder *m) PLIM_MUST_CHECK;
/* model.to(device) for a model that was built without memory (engine.meta), as if on the host. Nothing is copied: only
 * for simulated GPUs. */
enum plim_status decoder_move(struct engine *e, struct decoder *m) PLIM_MUST_CHECK;
/* Loads the weights, perhaps quantised, of a model that was built without memory (engine.meta); quantised weights
 * that are loaded on the host still have no device memory (and engine.meta stays set). */
void decoder_load(struct engine *e, struct decoder *m);
/* True if from_pretrained() moves the model to the GPU, before it is sharded. */
bool decoder_is_loaded(const struct plim_train_setting *setting);
/* Casts parameters after loading (train.upcast, train.quantization.prepare); does nothing without these keys. */
void decoder_upcast(struct engine *e, struct decoder *m);
/* Converts each 16-bit parameter to fp32, one after the other. */
void decoder_widen(struct engine *e, struct decoder *m);
/* Returns the quantised weight with these codes; NULL if the tensor does not hold codes. */
const struct quantized *decoder_quantized(const struct decoder *m, const struct tensor *codes);
/* module.bfloat16() of a loaded model: every floating-point tensor gets the type of the parameters. `states`: room for
 * decoder_states(), which are stored in the order of modules. Returns their number. */
size_t decoder_cast_loaded(struct engine *e, const struct decoder *m, struct tensor **states);
/* True if a cast of all floating-point tensors to `dtype` would destroy codes of quantised weights, because these are
 * stored in tensors of another floating-point type. */
bool decoder_cast_loses_codes(const struct plim_train_setting *setting, enum plim_dtype dtype);
/* get_peft_model(): freezes the model and adds the adapters of setting->lora. If peft fails, m->refusal has the
 * reason. */
void decoder_add_lora(struct engine *e, struct decoder *m);
/* Sorts the trained parameters in the order of named_parameters(). */
void decoder_sort_trained(struct engine *e, struct decoder *m);
/* _set_trainable(): copies the modules of lora.modules_to_save, for decoder_add_lora(). */
void decoder_save_modules(struct engine *e, struct decoder *m);
void decoder_finish(struct decoder *m); /* frees host memory; tensors are freed with the engine */

/* Returns a random micro-batch of the setting's size, determined by `seed`, to be created before the first step. Its
 * tensors are named. */
struct batch decoder_batch(struct engine *e, const struct decoder *m, uint64_t seed);
/* The same for Trainer and TRL's trainers: labels are a separate tensor, in which prompts and padding are masked. */
struct batch decoder_trainers_batch(struct engine *e, const struct decoder *m, uint64_t seed);

/* Runs model(inputs, labels=labels). Returns the loss, a named scalar, and *logits, named (NULL with Liger, which makes
 * none). With label smoothing the model does not receive the labels: the loss is NULL. */
struct tensor *decoder_loss(struct engine *e, struct decoder *m, const struct batch *batch, struct tensor **logits);
/* The same for a causal model with TRL's fused head; wanted: TRL_... (workloads/engine/ops_trl.h). */
struct fused_output decoder_fused(struct engine *e, struct decoder *m, const struct batch *batch, unsigned wanted);
/* True if the model takes num_items_in_batch (accepts_loss_kwargs). Models of images and text do not, except
 * qwen2_vl. */
bool decoder_accepts_num_items(const struct decoder *m);
/* Runs model(inputs, past_key_values=cache, logits_to_keep=1), which adds the batch's tokens to the cache. Returns the
 * logits of each row's last token, (B, 1, vocabulary), named. The batch has positions (B, S) and a mask of all tokens
 * so far. */
struct tensor *decoder_next_logits(struct engine *e, struct decoder *m, const struct batch *batch,
                                   struct decoder_cache *cache);
/* Drops the rest of the model's output, which is freed with its logits: m->encoded, and an encoder-decoder's cache. */
void decoder_drop_output(struct engine *e, struct decoder *m);
/* Runs TRL's AutoModelForCausalLMWithValueHead. Returns a number for each token, (B, S), named; and in *loss and
 * *logits, named, the inner model's results for the labels, with logits in fp32. */
struct tensor *decoder_values(struct engine *e, struct decoder *m, const struct batch *batch, struct tensor **loss,
                              struct tensor **logits);
/* Returns the number of tokens at the start of a row that are never labels: its prompt, or only the first token. */
int64_t decoder_unlearned(const struct decoder *m);
/* Returns the number of labels of a batch: all tokens except the first of each row or document, its prompt and the
 * padding, which is assumed to be one token. */
int64_t decoder_labels(const struct decoder *m);
/* True if a batch's attention mask hides tokens. False for a single row, which is padded to its own length. */
static inline bool decoder_hides_padding(const struct plim_train_setting *setting)
{
    bool has_others = setting->micro_batch * plim_loop_rows(setting->loop) > 1;
    if (setting->loop == PLIM_LOOP_TRL_GRPO) has_others = true; /* all rows of a generation */
    return setting->padding == PLIM_PADDING_YES || (setting->padding == PLIM_PADDING_LONGEST && has_others);
}

/* Returns the model's floating-point operations per token, forward and backward, as MFU counts them (PaLM,
 * arXiv:2204.02311, appendix B): 6 for each weight in a matmul and 12 layers * heads * head size * sequence for
 * attention; for linear attention 18 heads * key size * value size: a state is read by a key, written, and read by a
 * query. A frozen weight has no gradient of its own: 4. Recomputation by checkpointing is not counted. DPOTrainer's
 * reference counts as another forward, and so do each of GRPOTrainer's scores of a sample, and its generation, if they
 * are in every step. */
double decoder_flops_per_token(const struct decoder *m);

/* The same for an encoder-decoder (seq2seq.c), per token of source and target, or of the target alone for audio: the
 * weights of each half are used for its own tokens, key and value projections of cross-attention for the source's. */
double seq2seq_flops_per_token(const struct decoder *m);

/* Freezes the positions of whisper's encoder, or all of it (setting->freeze_encoder). */
void whisper_freeze(struct engine *e, struct decoder *m);

/* --- the head (head.c) ------------------------------------------------------------------------ */

/* Build an encoder's head for its task, after the model or (xlm-roberta) before it; for bert's classification the
 * pooler, which belongs to the model and is created at its end; and finally replace the head's weight by the embedding,
 * if the two are tied. */
void head_build(struct engine *e, struct decoder *m);
void head_build_pooler(struct engine *e, struct decoder *m);
void head_tie(struct engine *e, struct decoder *m);
/* Runs the pooler, if there is one, on x (B, S, H) at the end of a body: sets m->pooled. */
void head_pool(struct engine *e, struct decoder *m, struct tensor *x);
/* Returns the loss for the body's result x (B, S, H), lent; named, NULL if there are no labels. */
struct tensor *head_loss(struct engine *e, struct decoder *m, struct tensor *x, struct tensor *labels,
                         struct tensor **logits);
/* Returns the last linear, which computes the logits; its tensors are lent. */
struct linear head_linear(const struct decoder *m);
/* Returns the number of weights that are used once per row, not for each token. */
int64_t head_weights_a_row(const struct decoder *m);

/* --- the head of rewards (value_head.c) --------------------------------------------------------- */

/* Builds TRL's ValueHead (0.24, models/modeling_value_head.py), a linear to one number in fp32, after the model's
 * adapters. Does nothing outside of the loop of LLaMA-Factory's rm stage. */
void value_head_build(struct engine *e, struct decoder *m);
/* Runs the value head on x (B, S, H), lent; returns (B, S), named. */
struct tensor *value_head_run(struct engine *e, const struct decoder *m, struct tensor *x);

/* --- its states (states.c) -------------------------------------------------------------------- */

/* Stores all parameters and buffers in `out`, in the order of named_parameters() and then named_buffers(); lent.
 * Returns their number. NULL: returns the most that there can be, for which `out` must have room. */
size_t decoder_states(const struct decoder *m, struct tensor **out);
/* Returns the block of a parameter or buffer; NULL if it is outside of the blocks, or in a vision tower. */
const struct decoder_layer *decoder_layer_of(const struct decoder *m, const struct tensor *x);
/* Returns the base model's embedding; m->embedding may be a trained copy of it. */
const struct tensor *decoder_base_embedding(const struct decoder *m);
/* Returns the adapter that has this parameter as its magnitude, or NULL. */
const struct lora_adapter *decoder_adapter_of_magnitude(const struct decoder *m, const struct tensor *x);
/* decoder_states() in the order of Module._apply() (to(), to_empty()): first the children, then a module's own
 * parameters, then its buffers. */
size_t decoder_states_by_module(const struct decoder *m, struct tensor **out);
/* Stores a block's buffers in `out`, and its router_correction, which may be a frozen parameter. Returns their
 * number. */
enum { LAYER_BUFFERS = 2 };
size_t decoder_layer_buffers(const struct decoder_layer *l, struct tensor *out[LAYER_BUFFERS]);
/* Stores only the buffers: those of towers, of blocks, and then the others, at most DECODER_BUFFERS. */
enum { DECODER_BUFFERS_BESIDE = 14,
       DECODER_BUFFERS = LAYER_BUFFERS * PLIM_MAX_LAYERS + DECODER_BUFFERS_BESIDE + VISION_BUFFERS };
size_t decoder_buffers(const struct decoder *m, struct tensor **out);

/* Returns why this device cannot train the model with the setting's kernels; NULL if it can. On a real GPU our own
 * kernels are used, whose attention supports neither windows nor softcapping. */
const char *decoder_refuses(const struct plim_device_info *info,
                            const struct plim_model_config *config,
                            const struct plim_train_setting *setting);

/* --- activation functions (activation.c) --------------------------------------------------------- */

/* ACT2FN[f](x); floating. */
struct tensor *decoder_activation(struct engine *e, enum plim_activation f, struct tensor *x);

/* --- for the families (decoder_parts.c) ------------------------------------------------------- */

/* Sets m->refusal, why the model cannot be built with this setting (`format` has one %s, for `name`), and halts. */
void decoder_refuse(struct engine *e, struct decoder *m, const char *format, const char *name);
enum plim_dtype decoder_weights_dtype(enum plim_weights weights); /* AUTO is fp32 */
/* Returns the type in which the setting loads the weights. */
enum plim_dtype decoder_parameter_dtype(const struct plim_train_setting *setting);
/* Calls `build` for each layer in turn; parameters that it makes with nn_parameter() belong to that layer. */
void decoder_build_layers(struct engine *e, struct decoder *m,
                          void (*build)(struct engine *e, struct decoder *m,
                                        struct decoder_layer *l));
/* Builds a decoder's head, after the model: a linear to the vocabulary, with or without a bias, whose weight may be the
 * embedding; or for classification a linear to the labels, `score`. */
void decoder_build_head(struct engine *e, struct decoder *m, bool bias);
/* Builds embeddings, layers, a final LayerNorm, a rotary embedding and a head. */
void decoder_build_rotary(struct engine *e, struct decoder *m,
                          void (*build_layer)(struct engine *e, struct decoder *m, struct decoder_layer *l));
/* A body: embeddings, masks, rotary positions, blocks, the final norm (rotary_body.c). */
struct tensor *decoder_rotary_body(struct engine *e, struct decoder *m, struct tensor *ids);
/* Runs all blocks on `x` (taken), with checkpointing if the setting has it; named. */
struct tensor *decoder_blocks(struct engine *e, struct decoder *m, struct tensor *x,
                              const struct block_call *full, const struct block_call *sliding);
/* Runs one block with its hooks, checkpointed if the setting has checkpointing: x (lent) -> floating. */
struct tensor *decoder_run_block(struct engine *e, const struct block_call *c, struct tensor *x);
/* decoder_blocks() for the layers from `first` up to but not including `end`. */
struct tensor *decoder_blocks_between(struct engine *e, struct decoder *m, struct tensor *x,
                                      const struct block_call *call, int64_t first, int64_t end);
/* decoder_blocks() for a model with images (NULL: none), which are added after the first blocks. */
struct tensor *decoder_blocks_with_images(struct engine *e, struct decoder *m, struct tensor *x,
                                          const struct block_call *full, const struct block_call *sliding,
                                          struct encoded_images *encoded);
/* True if inputs are made to require a gradient (enable_input_require_grads()). In Trainer only for models of tokens,
 * unless peft prepared a quantised base. */
bool decoder_requires_input_grads(const struct decoder *m);
/* Returns the token embeddings (B, S, H) of ids; named. With LoRA and checkpointing they are made to require a gradient
 * (enable_input_require_grads), as otherwise nothing before the first adapter would be recomputed. */
struct tensor *decoder_embed(struct engine *e, struct decoder *m, struct tensor *ids);
/* Returns the positions of ids (B, S), which count only tokens that are not padding: (cumsum(ids != padding) * (ids !=
 * padding)).long() + padding, with intermediate results in int32; named (bert.c). */
struct tensor *decoder_counted_positions(struct engine *e, const struct decoder *m, struct tensor *ids);
/* True if a layer is sliding; if `sliding` is false, true if a layer is not sliding. */
bool decoder_has_layers(const struct decoder *m, bool sliding);
/* Returns the number of documents in a packed micro-batch, which is one row; 0 if its rows are the samples. */
int64_t decoder_documents(const struct decoder *m);
int64_t decoder_longest_document(const struct decoder *m); /* its tokens; 0 likewise */
/* The documents of one row: `of_longest` documents of `longest` tokens, as many as leave one token for each of the
 * others; then one document with the `rest` (0: none), and `single` documents of one token. */
struct documents {
    int64_t longest, of_longest, rest, single;
};
struct documents decoder_split_documents(const struct decoder *m, int64_t tokens); /* `tokens`: of the whole row */
/* The constructor of a model's rotary embedding; decoder_create_rotary_of() rotates `dim` elements of each head. */
void decoder_create_rotary(struct engine *e, const struct decoder *m, enum plim_rope rope, struct rotary *r);
void decoder_create_rotary_of(struct engine *e, const struct decoder *m, enum plim_rope rope, int64_t dim,
                              struct rotary *r);
/* Returns the batch's positions, otherwise arange(S) + 0 as (1, S); named. */
struct tensor *decoder_positions(struct engine *e, const struct decoder *m, int64_t seq);
/* Returns the causal mask of this forward; named or NULL. */
struct tensor *decoder_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                            struct tensor *positions, int64_t window);
/* The same for rows in which some tokens attend to their whole block; blocks: (B, S) int64, or NULL. */
struct tensor *decoder_mask_of_blocks(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                      struct tensor *positions, struct tensor *blocks, int64_t window);
/* The same for a model that passes no positions, but an attention mask (B, S) of ones, or NULL (opt, bloom, falcon). */
struct tensor *decoder_padding_mask(struct engine *e, const struct decoder *m,
                                    struct tensor *embeddings, struct tensor *attention_mask);
/* The same for an attention mask of ones, instead of the batch's own mask. */
struct tensor *decoder_full_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                 struct tensor *ones);
/* Returns the bidirectional mask of tokens that attend to the whole row, or to a window around them (`window`; 0: the
 * whole row); named or NULL. */
struct tensor *decoder_open_mask(struct engine *e, const struct decoder *m,
                                 struct tensor *embeddings, int64_t window);
/* Returns the mask of tokens that attend to all tokens of the encoder's result, (B, S, H); named or NULL. */
struct tensor *decoder_cross_mask(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                                  struct tensor *encoded);
/* (B, S, A * D) -> (B, A, S, D), a view. */
struct tensor *decoder_heads(struct engine *e, struct tensor *x, int64_t heads, int64_t head_dim);
/* Projects x (B, S, W) to queries, keys and values (B, heads, S, head_dim) by the block's linears; named. */
void decoder_project_heads(struct engine *e, const struct block_call *b, struct tensor *x, int64_t heads,
                           int64_t head_dim, struct tensor *qkv[3]);
enum attention_function decoder_attention_function(const struct decoder *m); /* of the setting */
/* Returns the attention call of a block. */
struct attention_call decoder_attention(const struct block_call *b);
/* Computes attention of q, k, v (lent), with merged heads; named. *weights as in nn_attention(). */
struct tensor *decoder_context(struct engine *e, const struct attention_call *call,
                               struct tensor *const qkv[3], struct tensor **weights);
/* The output projection of attention's result; floating. */
struct tensor *decoder_project_out(struct engine *e, const struct block_call *b, struct tensor *x);
/* Attention of q, k, v (lent), with merged heads, and the output projection; floating. *weights as in
 * nn_attention(). */
struct tensor *decoder_attend(struct engine *e, const struct block_call *b,
                              const struct attention_call *call, struct tensor *const qkv[3],
                              struct tensor **weights);
/* The same after rotating a part of each head of queries and keys; qkv is taken. */
struct tensor *decoder_attend_rotated(struct engine *e, const struct block_call *b, struct tensor *const qkv[3],
                                      struct tensor **weights);
/* Applies the rotary embedding to queries and keys in fp32; rebinds both (modernbert, esm). */
void decoder_rotate_wide(struct engine *e, const struct block_call *b, struct tensor *qkv[3]);
/* The plain MLP: fc2(activation(fc1(x))); each result replaces the variable of the previous one; floating. */
struct tensor *decoder_mlp(struct engine *e, const struct block_call *b, struct tensor *x);
/* For bert's relatives: build a LayerNorm with bert's epsilon, the modules of the embeddings, and those of a block; run
 * _init_weights() of the embeddings; return the embeddings of ids, (B, S, width), named; return the attention call of a
 * block. */
void bert_norm_create(struct engine *e, struct decoder *m, struct norm *n, int64_t width);
void bert_build_embeddings(struct engine *e, struct decoder *m);
void bert_build_layer(struct engine *e, struct decoder *m, struct decoder_layer *l);
void bert_initialise(struct engine *e, const struct decoder *m);
struct tensor *bert_embed(struct engine *e, struct decoder *m, struct tensor *ids);
struct attention_call bert_attention(const struct block_call *b);
/* BertSelfOutput and BertOutput: norm(dropout(l(x)) + residual), all lent; floating. n NULL: without the norm. */
struct tensor *bert_output(struct engine *e, const struct block_call *b, const struct linear *l, const struct norm *n,
                           struct tensor *x, struct tensor *residual);
/* BertIntermediate of x, and bert_output() with `n` and `residual`; all lent; floating. */
struct tensor *bert_feed(struct engine *e, const struct block_call *b, const struct norm *n, struct tensor *x,
                         struct tensor *residual);
/* GPT2Block: x + `attend` of the first norm, which sets *weights like nn_attention(), plus the plain MLP of the second
 * norm; x (B, S, H) lent -> (B, S, H) floating. */
struct tensor *gpt2_run_block(struct engine *e, const struct block_call *b, struct tensor *x,
                              struct tensor *(*attend)(struct engine *e, const struct block_call *b,
                                                       struct tensor *x, struct tensor **weights));

/* Returns the parts of the family that Liger's kernels replace. */
struct plim_liger_patches decoder_liger(const struct decoder *m);
/* Replaces an existing norm by Liger's. */
void decoder_patch_norm(struct norm *n, enum plim_liger_norm how);

/* The gated MLP: down(activation(gate(x)) * up(x)); floating. */
struct tensor *decoder_gated_mlp(struct engine *e, enum plim_activation f,
                                 const struct decoder_layer *l, struct tensor *x);
/* The MLP of a layer, or axolotl's function that replaces it; floating. */
struct tensor *decoder_layer_mlp(struct engine *e, const struct block_call *b, struct tensor *x);

/* --- the KV cache (cache.c) ---------------------------------------------------------------------- */

enum plim_status decoder_cache_create(const struct decoder *m, struct decoder_cache *cache) PLIM_MUST_CHECK;
void decoder_cache_drop(struct engine *e, struct decoder_cache *cache);
/* past_key_values.update(): rebinds keys and values to the cached ones followed by these. Does nothing without a
 * cache. */
void decoder_cache_update(struct engine *e, const struct block_call *b, struct tensor *qkv[3]);
/* The same for a cache layer that is updated only once, with gradients. */
void decoder_cache_update_once(struct engine *e, const struct decoder *m, int64_t layer, struct tensor *qkv[3]);

/* --- experts (experts.c) ---------------------------------------------------------------------- */

/* The most weights: a layer's router, two stacks of weights, four linears of a shared expert, and the adapters'
 * matrices. */
enum { EXPERTS_WEIGHTS = 15 };

/* Builds the parameters of a layer's experts and router. */
void experts_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Builds only the parameters of the experts. */
void experts_build_stacks(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Returns the experts' result for rows (N, H), with k experts per row and their weights, both (N, k); all lent;
 * floating. */
struct tensor *experts_multiply(struct engine *e, const struct block_call *b, struct tensor *rows,
                                struct tensor *weights, struct tensor *experts);
/* --- linear attention (delta_net.c) ------------------------------------------------------------- */

/* Builds the module that replaces attention in a layer with linear attention (Qwen3_5GatedDeltaNet and
 * Qwen3NextGatedDeltaNet). */
void delta_net_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
/* Initialises these modules of all layers again, after all layers are built. */
void delta_net_initialise(struct engine *e, const struct decoder *m);
/* Runs it: x (B, S, H) lent -> (B, S, H) floating. */
struct tensor *delta_net(struct engine *e, const struct block_call *b, struct tensor *x);

/* --- Mamba-2 layers (mamba.c) ------------------------------------------------------------------- */

/* The same for the module that replaces attention in a Mamba-2 layer (GraniteMoeHybridMambaLayer). */
void mamba_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
void mamba_initialise(struct engine *e, const struct decoder *m);
struct tensor *mamba(struct engine *e, const struct block_call *b, struct tensor *x);

/* --- latent attention (latent_attention.c) ------------------------------------------------------ */

/* Build and run DeepseekV3Attention, likewise; *weights as in nn_attention(). */
void latent_attention_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
struct tensor *latent_attention(struct engine *e, const struct block_call *b, struct tensor *x,
                                struct tensor **weights);

/* --- xIELU (xielu.c) ---------------------------------------------------------------------------- */

/* Build the parameters and buffers of a layer's activation function, and compute the function; floating. */
void xielu_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
struct tensor *xielu(struct engine *e, const struct decoder_layer *l, struct tensor *x);

/* --- short convolutions (short_conv.c) ---------------------------------------------------------- */

/* Build and run Lfm2ShortConv, which replaces attention: x (B, S, H) -> (B, S, H), floating. */
void short_conv_build(struct engine *e, struct decoder *m, struct decoder_layer *l);
struct tensor *short_conv(struct engine *e, const struct block_call *b, struct tensor *x);
/* apply_mask_to_padding_states(): sets padding in x (B, S, H), rebound, to zero; mask (B, S), or NULL: no padding. */
void decoder_hide_padding(struct engine *e, struct tensor *mask, struct tensor **x);

/* Runs the experts that replace the MLP: x (B, S, H) -> (B, S, H); floating. gpt_oss rebinds *besides (named or NULL)
 * to the weights of each row's experts; other families do not change it. */
struct tensor *experts_block(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor **besides);
/* True if SFTTrainer adds a load-balancing loss for the experts. */
bool experts_are_balanced(const struct plim_model_config *config, const struct plim_train_setting *setting);
/* load_balancing_loss_func() of the router logits that a forward returned, for the tokens in the attention mask (B, S);
 * named, NULL if the engine is halted. */
struct tensor *experts_balance(struct engine *e, const struct decoder *m, struct tensor *mask);
/* Returns the number of experts' weights that are not used for a token. */
int64_t experts_idle_weights(const struct decoder *m);

#endif
