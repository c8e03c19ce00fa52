/* What every GPU of a compute capability has, and no GPU's row in gpus.yaml therefore. */
#ifndef PLIM_DEVICES_ARCHITECTURE_H
#define PLIM_DEVICES_ARCHITECTURE_H

/* Of one multiprocessor, but for the last. Shared memory in KiB. */
struct plim_architecture {
    int compute_capability; /* 10 * major + minor: from this one on */
    int threads, blocks;    /* that it can hold */
    int shared_kib;
    int shared_block_kib;   /* what one block can opt in to */
};

/* That of the nearest compute capability that is not above; for older ones than 6.0 that of 6.0. From
 * the table "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide. */
const struct plim_architecture *plim_architecture_of(int compute_capability);

#endif
