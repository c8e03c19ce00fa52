/* Functions of NVIDIA's libraries that a program asks for by name.
 *
 * The virtual GPU answers what the dynamic linker binds, because it is loaded first. What is looked
 * up in one library with dlsym() would pass it by: Python's ctypes, programs that load CUDA only
 * where there is one, and cuDNN, which looks for cuBLASLt so. dlsym() is therefore answered (dlsym.h):
 * a function of NVIDIA's libraries that the virtual GPU answers is given from there.
 *
 * A library that looks into its own parts gets what it looks for, and so does this one; without
 * that cuDNN could not be asked anything.
 */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_LOOKUP_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_LOOKUP_H

#include <stdbool.h>

/* The virtual GPU's own answer to a function of NVIDIA's libraries; NULL: it has none. */
void *plim_lookup_own(const char *name);

/* Does the address lie in one of NVIDIA's libraries, or in this one? */
bool plim_lookup_is_nvidias(const void *address);

#endif
