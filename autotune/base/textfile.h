/* Text files from outside: bounded in size and checked to be text before anyone parses them. */
#ifndef PLIM_BASE_TEXTFILE_H
#define PLIM_BASE_TEXTFILE_H

#include "status.h"
#include <stddef.h>

/* Reads a regular file of at most `max_bytes`. A directory, pipe, socket or device is refused, and
 * so is a larger file, without reading it. `text` is malloc'd and terminated; the caller frees it.
 * PLIM_IO: there is no such file, or it cannot be read. PLIM_SPEC: the file is refused. */
enum plim_status plim_textfile_read(const char *path, size_t max_bytes, char **text, size_t *length,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* The first bytes of a regular file, at most `size`, into `bytes`; how many: 0 where there is none. */
size_t plim_textfile_begin(const char *path, char *bytes, size_t size);

/* PLIM_SPEC, with line and column, unless `text` is UTF-8 without control characters (other than
 * tab and line ends). `source_name` is for the message. */
enum plim_status plim_textfile_check(const char *source_name, const char *text, size_t length,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
