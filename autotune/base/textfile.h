/* Reads text files from outside: limits their size, and checks that they are text before they are parsed. */
#ifndef PLIM_BASE_TEXTFILE_H
#define PLIM_BASE_TEXTFILE_H

#include "status.h"
#include <stddef.h>

/* Reads a regular file of at most `max_bytes` as a string, which the caller frees. Refuses directories, pipes, sockets,
 * devices and larger files without reading them. PLIM_IO: there is no such file, or it cannot be read. PLIM_SPEC: the
 * file is refused. */
enum plim_status plim_textfile_read(const char *path, size_t max_bytes, char **text, size_t *length,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the first bytes of a regular file, at most `size`. Returns their number; 0 if there is no such file. */
size_t plim_textfile_begin(const char *path, char *bytes, size_t size);

/* Returns PLIM_SPEC, with line and column, unless `text` is UTF-8 without control characters (except tabs and line
 * ends). `source_name` names the file in the message. */
enum plim_status plim_textfile_check(const char *source_name, const char *text, size_t length,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
