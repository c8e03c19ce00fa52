/* Matrix products through cuBLASLt's interface, on the stand-in of tests/doubles, against the
 * reference: layouts, batches, addends, types, workspaces, failures. */
#include "devices/cuda/cublaslt.h"
#include "devices/half.h"
#include "devices/host/reference.h"
#include "devices/random.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a host of our own ------------------------------------------------------------------------ */

static int launches;
static enum plim_status view = PLIM_OK;

static enum plim_status launch(void *user, const struct plim_op *op)
{
    (void)user;
    launches++;
    return plim_reference_run(op);
}

static enum plim_status driver_view(void *user)
{
    (void)user;
    return view;
}

static const struct plim_lib_host host = {.launch = launch, .driver_view = driver_view};

static struct plim_blaslt *open_stand_in(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_blaslt *b;
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    cr_assert(eq(int, plim_blaslt_open(&host, &b, &err), PLIM_OK), "%s", err.text);
    return b;
}

/* --- arrays ----------------------------------------------------------------------------------- */

enum layout { ROWS, COLUMNS }; /* which of the last two dimensions has stride 1 */

struct form {
    int ndim;
    int64_t shape[PLIM_MAX_DIMS];
    enum layout layout;
    unsigned repeated; /* bit mask of dimensions with stride 0 */
    int64_t gap;       /* elements between two lines */
};

static struct plim_array make(const struct form *f, enum plim_dtype dtype, uint64_t seed)
{
    struct plim_array a = {.ndim = (uint8_t)f->ndim, .dtype = (uint8_t)dtype};
    int64_t next = 1;
    for (int k = 0; k < f->ndim; k++) {
        int d = f->ndim - 1 - k;
        if (f->layout == COLUMNS && k < 2) d = f->ndim - 2 + k;
        a.shape[d] = f->shape[d];
        a.stride[d] = f->repeated >> d & 1 ? 0 : next;
        if (a.stride[d]) next *= f->shape[d];
        if (k == 0) next += f->gap;
    }
    size_t size = (size_t)plim_dtype_size(dtype), count = (size_t)next + 64;
    char *data = aligned_alloc(256, (count * size + 255) / 256 * 256);
    cr_assert(ne(ptr, data, NULL));
    for (size_t i = 0; i < count; i++) {
        float x = 2 * plim_random_unit(plim_random_word(seed, i)) - 1;
        uint16_t half = dtype == PLIM_BF16 ? plim_float_to_bf16(x) : plim_float_to_fp16(x);
        if (dtype == PLIM_F32)
            memcpy(data + i * size, &x, size);
        else
            memcpy(data + i * size, &half, size);
    }
    a.data = (uint64_t)(uintptr_t)data;
    return a;
}

static void drop(struct plim_array *a)
{
    free((void *)(uintptr_t)a->data);
}

static double value(const struct plim_array *a, int64_t at)
{
    const char *data = (const char *)(uintptr_t)a->data + at * plim_dtype_size(a->dtype);
    float x;
    uint16_t half;
    memcpy(&x, data, a->dtype == PLIM_F32 ? sizeof x : 0);
    memcpy(&half, data, sizeof half);
    if (a->dtype == PLIM_F32) return x;
    return a->dtype == PLIM_BF16 ? plim_bf16_to_float(half) : plim_fp16_to_float(half);
}

static int64_t element_at(const struct plim_array *a, int64_t i)
{
    int64_t at = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        at += i % a->shape[d] * a->stride[d];
        i /= a->shape[d];
    }
    return at;
}

static double largest_difference(const struct plim_array *a, const struct plim_array *b)
{
    double largest = 0;
    for (int64_t i = 0; i < plim_array_elements(a); i++) {
        double d = fabs(value(a, element_at(a, i)) - value(b, element_at(b, i)));
        if (!(d <= largest)) largest = d; /* NaN counts */
    }
    return largest;
}

