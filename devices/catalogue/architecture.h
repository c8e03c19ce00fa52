/* The limits that all GPUs of one compute capability share, and which gpus.yaml therefore omits. */
#ifndef PLIM_DEVICES_ARCHITECTURE_H
#define PLIM_DEVICES_ARCHITECTURE_H

/* Limits of one multiprocessor, except the last field. Shared memory in KiB. */
struct plim_architecture {
    int compute_capability; /* 10 * major + minor: valid from this one on */
    int threads, blocks;    /* resident at a time */
    int shared_kib;
    int shared_block_kib;   /* maximum that a block can opt in to */
};

/* Returns the row of the highest compute capability that is at most the given one; below 6.0 the row of 6.0. Source:
 * the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide. */
const struct plim_architecture *plim_architecture_of(int compute_capability);

#endif
