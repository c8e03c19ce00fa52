/* What a kernel's C++ name tells of its parameters: a launch through a pointer to something that is not
 * const may have written there (shadow.h). And whether it is one of the few that are computed. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H
#define PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H

#include "arithmetic.h"

struct plim_signature {
    bool is_read;     /* what follows */
    int parameters;   /* 0: not known */
    uint32_t written; /* a bit for each of the first 32 that is a pointer to non-const */
    enum plim_arithmetic arithmetic;
};

/* No parameters for a name that is no C++ name. Slow: ask once a kernel. */
struct plim_signature plim_signature_of(const char *mangled);

#endif
