/* What the wrappers of NVIDIA's libraries need from the device they run on. Provided by the device, or by tests. */
#ifndef PLIM_DEVICES_CUDA_LIB_HOST_H
#define PLIM_DEVICES_CUDA_LIB_HOST_H

#include "autotune/base/status.h"
#include "devices/op.h"
#include "memo.h"

struct CUstream_st; /* the driver's stream; the runtime's cudaStream_t is the same */

struct plim_lib_host {
    struct CUstream_st *stream;

    /* Enqueues an operation that our own kernels compute: FILL, COPY, BINARY. */
    enum plim_status (*launch)(void *user, const struct plim_op *op);

    /* Libraries report a failed launch or a module that did not load with the same code as a broken GPU. The driver can
     * distinguish these: PLIM_OK, the context is sound and memory is free; PLIM_OOM, it is sound and almost no memory
     * is free; PLIM_LOST, it is broken. */
    enum plim_status (*driver_view)(void *user);
    void *user;
    const struct plim_memo *memo; /* earlier results of the libraries; NULL: none are kept */
};

#endif
