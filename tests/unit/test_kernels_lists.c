#include "support/kernel_case.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>

static struct kernel_case c;

static void setup(void)
{
    kernel_case_init(&c, 4);
}

static void finish(void)
{
    kernel_case_finish(&c);
}

TestSuite(kernels_lists, .init = setup, .fini = finish);

static const enum plim_dtype types[] = {PLIM_F32, PLIM_BF16, PLIM_F16};

enum { CHUNK = 65536 };

/* --- lists ------------------------------------------------------------------------------------ */

/* Lists of adjacent tensors, at any alignment, in one array of the case. */
enum { LISTS = 5, MOST_TENSORS = 300 };
static struct plim_array tensors[LISTS][MOST_TENSORS];
static const struct plim_array *pointers[LISTS][MOST_TENSORS];

struct sizes {
    size_t count;
    int64_t of[MOST_TENSORS];
};

static struct sizes one_size(int64_t size)
{
    return (struct sizes){1, {size}};
}

/* Small ones, empty ones at the ends and within, and two of more than a chunk. */
static struct sizes many_sizes(void)
{
    struct sizes s = {.count = MOST_TENSORS};
    for (int i = 0; i < MOST_TENSORS; i++) s.of[i] = i * 37 % 101 * (i % 5 != 0);
    s.of[40] = CHUNK + 3;
    s.of[250] = 2 * CHUNK;
    return s;
}

/* Tensors of the sizes, or, with `numbers`, a number for each. Returns the array of them all. */
static const struct plim_array *make_list(struct plim_op *op, int list, enum plim_dtype dtype,
                                          const struct sizes *sizes, bool numbers)
{
    int64_t total = 0;
    for (size_t i = 0; i < sizes->count; i++) total += numbers ? 1 : sizes->of[i];
    const struct plim_array *all = KERNEL_ARRAY(&c, dtype, total);
    int64_t at = 0;
    for (size_t i = 0; i < sizes->count; i++) {
        struct plim_array *a = &tensors[list][i];
        *a = (struct plim_array){.data = all->data + (uint64_t)(at * plim_dtype_size(dtype)),
                                 .shape = {numbers ? 1 : sizes->of[i]},
                                 .stride = {1},
                                 .ndim = numbers ? 0 : 1,
                                 .dtype = (uint8_t)dtype};
        pointers[list][i] = a;
        at += numbers ? 1 : sizes->of[i];
    }
    op->lists[list] = pointers[list];
    op->list_length = sizes->count;
    if (op->n_lists <= list) op->n_lists = (uint8_t)(list + 1);
    return all;
}

static double tolerance(enum plim_dtype dtype)
{
    return dtype == PLIM_F32 ? 4 : 1;
}

/* --- FOREACH ---------------------------------------------------------------------------------- */

static const struct {
    enum plim_foreach function;
    int lists;
} maps[] = {{PLIM_FOREACH_ADD, 1},     {PLIM_FOREACH_ADD, 2},  {PLIM_FOREACH_MUL, 1},
            {PLIM_FOREACH_DIV, 1},     {PLIM_FOREACH_LERP, 2}, {PLIM_FOREACH_ADDCMUL, 3},
            {PLIM_FOREACH_ADDCDIV, 3}, {PLIM_FOREACH_SQRT, 2}};
enum { MAPS = sizeof maps / sizeof *maps };

static void check_map(int map, const enum plim_dtype dtypes[3], const struct sizes *sizes,
                      bool factor)
{
    struct plim_op op = {
        .kind = PLIM_OP_FOREACH, .foreach = (uint8_t)maps[map].function, .alpha = 0.37};
    for (int i = 0; i < maps[map].lists; i++) {
        const struct plim_array *all = make_list(&op, i, dtypes[i], sizes, false);
        if (i == maps[map].lists - 1) kernel_case_fill(&c, all, 0.5, 2); /* a divisor, a square */
    }
    if (factor) op.in[op.n_in++] = kernel_case_scalar(&c, PLIM_F32);
    kernel_case_check(&c, &op, tolerance(dtypes[0]), 1);
    kernel_case_finish(&c);
}