/* --- a product, compared with the reference --------------------------------------------------- */

struct product {
    struct form out, a, b, c; /* c.ndim 0: none */
    enum plim_dtype in_dtype, out_dtype;
    double alpha, beta;
    bool bias; /* the epilogue is requested */
};

static enum plim_status run_op(struct plim_blaslt *b, struct plim_op *op, struct plim_error *err)
{
    enum { WORKSPACE = 4096, GUARD = 64 };
    unsigned char *space = aligned_alloc(256, WORKSPACE + 256);
    cr_assert(ne(ptr, space, NULL));
    memset(space, 0x5a, WORKSPACE + 256);
    struct plim_array scratch = {.data = (uint64_t)(uintptr_t)space,
                                 .shape = {WORKSPACE},
                                 .stride = {1},
                                 .ndim = 1,
                                 .dtype = PLIM_U8};
    op->n_scratch = 1;
    op->scratch[0] = &scratch;
    enum plim_status st = plim_blaslt_matmul(b, op, err);
    for (int i = 0; i < GUARD; i++)
        cr_expect(eq(int, space[WORKSPACE + i], 0x5a), "written beyond the workspace");
    free(space);
    return st;
}

static void expect_as_reference(const struct product *p)
{
    struct plim_blaslt *blaslt = open_stand_in();
    struct plim_array a = make(&p->a, p->in_dtype, 1), b = make(&p->b, p->in_dtype, 2);
    struct plim_array c = {0}, out = make(&p->out, p->out_dtype, 4);
    struct plim_array wanted = make(&p->out, p->out_dtype, 4);
    if (p->c.ndim) c = make(&p->c, p->out_dtype, 3);
    struct plim_op op = {.kind = PLIM_OP_MATMUL,
                         .n_out = 1,
                         .n_in = p->c.ndim ? 3 : 2,
                         .alpha = p->alpha,
                         .beta = p->beta,
                         .epilogue = p->bias ? PLIM_EPILOGUE_BIAS : PLIM_EPILOGUE_NONE,
                         .out = {&out},
                         .in = {&a, &b, p->c.ndim ? &c : NULL}};
    struct plim_error err = PLIM_ERROR_INIT;
    for (int i = 0; i < 2; i++) /* the second time from the table of algorithms */
        cr_assert(eq(int, run_op(blaslt, &op, &err), PLIM_OK), "%s", err.text);
    op.out[0] = &wanted;
    cr_assert(eq(int, plim_reference_run(&op), PLIM_OK));
    double tolerance = p->out_dtype == PLIM_F32 ? 1e-4 : p->out_dtype == PLIM_F16 ? 1e-2 : 6e-2;
    double seen = largest_difference(&out, &wanted);
    cr_expect(seen <= tolerance, "differs by %g", seen);
    drop(&a), drop(&b), drop(&c), drop(&out), drop(&wanted);
    plim_blaslt_close(blaslt);
}

static struct product plain(enum layout out, enum layout a, enum layout b)
{
    return (struct product){.out = {2, {6, 9}, out, 0, 0},
                            .a = {2, {6, 70}, a, 0, 3},
                            .b = {2, {70, 9}, b, 0, 0},
                            .in_dtype = PLIM_F32,
                            .out_dtype = PLIM_F32,
                            .alpha = 1};
}

Test(matmul, every_combination_of_row_and_column_major)
{
    for (int i = 0; i < 8; i++) {
        struct product p = plain(i & 1, i >> 1 & 1, i >> 2 & 1);
        expect_as_reference(&p);
    }
}

Test(matmul, all_types_and_a_wider_result)
{
    static const enum plim_dtype types[][2] = {
        {PLIM_BF16, PLIM_BF16}, {PLIM_F16, PLIM_F16}, {PLIM_BF16, PLIM_F32}, {PLIM_F16, PLIM_F32}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct product p = plain(ROWS, ROWS, COLUMNS);
        p.in_dtype = types[i][0];
        p.out_dtype = types[i][1];
        p.alpha = 0.5;
        expect_as_reference(&p);
    }
}

