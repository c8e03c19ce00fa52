/* Images that a program hands over without a size: how far they may be read. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_READABLE_H
#define PLIM_DEVICES_VIRTUAL_WORK_READABLE_H

#include <stdbool.h>
#include <stddef.h>

/* The `bytes` of an image whose size is not known. */
#define PLIM_UNKNOWN_BYTES ((size_t)-1)

/* May `count` bytes be read from offset `from` of an image of `bytes`? Where these are not known it is
 * asked whether there is memory. */
bool plim_is_readable(const void *image, size_t bytes, size_t from, size_t count);

#endif
