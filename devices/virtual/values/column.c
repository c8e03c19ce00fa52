#include "column.h"
#include "devices/half.h"
#include <string.h>

/* --- states of the elements ------------------------------------------------------------------- */

#define REPEATED(c_type, byte) ((c_type)((c_type)-1 / 255 * (byte)))

#define STATES(c_type)                                                                             \
    static void load_states_of_##c_type(struct plim_column *column, const struct plim_view *view,  \
                                        const size_t *offsets, size_t count)                       \
    {                                                                                              \
        for (size_t k = 0; k < count; k++) {                                                       \
            c_type states;                                                                         \
            memcpy(&states, view->known + offsets[k], sizeof(states));                             \
            column->known[k] = (unsigned char)states;                                              \
            if (states != REPEATED(c_type, states & 255))                                          \
                column->known[k] = plim_view_known(view, offsets[k], sizeof(states));              \
        }                                                                                          \
    }                                                                                              \
    static void store_states_of_##c_type(const struct plim_column *column, struct plim_view *view, \
                                         const size_t *offsets, size_t count)                      \
    {                                                                                              \
        for (size_t k = 0; k < count; k++) {                                                       \
            c_type states = REPEATED(c_type, column->known[k]);                                    \
            memcpy(view->known + offsets[k], &states, sizeof(states));                             \
        }                                                                                          \
    }

STATES(uint8_t)
STATES(uint16_t)
STATES(uint32_t)
STATES(uint64_t)

/* --- values of the elements ------------------------------------------------------------------- */

/* Defines the load and store functions of a type. `member` is the column's array for it; `as_number` and `as_element`
 * convert to and from the element. */
#define VALUES(name, c_type, member, as_number, as_element)                                        \
    static void load_##name(struct plim_column *column, const struct plim_view *view,              \
                            const size_t *offsets, size_t count)                                   \
    {                                                                                              \
        for (size_t k = 0; k < count; k++) {                                                       \
            c_type element;                                                                        \
            memcpy(&element, view->data + offsets[k], sizeof(element));                            \
            column->member[k] = as_number(element);                                                \
        }                                                                                          \
    }                                                                                              \
    static void store_##name(const struct plim_column *column, struct plim_view *view,             \
                             const size_t *offsets, size_t count)                                  \
    {                                                                                              \
        for (size_t k = 0; k < count; k++) {                                                       \
            c_type element = as_element(column->member[k]);                                        \
            memcpy(view->data + offsets[k], &element, sizeof(element));                            \
        }                                                                                          \
    }
#define BFLOAT16_OF(number) plim_float_to_bf16((float)(number))
#define HALF_OF(number) plim_float_to_fp16((float)(number))
#define TRUTH(number) ((number) != 0)

VALUES(uint8, uint8_t, i, (int64_t), (uint8_t))
VALUES(int8, int8_t, i, (int64_t), (int8_t))
VALUES(int16, int16_t, i, (int64_t), (int16_t))
VALUES(int32, int32_t, i, (int64_t), (int32_t))
VALUES(int64, int64_t, i, (int64_t), (int64_t))
VALUES(bool, uint8_t, i, TRUTH, TRUTH)
VALUES(half, uint16_t, f, (double)plim_fp16_to_float, HALF_OF)
VALUES(bfloat16, uint16_t, f, (double)plim_bf16_to_float, BFLOAT16_OF)
VALUES(float, float, f, (double), (float))
VALUES(double, double, f, (double), (double))

typedef void load(struct plim_column *, const struct plim_view *, const size_t *, size_t);
typedef void store(const struct plim_column *, struct plim_view *, const size_t *, size_t);

#define ROW(name, states) {load_##name, load_states_of_##states, store_##name, store_states_of_##states}
static const struct {
    load *values, *states;
    store *store_values, *store_states;
} rows[] = {[PLIM_UINT8] = ROW(uint8, uint8_t),         [PLIM_INT8] = ROW(int8, uint8_t),
            [PLIM_INT16] = ROW(int16, uint16_t),        [PLIM_INT32] = ROW(int32, uint32_t),
            [PLIM_INT64] = ROW(int64, uint64_t),        [PLIM_HALF] = ROW(half, uint16_t),
            [PLIM_FLOAT] = ROW(float, uint32_t),        [PLIM_DOUBLE] = ROW(double, uint64_t),
            [PLIM_BOOL] = ROW(bool, uint8_t),           [PLIM_BFLOAT16] = ROW(bfloat16, uint16_t)};

void plim_column_load(struct plim_column *column, const struct plim_view *view,
                      const size_t *offsets, size_t count, enum plim_type stored,
                      enum plim_type type)
{
    column->is_float = plim_type_is_float(stored);
    rows[stored].states(column, view, offsets, count);
    rows[stored].values(column, view, offsets, count);
    plim_column_convert(column, stored, type, count);
}

void plim_column_store(struct plim_column *column, struct plim_view *view, const size_t *offsets,
                       size_t count, enum plim_type stored)
{
    if (column->is_float != plim_type_is_float(stored))
        plim_column_convert(column, column->is_float ? PLIM_DOUBLE : PLIM_INT64, stored, count);
    rows[stored].store_values(column, view, offsets, count);
    rows[stored].store_states(column, view, offsets, count);
}

void plim_column_convert(struct plim_column *column, enum plim_type from, enum plim_type to,
                         size_t count)
{
    bool is_wider = !column->is_float && to == PLIM_INT64, /* the numbers do not change */
         is_truth = !column->is_float && to == PLIM_BOOL;
    if (from == to || is_wider) return;
    for (size_t k = 0; k < count && is_truth; k++) column->i[k] = column->i[k] != 0;
    for (size_t k = 0; k < count && !is_truth; k++) {
        struct plim_number n = {column->i[k], column->f[k], column->is_float};
        n = plim_number_convert(n, to);
        column->i[k] = n.i;
        column->f[k] = n.f;
    }
    column->is_float = plim_type_is_float(to);
}

void plim_column_repeat(struct plim_column *column, struct plim_number number, size_t count)
{
    column->is_float = number.is_float;
    for (size_t k = 0; k < count; k++) {
        column->i[k] = number.i;
        column->f[k] = number.f;
        column->known[k] = PLIM_KNOWN;
    }
}
