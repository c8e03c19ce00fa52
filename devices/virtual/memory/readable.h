/* Bounds checks for reading images (modules, fat binaries) that a program passes without a size. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_READABLE_H
#define PLIM_DEVICES_VIRTUAL_WORK_READABLE_H

#include <stdbool.h>
#include <stddef.h>

/* The size of an image is not known. */
#define PLIM_UNKNOWN_BYTES ((size_t)-1)

/* True if `count` bytes can be read at offset `from` of an image of `bytes` bytes. If the size is unknown, checks
 * whether the memory is mapped. */
bool plim_is_readable(const void *image, size_t bytes, size_t from, size_t count);

#endif
