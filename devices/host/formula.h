/* The scalar functions that compute UNARY, UNARY_BACKWARD, BINARY and REDUCE. */
#ifndef PLIM_DEVICES_HOST_FORMULA_H
#define PLIM_DEVICES_HOST_FORMULA_H

#include "devices/op.h"

/* alpha, beta: of the operation; most functions do not use them. */
typedef double plim_unary_formula(double x, double alpha, double beta);
typedef double plim_unary_derivative(double dy, double saved, double alpha, double beta);
typedef double plim_binary_formula(double a, double b);
typedef int64_t plim_unary_integer(int64_t x, int64_t alpha, int64_t beta);
typedef int64_t plim_binary_integer(int64_t a, int64_t b);

/* Indexed by enum plim_unary. A derivative is NULL if there is none (NOT). `saved` as in op.h: the result for tanh,
 * relu and sigmoid, otherwise the input. */
extern plim_unary_formula *const plim_unary_formulas[PLIM_UNARY_COUNT];
extern plim_unary_derivative *const plim_unary_derivatives[PLIM_UNARY_COUNT];

/* Indexed by enum plim_binary; LERP, which has three operands, is NULL. Comparisons return 0 or 1. */
extern plim_binary_formula *const plim_binary_formulas[PLIM_BINARY_COUNT];

/* The same for integers, exact and wrapping at 64 bits; NULL if there is no integer version (DIV, LERP, HYPOT: then
 * doubles are used and the result is truncated). */
extern plim_binary_integer *const plim_binary_integers[PLIM_BINARY_COUNT];

/* Returns the integer version of a UNARY; NULL also if the operation's alpha or beta is not an integer. */
plim_unary_integer *plim_unary_integers(const struct plim_op *op);

/* True if x can be converted to int64 without loss. */
bool plim_is_integer(double x);

#endif
