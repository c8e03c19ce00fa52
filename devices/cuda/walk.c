#include "walk.h"

enum { WIDEST_ACCESS_BYTES = 16 };

int plim_walk_element_bytes(const struct plim_walk *w, int operand)
{
    int dtype = w->dtype[operand];
    return dtype == PLIM_RAW16 ? 2 : plim_dtype_size((enum plim_dtype)dtype);
}

bool plim_address_is_aligned(uint64_t address, int element_bytes, int count)
{
    int bytes = element_bytes * count;
    return address % (uint64_t)(bytes < WIDEST_ACCESS_BYTES ? bytes : WIDEST_ACCESS_BYTES) == 0;
}

/* Computes the bytes between elements of `a` along dimension `d` of `like`'s shape. */
static enum plim_status broadcast_stride(const struct plim_array *a, const struct plim_array *like,
                                         int d, int64_t *stride)
{
    int own = d - (like->ndim - a->ndim);
    *stride = 0;
    if (own < 0 || a->shape[own] == 1) return PLIM_OK;
    if (a->shape[own] != like->shape[d]) return PLIM_INVALID;
    *stride = a->stride[own] * plim_dtype_size((enum plim_dtype)a->dtype);
    return PLIM_OK;
}

static enum plim_status set_dims(struct plim_walk *w, const struct plim_array *const *operands,
                                 int64_t *extent, unsigned flags)
{
    const struct plim_array *out = operands[0];
    for (int d = out->ndim - 1; d >= 0; d--) {
        bool inner = d == out->ndim - 1 && (flags & PLIM_WALK_KEEP_INNER);
        for (int i = 0; i < w->operands; i++) {
            enum plim_status st = broadcast_stride(operands[i], out, d, &w->stride[i][w->ndim]);
            if (st != PLIM_OK) return st;
        }
        w->elements *= (uint64_t)out->shape[d];
        extent[w->ndim] = out->shape[d];
        if (out->shape[d] != 1 || inner) w->ndim++;
    }
    return PLIM_OK;
}

static void swap_dims(struct plim_walk *w, int64_t *extent, int a, int b)
{
    int64_t moved = extent[a];
    extent[a] = extent[b], extent[b] = moved;
    for (int i = 0; i < w->operands; i++) {
        moved = w->stride[i][a];
        w->stride[i][a] = w->stride[i][b], w->stride[i][b] = moved;
    }
}

static void sort_dims(struct plim_walk *w, int64_t *extent, int first)
{
    for (int d = first + 1; d < w->ndim; d++)
        for (int i = d; i > first && w->stride[0][i] < w->stride[0][i - 1]; i--)
            swap_dims(w, extent, i, i - 1);
}

static bool can_merge(const struct plim_walk *w, const int64_t *extent, int inner, int outer)
{
    for (int i = 0; i < w->operands; i++)
        if (w->stride[i][outer] != w->stride[i][inner] * extent[inner]) return false;
    return true;
}

static void merge_dims(struct plim_walk *w, int64_t *extent, int first)
{
    int last = first;
    for (int d = first + 1; d < w->ndim; d++) {
        if (can_merge(w, extent, last, d)) {
            extent[last] *= extent[d];
            continue;
        }
        last++;
        if (last != d) swap_dims(w, extent, last, d);
    }
    if (w->ndim > 0) w->ndim = (uint8_t)(last + 1);
}

enum plim_status plim_walk_init(struct plim_walk *w, const struct plim_array *const *operands,
                                int count, unsigned flags)
{
    int64_t extent[PLIM_MAX_DIMS + 1] = {1};
    *w = (struct plim_walk){.elements = 1, .operands = (uint8_t)count};
    for (int i = 0; i < count; i++) {
        w->data[i] = operands[i]->data;
        w->dtype[i] = operands[i]->dtype;
        if (operands[i]->ndim > operands[0]->ndim) return PLIM_INVALID;
    }
    enum plim_status st = set_dims(w, operands, extent, flags);
    if (st != PLIM_OK) return st;
    int first = flags & PLIM_WALK_KEEP_INNER ? 1 : 0;
    if (!(flags & PLIM_WALK_ORDERED)) sort_dims(w, extent, first);
    if (w->ndim > first) merge_dims(w, extent, first);
    if (w->ndim == 0) {
        w->ndim = 1;
        extent[0] = 1;
        for (int i = 0; i < count; i++) w->stride[i][0] = plim_walk_element_bytes(w, i);
    }
    for (int d = 0; d < w->ndim && w->elements > 0; d++)
        w->extent[d] = plim_divider_of((uint64_t)extent[d]);
    return PLIM_OK;
}

bool plim_walk_is_vector(const struct plim_walk *w)
{
    if (w->elements < PLIM_WALK_VECTOR) return false;
    if (w->ndim > 1 && w->extent[0].divisor % PLIM_WALK_VECTOR != 0) return false;
    for (int i = 0; i < w->operands; i++) {
        int bytes = plim_walk_element_bytes(w, i);
        if (i > 0 && w->stride[i][0] == 0) continue;
        if (w->stride[i][0] != bytes) return false;
        if (!plim_address_is_aligned(w->data[i], bytes, PLIM_WALK_VECTOR)) return false;
        for (int d = 1; d < w->ndim; d++)
            if (!plim_address_is_aligned((uint64_t)w->stride[i][d], bytes, PLIM_WALK_VECTOR))
                return false;
    }
    return true;
}
