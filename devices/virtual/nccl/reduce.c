#include "nccl.h"
#include <string.h>

enum class { NOT_COMPUTED, SIGNED, UNSIGNED, REAL };

static const struct {
    size_t bytes;
    enum class class;
} types[NCCL_TYPES] = {
    [NCCL_INT8] = {1, SIGNED},      [NCCL_UINT8] = {1, UNSIGNED},
    [NCCL_INT32] = {4, SIGNED},     [NCCL_UINT32] = {4, UNSIGNED},
    [NCCL_INT64] = {8, SIGNED},     [NCCL_UINT64] = {8, UNSIGNED},
    [NCCL_FLOAT16] = {2, REAL},     [NCCL_BFLOAT16] = {2, REAL},
    [NCCL_FLOAT32] = {4, REAL},     [NCCL_FLOAT64] = {8, REAL},
    [NCCL_FLOAT8_E4M3] = {1, NOT_COMPUTED}, [NCCL_FLOAT8_E5M2] = {1, NOT_COMPUTED},
};

union number {
    int64_t integer;
    uint64_t natural;
    double real;
};

size_t plim_nccl_type_bytes(int type)
{
    return type >= 0 && type < NCCL_TYPES ? types[type].bytes : 0;
}

/* --- 16-bit floating point, converted via 32-bit float ---------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest >= 0x7c00) return float_of_bits(sign | 0x7f800000 | rest << 13);
    /* The exponents' biases differ by 112; multiplying also handles subnormals. */
    float value = float_of_bits(rest << 13) * float_of_bits((127 + 112) << 23);
    return float_of_bits(sign | bits_of_float(value));
}

/* Rounds to nearest even: adds and subtracts a number whose last bit has the weight of the half's last bit. */
static uint16_t to_half(float value)
{
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) {
        float aligned = float_of_bits(rest) + 0.5f; /* 2^-1: its last bit is 2^-24 */
        return (uint16_t)(sign | (bits_of_float(aligned) - 0x3f000000));
    }
    rest += 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | ((rest - (112u << 23)) >> 13));
}

static uint16_t to_bfloat(float value)
{
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* --- elements --------------------------------------------------------------------------------- */

#define LOAD(c_type, field)                                                                        \
    do {                                                                                           \
        c_type value;                                                                              \
        memcpy(&value, at, sizeof(value));                                                         \
        number.field = value;                                                                      \
    } while (0)

static union number load(const void *at, int type)
{
    union number number = {.natural = 0};
    uint16_t bits;
    switch (type) {
    case NCCL_INT8: LOAD(int8_t, integer); break;
    case NCCL_UINT8: LOAD(uint8_t, natural); break;
    case NCCL_INT32: LOAD(int32_t, integer); break;
    case NCCL_UINT32: LOAD(uint32_t, natural); break;
    case NCCL_INT64: LOAD(int64_t, integer); break;
    case NCCL_UINT64: LOAD(uint64_t, natural); break;
    case NCCL_FLOAT32: LOAD(float, real); break;
    case NCCL_FLOAT64: LOAD(double, real); break;
    default:
        memcpy(&bits, at, sizeof(bits));
        number.real = type == NCCL_FLOAT16 ? from_half(bits) : float_of_bits((uint32_t)bits << 16);
    }
    return number;
}

static void store(void *at, int type, union number number)
{
    float single = types[type].class == REAL ? (float)number.real : 0;
    uint16_t bits;
    switch (type) {
    case NCCL_FLOAT32: memcpy(at, &single, sizeof(single)); break;
    case NCCL_FLOAT16:
    case NCCL_BFLOAT16:
        bits = type == NCCL_FLOAT16 ? to_half(single) : to_bfloat(single);
        memcpy(at, &bits, sizeof(bits));
        break;
    default: memcpy(at, &number, types[type].bytes); /* little-endian: the low bytes come first */
    }
}

/* One expression for all number classes. */
#define COMBINE(field)                                                                             \
    switch (operation) {                                                                           \
    case NCCL_PRODUCT: a.field *= b.field; break;                                                  \
    case NCCL_MAX: a.field = b.field > a.field ? b.field : a.field; break;                         \
    case NCCL_MIN: a.field = b.field < a.field ? b.field : a.field; break;                         \
    default: a.field += b.field;                                                                   \
    }

static union number combine(union number a, union number b, enum class class, int operation)
{
    if (class == REAL) {
        COMBINE(real)
    } else if (class == SIGNED && (operation == NCCL_MAX || operation == NCCL_MIN)) {
        COMBINE(integer)
    } else {
        COMBINE(natural) /* wraps around */
    }
    return a;
}

bool plim_nccl_reduce(void *into, const void *from, size_t bytes, int type, int operation)
{
    size_t width = plim_nccl_type_bytes(type);
    if (!width || types[type].class == NOT_COMPUTED || operation >= NCCL_OPERATIONS) return false;
    for (size_t i = 0; i + width <= bytes; i += width) {
        char *to = (char *)into + i;
        store(to, type, combine(load(to, type), load((const char *)from + i, type),
                                types[type].class, operation));
    }
    return true;
}

void plim_nccl_divide(void *values, size_t bytes, int type, int by)
{
    size_t width = plim_nccl_type_bytes(type);
    for (size_t i = 0; i + width <= bytes; i += width) {
        char *at = (char *)values + i;
        union number number = load(at, type);
        if (types[type].class == REAL) number.real /= by;
        else if (types[type].class == SIGNED) number.integer /= by;
        else number.natural /= (unsigned)by;
        store(at, type, number);
    }
}
