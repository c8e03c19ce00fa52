/* Modules as in transformers 5.17: the same calls in the same order, so that every temporary lives exactly as long as
 * it does in Python. Modules treat their arguments as operations do: a floating tensor is released when the module
 * returns. Results are floating unless stated otherwise. Shapes: B batch, S sequence, H hidden, A heads, D head size, V
 * vocabulary. */
#ifndef PLIM_NN_H
#define PLIM_NN_H

#include "workloads/engine/ops.h"
#include "workloads/engine/ops_trl.h"

/* --- parameters ------------------------------------------------------------------------------- */

/* The trainable tensors of a model, in the order of model.parameters(). */
struct parameters {
    enum plim_dtype dtype;
    struct tensor **list;
    size_t count, capacity;
    struct tensor **frozen; /* untrained parameters, in the same order: with LoRA those of the base model */
    size_t frozen_count;
    int32_t layer; /* of new parameters (see struct tensor) */
    uint64_t made; /* number of parameters created so far, without those that were tied to another */
    int64_t elements, trainable_elements;
    int64_t linear_elements; /* in the weights of linears that bitsandbytes quantises, without the head */
};

/* The initial values of a parameter. WEIGHT: random, uniform with the standard deviation 0.02 that the families share
 * (initializer_range); the distribution only affects the loss. */
enum parameter_init { INIT_WEIGHT, INIT_ONES, INIT_ZEROS };

/* register_buffer(): makes x a named variable of the memory class "parameters". */
struct tensor *nn_buffer(struct engine *e, struct tensor *x);
/* Returns a parameter with new memory; it requires a gradient. The n-th of a model has the seed n; without memory
 * (engine.meta) the seed is its address. */
struct tensor *nn_parameter(struct engine *e, struct parameters *p, enum parameter_init init,
                            int ndim, const int64_t *shape);
/* Appends a named tensor to the parameters. */
void nn_adopt(struct engine *e, struct parameters *p, struct tensor *x);
/* copy.deepcopy() of a tensor that is not a parameter: clones its storage, and allocates and frees a tensor of one
 * element. Named. */
struct tensor *nn_deep_copy(struct engine *e, struct tensor *x);
/* Ties a module: drops its weight, and replaces it by another module's. */
void nn_tie(struct engine *e, struct parameters *p, struct tensor **weight, struct tensor *to);

/* Moves the last parameter to position `index`, because named_parameters() lists a module's own parameters before those
 * of its submodules. */
void nn_move_last(struct parameters *p, size_t index);

/* Freezes the first `count` of the list, which then need no gradient. Call once, while nothing is frozen. */
void nn_freeze(struct engine *e, struct parameters *p, size_t count);

void nn_initialise(struct engine *e, struct tensor *x, enum parameter_init init, uint64_t seed);
/* parameter.data = parameter.data.clone(): the same parameter with new memory. */
void nn_renew(struct engine *e, struct tensor *parameter);
/* parameter.data = parameter.data.to(dtype): does nothing if it has that type. */
void nn_cast(struct engine *e, struct tensor *parameter, enum plim_dtype dtype);

/* Runs `forward` between the hooks of its module (engine.modules). `weights`: its parameters, terminated by NULL. */
struct tensor *nn_run(struct engine *e, struct tensor *const *weights, int kind,
                      struct tensor *(*forward)(struct engine *e, const void *module,
                                                struct tensor *x),
                      const void *module, struct tensor *x);
/* Kinds of modules. NN_ADAPTED: a LoRA layer, identified by its adapter's A, whose parts are modules of their own.
 * NN_HEAD: a head with a bias of its own, whose parts are modules too. NN_MODEL: a model that accesses a parameter of a
 * part, by which it is identified. NN_LEAF: a module with all parameters of its parts, if hooks treat it as one.
 * NN_OWN: a module with parameters in addition to its parts' that receives its input as a keyword argument: DeepSpeed's
 * hooks ignore keyword arguments and miss the end of its backward (_post_backward_module_hook in
 * runtime/zero/parameter_offload.py), so its own parameters stay gathered until the end of the step. NN_ACCESSES: a
 * module without parameters of its own that also receives its input as a keyword argument and accesses a parameter of a
 * part, by which it is identified. */
