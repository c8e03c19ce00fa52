/* The driver's entry points by name, for programs that ask for them at run time. */
#ifndef PLIM_DEVICES_VIRTUAL_DRIVER_DRIVER_LOOKUP_H
#define PLIM_DEVICES_VIRTUAL_DRIVER_DRIVER_LOOKUP_H

/* The function that a program built for this CUDA version (12080) means by a plain name: the newest
 * "..._vN" that this version had. NULL: nobody answers it. */
void *plim_driver_function(const char *name, int cuda_version);

#endif
