/* Traits of the families that share llama's code, llama.c. */
#ifndef PLIM_MODELS_LLAMA_TRAITS_H
#define PLIM_MODELS_LLAMA_TRAITS_H

#include "model.h"

/* Where a block may have a norm: index of decoder_layer.norm. */
enum { BEFORE_ATTENTION, BEHIND_ATTENTION, BEFORE_MLP, BEHIND_MLP, NORM_PLACES };
enum {
    PRE = 1 << BEFORE_ATTENTION | 1 << BEFORE_MLP,
    POST = 1 << BEHIND_ATTENTION | 1 << BEHIND_MLP
};

/* Where queries and keys are normalised: each head before heads and positions are transposed, after that, or after the
 * rotary embedding; or all heads at once. */
enum head_norm { HEAD_NORM_NONE, HEAD_NORM_SPLIT, HEAD_NORM_TRANSPOSED, HEAD_NORM_TURNED, HEAD_NORM_WHOLE };

struct llama_traits {
    enum norm_kind norm;
    uint8_t places; /* which norms a block has */
    enum head_norm head_norm;
    bool qkv_bias; /* q, k, v always have biases; in other families attention_bias decides, also for o */
    bool o_plain;  /* attention_bias does not apply to o */
    bool fused;    /* one projection for q, k, v, one for gate and up; only a part of the head is rotated */
    bool rotates_in_fp32; /* cos and sin are fp32; the rotated tensor is cast back */
    bool scales_embeddings;
    bool two_rotaries; /* full and sliding layers have a rotary embedding each */
    bool softcaps_attention;
    bool sinks;          /* each head has an additional score that belongs to no token */
    bool rotates_halves; /* nn_rotate_halves() */
    bool norm_bias; /* norms have biases */
    bool plain_mlp; /* fc1 and fc2, without a gate */
    bool drops_inside; /* dropouts of attention and MLP are functions within these modules */
    bool fused_mlp;  /* gate and up have one fused projection; q, k, v do not */
    bool pairs;     /* rotates adjacent elements of a head as pairs, in fp32, instead of its halves */
    bool some_pairs; /* the same for a part of the head, in its own type, with cos and sin as for halves */
    bool wide_pairs; /* the same for the whole head: nn_rotate_pairs_wide() */
    bool turns_complex; /* adjacent elements are complex numbers: nn_rotate_complex() */
    bool parallel;  /* attention and MLP in parallel on one norm */
    bool turns_part;  /* rotates a part of the head; each rotated part is freed once it is joined to the rest */
    bool turns_first; /* the same; both rotated parts live until both are joined to the rest */
    enum { NO_GRIDS, GRIDS, GRIDS_ALONE } of_grids; /* positions also come from images' grids, or only from them */
    bool norms_first; /* a block's norms are constructed before its MLP */
    bool attends_last; /* its attention is constructed after its MLP */
    bool gates_first;  /* with fused_mlp: activation(gate) * up, in this order */
    bool convolves; /* short convolutions instead of most attentions */
    bool mamba;     /* Mamba-2 layers instead of most attentions; experts are beside the MLP, not instead of it */
    bool projects_first; /* all three projections run before their results are viewed as heads */
    bool head_bias; /* the head has a bias if attention_bias is set */
    bool norm_last; /* the final norm is constructed after the rotary embedding */
    bool gated;     /* attention's result is multiplied by the sigmoid of a gate, which the query projection also
                     * computes */
    bool gates_apart; /* the same with a linear of its own for the gate (project_then_norm()) */
};

/* By family; empty for others */
extern const struct llama_traits plim_llama_traits[PLIM_FAMILY_COUNT];

#endif
