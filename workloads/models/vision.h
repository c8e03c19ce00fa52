/* The vision towers of models of images and text, as in transformers 5.17: vision.c has the interface for the model,
 * vision_parts.c the parts that towers share; those of Qwen's models are in vision_qwen.c, gemma3's in vision_siglip.c,
 * llava's in vision_clip.c, internvl's in vision_internvit.c, mistral3's in vision_pixtral.c, gemma4's in
 * vision_gemma4.c.
 *
 * A batch's images are rows of patches, T in total, each with channels x frames x patch x patch elements. The tower
 * maps them to its own width W, and merges merge x merge of them into one row of the text's width H. These rows replace
 * the image tokens in the text; results of some of the tower's blocks are added there, too, after the text's first
 * blocks (deepstack). */
#ifndef PLIM_MODELS_VISION_H
#define PLIM_MODELS_VISION_H

#include "audio.h"
#include "modules.h"
#include "workloads/nn/nn.h"
#include "workloads/spec/spec.h"

struct decoder_layer;
struct block_call;

/* A merger or projector, which merges patches and maps them to the text's width, like Qwen3VLVisionPatchMerger. */
struct vision_merger {
    struct norm norm;
    struct linear merging; /* mistral3: from merged patches to the width of one; gemma4: to the text's width */
    struct linear fc1, fc2;
    struct adapters adapters;
};

struct vision {
    struct linear patch;                      /* gemma4, which has no convolution */
    struct norm patch_norm[3];                /* gemma4_unified: before `patch`, after it, and after the positions */
    struct tensor *standard[2];               /* gemma4: offset and scale of its result; buffers, or NULL */
    struct adapters adapters;                 /* of the modules that embed patches */
    struct tensor *patch_weight, *patch_bias; /* (W, channels, frames, patch, patch), siglip without frames; (W) */
    struct tensor *positions;                 /* learned positions (positions, W), interpolated to each image's grid, or
                                               * used directly; gemma4: (2, positions, W), unified: (positions, 2, W);
                                               * internvit: (1, positions, W) */
    struct tensor *inv_freq, *original_inv_freq; /* (W / heads / 4), pixtral (W / heads / 2); buffers; NULL: no rotary
                                                  * embedding */
    struct tensor *position_ids;              /* siglip, clip: (positions) int64, a buffer */
    struct tensor *class_token;               /* clip: (W), internvit: (1, 1, W); before each image's patches */
    struct norm norm;                         /* siglip: after the last block; pixtral, clip: before the first */
    struct norm last_norm;                    /* clip: of the class token after the last block; its result is unused */
    struct tensor *projection;                /* gemma3: (W, H) */
    struct decoder_layer *layers;
    struct vision_merger *mergers; /* the one after the last block, then those of deepstack */
    struct tensor *deltas; /* rope_deltas, (B, 1) int64, kept until the next forward */
};

/* The tensors of a forward's images; named, or NULL. */
struct encoded_images {
    struct tensor *last;                 /* (T, W), the result of the tower's last block */
    struct tensor *merged, *rows;        /* (rows, H) of all images; the same after torch.split() and cat() */
    struct tensor *mask, *other_mask;    /* (B, S) bool: the tokens of images; of videos */
    struct tensor *positions;            /* (3, B, S) int64, for the rotary embedding; NULL: the text's positions */
    struct tensor *blocks;               /* (B, S) int64: a token's image, to all of which it attends; -1: text */
    struct tensor *deep[PLIM_MAX_DEEP];  /* (rows, H) each */
    struct tensor *outputs;              /* the result of a text block, before images were added to it */
};

/* The functions and parts of a kind of tower. */
struct vision_tower {
    /* Creates its parameters and buffers; its layers are `m->vision.layers`. NULL: it has none before the text's. */
    void (*build)(struct engine *e, struct decoder *m);
    /* vision_encode(). NULL: images are not supported (IMAGES of spec_uncompared.c). */
    void (*encode)(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded);
    /* Creates the modules after the text's; NULL: none. */
    void (*build_behind)(struct engine *e, struct decoder *m);
    const struct vision_parts *parts; /* in the order of named_modules(); terminated by one without a name */
};
extern const struct vision_tower plim_tower_qwen2_vl, plim_tower_qwen2_5_vl, plim_tower_qwen3_vl, plim_tower_gemma3,
    plim_tower_pixtral, plim_tower_clip, plim_tower_internvit, plim_tower_gemma4, plim_tower_gemma4_unified;

/* The owner of a part's modules: the modules that embed patches, the blocks, the last merger, the mergers of deepstack;
 * and an audio tower's first and last modules, blocks and embedding (audio.h). */
