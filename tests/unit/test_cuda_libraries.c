/* The cuda device with its libraries, all of them stand-ins (tests/doubles): products and attention
 * go through cuBLASLt and cuDNN, and the driver says what their failures are. */
#include "devices/cuda/cuda.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct plim_device *open_gpu(const char *gpu, const char *memory, const char *fault)
{
    struct plim_device *device;
    struct plim_error err = PLIM_ERROR_INIT;
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("PLIM_DOUBLE_GPU", gpu, 1);
    if (memory) setenv("PLIM_DOUBLE_MEMORY", memory, 1);
    if (fault) setenv("PLIM_DOUBLE_FAULT", fault, 1);
    cr_assert(eq(int, plim_cuda_open(":0", &device, &err), PLIM_OK), "%s", err.text);
    return device;
}

/* Matrices (2, 2) one after the other in a segment. */
enum { A, B, C, OUT, MATRICES };
struct product {
    uint64_t base;
    struct plim_array matrix[MATRICES];
    struct plim_op op;
};

static void prepare(struct plim_device *d, struct product *p)
{
    static const float numbers[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {10, 20, 30, 40}};
    cr_assert(eq(int, plim_device_segment_get(d, 2 << 20, &p->base), PLIM_OK));
    for (int i = 0; i < MATRICES; i++)
        p->matrix[i] = (struct plim_array){.data = p->base + (uint64_t)i * 256,
                                           .shape = {2, 2},
                                           .stride = {2, 1},
                                           .ndim = 2,
                                           .dtype = PLIM_F32};
    for (int i = A; i <= C; i++)
        cr_assert(eq(int, plim_device_write(d, p->matrix[i].data, numbers[i], sizeof numbers[i]),
                     PLIM_OK));
    p->op = (struct plim_op){.kind = PLIM_OP_MATMUL,
                             .n_out = 1,
                             .n_in = 3,
                             .alpha = 1,
                             .beta = 1,
                             .out = {&p->matrix[OUT]},
                             .in = {&p->matrix[A], &p->matrix[B], &p->matrix[C]}};
}

static void expect_result(struct plim_device *d, const struct product *p, const float wanted[4])
{
    float seen[4];
    cr_assert(eq(int, plim_device_read(d, p->matrix[OUT].data, seen, sizeof seen), PLIM_OK));
    for (int i = 0; i < 4; i++) cr_expect(eq(flt, seen[i], wanted[i]), "element %d", i);
}

Test(cuda_libraries, product_with_an_addend)
{
    struct plim_device *d = open_gpu("A100-SXM4-80GB", NULL, NULL);
    struct product p;
    prepare(d, &p);
    cr_assert(eq(int, plim_device_launch(d, &p.op), PLIM_OK), "%s", plim_device_message(d));
    expect_result(d, &p, (const float[]){29, 42, 73, 90});
    plim_device_close(&d);
}

/* c is column-major: our copy kernel transposes it first. */
Test(cuda_libraries, product_with_an_addend_that_our_kernel_copies)
{
    struct plim_device *d = open_gpu("A100-SXM4-80GB", NULL, NULL);
    struct product p;
    prepare(d, &p);
    p.matrix[C].stride[0] = 1;
    p.matrix[C].stride[1] = 2;
    cr_assert(eq(int, plim_device_launch(d, &p.op), PLIM_OK), "%s", plim_device_message(d));
    expect_result(d, &p, (const float[]){29, 52, 63, 90});
    plim_device_close(&d);
}

Test(cuda_libraries, unclear_failure_on_a_full_gpu_is_out_of_memory_and_suspect)
{
    struct plim_device *d = open_gpu("A100-SXM4-80GB", "1GiB", "disguised-lib@3");
    struct product p;
    prepare(d, &p);
    cr_expect(eq(int, plim_device_launch(d, &p.op), PLIM_OOM));
    cr_expect(plim_device_is_suspect(d));
    cr_expect(strstr(plim_device_message(d), "cuBLASLt") != NULL, "%s", plim_device_message(d));
    cr_expect(eq(int, plim_device_launch(d, &p.op), PLIM_OK), "and passes");
    plim_device_close(&d);
}

