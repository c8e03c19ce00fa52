/* What the files of the runtime share. */
#ifndef PLIM_DEVICES_VIRTUAL_RUNTIME_H
#define PLIM_DEVICES_VIRTUAL_RUNTIME_H

#include "devices/virtual/self.h"

/* The name with which a program calls that was compiled for per-thread default streams. */
#define PER_THREAD(function, suffix)                                                               \
    ANSWER extern __typeof__(function) function##suffix __attribute__((alias(#function)));

const char *plim_error_text(int error);
const char *plim_error_driver_name(int error);

#endif
