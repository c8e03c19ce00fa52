/* The convolutions that models have: of an image whose windows do not overlap, which is a product of its patches and
 * the kernels, and along rows of which each channel has a kernel of its own. Everything between loads and stores is
 * fp32, and every sum has one owner and an order. */
#include "args_convolution.h"
#include "vector.cuh"

/* --- products on fp32 units ------------------------------------------------------------------- */

enum { TILE = PLIM_PATCHES_TILE, DEPTH = 16, SIDE = 4, PITCH = TILE + 4 };

/* store(row, column, sum over d < depth of a(row, d) b(column, d)) for the block's tile. Threads form a grid of
 * 16 x 16; each has SIDE rows and columns. */
template <class A, class B, class Store>
__device__ inline void multiply_tile(int64_t rows, int64_t columns, int64_t depth, A a, B b, Store store)
{
    __shared__ float left[DEPTH][PITCH], right[DEPTH][PITCH];
    int64_t first_row = (int64_t)blockIdx.x * TILE, first_column = (int64_t)blockIdx.y * TILE;
    int r = (int)threadIdx.x / 16 * SIDE, c = (int)threadIdx.x % 16 * SIDE;
    float sum[SIDE][SIDE] = {};
    for (int64_t d = 0; d < depth; d += DEPTH) {
        __syncthreads(); /* the tiles before are done with */
        for (int i = (int)threadIdx.x; i < TILE * DEPTH; i += PLIM_CONVOLUTION_THREADS) {
            int at = i / DEPTH, k = i % DEPTH;
            left[k][at] = first_row + at < rows && d + k < depth ? a(first_row + at, d + k) : 0;
            right[k][at] = first_column + at < columns && d + k < depth ? b(first_column + at, d + k) : 0;
        }
        __syncthreads();
        PLIM_UNROLL
        for (int k = 0; k < DEPTH; k++) {
            PLIM_UNROLL
            for (int i = 0; i < SIDE; i++) {
                PLIM_UNROLL
                for (int j = 0; j < SIDE; j++) sum[i][j] += left[k][r + i] * right[k][c + j];
            }
        }
    }
    PLIM_UNROLL
    for (int i = 0; i < SIDE; i++) {
        PLIM_UNROLL
        for (int j = 0; j < SIDE; j++) {
            int64_t row = first_row + r + i, column = first_column + c + j;
            if (row < rows && column < columns) store(row, column, sum[i][j]);
        }
    }
}

/* --- patches ---------------------------------------------------------------------------------- */

/* Where a patch stands: its image, and its row and column of patches. */
struct patch_place {
    int64_t image, down, across;
};

__device__ inline patch_place place_of_patch(const plim_patches_args &args, int64_t patch)
{
    uint64_t row = plim_divide((uint64_t)patch, &args.across), image = plim_divide(row, &args.down);
    return {(int64_t)image, (int64_t)(row - image * args.down.divisor),
            patch - (int64_t)(row * args.across.divisor)};
}

/* An element of a patch, as the kernels' elements are counted. */
__device__ inline float patch_element(const plim_patches_args &args, int64_t patch, int64_t element)
{
    const plim_cuda_images &x = args.images;
    patch_place at = place_of_patch(args, patch);
    int64_t height = (int64_t)args.height.divisor, width = (int64_t)args.width.divisor;
    int64_t line = (int64_t)plim_divide((uint64_t)element, &args.width), column = element - line * width;
    int64_t channel = (int64_t)plim_divide((uint64_t)line, &args.height), row = line - channel * height;
    int64_t offset = at.image * x.step[0] + channel * x.step[1] + (at.down * height + row) * x.step[2] +
                     (at.across * width + column) * x.step[3];
    return load_float(x.data, x.dtype, offset);
}

/* Of the results (b, kernels, down, across). */
__device__ inline int64_t offset_of_result(const plim_patches_args &args, int64_t patch, int64_t kernel)
{
    const plim_cuda_images &y = args.results;
    patch_place at = place_of_patch(args, patch);
    return at.image * y.step[0] + kernel * y.step[1] + at.down * y.step[2] + at.across * y.step[3];
}

PLIM_KERNEL(patches, plim_patches_args, PLIM_CONVOLUTION_THREADS)
{
    multiply_tile(
        args.patches, args.kernels, args.elements,
        [&](int64_t patch, int64_t element) { return patch_element(args, patch, element); },
        [&](int64_t kernel, int64_t element) {
            return load_float(args.weight.data, args.weight.dtype, kernel * args.elements + element);
        },
        [&](int64_t patch, int64_t kernel, float sum) {
            if (args.bias.data) sum += load_float(args.bias.data, args.bias.dtype, kernel);
            store_float(args.results.data, args.results.dtype, offset_of_result(args, patch, kernel), sum);
        });
}

PLIM_KERNEL(patches_backward, plim_patches_args, PLIM_CONVOLUTION_THREADS)
{
    multiply_tile(
        args.kernels, args.elements, args.patches,
        [&](int64_t kernel, int64_t patch) {
            return load_float(args.results.data, args.results.dtype, offset_of_result(args, patch, kernel));
        },
        [&](int64_t element, int64_t patch) { return patch_element(args, patch, element); },
        [&](int64_t kernel, int64_t element, float sum) {
            store_float(args.weight.data, args.weight.dtype, kernel * args.elements + element, sum);
        });
}

/* --- along rows ------------------------------------------------------------------------------- */

PLIM_KERNEL(depthwise, plim_depthwise_args, PLIM_CONVOLUTION_THREADS)
{
    for (uint64_t n = grid_thread(); n < args.elements; n += grid_threads()) {
        uint64_t row = plim_divide(n, &args.to_length);
        int64_t i = (int64_t)(n - row * args.to_length.divisor);
        int64_t channel = (int64_t)(row - plim_divide(row, &args.channels) * args.channels.divisor);
        float sum = args.bias.data ? load_float(args.bias.data, args.bias.dtype, channel) : 0;
        for (int64_t k = 0; k < args.kernel; k++) {
            int64_t at = args.back ? i - k + args.padding : i + k - args.padding;
            if (at < 0 || at >= args.from_length) continue;
            sum += load_float(args.from.data, args.from.dtype, (int64_t)row * args.from_length + at) *
                   load_float(args.weight.data, args.weight.dtype, channel * args.kernel + k);
        }
        store_float(args.to.data, args.to.dtype, (int64_t)n, sum);
    }
}

PLIM_KERNEL(depthwise_backward_weight, plim_depthwise_weight_args, PLIM_CONVOLUTION_THREADS)
{
    int64_t elements = args.channels * args.kernel, results = (int64_t)args.results.divisor;
    for (int64_t element = blockIdx.x; element < elements; element += gridDim.x) {
        int64_t channel = element / args.kernel, k = element % args.kernel;
        float sum = 0;
        for (int64_t n = threadIdx.x; n < args.batch * results; n += blockDim.x) {
            int64_t sample = (int64_t)plim_divide((uint64_t)n, &args.results), i = n - sample * results;
            int64_t row = sample * args.channels + channel, at = i + k - args.padding;
            if (at < 0 || at >= args.length) continue;
            sum += load_float(args.dout.data, args.dout.dtype, row * results + i) *
                   load_float(args.x.data, args.x.dtype, row * args.length + at);
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0) store_float(args.dweight.data, args.dweight.dtype, element, sum);
    }
}
