/* What to train and how: the plimsoll spec, fully resolved.
 *
 * A spec comes from a plimsoll YAML file, from a Hugging Face config.json (a file, or a directory
 * that holds one), or by name from the zoo. After loading every field is filled: per-family
 * defaults are those of transformers 5.17's configuration classes.
 *
 * Units: sizes are element counts, batch is samples per GPU and micro-step, sequence is tokens. */
#ifndef PLIM_WORKLOADS_SPEC_H
#define PLIM_WORKLOADS_SPEC_H

#include "autotune/base/status.h"
#include "axis.h"
#include "families.h"
#include "grpo.h"
#include "images.h"
#include "liger.h"
#include "linear_attention.h"
#include "loop.h"
#include "lora.h"
#include "sharding.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- the model -------------------------------------------------------------------------------- */

/* The task, and so the head of the model: transformers' ForCausalLM, ForMaskedLM,
 * ForSequenceClassification (of images: ForImageClassification), for an encoder and a decoder
 * ForConditionalGeneration, and for encoders ForTokenClassification and ForQuestionAnswering. */
#define PLIM_TASK_MAP(X)                                                                           \
    X(CAUSAL_LM, "causal-lm")                                                                      \
    X(MASKED_LM, "masked-lm")                                                                      \
    X(CLASSIFICATION, "classification")                                                            \
    X(SEQ2SEQ_LM, "seq2seq-lm")                                                                    \
    X(TOKEN_CLASSIFICATION, "token-classification")                                                \
    X(QUESTION_ANSWERING, "question-answering")

enum plim_task {
#define PLIM_TASK_ENUM(name, text) PLIM_TASK_##name,
    PLIM_TASK_MAP(PLIM_TASK_ENUM)
#undef PLIM_TASK_ENUM
    PLIM_TASK_COUNT
};

/* Does the head give one logit per class, not per entry of the vocabulary? */
bool plim_task_classifies(enum plim_task task);

/* How deepseek_v2 chooses the experts of a token: among all experts, or among those of the best groups. */
enum plim_top_k { PLIM_TOP_K_GREEDY, PLIM_TOP_K_GROUPS, PLIM_TOP_K_COUNT };

/* deberta-v2's pos_att_type: scores of content and position (c2p), of position and content (p2c), or both. */
enum plim_position_scores { PLIM_SCORES_NONE, PLIM_SCORES_C2P, PLIM_SCORES_P2C, PLIM_SCORES_BOTH,
                            PLIM_SCORES_COUNT };
/* What esm tells places by: learned positions, or queries and keys that turn. */
enum plim_position_kind { PLIM_POSITIONS_ABSOLUTE, PLIM_POSITIONS_ROTARY, PLIM_POSITIONS_COUNT };
/* granitemoehybrid's position_embedding_type: anything but rope is none */
enum plim_position_use { PLIM_POSITIONS_NOPE, PLIM_POSITIONS_ROPE, PLIM_POSITION_USE_COUNT };
enum plim_distance_norm { PLIM_DISTANCE_PLAIN, PLIM_DISTANCE_NORMED, PLIM_DISTANCE_COUNT };

/* What a classification head of modernbert looks at. */
enum plim_pooling { PLIM_POOLING_CLS, PLIM_POOLING_MEAN, PLIM_POOLING_COUNT };

/* transformers' attn_implementation. FLASH2: the package flash-attn (flash_attention_2). */
enum plim_attention { PLIM_ATTENTION_SDPA, PLIM_ATTENTION_EAGER, PLIM_ATTENTION_FLASH2,
                      PLIM_ATTENTION_COUNT };

/* Rotary embeddings. Only `dynamic` and `longrope` run other kernels during training: they look at
 * the largest position of every forward (and longrope replaces inv_freq in every forward). */
#define PLIM_ROPE_MAP(X)                                                                           \
    X(DEFAULT, "default")                                                                          \
    X(LINEAR, "linear")                                                                            \
    X(DYNAMIC, "dynamic")                                                                          \
    X(YARN, "yarn")                                                                                \
    X(LONGROPE, "longrope")                                                                        \
    X(LLAMA3, "llama3")                                                                            \
    X(PROPORTIONAL, "proportional")

enum plim_rope {
#define PLIM_ROPE_ENUM(name, text) PLIM_ROPE_##name,
    PLIM_ROPE_MAP(PLIM_ROPE_ENUM)
#undef PLIM_ROPE_ENUM
    PLIM_ROPE_COUNT
};

/* The type that parameters are stored in. AUTO: that of config.json, as from_pretrained(); in a model config: none. */
enum plim_weights { PLIM_WEIGHTS_AUTO, PLIM_WEIGHTS_FP32, PLIM_WEIGHTS_BF16, PLIM_WEIGHTS_FP16,
                    PLIM_WEIGHTS_COUNT };

