/* Modules as transformers 5.17 writes them: the same calls in the same order, so that every
 * temporary lives exactly as long as it does in Python.  Modules borrow their arguments like
 * operations do: a floating tensor is given up when the module returns. Results float. Shapes: B
 * batch, S sequence, H hidden, A heads, D head size, V vocabulary. */
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
    struct tensor **frozen; /* those that are not trained, in that order: under LoRA the base model's */
    size_t frozen_count;
    int32_t layer; /* that new parameters are of (struct tensor) */
    uint64_t made; /* so far, without those that were tied to another */
    int64_t elements, trainable_elements;
    int64_t linear_elements; /* in the weights of linears that bitsandbytes quantises; not the head's */
};

/* What a parameter holds before the first step. WEIGHT: random, uniform with the standard deviation
 * 0.02 that the families share (initializer_range); what it is like changes nothing but the loss. */
enum parameter_init { INIT_WEIGHT, INIT_ONES, INIT_ZEROS };

/* register_buffer(): names x and counts it among the parameters' memory. */
struct tensor *nn_buffer(struct engine *e, struct tensor *x);
/* A parameter on new memory; it requires a gradient. The n-th of a model has the seed n; where it has
 * no memory (engine.meta), its address says the seed. */
struct tensor *nn_parameter(struct engine *e, struct parameters *p, enum parameter_init init,
                            int ndim, const int64_t *shape);
/* Makes a named tensor a parameter: the next one of the list. */
void nn_adopt(struct engine *e, struct parameters *p, struct tensor *x);
/* copy.deepcopy() of a tensor that is no parameter: its storage is cloned, and a tensor of one element
 * made and given up on the way. Named */
struct tensor *nn_deep_copy(struct engine *e, struct tensor *x);
/* A tied module: its weight was made and is given up for another's. */
void nn_tie(struct engine *e, struct parameters *p, struct tensor **weight, struct tensor *to);

/* named_parameters() has a module's own parameters in front of its submodules': the last one that
 * was made goes to the place `index`. */
void nn_move_last(struct parameters *p, size_t index);

/* The first `count` of the list need no gradient any more and are frozen; once, as nothing is frozen yet. */
void nn_freeze(struct engine *e, struct parameters *p, size_t count);

void nn_initialise(struct engine *e, struct tensor *x, enum parameter_init init, uint64_t seed);
/* parameter.data = a copy of it: the same parameter on new memory. */
void nn_renew(struct engine *e, struct tensor *parameter);
/* parameter.data = parameter.data.to(dtype): nothing where it has that type. */
void nn_cast(struct engine *e, struct tensor *parameter, enum plim_dtype dtype);

/* Runs `forward` between the hooks of its module (engine.modules). `weights`: its parameters, NULL behind the last */
struct tensor *nn_run(struct engine *e, struct tensor *const *weights, int kind,
                      struct tensor *(*forward)(struct engine *e, const void *module,
                                                struct tensor *x),
                      const void *module, struct tensor *x);
/* Kinds of modules. NN_ADAPTED: a LoRA layer, told by its adapter's A, whose parts are modules of their own.
 * NN_HEAD: a head with a bias of its own, whose parts are too. NN_MODEL: a model that looks at a parameter, by which it
 * is told, within it. NN_LEAF: one that has all parameters of its parts, where hooks take it so. NN_OWN: one with
 * parameters beside its parts' that gets its input by name: DeepSpeed's hooks see none, and do not tell the end of its
 * backward (_post_backward_module_hook in runtime/zero/parameter_offload.py), so that its own stay until the step's.
 * NN_LOOKS: one without parameters of its own that gets its input by name as well, and looks at a part's, by which it
 * is told. */
enum { NN_LINEAR, NN_NORM, NN_EMBEDDING, NN_ADAPTED, NN_HEAD, NN_MODEL, NN_LEAF, NN_OWN, NN_LOOKS, NN_KINDS };

/* torch.nn.Embedding: the rows of `weight` */
struct tensor *nn_embedding(struct engine *e, struct tensor *weight, struct tensor *rows);

/* A module without parameters of its own, which only hooks notice: it begins, and `y` is its result;
 * returns what stands for that, floating if it did. */
