/* What is known of the values in device memory.
 *
 * No kernel runs, but what the host put there is known, and so is what the kernels make of it that
 * are understood (values/family.h). Every byte is in one of three states:
 *
 *     known            its value is the one that a real GPU would have
 *     unknown          a kernel wrote it whose result is not worked out
 *     never written    since it was allocated
 *
 * A known value may rest on an assumption, whose bit it then carries. A known value is never wrong:
 * who does not know what was written says so for all of the memory that may have been.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H

#include "devices/virtual/machine/self.h"

/* Of one write no more than this is kept, and of all together, then the oldest of the large ones go; what is one number
 * over and over costs nothing. */
enum { SHADOW_BYTES = 256 << 20, SHADOW_TOTAL_BYTES = 1 << 30, SHADOW_LARGE_BYTES = 1 << 20 };

/* A byte's state. All but the first two are known; the bits between, enum plim_assumption, say what the value rests on.
 * Of a number that is not known it may be known that it is not below zero. */
enum plim_known {
    PLIM_NEVER = 0,
    PLIM_UNKNOWN = 1,
    PLIM_KNOWN = 2,
    PLIM_ASSUMED = PLIM_ASSUMPTION_FINITE | PLIM_ASSUMPTION_SPREAD | PLIM_ASSUMPTION_SEED | PLIM_ASSUMPTION_ALL |
                   PLIM_ASSUMPTION_LONGEST,
    PLIM_NOT_NEGATIVE = 128, /* with PLIM_UNKNOWN: a norm, a root; of a byte, not in the bits of several */
};

/* What a result is known as that rests on both. */
static inline unsigned char plim_known_both(unsigned char a, unsigned char b)
{
    return a & b & PLIM_KNOWN ? a | b : PLIM_UNKNOWN;
}

/* The state of what is moved as it is, and is not known. */
static inline unsigned char plim_unknown_of(unsigned char known)
{
    return known & PLIM_UNKNOWN ? known : PLIM_UNKNOWN;
}

/* What a value is made of that is not worked out yet: a collective's result depends on what other ranks bring, and
 * most random numbers are never read. */
struct plim_shadow_source {
    /* Writes `bytes` of the value from `offset` on, as often as it is asked. False: it is unknown. May wait; is
     * called without the lock. */
    bool (*read)(void *user, size_t offset, void *out, size_t bytes);
    void (*release)(void *user);
    void *user;
};

/* Host to device: known, or unknown where it is too much to keep. */
void plim_shadow_write(uintptr_t at, const void *from, size_t bytes);
/* What is worked out when it is read; `known` is its state then. */
void plim_shadow_write_later(uintptr_t at, const struct plim_shadow_source *source, unsigned char known, size_t bytes,
                             const char *writer);

/* An element of 1, 2, 4 or 8 bytes, over and over. */
void plim_shadow_fill(uintptr_t at, const void *element, size_t element_bytes, unsigned char known,
                      size_t bytes);

/* A kernel's result. `known` has a state for each byte; `writer` is the kernel's name, which stays.
 */
void plim_shadow_store(uintptr_t at, const void *from, const unsigned char *known, size_t bytes,
                       const char *writer);
/* A kernel wrote there, what is not known. NULL: nor which. */
void plim_shadow_spoil(uintptr_t at, size_t bytes, const char *writer);
/* The same; `unknown` is PLIM_UNKNOWN with what is known all the same. */
void plim_shadow_spoil_as(uintptr_t at, size_t bytes, unsigned char unknown, const char *writer);

/* Device to device. */
void plim_shadow_copy(uintptr_t to, uintptr_t from, size_t bytes);

/* Fills `out`, with 0 where it is not known, and each byte's state if `known` is not NULL. Returns
 * the bits of all states that occur, and 0x80 if one is not known. May wait for other ranks. */
enum { PLIM_SOME_UNKNOWN = 0x80 };
unsigned plim_shadow_load(uintptr_t at, void *out, unsigned char *known, size_t bytes);
/* The same bits, without the values; what waits for other ranks counts as known. */
unsigned plim_shadow_survey(uintptr_t at, size_t bytes);
/* Is a range one element over and over, all known? Then `element` has it, `known` its state. */
bool plim_shadow_is_filled(uintptr_t at, size_t bytes, size_t element_bytes, void *element,
                           unsigned char *known);
/* Did one write make all of a range unknown? Then `known` is its state. */
bool plim_shadow_is_spoilt(uintptr_t at, size_t bytes, unsigned char *known);
/* The kernel that wrote the first byte which is not known; NULL: none did. */
const char *plim_shadow_writer(uintptr_t at, size_t bytes);

/* The range was freed: never written. */
void plim_shadow_forget(uintptr_t at, size_t bytes);
void plim_shadow_forget_locked(uintptr_t at, size_t bytes);

#endif
