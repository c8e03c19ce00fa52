/* What device URIs have in common: "KIND:NAME,memory=24GiB". */
#ifndef PLIM_DEVICES_URI_H
#define PLIM_DEVICES_URI_H

#include "autotune/base/status.h"
#include <stddef.h>
#include <stdint.h>

/* Reads the options behind a device's name: ",memory=24GiB", or "" for none, which gives 0 bytes.
 * PLIM_INVALID for any other option, what is no size, and a size of 0. */
enum plim_status plim_uri_read_memory(const char *options, int64_t *bytes,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* A size as it can be read again without loss: in the largest binary unit that divides it. */
void plim_uri_format_bytes(int64_t bytes, char *out, size_t size);

#endif
