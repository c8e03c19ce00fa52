#include "element.h"

#include "devices/half.h"
#include <math.h>

/* --- one run: elements at equal distances ----------------------------------------------------- */

/* Truncates a double. A C cast is undefined outside the integer's range. */
static int64_t truncated(double x, double least, double most)
{
    if (isnan(x)) return 0;
    if (x <= least) return (int64_t)least;
    if (x >= most) return most >= 0x1p63 ? INT64_MAX : (int64_t)most;
    return (int64_t)x;
}

#define EACH(type, pointer, body)                                                                  \
    {                                                                                              \
        type *at = (type *)(pointer);                                                              \
        for (int64_t i = 0; i < count; i++, at += step) body;                                      \
        break;                                                                                     \
    }

static void read_run(enum plim_dtype dtype, const void *from, int64_t step, int64_t count,
                     double *to)
{
    switch (dtype) {
    case PLIM_F32:
        EACH(const float, from, to[i] = (double)*at)
    case PLIM_BF16:
        EACH(const uint16_t, from, to[i] = (double)plim_bf16_to_float(*at))
    case PLIM_F16:
        EACH(const uint16_t, from, to[i] = (double)plim_fp16_to_float(*at))
    case PLIM_I64:
        EACH(const int64_t, from, to[i] = (double)*at)
    case PLIM_I32:
        EACH(const int32_t, from, to[i] = (double)*at)
    case PLIM_U8:
        EACH(const uint8_t, from, to[i] = (double)*at)
    case PLIM_BOOL:
        EACH(const uint8_t, from, to[i] = *at != 0)
    case PLIM_DTYPE_COUNT:
        break;
    }
}

static void write_run(enum plim_dtype dtype, void *to, int64_t step, int64_t count,
                      const double *from)
{
    switch (dtype) {
    case PLIM_F32:
        EACH(float, to, *at = (float)from[i])
    case PLIM_BF16:
        EACH(uint16_t, to, *at = plim_float_to_bf16((float)from[i]))
    case PLIM_F16:
        EACH(uint16_t, to, *at = plim_float_to_fp16((float)from[i]))
    case PLIM_I64:
        EACH(int64_t, to, *at = truncated(from[i], -0x1p63, 0x1p63))
    case PLIM_I32:
        EACH(int32_t, to, *at = (int32_t)truncated(from[i], INT32_MIN, INT32_MAX))
    case PLIM_U8:
        EACH(uint8_t, to, *at = (uint8_t)truncated(from[i], 0, UINT8_MAX))
    case PLIM_BOOL:
        EACH(uint8_t, to, *at = from[i] != 0)
    case PLIM_DTYPE_COUNT:
        break;
    }
}

static void read_integer_run(enum plim_dtype dtype, const void *from, int64_t step, int64_t count,
                             int64_t *to)
{
    switch (dtype) {
    case PLIM_I64:
        EACH(const int64_t, from, to[i] = *at)
    case PLIM_I32:
        EACH(const int32_t, from, to[i] = *at)
    case PLIM_U8:
        EACH(const uint8_t, from, to[i] = *at)
    case PLIM_BOOL:
        EACH(const uint8_t, from, to[i] = *at != 0)
    default:
        break;
    }
}

static void write_integer_run(enum plim_dtype dtype, void *to, int64_t step, int64_t count,
                              const int64_t *from)
{
    switch (dtype) {
    case PLIM_I64:
        EACH(int64_t, to, *at = from[i])
    case PLIM_I32:
        EACH(int32_t, to, *at = (int32_t)(uint32_t)from[i])
    case PLIM_U8:
        EACH(uint8_t, to, *at = (uint8_t)from[i])
    case PLIM_BOOL:
        EACH(uint8_t, to, *at = from[i] != 0)
    default:
        break;
    }
}

/* --- runs of an array ------------------------------------------------------------------------- */

/* Iterates over a range of elements run by run: along the last dimension, or in one run if the array is contiguous. */
struct cursor {
    const struct plim_array *a;
    int64_t left;                 /* remaining elements */
    int64_t index[PLIM_MAX_DIMS]; /* of the next run's first element */
    int64_t step, count;          /* of the current run */
    bool contiguous;
};

