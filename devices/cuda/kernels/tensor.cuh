/* What a warp does with its tensor core: products of small matrices that lie spread over its lanes,
 * loads that spread them so, and copies into shared memory that go on beside them. All lanes of the
 * warp take part. From compute capability 8.0 on, mma_half_depth() and loads from 7.5 on, where copies do
 * not go on beside the work; on the emulator by the same definitions.
 *
 * Of lane l, group g = l / 4 and place t = l % 4 (PTX manual, "Warp level matrix instructions"):
 *
 *   c   16 x 8, fp32    rows g (0, 1) and g + 8 (2, 3), columns 2 t and 2 t + 1
 *   a   16 x 16 halves  rows g, g + 8, g, g + 8, columns 2 t, 2 t + 1, the last two 8 further on
 *       16 x 8 halves   the first two of these
 *       16 x 8 tf32     the same rows, columns t, t, t + 4, t + 4
 *   b   16 x 8 halves   rows 2 t, 2 t + 1, then 8 further on, column g
 *       8 x 8 halves    the first of these
 *       8 x 8 tf32      rows t, t + 4, column g
 */
#ifndef PLIM_DEVICES_CUDA_KERNELS_TENSOR_CUH
#define PLIM_DEVICES_CUDA_KERNELS_TENSOR_CUH

#include "kernel.cuh"

#ifdef __CUDACC__

__device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

#define PLIM_MMA(shape, type, c, a, b)                                                             \
    asm("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, "          \
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                            \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                           \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

/* c += a b */
__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], bf16)
{
    PLIM_MMA("m16n8k16", "bf16", c, a, b);
}

__device__ inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], fp16)
{
    PLIM_MMA("m16n8k16", "f16", c, a, b);
}

__device__ inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    PLIM_MMA("m16n8k8", "tf32", c, a, b);
}

/* fp16, 16 x 8 by 8 x 8 */
__device__ inline void mma_half_depth(float (&c)[4], const uint32_t (&a)[2], uint32_t b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
}

/* Four matrices of 8 x 8 halves: lane 8 m + r brings the address of row r of matrix m. Each lane gets
 * of every matrix row g, columns 2 t and 2 t + 1; transposed: rows 2 t and 2 t + 1, column g. */
__device__ inline void load_matrices(uint32_t (&words)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared_address(row))
                 : "memory");
}

__device__ inline void load_matrices_transposed(uint32_t (&words)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* 2^x, 0 where that is below the least normal number: one instruction, where exp2f() has a few around it. */
__device__ inline float exp2_normal(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 16 bytes to shared memory, zeros where the source is not `there`. They have arrived when the thread
 * has waited for their group, and others see them after a barrier. */
#if __CUDA_ARCH__ >= 800
__device__ inline void copy_async(void *to, uint64_t from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(__cvta_generic_to_global((const void *)from)), "r"(there ? 16 : 0)
                 : "memory");
}

__device__ inline void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int GROUPS> __device__ inline void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}
#else
__device__ inline void copy_async(void *to, uint64_t from, bool there)
{
    *(uint4 *)to = there ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
}

__device__ inline void copy_commit() {}

template <int GROUPS> __device__ inline void copy_wait() {}
#endif

#else
#include "doubles/emulator_tensor.h"

static inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], bf16)
{
    emulated_mma(emulated_product_of_halves<plim_bf16_to_float, 16>, c, a, b);
}

static inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], fp16)
{
    emulated_mma(emulated_product_of_halves<plim_fp16_to_float, 16>, c, a, b);
}

static inline void mma_half_depth(float (&c)[4], const uint32_t (&a)[2], uint32_t b)
{
    const uint32_t column[1] = {b};
    emulated_mma(emulated_product_of_halves<plim_fp16_to_float, 8>, c, a, column);
}

static inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    emulated_mma(emulated_product_of_tf32, c, a, b);
}

static inline void load_matrices(uint32_t (&words)[4], const void *row)
{
    emulated_load_matrices(words, row, false);
}

static inline void load_matrices_transposed(uint32_t (&words)[4], const void *row)
{
    emulated_load_matrices(words, row, true);
}

static inline float exp2_normal(float x)
{
    return x < -126 ? 0 : exp2f(x);
}

static inline void copy_async(void *to, uint64_t from, bool there)
{
    emulated_copy_async(to, reinterpret_cast<const void *>(from), there);
}

static inline void copy_commit()
{
    emulated_copy_commit();
}

template <int GROUPS> static inline void copy_wait()
{
    emulated_copy_wait(GROUPS);
}
#endif

/* To TF32's ten bits of mantissa, ties away from zero: as cvt.rna.tf32, whose care for infinities and NaN costs more
 * than the product. */
__device__ inline uint32_t round_to_tf32(float x)
{
    return (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
}

#endif
