#include "view.h"
#include "devices/virtual/memory/heap.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 8 << 20, MOST_OF_MASK = SHADOW_BYTES };

static bool make(struct plim_view *view, uintptr_t at, size_t bytes, size_t most)
{
    *view = (struct plim_view){.at = at, .bytes = bytes};
    if (!plim_heap_is_device(at) || !bytes || bytes > most) return false;
    view->data = malloc(2 * bytes);
    view->known = view->data + bytes;
    return view->data;
}

static bool open(struct plim_view *view, uintptr_t at, size_t bytes, size_t most)
{
    if (!make(view, at, bytes, most)) return false;
    plim_shadow_load(at, view->data, view->known, bytes);
    return true;
}

static bool blank(struct plim_view *view, uintptr_t at, size_t bytes, size_t most)
{
    if (!make(view, at, bytes, most)) return false;
    memset(view->data, 0, bytes);
    memset(view->known, PLIM_UNKNOWN, bytes);
    return true;
}

bool plim_view_open(struct plim_view *view, uintptr_t at, size_t bytes)
{
    return open(view, at, bytes, MOST_BYTES);
}

bool plim_view_blank(struct plim_view *view, uintptr_t at, size_t bytes)
{
    return blank(view, at, bytes, MOST_BYTES);
}

bool plim_view_open_mask(struct plim_view *view, uintptr_t at, size_t bytes)
{
    return open(view, at, bytes, MOST_OF_MASK);
}

bool plim_view_blank_mask(struct plim_view *view, uintptr_t at, size_t bytes)
{
    return blank(view, at, bytes, MOST_OF_MASK);
}

void plim_view_store(const struct plim_view *view, const char *writer)
{
    plim_shadow_store(view->at, view->data, view->known, view->bytes, writer);
}

void plim_view_close(struct plim_view *view)
{
    free(view->data);
    view->data = NULL;
}

static bool has(const struct plim_view *view, size_t offset, size_t bytes)
{
    return view->data && offset <= view->bytes && bytes <= view->bytes - offset;
}

unsigned char plim_view_known(const struct plim_view *view, size_t offset, size_t bytes)
{
    if (!has(view, offset, bytes)) return PLIM_UNKNOWN;
    unsigned char known = view->known[offset];
    for (size_t i = 1; i < bytes; i++)
        if (view->known[offset + i] != known)
            known = plim_known_both(known, view->known[offset + i]);
    return known;
}

unsigned char plim_view_get(const struct plim_view *view, size_t offset, enum plim_type type,
                            struct plim_number *out)
{
    *out = (struct plim_number){0};
    unsigned char known = plim_view_known(view, offset, plim_type_bytes(type));
    if (has(view, offset, plim_type_bytes(type)))
        *out = plim_number_load(view->data + offset, type);
    return known;
}

void plim_view_set(struct plim_view *view, size_t offset, enum plim_type type,
                   struct plim_number number, unsigned char known)
{
    size_t bytes = plim_type_bytes(type);
    if (!has(view, offset, bytes)) return;
    plim_number_store(view->data + offset, type, number);
    memset(view->known + offset, known, bytes);
}

/* Copies an element; for constant sizes the compiler replaces the call of memcpy, which would cost more than the
 * copy. */
static void copy(unsigned char *to, const unsigned char *from, size_t bytes)
{
    if (bytes == 8)
        memcpy(to, from, 8);
    else if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, bytes);
}

void plim_view_move(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                    size_t from_offset, size_t bytes)
{
    if (!has(to, to_offset, bytes)) return;
    if (has(from, from_offset, bytes)) {
        copy(to->data + to_offset, from->data + from_offset, bytes);
        copy(to->known + to_offset, from->known + from_offset, bytes);
    } else
        memset(to->known + to_offset, PLIM_UNKNOWN, bytes);
}

static void swap(unsigned char *a, unsigned char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char kept = a[i];
        a[i] = b[i], b[i] = kept;
    }
}

void plim_view_swap(struct plim_view *view, size_t a_offset, size_t b_offset, size_t bytes)
{
    if (!has(view, a_offset, bytes) || !has(view, b_offset, bytes)) return;
    swap(view->data + a_offset, view->data + b_offset, bytes);
    swap(view->known + a_offset, view->known + b_offset, bytes);
}

void plim_view_move_by(struct plim_view *to, size_t to_offset, const struct plim_view *from,
                       size_t from_offset, size_t bytes, unsigned char index_known)
{
    if (!has(to, to_offset, bytes)) return;
    plim_view_move(to, to_offset, from, from_offset, bytes);
    for (size_t i = to_offset; i < to_offset + bytes && index_known != PLIM_KNOWN; i++)
        to->known[i] = plim_known_both(to->known[i], index_known);
}
