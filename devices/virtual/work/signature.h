/* The parameters of a kernel, from its C++ name: they tell where a launch may have written, if nothing
 * else is known about it (launches.h). */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H
#define PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

/* A bit for each of the first 32 parameters. */
struct plim_signature {
    bool is_read;        /* the next fields are valid */
    int parameters;      /* 0: not known */
    uint32_t written;    /* pointers to non-const, and arrays of pointers, the output first */
    uint32_t read;       /* pointers to const, and layouts that begin with one */
    uint32_t structures; /* passed by value: there may be pointers in them */
    uint16_t structure_bytes[32]; /* pointers in a structure or array end at this offset or before; 0: not known */
};

/* No parameters for a name that is not a C++ name. Slow: call it once for each kernel. */
struct plim_signature plim_signature_of(const char *mangled);

/* The demangled name, malloc'd; NULL if it is not a C++ name. */
char *plim_signature_text(const char *mangled);

#endif
