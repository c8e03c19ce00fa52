/* Decides which files a process that runs as root may trust. */
#ifndef PLIM_BASE_TRUST_H
#define PLIM_BASE_TRUST_H

#include <stdbool.h>

/* True for an existing absolute path without symbolic links, if root owns the file and all folders above it, and only
 * root may write to them. A folder may also be writable for others if it has the sticky bit (/tmp), since only owners
 * can rename and delete files there. */
bool plim_trust_only_root(const char *path);

#endif