enum { PLIM_MAX_LAYERS = 1024 };

/* What a layer of nemotron_h is, as letters of its hybrid_override_pattern */
enum plim_layer_kind { PLIM_LAYER_MAMBA = 'M', PLIM_LAYER_ATTENTION = '*', PLIM_LAYER_MLP = '-',
                       PLIM_LAYER_EXPERTS = 'E' };

#define PLIM_NO_TOKEN INT64_MIN /* pad_token_id: null (-1 is a token to PyTorch: the last one) */

/* Which tokens attend to later ones, too (use_bidirectional_attention): none, or those of one image to each other. */
enum plim_seeing { PLIM_SEEING_NONE, PLIM_SEEING_VISION, PLIM_SEEING_COUNT };

/* A model with its head. Fields that a family does not have are 0 / false. */
struct plim_model_config {
    enum plim_family family, text; /* internvl: its text's layers are those of the family `text`; 0: its own */
    enum plim_task task;
    int64_t labels; /* of a classification: num_labels, or as many as id2label names */
    int64_t vocab_size;
    int64_t hidden_size;
    int64_t intermediate_size;
    int64_t layers;         /* of encoder and decoder together, where there are both */
    int64_t groups, passes; /* albert: num_hidden_groups, which are its layers, and the blocks that run, each of which
                             * is one of them (num_hidden_layers); else 0. Already applied */
    int64_t encoder_layers; /* the first of `layers`; 0: no encoder beside a decoder. Already applied, and so is */
    int64_t decoder_layers; /* t5: num_decoder_layers; 0: as many as the encoder's */
    int64_t decoder_heads, decoder_intermediate; /* whisper, bart: of the decoder's blocks; else 0 */
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;
    int64_t positions;           /* max_position_embeddings / n_positions; of an image: its patches
                                  * and one, which is its sequence */
    int64_t source_positions;    /* whisper: positions of its encoder, the length of every sound there; else 0 */
    int64_t mel_bins;            /* whisper: features of a frame (num_mel_bins) */
    int64_t word_embed_proj_dim; /* opt; electra's embedding_size */
    enum plim_activation activation; /* of the MLP; bloom has its own and ignores this */
    bool tie_word_embeddings, text_ties_otherwise; /* of a model of images and text, and its text alone */
    bool attention_bias;         /* llama, gemma, qwen3, gpt_neox, olmo2: bias on q, k, v and o;
                                  * qwen2_moe (qkv_bias): not on o */
    bool attention_out_bias;     /* seed_oss: bias on o, which attention_bias does not cover there */
    bool mlp_bias;               /* llama */
    bool enable_bias;            /* opt */
    bool layer_norm_elementwise_affine; /* opt */
    bool do_layer_norm_before;   /* opt */
    bool remove_final_layer_norm; /* opt: no final LayerNorm although do_layer_norm_before */
    bool parallel_residual;      /* gpt_neox */
    bool qk_layernorm;           /* phi */
    bool apply_residual_connection_post_layernorm; /* bloom */
    int64_t type_vocab_size;     /* bert, roberta, deberta-v2: token types; 0: there are none */
    bool relative_attention, absolute_positions; /* deberta-v2: scores of relative positions; learned positions */
    enum plim_position_scores position_scores;   /* deberta-v2: which scores those are */
    bool shares_projections;     /* deberta-v2: share_att_key: embeddings of distances use the tokens' projections */
    enum plim_distance_norm distance_norm;       /* deberta-v2: of these embeddings */
    int64_t position_buckets, relative_positions; /* deberta-v2: buckets of distances on either side, -1: one for
                                                   * each; the farthest distance, -1: the last position */
    enum plim_position_kind position_kind; /* esm, as what follows */
    bool norms_embeddings, token_dropout; /* a norm in front of the blocks; tokens of mask_token_id are left out */
    int64_t mask_token_id, rotary_dim; /* esm, PLIM_NO_TOKEN: null; gptj: elements of a head that turn */
    int64_t relative_buckets, relative_distance; /* t5: rows of its position bias; larger distances share one */
    enum plim_feed_forward feed_forward;         /* t5; already applied to activation and gated_mlp */
    bool gated_mlp;              /* t5 */
    bool scales_embeddings;      /* bart: by sqrt(hidden_size) */
    bool scales_outputs;         /* t5, tied: what the head reads is scaled by 1 / sqrt(hidden_size) */
    bool use_cache;              /* t5: its decoder keeps keys and values in training, too, unless checkpointed */
    int64_t decoder_start;       /* t5: decoder_start_token_id; PLIM_NO_TOKEN: null */
    bool sinusoidal_positions;   /* distilbert: initial values of its learned positions */
    bool norm_bias, decoder_bias, classifier_bias; /* modernbert: of the norms, of the head's linears */
    enum plim_activation classifier_activation;    /* modernbert; deberta-v2's pooler's */
    enum plim_pooling classifier_pooling;          /* modernbert */
    bool scale_attn_weights, scale_attn_by_inverse_layer_idx, reorder_and_upcast_attn; /* gpt2 */
    double partial_rotary_factor;   /* phi, phi3, gpt_neox (rotary_pct): the share of head_dim that
                                     * rotates, (int)(head_dim * factor), in phi3 and gpt_neox
                                     * rounded up to even (cos.shape[-1]); 1 elsewhere */
    enum plim_rope rope;            /* gemma3_text: of its full-attention layers */
    int64_t mrope_section[PLIM_GRIDS]; /* how many angles of a head each of the three positions turns (M-RoPE) */
    bool scales_queries;            /* ministral3: queries grow with position / rope_original_positions */
    int64_t rope_original_positions; /* original_max_position_embeddings; 0: none (default, linear,
                                      * dynamic, proportional) */
    double embedding_multiplier, residual_multiplier; /* granite: of embeddings, of residual branches; 0: none */
    double attention_multiplier;    /* granite: of scores; 0: 1 / sqrt(head_dim) */
    double logits_scaling, logit_scale; /* granite: logits are divided; cohere: multiplied; 0: neither */
    double clip_qkv;                /* olmo, olmoe: largest magnitude of queries, keys and values; 0: any */
    double attn_logit_softcapping;  /* gemma2; eager attention only; 0: none. gemma3 has the key,
                                     * but transformers 5.17 never uses it */
    double final_logit_softcapping; /* gemma2, gemma3; 0: none */
    int64_t image_size, patch_size, channels; /* vit: of square images, in pixels */
    struct plim_vision vision;
    struct plim_audio audio;
    enum plim_seeing seeing;       /* gemma4: do tokens of an image see each other where layers slide? */
    int64_t query_rank, key_rank; /* deepseek_v3: of the latents of queries (0: there are none), and of keys and
                                   * values */
    int64_t plain_dim, value_dim; /* of a head, what does not turn of its queries and keys, beside head_dim, which
                                   * does; and its values */
    bool rope_pairs;              /* neighbours of these turn together, and not halves */
    int64_t experts;           /* of a layer; 0: no mixture of experts */
    int64_t experts_per_token; /* that a token is routed to */
    int64_t expert_size;       /* width of an expert's MLP */
    int64_t shared_expert_size;    /* of the one that sees every token; 0: none */
    int64_t sparse_step;           /* every n-th layer has experts, the others an MLP */
    int64_t dense_layers, last_sparse; /* as many of the first ones have an MLP, and ernie4_5_moe's behind the latter */
    int64_t shared_experts;        /* that see every token, in one MLP; already applied to shared_expert_size */
    bool normalized_routing, corrects_experts; /* weights of experts add up to 1; lfm2_moe: use_expert_bias */
    double routed_scaling;         /* glm4_moe: these weights are multiplied with it */
    int64_t expert_groups, groups_per_token; /* glm4_moe: groups of experts, of which a token's are chosen first */
    enum plim_top_k top_k; /* deepseek_v2; already applied to these two */
    int64_t global_head_dim, global_kv_heads; /* gemma4: of its layers with full attention; 0: other families */
    bool keys_are_values;           /* gemma4: these layers take their values from the keys' projection */
    int64_t shared_kv_layers;       /* gemma4: the last ones, which reuse keys and values of the last before them */
    bool double_wide;               /* gemma4: their MLPs are twice as wide */
    int64_t per_layer_size, per_layer_vocab; /* gemma4: of the per-layer embedding of tokens; 0: there is none */
    bool has_experts;               /* gemma4: enable_moe_block; already applied to experts */
    double aux_loss_coef;          /* weight of the loss that balances experts; 0: it is not computed */
    int64_t sliding_window;         /* tokens; 0: none */
    bool use_sliding_window;        /* of the qwens; already applied to sliding_window */
    int64_t max_window_layers;      /* qwen2, qwen2_moe, qwen3; already applied to layer_is_sliding */
    int64_t local_attention;        /* modernbert: the whole window; half of it looks back */
    int64_t sliding_window_pattern; /* gemma3: every n-th layer is not sliding, modernbert: layers 0,
                                     * n, 2n, ... are not; already applied */
    bool layer_is_sliding[PLIM_MAX_LAYERS]; /* resolved from layer_types or the family's pattern */
    int64_t no_rope_interval;       /* smollm3: every n-th layer has no rotary positions; already applied */
    bool layer_is_nope[PLIM_MAX_LAYERS]; /* no rotary positions: from no_rope_layers or the family's pattern */
    int64_t linear_kernel, full_interval; /* linear attention: width of its convolution; every n-th layer is full */
    int64_t linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim; /* its heads, and their widths */
    bool layer_is_linear[PLIM_MAX_LAYERS]; /* from layer_types or full_interval; lfm2: a short convolution; with
                                            * mamba_chunk: a Mamba-2 layer, whose groups are the key heads above (of
                                            * the state's width) and whose heads the value heads */
    int64_t mamba_chunk, mamba_expand;     /* tokens of a chunk, 0: no such layers; its width over hidden_size */
    int64_t mamba_width;                   /* falcon_h1: this width; 0: mamba_expand tells it, or the heads */
    double mamba_step_min;                 /* nemotron_h: lower bound of step sizes; changes only values */
    bool rescales_residual;                /* nemotron_h: initial weights of output projections are rescaled */
    char layer_pattern[PLIM_MAX_LAYERS + 1]; /* nemotron_h: what each layer is, by enum plim_layer_kind; "": the
                                              * class's; already applied to layer_is_linear */
    bool mamba_conv_bias, mamba_proj_bias; /* biases of its convolution, and of its projections */
    bool mamba_out_bias;                   /* falcon_h1: of its last projection, which mamba_proj_bias does not cover */
    enum plim_position_use position_use;   /* granitemoehybrid: none, or rotary positions; already applied to
                                            * layer_is_nope */
    bool new_architecture, multi_query; /* falcon: grouped queries, keys and values in one projection; falcon and
                                         * gpt_bigcode: one key and value for all queries */
    int64_t norms_in_parallel;          /* falcon, where attention and MLP are parallel branches; 0: null */
    bool adjusts_width; /* lfm2: an MLP has 2/3 of intermediate_size, times width_multiplier, rounded up to a multiple
                         * of width_multiple; already applied */
    int64_t width_multiple;
    double width_multiplier;
    int64_t pad_token_id;           /* PLIM_NO_TOKEN: null, or the family's embedding takes none */
    bool has_padding_idx;           /* a pad_token_id is given: nn.Embedding(padding_idx=...) */
    double dropout_embedding;  /* gpt2, phi embd_pdrop, gpt_neox hidden_dropout; phi3 has none */
    double dropout_attention;  /* attn_pdrop, attention_dropout, attention_probs_dropout_prob */
    double dropout_mlp;        /* modernbert */
    double dropout_classifier; /* encoders: in the classification head */
    double dropout_answers;    /* distilbert: before the question-answering head (qa_dropout) */
    double dropout_pooler;     /* deberta-v2 */
    double dropout_residual;   /* resid_pdrop, hidden_dropout, dropout, hidden_dropout_prob */
    double layerdrop;          /* opt */
    enum plim_weights dtype;   /* dtype (torch_dtype) of the published weights */
    enum plim_attention attention; /* attn_implementation; sdpa where none is named */
};

