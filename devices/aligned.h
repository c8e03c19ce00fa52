/* The fraction of its rate that a product on tensor cores keeps if rows do not start at multiples of 16 bytes. */
#ifndef PLIM_DEVICES_ALIGNED_H
#define PLIM_DEVICES_ALIGNED_H

/* Rows of an operand that start at multiples of only 2, 4 or 8 bytes: loads are narrower (an asynchronous copy needs
 * 16). Padding GPT-2's vocabulary from 50257 to 50304 was reported to save a quarter of nanoGPT's step (from memory, no
 * source at hand); that is this effect in its last layer. An H200 kept 0.28 and 0.30 of mma.sync's rate if an operand
 * has rows of 50257 numbers, and 0.19 if the result has (tests/gpu/records). */
#define PLIM_ALIGNED_2_SHARE 0.3
#define PLIM_ALIGNED_4_SHARE 0.5
#define PLIM_ALIGNED_8_SHARE 0.75
/* A further factor if the result is unaligned: Hopper's own kernels need all three operands aligned. */
#define PLIM_UNALIGNED_RESULT_SHARE 0.65

#endif
