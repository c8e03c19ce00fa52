#define _DEFAULT_SOURCE /* MS_ASYNC, which only checks that the pages are mapped */
#include "readable.h"
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Upper bound for the size of an image. */
static const size_t MOST = (size_t)1 << 40;

static bool is_mapped(uintptr_t at, size_t count)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = at & ~(page - 1);
    return !msync((void *)first, at + count - first, MS_ASYNC);
}

bool plim_is_readable(const void *image, size_t bytes, size_t from, size_t count)
{
    uintptr_t at = (uintptr_t)image;
    if (bytes != PLIM_UNKNOWN_BYTES) return from <= bytes && count <= bytes - from;
    if (from > MOST || count > MOST || at > UINTPTR_MAX - 2 * MOST) return false;
    return !count || is_mapped(at + from, count);
}