enum vision_owner { VISION_TOWER, VISION_BLOCKS, VISION_MERGER, VISION_DEEP, VISION_AUDIO_FRONT, VISION_AUDIO_BLOCKS,
                    VISION_AUDIO_BACK, VISION_AUDIO_EMBEDDING };
/* The input to which their weights are applied: each patch, each merged row, or none. */
enum vision_meets { MEETS_PATCHES, MEETS_ROWS, MEETS_NOTHING };
/* A part of a tower, or several identical ones. */
struct vision_parts {
    const char *name; /* %lld: its number, if there are several */
    const struct module *modules;
    enum vision_owner of;
    enum vision_meets meets;
    bool is_behind;   /* it comes after the text's modules */
};

/* A single part: a block (struct decoder_layer), a merger (struct vision_merger) and so on. */
struct vision_part {
    const struct vision_parts *parts; /* the entry it belongs to */
    int64_t number;                   /* its number in this entry */
    void *owner;
    struct adapters *adapters;
};
/* Stores the `index`-th part in the order of named_modules(). Returns false after the last one, and without a
 * tower. */
bool vision_part(const struct decoder *m, size_t index, struct vision_part *part);
void vision_part_name(const struct vision_part *part, char name[MODULE_NAME_MAX]);

/* Allocates host memory for the parts of a tower, if the model has one; false: out of host memory. */
bool vision_create(struct decoder *m);
void vision_finish(struct decoder *m);
/* Build the tower, whose parameters and buffers are the model's first ones; and the modules after the text's. */
void vision_build(struct engine *e, struct decoder *m);
void vision_build_behind(struct engine *e, struct decoder *m);
/* Stores the towers' buffers that follow the parameter `x` (and its adapters) in the order of modules; `out` has room
 * for VISION_BUFFERS_TOGETHER. Returns their number. */
enum { VISION_BUFFERS_TOGETHER = 8 };
size_t vision_buffers_behind(const struct decoder *m, const struct tensor *x, struct tensor **out);
/* Stores all such buffers, in the order of parts; `out` has room for VISION_BUFFERS. Returns their number. */
enum { VISION_BUFFERS = PLIM_MAX_CLIPPED * (7 * 4 + 10 * 4 + 1) + 3 };
size_t vision_buffers(const struct decoder *m, struct tensor **out);
/* requires_grad_(False) of all its parameters. */
void vision_freeze(struct engine *e, struct decoder *m);
/* Returns the adapters of its `index`-th part; NULL after the last one, and without a tower. */
struct adapters *vision_adapters(const struct decoder *m, size_t index);
/* Return the number of elements of its parameters without adapters, which are not used for text; and the operations for
 * a row's images, counted like those for text in decoder_flops_per_token(). */
int64_t vision_elements(const struct decoder *m);
double vision_flops_per_row(const struct decoder *m);
/* Runs the tower, and rebinds the embeddings (B, S, H) to embeddings that include the images. */
void vision_encode(struct engine *e, struct decoder *m, struct tensor **embeddings, struct encoded_images *encoded);
/* Rebinds x (B, S, H), the result of the text's block `layer`, to the sum with deepstack's contribution. */
void vision_deepen(struct engine *e, struct encoded_images *encoded, int64_t layer, struct tensor **x);
void vision_drop(struct engine *e, struct encoded_images *encoded); /* drops its tensors */

/* Tensors that gemma4's forward creates for the tokens of images, videos and audio, whether or not there are any, and
 * holds until its end; named, or NULL. */
struct placeholders {
    struct tensor *of_kind[3], *any; /* (B, S) bool: masks of each kind, and of any */
    struct tensor *ids, *embeddings; /* with padding tokens instead */
};
/* Creates the masks, and returns ids (B, S) with padding tokens instead of placeholders, lent. */
struct tensor *vision_hide_placeholders(struct engine *e, const struct decoder *m, struct tensor *ids,
                                        struct placeholders *p);
/* Creates embeddings (B, S, H) with padding instead of placeholders, which are never read. */
void vision_pad_placeholders(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                             struct placeholders *p);
void vision_drop_placeholders(struct engine *e, struct placeholders *p);

/* --- for the towers (vision_parts.c) ----------------------------------------------------------- */

/* Calls `build` for each of a tower's blocks in turn; parameters created by nn_parameter() belong to that block. */
void vision_build_blocks(struct engine *e, struct decoder *m,
                         void (*build)(struct engine *e, struct decoder *m, struct decoder_layer *l));