static bool is_contiguous(const struct plim_array *a)
{
    int64_t step = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] != 1 && a->stride[d] != step) return false;
        step *= a->shape[d];
    }
    return true;
}

static struct cursor cursor_at(const struct plim_array *a, int64_t first, int64_t count)
{
    struct cursor c = {.a = a, .left = count, .contiguous = is_contiguous(a)};
    if (c.contiguous) c.index[0] = first;
    for (int d = a->ndim - 1; d >= 0 && !c.contiguous && count > 0; d--) {
        c.index[d] = first % a->shape[d];
        first /= a->shape[d];
    }
    return c;
}

static int64_t cursor_offset(const struct cursor *c)
{
    int64_t offset = 0;
    if (c->contiguous) return c->index[0];
    for (int d = 0; d < c->a->ndim; d++) offset += c->index[d] * c->a->stride[d];
    return offset;
}

/* Returns the address of the next run, or NULL after the last. */
static void *cursor_next(struct cursor *c)
{
    const struct plim_array *a = c->a;
    if (c->left <= 0) return NULL;
    uint64_t address = a->data + (uint64_t)(cursor_offset(c) * plim_dtype_size(a->dtype));
    c->step = 1;
    c->count = c->left;
    if (!c->contiguous) {
        int last = a->ndim - 1;
        c->step = a->stride[last];
        if (a->shape[last] - c->index[last] < c->count) c->count = a->shape[last] - c->index[last];
        c->index[last] += c->count;
        for (int d = last; d > 0 && c->index[d] == a->shape[d]; d--) {
            c->index[d] = 0;
            c->index[d - 1]++;
        }
    }
    c->left -= c->count;
    return (void *)(uintptr_t)address;
}

#define EACH_RUN(function, number)                                                                 \
    struct cursor c = cursor_at(a, first, count);                                                  \
    for (void *at; (at = cursor_next(&c)); number += c.count)                                      \
        function(a->dtype, at, c.step, c.count, number);

void plim_elements_read(const struct plim_array *a, int64_t first, int64_t count, double *to)
{
    EACH_RUN(read_run, to)
}

void plim_elements_write(const struct plim_array *a, int64_t first, int64_t count,
                         const double *from)
{
    EACH_RUN(write_run, from)
}

void plim_elements_read_integers(const struct plim_array *a, int64_t first, int64_t count,
                                 int64_t *to)
{
    EACH_RUN(read_integer_run, to)
}

void plim_elements_write_integers(const struct plim_array *a, int64_t first, int64_t count,
                                  const int64_t *from)
{
    EACH_RUN(write_integer_run, from)
}

/* --- arrays ----------------------------------------------------------------------------------- */

bool plim_elements_are_integers(const struct plim_array *a)
{
    return a->dtype > PLIM_F16;
}

double plim_elements_scalar(const struct plim_array *a)
{
    double x = 0;
    plim_elements_read(a, 0, 1, &x);
    return x;
}

enum plim_status plim_elements_broadcast(const struct plim_array *a, const struct plim_array *like,
                                         struct plim_array *view)
{
    int lead = like->ndim - a->ndim;
    if (lead < 0) return PLIM_INVALID;
    *view = (struct plim_array){.data = a->data, .ndim = like->ndim, .dtype = a->dtype};
    for (int d = 0; d < like->ndim; d++) {
        int64_t extent = d < lead ? 1 : a->shape[d - lead];
        if (extent != 1 && extent != like->shape[d]) return PLIM_INVALID;
        view->shape[d] = like->shape[d];
        view->stride[d] = extent == 1 ? 0 : a->stride[d - lead];
    }
    return PLIM_OK;
}

bool plim_elements_same_shape(const struct plim_array *a, const struct plim_array *b)
{
    if (a->ndim != b->ndim) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

int64_t plim_elements_last(const struct plim_array *a)
{
    return a->ndim ? a->shape[a->ndim - 1] : 1;
}
