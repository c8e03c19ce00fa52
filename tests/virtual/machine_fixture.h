/* A virtual machine in the test's own process: what the program under exec sees. */
#ifndef PLIM_TESTS_VIRTUAL_MACHINE_FIXTURE_H
#define PLIM_TESTS_VIRTUAL_MACHINE_FIXTURE_H

#include "devices/catalogue/catalogue.h"
#include "devices/virtual/machine/machine.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct plim_machine *machine;
static int machine_fd;

/* `count` GPUs of this name, with so much memory each. To be called before anything of the virtual
 * GPU: it looks for its machine once. */
static inline void make_machine(const char *name, int count, int64_t bytes)
{
    struct plim_machine_gpu gpus[PLIM_MACHINE_GPUS];
    const struct plim_gpu *gpu;
    char path[64];
    cr_assert(!plim_catalogue_find(name, &gpu, NULL));
    for (int i = 0; i < count; i++) {
        plim_machine_gpu_fill(&gpus[i], gpu, i);
        gpus[i].total_bytes = bytes;
    }
    machine = plim_machine_create(gpus, count, &machine_fd, path);
    cr_assert(machine != NULL);
    setenv(PLIM_MACHINE_VARIABLE, path, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

#endif