/* --- how it is trained ------------------------------------------------------------------------ */

/* The types of computation. MIXED: autocast to that type over weights of any type; the others have no
 * autocast, and weights and computation both have the named type. */
enum plim_precision { PLIM_PRECISION_FP32, PLIM_PRECISION_TF32, PLIM_PRECISION_BF16_MIXED,
                      PLIM_PRECISION_FP16_MIXED, PLIM_PRECISION_BF16, PLIM_PRECISION_FP16,
                      PLIM_PRECISION_COUNT };
enum plim_optimizer { PLIM_OPTIMIZER_ADAMW, PLIM_OPTIMIZER_ADAMW_FUSED, PLIM_OPTIMIZER_SGD,
                      PLIM_OPTIMIZER_ADAFACTOR, PLIM_OPTIMIZER_ADAMW_TORCH_8BIT, /* torchao's */
                      PLIM_OPTIMIZER_ADAMW_TORCH_4BIT, PLIM_OPTIMIZER_ADAMW_8BIT, /* bitsandbytes', from here on */
                      PLIM_OPTIMIZER_PAGED_ADAMW_32BIT, PLIM_OPTIMIZER_PAGED_ADAMW_8BIT,
                      PLIM_OPTIMIZER_COUNT };
enum plim_checkpointing { PLIM_CHECKPOINTING_NONE, PLIM_CHECKPOINTING_FULL,
                          PLIM_CHECKPOINTING_COUNT };
