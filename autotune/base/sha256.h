/* SHA-256 (FIPS 180-4), for names and checksums of stored files. */
#ifndef PLIM_BASE_SHA256_H
#define PLIM_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { PLIM_SHA256_TEXT = 65 }; /* 64 hexadecimal digits and the terminator */

struct plim_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
};

void plim_sha256_init(struct plim_sha256 *hash);
void plim_sha256_add(struct plim_sha256 *hash, const void *data, size_t size);
/* Writes the hash of all added data to `out` as lower-case hexadecimal digits, and returns `out`. */
char *plim_sha256_finish(struct plim_sha256 *hash, char out[PLIM_SHA256_TEXT]);

/* Same for one piece of data. */
char *plim_sha256_text(const void *data, size_t size, char out[PLIM_SHA256_TEXT]);

#endif
