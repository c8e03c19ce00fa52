/* cuFFT, cuSPARSE and cuSOLVER on the virtual GPU: work areas, and what is known after a call. */
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/shadow.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <string.h>

enum { MIB = 1 << 20, C2C = 0x29, R2C = 0x2a };

/* The entry points, as programs declare them. */
int cufftCreate(int *plan);
int cufftDestroy(int plan);
int cufftSetAutoAllocation(int plan, int automatic);
int cufftMakePlan1d(int plan, int n, int type, int batch, size_t *bytes);
int cufftMakePlan2d(int plan, int x, int y, int type, size_t *bytes);
int cufftExecC2C(int plan, const void *in, void *out, int direction);
int cusolverDnCreate(void **handle);
int cusolverDnDestroy(void *handle);
int cusolverDnSpotrf_bufferSize(void *handle, int half, int n, void *a, int leading, int *numbers);
int cusolverDnSpotrf(void *handle, int half, int n, void *a, int leading, void *area, int numbers, int *info);
int cusparseCreate(void **handle);
int cusparseDestroy(void *handle);
int cusparseCreateCsr(void **out, int64_t rows, int64_t columns, int64_t numbers, const void *row_places,
                      const void *column_places, const void *values, int first, int second, int base, int type);
int cusparseCreateDnMat(void **out, int64_t rows, int64_t columns, int64_t leading, const void *values, int type,
                        int order);
int cusparseDestroySpMat(void *matrix);
int cusparseDestroyDnMat(void *matrix);
int cusparseSpMM(void *handle, int a_form, int b_form, const void *alpha, const void *a, const void *b,
                 const void *beta, void *c, int type, int algorithm, void *buffer);

static uintptr_t memory; /* 4 KiB of the GPU's, all known */

static void begin(void)
{
    static const unsigned char ones[4096] = {1};
    make_machine("A100-SXM4-80GB", 1, 64 * (int64_t)MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_allocate(0, sizeof(ones), &memory), GPU_OK));
    plim_shadow_write(memory, ones, sizeof(ones));
}

TestSuite(math_libraries, .init = begin);

static bool is_known(uintptr_t at, size_t bytes)
{
    return !(plim_shadow_survey(at, bytes) & PLIM_UNKNOWN);
}

static size_t area_of(int n, int type, int batch)
{
    int plan;
    size_t bytes = 0;
    cr_assert(eq(int, cufftCreate(&plan), 0));
    cufftSetAutoAllocation(plan, 0);
    cr_assert(eq(int, cufftMakePlan1d(plan, n, type, batch, &bytes), 0));
    cr_assert(eq(int, cufftDestroy(plan), 0));
    return bytes;
}

/* As an H200 was seen to. */
Test(math_libraries, transforms_of_more_than_one_kernel_work_in_a_copy_of_their_complex_numbers)
{
    cr_expect(eq(sz, area_of(1000, C2C, 3), 0));
    cr_expect(eq(sz, area_of(4096, R2C, 3), 0));
    cr_expect(eq(sz, area_of(65536, C2C, 3), 3 * 65536 * 8));
    cr_expect(eq(sz, area_of(65536, R2C, 3), 3 * 32769 * 8));
    cr_expect(eq(sz, area_of(1009, R2C, 8), 8 * 1009 * 8)); /* a prime */
    cr_expect(eq(sz, area_of(1048, R2C, 2), 2 * 524 * 8));  /* twice a number with a prime of 131 */
}

Test(math_libraries, a_plan_that_is_given_no_area_takes_one)
{
    int plan, second;
    size_t bytes;
    cr_assert(eq(int, cufftCreate(&plan), 0));
    cr_assert(eq(int, cufftMakePlan2d(plan, 16384, 256, C2C, &bytes), 0));
    cr_expect(eq(sz, bytes, 2048 * 2048 * 8));
    cr_assert(eq(int, cufftCreate(&second), 0));
    cr_expect(ne(int, cufftMakePlan2d(second, 16384, 256, C2C, &bytes), 0), "there are 64 MiB");
    cufftDestroy(plan);
    cr_expect(eq(int, cufftMakePlan2d(second, 16384, 256, C2C, &bytes), 0));
    cufftDestroy(second);
    cr_expect(eq(int, cufftExecC2C(second, NULL, NULL, 1), 1), "it is gone");
}