/* Are several documents packed into a row, with position ids that start again at each? Then transformers
 * builds a block mask, and SDPA runs its masked kernels. ONE_ROW: a micro-batch is one row of all its tokens, with
 * position ids from the collator (transformers' DataCollatorWithFlattening, TRL's padding_free); flash-attention-2
 * then gets the ends of the documents, the others need the mask. */
enum plim_packing { PLIM_PACKING_NO, PLIM_PACKING_YES, PLIM_PACKING_ONE_ROW, PLIM_PACKING_COUNT };
/* Where the model is made. HOST: on the host, then model.to(device), as transformers' Trainer moves what
 * from_pretrained() made; a tied weight is moved once. GPU: under torch.device("cuda"), where a tied weight is made,
 * freed, and leaves cached memory behind. LOADED: from_pretrained() with a device_map brings the weights to the GPU one
 * by one, in the order of their names, after it reserved memory for all; CAST: in 16 bits, then each becomes fp32.
 * Models that are sharded from the start or quantized are made on the meta device. */
enum plim_made_on { PLIM_MADE_ON_GPU, PLIM_MADE_ON_HOST, PLIM_MADE_ON_LOADED, PLIM_MADE_ON_CAST, PLIM_MADE_ON_COUNT };
/* Which class builds the model of a config.json: the one that `architectures` names, or AutoModelForCausalLM's. The
 * latter builds of some models of images and text their text alone (causal_lm of struct plim_family_info). */
