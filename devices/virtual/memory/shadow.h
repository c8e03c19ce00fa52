/* The shadow of device memory: which of its values are known.
 *
 * No kernel runs, but values that the host copied there are known, and so are the results of the kernels
 * that are understood (values/family.h). Every byte is in one of three states:
 *
 *     known            its value is the one that a real GPU would have
 *     unknown          a kernel wrote it whose result is not computed
 *     never written    since it was allocated
 *
 * A known value may depend on an assumption, whose bit it then carries. A known value is never wrong:
 * a caller that does not know what was written marks all memory that may have been written as unknown.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H

#include "devices/virtual/machine/self.h"

/* The most bytes that are kept of one write, and of all together, beyond which the oldest large writes are dropped; a
 * repeated number costs nothing. */
enum { SHADOW_BYTES = 256 << 20, SHADOW_TOTAL_BYTES = 1 << 30, SHADOW_LARGE_BYTES = 1 << 20 };

/* A byte's state. All but the first two are known; the bits of enum plim_assumption say what the value depends on.
 * Of an unknown number it may be known that it is not negative. */
enum plim_known {
    PLIM_NEVER = 0,
    PLIM_UNKNOWN = 1,
    PLIM_KNOWN = 2,
    PLIM_ASSUMED = PLIM_ASSUMPTION_FINITE | PLIM_ASSUMPTION_SPREAD | PLIM_ASSUMPTION_SEED | PLIM_ASSUMPTION_ALL |
                   PLIM_ASSUMPTION_LONGEST,
    PLIM_NOT_NEGATIVE = 128, /* with PLIM_UNKNOWN: a norm, a root; only in a byte's state, not in combined bits */
};

/* The state of a result that depends on both. */
static inline unsigned char plim_known_both(unsigned char a, unsigned char b)
{
    return a & b & PLIM_KNOWN ? a | b : PLIM_UNKNOWN;
}

/* The state of an unknown value that is moved unchanged. */
static inline unsigned char plim_unknown_of(unsigned char known)
{
    return known & PLIM_UNKNOWN ? known : PLIM_UNKNOWN;
}

/* The source of a value that is computed only when it is read: a collective's result depends on other ranks' data, and
 * most random numbers are never read. */
struct plim_shadow_source {
    /* Writes `bytes` of the value from `offset` on; may be called any number of times. False: it is unknown. May
     * wait; is called without the lock. */
    bool (*read)(void *user, size_t offset, void *out, size_t bytes);
    void (*release)(void *user);
    void *user;
};

/* A copy from host to device: known, or unknown where it is too much to keep. */
void plim_shadow_write(uintptr_t at, const void *from, size_t bytes);
/* A value that is computed when it is read; `known` is its state then. */
void plim_shadow_write_later(uintptr_t at, const struct plim_shadow_source *source, unsigned char known, size_t bytes,
                             const char *writer);

/* A repeated element of 1, 2, 4 or 8 bytes. */
void plim_shadow_fill(uintptr_t at, const void *element, size_t element_bytes, unsigned char known,
                      size_t bytes);

/* A kernel's result. `known` has a state for each byte; `writer` is the kernel's name, which stays.
 */
void plim_shadow_store(uintptr_t at, const void *from, const unsigned char *known, size_t bytes,
                       const char *writer);
/* A kernel wrote unknown values there. `writer` NULL: the kernel is not known either. */
void plim_shadow_spoil(uintptr_t at, size_t bytes, const char *writer);
/* The same; `unknown` is PLIM_UNKNOWN, possibly with PLIM_NOT_NEGATIVE. */
void plim_shadow_spoil_as(uintptr_t at, size_t bytes, unsigned char unknown, const char *writer);

/* A copy from device to device. */
void plim_shadow_copy(uintptr_t to, uintptr_t from, size_t bytes);

/* Fills `out`, with 0 where a value is not known, and each byte's state if `known` is not NULL. Returns
 * the bits of all states that occur, with PLIM_SOME_UNKNOWN if one is not known. May wait for other ranks. */
enum { PLIM_SOME_UNKNOWN = 0x80 };
unsigned plim_shadow_load(uintptr_t at, void *out, unsigned char *known, size_t bytes);
/* The same bits, without the values; values that wait for other ranks count as known. */
unsigned plim_shadow_survey(uintptr_t at, size_t bytes);
/* Is a range one repeated, known element? Then `element` receives it and `known` its state. */
bool plim_shadow_is_filled(uintptr_t at, size_t bytes, size_t element_bytes, void *element,
                           unsigned char *known);
/* Did a single write make the whole range unknown? Then `known` receives its state. */
bool plim_shadow_is_spoilt(uintptr_t at, size_t bytes, unsigned char *known);
/* The kernel that wrote the first byte that is not known; NULL: none did. */
const char *plim_shadow_writer(uintptr_t at, size_t bytes);

/* The range was freed: it becomes "never written". */
void plim_shadow_forget(uintptr_t at, size_t bytes);
void plim_shadow_forget_locked(uintptr_t at, size_t bytes);

#endif
