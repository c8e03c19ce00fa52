/* Which of NVIDIA's libraries the program has loaded, where an answer depends on it. The libraries
 * themselves stay loaded and are asked: their version functions need no GPU.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_VERSION_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_VERSION_H

#include <stdbool.h>

/* The first loaded library whose file name begins with `name` ("libcudart.so"), as dlopen() gives
 * it; NULL: none is loaded. Never closed. */
void *plim_version_library(const char *name);

/* The version of the loaded library of this name, from its function `function` (...GetProperty):
 * libraryPropertyType 0 major, 1 minor, 2 patch level. `newest` where none is loaded, or where it does
 * not say. False: another property, or `value` is NULL. */
bool plim_version_property(const char *library, const char *function, const int newest[3],
                           int property, int *value);

/* The runtime's version as CUDA counts: 11080, 12090, 13000. Without a runtime: the newest supported one. */
int plim_version_runtime(void);

/* Is there a runtime, loaded or linked into the program? */
bool plim_version_has_runtime(void);

/* The version of a runtime that is linked into the program (linked.c); 0: none is. */
extern int plim_version_linked;

/* Is the loaded cuDNN version 8? cuDNN 9 renumbered its statuses; without cuDNN those of 9 are used. */
bool plim_version_is_cudnn8(void);

/* The oldest supported runtime; the version of the driver that the virtual machine simulates: the newest. */
enum { PLIM_VERSION_OLDEST = 11080, PLIM_VERSION_DRIVER = 13000 };

#endif
