/* The fat binaries of our kernels, embedded in the executable (scripts/embed_images.py). */
#ifndef PLIM_DEVICES_CUDA_IMAGES_H
#define PLIM_DEVICES_CUDA_IMAGES_H

#include <stddef.h>

struct plim_cuda_image {
    const char *name; /* without folders: "softmax.fatbin" */
    const unsigned char *data;
    const char *const *kernels; /* their names, terminated by NULL */
};

extern const struct plim_cuda_image plim_cuda_images[];
extern const size_t plim_cuda_image_count;

#endif
