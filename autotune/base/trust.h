/* Which files a process that runs as root may trust. */
#ifndef PLIM_BASE_TRUST_H
#define PLIM_BASE_TRUST_H

#include <stdbool.h>

/* Is this an existing absolute path without links, where the file and all folders above it belong to root
 * and only root may write to them? A folder above the file may also have the sticky bit (/tmp), since only
 * owners can change names there. */
bool plim_trust_only_root(const char *path);

#endif
