/* The gated delta rule in chunks, divided into kernels as in flash-linear-attention 0.6.0 (fla/ops/gated_delta_rule/,
 * fla/ops/common/chunk_o.py, chunk_delta_h.py). Every matrix of a chunk has 64 rows; those after the chunk's last token
 * are zeros. */
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

enum { CHUNK = 64, MATRICES = 16 };

/* One chunk: its first token, counted over the batch, and its index among all chunks. */
struct chunk {
    int64_t first, count, place;
    bool begins, ends; /* first or last chunk of a row or document */
};

struct delta {
    int64_t batch, seq, heads, key, value, chunks;
    struct chunk *chunk;
    double *matrix[MATRICES]; /* of max(64, key, value) squared elements each */
    double g[CHUNK], beta[CHUNK];
    double *storage;
};

/* --- chunks ----------------------------------------------------------------------------------- */

static void cut(struct delta *d, int64_t first, int64_t length)
{
    for (int64_t at = 0; at < length; at += CHUNK, d->chunks++)
        d->chunk[d->chunks] = (struct chunk){.first = first + at,
                                             .count = length - at < CHUNK ? length - at : CHUNK,
                                             .place = d->chunks,
                                             .begins = at == 0,
                                             .ends = at + CHUNK >= length};
}

static enum plim_status cut_rows(struct delta *d, const struct plim_array *ends)
{
    int64_t rows = ends ? plim_array_elements(ends) - 1 : d->batch;
    if (ends && (ends->ndim != 1 || rows < 0 || d->batch != 1)) return PLIM_INVALID;
    d->chunk = malloc((size_t)((d->batch * d->seq / CHUNK) + rows + 1) * sizeof *d->chunk);
    if (!d->chunk) return PLIM_NOMEM;
    for (int64_t i = 0, behind = 0; i < rows; i++) {
        double between[2] = {(double)(i * d->seq), (double)((i + 1) * d->seq)};
        if (ends) plim_elements_read(ends, i, 2, between);
        if (between[0] < (double)behind || between[1] < between[0] || between[1] > (double)(d->batch * d->seq))
            return PLIM_INVALID;
        behind = (int64_t)between[1];
        cut(d, (int64_t)between[0], behind - (int64_t)between[0]);
    }
    return PLIM_OK;
}

static void delta_finish(struct delta *d)
{
    free(d->chunk);
    free(d->storage);
}

/* keys: (b, s, heads, d); values: (b, s, heads, e), or NULL */
static enum plim_status delta_init(struct delta *d, const struct plim_array *keys, const struct plim_array *values,
                                   const struct plim_array *ends)
{
    *d = (struct delta){0};
    if (keys->ndim != 4 || (values && values->ndim != 4)) return PLIM_INVALID;
    d->batch = keys->shape[0];
    d->seq = keys->shape[1];
    d->heads = keys->shape[2];
    d->key = keys->shape[3];
    d->value = values ? values->shape[3] : 1;
    if (d->key < 1 || d->value < 1) return PLIM_INVALID;
    int64_t side = d->key > d->value ? d->key : d->value;
    side = side > CHUNK ? side : CHUNK;
    d->storage = plim_reference_numbers(MATRICES * side * side);
    if (!d->storage) return PLIM_NOMEM;
    for (int i = 0; i < MATRICES; i++) d->matrix[i] = d->storage + i * side * side;
    return cut_rows(d, ends);
}

/* True for shape (b, s, heads, width), or (b, s, heads) if width is 0. */
static bool fits(const struct delta *d, const struct plim_array *a, int64_t width)
{
    return a->ndim == (width ? 4 : 3) && a->shape[0] == d->batch && a->shape[1] == d->seq && a->shape[2] == d->heads &&
           (!width || a->shape[3] == width);
}

static bool all_fit(const struct delta *d, int count, const struct plim_array *const *arrays, int64_t width)
{
    bool fit = true;
    for (int i = 0; i < count; i++) fit = fit && fits(d, arrays[i], width);
    return fit;
}

static bool states_fit(const struct delta *d, const struct plim_array *a)
{
    return a->ndim == 5 && a->shape[0] == d->batch && a->shape[0] * a->shape[1] >= d->chunks &&
           a->shape[2] == d->heads && a->shape[3] == d->key && a->shape[4] == d->value;
}

/* --- matrices of a chunk and head ------------------------------------------------------------- */