enum plim_auto_class { PLIM_AUTO_CLASS_PUBLISHED, PLIM_AUTO_CLASS_CAUSAL_LM, PLIM_AUTO_CLASS_COUNT };
/* axolotl's casts after loading: embeddings, norms and the head become fp32, then (UNDONE) the weights' type again. */
enum plim_upcast { PLIM_UPCAST_NONE, PLIM_UPCAST_KEPT, PLIM_UPCAST_UNDONE, PLIM_UPCAST_COUNT };
static inline bool plim_is_loaded(enum plim_made_on made_on)
{
    return made_on >= PLIM_MADE_ON_LOADED;
}

static inline bool plim_optimizer_is_torchao(enum plim_optimizer optimizer)
{
    return optimizer == PLIM_OPTIMIZER_ADAMW_TORCH_8BIT || optimizer == PLIM_OPTIMIZER_ADAMW_TORCH_4BIT;
}

/* What Trainer's evaluation keeps of its batches: losses; logits and labels, too, as with a compute_metrics(); or the
 * argmax of the logits, as a preprocess_logits_for_metrics() usually returns, and labels. */
enum plim_predictions {
    PLIM_PREDICTIONS_LOSS,
    PLIM_PREDICTIONS_LOGITS,
    PLIM_PREDICTIONS_ARGMAX,
    PLIM_PREDICTIONS_COUNT
};
extern const char *const plim_predictions_names[PLIM_PREDICTIONS_COUNT];

/* The versions whose memory behaviour is modelled. PyTorch 2.11 keeps cuBLAS's workspace, 2.15 allocates one for each
 * product (2.13 is as 2.11), and its efficient attention takes heads that share keys. transformers 5.24 multiplies
 * positions and frequencies elementwise where 5.17 has a matrix product (5.20 is as 5.24), and does not look for rows
 * without an expert. */
enum plim_torch { PLIM_TORCH_2_11, PLIM_TORCH_2_15, PLIM_TORCH_COUNT };
enum plim_transformers { PLIM_TRANSFORMERS_5_17, PLIM_TRANSFORMERS_5_24, PLIM_TRANSFORMERS_COUNT };

/* How bitsandbytes stores the weights of linear layers except the head (transformers' BitsAndBytesConfig). */
enum plim_quantization_type { PLIM_QUANTIZATION_NONE, PLIM_QUANTIZATION_NF4, PLIM_QUANTIZATION_FP4,
                              PLIM_QUANTIZATION_INT8, PLIM_QUANTIZATION_COUNT };
/* Do the rows of a batch differ in length? Then an encoder's attention mask hides tokens, and masked kernels run. */
enum plim_padding { PLIM_PADDING_NO, PLIM_PADDING_YES, PLIM_PADDING_LONGEST, PLIM_PADDING_COUNT };

