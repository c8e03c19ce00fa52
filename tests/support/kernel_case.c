#include "kernel_case.h"
#include "devices/host/element.h"
#include "devices/host/reference.h"
#include "devices/random.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AROUND_BYTES = 512, UNTOUCHED = 0x5a };

/* --- arrays ----------------------------------------------------------------------------------- */

void kernel_case_init(struct kernel_case *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->random = seed << 32;
    c->info.compute_capability = 90;
    c->info.multiprocessors = 1;
    c->info.threads_per_multiprocessor = 2048;
}

void kernel_case_finish(struct kernel_case *c)
{
    for (int i = 0; i < c->count; i++) {
        free(c->arrays[i].memory);
        free(c->arrays[i].initial);
        free(c->arrays[i].expected);
        free(c->arrays[i].actual);
    }
    c->count = 0;
}

static double random_unit(struct kernel_case *c)
{
    return (double)plim_random_unit(plim_random_word(7, c->random++));
}

void kernel_case_fill(struct kernel_case *c, const struct plim_array *a, double low, double high)
{
    for (int64_t i = 0; i < plim_array_elements(a); i++)
        kernel_case_set(a, i, low + (high - low) * random_unit(c));
}

static void fill_by_type(struct kernel_case *c, const struct plim_array *a)
{
    switch (a->dtype) {
    case PLIM_I64:
    case PLIM_I32:
        kernel_case_fill(c, a, -100, 100);
        break;
    case PLIM_U8:
        kernel_case_fill(c, a, 0, 200);
        break;
    case PLIM_BOOL:
        for (int64_t i = 0; i < plim_array_elements(a); i++)
            kernel_case_set(a, i, random_unit(c) < 0.5);
        break;
    default:
        kernel_case_fill(c, a, -2, 2);
    }
}

const struct plim_array *kernel_case_strided(struct kernel_case *c, enum plim_dtype dtype, int ndim,
                                             const int64_t *shape, const int64_t *stride,
                                             int64_t offset)
{
    cr_assert(c->count < KERNEL_CASE_ARRAYS);
    struct kernel_case_array *k = &c->arrays[c->count++];
    *k = (struct kernel_case_array){.a = {.ndim = (uint8_t)ndim, .dtype = (uint8_t)dtype}};
    int64_t before = 0, after = 1; /* elements from the lowest to the first, to the end */
    for (int d = 0; d < ndim; d++) {
        k->a.shape[d] = shape[d];
        k->a.stride[d] = stride[d];
        int64_t reach = shape[d] > 0 ? (shape[d] - 1) * stride[d] : 0;
        *(reach < 0 ? &before : &after) += reach < 0 ? -reach : reach;
    }
    int64_t size = plim_dtype_size(dtype);
    size_t room = (size_t)((before + after + offset) * size) + 3 * AROUND_BYTES;
    k->bytes = room / AROUND_BYTES * AROUND_BYTES;
    k->memory = aligned_alloc(AROUND_BYTES, k->bytes);
    k->initial = malloc(k->bytes);
    k->expected = malloc(k->bytes);
    k->actual = malloc(k->bytes);
    cr_assert(k->memory && k->initial && k->expected && k->actual);
    memset(k->memory, UNTOUCHED, k->bytes);
    k->a.data = (uint64_t)(uintptr_t)(k->memory + AROUND_BYTES + (before + offset) * size);
    fill_by_type(c, &k->a);
    return &k->a;
}

const struct plim_array *kernel_case_permuted(struct kernel_case *c, enum plim_dtype dtype,
                                              int ndim, const int64_t *shape, const int *order,
                                              int64_t offset)
{
    int64_t stride[PLIM_MAX_DIMS] = {0}, next = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[order[i]] = next;
        next *= shape[order[i]];
    }
    return kernel_case_strided(c, dtype, ndim, shape, stride, offset);
}

const struct plim_array *kernel_case_array(struct kernel_case *c, enum plim_dtype dtype, int ndim,
                                           const int64_t *shape)
{
    static const int row_major[PLIM_MAX_DIMS] = {0, 1, 2, 3, 4, 5};
    return kernel_case_permuted(c, dtype, ndim, shape, row_major, 0);
}

const struct plim_array *kernel_case_scalar(struct kernel_case *c, enum plim_dtype dtype)
{
    return kernel_case_array(c, dtype, 0, NULL);
}

const struct plim_array *kernel_case_scratch(struct kernel_case *c, int64_t bytes)
{
    const struct plim_array *a = KERNEL_ARRAY(c, PLIM_U8, bytes);
    c->arrays[c->count - 1].scratch = true;
    return a;
}

double kernel_case_get(const struct plim_array *a, int64_t i)
{
    double value;
    plim_elements_read(a, i, 1, &value);
    return value;
}

void kernel_case_set(const struct plim_array *a, int64_t i, double value)
{
    plim_elements_write(a, i, 1, &value);
}

/* --- runs ------------------------------------------------------------------------------------- */

enum copy { SAVE_INITIAL, RESTORE_INITIAL, SAVE_EXPECTED, SAVE_ACTUAL };