static void read(const struct delta *d, const struct chunk *c, int64_t head, const struct plim_array *a, double *to)
{
    int64_t width = a->ndim == 4 ? a->shape[3] : 1;
    for (int64_t i = 0; i < CHUNK * width; i++) to[i] = 0;
    for (int64_t i = 0; i < c->count; i++)
        plim_elements_read(a, ((c->first + i) * d->heads + head) * width, width, to + i * width);
}

static void write(const struct delta *d, const struct chunk *c, int64_t head, const struct plim_array *a,
                  const double *from)
{
    int64_t width = a->ndim == 4 ? a->shape[3] : 1;
    for (int64_t i = 0; i < c->count; i++)
        plim_elements_write(a, ((c->first + i) * d->heads + head) * width, width, from + i * width);
}

static int64_t state_at(const struct delta *d, const struct chunk *c, int64_t head)
{
    return (c->place * d->heads + head) * d->key * d->value;
}

static void read_state(const struct delta *d, const struct chunk *c, int64_t head, const struct plim_array *a,
                       double *to)
{
    plim_elements_read(a, state_at(d, c, head), d->key * d->value, to);
}

/* A matrix or its transpose: element (i, j) is at[i * row + j * column]. */
struct view {
    const double *at;
    int64_t row, column;
};

static struct view straight(const double *a, int64_t width)
{
    return (struct view){a, width, 1};
}

static struct view transposed(const double *a, int64_t width)
{
    return (struct view){a, 1, width};
}

/* c (n, p) += scale a (n, m) b (m, p) */
static void add_product(double *c, int64_t n, int64_t m, int64_t p, double scale, struct view a, struct view b)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++) {
            double x = scale * a.at[i * a.row + k * a.column];
            for (int64_t j = 0; j < p && x != 0; j++) c[i * p + j] += x * b.at[k * b.row + j * b.column];
        }
}

static void product(double *c, int64_t n, int64_t m, int64_t p, double scale, struct view a, struct view b)
{
    for (int64_t i = 0; i < n * p; i++) c[i] = 0;
    add_product(c, n, m, p, scale, a, b);
}

static void scale_rows(double *a, int64_t width, const double *by)
{
    for (int64_t i = 0; i < CHUNK * width; i++) a[i] *= by[i / width];
}

/* to[i] += scale times the sum over a row of a b */
static void add_row_sums(double *to, int64_t width, double scale, const double *a, const double *b)
{
    for (int64_t i = 0; i < CHUNK * width; i++) to[i / width] += scale * a[i] * b[i];
}

/* a(i, j) 2^(g(i) - g(j)) if j < i, or j <= i (`diagonal`), otherwise 0 */
static void decay_pairs(const struct delta *d, double *a, bool diagonal)
{
    for (int i = 0; i < CHUNK; i++)
        for (int j = 0; j < CHUNK; j++)
            a[i * CHUNK + j] = j < i + diagonal ? a[i * CHUNK + j] * exp2(d->g[i] - d->g[j]) : 0;
}

/* 2^g, and 2^(l - g) with l the chunk's last g */
static void powers(const struct delta *d, const struct chunk *c, double since[CHUNK], double left[CHUNK])
{
    for (int64_t i = 0; i < CHUNK; i++) {
        since[i] = exp2(d->g[i]);
        left[i] = i < c->count ? exp2(d->g[c->count - 1] - d->g[i]) : 0;
    }
}

/* Calls run(d, op, chunk, head) for all chunks and heads, documents from their start or from their end. */
typedef void visit(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head);

static enum plim_status visit_all(struct delta *d, const struct plim_op *op, enum plim_status st, bool fit,
                                  visit *run, bool backwards)
{
    if (st == PLIM_OK && !fit) st = PLIM_INVALID;
    for (int64_t head = 0; head < d->heads && st == PLIM_OK; head++)
        for (int64_t i = 0; i < d->chunks; i++) run(d, op, &d->chunk[backwards ? d->chunks - 1 - i : i], head);
    delta_finish(d);
    return st;
}

/* --- forward ---------------------------------------------------------------------------------- */

static void sum_chunk(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double sum = 0;
    read(d, c, head, op->in[0], d->g);
    for (int64_t i = 0; i < c->count; i++) {
        int64_t at = op->beta < 0 ? c->count - 1 - i : i;
        sum += d->g[at];
        d->g[at] = op->alpha * sum;
    }
    write(d, c, head, op->out[0], d->g);
}

