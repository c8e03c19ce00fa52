/* torchao's AdamW (optim/adam.py, quant_utils.py of 0.18), whose moments are stored in 4 or 8 bits. */
#include "reference_adam.h"
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

enum { MOMENTS = 2, MOST_CODES = 256, NIBBLES = 16 };

/* A moment as it is stored. */
struct kept {
    const struct plim_array *codes, *scales;
    double book[MOST_CODES];
    int count; /* number of values in the book */
};

/* State of a step: op.h's `adam`, the gradient, and both moments. */
struct state {
    struct adam_step step;
    const struct plim_array *gradient;
    struct kept kept[MOMENTS];
    int64_t elements, block;
};

/* Reads a book of 16 or 256 values; returns their number, or 0 if it is not a book. */
static int read_book(const struct plim_array *a, double *book)
{
    int64_t count = plim_array_elements(a);
    if (count != NIBBLES && count != MOST_CODES) return 0;
    plim_elements_read(a, 0, count, book);
    return (int)count;
}

/* in: gradient, two of codes, scales and, from `books` on, books */
static enum plim_status open_state(const struct plim_op *op, const struct plim_array *const *in,
                                   const struct plim_array *const *books, struct state *s)
{
    if (!op->adam || op->adam->step < 1 || op->block < 1) return PLIM_INVALID;
    *s = (struct state){.step = adam_step_at(op->adam, (double)op->adam->step),
                        .gradient = in[0],
                        .elements = plim_array_elements(in[0]),
                        .block = op->block};
    for (int k = 0; k < MOMENTS; k++) {
        struct kept *kept = &s->kept[k];
        kept->codes = in[1 + k];
        kept->scales = in[1 + MOMENTS + k];
        kept->count = read_book(books[k], kept->book);
        int64_t bytes = kept->count == NIBBLES ? s->elements / 2 : s->elements;
        if (!kept->count || kept->codes->dtype != PLIM_U8 || plim_array_elements(kept->codes) != bytes ||
            plim_array_elements(kept->scales) * op->block != s->elements)
            return PLIM_INVALID;
    }
    return s->kept[0].count == s->kept[1].count ? PLIM_OK : PLIM_INVALID;
}

static double kept_value(const struct kept *kept, int64_t block, int64_t i)
{
    int64_t byte;
    double scale;
    bool nibbles = kept->count == NIBBLES;
    plim_elements_read_integers(kept->codes, nibbles ? i / 2 : i, 1, &byte);
    plim_elements_read(kept->scales, i / block, 1, &scale);
    if (nibbles) byte = i % 2 ? byte & (NIBBLES - 1) : byte >> 4;
    return kept->book[byte] * scale;
}

/* Computes both moments of element i after the step. */
static void new_moments(const struct state *s, int64_t i, double x[MOMENTS])
{
    double g;
    plim_elements_read(s->gradient, i, 1, &g);
    for (int k = 0; k < MOMENTS; k++) x[k] = kept_value(&s->kept[k], s->block, i);
    adam_moments(&s->step, g, &x[0], &x[1]);
}

static void update_parameter(const struct state *s, const struct plim_array *parameter, int64_t i,
                             const double x[MOMENTS])
{
    double p;
    plim_elements_read(parameter, i, 1, &p);
    p = p * adam_decay(&s->step) - adam_change(&s->step, x[0], x[1]);
    plim_elements_write(parameter, i, 1, &p);
}

/* Returns the index of the last value of the book that is at most x, or 0. */
static int64_t place_of(const double *book, int count, double x)
{
    int64_t place = 0;
    while (place + 1 < count && book[place + 1] <= x) place++;
    return place;
}

static int64_t rounded(const double *book, int count, double x, int64_t place)
{
    int64_t next = place + 1 < count ? place + 1 : place;
    return x - book[place] >= (book[next] - book[place]) / 2 ? next : place;
}

/* --- the new scales --------------------------------------------------------------------------- */

static enum plim_status find_scales(const struct plim_op *op)
{
    static const double LEAST = 1e-12;
    struct state s;
    int outs = op->n_out > MOMENTS ? 2 * MOMENTS : MOMENTS;
    if (!plim_op_has(op, outs, 7)) return PLIM_INVALID;
    enum plim_status st = open_state(op, op->in, op->in + 5, &s);
    int64_t parts = plim_array_elements(op->out[0]);
    if (st != PLIM_OK || plim_array_elements(op->out[1]) != parts || !parts || s.elements % parts)
        return PLIM_INVALID;
    int64_t part = s.elements / parts;
    if (s.block % part || (outs > MOMENTS && part != s.block)) return PLIM_INVALID;
    for (int k = MOMENTS; k < outs; k++)
        if (plim_array_elements(op->out[k]) != s.elements) return PLIM_INVALID;
    for (int64_t first = 0; first < s.elements; first += part) {
        double most[MOMENTS] = {LEAST, LEAST}, x[MOMENTS];
        for (int64_t i = first; i < first + part; i++) {
            new_moments(&s, i, x);
            for (int k = 0; k < MOMENTS; k++) most[k] = fmax(most[k], fabs(x[k]));
        }
        for (int k = 0; k < MOMENTS; k++) plim_elements_write(op->out[k], first / part, 1, &most[k]);
        for (int64_t i = first; i < first + part && outs > MOMENTS; i++) {
            new_moments(&s, i, x);
            for (int k = 0; k < MOMENTS; k++) {
                x[k] /= most[k];
                plim_elements_write(op->out[MOMENTS + k], i, 1, &x[k]);
            }
        }
    }
    return PLIM_OK;
}

