/* What sets llama's relatives apart, whose code is llama.c. */
#ifndef PLIM_MODELS_LLAMA_TRAITS_H
#define PLIM_MODELS_LLAMA_TRAITS_H

#include "model.h"

/* Where a block may have a norm: index of decoder_layer.norm. */
enum { BEFORE_ATTENTION, BEHIND_ATTENTION, BEFORE_MLP, BEHIND_MLP, NORM_PLACES };
enum {
    PRE = 1 << BEFORE_ATTENTION | 1 << BEFORE_MLP,
    POST = 1 << BEHIND_ATTENTION | 1 << BEHIND_MLP
};

/* What the norms of queries and keys see: a head each before heads and positions change places, or
 * after it, or once it has turned, or all heads at once. */
enum head_norm { HEAD_NORM_NONE, HEAD_NORM_SPLIT, HEAD_NORM_TRANSPOSED, HEAD_NORM_TURNED, HEAD_NORM_WHOLE };

struct llama_traits {
    enum norm_kind norm;
    uint8_t places; /* which norms a block has */
    enum head_norm head_norm;
    bool qkv_bias; /* always; the others have attention_bias, on o too */
    bool o_plain;  /* no bias on o, whatever attention_bias says */
    bool fused;    /* one projection for q, k, v, one for gate and up; a part of the head rotates */
    bool rotates_in_fp32; /* cos and sin are fp32; what they turn is cast back */
    bool scales_embeddings;
    bool two_rotaries; /* one for each kind of layer */
    bool softcaps_attention;
    bool sinks;          /* each head has a score that stands for no token */
    bool rotates_halves; /* nn_rotate_halves() */
    bool norm_bias; /* norms have biases */
    bool plain_mlp; /* fc1 and fc2, without a gate */
    bool drops_inside; /* dropouts of attention and MLP are functions within these modules */
    bool fused_mlp;  /* one projection for gate and up alone */
    bool pairs;     /* neighbours of a head turn together, in fp32, and not its halves */
    bool some_pairs; /* so do neighbours of a part of the head, in their own type, with cos and sin of halves */
    bool wide_pairs; /* so do those of all of the head: nn_rotate_pairs_wide() */
    bool turns_complex; /* neighbours are complex numbers: nn_rotate_complex() */
    bool parallel;  /* attention and MLP side by side on one norm */
    bool turns_part;  /* a part of the head turns; each turned part goes once it is joined to the rest */
    bool turns_first; /* a part of the head turns; both turned parts live until both are joined to the rest */
    enum { NO_GRIDS, GRIDS, GRIDS_ALONE } of_grids; /* positions are those of images' grids, too, or alone */
    bool norms_first; /* a block's norms are made before its MLP */
    bool convolves; /* short convolutions in the place of most attentions */
    bool projects_first; /* all three projections come before their results are seen as heads */
    bool norm_last; /* the last norm is made behind the rotary embedding */
    bool gated;     /* what the attention gives is multiplied with a sigmoid of a second half of the queries */
};

/* By family; empty of others */
extern const struct llama_traits plim_llama_traits[PLIM_FAMILY_COUNT];

#endif
