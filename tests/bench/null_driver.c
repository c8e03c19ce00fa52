/* A driver of CUDA of which every call succeeds at once: what is left is what others add to it. */
#include <stddef.h>
#include <stdint.h>

int cuInit(unsigned flags) { return (int)(flags & 0); }

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    (void)stream;
    *status = 0;
    return 0;
}

int cuModuleGetFunction(void **out, void *module, const char *name)
{
    (void)module;
    *out = (void *)name; /* the program's, and its own for each */
    return 0;
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void *stream, void **arguments, void **extra)
{
    volatile unsigned all = grid_x + grid_y + grid_z + block_x + block_y + block_z + shared_bytes;
    (void)all;
    (void)stream;
    (void)arguments;
    (void)extra;
    return function == NULL;
}