enum { NN_LINEAR, NN_NORM, NN_EMBEDDING, NN_ADAPTED, NN_HEAD, NN_MODEL, NN_LEAF, NN_OWN, NN_ACCESSES, NN_KINDS };

/* torch.nn.Embedding: the rows of `weight` */
struct tensor *nn_embedding(struct engine *e, struct tensor *weight, struct tensor *rows);

/* Start and end of a module without parameters of its own, which matter only to hooks; `y` is the module's result.
 * nn_end() returns `y` or its replacement, floating if `y` was. */
void nn_begin(struct engine *e);
struct tensor *nn_end(struct engine *e, struct tensor *y);
/* torch.nn.Dropout */
struct tensor *nn_dropout(struct engine *e, struct tensor *x, double p);

/* --- linear ----------------------------------------------------------------------------------- */

struct lora_adapter {     /* peft: base(x) + B(A(dropout(x))) * scaling */
    struct tensor *a, *b; /* (r, in), (out, r), fp32 */
    struct tensor *magnitude; /* DoRA: (out), fp32; NULL: plain LoRA */
    struct tensor *weight, *bias; /* of its linear; bias may be NULL */
    bool conv1d;                  /* the linear is a Conv1D */
    double dropout, scaling;
    /* For a parameter that is not a linear's weight: the number of matrices in it; a, (r * experts, in), and b, (out, r
     * * experts), have a part for each; 0: a linear. */
    int64_t experts;
    bool transposed;            /* the parameter is (experts, in, out), not (experts, out, in) */
    const struct tensor *last;  /* the last parameter of the module that this one belongs to */
};

/* The LoRA adapters of a block, or of the modules outside of the blocks, in the order of named_modules(). */
struct adapters {
    struct lora_adapter list[12];
    size_t count;
};

struct linear {
    struct tensor *weight; /* (out, in); of a Conv1D (in, out) */
    struct tensor *bias;   /* (out) or NULL */
    int64_t in, out;
    bool conv1d; /* transformers' Conv1D: addmm on the transposed layout */
    bool in_steps; /* FalconLinear: x @ weight.T, and then its bias is added */
    struct tensor *bounds[4]; /* buffers to which gemma4's towers clip input and output: input_min, input_max,
                               * output_min, output_max; NULL: no clipping */
    struct quantized quantized; /* the quantised weight, if `codes` is not NULL */
    struct lora_adapter *lora;
};

static inline bool nn_is_int8(const struct linear *l)
{
    return l->quantized.codes && l->quantized.type == PLIM_QUANTIZED_ROWS;
}

/* True if the parts of LoRA layers are modules of their own (engine.modules). */
static inline bool nn_in_parts(const struct engine *e)
{
    return e->modules && e->modules->access;
}

/* torch.nn.functional.linear(), or its replacement (own_linear of engine.modules). */
struct tensor *nn_product(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias);

void nn_linear_create(struct engine *e, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out, bool bias);
void nn_conv1d_create(struct engine *e, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out);
/* Creates the bounds of a linear that clips (Gemma4ClippableLinear), initially infinite. */
void nn_linear_clip(struct engine *e, const struct parameters *p, struct linear *l);
struct tensor *nn_linear(struct engine *e, const struct linear *l, struct tensor *x);
/* Returns `y`, the base's result (taken), plus the adapter's result for `x` (lent). */
struct tensor *nn_lora(struct engine *e, const struct linear *l, struct tensor *y,
                       struct tensor *x);
/* The same for a quantised linear. */
struct tensor *nn_lora_quantized(struct engine *e, const struct linear *l, struct tensor *y,
                                 struct tensor *x);
