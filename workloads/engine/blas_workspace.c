#include "blas_workspace.h"
#include "devices/needs/needs.h"

static struct storage *workspace(struct engine *e, struct storage **slot, int64_t bytes)
{
    if (*slot || e->halted) return *slot;
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_WORKSPACE);
    *slot = storage_get(e, bytes);
    engine_set_class(e, before);
    return *slot;
}

struct storage *blas_workspace(struct engine *e)
{
    return workspace(e, &e->blas_workspace[e->thread],
                     plim_cublas_workspace_bytes(&e->device->info));
}

struct storage *blaslt_workspace(struct engine *e)
{
    blas_workspace(e);
    return workspace(e, &e->blaslt_workspace[e->thread],
                     plim_cublaslt_workspace_bytes(&e->device->info));
}
