/* Vision towers, and the images in rows of text. */
#ifndef PLIM_WORKLOADS_SPEC_IMAGES_H
#define PLIM_WORKLOADS_SPEC_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Activation functions as transformers' ACT2FN runs them (gelu_new is the python formula of
 * eight kernels, gelu_pytorch_tanh one kernel). quick_gelu: x * sigmoid(1.702 x). gelu_python: x * 0.5 * (1 + erf(x /
 * sqrt(2))), step by step. gelu_fast: not in these families. */
enum plim_activation {
    PLIM_ACTIVATION_GELU, PLIM_ACTIVATION_GELU_NEW, PLIM_ACTIVATION_GELU_PYTORCH_TANH,
    PLIM_ACTIVATION_SILU, PLIM_ACTIVATION_RELU, PLIM_ACTIVATION_RELU2, PLIM_ACTIVATION_QUICK_GELU,
    PLIM_ACTIVATION_GELU_PYTHON
};

/* Functions of an MLP as t5's feed_forward_proj names them: those above in their order, and the same with a gate. */
enum plim_feed_forward { PLIM_FEED_GATED = PLIM_ACTIVATION_GELU_PYTHON + 1, PLIM_FEED_COUNT = 2 * PLIM_FEED_GATED };

enum { PLIM_MAX_DEEP = 16, PLIM_GRIDS = 3, PLIM_MAX_CLIPPED = 64 /* blocks of gemma4's towers */ };

/* The vision tower of a model of images and text (vision_config): a transformer over the patches of all images of a
 * batch, whose result, merge_size x merge_size patches in one row as wide as the text, stands in the text at the places
 * of the images' tokens. Without layers there is none. */
struct plim_vision {
    int64_t layers, hidden_size, intermediate_size, heads;
    int64_t kv_heads, head_dim; /* gemma4, of whose other towers heads divide the width; 0: as many as heads */
    bool has_no_blocks;         /* gemma4_unified: patches become tokens by linears and norms alone */
    bool clips, standardizes;   /* gemma4: its linears clip what goes in and what comes out; use_clipped_linears; what
                                   it makes is scaled by buffers */
    int64_t channels, patch_size, frames; /* of a patch: temporal_patch_size, as often as which an image is repeated */
    int64_t merge_size;      /* spatial_merge_size */
    int64_t positions;       /* learned ones, a square of them, which an image's grid is interpolated from; 0: none */
    int64_t image_size;      /* width and height of all images; 0: they are as large as they are */
    int64_t image_tokens;    /* which an image becomes, where all are of one size: mm_tokens_per_image */
    bool row_ends;           /* pixtral: a token of text stands behind each row of an image's; images are of any size,
                                and told by their tokens alone */
    int64_t mlp_ratio;       /* qwen2_vl: intermediate_size in multiples of hidden_size; already applied */
    int64_t window_size;     /* pixels: patches of a square of so many see each other alone; 0: all of an image do */
    int64_t out_hidden_size; /* of the text */
    enum plim_activation activation;
    int64_t deep[PLIM_MAX_DEEP]; /* deepstack_visual_indexes: whose results join the text's first blocks */
    int64_t deep_count;
    int64_t full[PLIM_MAX_DEEP]; /* fullatt_block_indexes: blocks in which all of an image do, beside windows */
    int64_t full_count;
};

static inline bool plim_vision_is_there(const struct plim_vision *vision)
{
    return vision->layers || vision->has_no_blocks;
}

/* The audio tower of gemma4 (audio_config), whose weights are there; no row has sound. Without layers there is none. */
struct plim_audio {
    int64_t layers, hidden_size, heads;
    int64_t channels[2]; /* subsampling_conv_channels */
    int64_t kernel_size; /* of a block's convolution */
    int64_t out_size;    /* output_proj_dims; of gemma4_unified, which has no tower, audio_embed_dim, or 0 */
    bool clips;          /* as of a vision tower */
};

/* The images in each row of a model that has a vision tower. */
struct plim_images {
    int64_t count;         /* 0: text alone; -1, of a spec alone: one where there is a tower */
    int64_t pixels;        /* of a spec alone: an image has at most as many, as a square, where */
    int64_t height, width; /* these are 0: as the model's processor leaves images */
};

#endif
