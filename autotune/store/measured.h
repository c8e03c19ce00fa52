/* Measurements of this machine that are kept in the store: the launch speed of its host, the all-reduce of its GPUs.
 * Each is a line in a file named by the hash of the facts that it depends on, in a separate subfolder. */
#ifndef PLIM_STORE_MEASURED_H
#define PLIM_STORE_MEASURED_H

#include "answer_store.h"
#include <limits.h>

enum { PLIM_MEASURED_TEXT = 160 }; /* size of a line with its terminator */

/* Finds the path of a measurement with these facts. Returns false if the user has no store. */
bool plim_measured_path(const struct plim_store *store, const char *folder,
                        const struct plim_facts *facts, char path[PATH_MAX]);

/* Reads the line, without its newline. Returns false if there is no valid one. */
bool plim_measured_read(const char *path, char line[PLIM_MEASURED_TEXT]);

/* Writes the line. PLIM_IO: it cannot be written. */
enum plim_status plim_measured_write(const char *path, const char *line,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
