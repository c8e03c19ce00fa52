/* The CUDA stream that PyTorch allocates for: its caching allocator keeps the blocks of each stream apart. */
#ifndef PLIM_DEVICES_VIRTUAL_RECORD_TORCH_STREAM_H
#define PLIM_DEVICES_VIRTUAL_RECORD_TORCH_STREAM_H

/* Of the calling thread, on a GPU as the program counts them: 0 is the default stream, others have numbers in
 * the order in which they were seen first. 0 too where nothing is recorded or there is no PyTorch. No lock is
 * held: PyTorch may ask for what it needs. */
int plim_torch_stream(int device);

#endif
