/* Element types and numbers of these types. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_TYPE_H
#define PLIM_DEVICES_VIRTUAL_VALUES_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The supported values of c10::ScalarType (c10/core/ScalarType.h; unchanged from PyTorch 1.0 to 2.15). */
enum plim_type {
    PLIM_UINT8 = 0,
    PLIM_INT8 = 1,
    PLIM_INT16 = 2,
    PLIM_INT32 = 3,
    PLIM_INT64 = 4,
    PLIM_HALF = 5,
    PLIM_FLOAT = 6,
    PLIM_DOUBLE = 7,
    PLIM_BOOL = 11,
    PLIM_BFLOAT16 = 15,
    PLIM_NO_TYPE = -1,
};

/* Returns the size of an element in bytes; 0 for PLIM_NO_TYPE and unsupported values. */
size_t plim_type_bytes(enum plim_type type);
bool plim_type_is_float(enum plim_type type);

/* Returns the type in which PyTorch computes with elements of `type` (at::opmath_type). */
enum plim_type plim_type_math(enum plim_type type);

/* Rounds `at` up to a multiple of `to`. */
static inline size_t plim_align(size_t at, size_t to)
{
    return to ? (at + to - 1) / to * to : at;
}

/* Returns the type whose C++ name starts at *text and advances *text past it and a following comma; PLIM_NO_TYPE if
 * there is none. */
enum plim_type plim_type_read(const char **text);

/* --- numbers ---------------------------------------------------------------------------------- */

/* A number, exact in its type: an integer in `i`, a float in `f`. */
struct plim_number {
    int64_t i;
    double f;
    bool is_float;
};

struct plim_number plim_number_load(const void *at, enum plim_type type);
/* Convert as C does; integers wrap around. */
void plim_number_store(void *at, enum plim_type type, struct plim_number number);
struct plim_number plim_number_convert(struct plim_number number, enum plim_type type);

/* Rounds a number to a floating-point type; half and bfloat16 are rounded from float, as in PyTorch. */
double plim_number_round(double number, enum plim_type type);

/* Returns -1, 0 or 1 if a is less than, equal to or greater than b. A NaN compares greater than any other number. */
int plim_number_compare(struct plim_number a, struct plim_number b);
bool plim_number_is_true(struct plim_number number);

#endif
