/* The common syntax of device URIs: "KIND:NAME,memory=24GiB". */
#ifndef PLIM_DEVICES_URI_H
#define PLIM_DEVICES_URI_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plim_uri_options {
    int64_t memory_bytes; /* 0: not specified */
    bool ascending;       /* placement=ascending (catalogue.h); placement=driver is the default */
};

/* Reads the options after a device's name, ",memory=24GiB,placement=ascending" or "" for none.
 * PLIM_INVALID for any other option, an invalid size, or a size of 0. */
enum plim_status plim_uri_read(const char *options, struct plim_uri_options *out,
                               struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the length of the first device in a comma-separated list: up to a comma that does not start an option. */
size_t plim_uri_length(const char *text);

/* The same for a device that is not simulated: without placement, which its driver determines. */
enum plim_status plim_uri_read_memory(const char *options, int64_t *bytes,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Writes a size so that it can be read back without loss: in the largest binary unit that divides it. */
void plim_uri_format_bytes(int64_t bytes, char *out, size_t size);

#endif
