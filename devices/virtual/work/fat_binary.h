/* Fat binaries, the modules of the driver: for which compute capabilities there is code. A GPU that
 * none of it is for gives GPU_NO_BINARY, as the real one.
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_FAT_BINARY_H
#define PLIM_DEVICES_VIRTUAL_WORK_FAT_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The compute capabilities that it has machine code and PTX for, in bits: bit i is for
 * i = 10 * major + minor, as 80. */
struct plim_fat_binary {
    const void *image;
    size_t bytes;
    bool is_read; /* what follows; headers are looked at when a kernel is first launched */
    bool unknown; /* not a format that is understood: taken to fit every GPU */
    uint64_t binaries[3], ptx[3];
};

/* `image` is what nvcc's constructors hand over (a wrapper) or what a driver loads (a fat binary, an
 * ELF file, or PTX text), `bytes` of it or PLIM_UNKNOWN_BYTES (readable.h). Nothing outside of it is
 * read: a cut one is `unknown`. NULL: out of memory. Never freed: programs keep kernels. */
struct plim_fat_binary *plim_fat_binary_read(const void *image, size_t bytes);

/* The compute capability of the code that the GPU would run, 80 on an 86 where that is the nearest;
 * 0: there is none. That of the GPU for NULL. */
int plim_fat_binary_code(struct plim_fat_binary *binary, int compute_capability);

#endif