/* Runs the convolution that embeds patches, a module: pixels (N, channels, h, w) -> (N, W, rows, columns), floating. */
struct tensor *vision_convolve(struct engine *e, const struct decoder *m, struct tensor *pixels);
/* Casts images (N, channels, h, w) to the tower's type, and embeds their patches: (N, W, rows, columns), named. */
struct tensor *vision_patches(struct engine *e, const struct decoder *m, struct tensor *images);
/* Runs a block: h = x + attention(norm[0](x)), then h + mlp(norm[1](h)); x lent, the result floating. The block drops
 * *weights at its end. */
struct tensor *vision_block(struct engine *e, const struct block_call *b, struct tensor *x,
                            struct tensor *(*attention)(struct engine *e, const struct block_call *b, struct tensor *x,
                                                        struct tensor **weights),
                            struct tensor *(*mlp)(struct engine *e, const struct block_call *b, struct tensor *x));
/* enable_input_require_grads() of the module that embeds patches; checkpointing calls it. */
void vision_require_grads(struct engine *e, const struct decoder *m, struct tensor *patches);
/* An MLP of two linears, (N, T, W) lent -> the same shape, floating. */
struct tensor *vision_plain_mlp(struct engine *e, const struct block_call *b, struct tensor *x);
/* Projects x (N, T, W) to queries, keys and values (N, heads, T, width), named. Computes all three projections before
 * it splits them into heads. */
void vision_project_first(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor *qkv[3]);
/* SiglipEncoderLayer and CLIPEncoderLayer: vision_block() with biases and a plain MLP; x (N, T, W). */
struct tensor *vision_plain_block(struct engine *e, const struct block_call *b, struct tensor *x);
/* Returns the learned positions of patches, the same for each image: (1, positions, W), floating. */
struct tensor *vision_positions(struct engine *e, const struct decoder *m);
/* Create the buffer position_ids, and set it again, like _init_weights(). */
void vision_build_position_ids(struct engine *e, struct decoder *m, int64_t positions);
void vision_initialise_position_ids(struct engine *e, const struct decoder *m);
/* torch.split() of x into `count` equal parts along its first dimension. Returns a list of floating tensors, to be
 * freed with engine_free_host(); NULL, or a list of NULLs, if the engine is halted. */
struct tensor **vision_split(struct engine *e, struct tensor *x, int64_t count);
/* Rebinds the embeddings (B, S, H) to embeddings with the images' rows where their mask is true. */
void vision_scatter(struct engine *e, const struct encoded_images *encoded, struct tensor **embeddings);
/* Casts encoded->rows to the embeddings' type, stores them for the model's output (m->encoded), sets the mask, and
 * calls vision_scatter(). */
void vision_scatter_rows(struct engine *e, struct decoder *m, struct encoded_images *encoded,
                         struct tensor **embeddings);
/* Runs all blocks of a tower, which have no other arguments, on x (N, T, W), lent; named. */
struct tensor *vision_run_blocks(struct engine *e, const struct decoder *m, struct tensor *x,
                                 struct tensor *(*block)(struct engine *e, const struct block_call *b,
                                                         struct tensor *x));
/* Runs the two linears of a projector, with gelu between them. Rebinds x (.., W), named, to the result (.., H). */
void vision_project(struct engine *e, const struct vision_merger *projector, struct tensor **x);
/* Returns the attention call of a tower's block: bidirectional, without a mask. */
struct attention_call vision_attention(const struct decoder *m);
/* Allocates like the sum of a mask (B, S), the number of image tokens: a scalar int64, and a temporary copy of the
 * mask in int64. Returns the scalar, whose value is not computed; named. */
struct tensor *vision_count(struct engine *e, struct tensor *mask);
/* The same, with the check that there are as many tokens as rows (get_placeholder_mask()). */
struct tensor *vision_count_placeholders(struct engine *e, struct tensor *mask);

/* vision_index.c: tensors that Python computes from the images' grids before it processes their patches. All named. */
struct vision_index {
    struct tensor *taps, *weights; /* (T, 4) int64 and fp32: the learned positions of a patch and their weights */
    struct tensor *position_ids;         /* (T, 2) int64: row and column */
    struct tensor *ends;           /* (images + 1) int32: boundaries of the images */
    struct tensor *window_ends;    /* (windows + 1) int32: boundaries of the windows; NULL: no windows */
};
void vision_index_make(struct engine *e, const struct decoder *m, struct vision_index *index);
void vision_index_drop(struct engine *e, struct vision_index *index);
/* Returns the number of windows of the images. Stores the number of patches of each in `lengths`, and the indices of
 * the merged rows, window by window, in `order`; each may be NULL. */
int64_t vision_windows(const struct decoder *m, int64_t *lengths, int64_t *order);
/* Qwen3VLModel.get_rope_index(): returns the positions of text and images, (3, B, S) int64, named, and sets
 * m->vision.deltas. */
struct tensor *vision_text_positions(struct engine *e, struct decoder *m);

#endif
