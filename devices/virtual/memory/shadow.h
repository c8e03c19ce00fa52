/* What the host itself has put into device memory, as far as it is small and still there.
 *
 * Kernels do nothing, so nearly all that a program reads back is zero. But what it copied to the
 * device and reads back unchanged (shapes, lengths, pickled objects) should survive. A shadow of it
 * is kept until something else is known to have been written there: another copy, a memset, a
 * kernel that was handed a pointer to it to write through (signature.h), or, because kernels hide
 * pointers in structures, until SHADOW_LAUNCHES kernels have been launched.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H
#define PLIM_DEVICES_VIRTUAL_MEMORY_SHADOW_H

#include "devices/virtual/machine/self.h"

enum { SHADOW_BYTES = 1 << 20, SHADOW_LAUNCHES = 1024 };

/* What a shadow is made of when it is not known yet: a collective's result depends on what other
 * ranks bring. */
struct plim_shadow_source {
    /* Writes `bytes` of the value from `offset` on. False: it is unknown. May wait; is called
     * without the lock. */
    bool (*read)(void *user, size_t offset, void *out, size_t bytes);
    void (*release)(void *user);
    void *user;
};

/* Host to device. Nothing is kept of more than SHADOW_BYTES. */
void plim_shadow_write(uintptr_t at, const void *from, size_t bytes);
void plim_shadow_write_later(uintptr_t at, const struct plim_shadow_source *source, size_t bytes);

/* Device to host: what is known, else zeros. Returns whether anything was known. */
bool plim_shadow_read(uintptr_t at, void *out, size_t bytes);

/* Device to device. */
void plim_shadow_copy(uintptr_t to, uintptr_t from, size_t bytes);
void plim_shadow_set(uintptr_t at, int value, size_t bytes);

/* A kernel was launched; it may have written through these pointers, how far is not known: taken to
 * be the SHADOW_BLOCK_BYTES that frameworks' allocators hand out at least. */
enum { SHADOW_BLOCK_BYTES = 512 };
void plim_shadow_launched(const uintptr_t *written, size_t count);

/* The range was freed, or written by something that cannot be followed. */
void plim_shadow_forget(uintptr_t at, size_t bytes);
void plim_shadow_forget_locked(uintptr_t at, size_t bytes);

#endif
