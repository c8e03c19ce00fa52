/* Which of NVIDIA's libraries the program has loaded, where an answer depends on it. The libraries
 * themselves stay where they are and are asked: their version functions need no GPU.
 */
#ifndef PLIM_DEVICES_VIRTUAL_VERSION_H
#define PLIM_DEVICES_VIRTUAL_VERSION_H

/* The first loaded library whose file name begins with `name` ("libcudart.so"), as dlopen() gives
 * it; NULL: none is loaded. Never closed. */
void *plim_version_library(const char *name);

/* As CUDA counts: 11080, 12090, 13000. Without a shared runtime the newest that is answered. */
int plim_version_runtime(void);

/* The driver that the virtual machine plays: the newest that is answered. */
enum { PLIM_VERSION_DRIVER = 13000 };

#endif
