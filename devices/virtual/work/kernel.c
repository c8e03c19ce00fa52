#include "kernel.h"
#include "devices/virtual/machine/self.h"
#include "devices/virtual/steps/token.h"
#include <stdlib.h>

/* Hash table with open addressing; PyTorch registers some ten thousand kernels. */
static struct {
    struct plim_kernel **slots;
    size_t size, count;
} kernels;

static size_t slot_of(const void *host, size_t size)
{
    return (size_t)(((uint64_t)(uintptr_t)host >> 3) * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
}

static struct plim_kernel **find_slot(struct plim_kernel **slots, size_t size, const void *host)
{
    size_t i = slot_of(host, size);
    while (slots[i] && slots[i]->host != host) i = (i + 1) & (size - 1);
    return &slots[i];
}

static bool grow(void)
{
    size_t size = kernels.size ? 2 * kernels.size : 4096;
    struct plim_kernel **slots = calloc(size, sizeof(*slots));
    if (!slots) return false;
    for (size_t i = 0; i < kernels.size; i++)
        if (kernels.slots[i]) *find_slot(slots, size, kernels.slots[i]->host) = kernels.slots[i];
    free(kernels.slots);
    kernels.slots = slots;
    kernels.size = size;
    return true;
}

void plim_kernel_register(const void *host, const char *name, struct plim_fat_binary *module)
{
    plim_self_lock();
    if (2 * kernels.count >= kernels.size && !grow()) {
        plim_self_unlock();
        return;
    }
    struct plim_kernel **slot = find_slot(kernels.slots, kernels.size, host);
    if (!*slot) {
        *slot = calloc(1, sizeof(**slot));
        kernels.count += *slot != NULL;
    }
    if (*slot) **slot = (struct plim_kernel){.host = host, .name = name, .module = module};
    plim_self_unlock();
}

struct plim_kernel *plim_kernel_find(const void *host)
{
    plim_self_lock();
    struct plim_kernel *kernel =
        kernels.size ? *find_slot(kernels.slots, kernels.size, host) : NULL;
    plim_self_unlock();
    return kernel;
}

/* --- names ------------------------------------------------------------------------------------ */

static void read_name(struct plim_kernel *kernel)
{
    kernel->token = plim_token_of(kernel->name);
    kernel->steps_class = plim_steps_classify(kernel->name);
    kernel->is_named = true;
}

uint64_t plim_kernel_token(struct plim_kernel *kernel)
{
    if (kernel && !kernel->is_named) read_name(kernel);
    return kernel ? kernel->token : 0;
}

enum plim_steps_class plim_kernel_class(struct plim_kernel *kernel)
{
    if (kernel && !kernel->is_named) read_name(kernel);
    return kernel ? kernel->steps_class : PLIM_STEPS_PLAIN;
}