Test(matmul, bias_by_the_epilogue)
{
    struct product p = plain(ROWS, ROWS, COLUMNS);
    p.c = (struct form){1, {9}, ROWS, 0, 0};
    p.beta = 1;
    p.bias = true;
    launches = 0;
    expect_as_reference(&p);
    cr_expect(eq(int, launches, 0), "nothing had to be copied");
}

Test(matmul, scaled_bias_is_copied_first)
{
    struct product p = plain(ROWS, ROWS, COLUMNS);
    p.c = (struct form){1, {9}, ROWS, 0, 0};
    p.beta = 0.25;
    p.bias = true;
    launches = 0;
    expect_as_reference(&p);
    cr_expect(eq(int, launches, 2), "one copy a call");
}

Test(matmul, addend_in_place_in_batches_and_turned)
{
    struct product p = {.out = {3, {4, 5, 6}, ROWS, 0, 0},
                        .a = {3, {4, 5, 7}, COLUMNS, 0, 0},
                        .b = {3, {4, 7, 6}, ROWS, 0, 2},
                        .c = {3, {4, 5, 6}, ROWS, 0, 0},
                        .in_dtype = PLIM_F32,
                        .out_dtype = PLIM_F32,
                        .alpha = 2,
                        .beta = -1};
    launches = 0;
    expect_as_reference(&p);
    cr_expect(eq(int, launches, 0));
    p.c.repeated = 1; /* one matrix for all batches */
    expect_as_reference(&p);
    cr_expect(eq(int, launches, 0));
    p.c = (struct form){3, {4, 5, 6}, COLUMNS, 0, 0};
    expect_as_reference(&p);
    cr_expect(eq(int, launches, 2));
}

Test(matmul, beta_of_zero_reads_no_addend)
{
    struct product p = plain(ROWS, ROWS, ROWS);
    p.c = (struct form){1, {9}, ROWS, 0, 0};
    p.bias = true;
    expect_as_reference(&p);
}

Test(matmul, four_batch_dimensions_some_repeated)
{
    struct product p = {.out = {6, {2, 3, 2, 3, 4, 5}, ROWS, 0, 0},
                        .a = {6, {2, 3, 2, 3, 4, 7}, ROWS, 2, 0},
                        .b = {6, {2, 3, 2, 3, 7, 5}, COLUMNS, 4, 0},
                        .in_dtype = PLIM_F32,
                        .out_dtype = PLIM_F32,
                        .alpha = 1};
    expect_as_reference(&p);
    p.b = (struct form){2, {7, 5}, ROWS, 0, 0};
    p.a.repeated = 0;
    expect_as_reference(&p);
    p.a = (struct form){3, {3, 4, 7}, ROWS, 0, 0};
    expect_as_reference(&p);
}

Test(matmul, vectors_as_thin_matrices)
{
    static const int64_t sizes[][3] = {{1, 9, 5}, {6, 1, 5}, {6, 9, 1}, {1, 1, 5}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int layouts = 0; layouts < 8; layouts++) {
            struct product p = plain(layouts & 1, layouts >> 1 & 1, layouts >> 2 & 1);
            p.out.shape[0] = p.a.shape[0] = sizes[i][0];
            p.out.shape[1] = p.b.shape[1] = sizes[i][1];
            p.a.shape[1] = p.b.shape[0] = sizes[i][2];
            expect_as_reference(&p);
        }
}

Test(matmul, one_row_in_many_batches)
{
    struct product p = {.out = {3, {7, 1, 5}, ROWS, 0, 0},
                        .a = {3, {7, 1, 6}, ROWS, 0, 0},
                        .b = {2, {6, 5}, ROWS, 0, 0},
                        .c = {2, {1, 5}, ROWS, 0, 0},
                        .in_dtype = PLIM_F32,
                        .out_dtype = PLIM_F32,
                        .alpha = 1,
                        .beta = 3};
    expect_as_reference(&p);
    p.a.repeated = 1;
    expect_as_reference(&p);
}