enum plim_status plim_reference_chunk_sums(const struct plim_op *op)
{
    struct plim_array one = *op->in[0];
    struct delta d = {0};
    if (one.ndim != 3) return PLIM_INVALID;
    one.shape[one.ndim++] = 1;
    enum plim_status st = delta_init(&d, &one, NULL, plim_reference_input(op, 1));
    return visit_all(&d, op, st, fits(&d, op->out[0], 0), sum_chunk, false);
}

static void invert_chunk(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double *k = d->matrix[0], *system = d->matrix[1], *inverse = d->matrix[2];
    read(d, c, head, op->in[0], k);
    read(d, c, head, op->in[1], d->g);
    read(d, c, head, op->in[2], d->beta);
    product(system, CHUNK, d->key, CHUNK, 1, straight(k, d->key), transposed(k, d->key));
    decay_pairs(d, system, false);
    scale_rows(system, CHUNK, d->beta);
    for (int i = 0; i < CHUNK; i++)
        for (int j = 0; j < CHUNK; j++) {
            double x = i == j;
            for (int m = j; m < i; m++) x -= system[i * CHUNK + m] * inverse[m * CHUNK + j];
            inverse[i * CHUNK + j] = x;
        }
    write(d, c, head, op->out[0], inverse);
}

enum plim_status plim_reference_delta_inverse(const struct plim_op *op)
{
    struct delta d;
    enum plim_status st = delta_init(&d, op->in[0], NULL, plim_reference_input(op, 3));
    bool fit = fits(&d, op->out[0], CHUNK) && all_fit(&d, 2, op->in + 1, 0);
    return visit_all(&d, op, st, fit, invert_chunk, false);
}

/* Scales one side of DELTA_SOLVE, v or k, by beta, and k also by 2^g. */
static void solve_side(struct delta *d, double *a, int64_t width, bool decays)
{
    scale_rows(a, width, d->beta);
    for (int64_t i = 0; i < CHUNK * width && decays; i++) a[i] *= exp2(d->g[i / width]);
}

static void solve_chunk(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double *k = d->matrix[0], *v = d->matrix[1], *inverse = d->matrix[2], *y = d->matrix[3];
    read(d, c, head, op->in[0], k);
    read(d, c, head, op->in[1], v);
    read(d, c, head, op->in[2], d->beta);
    read(d, c, head, op->in[3], inverse);
    read(d, c, head, op->in[4], d->g);
    solve_side(d, k, d->key, true);
    solve_side(d, v, d->value, false);
    product(y, CHUNK, CHUNK, d->key, 1, straight(inverse, CHUNK), straight(k, d->key));
    write(d, c, head, op->out[0], y);
    product(y, CHUNK, CHUNK, d->value, 1, straight(inverse, CHUNK), straight(v, d->value));
    write(d, c, head, op->out[1], y);
}

enum plim_status plim_reference_delta_solve(const struct plim_op *op)
{
    struct delta d;
    enum plim_status st = delta_init(&d, op->in[0], op->in[1], plim_reference_input(op, 5));
    bool fit = fits(&d, op->in[0], d.key) && fits(&d, op->in[1], d.value) && fits(&d, op->in[3], CHUNK) &&
               fits(&d, op->in[2], 0) && fits(&d, op->in[4], 0) && fits(&d, op->out[0], d.key) &&
               fits(&d, op->out[1], d.value);
    return visit_all(&d, op, st, fit, solve_chunk, false);
}

static void pass_state(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double *state = d->matrix[0], *k = d->matrix[1], *w = d->matrix[2], *fresh = d->matrix[3];
    double since[CHUNK], left[CHUNK];
    for (int64_t i = 0; i < d->key * d->value && c->begins; i++) state[i] = 0;
    plim_elements_write(op->out[0], state_at(d, c, head), d->key * d->value, state);
    read(d, c, head, op->in[0], k);
    read(d, c, head, op->in[1], w);
    read(d, c, head, op->in[2], fresh);
    read(d, c, head, op->in[3], d->g);
    powers(d, c, since, left);
    add_product(fresh, CHUNK, d->key, d->value, -1, straight(w, d->key), straight(state, d->value));
    write(d, c, head, op->out[1], fresh);
    scale_rows(k, d->key, left);
    for (int64_t i = 0; i < d->key * d->value; i++) state[i] *= since[c->count - 1];
    add_product(state, d->key, CHUNK, d->value, 1, transposed(k, d->key), straight(fresh, d->value));
}

