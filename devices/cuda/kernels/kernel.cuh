/* What every kernel source includes. nvcc compiles it with CUDA's headers; the tests' emulator
 * compiles the same sources as C++ and brings the language before this file
 * (tests/doubles/emulator_cuda.h).
 *
 *     PLIM_KERNEL(scale, struct plim_scale_args, 256)
 *     {
 *         PLIM_DYNAMIC_SHARED(float, rows);
 *         ...
 *     }
 *
 * is a kernel with one argument, `args`, a struct by value of at most 4 KiB. A block has at most
 * 256 threads; where registers would spill, a fourth parameter gives the blocks that a
 * multiprocessor must have room for. `rows` is the launch's dynamic shared memory, 16-byte aligned.
 *
 * Kernels compute in fp32 ("float") or, integers among integers, in int64. Their element types are
 * known at run time only: load() and store() switch on them once for several elements, which costs
 * little beside the memory access and spares an instantiation for every combination. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_KERNEL_CUH
#define PLIM_DEVICES_CUDA_KERNELS_KERNEL_CUH

#include "args_elementwise.h" /* PLIM_RAW16 */
#include "devices/dtype.h"
#include "devices/random.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define PLIM_KERNEL(name, args_type, ...)                                                          \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__)                                      \
        name(const __grid_constant__ args_type args)
#define PLIM_DYNAMIC_SHARED(type, name)                                                            \
    extern __shared__ __align__(16) unsigned char plim_shared_bytes[];                             \
    type *name = reinterpret_cast<type *>(plim_shared_bytes)
#define PLIM_UNROLL _Pragma("unroll")
#define PLIM_PRAGMA(text) _Pragma(#text)
#define PLIM_UNROLL_BY(n) PLIM_PRAGMA(unroll n) /* 1: keeps code small */
#else
#include "devices/half.h"
#define PLIM_UNROLL
#define PLIM_UNROLL_BY(n)
#endif

/* --- element types ---------------------------------------------------------------------------- */

struct bf16 {
    uint16_t bits;
};

struct fp16 {
    uint16_t bits;
};

struct boolean {
    uint8_t byte; /* 0 or 1 */
};


#ifdef __CUDACC__
__device__ inline float to_float(bf16 x)
{
    return __uint_as_float((uint32_t)x.bits << 16);
}

__device__ inline float to_float(fp16 x)
{
    return __half2float(__ushort_as_half(x.bits));
}