void nn_begin(struct engine *e);
struct tensor *nn_end(struct engine *e, struct tensor *y);
/* torch.nn.Dropout */
struct tensor *nn_dropout(struct engine *e, struct tensor *x, double p);

/* --- linear ----------------------------------------------------------------------------------- */

struct lora_adapter {     /* peft: base(x) + B(A(dropout(x))) * scaling */
    struct tensor *a, *b; /* (r, in), (out, r), fp32 */
    struct tensor *magnitude; /* DoRA: (out), fp32; NULL: plain LoRA */
    struct tensor *weight, *bias; /* of the linear that it stands beside; bias may be NULL, */
    bool conv1d;                  /* and is it a Conv1D? */
    double dropout, scaling;
    /* Of a parameter that is no linear's weight: the matrices that stand in it, of which a, (r * experts, in), and b,
     * (out, r * experts), have a part each; 0: of a linear. */
    int64_t experts;
    bool turned;                /* the parameter is (experts, in, out), not (experts, out, in) */
    const struct tensor *last;  /* the last parameter of the module that it is of */
};

/* The LoRA adapters of a block, or of the modules beside the blocks, in the order of
 * named_modules(). */
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
    struct tensor *bounds[4]; /* buffers, between which gemma4's towers clip what goes in and what comes out: input_min,
                               * input_max, output_min, output_max; NULL: nothing is clipped */
    struct quantized quantized; /* its `codes` are there: what the weight is kept as */
    struct lora_adapter *lora;
};

static inline bool nn_is_int8(const struct linear *l)
{
    return l->quantized.codes && l->quantized.type == PLIM_QUANTIZED_ROWS;
}

/* Are the parts of LoRA layers modules of their own (engine.modules)? */
static inline bool nn_in_parts(const struct engine *e)
{
    return e->modules && e->modules->look;
}

/* What stands for torch.nn.functional.linear() (engine.modules) */
struct tensor *nn_product(struct engine *e, struct tensor *x, struct tensor *weight, struct tensor *bias);

void nn_linear_create(struct engine *e, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out, bool bias);
void nn_conv1d_create(struct engine *e, struct parameters *p, struct linear *l, int64_t in,
                      int64_t out);
/* Makes the bounds of one that clips (Gemma4ClippableLinear), which let everything through. */
void nn_linear_clip(struct engine *e, const struct parameters *p, struct linear *l);
struct tensor *nn_linear(struct engine *e, const struct linear *l, struct tensor *x);
/* The adapter's part of a linear: `y`, the base's result (taken), plus the adapter of `x` (lent). */
struct tensor *nn_lora(struct engine *e, const struct linear *l, struct tensor *y,
                       struct tensor *x);
/* The same beside a quantised one. */
struct tensor *nn_lora_quantized(struct engine *e, const struct linear *l, struct tensor *y,
                                 struct tensor *x);
/* axolotl's fused functions in the place of linears that all have adapters, of which the first one's dropout is taken
 * (engine/ops_lora.h): of queries, keys and values, y named; of attention's output; of gate, up and down, f: SILU or
 * GELU */
void nn_lora_qkv(struct engine *e, const struct linear *const l[3], struct tensor *x, struct tensor *y[3]);
struct tensor *nn_lora_o(struct engine *e, const struct linear *l, struct tensor *x);
struct tensor *nn_lora_mlp(struct engine *e, enum plim_unary f, const struct linear *const l[3], struct tensor *x);
/* torch.nn.Linear of one of an adapter's matrices */
struct tensor *nn_adapter_product(struct engine *e, struct tensor *const *matrix, struct tensor *x);
/* An adapted parameter while the module around it runs (nn/lora_parameter.c): what the adapter makes of it, and what it
 * is then, once it was asked for. All named, or NULL. */
struct lora_wrapper {
    const struct lora_adapter *adapter;
    struct tensor *left, *right, *value;
};
/* Before the module; a: NULL: the parameter is not adapted. */
void nn_wrap(struct engine *e, struct lora_wrapper *w, const struct lora_adapter *a);
/* What stands for the parameter `weight`; lent. */
struct tensor *nn_wrapped(struct engine *e, struct lora_wrapper *w, struct tensor *weight);
/* Behind the module: what the adapter made goes; and the value, which goes once no parameter of that module is adapted
 * any more (parametrize.cached()). */
