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

/* How an array divides into runs: its last dimensions, as far as their elements have equal distances. A contiguous
 * array is one run. */
struct runs {
    int outer; /* dimensions before those of a run */
    int64_t length, step;
};

static struct runs runs_of(const struct plim_array *a)
{
    struct runs r = {.outer = a->ndim, .length = 1, .step = 1};
    for (; r.outer > 0; r.outer--) {
        int64_t extent = a->shape[r.outer - 1], stride = a->stride[r.outer - 1];
        if (extent == 1) continue;
        if (r.length == 1) r.step = stride;
        if (stride != r.length * r.step) break;
        r.length *= extent;
    }
    return r;
}

/* Returns the address of an element. */
static void *element_at(const struct plim_array *a, const struct runs *r, int64_t element)
{
    int64_t offset = element * r->step;
    if (r->outer > 0) {
        int64_t run = element / r->length;
        offset = (element - run * r->length) * r->step;
        for (int d = r->outer - 1; d >= 0 && run > 0; d--) {
            int64_t above = run / a->shape[d];
            offset += (run - above * a->shape[d]) * a->stride[d];
            run = above;
        }
    }
    return (void *)(uintptr_t)(a->data + (uint64_t)(offset * plim_dtype_size(a->dtype)));
}

/* Calls `function` for each run, or its part, of elements `first` to `first + count`. */
#define EACH_RUN(function, numbers)                                                                \
    struct runs r = runs_of(a);                                                                    \
    for (int64_t next = first, end = first + count, some; next < end; next += some) {              \
        some = r.outer > 0 ? r.length - next % r.length : end - next;                              \
        if (some > end - next) some = end - next;                                                  \
        function(a->dtype, element_at(a, &r, next), r.step, some, numbers + (next - first));       \
    }

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
