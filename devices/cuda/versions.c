#include "devices/cuda/cuda.h"

#include "devices/cuda/driver.h"
#include "devices/cuda/library.h"
#include <stdio.h>
#include <string.h>

static char *driver_text(char *out, size_t size)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_cuda_driver *driver;
    if (plim_cuda_driver_load(&driver, &err) == PLIM_OK)
        snprintf(out, size, "driver for CUDA %d.%d (%s)", driver->version / 1000,
                 driver->version % 1000 / 10, driver->path);
    else
        snprintf(out, size, "%s", err.text);
    return out;
}

static char *cublaslt_text(char *out, size_t size)
{
    return plim_cuda_library_text(&plim_cuda_library_cublaslt, out, size);
}

static char *cudnn_text(char *out, size_t size)
{
    return plim_cuda_library_text(&plim_cuda_library_cudnn, out, size);
}

/* One line each. */
static char *(*const parts[])(char *out, size_t size) = {driver_text, cublaslt_text, cudnn_text};

char *plim_cuda_versions_text(char *out, size_t size)
{
    char line[600];
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s\n", parts[i](line, sizeof(line)));
    return out;
}
