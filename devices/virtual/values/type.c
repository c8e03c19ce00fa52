#include "type.h"
#include "devices/half.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    enum plim_type type;
    size_t bytes;
} types[] = {{"unsigned char", PLIM_UINT8, 1}, {"signed char", PLIM_INT8, 1},
             {"short", PLIM_INT16, 2},         {"int", PLIM_INT32, 4},
             {"long", PLIM_INT64, 8},          {"c10::Half", PLIM_HALF, 2},
             {"float", PLIM_FLOAT, 4},         {"double", PLIM_DOUBLE, 8},
             {"bool", PLIM_BOOL, 1},           {"c10::BFloat16", PLIM_BFLOAT16, 2},
             {"__half", PLIM_HALF, 2},         {"__nv_bfloat16", PLIM_BFLOAT16, 2}};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

size_t plim_type_bytes(enum plim_type type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type) return types[i].bytes;
    return 0;
}

bool plim_type_is_float(enum plim_type type)
{
    return type == PLIM_HALF || type == PLIM_FLOAT || type == PLIM_DOUBLE || type == PLIM_BFLOAT16;
}

enum plim_type plim_type_math(enum plim_type type)
{
    return type == PLIM_HALF || type == PLIM_BFLOAT16 ? PLIM_FLOAT : type;
}

enum plim_type plim_type_read(const char **text)
{
    while (**text == ' ') ++*text;
    for (int i = 0; i < TYPES; i++) {
        size_t length = strlen(types[i].name);
        if (strncmp(*text, types[i].name, length) || !strchr(",>)* &", (*text)[length])) continue;
        *text += length;
        if (**text == ',') ++*text;
        return types[i].type;
    }
    return PLIM_NO_TYPE;
}

double plim_number_round(double number, enum plim_type type)
{
    float f = (float)number;
    switch (type) {
    case PLIM_HALF:
        return (double)plim_fp16_to_float(plim_float_to_fp16(f));
    case PLIM_BFLOAT16:
        return (double)plim_bf16_to_float(plim_float_to_bf16(f));
    case PLIM_FLOAT:
        return (double)f;
    default:
        return number;
    }
}

/* --- numbers ---------------------------------------------------------------------------------- */

#define LOAD(c_type)                                                                               \
    {                                                                                              \
        c_type value;                                                                              \
        memcpy(&value, at, sizeof(value));                                                         \
        return (struct plim_number){.i = value};                                                   \
    }

struct plim_number plim_number_load(const void *at, enum plim_type type)
{
    float f = 0;
    double d = 0;
    uint16_t half = 0;
    switch (type) {
    case PLIM_UINT8:
        LOAD(uint8_t)
    case PLIM_INT8:
        LOAD(int8_t)
    case PLIM_INT16:
        LOAD(int16_t)
    case PLIM_INT32:
        LOAD(int32_t)
    case PLIM_INT64:
        LOAD(int64_t)
    case PLIM_BOOL:
        return (struct plim_number){.i = *(const unsigned char *)at != 0};
    case PLIM_FLOAT:
        memcpy(&f, at, sizeof(f));
        break;
    case PLIM_DOUBLE:
        memcpy(&d, at, sizeof(d));
        return (struct plim_number){.f = d, .is_float = true};
    case PLIM_HALF:
        memcpy(&half, at, sizeof(half));
        f = plim_fp16_to_float(half);
        break;
    case PLIM_BFLOAT16:
        memcpy(&half, at, sizeof(half));
        f = plim_bf16_to_float(half);
        break;
    default:
        break;
    }
    return (struct plim_number){.f = (double)f, .is_float = true};
}

static int64_t wrap(int64_t value, enum plim_type type)
{
    switch (type) {
    case PLIM_UINT8:
        return (uint8_t)value;
    case PLIM_INT8:
        return (int8_t)value;
    case PLIM_INT16:
        return (int16_t)value;
    case PLIM_INT32:
        return (int32_t)value;
    default:
        return value;
    }
}

static int64_t truncate(double f)
{
    return f > -9.2e18 && f < 9.2e18 ? (int64_t)f : INT64_MIN;
}

struct plim_number plim_number_convert(struct plim_number n, enum plim_type type)
{
    struct plim_number out = {.is_float = plim_type_is_float(type)};
    if (type == PLIM_BOOL)
        out.i = plim_number_is_true(n);
    else if (out.is_float && n.is_float)
        out.f = plim_number_round(n.f, type);
    else if (out.is_float)
        out.f = type == PLIM_DOUBLE ? (double)n.i : plim_number_round((double)(float)n.i, type);
    else
        out.i = wrap(n.is_float ? truncate(n.f) : n.i, type);
    return out;
}

void plim_number_store(void *at, enum plim_type type, struct plim_number number)
{
    struct plim_number n = plim_number_convert(number, type);
    float f = (float)n.f;
    uint16_t half = type == PLIM_HALF ? plim_float_to_fp16(f) : plim_float_to_bf16(f);
    switch (type) {
    case PLIM_FLOAT:
        memcpy(at, &f, sizeof(f));
        break;
    case PLIM_DOUBLE:
        memcpy(at, &n.f, sizeof(n.f));
        break;
    case PLIM_HALF:
    case PLIM_BFLOAT16:
        memcpy(at, &half, sizeof(half));
        break;
    default:
        memcpy(at, &n.i, plim_type_bytes(type)); /* little-endian */
    }
}

int plim_number_compare(struct plim_number a, struct plim_number b)
{
    if (!a.is_float) return (a.i > b.i) - (a.i < b.i);
    if (isnan(a.f) || isnan(b.f)) return !!isnan(a.f) - !!isnan(b.f);
    return (a.f > b.f) - (a.f < b.f);
}

bool plim_number_is_true(struct plim_number n)
{
    return n.is_float ? n.f < 0 || n.f > 0 || isnan(n.f) : n.i != 0;
}
