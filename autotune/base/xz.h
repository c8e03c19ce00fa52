/* Compresses text to xz (the .xz file format 1.1, https://tukaani.org/xz/format.html) and back, in memory, by
 * liblzma. `xzcat` shows such a file.
 *
 * Ownership: outputs are malloc'd, and the caller frees them.
 */
#ifndef PLIM_BASE_XZ_H
#define PLIM_BASE_XZ_H

#include "status.h"
#include <stdbool.h>
#include <stddef.h>

/* PLIM_NOMEM is the only failure. */
enum plim_status plim_xz_pack(const char *text, size_t length, char **packed, size_t *packed_bytes,
                              struct plim_error *err) PLIM_MUST_CHECK;

/* Does it begin like an xz file? No text does. */
bool plim_xz_is(const char *bytes, size_t count);

/* The text, terminated. PLIM_SPEC, with `source_name`: the data is truncated or damaged, is followed by
 * more data, contains more than `max_bytes` of text (no more are unpacked), or needs more
 * than 128 MiB to unpack. */
enum plim_status plim_xz_unpack(const char *source_name, const char *packed, size_t packed_bytes,
                                size_t max_bytes, char **text, size_t *length,
                                struct plim_error *err) PLIM_MUST_CHECK;

#endif
