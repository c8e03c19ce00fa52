/* A kernel's test: one operation on random arrays, run by the plan of devices/cuda/kernels.h and by
 * the host's reference, and compared. Kernels run on the emulator (kernel_case_emulator.c) or on a
 * device (tests/gpu/kernel_case_device.c), whichever is linked.
 *
 *     struct kernel_case c;
 *     kernel_case_init(&c, 1);
 *     const struct plim_array *x = KERNEL_ARRAY(&c, PLIM_BF16, 33, 65), *y = ...;
 *     struct plim_op op = {...};
 *     kernel_case_check(&c, &op, 1, 0);
 *     kernel_case_finish(&c);
 *
 * The plan runs several times, on the emulator in every order of its threads, and must give the
 * same bits. Every element of every array, inputs too, must then be what the reference leaves;
 * every other byte, between strided elements and around the arrays, must be untouched. Failures are
 * Criterion's.
 */
#ifndef PLIM_TESTS_SUPPORT_KERNEL_CASE_H
#define PLIM_TESTS_SUPPORT_KERNEL_CASE_H

#include "devices/cuda/kernels.h"

enum { KERNEL_CASE_ARRAYS = 64 };

struct kernel_case_array {
    struct plim_array a;
    /* with what is around the elements: now; before; by the reference; after the last way */
    uint8_t *memory, *initial, *expected, *actual;
    size_t bytes;
    bool scratch; /* its contents do not matter afterwards */
};

struct kernel_case {
    struct plim_device_info info; /* a small GPU: large arrays exceed its grids */
    struct kernel_case_array arrays[KERNEL_CASE_ARRAYS];
    int count;
    int launches;       /* of the plan, in the last check */
    const char *kernel; /* of its last launch */
    uint64_t random;
};

void kernel_case_init(struct kernel_case *c, uint64_t seed);
void kernel_case_finish(struct kernel_case *c);

/* A contiguous array of random values: floats in [-2, 2), integers in [-100, 100), uint8 below 200.
 * Aligned to 512 bytes, as the allocator's blocks are. */
const struct plim_array *kernel_case_array(struct kernel_case *c, enum plim_dtype dtype, int ndim,
                                           const int64_t *shape);
#define KERNEL_ARRAY(c, dtype, ...)                                                                \
    kernel_case_array(c, dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),         \
                      (const int64_t[]){__VA_ARGS__})

/* Of no dimensions. */
const struct plim_array *kernel_case_scalar(struct kernel_case *c, enum plim_dtype dtype);

/* Strides in elements, which may be 0 or negative; the first element `offset` elements beyond an
 * aligned address. */
const struct plim_array *kernel_case_strided(struct kernel_case *c, enum plim_dtype dtype, int ndim,
                                             const int64_t *shape, const int64_t *stride,
                                             int64_t offset);

/* Contiguous in memory in the order of `order`, slowest dimension first: {1, 0} is a transposed
 * matrix. */
const struct plim_array *kernel_case_permuted(struct kernel_case *c, enum plim_dtype dtype,
                                              int ndim, const int64_t *shape, const int *order,
                                              int64_t offset);

/* Raw bytes for an operation's scratch. */
const struct plim_array *kernel_case_scratch(struct kernel_case *c, int64_t bytes);

/* Element i in row-major order, as it will be before the operation; the array is one of `c`. */
double kernel_case_get(const struct plim_array *a, int64_t i);
void kernel_case_set(const struct plim_array *a, int64_t i, double value);
/* All elements, in [low, high); integers truncate. */
void kernel_case_fill(struct kernel_case *c, const struct plim_array *a, double low, double high);

/* The kernels alone: afterwards the arrays hold what they left. What is no element must be
 * untouched. */
void kernel_case_run(struct kernel_case *c, const struct plim_op *op);

/* Results may differ by `epsilons` of their type, relative to the larger of the expected value and
 * `magnitude`: what is summed, where terms cancel. 0: exactly equal. The spacing of numbers just
 * above 1 is the epsilon: 2^-23, bf16 2^-7, fp16 2^-10. */
void kernel_case_check(struct kernel_case *c, const struct plim_op *op, double epsilons,
                       double magnitude);

/* --- where kernels run ------------------------------------------------------------------------ */

enum kernel_case_way {
    KERNEL_CASE_NO_WAY,
    KERNEL_CASE_ANOTHER,
    KERNEL_CASE_AGAIN,
    KERNEL_CASE_SKIPPED
};

/* Are kernels that are compiled for GPUs of this compute capability alone here? On the emulator all are. */
bool kernel_case_has(int compute_capability);

/* Runs the operation on the arrays in its `way`th way, counted from 0. KERNEL_CASE_AGAIN: the
 * bits must be those of the way before it; KERNEL_CASE_SKIPPED: this way is not for it, and nothing
 * was done; KERNEL_CASE_NO_WAY: there are not so many. */
enum kernel_case_way kernel_case_launch(struct kernel_case *c, const struct plim_op *op, int way);

#endif