Test(kernels_lists, maps_of_every_type_and_length)
{
    static const int64_t lengths[] = {1, 7, 8, 4099, CHUNK, CHUNK + 9};
    for (int map = 0; map < MAPS; map++)
        for (int t = 0; t < 3; t++)
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                struct sizes sizes = one_size(lengths[i]);
                check_map(map, (enum plim_dtype[]){types[t], types[t], types[t]}, &sizes, false);
            }
}

Test(kernels_lists, maps_over_many_tensors)
{
    struct sizes sizes = many_sizes();
    for (int map = 0; map < MAPS; map++) {
        check_map(map, (enum plim_dtype[]){PLIM_F32, PLIM_F32, PLIM_F32}, &sizes, false);
        cr_expect(lt(int, 1, c.launches)); /* they do not fit into one */
    }
}

Test(kernels_lists, maps_over_lists_of_different_types)
{
    struct sizes sizes = {3, {100, 0, 77}};
    for (int map = 0; map < MAPS; map++)
        check_map(map, (enum plim_dtype[]){PLIM_BF16, PLIM_F32, PLIM_F16}, &sizes, false);
}

Test(kernels_lists, a_list_whose_type_changes_takes_another_launch)
{
    struct sizes sizes = {4, {8, 9, 10, 11}};
    struct plim_op op = {.kind = PLIM_OP_FOREACH, .foreach = PLIM_FOREACH_MUL, .alpha = 3};
    make_list(&op, 0, PLIM_F32, &sizes, false);
    tensors[0][2] = *KERNEL_ARRAY(&c, PLIM_BF16, 33);
    kernel_case_check(&c, &op, 1, 0);
    cr_expect(eq(int, c.launches, 3));
}

Test(kernels_lists, mul_takes_a_factor_from_the_device)
{
    struct sizes sizes = {3, {100, 0, 77}};
    for (int t = 0; t < 3; t++) check_map(2, (enum plim_dtype[]){types[t], 0, 0}, &sizes, true);
}

Test(kernels_lists, transposed_tensors_of_one_order_are_taken_and_others_refused)
{
    const int64_t shape[] = {24, 16};
    const int order[] = {1, 0};
    const struct plim_array *a[] = {kernel_case_permuted(&c, PLIM_F32, 2, shape, order, 0)};
    const struct plim_array *b[] = {kernel_case_permuted(&c, PLIM_F32, 2, shape, order, 0)};
    struct plim_op op = {.kind = PLIM_OP_FOREACH,
                         .foreach = PLIM_FOREACH_ADD,
                         .alpha = 2,
                         .n_lists = 2,
                         .lists = {a, b},
                         .list_length = 1};
    kernel_case_check(&c, &op, 4, 1);
    b[0] = KERNEL_ARRAY(&c, PLIM_F32, 24, 16);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_UNSUPPORTED));
}

Test(kernels_lists, an_empty_list_launches_nothing)
{
    struct sizes sizes = {2, {0, 0}};
    check_map(0, (enum plim_dtype[]){PLIM_F32, 0, 0}, &sizes, false);
    cr_expect(eq(int, c.launches, 0));
}

static void check_norm(enum plim_dtype dtype, const struct sizes *sizes)
{
    struct plim_op op = {.kind = PLIM_OP_FOREACH, .foreach = PLIM_FOREACH_NORM};
    make_list(&op, 0, dtype, sizes, true);
    make_list(&op, 1, dtype, sizes, false);
    int64_t chunks = 0;
    for (size_t i = 0; i < sizes->count; i++) chunks += (sizes->of[i] + CHUNK - 1) / CHUNK;
    op.scratch[op.n_scratch++] = kernel_case_scratch(&c, chunks * 4);
    kernel_case_check(&c, &op, tolerance(dtype), 1);
    kernel_case_finish(&c);
}

Test(kernels_lists, norms_of_tensors)
{
    struct sizes many = many_sizes();
    for (int t = 0; t < 3; t++) {
        struct sizes small = {4, {1, 0, 7, 4099}};
        check_norm(types[t], &small);
        check_norm(types[t], &many);
    }
}