void nn_unwrap(struct engine *e, struct lora_wrapper *w);
void nn_forget(struct engine *e, struct lora_wrapper *w);
/* The module of `first` and `kind`, which runs, looks at a weight of another one (engine.modules); NULL and NN_MODEL:
 * the model itself. */
void nn_look(struct engine *e, struct tensor *first, int kind, struct tensor *weight);
/* The magnitude of an adapter, which has its matrices: the lengths of the weight's rows. */
void nn_dora_create(struct engine *e, struct parameters *p, struct linear *l);
/* A and B as the magnitude is made of them: in fp32 where they are in fp16. Rebinds both, which are named. */
void nn_dora_widen(struct engine *e, struct tensor *matrices[2]);
/* The magnitude, named, of these and the base's weight, as nn_dora_create() makes it; *delta and *sum, which Python
 * holds until it is a parameter, are the caller's to drop. */
struct tensor *nn_dora_magnitude(struct engine *e, const struct lora_adapter *a, struct tensor *weight,
                                 struct tensor *const matrices[2], struct tensor **delta, struct tensor **sum);
/* `result` of the base plus the adapter of x, with the magnitude; both are lent. */
struct tensor *nn_dora(struct engine *e, const struct linear *l, struct tensor *result,
                       struct tensor *x);

/* --- norms ------------------------------------------------------------------------------------ */

enum norm_kind {
    NORM_LAYER,     /* torch.nn.LayerNorm */
    NORM_RMS,       /* LlamaRMSNorm: in fp32, weight * x.to(dtype) */
    NORM_RMS_GATED, /* Qwen3_5RMSNormGated: weight * x.to(dtype) * silu(gate.float()); nn_norm_gated() */
    NORM_RMS_GEMMA, /* GemmaRMSNorm: (x.float() normed * (1 + weight.float())).to(dtype) */
    NORM_RMS_GEMMA4, /* Gemma4RMSNorm: (x.float() * pow(mean, -0.5) * weight.float()).to(dtype); it may have none */
    NORM_RMS_OLMO,   /* Olmo2RMSNorm: (weight * x).to(dtype) */
    NORM_LAYER_FP32, /* OlmoLayerNorm: torch's in fp32, without a weight */
    NORM_LAYER_1P,   /* NemotronLayerNorm1P: torch's of a weight that counts from 1, in autocast's type */
    NORM_RMS_T5,      /* T5LayerNorm: weight * (x * rsqrt), in weight's type before where that has 16 bits */
    NORM_LAYER_STEPS, /* CohereLayerNorm: a LayerNorm in fp32, every step a kernel */
    /* LigerRMSNorm in the place of another RMS norm, on the simulated device only: one kernel, whose gradient of x
     * takes the place of that of its result, or is apart from it. */
    NORM_RMS_LIGER,
    NORM_RMS_LIGER_APART,
    NORM_LAYER_LIGER /* LigerLayerNorm in the place of torch's */
};
struct norm {
    enum norm_kind kind;
    struct tensor *weight, *bias;
    double epsilon; /* 0: the usual one of its kind. It changes nothing but values. */
    double offset;  /* Liger's: of the weight (Gemma's 1) */
};

void nn_norm_create(struct engine *e, struct parameters *p, struct norm *n, enum norm_kind kind,
                    int64_t size, bool bias);
/* The same whose weight, (heads, size), is one for each head. */
void nn_norm_create_of_heads(struct engine *e, struct parameters *p, struct norm *n, enum norm_kind kind,
                             int64_t heads, int64_t size);
struct tensor *nn_norm(struct engine *e, const struct norm *n, struct tensor *x);
struct tensor *nn_norm_gated(struct engine *e, const struct norm *n, struct tensor *x, struct tensor *gate);

/* --- activations, rotary positions, masks ----------------------------------------------------- */

/* transformers' NewGELUActivation: the formula by tanh, every step a kernel. */
struct tensor *nn_gelu_new(struct engine *e, struct tensor *x);
/* Rebinds *x to cap * tanh(*x / cap). */
void nn_softcap(struct engine *e, struct tensor **x, double cap);

struct rotary;

