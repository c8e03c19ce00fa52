/* What products on tensor cores keep of their rate where rows do not begin at multiples of 16 bytes. */
#ifndef PLIM_DEVICES_ALIGNED_H
#define PLIM_DEVICES_ALIGNED_H

/* Rows of an operand that are only a multiple of 2, 4, 8 bytes: loads get narrower (16 is
 * what an asynchronous copy wants). Padding GPT-2's vocabulary from 50257 to 50304 was reported to
 * save a quarter of nanoGPT's step (as remembered), which is this in its last layer. An H200 kept 0.28 and 0.30 of
 * mma.sync's rate where an operand has rows of 50257 numbers, and 0.19 where the result has (tests/gpu/records). */
#define PLIM_ALIGNED_2_SHARE 0.3
#define PLIM_ALIGNED_4_SHARE 0.5
#define PLIM_ALIGNED_8_SHARE 0.75
/* Of these what is left where it is the result that is not aligned: Hopper's own kernels want all three to be. */
#define PLIM_UNALIGNED_RESULT_SHARE 0.65

#endif
