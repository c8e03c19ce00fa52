/* The shadow of device memory: which of its values are known.
 *
 * No kernel runs, but values that the host copies to the device are known, and so are the results of supported kernels
 * (values/family.h). Every byte is in one of three states:
 *
 *     known            it has the value that it would have on a real GPU
 *     unknown          written by a kernel whose result is not computed
 *     never written    since it was allocated
 *
 * A known value may depend on an assumption, whose bit is then set. A known value is never wrong: a caller that cannot
 * tell what was written marks all memory that may have been written as unknown. */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H

#include "devices/virtual/machine/self.h"

/* The most bytes stored for one write, and for all together; beyond that the oldest writes of SHADOW_LARGE_BYTES or
 * more are dropped. A repeated element takes no space. */
enum { SHADOW_BYTES = 256 << 20, SHADOW_TOTAL_BYTES = 1 << 30, SHADOW_LARGE_BYTES = 1 << 20 };

/* The state of a byte: known if PLIM_KNOWN is set; the bits of enum plim_assumption say which assumptions the value
 * depends on. PLIM_NOT_NEGATIVE restricts an unknown number. */
enum plim_known {
    PLIM_NEVER = 0,
    PLIM_UNKNOWN = 1,
    PLIM_KNOWN = 2,
    PLIM_ASSUMED = PLIM_ASSUMPTION_FINITE | PLIM_ASSUMPTION_SPREAD | PLIM_ASSUMPTION_SEED | PLIM_ASSUMPTION_ALL |
                   PLIM_ASSUMPTION_LONGEST,
    PLIM_NOT_NEGATIVE = 128, /* with PLIM_UNKNOWN: a norm or a root. Only in the state of a byte, not in combined
                              * bits */
};

/* Returns the state of a result that depends on both values. */
static inline unsigned char plim_known_both(unsigned char a, unsigned char b)
{
    return a & b & PLIM_KNOWN ? a | b : PLIM_UNKNOWN;
}

/* Returns the state of an unknown value that is moved unchanged. */
static inline unsigned char plim_unknown_of(unsigned char known)
{
    return known & PLIM_UNKNOWN ? known : PLIM_UNKNOWN;
}

/* The source of a value that is computed only when it is read: the result of a collective depends on the data of other
 * ranks, and most random numbers are never read. */
struct plim_shadow_source {
    /* Writes `bytes` bytes of the value, starting at `offset`. Returns false if it is unknown. May be called any number
     * of times and may wait; called without the lock. */
    bool (*read)(void *user, size_t offset, void *out, size_t bytes);
    void (*release)(void *user);
    void *user;
};

/* A copy from host to device: known, or unknown if it is too large to store. */
void plim_shadow_write(uintptr_t at, const void *from, size_t bytes);
/* A value that is computed when it is read; `known` is its state. `source` is copied and released when no longer
 * needed. */
void plim_shadow_write_later(uintptr_t at, const struct plim_shadow_source *source, unsigned char known, size_t bytes,
                             const char *writer);

/* A repeated element of 1, 2, 4 or 8 bytes. */
void plim_shadow_fill(uintptr_t at, const void *element, size_t element_bytes, unsigned char known,
                      size_t bytes);

/* The result of a kernel. `known` has a state per byte; `writer` is the kernel's name, which must outlive the
 * shadow. */
void plim_shadow_store(uintptr_t at, const void *from, const unsigned char *known, size_t bytes,
                       const char *writer);
/* A kernel wrote unknown values. `writer` NULL: which kernel is not known. */
void plim_shadow_spoil(uintptr_t at, size_t bytes, const char *writer);
/* Same; `unknown` is PLIM_UNKNOWN, possibly with PLIM_NOT_NEGATIVE. */
void plim_shadow_spoil_as(uintptr_t at, size_t bytes, unsigned char unknown, const char *writer);

/* A copy from device to device. */
void plim_shadow_copy(uintptr_t to, uintptr_t from, size_t bytes);

/* Reads values into `out` (0 where unknown), and the state of each byte into `known` if that is not NULL. Returns the
 * bits of all states together, with PLIM_SOME_UNKNOWN if any byte is not known. May wait for other ranks. */
enum { PLIM_SOME_UNKNOWN = 0x80 };
unsigned plim_shadow_load(uintptr_t at, void *out, unsigned char *known, size_t bytes);
/* Returns the same bits without reading; values that are computed when read count as known. */
unsigned plim_shadow_survey(uintptr_t at, size_t bytes);
/* True if the range is one repeated element; stores it in `element` and its state in `known`. */
bool plim_shadow_is_filled(uintptr_t at, size_t bytes, size_t element_bytes, void *element,
                           unsigned char *known);
/* True if a single write made the whole range unknown; stores its state in `known`. */
bool plim_shadow_is_spoilt(uintptr_t at, size_t bytes, unsigned char *known);
/* Returns the name of the first kernel, in address order, that is recorded as a writer of the range; NULL if none
 * is. */
const char *plim_shadow_writer(uintptr_t at, size_t bytes);

/* The range was freed: it becomes "never written". plim_shadow_clear_locked() requires the caller to hold the lock. */
void plim_shadow_clear(uintptr_t at, size_t bytes);
void plim_shadow_clear_locked(uintptr_t at, size_t bytes);

#endif
