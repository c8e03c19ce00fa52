/* The parameters of a kernel, read from its C++ name. They tell where a launch may have written if nothing else is
 * known about it (launches.h). */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H
#define PLIM_DEVICES_VIRTUAL_WORK_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

/* Each bit mask covers the first 32 parameters. */
struct plim_signature {
    bool is_read;        /* the following fields are valid */
    int parameters;      /* 0: unknown */
    uint32_t written;    /* pointers to non-const, and arrays of pointers, whose first is the output */
    uint32_t read;       /* pointers to const, and structures that start with one */
    uint32_t structures; /* passed by value and may contain pointers */
    uint16_t structure_bytes[32]; /* end of the pointers in a structure or array, or an upper bound; 0: unknown */
};

/* Returns the signature; no parameters if it is not a C++ name. Slow: call it once per kernel. */
struct plim_signature plim_signature_of(const char *mangled);

/* Returns the demangled name, allocated with malloc, or NULL if it is not a C++ name. */
char *plim_signature_text(const char *mangled);

#endif
