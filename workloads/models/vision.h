/* The vision towers of models of images and text, as in transformers 5.17: vision.c has the interface for the
 * model, vision_parts.c what towers share; those of Qwen's models are in vision_qwen.c, gemma3's in
 * vision_siglip.c, llava's in vision_clip.c, internvl's in vision_internvit.c, mistral3's in vision_pixtral.c, gemma4's
 * in vision_gemma4.c.
 *
 * A batch's images are rows of patches, T in total, each with channels x frames x patch x patch elements. The
 * tower maps them to its own width W, and merges merge x merge of them into one row of the text's width H. These rows
 * replace the image tokens in the text; results of some of the tower's blocks are added there once more after the
 * text's first blocks (deepstack).
 */
#ifndef PLIM_MODELS_VISION_H
#define PLIM_MODELS_VISION_H

#include "audio.h"
#include "modules.h"
#include "workloads/nn/nn.h"
#include "workloads/spec/spec.h"

struct decoder_layer;
struct block_call;

/* Merges patches and maps them to the text's width: Qwen3VLVisionPatchMerger */
struct vision_merger {
    struct norm norm;
    struct linear merging; /* mistral3: from merged patches to the width of one; else none */
    struct linear fc1, fc2;
    struct adapters adapters;
};

struct vision {
    struct linear patch;                      /* gemma4, which has no convolution */
    struct norm patch_norm[3];                /* gemma4_unified: before `patch`, after it, and after the positions */
    struct tensor *standard[2];               /* gemma4: offset and scale of its result; buffers, or NULL */
    struct adapters adapters;                 /* of the modules that read patches */
    struct tensor *patch_weight, *patch_bias; /* (W, channels, frames, patch, patch), siglip without frames; (W) */
    struct tensor *positions;                 /* (positions, W), interpolated to each image's grid, or used directly */
    struct tensor *inv_freq, *original_inv_freq; /* (W / heads / 4); buffers; NULL: no rotary embedding */
    struct tensor *position_ids;              /* siglip, clip: (positions) int64, a buffer */
    struct tensor *class_token;               /* clip: (W), internvit: (1, 1, W); before each image's patches */
    struct norm norm;                         /* siglip: after the last block; pixtral, clip: before the first */
    struct norm last_norm;                    /* clip: of the class token after the last block, which is not used */
    struct tensor *projection;                /* gemma3: (W, H) */
    struct decoder_layer *layers;
    struct vision_merger *mergers; /* the last block's, and then those of deepstack */
    struct tensor *deltas; /* rope_deltas, (B, 1) int64, kept until the next forward */
};

/* The tensors of a forward's images; named, NULL if there are none. */
struct seen_images {
    struct tensor *last;                 /* (T, W), the result of the tower's last block */
    struct tensor *merged, *rows;        /* (rows, H) of all images; the same after torch.split() and cat() */
    struct tensor *mask, *other_mask;    /* (B, S) bool: the tokens of images; of videos */
    struct tensor *positions;            /* (3, B, S) int64, for the rotary embedding; NULL: as for text */
    struct tensor *blocks;               /* (B, S) int64: a token's image, all of which it sees; -1: text */
    struct tensor *deep[PLIM_MAX_DEEP];  /* (rows, H) each */
    struct tensor *outputs;              /* the result of a text block, before images were added to it */
};

/* A kind of tower. */
struct vision_tower {
    /* Makes its parameters and buffers; its layers are `m->vision.layers`. NULL: it has none before the text's. */
    void (*build)(struct engine *e, struct decoder *m);
    /* vision_see(); NULL: images are refused (IMAGES of spec_uncompared.c) */
    void (*see)(struct engine *e, struct decoder *m, struct tensor **embeddings, struct seen_images *seen);
    /* Makes the modules that come after the text's; NULL: none. */
    void (*build_behind)(struct engine *e, struct decoder *m);
    const struct vision_parts *parts; /* in the order of named_modules(); ended by one without a name */
};
extern const struct vision_tower plim_tower_qwen2_vl, plim_tower_qwen2_5_vl, plim_tower_qwen3_vl, plim_tower_gemma3,
    plim_tower_pixtral, plim_tower_clip, plim_tower_internvit, plim_tower_gemma4, plim_tower_gemma4_unified;

/* The owner of a part's modules: the modules that read patches, the blocks, the last merger, the mergers of deepstack;
 * and an audio tower's ends and blocks (audio.h) */
