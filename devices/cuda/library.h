/* NVIDIA's libraries, loaded at run time: no CUDA library is linked, so the same executable starts on a machine without
 * any of them.
 *
 * Places, in order; the first that has the file is used:
 *
 *   $PLIMSOLL_CUDA_PATH                       the folder itself, its lib64, its lib
 *   $VIRTUAL_ENV, $CONDA_PREFIX               lib/python3*'s site-packages/nvidia: cudnn/lib, nccl/lib,
 *                                             and cu13/lib, of 12.x cublas/lib: those that PyTorch
 *                                             loads there
 *   $CUDNN_PATH, $CUDA_HOME, $CUDA_PATH       lib64, lib
 *   /usr/local/cuda, then the folders of the  lib64, the newest first
 *     toolkit's major version (toolkit.h)
 *   the loader's own path                     by soname
 *   $CONDA_PREFIX                             lib
 *
 * A variable with a relative path is ignored, as are all of them if the program has more rights than its caller. The
 * superuser loads no file from these places that others can change: the file and all folders above it must belong to
 * root.
 *
 * Loading cuBLASLt takes 60 to 200 ms, so open these libraries when they are needed, not at start. */
#ifndef PLIM_DEVICES_CUDA_LIBRARY_H
#define PLIM_DEVICES_CUDA_LIBRARY_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/* A library to look for. Versions are 10000 major + 100 minor + patch, as in all these libraries. */
struct plim_cuda_library_spec {
    const char *name;           /* for messages: "cuDNN" */
    const char *soname;         /* "libcudnn.so.9" */
    const char *version_symbol; /* a function size_t (void) */
    bool version_is_stored;     /* the function is int (int *version) instead */
    size_t least_version;
    const char *help; /* how to install it */
};

extern const struct plim_cuda_library_spec plim_cuda_library_cublaslt, plim_cuda_library_cudnn,
    plim_cuda_library_nccl;

struct plim_cuda_library {
    void *handle;
    size_t version;
    char path[512]; /* the file that was loaded */
};

/* PLIM_NODEVICE if the library is not found, is too old or does not load: `err` tells in one line what was looked for,
 * where, and what helps. */
enum plim_status plim_cuda_library_open(const struct plim_cuda_library_spec *spec,
                                        struct plim_cuda_library *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;
/* NULL and zeroed are allowed. Do not call this after a handle of the library was created: the library has then
 * registered itself with the driver and must stay loaded until the process ends. */
void plim_cuda_library_close(struct plim_cuda_library *library);

/* Looks up functions by name and stores them in a struct of function pointers. */
struct plim_cuda_library_symbol {
    const char *name;
    size_t offset; /* of the pointer in `functions` */
};
enum plim_status plim_cuda_library_resolve(const struct plim_cuda_library *library,
                                           const struct plim_cuda_library_symbol *symbols,
                                           size_t count, void *functions,
                                           struct plim_error *err) PLIM_MUST_CHECK;

/* Returns "libcudnn.so.9.19.0": the name, with links resolved, of the file that would be loaded, found without loading
 * it: the loader's own path is assumed to be LD_LIBRARY_PATH and the usual system folders. "": not found. Returns
 * `out`. */
char *plim_cuda_library_file(const struct plim_cuda_library_spec *spec, char *out, size_t size);

/* Returns "cuDNN 9.19.0 (/usr/local/cuda/lib64/libcudnn.so.9)", or why there is none. Loads the library, and leaves it
 * loaded: libraries that contain C++ leak memory when unloaded. Returns `out`, always terminated. */
char *plim_cuda_library_text(const struct plim_cuda_library_spec *spec, char *out, size_t size);

#endif
