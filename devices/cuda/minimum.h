/* The least that a build's CUDA code runs on, which its toolkit decides (toolkit.h). */
#ifndef PLIM_DEVICES_CUDA_MINIMUM_H
#define PLIM_DEVICES_CUDA_MINIMUM_H

struct plim_cuda_minimum {
    int cuda_version;       /* that the driver runs: 1000 * major + 10 * minor */
    int driver;             /* the first whose drivers do: 580 */
    int compute_capability; /* 10 * major + minor */
};

/* Where there is no CUDA in the build: that of the newest toolkit. */
extern const struct plim_cuda_minimum plim_cuda_minimum;

#endif
