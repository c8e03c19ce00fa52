/* For bench_values.py: what kernels make of values is neither worked out nor followed. Linked over the virtual
 * GPU's own by --wrap. */
#include "devices/virtual/values/family.h"
#include "devices/virtual/work/writes.h"

bool __wrap_plim_family_run(const struct plim_plan *plan, const char *kernel,
                            const struct gpu_dim3 *grid, void *const *arguments);
void __wrap_plim_writes_spoil(const uintptr_t *written, size_t count, const char *writer);

bool __wrap_plim_family_run(const struct plim_plan *plan, const char *kernel,
                            const struct gpu_dim3 *grid, void *const *arguments)
{
    (void)plan, (void)kernel, (void)grid, (void)arguments;
    return true;
}

void __wrap_plim_writes_spoil(const uintptr_t *written, size_t count, const char *writer)
{
    (void)written, (void)count, (void)writer;
}