/* axolotl's fused functions, which replace linears that all have adapters and use the first one's dropout
 * (engine/ops_lora.h): for queries, keys and values, y named; for attention's output; for gate, up and down, f: SILU or
 * GELU. */
void nn_lora_qkv(struct engine *e, const struct linear *const l[3], struct tensor *x, struct tensor *y[3]);
struct tensor *nn_lora_o(struct engine *e, const struct linear *l, struct tensor *x);
struct tensor *nn_lora_mlp(struct engine *e, enum plim_unary f, const struct linear *const l[3], struct tensor *x);
/* torch.nn.Linear of one of an adapter's matrices. */
struct tensor *nn_adapter_product(struct engine *e, struct tensor *const *matrix, struct tensor *x);
/* An adapted parameter while its module runs (nn/lora_parameter.c): the adapter's matrices, and the adapted value once
 * it has been needed. All named, or NULL. */
struct lora_wrapper {
    const struct lora_adapter *adapter;
    struct tensor *left, *right, *value;
};
/* Call before the module. `a` NULL: the parameter is not adapted. */
void nn_wrap(struct engine *e, struct lora_wrapper *w, const struct lora_adapter *a);
/* Returns the value to use for the parameter `weight`, lent. */
struct tensor *nn_wrapped(struct engine *e, struct lora_wrapper *w, struct tensor *weight);
/* Call after the module: nn_unwrap() drops the adapter's matrices; nn_drop_value() the value, which is dropped once all
 * parameters of that module are unwrapped (parametrize.cached()). */
void nn_unwrap(struct engine *e, struct lora_wrapper *w);
void nn_drop_value(struct engine *e, struct lora_wrapper *w);
/* Calls the hook for a running module, identified by `first` and `kind`, that accesses a weight of another module
 * (engine.modules); NULL and NN_MODEL: the model itself. */
void nn_access_weight(struct engine *e, struct tensor *first, int kind, struct tensor *weight);
/* Creates the magnitude of an adapter whose matrices exist: the norms of the weight's rows. */
void nn_dora_create(struct engine *e, struct parameters *p, struct linear *l);
/* Casts A and B for computing the magnitude: fp16 to fp32. Rebinds both, which are named. */
void nn_dora_widen(struct engine *e, struct tensor *matrices[2]);
/* Returns the magnitude, named, computed from these and the base's weight, as in nn_dora_create(). The caller drops
 * *delta and *sum, which Python holds until the magnitude is a parameter. */
struct tensor *nn_dora_magnitude(struct engine *e, const struct lora_adapter *a, struct tensor *weight,
                                 struct tensor *const matrices[2], struct tensor **delta, struct tensor **sum);
/* Returns `result` of the base plus the adapter's for x, with the magnitude; both are lent. */
struct tensor *nn_dora(struct engine *e, const struct linear *l, struct tensor *result,
                       struct tensor *x);

/* --- norms ------------------------------------------------------------------------------------ */

enum norm_kind {
    NORM_LAYER,     /* torch.nn.LayerNorm */
    NORM_RMS,       /* LlamaRMSNorm: in fp32, weight * x.to(dtype) */
    NORM_RMS_GATED, /* Qwen3_5RMSNormGated: weight * x.to(dtype) * silu(gate.float()); nn_norm_gated() */
    NORM_RMS_GATED_FIRST, /* GraniteMoeHybridRMSNormGated: weight * norm(x.float() * silu(gate.float())).to(dtype);
                           * with groups Zamba2RMSNormGated */
    NORM_RMS_GEMMA, /* GemmaRMSNorm: (x.float() normed * (1 + weight.float())).to(dtype) */
    NORM_RMS_GEMMA4, /* Gemma4RMSNorm: (x.float() * pow(mean, -0.5) * weight.float()).to(dtype); weight may be NULL */
    NORM_RMS_OLMO,   /* Olmo2RMSNorm: (weight * x).to(dtype) */
    NORM_LAYER_FP32, /* OlmoLayerNorm: torch's in fp32, without a weight */
    NORM_LAYER_1P,   /* NemotronLayerNorm1P: torch's with weight + 1, in autocast's type */
    NORM_RMS_T5,      /* T5LayerNorm: weight * (x * rsqrt), cast to weight's type before if that is 16 bits wide */
    NORM_LAYER_STEPS, /* CohereLayerNorm: a LayerNorm in fp32, with one kernel per step */
    /* LigerRMSNorm instead of another RMS norm, only on a simulated device: one kernel, whose gradient of x overwrites
     * that of its result, or is separate. */
    NORM_RMS_LIGER,
    NORM_RMS_LIGER_APART,
    NORM_LAYER_LIGER /* LigerLayerNorm instead of torch's */
};
struct norm {
    enum norm_kind kind;
    struct tensor *weight, *bias;
    double epsilon; /* 0: the default of its kind; affects only values */
    double offset;  /* Liger: added to the weight (Gemma: 1) */
    int64_t groups; /* NORM_RMS_GATED_FIRST: equal parts of x, each with a mean of its own; 0: x is one */
};

