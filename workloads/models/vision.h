/* The vision towers of models of images and text, as transformers 5.17 writes them: vision.c is what the
 * model asks of them, vision_parts.c what they share; those of Qwen's models are in vision_qwen.c, gemma3's in
 * vision_siglip.c, mistral3's in vision_pixtral.c, gemma4's in vision_gemma4.c.
 *
 * A batch's images are rows of patches, T of all images, each of channels x frames x patch x patch numbers. The
 * tower makes them of its own width W, and merges merge x merge of them into one row of the text's width H. These stand
 * in the text where its image tokens are; results of some of its blocks are added there once more behind the text's
 * first blocks (deepstack).
 */
#ifndef PLIM_MODELS_VISION_H
#define PLIM_MODELS_VISION_H

#include "audio.h"
#include "modules.h"
#include "workloads/nn/nn.h"
#include "workloads/spec/spec.h"

struct decoder_layer;
struct block_call;

/* What makes rows of the text's width of patches that are merged: Qwen3VLVisionPatchMerger */
struct vision_merger {
    struct norm norm;
    struct linear merging; /* mistral3: of merged patches their mean's width; else none */
    struct linear fc1, fc2;
    struct adapters adapters;
};

struct vision {
    struct linear patch;                      /* gemma4, which has no convolution */
    struct norm patch_norm[3];                /* gemma4_unified: in front of it, behind it, and behind positions */
    struct tensor *standard[2];               /* gemma4: what its result is moved by, and scaled by; buffers, or NULL */
    struct adapters adapters;                 /* of what reads patches */
    struct tensor *patch_weight, *patch_bias; /* (W, channels, frames, patch, patch), of siglip without frames; (W) */
    struct tensor *positions;                 /* (positions, W), which each image's grid is interpolated from, or is */
    struct tensor *inv_freq, *original_inv_freq; /* (W / heads / 4); buffers; NULL: none turn */
    struct tensor *position_ids;              /* siglip: (positions) int64, a buffer */
    struct norm norm;                         /* siglip: behind the last block; pixtral: in front of the first */
    struct tensor *projection;                /* gemma3: (W, H) */
    struct decoder_layer *layers;
    struct vision_merger *mergers; /* the last block's, and then those of deepstack */
    struct tensor *deltas; /* rope_deltas, (B, 1) int64, which stay until the next forward's */
};

/* What a forward has of its images; named, NULL where there are none. */
struct seen_images {
    struct tensor *last;                 /* (T, W), the tower's last block's */
    struct tensor *merged, *rows;        /* (rows, H), all images'; and behind torch.split() and cat() */
    struct tensor *mask, *other_mask;    /* (B, S) bool: where images stand; where videos do */
    struct tensor *positions;            /* (3, B, S) int64, by which queries and keys turn; NULL: as in text */
    struct tensor *blocks;               /* (B, S) int64: which image a token is of, all of which it sees; -1: text */
    struct tensor *deep[PLIM_MAX_DEEP];  /* (rows, H) each */
    struct tensor *outputs;              /* what a block of the text gave, before images were added to it */
};

/* A kind of tower. */
struct vision_tower {
    /* Makes its parameters and buffers; its layers are `m->vision.layers`. NULL: nothing stands before the text. */
    void (*build)(struct engine *e, struct decoder *m);
    /* vision_see(); NULL: rows have no images, which are refused (IMAGES of spec_uncompared.c) */
    void (*see)(struct engine *e, struct decoder *m, struct tensor **embeddings, struct seen_images *seen);
    /* Makes what stands behind the text's modules; NULL: nothing does. */
    void (*build_behind)(struct engine *e, struct decoder *m);
    const struct vision_parts *parts; /* in the order of named_modules(); one without a name ends them */
};
extern const struct vision_tower plim_tower_qwen2_vl, plim_tower_qwen2_5_vl, plim_tower_qwen3_vl, plim_tower_gemma3,
    plim_tower_pixtral, plim_tower_gemma4, plim_tower_gemma4_unified;

/* Whose modules parts are: of what reads patches, of blocks, of what merges last, of what merges for deepstack; and of
 * an audio tower's ends and blocks (audio.h) */
enum vision_owner { VISION_TOWER, VISION_BLOCKS, VISION_MERGER, VISION_DEEP, VISION_AUDIO_FRONT, VISION_AUDIO_BLOCKS,
                    VISION_AUDIO_BACK, VISION_AUDIO_EMBEDDING };
/* What meets their weights: each patch, each row of merged ones, or nothing */
enum vision_meets { MEETS_PATCHES, MEETS_ROWS, MEETS_NOTHING };
/* A part of a tower, or several that are alike */
struct vision_parts {
    const char *name; /* %lld: the number of one of several */
    const struct module *modules;
    enum vision_owner of;
    enum vision_meets meets;
    bool is_behind;   /* the text's modules */
};

/* One part: a block (struct decoder_layer), a merger (struct vision_merger) and so on */
struct vision_part {
    const struct vision_parts *parts; /* that it is one of, and which */
    int64_t number;
    void *owner;
    struct adapters *adapters;
};
/* The `index`-th part in the order of named_modules(); false behind the last, and where there is no tower. */
bool vision_part(const struct decoder *m, size_t index, struct vision_part *part);
void vision_part_name(const struct vision_part *part, char name[MODULE_NAME_MAX]);

