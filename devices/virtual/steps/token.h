/* Tokens: 64-bit hashes that identify launches; equal in every process of a program. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_TOKEN_H
#define PLIM_DEVICES_VIRTUAL_STEPS_TOKEN_H

#include "autotune/base/hash.h"
#include <string.h>

/* Returns the token of a name. */
static inline uint64_t plim_token_of(const char *text)
{
    return plim_hash(PLIM_HASH_START, text, strlen(text));
}

/* Returns the token combined with a value. */
static inline uint64_t plim_token_more(uint64_t token, uint64_t value)
{
    token = (token ^ value) * 0x9e3779b97f4a7c15u;
    return token ^ token >> 29;
}

#endif
