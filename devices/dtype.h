/* Element types, with PyTorch's names and sizes. */
#ifndef PLIM_DEVICES_DTYPE_H
#define PLIM_DEVICES_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

enum plim_dtype {
    PLIM_F32, PLIM_BF16, PLIM_F16, PLIM_I64, PLIM_I32, PLIM_U8, PLIM_BOOL, PLIM_DTYPE_COUNT
};

/* Bytes of one element. */
static inline int plim_dtype_size(enum plim_dtype t)
{
    static const uint8_t size[PLIM_DTYPE_COUNT] = {4, 2, 2, 8, 4, 1, 1};
    return size[t];
}

static inline bool plim_dtype_is_float(enum plim_dtype t) { return t == PLIM_F32 || t == PLIM_BF16 || t == PLIM_F16; }

static inline const char *plim_dtype_name(enum plim_dtype t)
{
    static const char *const name[PLIM_DTYPE_COUNT] = {"fp32", "bf16", "fp16", "int64",
                                                       "int32", "uint8", "bool"};
    return name[t];
}

#endif
