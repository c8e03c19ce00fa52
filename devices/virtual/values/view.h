/* A stretch of the GPU's memory with what is known of it, to be worked on. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_VIEW_H
#define PLIM_DEVICES_VIRTUAL_VALUES_VIEW_H

#include "devices/virtual/memory/shadow.h"
#include "type.h"

struct plim_view {
    uintptr_t at;
    size_t bytes;
    unsigned char *data, *known; /* values, and the state of each byte */
};

/* Loads it. False: it is no memory of the GPU or too much, or there is no room for it; then nothing
 * is to be closed. May wait for other ranks. */
bool plim_view_open(struct plim_view *view, uintptr_t at, size_t bytes);
/* Of what will be written whole: unknown for now. */
bool plim_view_blank(struct plim_view *view, uintptr_t at, size_t bytes);
/* The same where it takes more for it to be too much: of a mask, of labels. */
bool plim_view_open_mask(struct plim_view *view, uintptr_t at, size_t bytes);
bool plim_view_blank_mask(struct plim_view *view, uintptr_t at, size_t bytes);
/* The memory holds what the view does. */
void plim_view_store(const struct plim_view *view, const char *writer);
void plim_view_close(struct plim_view *view); /* a zeroed one too */

/* An element, `offset` bytes from the beginning. Outside of the view it is unknown, and writing
 * does nothing. */
unsigned char plim_view_known(const struct plim_view *view, size_t offset, size_t bytes);
unsigned char plim_view_get(const struct plim_view *view, size_t offset, enum plim_type type,
                            struct plim_number *out);
void plim_view_put(struct plim_view *view, size_t offset, enum plim_type type,
                   struct plim_number number, unsigned char known);
/* The bytes of an element as they are. */
void plim_view_move(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                    size_t from_offset, size_t bytes);
/* Two elements of a view change places. */
void plim_view_swap(struct plim_view *view, size_t a_offset, size_t b_offset, size_t bytes);
/* The bytes of an element, by an index: it is known no better than where it lies. */
void plim_view_move_by(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                       size_t from_offset, size_t bytes, unsigned char index_known);

#endif
