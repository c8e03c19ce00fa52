/* How far images may be read that a program passes without a size. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_READABLE_H
#define PLIM_DEVICES_VIRTUAL_WORK_READABLE_H

#include <stdbool.h>
#include <stddef.h>

/* The `bytes` of an image whose size is not known. */
#define PLIM_UNKNOWN_BYTES ((size_t)-1)

/* May `count` bytes be read from offset `from` of an image of `bytes`? Where the size is not known, checks
 * whether the memory is mapped. */
bool plim_is_readable(const void *image, size_t bytes, size_t from, size_t count);

#endif
