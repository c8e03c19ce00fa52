/* Which of NVIDIA's libraries the program has loaded, where an answer depends on it. The libraries
 * themselves stay where they are and are asked: their version functions need no GPU.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_VERSION_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_VERSION_H

#include <stdbool.h>

/* The first loaded library whose file name begins with `name` ("libcudart.so"), as dlopen() gives
 * it; NULL: none is loaded. Never closed. */
void *plim_version_library(const char *name);

/* What the loaded library of this name says of itself through its ...GetProperty, `function`:
 * libraryPropertyType 0 major, 1 minor, 2 patch level. Where none is loaded, or it does not say:
 * `newest`. False: another property, or no place for the answer. */
bool plim_version_property(const char *library, const char *function, const int newest[3],
                           int property, int *value);

/* As CUDA counts: 11080, 12090, 13000. Without any runtime the newest that is answered. */
int plim_version_runtime(void);

/* Is there one, loaded or linked into the program? */
bool plim_version_has_runtime(void);

/* Of a runtime that is linked into the program (linked.c); 0: none is. */
extern int plim_version_linked;

/* cuDNN 9 numbers its statuses anew; without any, those of 9 are given. */
bool plim_version_is_cudnn8(void);

/* The oldest runtime that is answered; the driver that the virtual machine plays: the newest. */
enum { PLIM_VERSION_OLDEST = 11080, PLIM_VERSION_DRIVER = 13000 };

#endif