/* An empty sum leaves the addend, or nothing. */
Test(matmul, empty_sum)
{
    struct product p = plain(ROWS, ROWS, ROWS);
    p.a.shape[1] = p.b.shape[0] = 0;
    expect_as_reference(&p);
    p.c = (struct form){1, {9}, ROWS, 0, 0};
    p.bias = true;
    p.beta = 1;
    expect_as_reference(&p);
    p.beta = -2;
    expect_as_reference(&p);
}

Test(matmul, empty_result_is_done_at_once)
{
    struct plim_array out = {.shape = {0, 4}, .stride = {4, 1}, .ndim = 2, .dtype = PLIM_F32};
    struct plim_array a = {.shape = {0, 3}, .stride = {3, 1}, .ndim = 2, .dtype = PLIM_F32};
    struct plim_array b = {.shape = {3, 4}, .stride = {4, 1}, .ndim = 2, .dtype = PLIM_F32};
    struct plim_op op = {
        .kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .alpha = 1, .out = {&out}, .in = {&a, &b}};
    struct plim_blaslt *blaslt = open_stand_in();
    cr_expect(eq(int, plim_blaslt_matmul(blaslt, &op, NULL), PLIM_OK));
    plim_blaslt_close(blaslt);
}

Test(matmul, forgets_old_algorithms_and_goes_on)
{
    enum { LONGEST = 1500 }; /* more shapes than the table has places */
    struct plim_blaslt *blaslt = open_stand_in();
    struct form line = {2, {1, LONGEST}, ROWS, 0, 0};
    struct plim_array a = make(&line, PLIM_F32, 1), b = make(&line, PLIM_F32, 2);
    struct plim_array out = make(&line, PLIM_F32, 3);
    struct plim_op op = {
        .kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .alpha = 1, .out = {&out}, .in = {&a, &b}};
    out.shape[1] = 1;
    b.stride[0] = 1;
    b.shape[1] = 1;
    for (int k = 1; k <= LONGEST; k++) {
        a.shape[1] = b.shape[0] = k;
        a.stride[0] = k;
        cr_assert(eq(int, run_op(blaslt, &op, NULL), PLIM_OK), "k = %d", k);
    }
    drop(&a), drop(&b), drop(&out);
    plim_blaslt_close(blaslt);
}

/* --- what another process chose --------------------------------------------------------------- */

static struct plim_memo memo = {.gpu = "a GPU"};
static const struct plim_lib_host remembering = {
    .launch = launch, .driver_view = driver_view, .memo = &memo};

/* As a worker would: the library is opened, one product is run, of two vectors. */
static enum plim_status run_once(int64_t length)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_blaslt *blaslt;
    struct form row = {2, {1, length}, ROWS, 0, 0}, column = {2, {length, 1}, ROWS, 0, 0};
    struct form one = {2, {1, 1}, ROWS, 0, 0};
    struct plim_array a = make(&row, PLIM_F32, 1), b = make(&column, PLIM_F32, 2);
    struct plim_array out = make(&one, PLIM_F32, 3);
    struct plim_op op = {
        .kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .alpha = 1, .out = {&out}, .in = {&a, &b}};
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    cr_assert(eq(int, plim_blaslt_open(&remembering, &blaslt, &err), PLIM_OK), "%s", err.text);
    enum plim_status st = run_op(blaslt, &op, &err);
    drop(&a), drop(&b), drop(&out);
    plim_blaslt_close(blaslt);
    return st;
}

