/* Fat binaries, the modules of the driver: the compute capabilities for which they contain code. A GPU without matching
 * code gives GPU_NO_BINARY, like a real one. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_FAT_BINARY_H
#define PLIM_DEVICES_VIRTUAL_WORK_FAT_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `binaries` and `ptx` are bit masks of the compute capabilities for which there is machine code and PTX; bit i stands
 * for i = 10 * major + minor, such as 80. */
struct plim_fat_binary {
    const void *image;
    size_t bytes;
    bool is_read; /* the following fields are valid; headers are read when a kernel is first launched */
    bool unknown; /* the format is not recognised; assumed to fit every GPU */
    uint64_t binaries[3], ptx[3];
};

/* `image` is what nvcc's constructors pass (a wrapper) or what a driver loads (a fat binary, an ELF file or PTX text),
 * of `bytes` bytes or PLIM_UNKNOWN_BYTES (readable.h). Nothing outside it is read; a truncated image is `unknown`.
 * Returns NULL if out of memory. Never freed, as programs keep kernels. */
struct plim_fat_binary *plim_fat_binary_read(const void *image, size_t bytes);

/* Returns the compute capability of the code that the GPU would run, for example 80 on an 86 if that is the nearest; 0
 * if there is none. Without a binary (NULL), returns the GPU's own. */
int plim_fat_binary_code(struct plim_fat_binary *binary, int compute_capability);

#endif