enum vision_owner { VISION_TOWER, VISION_BLOCKS, VISION_MERGER, VISION_DEEP, VISION_AUDIO_FRONT, VISION_AUDIO_BLOCKS,
                    VISION_AUDIO_BACK, VISION_AUDIO_EMBEDDING };
/* What their weights are applied to: each patch, each merged row, or nothing */
enum vision_meets { MEETS_PATCHES, MEETS_ROWS, MEETS_NOTHING };
/* A part of a tower, or several equal ones */
struct vision_parts {
    const char *name; /* %lld: the number, if there are several */
    const struct module *modules;
    enum vision_owner of;
    enum vision_meets meets;
    bool is_behind;   /* it comes after the text's modules */
};

/* One part: a block (struct decoder_layer), a merger (struct vision_merger) and so on */
struct vision_part {
    const struct vision_parts *parts; /* the entry it belongs to, and its number there */
    int64_t number;
    void *owner;
    struct adapters *adapters;
};
/* The `index`-th part in the order of named_modules(); false after the last, and if there is no tower. */
bool vision_part(const struct decoder *m, size_t index, struct vision_part *part);
void vision_part_name(const struct vision_part *part, char name[MODULE_NAME_MAX]);

/* Allocates host memory for the parts of a tower, if the model has one; false: out of host memory. */
bool vision_create(struct decoder *m);
void vision_finish(struct decoder *m);
/* Builds the tower, whose parameters and buffers are the model's first ones; and the modules after the text's. */
void vision_build(struct engine *e, struct decoder *m);
void vision_build_behind(struct engine *e, struct decoder *m);
/* The buffers of towers that follow the parameter `x` (and its adapters) in the order of modules; `out` has room for
 * VISION_BUFFERS_TOGETHER. Returns how many. */
enum { VISION_BUFFERS_TOGETHER = 8 };
size_t vision_buffers_behind(const struct decoder *m, const struct tensor *x, struct tensor **out);
/* All of those, in the order of parts; `out` has room for VISION_BUFFERS. */
enum { VISION_BUFFERS = PLIM_MAX_CLIPPED * (7 * 4 + 10 * 4 + 1) + 3 };
size_t vision_buffers(const struct decoder *m, struct tensor **out);
/* requires_grad_(False) of all its parameters */
void vision_freeze(struct engine *e, struct decoder *m);
/* The adapters of its `index`-th part; NULL behind the last, and where there is no tower. */
struct adapters *vision_adapters(const struct decoder *m, size_t index);
/* The elements of its parameters without adapters, which are not used for text; and the operations for a row's images,
 * counted like those for text in decoder_flops_per_token(). */
int64_t vision_elements(const struct decoder *m);
double vision_flops_per_row(const struct decoder *m);
/* Rebinds the embeddings (B, S, H) to embeddings that include the images. */
void vision_see(struct engine *e, struct decoder *m, struct tensor **embeddings, struct seen_images *seen);
/* Rebinds x (B, S, H), the result of the text's block `layer`, to the sum with deepstack's contribution. */
void vision_deepen(struct engine *e, struct seen_images *seen, int64_t layer, struct tensor **x);
void vision_forget(struct engine *e, struct seen_images *seen);

/* Tensors that gemma4's forward makes for the tokens of images, videos and sounds, whether there are any or not, and
 * holds to its end; named, or NULL. */
struct placeholders {
    struct tensor *of_kind[3], *any; /* (B, S) bool: their positions */
    struct tensor *ids, *embeddings; /* with padding tokens instead */
};
/* Returns ids (B, S) without placeholders, lent. */
struct tensor *vision_hide_placeholders(struct engine *e, const struct decoder *m, struct tensor *ids,
                                        struct placeholders *p);
/* Makes embeddings (B, S, H) without placeholders, which are never read. */
void vision_pad_placeholders(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                             struct placeholders *p);
void vision_forget_placeholders(struct engine *e, struct placeholders *p);

/* --- for the towers (vision_parts.c) ----------------------------------------------------------- */

/* Calls `build` for each of a tower's blocks in turn; parameters made with nn_parameter() belong to that block. */
void vision_build_blocks(struct engine *e, struct decoder *m,
                         void (*build)(struct engine *e, struct decoder *m, struct decoder_layer *l));
/* The convolution that reads patches, a module: pixels (N, channels, h, w) -> (N, W, rows, columns), floating */
struct tensor *vision_convolve(struct engine *e, const struct decoder *m, struct tensor *pixels);
/* Patches of images (N, channels, h, w), in the tower's type, by its convolution: (N, W, rows, columns), named */
struct tensor *vision_patches(struct engine *e, const struct decoder *m, struct tensor *images);
/* A block: x + `attention` of a norm, then + `mlp` of another norm of that; x lent, floating. *weights: dropped at the
 * end of the block */
