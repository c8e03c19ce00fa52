/* A line that was measured on this machine (how fast its host launches, its GPUs reduce), kept in a folder of its own
 * beside the answers under a hash of all that it goes by. */
#ifndef PLIM_STORE_MEASURED_H
#define PLIM_STORE_MEASURED_H

#include "answer_store.h"
#include <limits.h>

enum { PLIM_MEASURED_TEXT = 160 }; /* room for such a line */

/* The file of what was measured with these facts; false: nowhere, as there is no store of the user's. */
bool plim_measured_place(const struct plim_store *store, const char *folder,
                         const struct plim_facts *facts, char path[PATH_MAX]);

/* Without the newline that ends it; false: there is none, or it is something else. */
bool plim_measured_read(const char *path, char line[PLIM_MEASURED_TEXT]);

/* PLIM_IO. */
enum plim_status plim_measured_keep(const char *path, const char *line,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
