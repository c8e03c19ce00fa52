/* Which of NVIDIA's libraries the program has loaded, where a result depends on it. The libraries stay loaded and are
 * queried themselves: their version functions need no GPU. */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_VERSION_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_VERSION_H

#include <stdbool.h>

/* Returns a handle (as of dlopen()) to the first loaded library whose file name starts with `name` ("libcudart.so"), or
 * NULL. It is never closed. */
void *plim_version_library(const char *name);

/* Stores a property of the loaded library, obtained from its function `function` (...GetProperty). libraryPropertyType:
 * 0 major, 1 minor, 2 patch level. Stores the value of `newest` if the library is not loaded or does not tell. Returns
 * false for any other property, or if `value` is NULL. */
bool plim_version_property(const char *library, const char *function, const int newest[3],
                           int property, int *value);

/* Returns the version of the runtime as CUDA counts (11080, 12090, 13000); without a runtime, the newest supported
 * one. */
int plim_version_runtime(void);

/* True if a runtime is loaded or linked into the program. */
bool plim_version_has_runtime(void);

/* Version of a runtime that is linked into the program (linked.c); 0 if none is. */
extern int plim_version_linked;

/* True if cuDNN 8 is loaded. cuDNN 9 renumbered its status codes; without cuDNN those of 9 are used. */
bool plim_version_is_cudnn8(void);

/* The oldest supported runtime, and the driver version that the virtual machine reports, which is the newest. */
enum { PLIM_VERSION_OLDEST = 11080, PLIM_VERSION_DRIVER = 13000 };

#endif
