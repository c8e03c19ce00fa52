/* FNV-1a with 64 bits (RFC 9923), for hash tables and to detect damage; not resistant to deliberate collisions. */
#ifndef PLIM_BASE_HASH_H
#define PLIM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define PLIM_HASH_START UINT64_C(0xcbf29ce484222325)

/* Returns the hash with bytes added. The first is PLIM_HASH_START. */
static inline uint64_t plim_hash(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
