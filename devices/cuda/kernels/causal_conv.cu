/* A convolution along rows of which each channel has a kernel of its own and a token sees those before it in its
 * document, through silu. Backward makes the sums again that forward does not keep. Everything between loads and stores
 * is fp32, and every sum has one owner and an order. */
#include "args_causal_conv.h"
#include "kernel.cuh"
#include "vector.cuh"

__device__ inline float at(const plim_causal_rows &rows, int64_t row, int64_t channel, int64_t t)
{
    return load_float(rows.data, rows.dtype, row * rows.step[0] + channel * rows.step[1] + t * rows.step[2]);
}

/* Does token `to` see token `from`, which is not behind it? */
__device__ inline bool sees(const plim_causal_conv_args &args, int64_t row, int64_t to, int64_t from)
{
    if (from < 0 || to >= args.length) return false;
    if (!args.document) return true;
    const int32_t *document = (const int32_t *)args.document + row * args.length;
    return document[to] == document[from];
}

__device__ inline float tap(const plim_causal_conv_args &args, int64_t channel, int i)
{
    return load_float(args.weight.data, args.weight.dtype, channel * args.taps + i);
}

__device__ inline float sum_at(const plim_causal_conv_args &args, int64_t row, int64_t channel, int64_t t)
{
    float sum = 0;
    for (int i = 0; i < (int)args.taps; i++) {
        int64_t from = t + i - (int)args.taps + 1;
        if (sees(args, row, t, from)) sum += at(args.x, row, channel, from) * tap(args, channel, i);
    }
    return sum;
}

/* The gradient of the sum at token t */
__device__ inline float sum_gradient(const plim_causal_conv_args &args, int64_t row, int64_t channel, int64_t t)
{
    float sum = sum_at(args, row, channel, t), gate = 1 / (1 + expf(-sum));
    return at(args.dout, row, channel, t) * gate * (1 + sum * (1 - gate));
}

/* An element of `to` */
struct causal_place {
    int64_t row, channel, t, offset;
};

__device__ inline causal_place place_of(const plim_causal_conv_args &args, uint64_t element)
{
    uint64_t line = plim_divide(element, &args.inner), row = plim_divide(line, &args.outer);
    int64_t inner = (int64_t)(element - line * args.inner.divisor),
            outer = (int64_t)(line - row * args.outer.divisor);
    int64_t channel = args.channels_inner ? inner : outer, t = args.channels_inner ? outer : inner;
    const int64_t *step = args.to.step;
    return {(int64_t)row, channel, t, (int64_t)row * step[0] + channel * step[1] + t * step[2]};
}

PLIM_KERNEL(causal_conv, plim_causal_conv_args, PLIM_CAUSAL_CONV_THREADS)
{
    for (uint64_t i = grid_thread(); i < args.elements; i += grid_threads()) {
        causal_place p = place_of(args, i);
        float sum = sum_at(args, p.row, p.channel, p.t);
        store_float(args.to.data, args.to.dtype, p.offset, sum / (1 + expf(-sum)));
    }
}

PLIM_KERNEL(causal_conv_backward, plim_causal_conv_args, PLIM_CAUSAL_CONV_THREADS)
{
    for (uint64_t element = grid_thread(); element < args.elements; element += grid_threads()) {
        causal_place p = place_of(args, element);
        float sum = 0;
        for (int i = 0; i < (int)args.taps; i++) {
            int64_t to = p.t - i + (int)args.taps - 1;
            if (sees(args, p.row, to, p.t))
                sum += sum_gradient(args, p.row, p.channel, to) * tap(args, p.channel, i);
        }
        store_float(args.to.data, args.to.dtype, p.offset, sum);
    }
}

/* A warp has neighbouring channels, each of its lanes one; the warps share the tokens. */
PLIM_KERNEL(causal_conv_backward_weight, plim_causal_conv_args, PLIM_CAUSAL_CONV_THREADS, 4)
{
    __shared__ float part[PLIM_CAUSAL_CONV_SHARES][PLIM_CAUSAL_CONV_MOST][PLIM_CAUSAL_CONV_CHANNELS];
    int lane = (int)threadIdx.x % PLIM_CAUSAL_CONV_CHANNELS, share = (int)threadIdx.x / PLIM_CAUSAL_CONV_CHANNELS;
    int64_t channel = (int64_t)blockIdx.x * PLIM_CAUSAL_CONV_CHANNELS + lane;
    float sum[PLIM_CAUSAL_CONV_MOST] = {};
    for (int64_t row = 0; row < args.batch && channel < args.channels; row++)
        for (int64_t t = share; t < args.length; t += PLIM_CAUSAL_CONV_SHARES) {
            float gradient = sum_gradient(args, row, channel, t);
            PLIM_UNROLL
            for (int i = 0; i < PLIM_CAUSAL_CONV_MOST; i++) {
                int64_t from = t + i - (int)args.taps + 1;
                if (i < (int)args.taps && sees(args, row, t, from))
                    sum[i] += gradient * at(args.x, row, channel, from);
            }
        }
    PLIM_UNROLL
    for (int i = 0; i < PLIM_CAUSAL_CONV_MOST; i++) part[share][i][lane] = sum[i];
    __syncthreads();
    if (share >= (int)args.taps || channel >= args.channels) return;
    float all = 0;
    for (int i = 0; i < PLIM_CAUSAL_CONV_SHARES; i++) all += part[i][share][lane];
    store_float(args.dweight.data, args.dweight.dtype, channel * args.taps + share, all);
}
