/* Whom a path may be believed to be written by, for what runs as root. */
#ifndef PLIM_BASE_TRUST_H
#define PLIM_BASE_TRUST_H

#include <stdbool.h>

/* Is this an absolute path without links, that exists, and where the file and all folders above it
 * are root's, and only root may write them? In a folder with the sticky bit (/tmp) names belong to
 * their owners, so it may be above the file. */
bool plim_trust_only_root(const char *path);

#endif