/* Names as on the command line, in the order of the enums. */
extern const char *const plim_family_names[PLIM_FAMILY_COUNT];
extern const char *const plim_task_names[PLIM_TASK_COUNT];
extern const char *const plim_pooling_names[PLIM_POOLING_COUNT];
extern const char *const plim_rope_names[PLIM_ROPE_COUNT];
extern const char *const plim_precision_names[PLIM_PRECISION_COUNT];
extern const char *const plim_weights_names[PLIM_WEIGHTS_COUNT];
extern const char *const plim_optimizer_names[PLIM_OPTIMIZER_COUNT];
extern const char *const plim_checkpointing_names[PLIM_CHECKPOINTING_COUNT];
extern const char *const plim_attention_names[PLIM_ATTENTION_COUNT];
extern const char *const plim_packing_names[PLIM_PACKING_COUNT];
extern const char *const plim_made_on_names[PLIM_MADE_ON_COUNT];
extern const char *const plim_auto_class_names[PLIM_AUTO_CLASS_COUNT];
extern const char *const plim_upcast_names[PLIM_UPCAST_COUNT];
extern const char *const plim_quantization_names[PLIM_QUANTIZATION_COUNT];
extern const char *const plim_padding_names[PLIM_PADDING_COUNT];
extern const char *const plim_torch_names[PLIM_TORCH_COUNT];
extern const char *const plim_transformers_names[PLIM_TRANSFORMERS_COUNT];

enum { PLIM_MAX_PHASES = 64 };

/* The type of the elements that 4-bit codes are stored in (bnb_4bit_quant_storage). */
enum plim_storage { PLIM_STORAGE_UINT8, PLIM_STORAGE_BF16, PLIM_STORAGE_FP16, PLIM_STORAGE_FP32, PLIM_STORAGE_COUNT };
extern const char *const plim_storage_names[PLIM_STORAGE_COUNT];

struct plim_quantization {
    enum plim_quantization_type type;
    bool nested;               /* 4 bits: the scales are quantised too (bnb_4bit_use_double_quant) */
    enum plim_weights compute; /* 4 bits: what layers compute in (bnb_4bit_compute_dtype) */
    enum plim_storage storage; /* 4 bits */
    enum plim_made_on loaded_on; /* device_map; a choice under FSDP only: elsewhere it has to be the GPU */
    bool prepared; /* peft's prepare_model_for_kbit_training(): what stays in 16 bits becomes fp32 */
};

/* Trainer's evaluations between steps; a batch of 0: there are none. */
struct plim_evaluation {
    int64_t batch;        /* per_device_eval_batch_size */
    int64_t batches;      /* of one evaluation */
    int64_t every;        /* eval_steps: optimizer steps from one to the next */
    int64_t accumulation; /* eval_accumulation_steps: batches until the kept tensors go to the host; 0: None, all */
    enum plim_predictions keeps; /* of each batch, to the evaluation's end */
    bool at_start;        /* eval_on_start: one before the first step, too */
    bool batch_metrics;   /* batch_eval_metrics: only losses are kept, and each batch ends with empty_cache() */
};
/* No evaluation, with the defaults of the other keys (key_table.c). */
#define PLIM_NO_EVALUATION ((struct plim_evaluation){.batches = 2, .every = 500})

/* One training setting, all that a replay needs beside the model: one value of each key, no ranges. */
struct plim_train_setting {
    int64_t micro_batch;
    int64_t seq;           /* tokens of a row, or of its source where there is a target */
    int64_t target_seq;    /* tokens of the target; 0: there is none */
    int64_t accumulation;  /* micro-steps per optimizer step */
    enum plim_precision precision;
    enum plim_weights weights; /* for mixed precision; AUTO: fp32 */
    enum plim_optimizer optimizer;
    enum plim_checkpointing checkpointing;
    bool use_reentrant; /* of checkpointing */
    enum plim_attention attention;
    enum plim_sharding sharding; /* AUTO is as NONE */
    int64_t world;               /* GPUs, at least 1; used if sharding is not NONE */
    enum plim_reduction reduction;
    enum plim_resharding resharding;
    bool efficient_loading; /* fsdp: accelerate's cpu_ram_efficient_loading */
    enum plim_fsdp_plan fsdp_plan;
    enum plim_fsdp_wrap fsdp_wrap;
    enum plim_reduce_type reduce_type;
    struct plim_ddp ddp;
    struct plim_zero zero;
    int64_t rank; /* ZeRO: the rank whose memory is reported; -1: the one that reserves most */
    enum plim_packing packing;
    int64_t documents; /* in each sample of `seq` tokens */
    enum plim_made_on made_on;
    enum plim_upcast upcast;
    enum plim_loop loop;
    struct plim_evaluation evaluation;
    double label_smoothing; /* label_smoothing_factor of Trainer; 0: none */
    int64_t empty_cache_steps; /* torch_empty_cache_steps of Trainer; 0: None */
    int64_t prompt; /* TRL's trainers: tokens at the start of each row that are no labels */
    struct plim_images images;
    bool precomputed_reference; /* precompute_ref_log_probs of DPOTrainer */
    enum plim_preference_loss preference_loss;
    double center_rewards; /* center_rewards_coefficient of RewardTrainer; 0: None */
    double rpo_alpha;      /* of ms-swift's DPOTrainer; 0: None */
    struct plim_grpo grpo;
    int64_t vllm_awake_bytes; /* GPU memory of a vLLM in this process while it is awake, if it sleeps at all; else 0 */
    enum plim_padding padding; /* of encoders */
    enum plim_torch torch;
    enum plim_transformers transformers;
    double clip;           /* max norm of clip_grad_norm_; 0: none */
    enum plim_liger liger;
    struct plim_liger_kernels liger_kernels;
    bool cut_cross_entropy; /* axolotl's plugin: no logits are made */
    bool freeze_vision;     /* the vision tower is not trained */
    bool freeze_encoder;    /* whisper's encoder is not trained */
    struct plim_linear_attention linear_attention;
    struct plim_lora lora;
    struct plim_quantization quantization;
};