/* --- the step --------------------------------------------------------------------------------- */

static enum plim_status step_8bit(const struct plim_op *op)
{
    struct state s;
    if (!plim_op_has(op, 1 + MOMENTS, 10)) return PLIM_INVALID;
    const struct plim_array *const *scaled = op->in + 6;
    enum plim_status st = open_state(op, op->in + 1, op->in + 8, &s);
    if (st != PLIM_OK || s.kept[0].count != MOST_CODES || plim_array_elements(op->out[0]) != s.elements)
        return PLIM_INVALID;
    for (int k = 0; k < MOMENTS; k++)
        if (plim_array_elements(scaled[k]) != s.elements || plim_array_elements(op->out[1 + k]) != s.elements)
            return PLIM_INVALID;
    for (int64_t i = 0; i < s.elements; i++) {
        double x[MOMENTS];
        new_moments(&s, i, x);
        update_parameter(&s, op->out[0], i, x);
        for (int k = 0; k < MOMENTS; k++) {
            const struct kept *kept = &s.kept[k];
            double over;
            plim_elements_read(scaled[k], i, 1, &over);
            int64_t code = rounded(kept->book, kept->count, over, place_of(kept->book, kept->count, over));
            plim_elements_write_integers(op->out[1 + k], i, 1, &code);
        }
    }
    return PLIM_OK;
}

static enum plim_status step_4bit(const struct plim_op *op)
{
    struct state s;
    if (!plim_op_has(op, 1 + 2 * MOMENTS, 10)) return PLIM_INVALID;
    const struct plim_array *const *scales = op->in + 6;
    enum plim_status st = open_state(op, op->in + 1, op->in + 8, &s);
    if (st != PLIM_OK || s.kept[0].count != NIBBLES) return PLIM_INVALID;
    for (int i = 0; i < op->n_out; i++)
        if (plim_array_elements(op->out[i]) != s.elements) return PLIM_INVALID;
    for (int k = 0; k < MOMENTS; k++)
        if (plim_array_elements(scales[k]) * s.block != s.elements) return PLIM_INVALID;
    for (int64_t i = 0; i < s.elements; i++) {
        double x[MOMENTS];
        new_moments(&s, i, x);
        update_parameter(&s, op->out[0], i, x);
        for (int k = 0; k < MOMENTS; k++) {
            double scale, over;
            plim_elements_read(scales[k], i / s.block, 1, &scale);
            over = (double)(float)(x[k] / scale);
            int64_t place = place_of(s.kept[k].book, NIBBLES, over);
            plim_elements_write(op->out[1 + k], i, 1, &over);
            plim_elements_write_integers(op->out[1 + MOMENTS + k], i, 1, &place);
        }
    }
    return PLIM_OK;
}

/* Packs two codes per byte, the first in its upper half. */
static enum plim_status make_codes(const struct plim_op *op)
{
    double book[MOST_CODES];
    if (!plim_op_has(op, 1, 3) || read_book(op->in[2], book) != NIBBLES) return PLIM_INVALID;
    int64_t bytes = plim_array_elements(op->out[0]);
    if (op->out[0]->dtype != PLIM_U8 || plim_array_elements(op->in[0]) != 2 * bytes ||
        plim_array_elements(op->in[1]) != 2 * bytes || !plim_elements_are_integers(op->in[1]))
        return PLIM_INVALID;
    for (int64_t i = 0; i < bytes; i++) {
        double over[2];
        int64_t place[2];
        plim_elements_read(op->in[0], 2 * i, 2, over);
        plim_elements_read_integers(op->in[1], 2 * i, 2, place);
        for (int j = 0; j < 2; j++) {
            if (place[j] < 0 || place[j] >= NIBBLES) return PLIM_INVALID;
            place[j] = rounded(book, NIBBLES, over[j], place[j]);
        }
        int64_t pair = place[0] << 4 | place[1];
        plim_elements_write_integers(op->out[0], i, 1, &pair);
    }
    return PLIM_OK;
}

enum plim_status plim_reference_torchao(const struct plim_op *op)
{
    switch (op->foreach) {
    case PLIM_TORCHAO_SCALES: return find_scales(op);
    case PLIM_TORCHAO_STEP_8BIT: return step_8bit(op);
    case PLIM_TORCHAO_STEP_4BIT: return step_4bit(op);
    case PLIM_TORCHAO_CODES: return make_codes(op);
    default: return PLIM_INVALID;
    }
}
