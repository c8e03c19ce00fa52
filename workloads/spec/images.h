/* Vision towers, and the images in rows of text. */
#ifndef PLIM_WORKLOADS_SPEC_IMAGES_H
#define PLIM_WORKLOADS_SPEC_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Activation functions as in transformers' ACT2FN (gelu_new is a Python formula of
 * eight kernels, gelu_pytorch_tanh one kernel). quick_gelu: x * sigmoid(1.702 x). gelu_python: x * 0.5 * (1 + erf(x /
 * sqrt(2))), step by step. xielu has parameters: apertus. gelu_fast: not in these families. */
enum plim_activation {
    PLIM_ACTIVATION_GELU, PLIM_ACTIVATION_GELU_NEW, PLIM_ACTIVATION_GELU_PYTORCH_TANH,
    PLIM_ACTIVATION_SILU, PLIM_ACTIVATION_RELU, PLIM_ACTIVATION_RELU2, PLIM_ACTIVATION_QUICK_GELU,
    PLIM_ACTIVATION_XIELU, PLIM_ACTIVATION_GELU_PYTHON
};

/* Functions of an MLP as t5's feed_forward_proj names them: those above in their order, and the same with a gate. */
enum plim_feed_forward { PLIM_FEED_GATED = PLIM_ACTIVATION_GELU_PYTHON + 1, PLIM_FEED_COUNT = 2 * PLIM_FEED_GATED };

enum { PLIM_MAX_DEEP = 16, PLIM_GRIDS = 3, PLIM_MAX_CLIPPED = 64 /* blocks of gemma4's towers */ };

/* The vision tower of a model of images and text (vision_config): a transformer over the patches of all images of a
 * batch. Its result, one row of the text's width for merge_size x merge_size patches, replaces the image tokens in the
 * text. layers 0: no tower (but see has_no_blocks). */
struct plim_vision {
    int64_t layers, hidden_size, intermediate_size, heads;
    int64_t kv_heads, head_dim; /* gemma4; 0 (other towers): as many as heads; width / heads */
    bool has_no_blocks;         /* gemma4_unified: patches become tokens only by linears and norms */
    bool clips, standardizes;   /* gemma4: its linears clip input and output (use_clipped_linears); its result is scaled
                                   by buffers */
    int64_t channels, patch_size, frames; /* of a patch; frames: temporal_patch_size, how often an image is repeated */
    int64_t merge_size;      /* spatial_merge_size */
    int64_t positions;       /* a square of learned positions, interpolated to an image's grid; 0: none */
    int64_t image_size;      /* width and height of all images; 0: images keep their sizes */
    int64_t image_tokens;    /* tokens of an image, if all have one size: mm_tokens_per_image */
    bool row_ends;           /* pixtral: each row of an image's tokens is followed by a text token; images have any
                                size */
    bool by_ids;             /* images are recognised only by their tokens */
    bool has_class;          /* clip, internvit: before an image's patches is a token for the whole image, which the
                                text does not get */
    bool has_tiles;          /* internvit: image_size is that of tiles; an image is a canvas of rows and columns of
                                them, and if there are several, then one more of the whole image */
    bool attention_bias;     /* internvit: biases of queries, keys and values */
    int64_t mlp_ratio;       /* qwen2_vl: intermediate_size in multiples of hidden_size; already applied */
    int64_t window_size;     /* pixels: only patches within a square of this size see each other; 0: the whole image */
    int64_t out_hidden_size; /* of the text */
    enum plim_activation activation;
    int64_t deep[PLIM_MAX_DEEP]; /* deepstack_visual_indexes: blocks whose outputs go to the text's first blocks */
    int64_t deep_count;
    int64_t full[PLIM_MAX_DEEP]; /* fullatt_block_indexes: with windows, the blocks without them */
    int64_t full_count;
};

static inline bool plim_vision_exists(const struct plim_vision *vision)
{
    return vision->layers || vision->has_no_blocks;
}

/* The audio tower of gemma4 (audio_config); its weights are allocated, but no row has sound. layers 0: none. */
struct plim_audio {
    int64_t layers, hidden_size, heads;
    int64_t channels[2]; /* subsampling_conv_channels */
    int64_t kernel_size; /* of a block's convolution */
    int64_t out_size;    /* output_proj_dims; gemma4_unified, which has no tower: audio_embed_dim, or 0 */
    bool clips;          /* as in a vision tower */
};

/* The images in each row of a model that has a vision tower. */
struct plim_images {
    int64_t count;         /* 0: only text; -1 (only in a spec): one if there is a tower */
    int64_t pixels;        /* only in a spec: the most pixels of an image, as a square, if height and */
    int64_t height, width; /* width are 0: the size after the model's processor */
};

#endif