Test(kernels_lists, norms_want_their_scratch)
{
    struct sizes sizes = {2, {CHUNK + 1, 1}};
    struct plim_op op = {.kind = PLIM_OP_FOREACH, .foreach = PLIM_FOREACH_NORM};
    make_list(&op, 0, PLIM_F32, &sizes, true);
    make_list(&op, 1, PLIM_F32, &sizes, false);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
    op.scratch[op.n_scratch++] = kernel_case_scratch(&c, 2 * 4);
    cr_expect(eq(int, plim_cuda_plan(&c.info, &op, NULL, NULL), PLIM_INVALID));
}

/* `at`: the element of the lists that is `value`, of those before it all finite; -1: none. */
static void check_unscale(enum plim_dtype dtype, int64_t at, double value)
{
    struct sizes sizes = {4, {9, 0, CHUNK + 8, 40}};
    struct plim_op op = {.kind = PLIM_OP_FOREACH, .foreach = PLIM_FOREACH_UNSCALE, .alpha = 1};
    const struct plim_array *all = make_list(&op, 0, dtype, &sizes, false);
    if (at >= 0) kernel_case_set(all, at, value);
    op.in[op.n_in++] = kernel_case_scalar(&c, PLIM_F32);
    op.out[op.n_out++] = kernel_case_scalar(&c, PLIM_F32);
    kernel_case_set(op.out[0], 0, 0);
    kernel_case_check(&c, &op, 1, 0);
    kernel_case_finish(&c);
}

Test(kernels_lists, unscale_finds_what_is_not_finite)
{
    static const int64_t places[] = {0, 8, 9, CHUNK + 9, CHUNK + 17, CHUNK + 56};
    for (int t = 0; t < 3; t++) {
        check_unscale(types[t], -1, 0);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            check_unscale(types[t], places[i], INFINITY);
            check_unscale(types[t], places[i], -INFINITY);
            check_unscale(types[t], places[i], NAN);
        }
    }
}

Test(kernels_lists, unscale_leaves_what_was_found_before)
{
    struct sizes sizes = one_size(5);
    struct plim_op op = {.kind = PLIM_OP_FOREACH, .foreach = PLIM_FOREACH_UNSCALE, .alpha = 1};
    make_list(&op, 0, PLIM_F32, &sizes, false);
    op.in[op.n_in++] = kernel_case_scalar(&c, PLIM_F32);
    op.out[op.n_out++] = kernel_case_scalar(&c, PLIM_F32);
    kernel_case_set(op.out[0], 0, 1);
    kernel_case_check(&c, &op, 1, 0);
}

/* --- AdamW ------------------------------------------------------------------------------------ */

static const struct plim_adam adam = {
    .rate = 0.05, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1, .step = 3};

enum { PARAMETERS, MOMENTS, SECOND_MOMENTS, STEPS, GRADIENTS };

static void check_fused(const enum plim_dtype dtype[3], const struct sizes *sizes,
                        const struct plim_array *found_inf, const struct plim_array *grad_scale)
{
    struct plim_op op = {.kind = PLIM_OP_OPTIMIZER,
                         .foreach = PLIM_FUSED_ADAMW,
                         .adam = &adam,
                         .n_in = 2,
                         .in = {found_inf, grad_scale}};
    make_list(&op, PARAMETERS, dtype[0], sizes, false);
    make_list(&op, MOMENTS, dtype[1], sizes, false);
    kernel_case_fill(&c, make_list(&op, SECOND_MOMENTS, dtype[1], sizes, false), 0, 1);
    kernel_case_fill(&c, make_list(&op, STEPS, PLIM_F32, sizes, true), 0, 5);
    for (size_t i = 0; i < sizes->count; i++)
        kernel_case_set(pointers[STEPS][i], 0, i % 2 ? 4000 : (double)(i % 7));
    make_list(&op, GRADIENTS, dtype[2], sizes, false);
    kernel_case_check(&c, &op, tolerance(dtype[0]) * 2, 2);
    kernel_case_finish(&c);
}

