/* Optimizer kernels, over lists of tensors and over single ones. */
#include "reference_adam.h"
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

static int64_t run_length(int64_t elements, int64_t first)
{
    return elements - first < PLIM_ELEMENTS_RUN ? elements - first : PLIM_ELEMENTS_RUN;
}

/* True if tensor j of every list has the shape of that in the first list. */
static bool have_equal_shapes(const struct plim_op *op, int from, int to)
{
    for (int i = from + 1; i < to; i++)
        for (size_t j = 0; j < op->list_length; j++)
            if (!plim_elements_same_shape(op->lists[i][j], op->lists[from][j])) return false;
    return true;
}

/* --- FOREACH ---------------------------------------------------------------------------------- */

static double foreach_formula(enum plim_foreach f, double alpha, double a, double b, double c)
{
    switch (f) {
    case PLIM_FOREACH_ADD:
        return a + alpha * b;
    case PLIM_FOREACH_MUL:
        return a * alpha;
    case PLIM_FOREACH_DIV:
        return a / alpha;
    case PLIM_FOREACH_LERP:
        return a + alpha * (b - a);
    case PLIM_FOREACH_ADDCMUL:
        return a + alpha * b * c;
    case PLIM_FOREACH_ADDCDIV:
        return a + alpha * b / c;
    case PLIM_FOREACH_SQRT:
        return sqrt(b);
    default:
        return NAN;
    }
}

static void foreach_tensor(const struct plim_op *op, double alpha, size_t j)
{
    double x[3][PLIM_ELEMENTS_RUN];
    const struct plim_array *a = op->lists[0][j];
    for (int i = 0; i < PLIM_ELEMENTS_RUN; i++) x[1][i] = x[2][i] = 1; /* ADD: a += alpha */
    for (int64_t first = 0, elements = plim_array_elements(a), count; first < elements;
         first += count) {
        count = run_length(elements, first);
        for (int k = 0; k < op->n_lists; k++)
            plim_elements_read(op->lists[k][j], first, count, x[k]);
        for (int64_t i = 0; i < count; i++)
            x[0][i] =
                foreach_formula((enum plim_foreach)op->foreach, alpha, x[0][i], x[1][i], x[2][i]);
        plim_elements_write(a, first, count, x[0]);
    }
}

static enum plim_status foreach_norm(const struct plim_op *op)
{
    double x[PLIM_ELEMENTS_RUN];
    for (size_t j = 0; j < op->list_length; j++) {
        const struct plim_array *b = op->lists[1][j];
        double squares = 0;
        if (plim_array_elements(op->lists[0][j]) != 1) return PLIM_INVALID;
        for (int64_t first = 0, elements = plim_array_elements(b), count; first < elements;
             first += count) {
            count = run_length(elements, first);
            plim_elements_read(b, first, count, x);
            for (int64_t i = 0; i < count; i++) squares += x[i] * x[i];
        }
        double norm = sqrt(squares);
        plim_elements_write(op->lists[0][j], 0, 1, &norm);
    }
    return PLIM_OK;
}

/* Checks the elements before they are scaled. */
static enum plim_status foreach_unscale(const struct plim_op *op)
{
    double x[PLIM_ELEMENTS_RUN];
    const struct plim_array *factor = plim_reference_input(op, 0);
    if (!factor || op->n_out < 1 || !op->out[0]) return PLIM_INVALID;
    double scale = plim_elements_scalar(factor), found = 1;
    for (size_t j = 0; j < op->list_length; j++) {
        const struct plim_array *a = op->lists[0][j];
        for (int64_t first = 0, elements = plim_array_elements(a), count; first < elements;
             first += count) {
            count = run_length(elements, first);
            plim_elements_read(a, first, count, x);
            for (int64_t i = 0; i < count; i++) {
                if (!isfinite(x[i])) plim_elements_write(op->out[0], 0, 1, &found);
                x[i] *= scale;
            }
            plim_elements_write(a, first, count, x);
        }
    }
    return PLIM_OK;
}

enum plim_status plim_reference_foreach(const struct plim_op *op)
{
    if (!plim_foreach_has_its_lists(op)) return PLIM_INVALID;
    if (op->foreach == PLIM_FOREACH_NORM) return foreach_norm(op);
    if (op->foreach == PLIM_FOREACH_UNSCALE) return foreach_unscale(op);
    if (!have_equal_shapes(op, 0, op->n_lists)) return PLIM_INVALID;
    const struct plim_array *factor = plim_reference_input(op, 0);
    bool scaled = factor && op->foreach == PLIM_FOREACH_MUL;
    double alpha = scaled ? op->alpha * plim_elements_scalar(factor) : op->alpha;
    for (size_t j = 0; j < op->list_length; j++) foreach_tensor(op, alpha, j);
    return PLIM_OK;
}

/* --- AdamW ------------------------------------------------------------------------------------ */

enum { PARAMETER, MOMENT, SECOND, STEP, GRADIENT, FUSED_LISTS };

