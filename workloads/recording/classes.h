/* What the blocks of a recording are for, found by how long they live and by who launches meanwhile.
 *
 * Autograd launches from a thread of its own, which a recording says of each launch. So of a step
 *
 *     gradients     are allocated while autograd launches, and are still there when it has ended;
 *     activations   are allocated before, and are there when it launches: what forward saved, and what the
 *                   program itself still holds;
 *     temporaries   are what else a step allocates and frees;
 *
 * and of what stays from step to step
 *
 *     parameters    are blocks of the gradients' sizes, each gradient one, the first of each size; with them what
 *                   was made between them and before (frozen weights, buffers);
 *     optimizer     are blocks made after those, of a gradient's size, as many for each as most have, or of
 *                   a half, quarter, twice or four times it (another type);
 *     other         is all the rest (buckets, a library's workspaces), and everything where one gradient in
 *                   ten finds no block of its size (gradients that stay, or are shards): that is not known.
 *
 * What checkpointing computes again is autograd's, and counts as temporaries. It is an inference, and reports say so;
 * how many bytes there are in all is not.
 */
#ifndef PLIM_WORKLOADS_RECORDING_CLASSES_H
#define PLIM_WORKLOADS_RECORDING_CLASSES_H

#include "recording.h"

/* Fills in `memory_class` of a stream's allocations, and `is_classified`; where autograd launches
 * nothing that is left false. The stream can be walked (read_stream.c). PLIM_NOMEM is the only failure. */
enum plim_status plim_recorded_classify(struct plim_recorded_stream *stream) PLIM_MUST_CHECK;

#endif