Test(cuda_libraries, unclear_failure_on_an_empty_gpu_is_what_it_is)
{
    struct plim_device *d = open_gpu("A100-SXM4-80GB", NULL, "disguised-lib@3");
    struct product p;
    prepare(d, &p);
    cr_expect(eq(int, plim_device_launch(d, &p.op), PLIM_INTERNAL));
    cr_expect(not(plim_device_is_suspect(d)));
    plim_device_close(&d);
}

/* A kernel of ours breaks the context; the library's next failure is that. */
Test(cuda_libraries, failure_after_a_broken_context_is_a_lost_device)
{
    struct plim_device *d = open_gpu("A100-SXM4-80GB", NULL, "lost@1,disguised-lib@3");
    struct product p;
    prepare(d, &p);
    struct plim_op fill = {.kind = PLIM_OP_FILL, .n_out = 1, .out = {&p.matrix[OUT]}};
    enum plim_status st = plim_device_launch(d, &fill); /* the error shows later */
    if (st == PLIM_OK) st = plim_device_launch(d, &p.op);
    cr_expect(eq(int, st, PLIM_LOST));
    plim_device_close(&d);
}

/* Attention of zeros, for which PyTorch takes `sdpa`; returns what computed it. */
static unsigned engines_of(const char *gpu, enum plim_dtype dtype, enum plim_sdpa sdpa)
{
    enum { SIZE = 8 };
    struct plim_device *d = open_gpu(gpu, NULL, NULL);
    uint64_t base;
    cr_assert(eq(int, plim_device_segment_get(d, 2 << 20, &base), PLIM_OK));
    struct plim_array a = {.data = base,
                           .shape = {1, 1, 2, SIZE},
                           .stride = {2 * SIZE, 2 * SIZE, SIZE, 1},
                           .ndim = 4,
                           .dtype = (uint8_t)dtype};
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .sdpa = (uint8_t)sdpa,
                         .n_out = 1,
                         .n_in = 3,
                         .beta = 1,
                         .out = {&a},
                         .in = {&a, &a, &a}};
    cr_assert(eq(int, plim_device_launch(d, &op), PLIM_OK), "%s", plim_device_message(d));
    unsigned engines = d->sdpa_engines;
    cr_expect(eq(int, plim_device_reset(d), PLIM_OK));
    cr_expect(eq(uint, d->sdpa_engines, 0));
    plim_device_close(&d);
    return engines;
}

/* Products of two groups. `scratch`: PyTorch has one kernel for all. */
static bool goes_one_by_one(bool scratch)
{
    enum { SIZE = 16 };
    struct plim_device *d = open_gpu("H100-SXM5-80GB", NULL, NULL);
    uint64_t base;
    cr_assert(eq(int, plim_device_segment_get(d, 2 << 20, &base), PLIM_OK));
    struct plim_array a = {.data = base, .shape = {SIZE, SIZE}, .stride = {SIZE, 1}, .ndim = 2};
    struct plim_array b = a, ends = a;
    b.ndim = 3;
    b.shape[0] = 2, b.shape[2] = SIZE;
    b.stride[0] = SIZE * SIZE, b.stride[1] = SIZE, b.stride[2] = 1;
    ends.ndim = 1;
    ends.shape[0] = 2, ends.stride[0] = 1;
    ends.dtype = PLIM_I32;
    ends.data += 1 << 20;
    struct plim_op op = {.kind = PLIM_OP_MATMUL_GROUPED,
                         .n_out = 1,
                         .n_in = 3,
                         .n_scratch = scratch,
                         .out = {&a},
                         .in = {&a, &b, &ends},
                         .scratch = {&a}};
    const int32_t rows[2] = {0, SIZE}; /* the first has none */
    cr_assert(eq(int, plim_device_write(d, ends.data, rows, sizeof rows), PLIM_OK));
    cr_assert(eq(int, plim_device_launch(d, &op), PLIM_OK), "%s", plim_device_message(d));
    bool told = d->groups_one_by_one;
    cr_expect(eq(int, plim_device_reset(d), PLIM_OK));
    cr_expect(not(d->groups_one_by_one));
    plim_device_close(&d);
    return told;
}