void nn_norm_create(struct engine *e, struct parameters *p, struct norm *n, enum norm_kind kind,
                    int64_t size, bool bias);
/* The same with one weight for each head, (heads, size). */
void nn_norm_create_of_heads(struct engine *e, struct parameters *p, struct norm *n, enum norm_kind kind,
                             int64_t heads, int64_t size);
struct tensor *nn_norm(struct engine *e, const struct norm *n, struct tensor *x);
/* NORM_RMS_GATED or NORM_RMS_GATED_FIRST. */
struct tensor *nn_norm_gated(struct engine *e, const struct norm *n, struct tensor *x, struct tensor *gate);

/* --- activations, rotary positions, masks ----------------------------------------------------- */

/* transformers' NewGELUActivation: the tanh formula, with one kernel per step. */
struct tensor *nn_gelu_new(struct engine *e, struct tensor *x);
/* Rebinds *x to cap * tanh(*x / cap). */
void nn_softcap(struct engine *e, struct tensor **x, double cap);

struct rotary;

/* A rope type (transformers' ROPE_INIT_FUNCTIONS). */
struct rope {
    /* Computes the inverse frequencies; `seq` NULL: for the model's own length. */
    struct tensor *(*frequencies)(struct engine *e, const struct rotary *r, struct tensor *seq);
    /* Called first in each forward: `seq` is the largest position + 1, on the device, `length` the same value on the
     * host. NULL: no update. */
    void (*update)(struct engine *e, struct rotary *r, struct tensor *seq, int64_t length);
};

extern const struct rope nn_rope_default, nn_rope_linear, nn_rope_dynamic, nn_rope_yarn,
    nn_rope_longrope, nn_rope_llama3, nn_rope_axial, nn_rope_proportional;

