#include "column.h"
#include <string.h>

#define LOAD(c_type)                                                                               \
    for (size_t k = 0; k < count; k++) {                                                           \
        c_type value;                                                                              \
        memcpy(&value, view->data + offsets[k], sizeof(value));                                    \
        column->i[k] = value;                                                                      \
    }                                                                                              \
    return true;

/* The types of positions and counts, where they are not converted. */
static bool load_quickly(struct plim_column *column, const struct plim_view *view,
                         const size_t *offsets, size_t count, enum plim_type type)
{
    switch (type) {
    case PLIM_INT64:
        LOAD(int64_t)
    case PLIM_INT32:
        LOAD(int32_t)
    default:
        return false;
    }
}

void plim_column_load(struct plim_column *column, const struct plim_view *view,
                      const size_t *offsets, size_t count, enum plim_type stored,
                      enum plim_type type)
{
    size_t bytes = plim_type_bytes(stored);
    column->is_float = plim_type_is_float(type);
    for (size_t k = 0; k < count; k++) column->known[k] = plim_view_known(view, offsets[k], bytes);
    if (stored == type && load_quickly(column, view, offsets, count, type)) return;
    for (size_t k = 0; k < count; k++) {
        struct plim_number n = plim_number_load(view->data + offsets[k], stored);
        if (stored != type) n = plim_number_convert(n, type);
        if (column->is_float)
            column->f[k] = n.f;
        else
            column->i[k] = n.i;
    }
}

void plim_column_store(const struct plim_column *column, struct plim_view *view,
                       const size_t *offsets, size_t count, enum plim_type stored)
{
    size_t bytes = plim_type_bytes(stored);
    bool is_plain = !column->is_float && !plim_type_is_float(stored) && stored != PLIM_BOOL;
    for (size_t k = 0; k < count; k++) {
        unsigned char *to = view->data + offsets[k];
        if (is_plain)
            memcpy(to, &column->i[k], bytes); /* little-endian */
        else if (column->is_float)
            plim_number_store(to, stored,
                              (struct plim_number){.f = column->f[k], .is_float = true});
        else
            plim_number_store(to, stored, (struct plim_number){.i = column->i[k]});
        memset(view->known + offsets[k], column->known[k], bytes);
    }
}

void plim_column_repeat(struct plim_column *column, struct plim_number number, size_t count)
{
    column->is_float = number.is_float;
    for (size_t k = 0; k < count; k++) {
        column->i[k] = number.i;
        column->f[k] = number.f;
        column->known[k] = PLIM_KNOWN;
    }
}
