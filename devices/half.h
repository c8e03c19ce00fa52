/* The 16-bit floating types on a host: bf16 (8 bits of exponent, 7 of fraction) and fp16 (IEEE 754
 * binary16: 5 and 10), as bit patterns. Rounding is to nearest, ties to even; values that are too large
 * become infinite, NaN stays NaN, fp16 has subnormals. Compiles as C, C++ and CUDA host code. */
#ifndef PLIM_DEVICES_HALF_H
#define PLIM_DEVICES_HALF_H

#include <stdint.h>
#include <string.h>

static inline float plim_bits_to_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t plim_float_to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float plim_bf16_to_float(uint16_t x)
{
    return plim_bits_to_float((uint32_t)x << 16);
}

static inline uint16_t plim_float_to_bf16(float x)
{
    uint32_t bits = plim_float_to_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* NaN */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float plim_fp16_to_float(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, magnitude = x & 0x7fffu;
    if (magnitude >= 0x7c00u) /* infinity, NaN */
        return plim_bits_to_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x400u) return plim_bits_to_float(sign | ((magnitude << 13) + (112u << 23)));
    float subnormal = (float)magnitude * (1.0f / 16777216.0f); /* units of 2^-24 */
    return sign ? -subnormal : subnormal;
}

static inline uint16_t plim_float_to_fp16(float x)
{
    uint32_t bits = plim_float_to_bits(x), magnitude = bits & 0x7fffffffu;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) return sign | 0x7c00u; /* 65520 or more */
    if (magnitude < 0x38800000u) {                       /* below 2^-14: subnormal */
        if (magnitude < 0x33000000u) return sign;        /* below 2^-25 */
        uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u, shift = 126u - (magnitude >> 23);
        uint32_t kept = fraction >> shift, rest = fraction & ((1u << shift) - 1u);
        uint32_t half = 1u << (shift - 1u);
        return (uint16_t)(sign | (kept + (rest > half || (rest == half && (kept & 1u)))));
    }
    uint32_t rebased = magnitude - (112u << 23);
    return (uint16_t)(sign | ((rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13));
}

#endif