/* A rotary embedding of `dim` rotated dimensions, and its buffers. */
struct rotary {
    const struct rope *rope;
    struct tensor *inv_freq, *original_inv_freq;
    struct tensor *longest; /* dynamic: the sequence length of inv_freq, after it has grown */
    int64_t dim;
    int64_t positions, original_positions; /* of the model; before scaling (longrope) */
    int64_t turning;          /* proportional: number of the dim / 2 angles that rotate; the other frequencies are 0 */
    int64_t longest_document; /* of a packed row, in which positions restart; 0: not packed */
    bool fp32;                             /* cos and sin stay in fp32 (olmo2) */
    bool half;        /* cos and sin have half the width, for nn_rotate_halves() (gpt_oss) */
    bool pairs; /* an angle rotates two adjacent elements (cohere), not elements of the two halves of a head */
    bool of_grids; /* positions are (3, B, S), of images' grids; each of the three rotates this many angles: */
    int64_t sections[3];
    bool by_sections; /* in consecutive sections (qwen2_vl), not interleaved (qwen3_5) */
    bool is_alone;    /* inv_freq has no original_inv_freq (esm) */
    bool is_complex; /* cos has complex numbers, one per angle, (1, S, dim / 2, 2), and sin is NULL (deepseek_v2) */
    bool by_elements; /* positions times frequencies elementwise, not a matrix product (transformers from 5.20 on) */
};
/* Creates the buffers as the constructor does; the caller sets the other fields. */
void nn_rotary_create(struct engine *e, struct rotary *r);
/* inv_freq is computed again when the model's weights are initialised. */
void nn_rotary_initialise(struct engine *e, const struct rotary *r);
/* The same if one module has two of them (gemma3). */
void nn_rotary_initialise_both(struct engine *e, const struct rotary *a, const struct rotary *b);
/* rope.c: inverse frequencies by the rope type's formula, and their update at the start of a forward. */
struct tensor *nn_rope_frequencies(struct engine *e, const struct rotary *r);
/* create_sinusoidal_positions() of gptj: sines and cosines (positions, dim); floating */
struct tensor *nn_sinusoids(struct engine *e, int64_t positions, int64_t dim);
void nn_rope_update(struct engine *e, struct rotary *r, struct tensor *positions);
/* Stores cos and sin (1, S, dim), or half as wide, for positions (1, S), in `dtype`; for grids (B, S, dim); named. */
void nn_rotary(struct engine *e, struct rotary *r, struct tensor *positions, enum plim_dtype dtype,
               struct tensor **cos, struct tensor **sin);
/* x cos + rotate_half(x) sin; x (B, A, S, dim); cos, sin (1, 1, S, dim) */
struct tensor *nn_rotate(struct engine *e, struct tensor *x, struct tensor *cos,
                         struct tensor *sin);
/* The same for pairs of adjacent elements. */
struct tensor *nn_rotate_pairs(struct engine *e, struct tensor *x, struct tensor *cos,
                               struct tensor *sin);
/* The same for x.float(), after swapping the elements of pairs; the result stays in fp32 (ernie4_5). */
struct tensor *nn_rotate_pairs_wide(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin);
/* The same for each half: cat((x1 cos - x2 sin, x2 cos + x1 sin)); cos, sin (1, 1, S, dim / 2). */
struct tensor *nn_rotate_halves(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin);
/* The same for pairs of adjacent elements, which are separated: the first elements of the pairs form the first half of
 * the result (deepseek_v3). */
struct tensor *nn_rotate_apart(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin);
/* Multiplies pairs of adjacent elements of x[0] and x[1] (lent), as complex numbers, by the angles (1, S, dim / 2, 2);
 * y is named, in x's type (deepseek_v2). */
void nn_rotate_complex(struct engine *e, struct tensor *const x[2], struct tensor *angles, struct tensor *y[2]);
/* nn_rotate() of x.float(), which is computed twice; the result stays in fp32 (modernbert). */
struct tensor *nn_rotate_wide(struct engine *e, struct tensor *x, struct tensor *cos,
                              struct tensor *sin);
/* nn_rotate() of q and k (lent); only the first elements are rotated, as many as cos has; y is named and contiguous. */
void nn_rotate_parts(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                     struct tensor *sin, struct tensor *y[2]);
/* The same if Python rotates both before it concatenates either (phi, gpt_neox). `rotated`: the rotated parts, named,
 * if they outlive the call as variables; NULL: each is freed once it is concatenated. */
void nn_rotate_then_join(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                         struct tensor *sin, struct tensor *y[2], struct tensor *rotated[2]);
/* The same for pairs of adjacent elements; rotated parts are freed once they are concatenated (glm). */
void nn_rotate_pairs_then_join(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                               struct tensor *sin, struct tensor *y[2]);

/* transformers' attn_implementation. */
enum attention_function { ATTENTION_SDPA, ATTENTION_EAGER, ATTENTION_FLASH2 };

/* Arguments of create_causal_mask and create_sliding_window_causal_mask. The mask is bool (B, 1, S, S) for SDPA,
 * additive in `dtype` for eager, (B, S) of the unpadded tokens for flash-attention-2, or NULL if none is needed.
 * Named. */