static void fused_tensor(const struct plim_op *op, size_t j, double grad_scale)
{
    double p[PLIM_ELEMENTS_RUN], m[PLIM_ELEMENTS_RUN], v[PLIM_ELEMENTS_RUN], g[PLIM_ELEMENTS_RUN];
    const struct plim_array *parameter = op->lists[PARAMETER][j], *moment = op->lists[MOMENT][j],
                            *second = op->lists[SECOND][j];
    double step = plim_elements_scalar(op->lists[STEP][j]) + 1;
    struct adam_step s = adam_step_at(op->adam, step);
    plim_elements_write(op->lists[STEP][j], 0, 1, &step);
    for (int64_t first = 0, elements = plim_array_elements(parameter), count; first < elements;
         first += count) {
        count = run_length(elements, first);
        plim_elements_read(parameter, first, count, p);
        plim_elements_read(moment, first, count, m);
        plim_elements_read(second, first, count, v);
        plim_elements_read(op->lists[GRADIENT][j], first, count, g);
        for (int64_t i = 0; i < count; i++) {
            adam_moments(&s, g[i] / grad_scale, &m[i], &v[i]);
            p[i] = p[i] * adam_decay(&s) - adam_change(&s, m[i], v[i]);
        }
        plim_elements_write(parameter, first, count, p);
        plim_elements_write(moment, first, count, m);
        plim_elements_write(second, first, count, v);
    }
}

static enum plim_status fused_adamw(const struct plim_op *op)
{
    const struct plim_array *found_inf = plim_reference_input(op, 0),
                            *grad_scale = plim_reference_input(op, 1);
    if (op->n_lists != FUSED_LISTS || !op->adam) return PLIM_INVALID;
    for (size_t j = 0; j < op->list_length; j++) {
        const struct plim_array *p = op->lists[PARAMETER][j];
        if (!plim_elements_same_shape(op->lists[MOMENT][j], p) ||
            !plim_elements_same_shape(op->lists[SECOND][j], p) ||
            !plim_elements_same_shape(op->lists[GRADIENT][j], p) ||
            plim_array_elements(op->lists[STEP][j]) != 1)
            return PLIM_INVALID;
    }
    if (found_inf && plim_elements_scalar(found_inf) == 1) return PLIM_OK;
    double scale = grad_scale ? plim_elements_scalar(grad_scale) : 1;
    for (size_t j = 0; j < op->list_length; j++) fused_tensor(op, j, scale);
    return PLIM_OK;
}

/* --- bitsandbytes' AdamW ---------------------------------------------------------------------- */

enum { BLOCK = 256, BOOK = 256 };

static bool is_bitsandbytes(const struct plim_op *op, int ins)
{
    if (op->n_out != 3 || op->n_in != ins || !op->adam || op->adam->step < 1) return false;
    for (int i = 0; i < 3; i++)
        if (!op->out[i] || !plim_elements_same_shape(op->out[i], op->out[0])) return false;
    for (int i = 0; i < ins; i++)
        if (!op->in[i]) return false;
    return plim_elements_same_shape(op->in[0], op->out[0]);
}

static enum plim_status adamw_32bit(const struct plim_op *op)
{
    double p[PLIM_ELEMENTS_RUN], m[PLIM_ELEMENTS_RUN], v[PLIM_ELEMENTS_RUN], g[PLIM_ELEMENTS_RUN];
    bool decays_first = op->foreach == PLIM_TORCHAO_ADAMW;
    if (!is_bitsandbytes(op, 1)) return PLIM_INVALID;
    struct adam_step s = adam_step_at(op->adam, (double)op->adam->step);
    for (int64_t first = 0, elements = plim_array_elements(op->out[0]), count; first < elements;
         first += count) {
        count = run_length(elements, first);
        plim_elements_read(op->out[0], first, count, p);
        plim_elements_read(op->out[1], first, count, m);
        plim_elements_read(op->out[2], first, count, v);
        plim_elements_read(op->in[0], first, count, g);
        for (int64_t i = 0; i < count; i++) {
            adam_moments(&s, g[i], &m[i], &v[i]);
            if (decays_first) p[i] = p[i] * adam_decay(&s) - adam_change(&s, m[i], v[i]);
            else p[i] = (p[i] - adam_change(&s, m[i], v[i])) * adam_decay(&s);
        }
        plim_elements_write(op->out[0], first, count, p);
        plim_elements_write(op->out[1], first, count, m);
        plim_elements_write(op->out[2], first, count, v);
    }
    return PLIM_OK;
}

