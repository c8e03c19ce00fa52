/* Copies and fills between the host and the shadow of device memory. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_TRANSFER_H
#define PLIM_DEVICES_VIRTUAL_WORK_TRANSFER_H

#include "stream.h"

/* Copies `rows` rows of `bytes` bytes, which start `to_pitch` and `from_pitch` bytes apart. The addresses determine
 * which side is the GPU's, as with unified addressing. */
struct plim_transfer {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, bytes, rows;
};

int plim_transfer(const struct plim_transfer *transfer, struct plim_stream *stream);
int plim_transfer_plain(void *to, const void *from, size_t bytes, struct plim_stream *stream);

/* Fills memory with elements of 1, 2 or 4 bytes. */
int plim_fill(void *to, uint32_t value, size_t element_bytes, size_t count,
              struct plim_stream *stream);

/* Waits for the work of the GPU: for collectives with other ranks, if there are any. Returns a CUDA error code. A copy
 * to the host waits in the same way. */
int plim_transfer_wait(void);

/* The function that waits; NULL: there is nothing to wait for. */
extern int (*plim_transfer_synchronize)(void);

/* Called when the host has read `bytes` bytes from the GPU; `known` holds the states of the values
 * (plim_shadow_load()). It may record the read and change the values in `to` that the host gets. NULL: not used. */
extern void (*plim_transfer_asked)(uintptr_t from, void *to, size_t bytes, unsigned known);

#endif
