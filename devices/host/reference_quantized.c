/* Quantised numbers, as stored by bitsandbytes. */
#include "devices/quantized.h"
#include "reference_internal.h"

#include <math.h>
#include <stdlib.h>

enum { BOOK = PLIM_BOOK, BYTE_MOST = 127 };

struct book {
    double number[BOOK]; /* values of the codes, before scaling */
    int count;
    bool nibbles;
};

/* Reads the values of the codes: those of the type, or the operand's. */
static enum plim_status read_book(const struct plim_op *op, const struct plim_array *operand,
                                  struct book *book)
{
    book->nibbles = op->quantized < PLIM_QUANTIZED_BOOK;
    book->count = book->nibbles ? PLIM_NIBBLES : BOOK;
    for (int i = 0; i < BOOK; i++) book->number[i] = i > BYTE_MOST ? i - BOOK : i;
    if (op->quantized >= PLIM_QUANTIZED_COUNT || op->block < 1) return PLIM_INVALID;
    if (book->nibbles)
        for (int i = 0; i < PLIM_NIBBLES; i++)
            book->number[i] = plim_nibble_book((enum plim_quantized)op->quantized)[i];
    else if (op->quantized == PLIM_QUANTIZED_ROWS)
        return PLIM_OK;
    else if (!operand || plim_array_elements(operand) != BOOK)
        return PLIM_INVALID;
    else
        plim_elements_read(operand, 0, BOOK, book->number);
    return PLIM_OK;
}

static int nearest(const struct plim_op *op, const struct book *book, double x)
{
    if (op->quantized == PLIM_QUANTIZED_ROWS) return (int)lrint(BYTE_MOST * x) & (BOOK - 1);
    int best = 0;
    for (int i = 1; i < book->count; i++)
        if (fabs(book->number[i] - x) < fabs(book->number[best] - x)) best = i;
    return best;
}

/* True if `codes` and `scales` have room for this many elements. */
static bool have_room(const struct plim_op *op, const struct book *book, int64_t elements,
                      const struct plim_array *codes, const struct plim_array *scales)
{
    int64_t bytes = book->nibbles ? (elements + 1) / 2 : elements;
    return codes->dtype == PLIM_U8 && plim_array_elements(codes) >= bytes &&
           plim_array_elements(scales) >= (elements + op->block - 1) / op->block;
}

static void store_code(const struct book *book, const struct plim_array *codes, int64_t i, int code)
{
    int64_t byte = code;
    if (book->nibbles) {
        plim_elements_read_integers(codes, i / 2, 1, &byte);
        byte = i % 2 ? (byte & 0xf0) | code : code << 4;
        i /= 2;
    }
    plim_elements_write_integers(codes, i, 1, &byte);
}

enum plim_status plim_reference_quantize(const struct plim_op *op)
{
    struct book book;
    const struct plim_array *codes = op->out[0], *scales = op->out[1], *a = op->in[0];
    enum plim_status st = read_book(op, plim_reference_input(op, 1), &book);
    int64_t elements = plim_array_elements(a);
    if (st != PLIM_OK || !have_room(op, &book, elements, codes, scales)) return PLIM_INVALID;
    double *x = plim_reference_numbers(op->block);
    if (!x) return PLIM_NOMEM;
    for (int64_t first = 0; first < elements; first += op->block) {
        int64_t count = elements - first < op->block ? elements - first : op->block;
        double most = 0;
        plim_elements_read(a, first, count, x);
        for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
        plim_elements_write(scales, first / op->block, 1, &most);
        for (int64_t i = 0; i < count; i++)
            store_code(&book, codes, first + i, nearest(op, &book, most > 0 ? x[i] / most : 0));
    }
    free(x);
    return PLIM_OK;
}

/* Reads elements `first` to `first + count` of the quantised numbers. */
static void read_quantized(const struct book *book, int64_t block, const struct plim_array *codes,
                           const struct plim_array *scales, int64_t first, int64_t count, double *x)
{
    for (int64_t i = first; i < first + count; i++) {
        int64_t byte;
        double scale;
        plim_elements_read_integers(codes, book->nibbles ? i / 2 : i, 1, &byte);
        plim_elements_read(scales, i / block, 1, &scale);
        if (book->nibbles) byte = i % 2 ? byte & 15 : byte >> 4;
        x[i - first] = book->number[byte] * scale;
    }
}

enum plim_status plim_reference_dequantize(const struct plim_op *op)
{
    struct book book;
    const struct plim_array *out = op->out[0];
    enum plim_status st = read_book(op, plim_reference_input(op, 2), &book);
    int64_t elements = plim_array_elements(out);
    if (st != PLIM_OK || !have_room(op, &book, elements, op->in[0], op->in[1])) return PLIM_INVALID;
    double x[PLIM_ELEMENTS_RUN];
    for (int64_t first = 0; first < elements; first += PLIM_ELEMENTS_RUN) {
        int64_t left = elements - first, count = left < PLIM_ELEMENTS_RUN ? left : PLIM_ELEMENTS_RUN;
        read_quantized(&book, op->block, op->in[0], op->in[1], first, count, x);
        plim_elements_write(out, first, count, x);
    }
    return PLIM_OK;
}