enum plim_status plim_reference_delta_states(const struct plim_op *op)
{
    struct delta d;
    enum plim_status st = delta_init(&d, op->in[0], op->in[2], plim_reference_input(op, 4));
    bool fit = all_fit(&d, 2, op->in, d.key) && fits(&d, op->in[2], d.value) && fits(&d, op->in[3], 0) &&
               fits(&d, op->out[1], d.value) && states_fit(&d, op->out[0]);
    return visit_all(&d, op, st, fit, pass_state, false);
}

/* 2^(g(i) - g(j)) q(i) k(j) if j <= i */
static void attend(struct delta *d, const double *q, const double *k, double *pairs)
{
    product(pairs, CHUNK, d->key, CHUNK, 1, straight(q, d->key), transposed(k, d->key));
    decay_pairs(d, pairs, true);
}

static void run_chunk(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double *q = d->matrix[0], *k = d->matrix[1], *fresh = d->matrix[2], *state = d->matrix[3], *pairs = d->matrix[4],
           *y = d->matrix[5];
    read(d, c, head, op->in[0], q);
    read(d, c, head, op->in[1], k);
    read(d, c, head, op->in[2], fresh);
    read_state(d, c, head, op->in[3], state);
    read(d, c, head, op->in[4], d->g);
    attend(d, q, k, pairs);
    product(y, CHUNK, CHUNK, d->value, op->alpha, straight(pairs, CHUNK), straight(fresh, d->value));
    for (int64_t i = 0; i < CHUNK * d->key; i++) q[i] *= exp2(d->g[i / d->key]);
    add_product(y, CHUNK, d->key, d->value, op->alpha, straight(q, d->key), straight(state, d->value));
    write(d, c, head, op->out[0], y);
}

enum plim_status plim_reference_delta_output(const struct plim_op *op)
{
    struct delta d;
    enum plim_status st = delta_init(&d, op->in[0], op->in[2], plim_reference_input(op, 5));
    bool fit = all_fit(&d, 2, op->in, d.key) && fits(&d, op->in[2], d.value) && states_fit(&d, op->in[3]) &&
               fits(&d, op->in[4], 0) && fits(&d, op->out[0], d.value);
    return visit_all(&d, op, st, fit, run_chunk, false);
}

/* --- backward --------------------------------------------------------------------------------- */

static void fresh_gradient(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double *q = d->matrix[0], *k = d->matrix[1], *pairs = d->matrix[2], *dout = d->matrix[3], *y = d->matrix[4];
    read(d, c, head, op->in[0], q);
    read(d, c, head, op->in[1], k);
    read(d, c, head, op->in[2], d->g);
    read(d, c, head, op->in[3], dout);
    attend(d, q, k, pairs);
    product(y, CHUNK, CHUNK, d->value, op->alpha, transposed(pairs, CHUNK), straight(dout, d->value));
    write(d, c, head, op->out[0], y);
}

enum plim_status plim_reference_delta_output_backward_fresh(const struct plim_op *op)
{
    struct delta d;
    enum plim_status st = delta_init(&d, op->in[0], op->in[3], plim_reference_input(op, 4));
    bool fit = all_fit(&d, 2, op->in, d.key) && fits(&d, op->in[2], 0) && fits(&d, op->in[3], d.value) &&
               fits(&d, op->out[0], d.value);
    return visit_all(&d, op, st, fit, fresh_gradient, false);
}

static void pass_gradient(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double *dstate = d->matrix[0], *q = d->matrix[1], *k = d->matrix[2], *w = d->matrix[3], *dout = d->matrix[4],
           *dfresh = d->matrix[5], since[CHUNK], left[CHUNK];
    for (int64_t i = 0; i < d->key * d->value && c->ends; i++) dstate[i] = 0;
    plim_elements_write(op->out[0], state_at(d, c, head), d->key * d->value, dstate);
    read(d, c, head, op->in[0], q);
    read(d, c, head, op->in[1], k);
    read(d, c, head, op->in[2], w);
    read(d, c, head, op->in[3], d->g);
    read(d, c, head, op->in[4], dout);
    read(d, c, head, op->in[5], dfresh);
    powers(d, c, since, left);
    scale_rows(k, d->key, left);
    add_product(dfresh, CHUNK, d->key, d->value, 1, straight(k, d->key), straight(dstate, d->value));
    write(d, c, head, op->out[1], dfresh);
    scale_rows(q, d->key, since);
    for (int64_t i = 0; i < d->key * d->value; i++) dstate[i] *= since[c->count - 1];
    add_product(dstate, d->key, CHUNK, d->value, op->alpha, transposed(q, d->key), straight(dout, d->value));
    add_product(dstate, d->key, CHUNK, d->value, -1, transposed(w, d->key), straight(dfresh, d->value));
}

