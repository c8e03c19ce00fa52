/* Elementwise operations. */
#include "devices/random.h"
#include "formula.h"
#include "reference_internal.h"

#include <math.h>

/* An elementwise operation: `y` and the operands are processed in runs; the operands are broadcast to the result's
 * shape. */
enum { MAX_OPERANDS = 3 };

struct operands {
    struct plim_array view[MAX_OPERANDS];
    int count;
    bool integers; /* all operands and the result are integers */
};

static enum plim_status broadcast_operands(const struct plim_op *op, int count, struct operands *o)
{
    o->count = count;
    o->integers = plim_elements_are_integers(op->out[0]);
    for (int i = 0; i < count; i++) {
        enum plim_status st = plim_elements_broadcast(op->in[i], op->out[0], &o->view[i]);
        if (st != PLIM_OK) return st;
        o->integers = o->integers && plim_elements_are_integers(op->in[i]);
    }
    return PLIM_OK;
}

static int64_t run_length(int64_t elements, int64_t first)
{
    return elements - first < PLIM_ELEMENTS_RUN ? elements - first : PLIM_ELEMENTS_RUN;
}

/* For each run of the elements of `a`: `first` and `count`. */
#define FOR_RUNS(a)                                                                                \
    for (int64_t first = 0, elements = plim_array_elements(a), count;                              \
         first < elements && (count = run_length(elements, first)) > 0; first += count)

/* --- no operands ------------------------------------------------------------------------------ */

enum plim_status plim_reference_fill(const struct plim_op *op)
{
    double y[PLIM_ELEMENTS_RUN];
    for (int i = 0; i < PLIM_ELEMENTS_RUN; i++) y[i] = op->alpha;
    FOR_RUNS(op->out[0]) plim_elements_write(op->out[0], first, count, y);
    return PLIM_OK;
}

enum plim_status plim_reference_arange(const struct plim_op *op)
{
    double y[PLIM_ELEMENTS_RUN];
    FOR_RUNS(op->out[0])
    {
        for (int64_t i = 0; i < count; i++) y[i] = op->beta + op->alpha * (double)(first + i);
        plim_elements_write(op->out[0], first, count, y);
    }
    return PLIM_OK;
}

/* Computed in fp32, so that weights are the same on every device. */
static double random_float(uint32_t word, double alpha)
{
    return (double)((float)alpha * (2.0f * plim_random_unit(word) - 1.0f));
}

enum plim_status plim_reference_random(const struct plim_op *op)
{
    double y[PLIM_ELEMENTS_RUN];
    bool integers = plim_elements_are_integers(op->out[0]);
    if (integers && !(op->alpha >= 0 && op->alpha <= 0x1p32)) return PLIM_INVALID;
    FOR_RUNS(op->out[0])
    {
        for (int64_t i = 0; i < count; i++) {
            uint32_t word = plim_random_word(op->seed, (uint64_t)(first + i));
            y[i] = integers ? (double)plim_random_below(word, (uint64_t)op->alpha)
                            : random_float(word, op->alpha);
        }
        plim_elements_write(op->out[0], first, count, y);
    }
    return PLIM_OK;
}

/* --- copies ----------------------------------------------------------------------------------- */

static enum plim_status copy(const struct plim_array *to, const struct plim_array *from)
{
    double x[PLIM_ELEMENTS_RUN];
    int64_t n[PLIM_ELEMENTS_RUN];
    struct plim_array view;
    enum plim_status st = plim_elements_broadcast(from, to, &view);
    if (st != PLIM_OK) return st;
    bool integers = plim_elements_are_integers(to) && plim_elements_are_integers(from);
    FOR_RUNS(to)
    {
        if (integers) {
            plim_elements_read_integers(&view, first, count, n);
            plim_elements_write_integers(to, first, count, n);
        } else {
            plim_elements_read(&view, first, count, x);
            plim_elements_write(to, first, count, x);
        }
    }
    return PLIM_OK;
}

enum plim_status plim_reference_copy(const struct plim_op *op)
{
    return copy(op->out[0], op->in[0]);
}