Test(kernels_lists, fused_adamw_of_every_type)
{
    struct sizes many = many_sizes(), few = {5, {1, 0, 8, 77, 0}};
    for (int t = 0; t < 3; t++)
        check_fused((enum plim_dtype[]){types[t], types[t], types[t]}, &few, NULL, NULL);
    check_fused((enum plim_dtype[]){PLIM_BF16, PLIM_F32, PLIM_F16}, &few, NULL, NULL);
    check_fused((enum plim_dtype[]){PLIM_F32, PLIM_F32, PLIM_F32}, &many, NULL, NULL);
}

Test(kernels_lists, fused_adamw_divides_gradients_by_the_scale)
{
    struct sizes sizes = {2, {100, 9}};
    const struct plim_array *none = kernel_case_scalar(&c, PLIM_F32);
    const struct plim_array *scale = kernel_case_scalar(&c, PLIM_F32);
    kernel_case_set(none, 0, 0);
    kernel_case_set(scale, 0, 1024);
    check_fused((enum plim_dtype[]){PLIM_F32, PLIM_F32, PLIM_F32}, &sizes, none, scale);
}

Test(kernels_lists, fused_adamw_does_nothing_after_an_infinity)
{
    struct sizes sizes = {2, {100, 9}};
    const struct plim_array *found = kernel_case_scalar(&c, PLIM_F32);
    kernel_case_set(found, 0, 1);
    check_fused((enum plim_dtype[]){PLIM_F32, PLIM_F32, PLIM_F32}, &sizes, found, NULL);
}

static const int64_t lengths[] = {1, 255, 256, 257, 4096, 5001, CHUNK + 1};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

Test(kernels_lists, adamw_32bit)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < LENGTHS; i++) {
            struct plim_op op = {.kind = PLIM_OP_OPTIMIZER,
                                 .foreach = PLIM_ADAMW_32BIT,
                                 .adam = &adam,
                                 .n_out = 3,
                                 .n_in = 1,
                                 .out = {KERNEL_ARRAY(&c, types[t], lengths[i]),
                                         KERNEL_ARRAY(&c, PLIM_F32, lengths[i]),
                                         KERNEL_ARRAY(&c, PLIM_F32, lengths[i])},
                                 .in = {KERNEL_ARRAY(&c, types[t], lengths[i])}};
            kernel_case_fill(&c, op.out[2], 0, 1);
            kernel_case_check(&c, &op, 8, 1);
            kernel_case_finish(&c);
        }
}

/* Numbers of few bits, so that what lies between two codes is the same in fp32 and in doubles, and
 * some lie exactly in the middle. */
static const struct plim_adam coarse_adam = {
    .rate = 0.05, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-8, .weight_decay = 0.1, .step = 3};

/* Ascending books of uneven steps: of -1 to 1, of 0 to 1. */
static void fill_book(const struct plim_array *book, bool is_signed)
{
    for (int i = 0; i < 256; i++) {
        int k = is_signed ? abs(i - 128) : i / 2;
        double x = k <= 64 ? k / 256.0 : 0.25 + (k - 64) * 3 / 256.0;
        if (!is_signed) x += i % 2 / 512.0;
        kernel_case_set(book, i, is_signed && i < 128 ? -x : x);
    }
}

static void fill_coarsely(const struct plim_array *a, double low, double step, int64_t steps)
{
    for (int64_t i = 0; i < plim_array_elements(a); i++)
        kernel_case_set(a, i, low + step * (double)(i * 7919 % 10007 % steps));
}