static void copy_all(struct kernel_case *c, enum copy copy)
{
    for (int i = 0; i < c->count; i++) {
        struct kernel_case_array *k = &c->arrays[i];
        switch (copy) {
        case SAVE_INITIAL:
            memcpy(k->initial, k->memory, k->bytes);
            break;
        case RESTORE_INITIAL:
            memcpy(k->memory, k->initial, k->bytes);
            break;
        case SAVE_EXPECTED:
            memcpy(k->expected, k->memory, k->bytes);
            break;
        case SAVE_ACTUAL:
            memcpy(k->actual, k->memory, k->bytes);
            break;
        }
    }
}

/* After it `memory` and `actual` hold what the way left. */
static enum kernel_case_way run_way(struct kernel_case *c, const struct plim_op *op, int way)
{
    copy_all(c, RESTORE_INITIAL);
    enum kernel_case_way kind = kernel_case_launch(c, op, way);
    for (int i = 0; kind == KERNEL_CASE_AGAIN && i < c->count; i++)
        cr_assert(c->arrays[i].scratch ||
                      memcmp(c->arrays[i].actual, c->arrays[i].memory, c->arrays[i].bytes) == 0,
                  "%s: array %d differs from the same run before it (way %d)",
                  plim_op_name(op->kind), i, way);
    if (kind == KERNEL_CASE_ANOTHER) copy_all(c, SAVE_ACTUAL);
    return kind;
}

/* --- comparison ------------------------------------------------------------------------------- */

static double epsilon_of(enum plim_dtype dtype)
{
    switch (dtype) {
    case PLIM_F32:
        return 0x1p-23;
    case PLIM_BF16:
        return 0x1p-7;
    case PLIM_F16:
        return 0x1p-10;
    default:
        return 0;
    }
}

static bool is_near(double actual, double expected, double relative, double magnitude)
{
    if (isnan(actual) || isnan(expected)) return isnan(actual) && isnan(expected);
    if (actual == expected) return true;
    if (isinf(expected)) return false;
    return fabs(actual - expected) <= relative * fmax(fabs(expected), magnitude);
}

static struct plim_array elements_in(const struct kernel_case_array *k, const uint8_t *copy)
{
    struct plim_array a = k->a;
    a.data = k->a.data - (uint64_t)(uintptr_t)k->memory + (uint64_t)(uintptr_t)copy;
    return a;
}

static void compare_elements(const struct kernel_case_array *k, int number, double epsilons,
                             double magnitude)
{
    struct plim_array actual = elements_in(k, k->actual), expected = elements_in(k, k->expected);
    double relative = epsilons * epsilon_of((enum plim_dtype)k->a.dtype);
    for (int64_t i = 0; i < plim_array_elements(&k->a); i++) {
        double a = kernel_case_get(&actual, i), e = kernel_case_get(&expected, i);
        cr_assert(is_near(a, e, relative, magnitude),
                  "array %d (%s), element %lld: %.9g, expected %.9g", number,
                  plim_dtype_name((enum plim_dtype)k->a.dtype), (long long)i, a, e);
    }
}

/* What is no element must be as before. `memory` holds what was left, and may be changed. */
static void compare_surroundings(struct kernel_case_array *k, int number)
{
    size_t size = (size_t)plim_dtype_size((enum plim_dtype)k->a.dtype);
    for (int64_t i = 0; i < plim_array_elements(&k->a); i++) {
        uint64_t at = k->a.data;
        int64_t rest = i;
        for (int d = k->a.ndim - 1; d >= 0; d--) {
            at += (uint64_t)(rest % k->a.shape[d] * k->a.stride[d]) * size;
            rest /= k->a.shape[d];
        }
        size_t offset = at - (uint64_t)(uintptr_t)k->memory;
        memcpy(k->memory + offset, k->initial + offset, size);
    }
    for (size_t i = 0; i < k->bytes; i++)
        cr_assert(k->memory[i] == k->initial[i],
                  "array %d: byte %td from the first element was written", number,
                  k->memory + i - (uint8_t *)(uintptr_t)k->a.data);
}

void kernel_case_run(struct kernel_case *c, const struct plim_op *op)
{
    copy_all(c, SAVE_INITIAL);
    enum kernel_case_way kind;
    for (int way = 0; (kind = run_way(c, op, way)) != KERNEL_CASE_NO_WAY; way++)
        for (int i = 0; kind == KERNEL_CASE_ANOTHER && i < c->count; i++)
            compare_surroundings(&c->arrays[i], i);
    for (int i = 0; i < c->count; i++)
        memcpy(c->arrays[i].memory, c->arrays[i].actual, c->arrays[i].bytes);
}

void kernel_case_check(struct kernel_case *c, const struct plim_op *op, double epsilons,
                       double magnitude)
{
    copy_all(c, SAVE_INITIAL);
    enum plim_status st = plim_reference_run(op);
    cr_assert(st == PLIM_OK, "reference of %s: %s", plim_op_name(op->kind), plim_status_text(st));
    copy_all(c, SAVE_EXPECTED);
    enum kernel_case_way kind;
    for (int way = 0; (kind = run_way(c, op, way)) != KERNEL_CASE_NO_WAY; way++)
        for (int i = 0; kind == KERNEL_CASE_ANOTHER && i < c->count; i++) {
            if (!c->arrays[i].scratch) compare_elements(&c->arrays[i], i, epsilons, magnitude);
            compare_surroundings(&c->arrays[i], i);
        }
    copy_all(c, RESTORE_INITIAL);
}
