/* Functions that a program asks for by name: dlsym().
 *
 * The virtual GPU answers what the dynamic linker binds, because it is loaded first. What is looked
 * up in one library with dlsym() would pass it by: Python's ctypes, programs that load CUDA only
 * where there is one, and cuDNN, which looks for cuBLASLt so. dlsym() is therefore answered here: a
 * function of NVIDIA's libraries that the virtual GPU answers is given from there.
 *
 * A library that looks into its own parts gets what it looks for, and so does this one; without
 * that cuDNN could not be asked anything.
 */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_LOOKUP_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_LOOKUP_H

#include <stdbool.h>

/* Of the library that this is linked into (lookup_virtual.c, devices/observe): what
 * dlsym(handle, name) has to return to the code at `caller`; NULL: what the C library says. */
void *plim_lookup_choose(void *handle, const char *name, const void *caller);

/* The C library's own dlsym(); to be prepared before it is used. */
extern void *(*plim_lookup_real)(void *, const char *);
void plim_lookup_prepare(void);

/* --- lookup_virtual.c ------------------------------------------------------------------------- */

/* The virtual GPU's own answer to a function of NVIDIA's libraries; NULL: it has none. */
void *plim_lookup_own(const char *name);

/* Does the address lie in one of NVIDIA's libraries, or in this one? */
bool plim_lookup_is_nvidias(const void *address);

#endif