struct mask_request {
    int64_t batch, seq;
    int64_t keys; /* cross-attention: the number of keys; 0: self-attention */
    int64_t past; /* number of earlier tokens whose keys are cached; with a window only those within it */
    enum plim_dtype dtype; /* of the embeddings */
    bool packed, padded;
    bool always;      /* sdpa: the mask is created even if it is not needed (allow_is_causal_skip=False) */
    bool by_position; /* packed: causality is determined by positions, not by indices (5.24) */
    enum attention_function function;
    int64_t window;                /* sliding window; 0: none */
    struct tensor *blocks;         /* (B, S) int64: tokens of one block attend to each other in both directions, within
                                    * the window; -1: in no block. NULL: no blocks. Needs attention_mask */
    bool blocks_last;                     /* a token also attends to its block beyond the window (gemma4_unified) */
    struct tensor *positions;      /* (1, S) int64, or NULL: not passed */
    struct tensor *attention_mask; /* (B, past + S), or NULL: not passed; masks tokens if `padded` (and, if created by
                                    * the model, if `packed`). Lent */
};
double nn_lowest(enum plim_dtype dtype); /* torch.finfo(dtype).min */
struct tensor *nn_causal_mask(struct engine *e, const struct mask_request *r);
/* create_bidirectional_mask, create_bidirectional_sliding_window_mask: the same, but a token also attends to later
 * tokens, with the window in both directions. `packed` is ignored, and `attention_mask` is assumed to mask tokens. */
struct tensor *nn_bidirectional_mask(struct engine *e, const struct mask_request *r);

/* Returns the mask by which layers of linear attention multiply their tokens, named: the attention mask (B, S), lent,
 * if it masks tokens (`hides`), otherwise NULL. */
struct tensor *nn_recurrent_mask(struct engine *e, struct tensor *attention_mask, bool hides);

/* --- attention -------------------------------------------------------------------------------- */

struct attention_call {
    enum attention_function function;
    bool bidirectional;
    struct tensor *mask; /* lent; NULL: none, and the kernel is causal unless bidirectional */
    struct tensor *bias; /* position bias, (1, heads, queries, keys), added to the mask. Lent; NULL: none */
    int64_t groups;      /* query heads per key head */
    double dropout, scaling;
    struct tensor *sinks; /* eager: (A), an additional score per head, which takes part in the softmax but not in the
                           * result (gpt_oss). Lent; NULL: none */
    double softcap;    /* gemma2: with eager and flash-attention-2; 0: none */
    struct tensor *positions; /* flash-attention-2: (1 or B, S), the block's argument. Lent;
                                 NULL: none */
    struct tensor *ends; /* flash-attention-2: boundaries of the documents of a packed row, (documents + 1) int32,
                            from TRL's collator. Lent; NULL: derived from the positions */
    int64_t documents; /* flash-attention-2: number of documents of a packed row; 0: not packed */
    int64_t window; /* flash-attention-2: tokens back, including itself; bidirectional: as many ahead; 0: no window */
    enum plim_dtype low;      /* flash-attention-2: the type to which fp32 queries are cast without autocast */
    bool softmax_fp32; /* eager: softmax(dtype=float32); otherwise in the scores' own type */
    bool softmax_stays; /* eager: the weights keep softmax's type (bert: autocast's fp32) */
    bool upcasts;       /* eager: scores in fp32, without autocast (gpt2: reorder_and_upcast_attn) */
};
/* q (B, A, S, D), k and v (B, A / groups, S, D), lent -> (B, S, A, D) contiguous. The attention weights of the eager
 * path outlive the call, as in Python: the caller drops *weights (NULL for SDPA). */
struct tensor *nn_attention(struct engine *e, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights);

/* --- short convolutions ------------------------------------------------------------------------- */

/* transformers' own causal_conv1d_fn: the causal convolution of x (B, channels, S), lent, with `weight` (channels, 1,
 * taps), in x's type, followed by silu if `silu`; floating. */
