/* The minimum requirements of this build's CUDA code, which depend on its toolkit (toolkit.h). */
#ifndef PLIM_DEVICES_CUDA_MINIMUM_H
#define PLIM_DEVICES_CUDA_MINIMUM_H

struct plim_cuda_minimum {
    int cuda_version;       /* that the driver must support: 1000 * major + 10 * minor */
    int driver;             /* the first driver branch that supports it: 580 */
    int compute_capability; /* 10 * major + minor */
};

/* In a build without CUDA: the minimum of the newest toolkit. */
extern const struct plim_cuda_minimum plim_cuda_minimum;

#endif
