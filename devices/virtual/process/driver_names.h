/* The driver's entry points by name, for programs that look them up at run time. */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_DRIVER_NAMES_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_DRIVER_NAMES_H

/* The N of the "..._vN" that a program built for this CUDA version (12080) means by a plain name: the newest
 * that the version had. 1 is the plain name itself; 0: the version had no function of that name yet. */
int plim_driver_name_number(const char *name, int cuda_version);

/* The function that it means. NULL: not supported. */
void *plim_driver_function(const char *name, int cuda_version);

#endif
