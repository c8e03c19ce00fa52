/* dlsym(), answered by the library that is preloaded: the virtual GPU, or the observer of real ones
 * (devices/observe). Each says in plim_dlsym_choose() what a program gets. Only for libraries that are
 * preloaded: whatever is linked with dlsym.c has this dlsym().
 */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_DLSYM_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_DLSYM_H

/* Of the library that dlsym.c is linked into: what dlsym(handle, name) has to return to the code at
 * `caller`; NULL: what the C library says. */
void *plim_dlsym_choose(void *handle, const char *name, const void *caller);

/* The C library's own dlsym(); to be prepared before it is used. */
extern void *(*plim_dlsym_real)(void *, const char *);
void plim_dlsym_prepare(void);

#endif