Test(cuda_libraries, groups_that_pytorch_multiplies_at_once_are_told)
{
    cr_expect(goes_one_by_one(true));
    cr_expect(not(goes_one_by_one(false)));
}

Test(cuda_libraries, linear_attention_on_fp32_units_is_told)
{
    struct plim_device *d = open_gpu("A100-SXM4-80GB", NULL, NULL);
    struct plim_op op = {.kind = PLIM_OP_DELTA_INVERSE};
    struct plim_array none = {.ndim = 1, .dtype = PLIM_F32};
    op.n_out = 1, op.n_in = 3, op.out[0] = &none;
    for (int i = 0; i < 3; i++) op.in[i] = &none;
    cr_expect(not(d->delta_on_fp32));
    (void)!plim_device_launch(d, &op);
    cr_expect(d->delta_on_fp32);
    cr_expect(eq(int, plim_device_reset(d), PLIM_OK));
    cr_expect(not(d->delta_on_fp32));
    plim_device_close(&d);
}

Test(cuda_libraries, attention_is_by_cudnn_where_pytorch_takes_it)
{
    const char *gpu = "H100-SXM5-80GB";
    cr_expect(eq(uint, engines_of(gpu, PLIM_BF16, PLIM_SDPA_CUDNN), PLIM_SDPA_BY_CUDNN));
    cr_expect(eq(uint, engines_of(gpu, PLIM_F32, PLIM_SDPA_CUDNN), PLIM_SDPA_BY_TENSOR_CORES));
}

Test(cuda_libraries, attention_is_on_tensor_cores_where_pytorch_has_its_own_kernels)
{
    for (int type = PLIM_F32; type <= PLIM_F16; type++)
        cr_expect(eq(uint, engines_of("A100-SXM4-80GB", (enum plim_dtype)type, PLIM_SDPA_EFFICIENT),
                     PLIM_SDPA_BY_TENSOR_CORES));
    cr_expect(eq(uint, engines_of("T4", PLIM_F16, PLIM_SDPA_EFFICIENT), PLIM_SDPA_BY_TENSOR_CORES));
}

Test(cuda_libraries, attention_without_tensor_cores_is_a_fall_back_where_pytorch_has_them)
{
    cr_expect(eq(uint, engines_of("T4", PLIM_BF16, PLIM_SDPA_EFFICIENT), PLIM_SDPA_BY_FALLBACK));
    cr_expect(eq(uint, engines_of("T4", PLIM_F32, PLIM_SDPA_EFFICIENT), PLIM_SDPA_BY_FP32));
}

/* One query, two keys of which the second has the larger product: bf16, head size 8. */
Test(cuda_libraries, attention)
{
    enum { SIZE = 8, ONE = 0x3f80, TWO = 0x4000 };
    struct plim_device *d = open_gpu("A100-SXM4-80GB", NULL, NULL);
    uint64_t base;
    cr_assert(eq(int, plim_device_segment_get(d, 2 << 20, &base), PLIM_OK));
    uint16_t q[SIZE] = {ONE}, k[2 * SIZE] = {0}, v[2 * SIZE] = {0}, out[SIZE];
    k[SIZE] = TWO;
    v[0] = ONE;
    v[SIZE + 1] = ONE;
    struct plim_array a[4];
    for (int i = 0; i < 4; i++)
        a[i] = (struct plim_array){.data = base + (uint64_t)i * 256,
                                   .shape = {1, 1, i == 1 || i == 2 ? 2 : 1, SIZE},
                                   .stride = {2 * SIZE, 2 * SIZE, SIZE, 1},
                                   .ndim = 4,
                                   .dtype = PLIM_BF16};
    cr_assert(eq(int, plim_device_write(d, a[0].data, q, sizeof q), PLIM_OK));
    cr_assert(eq(int, plim_device_write(d, a[1].data, k, sizeof k), PLIM_OK));
    cr_assert(eq(int, plim_device_write(d, a[2].data, v, sizeof v), PLIM_OK));
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .n_out = 1,
                         .n_in = 3,
                         .beta = 1,
                         .out = {&a[3]},
                         .in = {&a[0], &a[1], &a[2]}};
    cr_assert(eq(int, plim_device_launch(d, &op), PLIM_OK), "%s", plim_device_message(d));
    cr_assert(eq(int, plim_device_read(d, a[3].data, out, sizeof out), PLIM_OK));
    float first, second;
    uint32_t bits[2] = {(uint32_t)out[0] << 16, (uint32_t)out[1] << 16};
    memcpy(&first, &bits[0], sizeof first);
    memcpy(&second, &bits[1], sizeof second);
    cr_expect(fabsf(first - 0.1192f) < 1e-3f, "%g", (double)first);
    cr_expect(fabsf(second - 0.8808f) < 4e-3f, "%g", (double)second);
    plim_device_close(&d);
}