/* A rope type (transformers' ROPE_INIT_FUNCTIONS). */
struct rope {
    /* The inverse frequencies; `seq` NULL: for the model's own length. */
    struct tensor *(*frequencies)(struct engine *e, const struct rotary *r, struct tensor *seq);
    /* What each forward does first: `seq` is the largest position + 1, on the device, `length` the
     * same as the host knows it. NULL: nothing. */
    void (*update)(struct engine *e, struct rotary *r, struct tensor *seq, int64_t length);
};

extern const struct rope nn_rope_default, nn_rope_linear, nn_rope_dynamic, nn_rope_yarn,
    nn_rope_longrope, nn_rope_llama3, nn_rope_axial, nn_rope_proportional;

/* A rotary embedding of `dim` rotating dimensions, and its buffers. */
struct rotary {
    const struct rope *rope;
    struct tensor *inv_freq, *original_inv_freq;
    struct tensor *longest; /* dynamic: the sequence length that inv_freq is for, once it grew */
    int64_t dim;
    int64_t positions, original_positions; /* of the model; before scaling (longrope) */
    int64_t turning;          /* proportional: how many of dim / 2 angles turn; of the rest the frequencies are 0 */
    int64_t longest_document; /* of a row in which positions start again; 0: they do not */
    bool fp32;                             /* cos and sin stay in fp32 (olmo2) */
    bool half;        /* cos and sin have half the width, for nn_rotate_halves() (gpt_oss) */
    bool pairs; /* an angle is that of two neighbours (cohere), not of the two halves of a head */
    bool of_grids; /* positions are (3, B, S), of images' grids, which turn so many angles each: */
    int64_t sections[3];
    bool by_sections; /* which lie behind one another (qwen2_vl), and not by turns (qwen3_5) */
    bool is_alone;    /* inv_freq has no original beside it (esm) */
    bool is_complex; /* cos is both, a complex number for each angle, (1, S, dim / 2, 2), sin NULL (deepseek_v2) */
    bool by_elements; /* positions times frequencies, not a matrix product (transformers from 5.20 on) */
};
/* Makes the buffers as the constructor does; the rest is given. */
void nn_rotary_create(struct engine *e, struct rotary *r);
/* inv_freq is computed again when the model's weights are initialised */
void nn_rotary_initialise(struct engine *e, const struct rotary *r);
/* the same where one module has two of them (gemma3) */
void nn_rotary_initialise_both(struct engine *e, const struct rotary *a, const struct rotary *b);
/* rope.c: inverse frequencies by the rope type's formula; what a forward does to them first */
struct tensor *nn_rope_frequencies(struct engine *e, const struct rotary *r);
/* create_sinusoidal_positions() of gptj: sines and cosines (positions, dim); floating */
struct tensor *nn_sinusoids(struct engine *e, int64_t positions, int64_t dim);
void nn_rope_update(struct engine *e, struct rotary *r, struct tensor *positions);
/* cos and sin (1, S, dim), or half as wide, of the positions (1, S), in `dtype`; of grids (B, S, dim); named */
void nn_rotary(struct engine *e, struct rotary *r, struct tensor *positions, enum plim_dtype dtype,
               struct tensor **cos, struct tensor **sin);
/* x cos + rotate_half(x) sin; x (B, A, S, dim); cos, sin (1, 1, S, dim) */
struct tensor *nn_rotate(struct engine *e, struct tensor *x, struct tensor *cos,
                         struct tensor *sin);
/* The same where the two halves of a rotation are neighbours */
struct tensor *nn_rotate_pairs(struct engine *e, struct tensor *x, struct tensor *cos,
                               struct tensor *sin);
/* The same of x.float(), whose neighbours change places before, and stays in fp32 (ernie4_5) */
struct tensor *nn_rotate_pairs_wide(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin);
/* The same by halves: cat((x1 cos - x2 sin, x2 cos + x1 sin)); cos, sin (1, 1, S, dim / 2) */
struct tensor *nn_rotate_halves(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin);
/* The same of neighbours, which come apart: the first of each are the first half of the result (deepseek_v3) */
struct tensor *nn_rotate_apart(struct engine *e, struct tensor *x, struct tensor *cos, struct tensor *sin);
/* Neighbours of both of x (lent) as complex numbers, times those of angles (1, S, dim / 2, 2); y named, in x's type
 * (deepseek_v2) */
