/* Gated MLPs: f(gate) up and its gradients. A thread reads all of its elements before it writes, so that results may
 * lie where operands do. */
#include "args_gated.h"
#include "functions.cuh"
#include "vector.cuh"

/* run(i, lanes<N>): elements [0, n) of arrays that lie side by side, N at a time */
template <class Run> __device__ inline void for_elements(const plim_gated_args &args, Run run)
{
    int64_t whole = args.vectors ? args.elements / VECTOR : 0;
    int64_t units = whole + (args.elements - whole * VECTOR);
    for (int64_t unit = (int64_t)grid_thread(); unit < units; unit += (int64_t)grid_threads()) {
        if (unit < whole)
            run(unit * VECTOR, lanes<VECTOR>());
        else
            run(whole * VECTOR + (unit - whole), lanes<1>());
    }
}

template <int N> __device__ inline void load(const plim_cuda_flat_operand &a, int64_t i, float (&v)[N])
{
    load_floats(a.data, a.dtype, i, v);
}

template <int N> __device__ inline void store(const plim_cuda_flat_operand &a, int64_t i, const float (&v)[N])
{
    store_floats(a.data, a.dtype, i, v);
}

/* f of the three that are gates: a switch over all functions would cost registers. */
__device__ inline float gate_function(float x, uint32_t function)
{
    return function == PLIM_UNARY_SILU   ? x * sigmoid(x)
           : function == PLIM_UNARY_GELU ? x * normal_cdf(x)
                                         : x * gelu_tanh_gate(x);
}

__device__ inline float gate_slope(float x, uint32_t function)
{
    return function == PLIM_UNARY_SILU ? silu_slope(x)
           : function == PLIM_UNARY_GELU
               ? normal_cdf(x) + x * SQRT_1_OVER_2_PI * expf(-0.5f * x * x)
               : gelu_tanh_slope(x);
}

PLIM_KERNEL(gated, plim_gated_args, PLIM_GATED_THREADS)
{
    for_elements(args, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float gate[N], up[N];
        load(args.gate, i, gate);
        load(args.up, i, up);
        PLIM_UNROLL
        for (int k = 0; k < N; k++) up[k] *= gate_function(gate[k], args.function);
        store(args.out, i, up);
    });
}

PLIM_KERNEL(gated_backward, plim_gated_args, PLIM_GATED_THREADS)
{
    for_elements(args, [&](int64_t i, auto width) {
        constexpr int N = decltype(width)::count;
        float dout[N], gate[N], up[N];
        load(args.dout, i, dout);
        load(args.gate, i, gate);
        load(args.up, i, up);
        PLIM_UNROLL
        for (int k = 0; k < N; k++) {
            float f = gate_function(gate[k], args.function), u = up[k];
            gate[k] = dout[k] * u * gate_slope(gate[k], args.function);
            up[k] = dout[k] * f;
            dout[k] = f * u;
        }
        store(args.dgate, i, gate);
        store(args.dup, i, up);
        if (args.out.data) store(args.out, i, dout);
    });
}