/* Attention of so many rows over themselves, in a process that remembers in `fd`; returns what computed
 * it. */
static unsigned attend(int fd, int64_t length, uint16_t *out)
{
    enum { SIZE = 8, MOST = 4 };
    struct plim_device *d = open_gpu("H100-SXM5-80GB", NULL, NULL);
    uint64_t base;
    uint16_t in[MOST * SIZE];
    cr_assert(eq(int, plim_device_segment_get(d, 2 << 20, &base), PLIM_OK));
    plim_device_remember(d, fd);
    for (int i = 0; i < MOST * SIZE; i++) in[i] = (uint16_t)(0x3f80 + 5 * i);
    cr_assert(eq(int, plim_device_write(d, base, in, sizeof in), PLIM_OK));
    struct plim_array a[2];
    for (int i = 0; i < 2; i++)
        a[i] = (struct plim_array){.data = base + (uint64_t)i * 1024,
                                   .shape = {1, 1, length, SIZE},
                                   .stride = {MOST * SIZE, MOST * SIZE, SIZE, 1},
                                   .ndim = 4,
                                   .dtype = PLIM_BF16};
    struct plim_op op = {.kind = PLIM_OP_ATTENTION,
                         .sdpa = PLIM_SDPA_CUDNN,
                         .n_out = 1,
                         .n_in = 3,
                         .beta = 1,
                         .out = {&a[1]},
                         .in = {&a[0], &a[0], &a[0]}};
    cr_assert(eq(int, plim_device_launch(d, &op), PLIM_OK), "%s", plim_device_message(d));
    cr_assert(eq(int, plim_device_read(d, a[1].data, out, SIZE * sizeof *out), PLIM_OK));
    unsigned engines = d->sdpa_engines;
    plim_device_close(&d);
    return engines;
}

/* cuDNN fails to build the second plan: our kernels run instead. */
Test(cuda_libraries, a_plan_that_one_process_compiled_the_next_one_reads)
{
    uint16_t first[8], again[8] = {0}, other[8];
    FILE *file = tmpfile();
    setenv("PLIM_DOUBLE_FAULT", "choice@2", 1);
    cr_expect(eq(uint, attend(fileno(file), 2, first), PLIM_SDPA_BY_CUDNN));
    cr_expect(eq(uint, attend(fileno(file), 2, again), PLIM_SDPA_BY_CUDNN));
    cr_expect(zero(int, memcmp(first, again, sizeof first)));
    cr_expect(eq(uint, attend(fileno(file), 3, other), PLIM_SDPA_BY_TENSOR_CORES));
    /* That there is none is remembered too; who remembers nothing asks, and there is one again. */
    cr_expect(eq(uint, attend(fileno(file), 3, other), PLIM_SDPA_BY_TENSOR_CORES));
    cr_expect(eq(uint, attend(-1, 3, other), PLIM_SDPA_BY_CUDNN));
    fclose(file);
}
