/* Expandable segments: one range of addresses per pool and stream, mapped page by page as it grows (PyTorch's
 * expandable_segments:True). */
#ifndef PLIM_DEVICES_ALLOCATOR_EXPANDABLE_H
#define PLIM_DEVICES_ALLOCATOR_EXPANDABLE_H

#include "blocks.h"

/* Maps pages until a range of the list has a free block of at least `size`. PLIM_OOM may leave some newly mapped pages
 * as free blocks. */
enum plim_status plim_allocator_expand(struct plim_allocator *a, struct plim_block_list *list,
                                       int64_t size, struct plim_block **block) PLIM_MUST_CHECK;

/* Unmaps the pages that are entirely inside this free block, and frees the range if it is empty. */
void plim_allocator_unmap(struct plim_allocator *a, struct plim_block *block);

/* Unmaps all pages of the range that starts with `head`, and frees its addresses. */
void plim_allocator_range_return(struct plim_allocator *a, struct plim_block *head);

#endif
