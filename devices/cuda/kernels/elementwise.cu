/* Operations without operands, of one, two and three; dropout and triangles. */
#include "functions.cuh"
#include "walk.cuh"

/* --- out <- () -------------------------------------------------------------------------------- */

__device__ inline float random_value(uint32_t word, const struct plim_elementwise_args &args,
                                     float *)
{
    return (float)args.alpha * (2.0f * plim_random_unit(word) - 1.0f);
}

__device__ inline int64_t random_value(uint32_t word, const struct plim_elementwise_args &args,
                                       int64_t *)
{
    return (int64_t)plim_random_below(word, (uint64_t)args.alpha);
}

template <class A> struct nullary {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[1];
        A y[V];
        walk_to(args.walk, first, at);
        PLIM_UNROLL
        for (int i = 0; i < V; i++) {
            if (args.function == PLIM_OP_RANDOM)
                y[i] = random_value(random_word(args.seed, first + i), args, (A *)nullptr);
            else if (args.function == PLIM_OP_ARANGE)
                y[i] = (A)(args.beta + args.alpha * (double)(first + i));
            else
                y[i] = (A)args.alpha;
        }
        store(args.walk.dtype[0], at[0], y);
    }
};

/* --- out <- a --------------------------------------------------------------------------------- */

template <class A> struct copy {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[2];
        A x[V];
        walk_to(args.walk, first, at);
        walk_load(x, args.walk, 1, at[1]);
        store(args.walk.dtype[0], at[0], x);
    }
};

template <class A> struct unary {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[2];
        A x[V];
        walk_to(args.walk, first, at);
        walk_load(x, args.walk, 1, at[1]);
        unary_function(x, args.function, (A)args.alpha, (A)args.beta);
        store(args.walk.dtype[0], at[0], x);
    }
};

/* dout, saved */
struct unary_backward {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[3];
        float dy[V], saved[V];
        walk_to(args.walk, first, at);
        walk_load(dy, args.walk, 1, at[1]);
        walk_load(saved, args.walk, 2, at[2]);
        unary_derivative(dy, saved, args.function, (float)args.alpha, (float)args.beta);
        store(args.walk.dtype[0], at[0], dy);
    }
};

/* What lies on the other side of the diagonal `dim` becomes 0. */
template <class A> struct triangle {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[2];
        A x[V];
        walk_to(args.walk, first, at);
        walk_load(x, args.walk, 1, at[1]);
        PLIM_UNROLL
        for (int i = 0; i < V; i++) {
            uint64_t row = plim_divide(first + i, &args.columns);
            uint64_t column = first + i - row * args.columns.divisor;
            row -= plim_divide(row, &args.rows) * args.rows.divisor;
            int64_t right = (int64_t)(column - row) - args.dim;
            if (args.function == PLIM_OP_TRIL ? right > 0 : right < 0) x[i] = 0;
        }
        store(args.walk.dtype[0], at[0], x);
    }
};

/* out, mask, x */
struct dropout {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[3];
        float x[V], mask[V];
        float probability = (float)args.alpha;
        float scale = args.alpha < 1 ? (float)(1 / (1 - args.alpha)) : 0.0f;
        walk_to(args.walk, first, at);
        walk_load(x, args.walk, 2, at[2]);
        random_units(mask, args.seed, first);
        PLIM_UNROLL
        for (int i = 0; i < V; i++) {
            mask[i] = mask[i] >= probability ? 1.0f : 0.0f;
            x[i] *= mask[i] * scale;
        }
        store(args.walk.dtype[0], at[0], x);
        store(args.walk.dtype[1], at[1], mask);
    }
};

/* --- out <- a, b ------------------------------------------------------------------------------ */