/* Copies each input to its part of the result; scalars are stacked. */
enum plim_status plim_reference_cat(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0];
    if (op->dim < 0 || op->dim >= y->ndim) return PLIM_INVALID;
    struct plim_array part = *y;
    int64_t start = 0;
    for (size_t i = 0; i < op->list_length; i++) {
        const struct plim_array *x = op->lists[0][i];
        if (x->ndim != y->ndim && !(x->ndim == 0 && y->ndim == 1)) return PLIM_INVALID;
        part.shape[op->dim] = x->ndim ? x->shape[op->dim] : 1;
        for (int d = 0; d < x->ndim; d++)
            if (x->shape[d] != part.shape[d]) return PLIM_INVALID;
        if (part.shape[op->dim] > y->shape[op->dim] - start) return PLIM_INVALID;
        int64_t offset = start * y->stride[op->dim];
        part.data = y->data + (uint64_t)(offset * plim_dtype_size(y->dtype));
        enum plim_status st = copy(&part, x);
        if (st != PLIM_OK) return st;
        start += part.shape[op->dim];
    }
    return start == y->shape[op->dim] ? PLIM_OK : PLIM_INVALID;
}

enum plim_status plim_reference_tril(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0];
    bool above = op->kind == PLIM_OP_TRIL;
    double x[PLIM_ELEMENTS_RUN];
    if (y->ndim < 2 || !plim_elements_same_shape(y, op->in[0])) return PLIM_INVALID;
    int64_t rows = y->shape[y->ndim - 2], columns = y->shape[y->ndim - 1];
    FOR_RUNS(y)
    {
        plim_elements_read(op->in[0], first, count, x);
        for (int64_t i = 0; i < count; i++) {
            int64_t right = (first + i) % columns - (first + i) / columns % rows - op->dim;
            if (above ? right > 0 : right < 0) x[i] = 0;
        }
        plim_elements_write(y, first, count, x);
    }
    return PLIM_OK;
}

enum plim_status plim_reference_triu(const struct plim_op *op)
{
    return plim_reference_tril(op);
}

enum plim_status plim_reference_flip(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0];
    if (y->ndim < 1 || !plim_elements_same_shape(y, op->in[0])) return PLIM_INVALID;
    int64_t length = y->shape[y->ndim - 1];
    for (int64_t i = 0; i < plim_array_elements(y); i++) {
        double x;
        plim_elements_read(op->in[0], i - i % length + length - 1 - i % length, 1, &x);
        plim_elements_write(y, i, 1, &x);
    }
    return PLIM_OK;
}

/* --- functions of one element ----------------------------------------------------------------- */

enum plim_status plim_reference_unary(const struct plim_op *op)
{
    double x[PLIM_ELEMENTS_RUN];
    int64_t n[PLIM_ELEMENTS_RUN];
    struct operands o;
    if (op->unary >= PLIM_UNARY_COUNT) return PLIM_INVALID;
    enum plim_status st = broadcast_operands(op, 1, &o);
    if (st != PLIM_OK) return st;
    plim_unary_integer *exact = o.integers ? plim_unary_integers(op) : NULL;
    plim_unary_formula *f = plim_unary_formulas[op->unary];
    FOR_RUNS(op->out[0])
    {
        if (exact) {
            plim_elements_read_integers(&o.view[0], first, count, n);
            for (int64_t i = 0; i < count; i++)
                n[i] = exact(n[i], (int64_t)op->alpha, (int64_t)op->beta);
            plim_elements_write_integers(op->out[0], first, count, n);
        } else {
            plim_elements_read(&o.view[0], first, count, x);
            for (int64_t i = 0; i < count; i++) x[i] = f(x[i], op->alpha, op->beta);
            plim_elements_write(op->out[0], first, count, x);
        }
    }
    return PLIM_OK;
}

enum plim_status plim_reference_unary_backward(const struct plim_op *op)
{
    double dy[PLIM_ELEMENTS_RUN], saved[PLIM_ELEMENTS_RUN];
    struct operands o;
    if (op->unary >= PLIM_UNARY_COUNT || !plim_unary_derivatives[op->unary]) return PLIM_INVALID;
    enum plim_status st = broadcast_operands(op, 2, &o);
    if (st != PLIM_OK) return st;
    plim_unary_derivative *f = plim_unary_derivatives[op->unary];
    FOR_RUNS(op->out[0])
    {
        plim_elements_read(&o.view[0], first, count, dy);
        plim_elements_read(&o.view[1], first, count, saved);
        for (int64_t i = 0; i < count; i++) dy[i] = f(dy[i], saved[i], op->alpha, op->beta);
        plim_elements_write(op->out[0], first, count, dy);
    }
    return PLIM_OK;
}