static void make_8bit(struct plim_op *op, enum plim_dtype dtype, int64_t length, int64_t offset)
{
    const int64_t shape[] = {length}, one[] = {1};
    int64_t blocks = (length + 255) / 256;
    *op = (struct plim_op){.kind = PLIM_OP_OPTIMIZER,
                           .foreach = PLIM_ADAMW_8BIT,
                           .adam = &coarse_adam,
                           .n_out = 3,
                           .n_in = 5,
                           .out = {kernel_case_strided(&c, dtype, 1, shape, one, offset),
                                   kernel_case_strided(&c, PLIM_U8, 1, shape, one, offset),
                                   kernel_case_strided(&c, PLIM_U8, 1, shape, one, offset)},
                           .in = {kernel_case_strided(&c, dtype, 1, shape, one, offset),
                                  KERNEL_ARRAY(&c, PLIM_F32, 256), KERNEL_ARRAY(&c, PLIM_F32, 256),
                                  KERNEL_ARRAY(&c, PLIM_F32, blocks),
                                  KERNEL_ARRAY(&c, PLIM_F32, blocks)}};
    fill_book(op->in[1], true);
    fill_book(op->in[2], false);
    fill_coarsely(op->in[0], -2, 0.0625, 64);
    fill_coarsely(op->in[3], 0.5, 0.5, 2);
    fill_coarsely(op->in[4], 0.5, 0.5, 2);
}

Test(kernels_lists, adamw_8bit)
{
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < LENGTHS; i++)
            for (int offset = 0; offset < 2; offset++) {
                struct plim_op op;
                make_8bit(&op, types[t], lengths[i], offset);
                kernel_case_check(&c, &op, types[t] == PLIM_F32 ? 16 : 1, 1);
                kernel_case_finish(&c);
            }
}

Test(kernels_lists, adamw_8bit_drops_the_states_of_gradients_that_are_not_finite)
{
    struct plim_op op;
    make_8bit(&op, PLIM_F32, 600, 0);
    kernel_case_set(op.in[0], 3, INFINITY);
    kernel_case_set(op.in[0], 300, NAN);
    kernel_case_set(op.in[0], 599, -INFINITY);
    kernel_case_check(&c, &op, 16, 1);
}

Test(kernels_lists, adamw_8bit_takes_the_lower_of_two_codes_that_are_as_near)
{
    struct plim_op op;
    make_8bit(&op, PLIM_F32, 256, 0);
    for (int i = 0; i < 256;
         i++) { /* moments -(i + 257) / 512: every third of them is between two */
        kernel_case_set(op.out[1], i, 0);
        kernel_case_set(op.in[0], i, -(i + 1) / 256.0);
    }
    kernel_case_set(op.in[3], 0, 1);
    kernel_case_check(&c, &op, 16, 1);
}

Test(kernels_lists, adamw_8bit_of_states_that_are_zero)
{
    struct plim_op op;
    make_8bit(&op, PLIM_F32, 300, 0);
    kernel_case_fill(&c, op.in[0], 0, 0);
    kernel_case_fill(&c, op.in[3], 0, 0);
    kernel_case_fill(&c, op.in[4], 0, 0);
    kernel_case_check(&c, &op, 16, 1);
}

/* --- GradScaler ------------------------------------------------------------------------------- */

static void check_update(enum plim_dtype growth_type, double scale, double growth, double found)
{
    struct plim_op op = {
        .kind = PLIM_OP_OPTIMIZER,
        .foreach = PLIM_AMP_UPDATE_SCALE,
        .n_out = 2,
        .n_in = 1,
        .out = {kernel_case_scalar(&c, PLIM_F32), kernel_case_scalar(&c, growth_type)},
        .in = {kernel_case_scalar(&c, PLIM_F32)}};
    kernel_case_set(op.out[0], 0, scale);
    kernel_case_set(op.out[1], 0, growth);
    kernel_case_set(op.in[0], 0, found);
    kernel_case_check(&c, &op, 0, 0);
    kernel_case_finish(&c);
}

Test(kernels_lists, scale_grows_and_shrinks_as_in_pytorch)
{
    static const enum plim_dtype growth[] = {PLIM_F32, PLIM_I32};
    for (int t = 0; t < 2; t++) {
        check_update(growth[t], 65536, 7, 0);
        check_update(growth[t], 65536, 7, 1);
        check_update(growth[t], 65536, 1998, 0);
        check_update(growth[t], 65536, 1999, 0);
        check_update(growth[t], 65536, 1999, 1);
        check_update(growth[t], 0x1p127, 1999, 0); /* twice this is infinite: it stays */
    }
}