/* f(a, alpha b); with one input f(a, alpha) */
template <class A> struct binary {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[3];
        A a[V], b[V], alpha = (A)args.alpha;
        walk_to(args.walk, first, at);
        walk_load(a, args.walk, 1, at[1]);
        if (args.walk.operands > 2) {
            walk_load(b, args.walk, 2, at[2]);
            if (args.function != PLIM_BINARY_LERP) {
                PLIM_UNROLL
                for (int i = 0; i < V; i++) b[i] = product(alpha, b[i]);
            }
        } else {
            PLIM_UNROLL
            for (int i = 0; i < V; i++) b[i] = alpha;
        }
        binary_function(a, b, args.function, alpha);
        store(args.walk.dtype[0], at[0], a);
    }
};

/* condition, a, b */
template <class A> struct where {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[4];
        float condition[V];
        A a[V], b[V];
        walk_to(args.walk, first, at);
        walk_load(condition, args.walk, 1, at[1]);
        walk_load(a, args.walk, 2, at[2]);
        walk_load(b, args.walk, 3, at[3]);
        PLIM_UNROLL
        for (int i = 0; i < V; i++) a[i] = condition[i] != 0 ? a[i] : b[i];
        store(args.walk.dtype[0], at[0], a);
    }
};

/* x, mask */
template <class A> struct masked_fill {
    template <int V>
    __device__ static void run(const struct plim_elementwise_args &args, uint64_t first)
    {
        uint64_t at[3];
        A x[V];
        float mask[V];
        walk_to(args.walk, first, at);
        walk_load(x, args.walk, 1, at[1]);
        walk_load(mask, args.walk, 2, at[2]);
        PLIM_UNROLL
        for (int i = 0; i < V; i++) x[i] = mask[i] != 0 ? (A)args.alpha : x[i];
        store(args.walk.dtype[0], at[0], x);
    }
};

/* Products of complex numbers, in fp32: the walk is that of their first parts. */
__device__ inline void multiply_complex(const struct plim_elementwise_args &args, uint64_t first)
{
    uint64_t at[3];
    walk_to(args.walk, first, at);
    const float *a = (const float *)at[1], *b = (const float *)at[2];
    float real = a[0] * b[0] - a[1] * b[1] * (float)args.beta, imaginary = a[0] * b[1] * (float)args.beta + a[1] * b[0];
    float *y = (float *)at[0];
    y[0] = real;
    y[1] = imaginary;
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* Three blocks on a multiprocessor: 80 registers a thread, which is what none spills with. */
#define ELEMENTWISE(name, body)                                                                    \
    PLIM_KERNEL(name##_vector, struct plim_elementwise_args, PLIM_ELEMENTWISE_THREADS, 3)          \
    {                                                                                              \
        for_elements<body, PLIM_WALK_VECTOR>(args);                                                \
    }                                                                                              \
    PLIM_KERNEL(name##_scalar, struct plim_elementwise_args, PLIM_ELEMENTWISE_THREADS, 3)          \
    {                                                                                              \
        for_elements<body, 1>(args);                                                               \
    }

ELEMENTWISE(nullary_float, nullary<float>)
ELEMENTWISE(nullary_integer, nullary<int64_t>)
ELEMENTWISE(copy_float, copy<float>)
ELEMENTWISE(copy_integer, copy<int64_t>)
ELEMENTWISE(unary_float, unary<float>)
ELEMENTWISE(unary_integer, unary<int64_t>)
ELEMENTWISE(unary_backward, unary_backward)
ELEMENTWISE(triangle_float, triangle<float>)
ELEMENTWISE(triangle_integer, triangle<int64_t>)
ELEMENTWISE(dropout, dropout)
ELEMENTWISE(binary_float, binary<float>)
ELEMENTWISE(binary_integer, binary<int64_t>)
ELEMENTWISE(masked_fill_float, masked_fill<float>)
ELEMENTWISE(masked_fill_integer, masked_fill<int64_t>)
ELEMENTWISE(where_float, where<float>)
ELEMENTWISE(where_integer, where<int64_t>)

PLIM_KERNEL(complex_mul, struct plim_elementwise_args, PLIM_ELEMENTWISE_THREADS, 3)
{
    for (uint64_t i = grid_thread(); i < args.walk.elements; i += grid_threads()) multiply_complex(args, i);
}
