/* The code books of 4-bit numbers. */
#ifndef PLIM_DEVICES_QUANTIZED_H
#define PLIM_DEVICES_QUANTIZED_H

#include "op.h"

enum { PLIM_NIBBLES = 16, PLIM_BOOK = 256 /* numbers of PLIM_QUANTIZED_BOOK, and of ROWS */ };

/* Returns the values of the codes of a 4-bit type, before scaling; NULL for an 8-bit type. NF4: quantiles of the normal
 * distribution (QLoRA, arXiv:2305.14314, appendix E); FP4: a sign, two bits of exponent and one of mantissa, scaled so
 * that the largest is 1 (get_4bit_type in bitsandbytes' functional.py). */
const double *plim_nibble_book(enum plim_quantized type);

#endif
