/* Classifies the blocks of a recording by their lifetime and by the thread that launches kernels meanwhile.
 *
 * Autograd launches from a thread of its own, which is recorded for each launch. So within a step
 *
 *     gradients     are allocated while autograd launches, and still exist afterwards;
 *     activations   are allocated before, and exist when autograd launches: saved by forward, or still held by
 *                   the program itself;
 *     temporaries   are all other blocks that a step allocates and frees;
 *
 * and among blocks that outlive steps
 *
 *     parameters    are blocks of the gradients' sizes, one for each gradient, the first of each size; with them
 *                   blocks allocated between and before them (frozen weights, buffers);
 *     optimizer     are later blocks of a gradient's size, as many per gradient as most gradients have, or of
 *                   half, a quarter, twice or four times that size (another type);
 *     other         are all others (buckets, a library's workspaces), and everything if one gradient in
 *                   ten has no block of its size (gradients that are kept, or shards): then the classes are unknown.
 *
 * Recomputation by checkpointing is launched by autograd, and counts as temporaries. The classes are an inference, and
 * reports say so; the total number of bytes is exact. */
#ifndef PLIM_WORKLOADS_RECORDING_CLASSES_H
#define PLIM_WORKLOADS_RECORDING_CLASSES_H

#include "recording.h"

/* Sets `memory_class` of a stream's allocations, and `is_classified`, unless autograd launches nothing. The stream must
 * be valid for walking (read_stream.c). Fails only with PLIM_NOMEM. */
enum plim_status plim_recorded_classify(struct plim_recorded_stream *stream) PLIM_MUST_CHECK;

#endif
