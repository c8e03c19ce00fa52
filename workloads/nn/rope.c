/* The inverse frequencies of rotary embeddings, one formula for each rope type (transformers
 * modeling_rope_utils.py), and the two types that look at the positions of every forward. All
 * arrays are of a few hundred bytes; numbers that change neither sizes nor kernels are left at 1. */
#include "nn.h"

/* number / x, as Python divides a number by a tensor: the reciprocal, then times the number */
static struct tensor *quotient(struct graph *g, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *y = op_mul_scalar(g, op_unary(g, x, PLIM_UNARY_RECIPROCAL), 1);
    tensor_leave(g, x, was);
    return y;
}

/* rope_theta, the default of every family; another one changes nothing but values. */
static const double THETA = 10000;

/* A number as Python's operators put it on the device: 8 bytes, here read as fp32; named */
static struct tensor *number_on_device(struct graph *g, double value)
{
    struct tensor *x = tensor_keep(tensor_empty_bytes(g, 8));
    if (g->halted) return x;
    x->a.dtype = PLIM_F32;
    x->a.ndim = 0;
    op_fill_(g, x, value);
    return x;
}

/* base ** x; without a tensor the base is a number, which stands on the device while the kernel
 * runs */
static struct tensor *raised(struct graph *g, struct tensor *base, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *y = tensor_empty_like(g, x, PLIM_F32);
    struct tensor *number = base ? tensor_ref(base) : number_on_device(g, THETA);
    struct plim_op op = {.kind = PLIM_OP_BINARY,
                         .n_out = 1,
                         .n_in = 2,
                         .binary = PLIM_BINARY_POW,
                         .alpha = 1,
                         .out = {&y->a},
                         .in = {&number->a, &x->a}};
    if (!g->halted) graph_launch(g, &op);
    tensor_drop(g, number);
    tensor_leave(g, x, was);
    return y;
}

static int64_t frequencies(const struct rotary *r)
{
    return (r->dim + 1) / 2;
}

/* arange(0, dim, 2, dtype=int64).to(float) / dim */
static struct tensor *exponents(struct graph *g, const struct rotary *r)
{
    struct tensor *steps = op_to(g, op_arange(g, PLIM_I64, frequencies(r), 0, 2), PLIM_F32);
    return op_div_scalar(g, steps, (double)r->dim);
}

/* the same of floats from the start */
static struct tensor *plain(struct graph *g, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *steps = op_arange(g, PLIM_F32, frequencies(r), 0, 2);
    return quotient(g, raised(g, NULL, op_div_scalar(g, steps, (double)r->dim)));
}

static struct tensor *linear(struct graph *g, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *y = tensor_keep(quotient(g, raised(g, NULL, exponents(g, r))));
    op_binary_scalar_(g, PLIM_BINARY_DIV, y, 1);
    return tensor_yield(y);
}

/* `seq` NULL: for the model's own length. Else the base follows from it, on the device. */
static struct tensor *dynamic(struct graph *g, const struct rotary *r, struct tensor *seq)
{
    if (!seq) return quotient(g, raised(g, NULL, exponents(g, r)));
    struct tensor *limit = op_full(g, PLIM_I64, 0, NULL, (double)r->positions);
    struct tensor *length = tensor_keep(op_maximum(g, seq, limit));
    struct tensor *scale = op_add_scalar(g, op_div_scalar(g, op_to(g, length, PLIM_F32), 1), -1);
    struct tensor *base = tensor_keep(op_mul_scalar(g, op_pow_scalar(g, scale, 1), 1));
    int64_t count = frequencies(r); /* in a forward, arange() counts on the host */
    struct tensor *steps = op_full(g, PLIM_F32, 1, &count, 1);
    struct tensor *y = quotient(g, raised(g, base, op_div_scalar(g, steps, (double)r->dim)));
    tensor_drop(g, length);
    tensor_drop(g, base);
    return y;
}

static struct tensor *longrope(struct graph *g, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    int64_t count = frequencies(r);
    struct tensor *factors = tensor_keep(op_full(g, PLIM_F32, 1, &count, 1));
    struct tensor *x = tensor_keep(exponents(g, r));
    struct tensor *y = quotient(g, op_mul(g, factors, raised(g, NULL, x)));
    tensor_drop(g, factors);
    tensor_drop(g, x);
    return y;
}

