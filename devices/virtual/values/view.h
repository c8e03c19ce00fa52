/* A working copy of a range of GPU memory, with the state of each byte. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_VIEW_H
#define PLIM_DEVICES_VIRTUAL_VALUES_VIEW_H

#include "devices/virtual/memory/shadow.h"
#include "type.h"

struct plim_view {
    uintptr_t at;
    size_t bytes;
    unsigned char *data, *known; /* values, and the state of each byte */
};

/* Loads the range. False: it is not GPU memory, is too large, or there is no host memory; then the view
 * need not be closed. May wait for other ranks. */
bool plim_view_open(struct plim_view *view, uintptr_t at, size_t bytes);
/* The same for a range that will be written completely: its contents are unknown for now. */
bool plim_view_blank(struct plim_view *view, uintptr_t at, size_t bytes);
/* The same with a higher limit of the size, for masks and labels. */
bool plim_view_open_mask(struct plim_view *view, uintptr_t at, size_t bytes);
bool plim_view_blank_mask(struct plim_view *view, uintptr_t at, size_t bytes);
/* Writes the view back to the memory. */
void plim_view_store(const struct plim_view *view, const char *writer);
void plim_view_close(struct plim_view *view); /* a zeroed one too */

/* An element, `offset` bytes from the beginning. Outside of the view it is unknown, and writing
 * does nothing. */
unsigned char plim_view_known(const struct plim_view *view, size_t offset, size_t bytes);
unsigned char plim_view_get(const struct plim_view *view, size_t offset, enum plim_type type,
                            struct plim_number *out);
void plim_view_put(struct plim_view *view, size_t offset, enum plim_type type,
                   struct plim_number number, unsigned char known);
/* Copies the bytes of an element unchanged. */
void plim_view_move(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                    size_t from_offset, size_t bytes);
/* Swaps two elements of a view. */
void plim_view_swap(struct plim_view *view, size_t a_offset, size_t b_offset, size_t bytes);
/* Copies an element chosen by an index: the result is known at most as well as the index. */
void plim_view_move_by(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                       size_t from_offset, size_t bytes, unsigned char index_known);

#endif
