#include "blas_workspace.h"
#include "devices/needs/needs.h"

static struct storage *get(struct engine *e, int64_t bytes)
{
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_WORKSPACE);
    struct storage *workspace = e->halted ? NULL : storage_get(e, bytes);
    engine_set_class(e, before);
    return workspace;
}

struct storage *blas_workspace_acquire(struct engine *e, bool is_lt)
{
    const struct plim_device_info *info = &e->device->info;
    int64_t bytes = plim_cublas_workspace_bytes(info, e->torch_2_15);
    int64_t lt_bytes = plim_cublaslt_workspace_bytes(info);
    if (e->torch_2_15) return get(e, is_lt ? lt_bytes : bytes);
    struct storage **blas = &e->blas_workspace[e->stream][e->thread],
                   **lt = &e->blaslt_workspace[e->stream][e->thread];
    if (!*blas) *blas = get(e, bytes);
    if (is_lt && !*lt) *lt = get(e, lt_bytes);
    return is_lt ? *lt : *blas;
}

void blas_workspace_release(struct engine *e, struct storage *workspace)
{
    if (e->torch_2_15 && workspace) storage_put(e, workspace);
}
