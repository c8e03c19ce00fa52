/* What a kernel's C++ name tells of its parameters: where a launch may have written, if nothing
 * else is known of it (launches.h). */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H
#define PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

/* A bit for each of the first 32 parameters. */
struct plim_signature {
    bool is_read;        /* what follows */
    int parameters;      /* 0: not known */
    uint32_t written;    /* pointers to non-const, and arrays of pointers, the output first */
    uint32_t read;       /* pointers to const, and layouts that begin with one */
    uint32_t structures; /* passed by value: there may be pointers in them */
    uint16_t structure_bytes[32]; /* where the pointers in each end, in arrays too, or no less; 0: not known */
};

/* No parameters for a name that is no C++ name. Slow: ask once a kernel. */
struct plim_signature plim_signature_of(const char *mangled);

/* The name as C++ writes it; malloc'd, NULL for one that is no C++ name. */
char *plim_signature_text(const char *mangled);

#endif