Test(math_libraries, what_a_transform_writes_is_unknown)
{
    int plan;
    cr_assert(eq(int, cufftCreate(&plan), 0));
    cr_assert(eq(int, cufftMakePlan1d(plan, 16, C2C, 1, NULL), 0));
    uintptr_t out;
    cr_assert(eq(int, plim_heap_allocate(0, 4096, &out), GPU_OK));
    plim_shadow_write(out, (unsigned char[128]){0}, 128);
    cr_assert(eq(int, cufftExecC2C(plan, (void *)memory, (void *)out, 1), 0));
    cr_expect(is_known(memory, 128));
    cr_expect(not(is_known(out, 128)));
    cufftDestroy(plan);
}

Test(math_libraries, matrices_are_regular)
{
    void *handle;
    int numbers = 0, told;
    unsigned char known[sizeof(told)];
    uintptr_t info;
    cr_assert(eq(int, plim_heap_allocate(0, sizeof(told), &info), GPU_OK));
    plim_shadow_spoil(info, sizeof(told), "before");
    cr_assert(eq(int, cusolverDnCreate(&handle), 0));
    cr_assert(eq(int, cusolverDnSpotrf_bufferSize(handle, 0, 100, (void *)memory, 100, &numbers), 0));
    cr_expect(eq(int, numbers, (128 + 4 * 4 * 4) / 4)); /* of four blocks of 32 rows */
    cr_assert(eq(int, cusolverDnSpotrf(handle, 0, 16, (void *)memory, 16, NULL, numbers, (int *)info), 0));
    plim_shadow_load(info, &told, known, sizeof(told));
    cr_expect(eq(int, told, 0));
    for (size_t i = 0; i < sizeof(known); i++) cr_expect(eq(int, known[i], PLIM_KNOWN | PLIM_ASSUMPTION_FINITE));
    cr_expect(not(is_known(memory, 1024)));
    cr_expect(ne(int, cusolverDnSpotrf(NULL, 0, 16, (void *)memory, 16, NULL, numbers, (int *)info), 0));
    cusolverDnDestroy(handle);
}

Test(math_libraries, products_with_a_sparse_matrix_write_the_last)
{
    void *handle, *a, *b, *c;
    uintptr_t at[5];
    for (int i = 0; i < 5; i++) {
        cr_assert(eq(int, plim_heap_allocate(0, 4096, &at[i]), GPU_OK));
        plim_shadow_write(at[i], (unsigned char[64]){0}, 64);
    }
    cr_assert(eq(int, cusparseCreate(&handle), 0));
    cr_assert(eq(int, cusparseCreateCsr(&a, 4, 4, 4, (void *)at[0], (void *)at[1], (void *)at[2], 0, 0, 0, 0), 0));
    cr_assert(eq(int, cusparseCreateDnMat(&b, 4, 4, 4, (void *)at[3], 0, 0), 0));
    cr_assert(eq(int, cusparseCreateDnMat(&c, 4, 4, 4, (void *)at[4], 0, 0), 0));
    cr_assert(eq(int, cusparseSpMM(handle, 0, 0, NULL, a, b, NULL, c, 0, 0, NULL), 0));
    for (int i = 0; i < 5; i++) cr_expect(eq(int, is_known(at[i], 64), i < 4), "%d", i);
    cusparseDestroySpMat(a);
    cusparseDestroyDnMat(b);
    cusparseDestroyDnMat(c);
    cusparseDestroy(handle);
}
