/* Expandable segments: one range of addresses for each pool and stream, mapped page by page as it grows
 * (PyTorch's expandable_segments:True). */
#ifndef PLIM_DEVICES_ALLOCATOR_EXPANDABLE_H
#define PLIM_DEVICES_ALLOCATOR_EXPANDABLE_H

#include "blocks.h"

/* Maps pages until there is a free block of at least `size` in a range of the list. PLIM_OOM may
 * leave some newly mapped pages behind, as free blocks. */
enum plim_status plim_allocator_expand(struct plim_allocator *a, struct plim_block_list *list,
                                       int64_t size, struct plim_block **block) PLIM_MUST_CHECK;

/* Gives back the pages that lie wholly inside this free block, and the range if it is empty. */
void plim_allocator_unmap(struct plim_allocator *a, struct plim_block *block);

/* Gives back all pages and addresses of the range that starts with `head`. */
void plim_allocator_range_return(struct plim_allocator *a, struct plim_block *head);

#endif
