/* A context on one GPU, its stream, and what the driver's results have told about its state.
 *
 * All other files that call the driver on an open device do so through PLIM_CUDA_CALL(), so that each result is
 * interpreted in one place: out of memory is an answer, a sticky error means that the GPU is lost, and the message is
 * kept.
 *
 *     cuda.c                        the device: its table of functions, opening, time, copies
 *     libraries.c                   cuBLASLt and cuDNN, opened at their first use
 *     memory.c, kernel_modules.c    segments and ranges; our kernels
 *     context.c                     this header
 *     driver.c, driver_results.c    libcuda.so.1; the meaning of its results */
#ifndef PLIM_DEVICES_CUDA_CONTEXT_H
#define PLIM_DEVICES_CUDA_CONTEXT_H

#include "devices/device.h"
#include "driver.h"

struct plim_cuda_context {
    const struct plim_cuda_driver *driver;
    CUdevice gpu;
    CUcontext handle;  /* the GPU's primary context, which libraries use as well */
    CUstream stream;   /* all work is enqueued here */
    bool lost;         /* found by a call that returns no status to its caller */
    bool suspect;      /* see plim_device_is_suspect() */
    bool refused;      /* see plim_device_has_refused() */
    char message[PLIM_ERROR_TEXT]; /* of the last failure */
};

/* Opens the GPU with this ordinal into a zeroed context and sets `info`, except the URI and the memory. PLIM_NODEVICE,
 * PLIM_OOM: see plim_cuda_open(). */
enum plim_status plim_cuda_context_open(struct plim_cuda_context *context, int ordinal,
                                        struct plim_device_info *info,
                                        struct plim_error *err) PLIM_MUST_CHECK;
/* A zeroed context, or one that was only partly opened, is allowed. */
void plim_cuda_context_close(struct plim_cuda_context *context);

/* Returns the bytes free on the GPU according to the driver, for any process to allocate; 0 if the driver does not
 * report them. */
int64_t plim_cuda_context_free_bytes(const struct plim_cuda_context *context);

/* Returns the status for `result` of `call` on an open device, and keeps the message. After an unexpected error the
 * context is tested: PLIM_LOST if that fails too. */
enum plim_status plim_cuda_check(struct plim_cuda_context *context, const char *call,
                                 CUresult result) PLIM_MUST_CHECK;

/* The same for a call that requested `asked_bytes`: an ambiguous error counts as out of memory if the request would
 * have left the GPU nearly full. */
enum plim_status plim_cuda_check_allocation(struct plim_cuda_context *context, const char *call,
                                            CUresult result, int64_t asked_bytes) PLIM_MUST_CHECK;

/* The same for a call that returns no status to its caller (freeing memory): if it fails, the device is lost or
 * suspect. */
void plim_cuda_check_release(struct plim_cuda_context *context, const char *call, CUresult result);

/* With fewer bytes free than this, an ambiguous error while code is loaded may really be out of
 * memory (llama.cpp saw error 303 for it). */
#define PLIM_CUDA_NEARLY_FULL_BYTES (INT64_C(1) << 30)

/* Calls a function of the driver and checks its result. */
#define PLIM_CUDA_CALL(context, name, ...)                                                         \
    plim_cuda_check((context), #name, (context)->driver->name(__VA_ARGS__))
#define PLIM_CUDA_RELEASE(context, name, ...)                                                      \
    plim_cuda_check_release((context), #name, (context)->driver->name(__VA_ARGS__))

#endif
