/* The code books of 4-bit numbers. */
#ifndef PLIM_DEVICES_QUANTIZED_H
#define PLIM_DEVICES_QUANTIZED_H

#include "op.h"

enum { PLIM_NIBBLES = 16, PLIM_BOOK = 256 /* numbers of PLIM_QUANTIZED_BOOK, and of ROWS */ };

/* The numbers that the codes of a 4-bit type stand for, before they are scaled; NULL: it has 8 bits. NF4: quantiles of
 * the normal distribution (QLoRA, arXiv:2305.14314, appendix E); FP4: a sign, two bits of exponent and one of mantissa,
 * the largest of which is 1 (get_4bit_type in bitsandbytes' functional.py). */
const double *plim_nibble_book(enum plim_quantized type);

#endif