/* From the second choice on cuBLASLt has none: who asks is refused. */
Test(matmul, what_one_process_chose_the_next_one_does_not_ask_for)
{
    FILE *file = tmpfile();
    memo.fd = fileno(file);
    setenv("PLIM_DOUBLE_FAULT", "choice@2,choice@3,choice@4", 1);
    cr_expect(eq(int, run_once(64), PLIM_OK));
    cr_expect(eq(int, run_once(64), PLIM_OK));
    cr_expect(eq(int, run_once(65), PLIM_UNSUPPORTED));
    setenv("PLIM_DOUBLE_CUBLASLT", "130999", 1);
    cr_expect(eq(int, run_once(64), PLIM_UNSUPPORTED));
    unsetenv("PLIM_DOUBLE_CUBLASLT");
    strcpy(memo.gpu, "another GPU");
    cr_expect(eq(int, run_once(64), PLIM_UNSUPPORTED));
    cr_expect(eq(int, run_once(64), PLIM_OK)); /* the fifth choice is one again */
    fclose(file);
}

/* --- failures --------------------------------------------------------------------------------- */

static enum plim_status run_plain(struct plim_blaslt *blaslt, struct plim_error *err)
{
    struct product p = plain(ROWS, ROWS, ROWS);
    struct plim_array a = make(&p.a, PLIM_F32, 1), b = make(&p.b, PLIM_F32, 2);
    struct plim_array out = make(&p.out, PLIM_F32, 4);
    struct plim_op op = {
        .kind = PLIM_OP_MATMUL, .n_out = 1, .n_in = 2, .alpha = 1, .out = {&out}, .in = {&a, &b}};
    enum plim_status st = run_op(blaslt, &op, err);
    drop(&a), drop(&b), drop(&out);
    return st;
}

/* Calls that can fail: 1 create, 2 choice of an algorithm, 3 the product. */
Test(matmul, full_gpu_at_the_product_is_out_of_memory_and_passes)
{
    setenv("PLIM_DOUBLE_FAULT", "oom-lib@3", 1);
    struct plim_blaslt *blaslt = open_stand_in();
    cr_expect(eq(int, run_plain(blaslt, NULL), PLIM_OOM));
    cr_expect(eq(int, run_plain(blaslt, NULL), PLIM_OK));
    plim_blaslt_close(blaslt);
}

Test(matmul, full_gpu_at_the_choice_is_out_of_memory_and_passes)
{
    setenv("PLIM_DOUBLE_FAULT", "oom-lib@2", 1);
    struct plim_blaslt *blaslt = open_stand_in();
    cr_expect(eq(int, run_plain(blaslt, NULL), PLIM_OOM));
    cr_expect(eq(int, run_plain(blaslt, NULL), PLIM_OK));
    plim_blaslt_close(blaslt);
}

Test(matmul, full_gpu_at_open_is_out_of_memory)
{
    struct plim_blaslt *blaslt;
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("PLIM_DOUBLE_FAULT", "oom-lib@1", 1);
    cr_expect(eq(int, plim_blaslt_open(&host, &blaslt, NULL), PLIM_OOM));
    cr_expect(eq(ptr, blaslt, NULL));
}

/* After an internal error, the driver's status decides what it means. */
Test(matmul, driver_says_what_an_unclear_failure_is)
{
    static const enum plim_status says[] = {PLIM_OOM, PLIM_LOST, PLIM_OK};
    static const enum plim_status means[] = {PLIM_OOM, PLIM_LOST, PLIM_INTERNAL};
    setenv("PLIM_DOUBLE_FAULT", "disguised-lib@3,disguised-lib@4,disguised-lib@5", 1);
    struct plim_blaslt *blaslt = open_stand_in();
    for (int i = 0; i < 3; i++) {
        struct plim_error err = PLIM_ERROR_INIT;
        view = says[i];
        cr_expect(eq(int, run_plain(blaslt, &err), means[i]));
        cr_expect(strstr(err.text, "INTERNAL_ERROR") != NULL, "%s", err.text);
    }
    plim_blaslt_close(blaslt);
}
