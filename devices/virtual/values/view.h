/* A working copy of a range of GPU memory, with the state of each byte. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_VIEW_H
#define PLIM_DEVICES_VIRTUAL_VALUES_VIEW_H

#include "devices/virtual/memory/shadow.h"
#include "type.h"

struct plim_view {
    uintptr_t at;
    size_t bytes;
    unsigned char *data, *known; /* values, and one state per byte */
};

/* Loads a range. May wait for other ranks. Returns false if it is not GPU memory, is too large, or host memory is
 * exhausted; the view need not be closed then. */
bool plim_view_open(struct plim_view *view, uintptr_t at, size_t bytes);
/* Same for a range that the kernel overwrites completely: the view starts zeroed and unknown. */
bool plim_view_blank(struct plim_view *view, uintptr_t at, size_t bytes);
/* Same with a higher size limit, for masks and labels. */
bool plim_view_open_mask(struct plim_view *view, uintptr_t at, size_t bytes);
bool plim_view_blank_mask(struct plim_view *view, uintptr_t at, size_t bytes);
/* Writes the view back to GPU memory; `writer` is the name of the kernel. */
void plim_view_store(const struct plim_view *view, const char *writer);
void plim_view_close(struct plim_view *view); /* also accepts a zero-initialised view */

/* Access the element `offset` bytes from the start of the view. Outside the view elements are unknown, and writes are
 * ignored. */
unsigned char plim_view_known(const struct plim_view *view, size_t offset, size_t bytes);
unsigned char plim_view_get(const struct plim_view *view, size_t offset, enum plim_type type,
                            struct plim_number *out);
void plim_view_set(struct plim_view *view, size_t offset, enum plim_type type,
                   struct plim_number number, unsigned char known);
/* Copies the bytes of an element, with their states. */
void plim_view_move(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                    size_t from_offset, size_t bytes);
/* Swaps two elements of a view, with their states. */
void plim_view_swap(struct plim_view *view, size_t a_offset, size_t b_offset, size_t bytes);
/* Copies an element selected by an index. The result depends on the index too: it is unknown if the index is. */
void plim_view_move_by(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                       size_t from_offset, size_t bytes, unsigned char index_known);

#endif