/* Host memory for the parts of a tower, where the model has one; false: there is none. */
bool vision_create(struct decoder *m);
void vision_finish(struct decoder *m);
/* Makes the tower, whose parameters and buffers are the model's first ones; and what stands behind the text. */
void vision_build(struct engine *e, struct decoder *m);
void vision_build_behind(struct engine *e, struct decoder *m);
/* Buffers of towers that stand behind the parameter `x` (and its adapters) in the order of modules; `out` has room for
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
/* Elements of its parameters but for adapters, which text does not meet; and operations of a row's images, counted as
 * decoder_flops_per_token() counts those of text. */
int64_t vision_elements(const struct decoder *m);
double vision_flops_per_row(const struct decoder *m);
/* Rebinds the embeddings (B, S, H) to what has the images in it. */
void vision_see(struct engine *e, struct decoder *m, struct tensor **embeddings, struct seen_images *seen);
/* Rebinds x (B, S, H), the result of the text's block `layer`, to it with what deepstack adds there. */
void vision_deepen(struct engine *e, struct seen_images *seen, int64_t layer, struct tensor **x);
void vision_forget(struct engine *e, struct seen_images *seen);

/* What gemma4's forward makes of tokens that stand for images, videos and sounds, whether there are any or not, and
 * holds to its end; named, or NULL. */
struct placeholders {
    struct tensor *of_kind[3], *any; /* (B, S) bool: where they stand */
    struct tensor *ids, *embeddings; /* with a token of padding in their place */
};
/* Returns ids (B, S) that have no placeholders, lent. */
struct tensor *vision_hide_placeholders(struct engine *e, const struct decoder *m, struct tensor *ids,
                                        struct placeholders *p);
/* Makes embeddings (B, S, H) that have none, at which nothing looks. */
void vision_pad_placeholders(struct engine *e, const struct decoder *m, struct tensor *embeddings,
                             struct placeholders *p);
void vision_forget_placeholders(struct engine *e, struct placeholders *p);

/* --- for the towers (vision_parts.c) ----------------------------------------------------------- */

/* Calls `build` for each of a tower's blocks in turn; what it makes by nn_parameter() is of that block. */
void vision_build_blocks(struct engine *e, struct decoder *m,
                         void (*build)(struct engine *e, struct decoder *m, struct decoder_layer *l));
/* Patches of images (N, channels, h, w), in the tower's type, by its convolution: (N, W, rows, columns), named */
struct tensor *vision_patches(struct engine *e, const struct decoder *m, struct tensor *images);
/* A block of a norm and `attention`, and of another norm and `mlp`, to each of whose results what it was made of is
 * added; x lent, floating. *weights: the block's to drop at its end */
struct tensor *vision_block(struct engine *e, const struct block_call *b, struct tensor *x,
                            struct tensor *(*attention)(struct engine *e, const struct block_call *b, struct tensor *x,
                                                        struct tensor **weights),
                            struct tensor *(*mlp)(struct engine *e, const struct block_call *b, struct tensor *x));
/* torch.split() of x into `count` parts as long as one another, along its first dimension: a list of floating tensors,
 * for engine_give_room(); NULL, or of NULLs, where the engine is halted */
struct tensor **vision_split(struct engine *e, struct tensor *x, int64_t count);
/* Rebinds the embeddings (B, S, H) to what has the images' rows where their mask is. */
void vision_place(struct engine *e, const struct seen_images *seen, struct tensor **embeddings);
/* How patches attend to one another */
struct attention_call vision_attention(const struct decoder *m);
/* How many of a mask (B, S) are tokens of images: its sum, int64, behind a copy of it; named */
struct tensor *vision_count(struct engine *e, struct tensor *mask);
/* The same, after a look whether there are as many tokens as rows (get_placeholder_mask()) */
struct tensor *vision_count_placeholders(struct engine *e, struct tensor *mask);

/* vision_index.c: what Python computes of the images' grids before their patches are looked at. All named. */
struct vision_index {
    struct tensor *taps, *weights; /* (T, 4) int64 and fp32: which learned positions a patch has, how much of each */
    struct tensor *places;         /* (T, 2) int64: row and column */
    struct tensor *ends;           /* (images + 1) int32: where images end */
    struct tensor *window_ends;    /* (windows + 1) int32: where windows of them do; NULL: there are none */
};
void vision_index_make(struct engine *e, const struct decoder *m, struct vision_index *index);
void vision_index_drop(struct engine *e, struct vision_index *index);
/* How many windows the images have: of each the patches in it (NULL: not asked for), and of rows of the text, window by
 * window, which they are among all images' (NULL: likewise) */
int64_t vision_windows(const struct decoder *m, int64_t *lengths, int64_t *order);
/* Qwen3VLModel.get_rope_index(): the positions of text and images, (3, B, S) int64, and sets m->vision.deltas; named */
struct tensor *vision_text_positions(struct engine *e, struct decoder *m);

#endif