struct tensor *vision_block(struct engine *e, const struct block_call *b, struct tensor *x,
                            struct tensor *(*attention)(struct engine *e, const struct block_call *b, struct tensor *x,
                                                        struct tensor **weights),
                            struct tensor *(*mlp)(struct engine *e, const struct block_call *b, struct tensor *x));
/* enable_input_require_grads() of what reads patches, which checkpointing calls */
void vision_require_grads(struct engine *e, const struct decoder *m, struct tensor *patches);
/* An MLP of two linears, (N, T, W) lent -> the same, floating */
struct tensor *vision_plain_mlp(struct engine *e, const struct block_call *b, struct tensor *x);
/* Queries, keys and values (N, heads, T, width) of x (N, T, W), all three projected before the first is seen as heads;
 * named */
void vision_project_first(struct engine *e, const struct block_call *b, struct tensor *x, struct tensor *qkv[3]);
/* SiglipEncoderLayer and CLIPEncoderLayer: vision_block() with biases and a plain MLP; x (N, T, W) */
struct tensor *vision_plain_block(struct engine *e, const struct block_call *b, struct tensor *x);
/* Learned positions of patches, of which each image has the same: (1, positions, W), floating */
struct tensor *vision_positions(struct engine *e, const struct decoder *m);
/* position_ids, of so many positions; and once more in _init_weights() */
void vision_build_position_ids(struct engine *e, struct decoder *m, int64_t positions);
void vision_initialise_position_ids(struct engine *e, const struct decoder *m);
/* torch.split() of x into `count` equal parts along its first dimension: a list of floating tensors,
 * to be freed with engine_give_room(); NULL, or a list of NULLs, if the engine is halted */
struct tensor **vision_split(struct engine *e, struct tensor *x, int64_t count);
/* Rebinds the embeddings (B, S, H) to embeddings with the images' rows where their mask is true. */
void vision_place(struct engine *e, const struct seen_images *seen, struct tensor **embeddings);
/* The same of rows that are new: casts seen->rows to the embeddings' type, keeps them for the model's output, and sets
 * the mask. */
void vision_place_rows(struct engine *e, struct decoder *m, struct seen_images *seen, struct tensor **embeddings);
/* Runs all blocks of a tower, which are given nothing else, on x (N, T, W), lent; named */
struct tensor *vision_run_blocks(struct engine *e, const struct decoder *m, struct tensor *x,
                                 struct tensor *(*block)(struct engine *e, const struct block_call *b,
                                                         struct tensor *x));
/* Rebinds x (.., W), named, to what the two linears of a projector, with gelu between, make of it (.., H). */
void vision_project(struct engine *e, const struct vision_merger *projector, struct tensor **x);
/* How patches attend to one another */
struct attention_call vision_attention(const struct decoder *m);
/* The number of image tokens in a mask (B, S): its sum, int64, after a copy of it; named */
struct tensor *vision_count(struct engine *e, struct tensor *mask);
/* The same, after the check that there are as many tokens as rows (get_placeholder_mask()) */
struct tensor *vision_count_placeholders(struct engine *e, struct tensor *mask);

/* vision_index.c: tensors that Python computes from the images' grids before it uses their patches. All named. */
struct vision_index {
    struct tensor *taps, *weights; /* (T, 4) int64 and fp32: the learned positions of a patch and their weights */
    struct tensor *places;         /* (T, 2) int64: row and column */
    struct tensor *ends;           /* (images + 1) int32: boundaries of the images */
    struct tensor *window_ends;    /* (windows + 1) int32: boundaries of the windows; NULL: no windows */
};
void vision_index_make(struct engine *e, const struct decoder *m, struct vision_index *index);
void vision_index_drop(struct engine *e, struct vision_index *index);
/* Returns the number of windows of the images; `lengths`: the patches of each (NULL: not wanted); `order`: the indices
 * of the merged rows, window by window (NULL: not wanted) */
int64_t vision_windows(const struct decoder *m, int64_t *lengths, int64_t *order);
/* Qwen3VLModel.get_rope_index(): the positions of text and images, (3, B, S) int64, and sets m->vision.deltas; named */
struct tensor *vision_text_positions(struct engine *e, struct decoder *m);

#endif
