/* cuFFT, cuSPARSE and cuSOLVER: plans, handles and descriptors are stored; a computing function is a launch whose
 * results are unknown. Only the libraries know the sizes of their workspaces, and only on a GPU: they are estimated,
 * and a note says so. All other functions of these libraries are listed in names/. */
#ifndef PLIM_DEVICES_VIRTUAL_MATH_LIBRARY_H
#define PLIM_DEVICES_VIRTUAL_MATH_LIBRARY_H

#include "devices/virtual/process/unsupported.h"
#include "devices/virtual/work/launches.h"

/* Status codes shared by cuSPARSE and cuSOLVER. */
enum plim_math_status {
    MATH_OK, MATH_NOT_INITIALIZED, MATH_ALLOC_FAILED, MATH_INVALID_VALUE, MATH_EXECUTION_FAILED = 6,
};

/* Their handles, created for the current GPU; `note` is shown once. MATH_NOT_INITIALIZED for a NULL handle. */
int plim_math_create(void **out, const char *note);
int plim_math_destroy(struct plim_handle *handle);
int plim_math_set_stream(struct plim_handle *handle, void *stream);
int plim_math_get_stream(const struct plim_handle *handle, void **stream);

#define PLIM_MATH_HANDLE(prefix, note)                                                             \
    ANSWER int prefix##Create(void **out) { return plim_math_create(out, note); }                  \
    ANSWER int prefix##Destroy(struct plim_handle *handle) { return plim_math_destroy(handle); }   \
    ANSWER int prefix##SetStream(struct plim_handle *handle, void *stream)                         \
    {                                                                                              \
        return plim_math_set_stream(handle, stream);                                               \
    }                                                                                              \
    ANSWER int prefix##GetStream(const struct plim_handle *handle, void **stream)                  \
    {                                                                                              \
        return plim_math_get_stream(handle, stream);                                               \
    }

/* plim_version_property(), with the version of CUDA 13.0 as default. Returns 0 or MATH_INVALID_VALUE. */
int plim_math_property(const char *library, const char *function, int property, int *value);

#define PLIM_MATH_PROPERTY(prefix)                                                                 \
    ANSWER int prefix##GetProperty(int property, int *value)                                       \
    {                                                                                              \
        return plim_math_property("lib" #prefix ".so", #prefix "GetProperty", property, value);    \
    }                                                                                              \
    static int prefix##_version(int *version)                                                      \
    {                                                                                              \
        int part[3];                                                                               \
        if (!version) return MATH_INVALID_VALUE;                                                   \
        for (int i = 0; i < 3; i++) prefix##GetProperty(i, &part[i]);                              \
        *version = part[0] * 1000 + part[1] * 100 + part[2];                                       \
        return MATH_OK;                                                                            \
    }

/* Launches `what` with `count` operands, of which it writes the last `written` and reads the others. Returns a CUDA
 * error code. */
int plim_math_launch(void *stream, const char *what, const void *const *operands, size_t count, size_t written);

#endif
