/* The inverse frequencies of rotary embeddings, with one formula per rope type (transformers modeling_rope_utils.py),
 * and the two types that read the positions of every forward. All arrays have a few hundred bytes; numbers that change
 * neither sizes nor kernels are set to 1. */
#include "nn.h"

/* number / x, as Python divides a number by a tensor: the reciprocal, times the number. */
static struct tensor *quotient(struct engine *e, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *y = op_mul_scalar(e, op_unary(e, x, PLIM_UNARY_RECIPROCAL), 1);
    tensor_leave(e, x, was);
    return y;
}

/* rope_theta, the default of every family; others only change values. */
static const double THETA = 10000;

/* Returns a number as Python's operators copy it to the device: 8 bytes, here read as fp32; named. */
static struct tensor *number_on_device(struct engine *e, double value)
{
    struct tensor *x = tensor_keep(tensor_empty_bytes(e, 8));
    if (e->halted) return x;
    x->a.dtype = PLIM_F32;
    x->a.ndim = 0;
    op_fill_(e, x, value);
    return x;
}

/* base ** x; if base is NULL, a number, which is on the device while the kernel runs. */
static struct tensor *raised(struct engine *e, struct tensor *base, struct tensor *x)
{
    bool was = tensor_enter(x);
    struct tensor *y = tensor_empty_like(e, x, PLIM_F32);
    struct tensor *number = base ? tensor_ref(base) : number_on_device(e, THETA);
    struct plim_op op = {.kind = PLIM_OP_BINARY,
                         .n_out = 1,
                         .n_in = 2,
                         .binary = PLIM_BINARY_POW,
                         .alpha = 1,
                         .out = {&y->a},
                         .in = {&number->a, &x->a}};
    if (!e->halted) engine_launch(e, &op);
    tensor_drop(e, number);
    tensor_leave(e, x, was);
    return y;
}

static int64_t frequencies(const struct rotary *r)
{
    return (r->dim + 1) / 2;
}

/* arange(0, dim, 2, dtype=int64).to(float) / dim */
static struct tensor *exponents(struct engine *e, const struct rotary *r)
{
    struct tensor *steps = op_to(e, op_arange(e, PLIM_I64, frequencies(r), 0, 2), PLIM_F32);
    return op_div_scalar(e, steps, (double)r->dim);
}

/* the same, with floats from the start */
static struct tensor *plain(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *steps = op_arange(e, PLIM_F32, frequencies(r), 0, 2);
    return quotient(e, raised(e, NULL, op_div_scalar(e, steps, (double)r->dim)));
}

struct tensor *nn_sinusoids(struct engine *e, int64_t positions, int64_t dim)
{
    struct tensor *powers = op_true_div_scalar(e, op_arange(e, PLIM_I64, dim / 2, 0, 2), (double)dim);
    struct tensor *frequencies = tensor_keep(quotient(e, raised(e, NULL, powers)));
    struct tensor *places = op_to(e, op_arange(e, PLIM_I64, positions, 0, 1), PLIM_F32);
    struct tensor *angles = op_mul(e, op_unsqueeze(e, places, 1), op_unsqueeze(e, frequencies, 0));
    tensor_keep(angles);
    struct tensor *parts[2] = {op_unary(e, angles, PLIM_UNARY_SIN), op_unary(e, angles, PLIM_UNARY_COS)};
    struct tensor *y = op_cat(e, 2, parts, 1);
    tensor_drop_all(e, frequencies, angles);
    return y;
}

static struct tensor *linear(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *y = tensor_keep(quotient(e, raised(e, NULL, exponents(e, r))));
    op_binary_scalar_(e, PLIM_BINARY_DIV, y, 1);
    return tensor_yield(y);
}

