/* Tokens: 64-bit hashes that tell one launch from another, the same in every process of a program. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_TOKEN_H
#define PLIM_DEVICES_VIRTUAL_STEPS_TOKEN_H

#include <stdint.h>

/* Of a name: FNV-1a. */
static inline uint64_t plim_token_of(const char *text)
{
    uint64_t token = 0xcbf29ce484222325u;
    for (; *text; text++) token = (token ^ (unsigned char)*text) * 0x100000001b3u;
    return token;
}

/* Goes on with a token. */
static inline uint64_t plim_token_more(uint64_t token, uint64_t value)
{
    token = (token ^ value) * 0x9e3779b97f4a7c15u;
    return token ^ token >> 29;
}

#endif
