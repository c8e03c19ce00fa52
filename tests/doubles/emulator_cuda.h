/* What a kernel source sees instead of CUDA's headers when a host compiler builds it: the part of
 * the CUDA C language that our kernels use. Included before the source (emulated.cpp.in). C++17. */
#ifndef PLIM_TESTS_DOUBLES_EMULATOR_CUDA_H
#define PLIM_TESTS_DOUBLES_EMULATOR_CUDA_H

#include "doubles/emulator.h"
#include <math.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static /* blocks run one after the other */
#define __forceinline__ inline
#define __restrict__ __restrict
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
#define __grid_constant__

/* A kernel receives its arguments as `args`; here by reference, because a copy for each thread would be slow. */
#define PLIM_KERNEL(name, args_type, ...)                                                          \
    static void name(const args_type &args);                                                       \
    static const emulated_registration name##_registration(                                        \
        #name, sizeof(args_type),                                                                  \
        [](const void *args) { name(*static_cast<const args_type *>(args)); }, __VA_ARGS__);       \
    static void name(const args_type &args)

/* `extern __shared__` of the type and name. */
#define PLIM_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(emulated_shared_memory())

struct emulated_registration {
    struct emulated_kernel kernel;
    emulated_registration(const char *name, size_t args_bytes, void (*entry)(const void *args),
                          uint32_t max_threads, uint32_t min_blocks = 0);
};

/* --- types ------------------------------------------------------------------------------------ */

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
};

#define EMULATED_VECTOR(type, name, alignment)                                                     \
    struct alignas(alignment / 2) name##2                                                          \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct alignas(alignment) name##4                                                              \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }

EMULATED_VECTOR(float, float, 16)
EMULATED_VECTOR(int, int, 16)
EMULATED_VECTOR(unsigned, uint, 16)
EMULATED_VECTOR(unsigned short, ushort, 8)
EMULATED_VECTOR(unsigned char, uchar, 4)

/* --- the running thread ----------------------------------------------------------------------- */

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

void *emulated_shared_memory(void);

enum emulated_wait {
    EMULATED_SYNC_WARP,
    EMULATED_BALLOT,
    EMULATED_SHUFFLE,
    EMULATED_SHUFFLE_UP,
    EMULATED_SHUFFLE_DOWN,
    EMULATED_SHUFFLE_XOR,
    EMULATED_TOGETHER,
    EMULATED_BARRIER
};

/* Gives `value` to the lanes of `mask`, waits for theirs, and returns what this lane gets. */
uint64_t emulated_exchange(enum emulated_wait kind, unsigned mask, uint64_t value, int which,
                           int width);

/* An instruction of the whole warp: when all its lanes are here, `work` runs once on the operands of
 * all. */
typedef void emulated_work(void *const operands[warpSize]);
void emulated_together(emulated_work *work, void *operands);

/* Ends the program with a line that names the kernel, the block and `mistake`. */
[[noreturn]] void emulated_fail(const char *mistake);

/* cp.async: 16 bytes, zeros instead where the source is not `there`; closing a group of those asked
 * for so far; waiting until no more than `groups` groups of this thread are under way. */
void emulated_copy_async(void *to, const void *from, bool there);
void emulated_copy_commit(void);
void emulated_copy_wait(unsigned groups);

/* Waits for the whole block. Returns how many of its threads gave a true `predicate`. */
int emulated_barrier(bool predicate);

static inline void __syncthreads()
{
    emulated_barrier(false);
}

static inline int __syncthreads_or(int predicate)
{
    return emulated_barrier(predicate != 0) > 0;
}

static inline int __syncthreads_count(int predicate)
{
    return emulated_barrier(predicate != 0);
}

static inline int __syncthreads_and(int predicate)
{
    return emulated_barrier(predicate == 0) == 0;
}

static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    emulated_exchange(EMULATED_SYNC_WARP, mask, 0, 0, warpSize);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return (unsigned)emulated_exchange(EMULATED_BALLOT, mask, predicate != 0, 0, warpSize);
}

static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}

static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

template <typename T>
static inline T emulated_shuffle(enum emulated_wait kind, unsigned mask, T value, int which,
                                 int width)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulated_exchange(kind, mask, bits, which, width);
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize)
{
    return emulated_shuffle(EMULATED_SHUFFLE, mask, value, lane, width);
}

template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize)
{
    return emulated_shuffle(EMULATED_SHUFFLE_UP, mask, value, (int)delta, width);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize)
{
    return emulated_shuffle(EMULATED_SHUFFLE_DOWN, mask, value, (int)delta, width);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize)
{
    return emulated_shuffle(EMULATED_SHUFFLE_XOR, mask, value, lanes, width);
}

/* --- memory ----------------------------------------------------------------------------------- */

template <typename T> static inline T __ldg(const T *address)
{
    return *address;
}

static inline void __threadfence()
{
}

#define EMULATED_ATOMICS(T)                                                                        \
    static inline T atomicAdd(T *at, T value)                                                      \
    {                                                                                              \
        T old = *at;                                                                               \
        *at = (T)(old + value);                                                                    \
        return old;                                                                                \
    }                                                                                              \
    static inline T atomicMax(T *at, T value)                                                      \
    {                                                                                              \
        T old = *at;                                                                               \
        if (value > old) *at = value;                                                              \
        return old;                                                                                \
    }                                                                                              \
    static inline T atomicMin(T *at, T value)                                                      \
    {                                                                                              \
        T old = *at;                                                                               \
        if (value < old) *at = value;                                                              \
        return old;                                                                                \
    }                                                                                              \
    static inline T atomicOr(T *at, T value)                                                       \
    {                                                                                              \
        T old = *at;                                                                               \
        *at = old | value;                                                                         \
        return old;                                                                                \
    }                                                                                              \
    static inline T atomicExch(T *at, T value)                                                     \
    {                                                                                              \
        T old = *at;                                                                               \
        *at = value;                                                                               \
        return old;                                                                                \
    }                                                                                              \
    static inline T atomicCAS(T *at, T expected, T value)                                          \
    {                                                                                              \
        T old = *at;                                                                               \
        if (old == expected) *at = value;                                                          \
        return old;                                                                                \
    }

EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned)
EMULATED_ATOMICS(unsigned long long)

/* --- arithmetic ------------------------------------------------------------------------------- */

#define EMULATED_MIN_MAX(T)                                                                        \
    static inline T min(T a, T b)                                                                  \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    static inline T max(T a, T b)                                                                  \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }

EMULATED_MIN_MAX(int)
EMULATED_MIN_MAX(unsigned)
EMULATED_MIN_MAX(long)
EMULATED_MIN_MAX(unsigned long)
EMULATED_MIN_MAX(long long)
EMULATED_MIN_MAX(unsigned long long)

static inline float min(float a, float b)
{
    return fminf(a, b);
}

static inline float max(float a, float b)
{
    return fmaxf(a, b);
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

/* glibc keeps functions of these names for itself. */
#define __expf expf
#define __logf logf

static inline float sinpif(float x)
{
    return (float)sin(M_PI * (double)x);
}

static inline float __fdividef(float a, float b)
{
    return a / b;
}

static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}

static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)((uint64_t)a * b >> 32);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}

static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#endif
