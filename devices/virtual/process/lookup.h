/* Functions of NVIDIA's libraries that a program looks up by name.
 *
 * The virtual GPU provides the functions that the dynamic linker binds, because it is loaded first. Lookups in a
 * particular library with dlsym() would bypass it: Python's ctypes, programs that load CUDA only if it is present, and
 * cuDNN, which finds cuBLASLt this way. Therefore dlsym() is replaced (dlsym.h): it returns the virtual GPU's version
 * of a function of NVIDIA's libraries if there is one.
 *
 * A library that looks up its own functions gets the real ones, and so does the virtual GPU; otherwise cuDNN could not
 * be called at all. */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_LOOKUP_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_LOOKUP_H

#include <stdbool.h>

/* Returns the virtual GPU's version of a function of NVIDIA's libraries, or NULL if there is none. */
void *plim_lookup_own(const char *name);

/* True if the address lies in one of NVIDIA's libraries or in this one. */
bool plim_lookup_is_nvidias(const void *address);

#endif
