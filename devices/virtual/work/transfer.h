/* Copies and fills: what moves between the host and the shadows of device memory. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_TRANSFER_H
#define PLIM_DEVICES_VIRTUAL_WORK_TRANSFER_H

#include "stream.h"

/* `rows` rows of `bytes`, that many bytes apart on each side. Which side is the GPU's is seen from
 * the addresses, as with unified addressing. */
struct plim_transfer {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, bytes, rows;
};

int plim_transfer(const struct plim_transfer *transfer, struct plim_stream *stream);
int plim_transfer_plain(void *to, const void *from, size_t bytes, struct plim_stream *stream);

/* Elements of 1, 2 or 4 bytes. */
int plim_fill(void *to, uint32_t value, size_t element_bytes, size_t count,
              struct plim_stream *stream);

/* The host waits for what was given to the GPU: for the ranks' collectives, where there are any. A
 * CUDA error code; so is that of a copy to the host, which waits too. */
int plim_transfer_wait(void);

/* What does the waiting; NULL: nothing is waited for. */
extern int (*plim_transfer_synchronize)(void);

/* The host has read `bytes` from the GPU, of whose values `known` (plim_shadow_load) tells: what is to be said
 * of that, and what the host is to find there, which may be changed. NULL: nothing. */
extern void (*plim_transfer_asked)(uintptr_t from, void *to, size_t bytes, unsigned known);

#endif