/* --- the spec --------------------------------------------------------------------------------- */

enum { PLIM_SPEC_KEYS = 110 }; /* of the table in key.h */

struct plim_phase { int64_t epoch, accumulation; }; /* from this epoch on */

struct plim_spec {
    char name[64];
    char source[256];          /* path or zoo name */
    uint64_t hash;             /* of the resolved content; independent of the file's layout */
    struct plim_model_config model;     /* computed by plim_spec_resolve() from the next three: */
    struct plim_model_config model_as_given; /* given or default; 0 (PLIM_NO_TOKEN) where null */
    size_t nope_layers_given;  /* entries of a given no_rope_layers; 0: the family's pattern */
    size_t layer_types_given; /* entries of a given layer_types; 0: the family's pattern */

    struct plim_int_axis micro_batch, seq; /* micro_batch empty: search all */
    int64_t target_seq;                    /* 0: not given (spec_seq2seq.h) */
    struct plim_enum_axis precision, weights, optimizer, checkpointing, attention, liger, sharding;
    struct plim_liger_kernels liger_kernels;
    struct plim_linear_attention linear_attention;
    bool freeze_vision, freeze_encoder, cut_cross_entropy, use_reentrant; /* the last: of checkpointing */
    enum plim_reduction reduction;
    enum plim_resharding resharding;
    bool efficient_loading; /* fsdp: accelerate's cpu_ram_efficient_loading */
    enum plim_fsdp_plan fsdp_plan;
    enum plim_fsdp_wrap fsdp_wrap;
    enum plim_reduce_type reduce_type;
    struct plim_ddp ddp;
    struct plim_zero zero;
    int64_t rank;                       /* for ZeRO; -1: the one that reserves most */
    enum plim_packing packing;
    int64_t documents;
    enum plim_auto_class auto_class;
    enum plim_made_on made_on;
    enum plim_upcast upcast;
    enum plim_loop loop;
    struct plim_evaluation evaluation;
    double label_smoothing, clip, center_rewards, rpo_alpha;
    int64_t empty_cache_steps, prompt;
    struct plim_images images;
    bool precomputed_reference;
    enum plim_preference_loss preference_loss;
    struct plim_grpo grpo;
    enum plim_padding padding;
    enum plim_torch torch;
    enum plim_transformers transformers;
    int64_t world;                      /* data-parallel GPUs; 1 */
    int64_t gpus_per_node;              /* of one machine; 8 */
    double node_bandwidth;              /* GB/s that a machine sends to others */
    double host_speed;                  /* of launches, relative to devices/sim/roofline.h; 0: not known */
    int64_t effective_batch;            /* samples per optimizer step over all GPUs; 0: not given */
    double effective_batch_tolerance;   /* a fraction: 0.02 is 2 %; 0: exact */
    int64_t accumulation;               /* fixed by the user; 0: follows from the effective batch */
    size_t schedule_count;              /* accumulation schedule by epoch; 0: none */
    struct plim_phase schedule[PLIM_MAX_PHASES];
    struct plim_lora lora;
    struct plim_quantization quantization;
    char device[96];                    /* the spec's own default device, or "" */
    bool given[PLIM_SPEC_KEYS]; /* did the user give the i-th key (key.h)? Else it has its default */
};

static inline bool plim_sharding_is_zero(enum plim_sharding sharding)
{
    return sharding >= PLIM_SHARDING_ZERO1 && sharding < PLIM_SHARDING_FSDP;
}

/* The number of processes that train together, one per GPU; 1 where train.sharding is none. */
static inline int64_t plim_setting_ranks(const struct plim_train_setting *setting)
{
    return setting->sharding >= PLIM_SHARDING_DDP ? setting->world : 1;
}

/* The sharding that a value of train.sharding stands for: AUTO becomes DDP or NONE. */
static inline enum plim_sharding plim_spec_sharding(const struct plim_spec *spec, int value)
{
    if (value != PLIM_SHARDING_AUTO) return (enum plim_sharding)value;
    return spec->world > 1 ? PLIM_SHARDING_DDP : PLIM_SHARDING_NONE;
}

