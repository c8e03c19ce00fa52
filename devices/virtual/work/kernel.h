/* Kernels that a program registers, found by the host function that stands for them, and what is known about them
 * without reading their code. */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_KERNEL_H
#define PLIM_DEVICES_VIRTUAL_WORK_KERNEL_H

#include "devices/virtual/steps/steps_class.h"
#include "devices/virtual/values/family.h"
#include "signature.h"
#include <stddef.h>

struct plim_fat_binary;

struct plim_kernel {
    const void *host; /* NULL: loaded through the driver */
    const char *name; /* mangled; owned by the program */
    struct plim_fat_binary *module; /* NULL: unknown */
    struct plim_signature signature; /* this and the next two fields are read when the kernel is first launched */
    const struct plim_plan *plan;    /* NULL: not in a supported family */
    bool is_planned;
    bool is_named;  /* the following fields are valid; they are derived from the name when first needed */
    uint64_t token;
    enum plim_steps_class steps_class;
};

void plim_kernel_register(const void *host, const char *name, struct plim_fat_binary *module);
struct plim_kernel *plim_kernel_find(const void *host); /* NULL if not registered */

/* Derived from the name: a token that is the same in every process of the program, and the class. For NULL, 0 and
 * PLIM_STEPS_PLAIN. */
uint64_t plim_kernel_token(struct plim_kernel *kernel);
enum plim_steps_class plim_kernel_class(struct plim_kernel *kernel);

#endif
