/* The configuration of one launch of PyTorch's reduce_kernel, as far as its scratch memory depends on it
 * (needs/needs.h). */
#ifndef PLIM_DEVICES_REDUCE_LAUNCH_H
#define PLIM_DEVICES_REDUCE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct plim_reduce_launch {
    int64_t outputs, inputs; /* outputs of the launch, inputs of each output; their product is below 2^31 */
    uint8_t partial_bytes;   /* bytes of a partial result: 1 to 32 */
    uint8_t vector;          /* outputs that a thread computes at once: 1, 2 or 4 */
    bool threads_share;      /* neighbouring threads work on the same output */
};

/* True if two launches have the same configuration, apart from the numbers of outputs and inputs. */
static inline bool plim_reduce_launch_is_alike(const struct plim_reduce_launch *a, const struct plim_reduce_launch *b)
{
    return a->partial_bytes == b->partial_bytes && a->vector == b->vector && a->threads_share == b->threads_share;
}

#endif