static struct tensor *llama3(struct graph *g, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *inv_freq = tensor_keep(quotient(g, raised(g, NULL, exponents(g, r))));
    struct tensor *wavelength = tensor_keep(quotient(g, inv_freq));
    struct tensor *is_long = op_compare_scalar(g, PLIM_BINARY_GT, wavelength, 1);
    struct tensor *scaled = op_div_scalar(g, inv_freq, 1);
    struct tensor *y = tensor_keep(op_where(g, is_long, scaled, inv_freq, PLIM_F32, 0, 0));
    struct tensor *smooth =
        tensor_keep(op_div_scalar(g, op_add_scalar(g, quotient(g, wavelength), -1), 1));
    struct tensor *rest = op_div_scalar(g, op_mul(g, op_add_scalar(g, smooth, 1), y), 1);
    struct tensor *smoothed = tensor_keep(op_add(g, rest, op_mul(g, smooth, y)));
    struct tensor *is_short = op_compare_scalar(g, PLIM_BINARY_LT, wavelength, 1);
    struct tensor *not_short = op_unary(g, is_short, PLIM_UNARY_NOT);
    is_long = op_compare_scalar(g, PLIM_BINARY_GT, wavelength, 1);
    struct tensor *not_long = op_unary(g, is_long, PLIM_UNARY_NOT);
    struct tensor *is_medium = tensor_keep(op_mul(g, not_short, not_long));
    tensor_set(g, &y, op_where(g, is_medium, smoothed, y, PLIM_F32, 0, 0));
    struct tensor *done[] = {inv_freq, wavelength, smooth, smoothed, is_medium};
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) tensor_drop(g, done[i]);
    return tensor_yield(y);
}

/* clamp((arange(n) - low) / (high - low), 0, 1) */
static struct tensor *ramp(struct graph *g, int64_t count)
{
    struct tensor *line =
        tensor_keep(op_div_scalar(g, op_add_scalar(g, op_arange(g, PLIM_F32, count, 0, 1), -1), 1));
    struct tensor *y = op_clamp(g, line, 0, 1);
    tensor_drop(g, line);
    return y;
}

static struct tensor *yarn(struct graph *g, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *powers = tensor_keep(raised(g, NULL, exponents(g, r)));
    struct tensor *far = tensor_keep(quotient(g, powers));
    struct tensor *near = tensor_keep(quotient(g, op_mul_scalar(g, powers, 1)));
    struct tensor *share = tensor_keep(op_add_scalar(g, ramp(g, r->dim / 2), 1));
    struct tensor *inside = op_mul(g, near, op_add_scalar(g, share, 1));
    struct tensor *y = op_add(g, inside, op_mul(g, far, share));
    struct tensor *done[] = {powers, far, near, share};
    for (size_t i = 0; i < sizeof done / sizeof *done; i++) tensor_drop(g, done[i]);
    return y;
}

typedef struct tensor *(*formula)(struct graph *g, const struct rotary *r, struct tensor *seq);
static const formula formulas[PLIM_ROPE_COUNT] = {
    [PLIM_ROPE_DEFAULT] = plain,       [PLIM_ROPE_LINEAR] = linear,
    [PLIM_ROPE_DYNAMIC] = dynamic,     [PLIM_ROPE_YARN] = yarn,
    [PLIM_ROPE_LONGROPE] = longrope,   [PLIM_ROPE_LLAMA3] = llama3,
    [PLIM_ROPE_PROPORTIONAL] = linear,
};

struct tensor *nn_rope_frequencies(struct graph *g, const struct rotary *r)
{
    return formulas[r->rope](g, r, NULL);
}

/* --- looking at the positions ----------------------------------------------------------------- */

/* the host reads one truth value */
static void ask(struct graph *g, struct tensor *answer)
{
    tensor_keep(answer);
    graph_item(g, answer);
    tensor_drop(g, answer);
}

static void replace(struct graph *g, struct rotary *r, struct tensor *inv_freq)
{
    tensor_set(g, &r->inv_freq, inv_freq);
    tensor_classify(g, r->inv_freq, PLIM_MEMORY_PARAMETERS);
}

/* dynamic_frequency_update: new frequencies at the first sequence that is longer than any before. */
static void dynamic_update(struct graph *g, struct rotary *r, struct tensor *seq, int64_t length)
{
    ask(g, r->longest ? op_compare(g, PLIM_BINARY_GT, seq, r->longest)
                      : op_compare_scalar(g, PLIM_BINARY_GT, seq, (double)r->positions));
    if (length > r->positions && !r->longest) {
        replace(g, r, dynamic(g, r, seq));
        r->longest = tensor_ref(seq);
    }
    ask(g, op_compare_scalar(g, PLIM_BINARY_LT, seq, (double)r->positions));
}

/* longrope_frequency_update: beyond the original length the frequencies are computed in every
 * forward. */
static void longrope_update(struct graph *g, struct rotary *r, struct tensor *seq, int64_t length)
{
    ask(g, op_compare_scalar(g, PLIM_BINARY_GT, seq, (double)r->original_positions));
    replace(g, r, length > r->original_positions ? longrope(g, r, NULL) : r->original_inv_freq);
}

void nn_rope_update(struct graph *g, struct rotary *r, struct tensor *positions)
{
    if (g->halted || (r->rope != PLIM_ROPE_DYNAMIC && r->rope != PLIM_ROPE_LONGROPE)) return;
    struct tensor *last = op_reduce(g, positions, 3, false, PLIM_BINARY_MAX, 1, PLIM_I64);
    struct tensor *seq = tensor_keep(op_add_scalar(g, last, 1));
    (r->rope == PLIM_ROPE_DYNAMIC ? dynamic_update : longrope_update)(g, r, seq,
                                                                      tensor_size(positions, -1));
    tensor_drop(g, seq);
}