void nn_rotate_complex(struct engine *e, struct tensor *const x[2], struct tensor *angles, struct tensor *y[2]);
/* The same as nn_rotate() of x.float(), which is computed twice, and stays in fp32 (modernbert) */
struct tensor *nn_rotate_wide(struct engine *e, struct tensor *x, struct tensor *cos,
                              struct tensor *sin);
/* The same of q and k (lent) whose first elements turn, as many as cos has, and the rest stay; y
 * named, contiguous */
void nn_rotate_parts(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                     struct tensor *sin, struct tensor *y[2]);
/* The same where Python turns both before it joins either (phi, gpt_neox). `turned`: the turned
 * parts, named, where they outlive the call as variables; NULL: each goes once it is joined. */
void nn_rotate_then_join(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                         struct tensor *sin, struct tensor *y[2], struct tensor *turned[2]);
/* The same of neighbours, whose turned parts go once they are joined (glm) */
void nn_rotate_pairs_then_join(struct engine *e, struct tensor *const x[2], struct tensor *cos,
                               struct tensor *sin, struct tensor *y[2]);

/* transformers' attn_implementation */
enum attention_function { ATTENTION_SDPA, ATTENTION_EAGER, ATTENTION_FLASH2 };

/* create_causal_mask, create_sliding_window_causal_mask: bool (B, 1, S, S) for SDPA, additive in
 * `dtype` for eager, (B, S) of what is not padded for flash-attention-2, or NULL when none is needed. Named. */
struct mask_request {
    int64_t batch, seq;
    int64_t keys; /* of others, which a decoder looks at; 0: they are the queries' own */
    int64_t past; /* tokens before these, whose keys are kept; of a window no more than it reaches back to */
    enum plim_dtype dtype; /* of the embeddings */
    bool packed, padded;
    bool always;      /* sdpa: it is made whatever it hides (allow_is_causal_skip=False) */
    bool by_position; /* packed: what lies behind is told by positions, not by places (5.24) */
    enum attention_function function;
    int64_t window;                /* sliding window; 0: none */
    struct tensor *blocks;         /* (B, S) int64: tokens of one block see each other, wherever they stand, as far as
                                      the window goes; -1: of none. NULL: there are none. Needs attention_mask */
    bool blocks_last;                     /* a token sees its whole block beyond the window, too (gemma4_unified) */
    struct tensor *positions;      /* (1, S) int64, or NULL: none are passed */
    struct tensor *attention_mask; /* (B, past + S), or NULL: none is passed; hides something if
                                      `padded` (and if `packed`, for one that the model made). Lent */
};
double nn_lowest(enum plim_dtype dtype); /* torch.finfo(dtype).min */
struct tensor *nn_causal_mask(struct engine *e, const struct mask_request *r);
/* create_bidirectional_mask, create_bidirectional_sliding_window_mask: the same, where a token also
 * sees what comes behind it, as far as the window in both directions. `packed` means nothing here,
 * `attention_mask` hides something. */
struct tensor *nn_bidirectional_mask(struct engine *e, const struct mask_request *r);

/* What layers of linear attention multiply their tokens with: an attention mask (B, S), lent, that hides something, or
 * NULL. Named. */
struct tensor *nn_recurrent_mask(struct engine *e, struct tensor *attention_mask, bool hides);

/* --- attention -------------------------------------------------------------------------------- */

struct attention_call {
    enum attention_function function;
    bool bidirectional;
    struct tensor *mask; /* lent; NULL: none, the kernel masks the future unless bidirectional */
    struct tensor *bias; /* of positions, (1, heads, queries, keys), which joins the mask. Lent; NULL: none */
    int64_t groups;      /* query heads per key head */
    double dropout, scaling;
    struct tensor *sinks; /* eager: (A), a score more of each head, which takes its share of the softmax and adds
                             nothing (gpt_oss). Lent; NULL: none */
    double softcap;    /* gemma2: eager's and flash-attention-2's; 0: none */
    struct tensor *positions; /* flash-attention-2: (1 or B, S) that the block was called with. Lent;
                                 NULL: none */
    struct tensor *ends; /* flash-attention-2: where the documents of the one row begin and end, (documents + 1) int32,
                            as TRL's collator says it. Lent; NULL: the positions say it */
    int64_t documents; /* flash-attention-2: in the one row; 0: rows are documents */
    int64_t window; /* flash-attention-2: tokens back, itself one of them, and if bidirectional as many ahead; 0: all */
    enum plim_dtype low;      /* flash-attention-2: what queries in fp32 are cast to without autocast */
    bool softmax_fp32; /* eager: softmax(dtype=float32); else in the scores' own type */
    bool softmax_stays; /* eager: the weights stay in softmax's type (bert: autocast's fp32) */
    bool upcasts;       /* eager: scores in fp32, without autocast (gpt2: reorder_and_upcast_attn) */
};
/* q (B, A, S, D), k and v (B, A / groups, S, D), lent -> (B, S, A, D) contiguous. The attention
 * weights of the eager path outlive the call as they do in Python: *weights is a variable for the
 * caller to drop (NULL for SDPA). */