static struct tensor *proportional(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    int64_t rest = frequencies(r) - r->turning;
    struct tensor *steps = op_to(e, op_arange(e, PLIM_I64, r->turning, 0, 2), PLIM_F32);
    struct tensor *turning = tensor_keep(quotient(e, raised(e, NULL, op_div_scalar(e, steps, (double)r->dim))));
    struct tensor *y = tensor_ref(turning);
    if (rest > 0) {
        struct tensor *parts[2] = {turning, op_full(e, PLIM_F32, SHAPE(rest), 0)};
        tensor_set(e, &y, op_cat(e, 2, parts, 0));
    }
    op_binary_scalar_(e, PLIM_BINARY_DIV, y, 1);
    tensor_drop(e, turning);
    return tensor_yield(y);
}

/* `seq` NULL: for the model's own length. Otherwise the base is computed from it on the device. */
static struct tensor *dynamic(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    if (!seq) return quotient(e, raised(e, NULL, exponents(e, r)));
    struct tensor *limit = op_full(e, PLIM_I64, 0, NULL, (double)r->positions);
    struct tensor *length = tensor_keep(op_maximum(e, seq, limit));
    struct tensor *scale = op_add_scalar(e, op_div_scalar(e, op_to(e, length, PLIM_F32), 1), -1);
    struct tensor *base = tensor_keep(op_mul_scalar(e, op_pow_scalar(e, scale, 1), 1));
    int64_t count = frequencies(r); /* in a forward, arange() gets its size from the host */
    struct tensor *steps = op_full(e, PLIM_F32, 1, &count, 1);
    struct tensor *y = quotient(e, raised(e, base, op_div_scalar(e, steps, (double)r->dim)));
    tensor_drop(e, length);
    tensor_drop(e, base);
    return y;
}

static struct tensor *longrope(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    int64_t count = frequencies(r);
    struct tensor *factors = tensor_keep(op_full(e, PLIM_F32, 1, &count, 1));
    struct tensor *x = tensor_keep(exponents(e, r));
    struct tensor *y = quotient(e, op_mul(e, factors, raised(e, NULL, x)));
    tensor_drop(e, factors);
    tensor_drop(e, x);
    return y;
}

static struct tensor *llama3(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *inv_freq = tensor_keep(quotient(e, raised(e, NULL, exponents(e, r))));
    struct tensor *wavelength = tensor_keep(quotient(e, inv_freq));
    struct tensor *is_long = op_compare_scalar(e, PLIM_BINARY_GT, wavelength, 1);
    struct tensor *scaled = op_div_scalar(e, inv_freq, 1);
    struct tensor *y = tensor_keep(op_where(e, is_long, scaled, inv_freq, PLIM_F32, 0, 0));
    struct tensor *smooth =
        tensor_keep(op_div_scalar(e, op_add_scalar(e, quotient(e, wavelength), -1), 1));
    struct tensor *rest = op_div_scalar(e, op_mul(e, op_add_scalar(e, smooth, 1), y), 1);
    struct tensor *smoothed = tensor_keep(op_add(e, rest, op_mul(e, smooth, y)));
    struct tensor *is_short = op_compare_scalar(e, PLIM_BINARY_LT, wavelength, 1);
    struct tensor *not_short = op_unary(e, is_short, PLIM_UNARY_NOT);
    is_long = op_compare_scalar(e, PLIM_BINARY_GT, wavelength, 1);
    struct tensor *not_long = op_unary(e, is_long, PLIM_UNARY_NOT);
    struct tensor *is_medium = tensor_keep(op_mul(e, not_short, not_long));
    tensor_set(e, &y, op_where(e, is_medium, smoothed, y, PLIM_F32, 0, 0));
    tensor_drop_all(e, inv_freq, wavelength, smooth, smoothed, is_medium);
    return tensor_yield(y);
}

/* clamp((arange(n) - low) / (high - low), 0, 1) */
static struct tensor *ramp(struct engine *e, int64_t count)
{
    struct tensor *line =
        tensor_keep(op_div_scalar(e, op_add_scalar(e, op_arange(e, PLIM_F32, count, 0, 1), -1), 1));
    struct tensor *y = op_clamp(e, line, 0, 1);
    tensor_drop(e, line);
    return y;
}

