/* A replacement of dlsym() by the preloaded library: the virtual GPU, or the observer of real ones (devices/observe).
 * Each decides in plim_dlsym_choose() what a program gets. Only for preloaded libraries: everything that is linked with
 * dlsym.c gets this dlsym(). */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_DLSYM_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_DLSYM_H

/* Defined by the library into which dlsym.c is linked. Returns the result of dlsym(handle, name) for the code at
 * `caller`, or NULL to get the C library's. */
void *plim_dlsym_choose(void *handle, const char *name, const void *caller);

/* The C library's own dlsym(). Call plim_dlsym_prepare() before using it. */
extern void *(*plim_dlsym_real)(void *, const char *);
void plim_dlsym_prepare(void);

#endif
