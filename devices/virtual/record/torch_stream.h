/* The CUDA stream for which PyTorch allocates: its caching allocator keeps the blocks of each stream apart. */
#ifndef PLIM_DEVICES_VIRTUAL_RECORD_TORCH_STREAM_H
#define PLIM_DEVICES_VIRTUAL_RECORD_TORCH_STREAM_H

/* Returns the calling thread's stream on a GPU: 0 for the default stream; others are numbered in the order in which
 * they were first seen. Also 0 if nothing is recorded or PyTorch is not loaded. Call it without a lock, since it calls
 * into PyTorch. */
int plim_torch_stream(int device);

#endif
