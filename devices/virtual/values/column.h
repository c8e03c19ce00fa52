/* A chunk of the elements of one operand, converted to the type in which a function computes. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_COLUMN_H
#define PLIM_DEVICES_VIRTUAL_VALUES_COLUMN_H

#include "view.h"

enum { PLIM_CHUNK = 256 };

struct plim_column {
    bool is_float; /* the values are in `f`; otherwise in `i` */
    int64_t i[PLIM_CHUNK];
    double f[PLIM_CHUNK];
    unsigned char known[PLIM_CHUNK];
};

/* Loads `count` elements of type `stored` from the byte offsets `offsets`, which must lie in the view, and converts
 * them to `type`. */
void plim_column_load(struct plim_column *column, const struct plim_view *view,
                      const size_t *offsets, size_t count, enum plim_type stored,
                      enum plim_type type);
/* Converts the elements to `stored` and writes them, with their states, at `offsets`. */
void plim_column_store(struct plim_column *column, struct plim_view *view, const size_t *offsets,
                       size_t count, enum plim_type stored);
void plim_column_convert(struct plim_column *column, enum plim_type from, enum plim_type to,
                         size_t count);
/* Fills the column with `count` copies of a known number. */
void plim_column_repeat(struct plim_column *column, struct plim_number number, size_t count);

#endif