__device__ inline bf16 to_bf16(float x)
{
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

__device__ inline fp16 to_fp16(float x)
{
    return {__half_as_ushort(__float2half_rn(x))};
}
#else
static inline float to_float(bf16 x)
{
    return plim_bf16_to_float(x.bits);
}

static inline float to_float(fp16 x)
{
    return plim_fp16_to_float(x.bits);
}

static inline bf16 to_bf16(float x)
{
    return {plim_float_to_bf16(x)};
}

static inline fp16 to_fp16(float x)
{
    return {plim_float_to_fp16(x)};
}
#endif

/* cast<To>(x): as op.h says results are rounded. */
template <class To> struct caster {
    template <class From> __device__ static To of(From x)
    {
        return (To)x;
    }
    __device__ static To of(bf16 x)
    {
        return (To)to_float(x);
    }
    __device__ static To of(fp16 x)
    {
        return (To)to_float(x);
    }
    __device__ static To of(boolean x)
    {
        return (To)x.byte;
    }
};

template <> struct caster<bf16> {
    template <class From> __device__ static bf16 of(From x)
    {
        return to_bf16((float)x);
    }
};

template <> struct caster<fp16> {
    template <class From> __device__ static fp16 of(From x)
    {
        return to_fp16((float)x);
    }
};

template <> struct caster<boolean> {
    template <class From> __device__ static boolean of(From x)
    {
        return {(uint8_t)(x != 0)};
    }
};

template <class To, class From> __device__ inline To cast(From x)
{
    return caster<To>::of(x);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Neighbours in memory that move together, in accesses of up to 16 bytes. */
template <class T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) pack {
    T at[V];
};

template <class T, int V> __device__ inline pack<T, V> load_pack(uint64_t address)
{
    return *reinterpret_cast<const pack<T, V> *>(address);
}

template <class T, int V> __device__ inline void store_pack(uint64_t address, pack<T, V> values)
{
    *reinterpret_cast<pack<T, V> *>(address) = values;
}

template <class T, class A, int V> __device__ inline void load_as(A (&v)[V], uint64_t address)
{
    pack<T, V> x = load_pack<T, V>(address);
    PLIM_UNROLL
    for (int i = 0; i < V; i++) v[i] = cast<A>(x.at[i]);
}

template <class T, class A, int V>
__device__ inline void store_as(uint64_t address, const A (&v)[V])
{
    pack<T, V> x;
    PLIM_UNROLL
    for (int i = 0; i < V; i++) x.at[i] = cast<T>(v[i]);
    store_pack(address, x);
}

/* V neighbours of element type `dtype`, aligned for a pack. */
template <int V> __device__ inline void load(float (&v)[V], unsigned dtype, uint64_t address)
{
    switch (dtype) {
    case PLIM_F32: return load_as<float>(v, address);
    case PLIM_BF16: return load_as<bf16>(v, address);
    case PLIM_F16: return load_as<fp16>(v, address);
    case PLIM_I64: return load_as<int64_t>(v, address);
    case PLIM_I32: return load_as<int32_t>(v, address);
    default: return load_as<uint8_t>(v, address);
    }
}

template <int V> __device__ inline void load(int64_t (&v)[V], unsigned dtype, uint64_t address)
{
    switch (dtype) {
    case PLIM_I64: return load_as<int64_t>(v, address);
    case PLIM_I32: return load_as<int32_t>(v, address);
    case PLIM_RAW16: return load_as<uint16_t>(v, address);
    default: return load_as<uint8_t>(v, address);
    }
}

template <int V> __device__ inline void store(unsigned dtype, uint64_t address, const float (&v)[V])
{
    switch (dtype) {
    case PLIM_F32: return store_as<float>(address, v);
    case PLIM_BF16: return store_as<bf16>(address, v);
    case PLIM_F16: return store_as<fp16>(address, v);
    case PLIM_I64: return store_as<int64_t>(address, v);
    case PLIM_I32: return store_as<int32_t>(address, v);
    case PLIM_U8: return store_as<uint8_t>(address, v);
    default: return store_as<boolean>(address, v);
    }
}

template <int V>
__device__ inline void store(unsigned dtype, uint64_t address, const int64_t (&v)[V])
{
    switch (dtype) {
    case PLIM_I64: return store_as<int64_t>(address, v);
    case PLIM_I32: return store_as<int32_t>(address, v);
    case PLIM_RAW16: return store_as<uint16_t>(address, v);
    case PLIM_U8: return store_as<uint8_t>(address, v);
    default: return store_as<boolean>(address, v);
    }
}

__device__ inline unsigned bytes_of(unsigned dtype)
{
    return dtype == PLIM_I64                        ? 8
           : dtype == PLIM_F32 || dtype == PLIM_I32 ? 4
           : dtype == PLIM_U8 || dtype == PLIM_BOOL ? 1
                                                    : 2;
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Where a thread starts in a loop over the whole grid, and its step. One-dimensional launches. */
__device__ inline uint64_t grid_thread()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline uint64_t grid_threads()
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* Folds over `lanes` neighbouring lanes (a power of two, the same in the whole warp, all 32 of
 * which take part). All get the result; the order is the same in every run. */
template <class T, class F> __device__ inline T warp_fold(T value, F fold, int lanes = 32)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        value = fold(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

/* Over the block, of whole warps in the x direction only. All threads get the result. */
template <class T, class F> __device__ inline T block_fold(T value, T identity, F fold)
{
    __shared__ T of_warp[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_fold(value, fold);
    __syncthreads(); /* the last fold's values have been read */
    if (lane == 0) of_warp[warp] = value;
    __syncthreads();
    return warp_fold(lane < blockDim.x / 32 ? of_warp[lane] : identity, fold);
}

template <class T> struct adding {
    __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
};

/* The larger one; NaN if one is (as PyTorch's maximum and unlike fmaxf). */
struct larger {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a > b || a != a ? a : b;
    }
};

struct smaller {
    template <class T> __device__ T operator()(T a, T b) const
    {
        return a < b || a != a ? a : b;
    }
};

__device__ inline float warp_sum(float value)
{
    return warp_fold(value, adding<float>());
}

__device__ inline float block_sum(float value)
{
    return block_fold(value, 0.0f, adding<float>());
}

__device__ inline float block_max(float value)
{
    return block_fold(value, -INFINITY, larger());
}

/* --- random numbers --------------------------------------------------------------------------- */

/* plim_random_word() without an array that is indexed at run time, which would live in memory. */
__device__ inline uint32_t random_word(uint64_t seed, uint64_t i)
{
    uint32_t word[4];
    plim_philox(seed, i / 4, word);
    uint32_t low = i & 1 ? word[1] : word[0], high = i & 1 ? word[3] : word[2];
    return i & 2 ? high : low;
}

#endif