/* Returns the index of the code nearest to x in an ascending book; of two equally near ones the lower. */
static int64_t nearest_code(const double *book, double x)
{
    int64_t low = 0, high = BOOK - 1;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (book[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return x - book[low] <= book[high] - x ? low : high;
}

/* A state of one block: its numbers and the arrays in which it is stored. */
struct state {
    const struct plim_array *codes, *maxima;
    double book[BOOK], x[BLOCK];
};

static void state_read(struct state *s, int64_t block, int64_t count)
{
    int64_t code[BLOCK];
    double maximum;
    plim_elements_read_integers(s->codes, block * BLOCK, count, code);
    plim_elements_read(s->maxima, block, 1, &maximum);
    for (int64_t i = 0; i < count; i++) s->x[i] = s->book[code[i]] * maximum;
}

static void state_write(const struct state *s, int64_t block, int64_t count)
{
    int64_t code[BLOCK];
    double maximum = 0;
    for (int64_t i = 0; i < count; i++) maximum = fmax(maximum, fabs(s->x[i]));
    for (int64_t i = 0; i < count; i++)
        code[i] = nearest_code(s->book, maximum > 0 ? s->x[i] / maximum : 0);
    plim_elements_write_integers(s->codes, block * BLOCK, count, code);
    plim_elements_write(s->maxima, block, 1, &maximum);
}

static void adamw_8bit_block(const struct plim_op *op, const struct adam_step *s, struct state *m,
                             struct state *v, int64_t block, int64_t count)
{
    double p[BLOCK], g[BLOCK];
    state_read(m, block, count);
    state_read(v, block, count);
    plim_elements_read(op->out[0], block * BLOCK, count, p);
    plim_elements_read(op->in[0], block * BLOCK, count, g);
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(g[i])) {
            m->x[i] = v->x[i] = 0;
            continue;
        }
        adam_moments(s, g[i], &m->x[i], &v->x[i]);
        p[i] = (p[i] - adam_change(s, m->x[i], v->x[i])) * adam_decay(s);
    }
    plim_elements_write(op->out[0], block * BLOCK, count, p);
    state_write(m, block, count);
    state_write(v, block, count);
}

static enum plim_status adamw_8bit(const struct plim_op *op)
{
    if (!is_bitsandbytes(op, 5)) return PLIM_INVALID;
    int64_t elements = plim_array_elements(op->out[0]), blocks = (elements + BLOCK - 1) / BLOCK;
    if (op->out[1]->dtype != PLIM_U8 || op->out[2]->dtype != PLIM_U8 ||
        plim_array_elements(op->in[1]) != BOOK || plim_array_elements(op->in[2]) != BOOK ||
        plim_array_elements(op->in[3]) != blocks || plim_array_elements(op->in[4]) != blocks)
        return PLIM_INVALID;
    struct adam_step s = adam_step_at(op->adam, (double)op->adam->step);
    struct state m = {.codes = op->out[1], .maxima = op->in[3]};
    struct state v = {.codes = op->out[2], .maxima = op->in[4]};
    plim_elements_read(op->in[1], 0, BOOK, m.book);
    plim_elements_read(op->in[2], 0, BOOK, v.book);
    for (int64_t block = 0; block < blocks; block++) {
        int64_t left = elements - block * BLOCK;
        adamw_8bit_block(op, &s, &m, &v, block, left < BLOCK ? left : BLOCK);
    }
    return PLIM_OK;
}

/* --- GradScaler ------------------------------------------------------------------------------- */

/* torch._amp_update_scale_ with growth_factor 2, backoff_factor 0.5 and growth_interval 2000; a scale that would become
 * infinite is kept. */
static enum plim_status amp_update_scale(const struct plim_op *op)
{
    enum { GROWTH_INTERVAL = 2000 };
    if (op->n_out != 2 || !op->out[0] || !op->out[1] || !plim_reference_input(op, 0))
        return PLIM_INVALID;
    double scale = plim_elements_scalar(op->out[0]), steps = plim_elements_scalar(op->out[1]) + 1;
    if (plim_elements_scalar(op->in[0]) != 0) {
        scale /= 2;
        steps = 0;
    } else if (steps == GROWTH_INTERVAL) {
        if (isfinite((float)(2 * scale))) scale *= 2;
        steps = 0;
    }
    plim_elements_write(op->out[0], 0, 1, &scale);
    plim_elements_write(op->out[1], 0, 1, &steps);
    return PLIM_OK;
}

enum plim_status plim_reference_optimizer(const struct plim_op *op)
{
    switch (op->foreach) {
    case PLIM_FUSED_ADAMW:
        return fused_adamw(op);
    case PLIM_ADAMW_8BIT:
        return adamw_8bit(op);
    case PLIM_ADAMW_32BIT:
        return adamw_32bit(op);
    case PLIM_AMP_UPDATE_SCALE:
        return amp_update_scale(op);
    case PLIM_TORCHAO_ADAMW:
        return adamw_32bit(op);
    case PLIM_TORCHAO_SCALES:
    case PLIM_TORCHAO_STEP_8BIT:
    case PLIM_TORCHAO_STEP_4BIT:
    case PLIM_TORCHAO_CODES:
        return plim_reference_torchao(op);
    default:
        return PLIM_INVALID;
    }
}
