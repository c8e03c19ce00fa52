/* What device URIs have in common: "KIND:NAME,memory=24GiB". */
#ifndef PLIM_DEVICES_URI_H
#define PLIM_DEVICES_URI_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_uri_options {
    int64_t memory_bytes; /* 0: not given */
    bool ascending;       /* placement=ascending (catalogue.h); placement=driver is the default */
};

/* Reads the options behind a device's name, ",memory=24GiB,placement=ascending" or "" for none.
 * PLIM_INVALID for any other option, what is no size, and a size of 0. */
enum plim_status plim_uri_read(const char *options, struct plim_uri_options *out,
                               struct plim_error *err) PLIM_MUST_CHECK;

/* Where a comma-separated list's device ends: in front of a comma that begins no option. */
size_t plim_uri_length(const char *text);

/* The options of a device that is not simulated: no placement, which is its driver's. */
enum plim_status plim_uri_read_memory(const char *options, int64_t *bytes,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* A size as it can be read again without loss: in the largest binary unit that divides it. */
void plim_uri_format_bytes(int64_t bytes, char *out, size_t size);

#endif
