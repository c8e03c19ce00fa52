/* Requesting segments from the device and returning them. */
#ifndef PLIM_DEVICES_ALLOCATOR_SEGMENTS_H
#define PLIM_DEVICES_ALLOCATOR_SEGMENTS_H

#include "blocks.h"

/* Requests memory from the device for a rounded request of `size`, as a free block of the list that is at least as
 * large: a segment, or pages of an expandable one. PLIM_OOM also if the memory fraction is exceeded. */
enum plim_status plim_allocator_grow(struct plim_allocator *a, struct plim_block_list *list,
                                     int64_t size, struct plim_block **block) PLIM_MUST_CHECK;

/* Garbage collection: returns free segments of the large pool that have not been used for a long time. */
void plim_allocator_collect(struct plim_allocator *a);

/* With max_split_size: returns enough free oversize segments of the list to make room for a request of `size`. Returns
 * false if there are not enough (those already returned stay returned). */
bool plim_allocator_release_oversize(struct plim_allocator *a, struct plim_block_list *list,
                                     int64_t size);

/* Returns every segment that is entirely free. */
void plim_allocator_release_free(struct plim_allocator *a);

/* Returns all segments, even those in use; blocks and lists are left unchanged, for the caller to discard. */
void plim_allocator_release_segments(struct plim_allocator *a);

#endif