enum plim_status plim_reference_delta_states_backward(const struct plim_op *op)
{
    struct delta d;
    enum plim_status st = delta_init(&d, op->in[0], op->in[4], plim_reference_input(op, 6));
    bool fit = all_fit(&d, 3, op->in, d.key) && fits(&d, op->in[3], 0) && all_fit(&d, 2, op->in + 4, d.value) &&
               states_fit(&d, op->out[0]) && fits(&d, op->out[1], d.value);
    return visit_all(&d, op, st, fit, pass_gradient, true);
}

/* Writes the gradient of the decay, and zeros to all parts but the first. */
static void write_decay(const struct delta *d, const struct chunk *c, int64_t head, const struct plim_array *to,
                        const double *gradient)
{
    static const double none[1];
    int64_t part = d->batch * d->seq * d->heads;
    for (int64_t p = 0; p < to->shape[0]; p++)
        for (int64_t i = 0; i < c->count; i++)
            plim_elements_write(to, p * part + (c->first + i) * d->heads + head, 1, p ? none : gradient + i);
}

static void output_gradients(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    enum { IN_Q, IN_K, IN_G, FRESH, STATES, DOUT, DSTATES, DFRESH, PAIRS, DQ, DK, DW };
    double **m = d->matrix, since[CHUNK], left[CHUNK], change[CHUNK] = {0}, behind[CHUNK] = {0};
    int64_t key = d->key, value = d->value, last = c->count - 1;
    for (int i = IN_Q; i <= DFRESH; i++) {
        if (i == STATES || i == DSTATES) read_state(d, c, head, op->in[i], m[i]);
        else read(d, c, head, op->in[i], i == IN_G ? d->g : m[i]);
    }
    powers(d, c, since, left);
    product(m[PAIRS], CHUNK, value, CHUNK, op->alpha, straight(m[DOUT], value), transposed(m[FRESH], value));
    decay_pairs(d, m[PAIRS], true);
    product(m[DQ], CHUNK, value, key, op->alpha, straight(m[DOUT], value), transposed(m[STATES], value));
    scale_rows(m[DQ], key, since);
    add_product(m[DQ], CHUNK, CHUNK, key, 1, straight(m[PAIRS], CHUNK), straight(m[IN_K], key));
    product(m[DK], CHUNK, value, key, 1, straight(m[FRESH], value), transposed(m[DSTATES], value));
    scale_rows(m[DK], key, left);
    add_row_sums(behind, key, 1, m[DK], m[IN_K]);
    add_product(m[DK], CHUNK, CHUNK, key, 1, transposed(m[PAIRS], CHUNK), straight(m[IN_Q], key));
    product(m[DW], CHUNK, value, key, -1, straight(m[DFRESH], value), transposed(m[STATES], value));
    add_row_sums(change, key, 1, m[DQ], m[IN_Q]);
    add_row_sums(change, key, -1, m[DK], m[IN_K]);
    for (int64_t i = 0; i < CHUNK; i++) change[last] += behind[i];
    for (int64_t i = 0; i < key * value; i++) change[last] += since[last] * m[STATES][i] * m[DSTATES][i];
    for (int i = 0; i < 3; i++) write(d, c, head, op->out[i], m[DQ + i]);
    write_decay(d, c, head, op->out[3], change);
}

enum plim_status plim_reference_delta_output_backward(const struct plim_op *op)
{
    struct delta d;
    const struct plim_array *dg = op->out[3];
    enum plim_status st = delta_init(&d, op->in[0], op->in[3], plim_reference_input(op, 8));
    bool fit = all_fit(&d, 2, op->in, d.key) && fits(&d, op->in[2], 0) && fits(&d, op->in[3], d.value) &&
               states_fit(&d, op->in[4]) && fits(&d, op->in[5], d.value) && states_fit(&d, op->in[6]) &&
               fits(&d, op->in[7], d.value) && all_fit(&d, 3, op->out, d.key) && dg->ndim == 4 && dg->shape[0] > 0 &&
               dg->shape[1] == d.batch && dg->shape[2] == d.seq && dg->shape[3] == d.heads;
    return visit_all(&d, op, st, fit, output_gradients, false);
}

