/* Classifies the blocks of a recording by their lifetime and by the thread that launches meanwhile.
 *
 * Autograd launches from a thread of its own, which is recorded for each launch. So within a step
 *
 *     gradients     are allocated while autograd launches, and still exist after it;
 *     activations   are allocated before, and exist when autograd launches: saved by forward, or still held by
 *                   the program itself;
 *     temporaries   are all other blocks that a step allocates and frees;
 *
 * and among blocks that stay from step to step
 *
 *     parameters    are blocks of the gradients' sizes, one for each gradient, the first of each size; with them
 *                   blocks made between and before them (frozen weights, buffers);
 *     optimizer     are later blocks of a gradient's size, as many for each gradient as most have, or of
 *                   half, a quarter, twice or four times that size (another type);
 *     other         are all others (buckets, a library's workspaces), and everything if one gradient in
 *                   ten has no block of its size (gradients that stay, or shards): then the classes are not known.
 *
 * Recomputation by checkpointing is launched by autograd, and counts as temporaries. The classes are an inference, and
 * reports say so; the total number of bytes is exact.
 */
#ifndef PLIM_WORKLOADS_RECORDING_CLASSES_H
#define PLIM_WORKLOADS_RECORDING_CLASSES_H

#include "recording.h"

/* Fills in `memory_class` of a stream's allocations, and sets `is_classified`, unless autograd launches
 * nothing. The stream must be valid for walking (read_stream.c). PLIM_NOMEM is the only failure. */
enum plim_status plim_recorded_classify(struct plim_recorded_stream *stream) PLIM_MUST_CHECK;

#endif