struct tensor *nn_causal_conv1d(struct engine *e, struct tensor *weight, struct tensor *bias, struct tensor *x,
                                bool silu);

/* --- the gated delta rule --------------------------------------------------------------------- */

/* torch_chunk_gated_delta_rule of transformers' qwen3_5, with norms of queries and keys: q, k (B, S, heads, D),
 * v (B, S, heads, E), decay and beta (B, S, heads) -> (B, S, heads, E); computed in fp32, returned in q's type. All
 * lent. */
struct tensor *nn_gated_delta_rule(struct engine *e, struct tensor *const qkv[3], struct tensor *decay,
                                   struct tensor *beta);

/* --- the scan of Mamba-2 ---------------------------------------------------------------------- */

/* The arguments of mamba2_chunk_scan(): H heads of P elements, G groups of heads, states of N elements per element. All
 * lent. */
struct mamba2_scan {
    struct tensor *x, *step;         /* (B, S, H, P), and the step sizes before softplus, (B, S, H) */
    struct tensor *b, *c;            /* (B, S, G, N) */
    struct tensor *a;                /* (H), negative */
    struct tensor *skip, *step_bias; /* (H): D, and what is added to the step sizes */
    int64_t chunk;                   /* tokens of a chunk */
    double step_min;                 /* lower bound of the step sizes after softplus */
};
/* mamba2_chunk_scan of transformers' granitemoehybrid: (B, S, H, P), computed and returned in fp32. */
struct tensor *nn_mamba2_scan(struct engine *e, const struct mamba2_scan *s);

/* --- loss ------------------------------------------------------------------------------------- */

/* ForCausalLMLoss: logits (B, S, V) lent, labels (B, S) lent -> scalar. `is_liger`: with the cross entropy of
 * liger-kernel; `is_sum`: the sum, divided by the number of labels in the step, which the caller passes, instead of the
 * mean. */
struct tensor *nn_causal_lm_loss(struct engine *e, struct tensor *logits, struct tensor *labels, bool is_liger,
                                 bool is_sum);
/* LigerForCausalLMLoss: the same from x (B, S, H), lent, and the head's weight, with only a chunk of the logits at a
 * time (`budget` and `softcap` as in op_liger_linear_cross_entropy()). */
struct tensor *nn_liger_causal_lm_loss(struct engine *e, struct tensor *x, struct tensor *weight,
                                       struct tensor *labels, int64_t budget, double softcap, bool is_sum);

/* apply_lce() of cut-cross-entropy (axolotl's fork, transformers/utils.py): the same from x (B, S, H), lent, and the
 * head, without storing logits; `found` labels are not ignored (op_cut_cross_entropy()). */
struct tensor *nn_cut_causal_lm_loss(struct engine *e, const struct linear *head, struct tensor *x,
                                     struct tensor *labels, int64_t found, double softcap, bool is_sum);

/* FusedCausalLMOutput of TRL: values for each token except the last of a row (B, S - 1), named; label_mask: the tokens
 * with a label. NULL if the engine is halted, or if not requested. */
struct fused_output {
    struct tensor *loss, *log_probs, *entropy, *mean_logits, *is_top1, *label_mask;
    struct tensor *aux_loss; /* load-balancing loss of the experts, added by the caller; NULL: none */
    struct tensor *count;    /* saved by the loss's node */
};
/* Computes the output from x (B, S, H), lent, and the head, whose logits the model transforms; labels (B, S), lent,
 * `found` of them not ignored (without those of the first tokens, which are not predicted); wanted: TRL_...
 * (ops_trl.h). lent: receives the replacements of the head's weight and bias, which the model's forward holds until its
 * end; named or NULL; the caller drops them. */
struct fused_output nn_fused_head(struct engine *e, const struct linear *head, struct logit_transform transform,
                                  struct tensor *x, struct tensor *labels, int64_t found, unsigned wanted,
                                  struct tensor *lent[2]);
void nn_fused_output_drop(struct engine *e, struct fused_output *out);

#endif
