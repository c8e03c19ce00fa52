/* A text as gzip (RFC 1952) and back, in memory, by zlib. `zcat` shows such a file.
 *
 * Ownership: what comes out is malloc'd, and the caller frees it.
 */
#ifndef PLIM_BASE_GZIP_H
#define PLIM_BASE_GZIP_H

#include "status.h"
#include <stdbool.h>
#include <stddef.h>

/* PLIM_NOMEM is the only failure. */
enum plim_status plim_gzip_pack(const char *text, size_t length, char **packed,
                                size_t *packed_bytes, struct plim_error *err) PLIM_MUST_CHECK;

/* Does it begin as gzip does? No text does. */
bool plim_gzip_is(const char *bytes, size_t count);

/* The text, terminated. PLIM_SPEC, with `source_name`: the data is cut or damaged, more follows
 * behind it, or it has more than `max_bytes` of text, of which no more are unpacked. */
enum plim_status plim_gzip_unpack(const char *source_name, const char *packed, size_t packed_bytes,
                                  size_t max_bytes, char **text, size_t *length,
                                  struct plim_error *err) PLIM_MUST_CHECK;

#endif
