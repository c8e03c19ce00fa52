/* Compresses text to xz (the .xz file format 1.1, https://tukaani.org/xz/format.html) and back, in memory, with
 * liblzma. `xzcat` shows such a file. The caller frees all outputs. */
#ifndef PLIM_BASE_XZ_H
#define PLIM_BASE_XZ_H

#include "status.h"
#include <stdbool.h>
#include <stddef.h>

/* Compresses text. PLIM_NOMEM is the only error. */
enum plim_status plim_xz_pack(const char *text, size_t length, char **packed, size_t *packed_bytes,
                              struct plim_error *err) PLIM_MUST_CHECK;

/* True if the bytes start like an xz file; no text does. */
bool plim_xz_is(const char *bytes, size_t count);

/* Decompresses text, which is terminated. PLIM_SPEC, with `source_name` in the message: the data is truncated or
 * damaged, is followed by more data, contains more than `max_bytes` of text (no more are unpacked), or needs more than
 * 128 MiB to unpack. */
enum plim_status plim_xz_unpack(const char *source_name, const char *packed, size_t packed_bytes,
                                size_t max_bytes, char **text, size_t *length,
                                struct plim_error *err) PLIM_MUST_CHECK;

#endif