static struct tensor *yarn(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    (void)seq;
    struct tensor *powers = tensor_keep(raised(e, NULL, exponents(e, r)));
    struct tensor *far = tensor_keep(quotient(e, powers));
    struct tensor *near = tensor_keep(quotient(e, op_mul_scalar(e, powers, 1)));
    struct tensor *share = tensor_keep(op_add_scalar(e, ramp(e, r->dim / 2), 1));
    struct tensor *inside = op_mul(e, near, op_add_scalar(e, share, 1));
    struct tensor *y = op_add(e, inside, op_mul(e, far, share));
    tensor_drop_all(e, powers, far, near, share);
    return y;
}

/* --- updates from the positions of a forward -------------------------------------------------- */

/* the host reads one truth value */
static void ask(struct engine *e, struct tensor *answer)
{
    tensor_keep(answer);
    engine_item(e, answer);
    tensor_drop(e, answer);
}

static void replace(struct engine *e, struct rotary *r, struct tensor *inv_freq)
{
    tensor_set(e, &r->inv_freq, inv_freq);
    tensor_classify(e, r->inv_freq, PLIM_MEMORY_PARAMETERS);
}

/* dynamic_frequency_update: computes new frequencies for the first sequence that is longer than all before. */
static void dynamic_update(struct engine *e, struct rotary *r, struct tensor *seq, int64_t length)
{
    ask(e, r->longest ? op_compare(e, PLIM_BINARY_GT, seq, r->longest)
                      : op_compare_scalar(e, PLIM_BINARY_GT, seq, (double)r->positions));
    if (length > r->positions && !r->longest) {
        replace(e, r, dynamic(e, r, seq));
        r->longest = tensor_ref(seq);
    }
    ask(e, op_compare_scalar(e, PLIM_BINARY_LT, seq, (double)r->positions));
}

/* longrope_frequency_update: beyond the original length the frequencies are computed in every forward. */
static void longrope_update(struct engine *e, struct rotary *r, struct tensor *seq, int64_t length)
{
    ask(e, op_compare_scalar(e, PLIM_BINARY_GT, seq, (double)r->original_positions));
    replace(e, r, length > r->original_positions ? longrope(e, r, NULL) : r->original_inv_freq);
}

/* --- the types -------------------------------------------------------------------------------- */

/* Every second frequency for rows, then the others for columns (PixtralVisionRotaryEmbedding). */
static struct tensor *axial(struct engine *e, const struct rotary *r, struct tensor *seq)
{
    struct tensor *once = tensor_keep(plain(e, r, seq));
    struct tensor *parts[2] = {op_slice_steps(e, once, 0, 2), op_slice_steps(e, once, 1, 2)};
    struct tensor *y = tensor_keep(op_cat(e, 2, parts, -1));
    tensor_drop(e, once);
    return tensor_yield(y);
}

const struct rope nn_rope_default = {.frequencies = plain};
const struct rope nn_rope_axial = {.frequencies = axial};
const struct rope nn_rope_linear = {.frequencies = linear};
const struct rope nn_rope_dynamic = {.frequencies = dynamic, .update = dynamic_update};
const struct rope nn_rope_yarn = {.frequencies = yarn};
const struct rope nn_rope_longrope = {.frequencies = longrope, .update = longrope_update};
const struct rope nn_rope_llama3 = {.frequencies = llama3};
const struct rope nn_rope_proportional = {.frequencies = proportional};

struct tensor *nn_rope_frequencies(struct engine *e, const struct rotary *r)
{
    return r->rope->frequencies(e, r, NULL);
}

void nn_rope_update(struct engine *e, struct rotary *r, struct tensor *positions)
{
    if (e->halted || !r->rope->update) return;
    struct tensor *last = op_reduce(e, positions, 3, false, PLIM_BINARY_MAX, 1, PLIM_I64);
    struct tensor *seq = tensor_keep(op_add_scalar(e, last, 1));
    r->rope->update(e, r, seq, r->longest_document ? r->longest_document : tensor_size(positions, -1));
    tensor_drop(e, seq);
}
