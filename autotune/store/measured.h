/* A measurement of this machine as one line (the launch speed of its host, the all-reduce of its GPUs), kept in a
 * folder of its own beside the answers, under a hash of the facts that it depends on. */
#ifndef PLIM_STORE_MEASURED_H
#define PLIM_STORE_MEASURED_H

#include "answer_store.h"
#include <limits.h>

enum { PLIM_MEASURED_TEXT = 160 }; /* room for such a line */

/* The file of the measurement with these facts; false: none, because the user has no store. */
bool plim_measured_place(const struct plim_store *store, const char *folder,
                         const struct plim_facts *facts, char path[PATH_MAX]);

/* The line without its newline; false: there is none, or it is not valid. */
bool plim_measured_read(const char *path, char line[PLIM_MEASURED_TEXT]);

/* PLIM_IO. */
enum plim_status plim_measured_keep(const char *path, const char *line,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