/* The name of the first value of train.sharding beyond `most` in the enum's order; NULL: there is none. */
static inline const char *plim_spec_sharding_beyond(const struct plim_spec *spec, enum plim_sharding most)
{
    for (size_t i = 0; i < spec->sharding.count; i++) {
        enum plim_sharding sharding = plim_spec_sharding(spec, (int)spec->sharding.values[i]);
        if (sharding > most) return plim_sharding_names[sharding];
    }
    return NULL;
}

/* disable_dropout of DPOConfig (on by default): it reaches dropout modules; attention's is one in two families only. */
void plim_model_disable_dropout(struct plim_model_config *model);

/* Loads a spec: `source` is a zoo name, a plimsoll YAML file, a config.json, or a directory that
 * contains a config.json. The result is resolved. Every failure is PLIM_SPEC (or PLIM_NOMEM) with
 * the place in the document where there is one; `spec` is zeroed then. Nothing to release. The
 * keys of a spec, with units and defaults, are documented in README.md beside this file. */
enum plim_status plim_spec_load(const char *source, struct plim_spec *spec,
                                struct plim_error *err) PLIM_MUST_CHECK;

/* The same for a document in memory; `name` is its name in messages and becomes the source. */
enum plim_status plim_spec_load_text(const char *name, const char *text, struct plim_spec *spec,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Is `source` a name of the zoo, which plim_spec_load() prefers, and an existing file or folder as well? */
bool plim_spec_source_hides(const char *source);

/* Sets one key as the command line's `--set KEY=VALUE` (and every option that is a spec key) does:
 * KEY is the dotted path in the YAML spec ("train.precision"), VALUE is YAML; axes also take
 * "512,1024" and "512:4096:512", train.lora takes "r=16,targets=q_proj+v_proj,dropout=0". A failure
 * leaves the key as it was. Call plim_spec_resolve() after the last. */
enum plim_status plim_spec_set(struct plim_spec *spec, const char *key, const char *value,
                               struct plim_error *err) PLIM_MUST_CHECK;

/* The type of weights under a precision without autocast; AUTO: the precision is mixed, and any type will do. */
enum plim_weights plim_precision_weights(enum plim_precision precision);

/* The adapters, for reports: "r=16 on q_proj, v_proj"; "": all parameters are trained. */
void plim_spec_describe_lora(const struct plim_spec *spec, char *text, size_t size);

/* How the base model is quantised, for reports: "nf4 (double quantisation, computes in bf16)"; "": not at all. */
void plim_spec_describe_quantization(const struct plim_spec *spec, char *text, size_t size);

/* ZeRO's settings, with numbers for "auto": those that transformers (integrations/deepspeed.py,
 * trainer_config_finalize()) and accelerate fill in. */
struct plim_zero plim_spec_zero(const struct plim_spec *spec);
/* The keys that were not given and follow transformers' Trainer, and that routing to experts is taken as balanced, for
 * reports: "weights bf16 (config.json), precision bf16 (no autocast), optimizer adamw-fused"; "": nothing. */
void plim_spec_describe_defaults(const struct plim_spec *spec, char *text, size_t size);
/* "true" or "false": torch.utils.checkpoint's use_reentrant; "": no setting checkpoints anything. */
const char *plim_spec_reentrant(const struct plim_spec *spec);

/* Computes `model` from `model_as_given` and the types that are not given, checks keys against each other (heads
 * divide, sequence within learned positions, effective batch against accumulation), fills in LoRA's
 * targets and computes the hash. Quantisation without adapters, which a later --set may put right, is
 * refused only here and not by plim_spec_load(). */
enum plim_status plim_spec_resolve(struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;
/* Is the spec refused only because experts would be loaded onto the GPU (train.made_on)? */
bool plim_spec_is_refused_for_experts(const struct plim_spec *spec);

/* Sets every dropout that the model's family has to `p`, from 0 to 1 (`--dropout 0`). 0 also turns
 * layerdrop off, another value leaves it. */
void plim_spec_set_dropout(struct plim_spec *spec, double p);

/* Writes a resolved spec as plimsoll YAML that loads to the same spec (except `source`). The
 * text is malloc'd; the caller frees it. */
enum plim_status plim_spec_write(const struct plim_spec *spec, char **text,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* The keys that the hash covers, all except name and device, as YAML: equal for specs that ask
 * for the same. The text is malloc'd; the caller frees it. */
enum plim_status plim_spec_content(const struct plim_spec *spec, char **text,
                                   struct plim_error *err) PLIM_MUST_CHECK;

#endif