/* One side of DELTA_SOLVE, y = inverse (scaled a): rebinds dy to the gradient of the scaled side, and adds to the
 * gradient of the inverse. */
static void side_backward(struct delta *d, double *a, double **dy, double **room, int64_t width, const double *inverse,
                          bool decays, double *dinverse)
{
    double *gradient = *room;
    solve_side(d, a, width, decays);
    add_product(dinverse, CHUNK, width, CHUNK, 1, straight(*dy, width), transposed(a, width));
    product(gradient, CHUNK, CHUNK, width, 1, transposed(inverse, CHUNK), straight(*dy, width));
    *room = *dy;
    *dy = gradient;
}

static void solve_gradients(struct delta *d, const struct plim_op *op, const struct chunk *c, int64_t head)
{
    double **m = d->matrix, *k = m[0], *v = m[1], *inverse = m[2], *dw = m[3], *du = m[4], *dinverse = m[5],
           *system = m[6], *pairs = m[7], *room = m[8], dbeta[CHUNK] = {0}, dg[CHUNK] = {0}, factor[CHUNK];
    int64_t key = d->key, value = d->value;
    double *const to[] = {k, v, d->beta, d->g, inverse, dw, du};
    for (int i = 0; i < 7; i++) read(d, c, head, op->in[i], to[i]);
    for (int i = 0; i < CHUNK * CHUNK; i++) dinverse[i] = 0;
    side_backward(d, k, &dw, &room, key, inverse, true, dinverse);
    side_backward(d, v, &du, &room, value, inverse, false, dinverse);
    read(d, c, head, op->in[0], k);
    read(d, c, head, op->in[1], v);
    /* computes the gradient of the system beta 2^(g(i) - g(j)) k(i) k(j) from that of its inverse */
    product(room, CHUNK, CHUNK, CHUNK, -1, straight(dinverse, CHUNK), transposed(inverse, CHUNK));
    product(system, CHUNK, CHUNK, CHUNK, 1, transposed(inverse, CHUNK), straight(room, CHUNK));
    decay_pairs(d, system, false);
    product(pairs, CHUNK, key, CHUNK, 1, straight(k, key), transposed(k, key));
    add_row_sums(dbeta, CHUNK, 1, system, pairs);
    scale_rows(system, CHUNK, d->beta);
    add_row_sums(dg, CHUNK, 1, system, pairs);
    for (int i = 0; i < CHUNK * CHUNK; i++) dg[i % CHUNK] -= system[i] * pairs[i];
    for (int i = 0; i < CHUNK; i++) factor[i] = exp2(d->g[i]);
    scale_rows(dw, key, factor);
    add_row_sums(dbeta, key, 1, dw, k);
    add_row_sums(dbeta, value, 1, du, v);
    scale_rows(dw, key, d->beta);
    scale_rows(du, value, d->beta);
    add_row_sums(dg, key, 1, dw, k);
    add_product(dw, CHUNK, CHUNK, key, 1, straight(system, CHUNK), straight(k, key));
    add_product(dw, CHUNK, CHUNK, key, 1, transposed(system, CHUNK), straight(k, key));
    const double *const from[] = {dw, du, dbeta, dg};
    for (int i = 0; i < 4; i++) write(d, c, head, op->out[i], from[i]);
}

enum plim_status plim_reference_delta_solve_backward(const struct plim_op *op)
{
    struct delta d;
    enum plim_status st = delta_init(&d, op->in[0], op->in[1], plim_reference_input(op, 7));
    bool fit = fits(&d, op->in[0], d.key) && fits(&d, op->in[1], d.value) && all_fit(&d, 2, op->in + 2, 0) &&
               fits(&d, op->in[4], CHUNK) && fits(&d, op->in[5], d.key) && fits(&d, op->in[6], d.value) &&
               fits(&d, op->out[0], d.key) && fits(&d, op->out[1], d.value) && all_fit(&d, 2, op->out + 2, 0);
    return visit_all(&d, op, st, fit, solve_gradients, false);
}