/* --- a product with a 4-bit weight ------------------------------------------------------------ */

enum { A, CODES, SCALES, BIAS, SCALE_CODES, SCALE_BOOK, OFFSET };
enum { NESTED_BLOCK = 256 };

/* Reads the weight (n, k), whose scales may be quantised as well. */
static enum plim_status read_weight(const struct plim_op *op, int64_t elements, double *w)
{
    struct book book;
    const struct plim_array *nested = plim_reference_input(op, SCALE_CODES);
    enum plim_status st = read_book(op, NULL, &book);
    if (st != PLIM_OK || !book.nibbles) return PLIM_INVALID;
    if (!nested) {
        if (!have_room(op, &book, elements, op->in[CODES], op->in[SCALES])) return PLIM_INVALID;
        read_quantized(&book, op->block, op->in[CODES], op->in[SCALES], 0, elements, w);
        return PLIM_OK;
    }
    struct book of_scales = {.count = BOOK};
    int64_t count = (elements + op->block - 1) / op->block;
    if (plim_array_elements(nested) < count) return PLIM_INVALID;
    double offset = plim_elements_scalar(op->in[OFFSET]);
    plim_elements_read(op->in[SCALE_BOOK], 0, BOOK, of_scales.number);
    for (int64_t i = 0; i < count; i++) {
        int64_t last = (i + 1) * op->block < elements ? (i + 1) * op->block : elements;
        double scale;
        read_quantized(&of_scales, NESTED_BLOCK, nested, op->in[SCALES], i, 1, &scale);
        for (int64_t j = i * op->block; j < last; j++) {
            int64_t byte;
            plim_elements_read_integers(op->in[CODES], j / 2, 1, &byte);
            w[j] = book.number[j % 2 ? byte & 15 : byte >> 4] * (scale + offset);
        }
    }
    return PLIM_OK;
}

enum plim_status plim_reference_matmul_4bit(const struct plim_op *op)
{
    const struct plim_array *out = op->out[0], *a = op->in[A], *bias = plim_reference_input(op, BIAS);
    if (out->ndim < 1 || a->ndim < 1) return PLIM_INVALID;
    int64_t n = plim_elements_last(out), k = plim_elements_last(a);
    int64_t rows = k > 0 ? plim_array_elements(a) / k : 0;
    if (plim_array_elements(out) != rows * n) return PLIM_INVALID;
    double *w = plim_reference_numbers(n * k), *x = plim_reference_numbers(k + n);
    enum plim_status st = w && x ? read_weight(op, n * k, w) : PLIM_NOMEM;
    for (int64_t i = 0; st == PLIM_OK && i < rows; i++) {
        double *y = x + k;
        plim_elements_read(a, i * k, k, x);
        for (int64_t j = 0; j < n; j++) {
            y[j] = 0;
            if (bias) plim_elements_read(bias, j, 1, &y[j]);
            for (int64_t l = 0; l < k; l++) y[j] += x[l] * w[j * k + l];
        }
        plim_elements_write(out, i * n, n, y);
    }
    free(w);
    free(x);
    return st;
}

/* --- LLM.int8() ------------------------------------------------------------------------------- */

enum plim_status plim_reference_matmul_int8(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *a = op->in[0], *b = op->in[1];
    if (y->ndim != 2 || a->ndim != 2 || b->ndim != 2) return PLIM_INVALID;
    int64_t m = y->shape[0], n = y->shape[1], k = a->shape[1];
    if (a->shape[0] != m || b->shape[0] != n || b->shape[1] != k) return PLIM_INVALID;
    int64_t *rows = malloc(sizeof(*rows) * 2 * (size_t)(k > 0 ? k : 1));
    if (!rows) return PLIM_NOMEM;
    for (int64_t i = 0; i < m * n; i++) {
        int64_t sum = 0;
        plim_elements_read_integers(a, i / n * k, k, rows);
        plim_elements_read_integers(b, i % n * k, k, rows + k);
        for (int64_t l = 0; l < k; l++) sum += (int8_t)rows[l] * (int8_t)rows[k + l];
        plim_elements_write_integers(y, i, 1, &sum);
    }
    free(rows);
    return PLIM_OK;
}

enum plim_status plim_reference_scale_int32(const struct plim_op *op)
{
    const struct plim_array *y = op->out[0], *a = op->in[0], *bias = plim_reference_input(op, 3);
    if (y->ndim != 2 || !plim_elements_same_shape(y, a)) return PLIM_INVALID;
    int64_t m = y->shape[0], n = y->shape[1];
    if (plim_array_elements(op->in[1]) != m || plim_array_elements(op->in[2]) != n)
        return PLIM_INVALID;
    for (int64_t i = 0; i < m * n; i++) {
        double x, s, t, b = 0;
        plim_elements_read(a, i, 1, &x);
        plim_elements_read(op->in[1], i / n, 1, &s);
        plim_elements_read(op->in[2], i % n, 1, &t);
        if (bias) plim_elements_read(bias, i % n, 1, &b);
        x = x * s * t / (BYTE_MOST * BYTE_MOST) + b;
        plim_elements_write(y, i, 1, &x);
    }
    return PLIM_OK;
}