/* out, mask: both are indexed by the elements' numbers in the result's shape. */
enum plim_status plim_reference_dropout(const struct plim_op *op)
{
    double x[PLIM_ELEMENTS_RUN], mask[PLIM_ELEMENTS_RUN];
    if (!plim_elements_same_shape(op->out[0], op->in[0]) ||
        !plim_elements_same_shape(op->out[1], op->in[0]))
        return PLIM_INVALID;
    double scale = op->alpha < 1 ? 1 / (1 - op->alpha) : 0;
    FOR_RUNS(op->out[0])
    {
        plim_elements_read(op->in[0], first, count, x);
        for (int64_t i = 0; i < count; i++) {
            uint32_t word = plim_random_word(op->seed, (uint64_t)(first + i));
            mask[i] = plim_random_unit(word) >= (float)op->alpha;
            x[i] *= mask[i] * scale;
        }
        plim_elements_write(op->out[0], first, count, x);
        plim_elements_write(op->out[1], first, count, mask);
    }
    return PLIM_OK;
}

/* --- functions of two and three --------------------------------------------------------------- */

static void binary_floats(const struct plim_op *op, const struct operands *o)
{
    double a[PLIM_ELEMENTS_RUN], b[PLIM_ELEMENTS_RUN];
    plim_binary_formula *f = plim_binary_formulas[op->binary];
    bool lerp = op->binary == PLIM_BINARY_LERP;
    /* a scalar operand is rounded to fp32, like an array's element: 0.1 equals an element of 0.1 */
    for (int i = 0; i < PLIM_ELEMENTS_RUN; i++) b[i] = (double)(float)op->alpha;
    FOR_RUNS(op->out[0])
    {
        plim_elements_read(&o->view[0], first, count, a);
        if (o->count > 1) plim_elements_read(&o->view[1], first, count, b);
        for (int64_t i = 0; i < count; i++) {
            if (lerp)
                a[i] += op->alpha * (b[i] - a[i]);
            else
                a[i] = f(a[i], o->count > 1 && op->alpha != 1 ? op->alpha * b[i] : b[i]);
        }
        plim_elements_write(op->out[0], first, count, a);
    }
}

static void binary_integers(const struct plim_op *op, const struct operands *o)
{
    int64_t a[PLIM_ELEMENTS_RUN], b[PLIM_ELEMENTS_RUN];
    plim_binary_integer *f = plim_binary_integers[op->binary];
    uint64_t alpha = (uint64_t)(int64_t)op->alpha;
    for (int i = 0; i < PLIM_ELEMENTS_RUN; i++) b[i] = (int64_t)alpha;
    FOR_RUNS(op->out[0])
    {
        plim_elements_read_integers(&o->view[0], first, count, a);
        if (o->count > 1) plim_elements_read_integers(&o->view[1], first, count, b);
        for (int64_t i = 0; i < count; i++)
            a[i] = f(a[i], o->count > 1 ? (int64_t)(alpha * (uint64_t)b[i]) : b[i]);
        plim_elements_write_integers(op->out[0], first, count, a);
    }
}

enum plim_status plim_reference_binary(const struct plim_op *op)
{
    struct operands o;
    int count = plim_reference_input(op, 1) ? 2 : 1;
    if (op->binary >= PLIM_BINARY_COUNT || op->n_in > 2) return PLIM_INVALID;
    if (op->binary == PLIM_BINARY_LERP && count < 2) return PLIM_INVALID;
    enum plim_status st = broadcast_operands(op, count, &o);
    if (st != PLIM_OK) return st;
    if (o.integers && plim_binary_integers[op->binary] && plim_is_integer(op->alpha))
        binary_integers(op, &o);
    else
        binary_floats(op, &o);
    return PLIM_OK;
}

