/* Finds entry points of the driver by name, for programs that look them up at run time. */
#ifndef PLIM_DEVICES_VIRTUAL_PROCESS_DRIVER_NAMES_H
#define PLIM_DEVICES_VIRTUAL_PROCESS_DRIVER_NAMES_H

/* Returns the N of the function "..._vN" that a program built for this CUDA version (such as 12080) means by the plain
 * name: the newest that the version had. 1 is the plain name itself; 0: that version had no such function. */
int plim_driver_name_number(const char *name, int cuda_version);

/* Returns the function that the program means, or NULL if it is not supported. */
void *plim_driver_function(const char *name, int cuda_version);

#endif