struct tensor *nn_attention(struct engine *e, const struct attention_call *c, struct tensor *q,
                            struct tensor *k, struct tensor *v, struct tensor **weights);

/* --- short convolutions ------------------------------------------------------------------------- */

/* transformers' own causal_conv1d_fn: of x (B, channels, S), lent, what the tokens before each add to it by `weight`
 * (channels, 1, tokens), in x's type, through silu or not; floating */
struct tensor *nn_causal_conv1d(struct engine *e, struct tensor *weight, struct tensor *x, bool silu);

/* --- the gated delta rule --------------------------------------------------------------------- */

/* torch_chunk_gated_delta_rule of transformers' qwen3_5, with norms of queries and keys: q, k (B, S, heads, D),
 * v (B, S, heads, E), decay and beta (B, S, heads) -> (B, S, heads, E); in fp32, given back in q's type. All lent. */
struct tensor *nn_gated_delta_rule(struct engine *e, struct tensor *const qkv[3], struct tensor *decay,
                                   struct tensor *beta);

/* --- loss ------------------------------------------------------------------------------------- */

/* ForCausalLMLoss: logits (B, S, V) lent, labels (B, S) lent -> scalar. `is_liger`: its cross entropy is
 * liger-kernel's; `is_sum`: the sum over the labels' number in a step, which the caller of the model knows, in place of
 * the mean */
struct tensor *nn_causal_lm_loss(struct engine *e, struct tensor *logits, struct tensor *labels, bool is_liger,
                                 bool is_sum);
/* LigerForCausalLMLoss: the same of x (B, S, H), lent, and the head's weight, with few of the logits at once (`budget`
 * and `softcap` as of op_liger_linear_cross_entropy()) */
struct tensor *nn_liger_causal_lm_loss(struct engine *e, struct tensor *x, struct tensor *weight,
                                       struct tensor *labels, int64_t budget, double softcap, bool is_sum);

/* apply_lce() of cut-cross-entropy (axolotl's fork, transformers/utils.py): the same of x (B, S, H), lent, and the
 * head, with none of the logits; `found` of the labels count (op_cut_cross_entropy()) */
struct tensor *nn_cut_causal_lm_loss(struct engine *e, const struct linear *head, struct tensor *x,
                                     struct tensor *labels, int64_t found, double softcap, bool is_sum);

/* FusedCausalLMOutput of TRL: of each token but the last of a row (B, S - 1), named; label_mask: which have a label.
 * NULL where the engine is halted, and what was not wanted. */
struct fused_output {
    struct tensor *loss, *log_probs, *entropy, *mean_logits, *is_top1, *label_mask;
    struct tensor *aux_loss; /* what balances experts, which others add; NULL: none */
    struct tensor *count;    /* what the loss's node has saved */
};
/* Of x (B, S, H), lent, and the head, whose logits the model transforms; labels (B, S), lent, of which `found` count
 * (but for those of the first tokens, which none is compared with); wanted: TRL_... (ops_trl.h). lent: what stood for
 * its weight and bias, which the model's forward holds to its end; named or NULL, the caller's to drop. */
struct fused_output nn_fused_head(struct engine *e, const struct linear *head, struct logit_transform transform,
                                  struct tensor *x, struct tensor *labels, int64_t found, unsigned wanted,
                                  struct tensor *lent[2]);
void nn_fused_output_drop(struct engine *e, struct fused_output *out);

#endif