enum plim_status plim_reference_where(const struct plim_op *op)
{
    double condition[PLIM_ELEMENTS_RUN], a[PLIM_ELEMENTS_RUN], b[PLIM_ELEMENTS_RUN];
    int64_t m[PLIM_ELEMENTS_RUN], n[PLIM_ELEMENTS_RUN];
    struct operands o;
    enum plim_status st = broadcast_operands(op, 3, &o);
    if (st != PLIM_OK) return st;
    bool integers = plim_elements_are_integers(op->out[0]) &&
                    plim_elements_are_integers(op->in[1]) && plim_elements_are_integers(op->in[2]);
    FOR_RUNS(op->out[0])
    {
        plim_elements_read(&o.view[0], first, count, condition);
        if (integers) {
            plim_elements_read_integers(&o.view[1], first, count, m);
            plim_elements_read_integers(&o.view[2], first, count, n);
            for (int64_t i = 0; i < count; i++) m[i] = condition[i] != 0 ? m[i] : n[i];
            plim_elements_write_integers(op->out[0], first, count, m);
        } else {
            plim_elements_read(&o.view[1], first, count, a);
            plim_elements_read(&o.view[2], first, count, b);
            for (int64_t i = 0; i < count; i++) a[i] = condition[i] != 0 ? a[i] : b[i];
            plim_elements_write(op->out[0], first, count, a);
        }
    }
    return PLIM_OK;
}

/* Runs have an even length, so that both parts of a number are in one. */
enum plim_status plim_reference_complex_mul(const struct plim_op *op)
{
    double a[PLIM_ELEMENTS_RUN], b[PLIM_ELEMENTS_RUN];
    const struct plim_array *y = op->out[0];
    struct operands o;
    enum plim_status st = broadcast_operands(op, 2, &o);
    if (st == PLIM_OK && (!y->ndim || y->shape[y->ndim - 1] != 2)) st = PLIM_INVALID;
    if (st != PLIM_OK) return st;
    FOR_RUNS(y)
    {
        plim_elements_read(&o.view[0], first, count, a);
        plim_elements_read(&o.view[1], first, count, b);
        for (int64_t i = 0; i < count; i += 2) {
            double real = a[i], turn = op->beta * b[i + 1];
            a[i] = real * b[i] - a[i + 1] * turn;
            a[i + 1] = real * turn + a[i + 1] * b[i];
        }
        plim_elements_write(y, first, count, a);
    }
    return PLIM_OK;
}

/* --- gates ------------------------------------------------------------------------------------ */

static bool is_a_gate(const struct plim_op *op)
{
    return op->unary == PLIM_UNARY_SILU || op->unary == PLIM_UNARY_GELU || op->unary == PLIM_UNARY_GELU_TANH;
}

enum plim_status plim_reference_gated(const struct plim_op *op)
{
    double gate[PLIM_ELEMENTS_RUN], up[PLIM_ELEMENTS_RUN];
    if (!is_a_gate(op) || !plim_elements_same_shape(op->out[0], op->in[0]) ||
        !plim_elements_same_shape(op->out[0], op->in[1]))
        return PLIM_INVALID;
    FOR_RUNS(op->out[0])
    {
        plim_elements_read(op->in[0], first, count, gate);
        plim_elements_read(op->in[1], first, count, up);
        for (int64_t i = 0; i < count; i++) up[i] *= plim_unary_formulas[op->unary](gate[i], 0, 0);
        plim_elements_write(op->out[0], first, count, up);
    }
    return PLIM_OK;
}

/* A run is read completely before any of it is written. */
enum plim_status plim_reference_gated_backward(const struct plim_op *op)
{
    double dy[PLIM_ELEMENTS_RUN], gate[PLIM_ELEMENTS_RUN], up[PLIM_ELEMENTS_RUN], y[PLIM_ELEMENTS_RUN];
    const struct plim_array *out = op->n_out > 2 ? op->out[2] : NULL;
    if (!is_a_gate(op) || (out && !plim_elements_same_shape(out, op->in[0]))) return PLIM_INVALID;
    for (int i = 0; i < 3; i++)
        if (!plim_elements_same_shape(op->out[i == 1], op->in[i])) return PLIM_INVALID;
    FOR_RUNS(op->in[0])
    {
        plim_elements_read(op->in[0], first, count, dy);
        plim_elements_read(op->in[1], first, count, gate);
        plim_elements_read(op->in[2], first, count, up);
        for (int64_t i = 0; i < count; i++) {
            double f = plim_unary_formulas[op->unary](gate[i], 0, 0);
            gate[i] = plim_unary_derivatives[op->unary](dy[i] * up[i], gate[i], 0, 0);
            y[i] = f * up[i];
            up[i] = dy[i] * f;
        }
        plim_elements_write(op->out[0], first, count, gate);
        plim_elements_write(op->out[1], first, count, up);
        if (out) plim_elements_write(out, first, count, y);
    }
    return PLIM_OK;
}
