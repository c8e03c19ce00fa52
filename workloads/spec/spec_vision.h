/* Vision towers and images in a spec. */
#ifndef PLIM_WORKLOADS_SPEC_VISION_H
#define PLIM_WORKLOADS_SPEC_VISION_H

#include "spec.h"
#include "value.h"

/* Where the images of a row stand among its tokens, as chat templates place them. LEAD: tokens before the first image,
 * which begin a message and an image. GAP: tokens between two images, which end one and begin the next. TAIL: tokens of
 * text behind the last image, of which one may be padding. */
enum { PLIM_IMAGE_LEAD = 4, PLIM_IMAGE_GAP = 2, PLIM_IMAGE_TAIL = 2 };

/* Images that a tower gets of one in a row */
static inline int64_t plim_image_tiles(const struct plim_vision *vision, const struct plim_images *images)
{
    if (!vision->has_tiles) return 1;
    int64_t tiles = images->height / vision->image_size * (images->width / vision->image_size);
    return tiles > 1 ? tiles + 1 : 1; /* the whole image, too (use_thumbnail) */
}

/* Patches of an image, and the tokens that stand for it in a row */
static inline int64_t plim_image_patches(const struct plim_vision *vision, const struct plim_images *images)
{
    if (vision->image_size) return vision->positions * plim_image_tiles(vision, images);
    return images->height / vision->patch_size * (images->width / vision->patch_size);
}
static inline int64_t plim_image_tokens(const struct plim_vision *vision, const struct plim_images *images)
{
    return plim_image_patches(vision, images) / (vision->merge_size * vision->merge_size);
}

/* Tokens from the first to the last one of an image, with those that end its rows of patches */
static inline int64_t plim_image_extent(const struct plim_vision *vision, const struct plim_images *images)
{
    int64_t ends = vision->row_ends ? images->height / vision->patch_size / vision->merge_size : 0;
    return plim_image_tokens(vision, images) + ends;
}

/* The tokens of the shortest row */
static inline int64_t plim_image_shortest_row(const struct plim_vision *vision, const struct plim_images *images)
{
    int64_t all = images->count * (plim_image_extent(vision, images) + PLIM_IMAGE_GAP);
    return images->count ? PLIM_IMAGE_LEAD + all - PLIM_IMAGE_GAP + PLIM_IMAGE_TAIL : 1;
}

/* The setting's images, from data.images and the keys beside it */
struct plim_images plim_spec_images(const struct plim_spec *spec);

/* Reads deepstack_visual_indexes, and fullatt_block_indexes. */
enum plim_status plim_vision_read_deep(const struct plim_place *place, const struct plim_yaml_node *node,
                                       struct plim_spec *spec) PLIM_MUST_CHECK;

enum plim_status plim_vision_read_full(const struct plim_place *place, const struct plim_yaml_node *node,
                                       struct plim_spec *spec) PLIM_MUST_CHECK;

/* Reads a rope mapping's mrope_section. */
enum plim_status plim_vision_read_sections(const struct plim_place *place, const struct plim_yaml_node *node,
                                           struct plim_model_config *model) PLIM_MUST_CHECK;

/* Reads vision_config into the model's keys that begin with "vision_"; ignores keys that its class lacks. */
enum plim_status plim_vision_read(const struct plim_yaml *yaml, const struct plim_yaml_node *config,
                                  struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

/* The same for gemma4's audio_config, which may be missing; also refuses a file without vision_config. */
enum plim_status plim_audio_read(const struct plim_yaml *yaml, struct plim_spec *spec,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Derives the tower's values that follow from other keys of the model */
void plim_vision_derive(struct plim_model_config *model);

/* Refuses towers that transformers fails to build or to run; the key at fault in *culprit. */
enum plim_status plim_vision_check(const struct plim_model_config *model, const char **culprit,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Refuses images for a model without a tower, and images that do not fit into a row. The culprit is data.images. */
enum plim_status plim_spec_check_images(const struct plim_spec *spec, struct plim_error *err) PLIM_MUST_CHECK;

#endif
