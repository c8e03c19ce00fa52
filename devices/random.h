/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011; the generator of PyTorch's CUDA kernels). Element i of an operation with seed
 * s is word i % 4 of the block with counter i / 4 and key s: the same on every device, without any
 * state. Compiles as C, C++ and CUDA. */
#ifndef PLIM_DEVICES_RANDOM_H
#define PLIM_DEVICES_RANDOM_H

#include <stdint.h>

#ifdef __CUDACC__
#define PLIM_HOST_DEVICE __host__ __device__
#else
#define PLIM_HOST_DEVICE
#endif

/* Computes the four words of block `counter` of stream `stream`; cuRAND gives each thread its own stream. */
PLIM_HOST_DEVICE static inline void plim_philox_stream(uint64_t seed, uint64_t stream, uint64_t counter,
                                                       uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = (uint32_t)stream,
             c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

PLIM_HOST_DEVICE static inline void plim_philox(uint64_t seed, uint64_t counter, uint32_t out[4])
{
    plim_philox_stream(seed, 0, counter, out);
}

/* Returns word i of the stream of `seed`. */
PLIM_HOST_DEVICE static inline uint32_t plim_random_word(uint64_t seed, uint64_t i)
{
    uint32_t word[4];
    plim_philox(seed, i / 4, word);
    return word[i % 4];
}

/* Attention's dropout, generated as in flash-attention: one random byte per probability, which is kept if its byte is
 * at most the limit (dropout.h of flash-attention, and of PyTorch's copy of it). The byte for key k of row r is byte k
 * % 16 of block r * ceil(keys / 16) + k / 16. */
enum { PLIM_DROPOUT_KEYS = 16 };

/* Returns the largest byte that is kept; -1: none is. */
PLIM_HOST_DEVICE static inline int plim_dropout_limit(double dropped)
{
    return dropped < 1 ? (int)((1 - dropped) * 255) : -1;
}

PLIM_HOST_DEVICE static inline uint64_t plim_dropout_block(int64_t row, int64_t keys, int64_t key)
{
    return (uint64_t)(row * ((keys + PLIM_DROPOUT_KEYS - 1) / PLIM_DROPOUT_KEYS) +
                      key / PLIM_DROPOUT_KEYS);
}

PLIM_HOST_DEVICE static inline int plim_dropout_byte(uint64_t seed, int64_t row, int64_t keys,
                                                     int64_t key)
{
    uint32_t word[4];
    plim_philox(seed, plim_dropout_block(row, keys, key), word);
    return (int)(word[key % PLIM_DROPOUT_KEYS / 4] >> key % 4 * 8 & 255);
}

/* Converts a word to a number in [0, 1): 24 bits, exact in fp32. */
PLIM_HOST_DEVICE static inline float plim_random_unit(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}

/* Converts a word to an integer in [0, n), n up to 2^32. */
PLIM_HOST_DEVICE static inline uint64_t plim_random_below(uint32_t word, uint64_t n)
{
    return (uint64_t)word * n >> 32;
}

#endif
