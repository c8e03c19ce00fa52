/* What the files of the `cuda` device share. They call downwards only:
 *
 *     cuda.c                          the device: its table of functions, opening, time, copies
 *     libraries.c                     cuBLASLt and cuDNN, opened at their first use
 *     context.c, memory.c, module.c   the context; segments and ranges; our kernels
 *     settle.c                        what a result of the driver means for an open device
 */
#ifndef PLIM_DEVICES_CUDA_INTERNAL_H
#define PLIM_DEVICES_CUDA_INTERNAL_H

#include "autotune/base/array.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/libcuda.h"

struct plim_cuda_libraries; /* cuBLASLt and cuDNN with their plans */

/* A piece of device memory, or of device addresses. */
struct plim_cuda_extent {
    uint64_t address;
    int64_t bytes;
};

/* Physical memory mapped at an address. */
struct plim_cuda_chunk {
    uint64_t address;
    int64_t bytes;
    CUmemGenericAllocationHandle handle;
};

struct plim_cuda_memory {
    int64_t capacity_bytes; /* no more than this is held, whatever the GPU has left */
    int64_t held_bytes;     /* segments, rounded as the driver does, and chunks */
    int64_t free_bytes_at_open;
    int64_t granularity_bytes; /* of physical memory; 0: this GPU cannot map pages */
    bool spills; /* Windows' driver moves a full GPU's memory to the host instead of failing */
    PLIM_ARRAY(struct plim_cuda_extent) segments; /* sorted by address, as all three */
    PLIM_ARRAY(struct plim_cuda_extent) ranges;
    PLIM_ARRAY(struct plim_cuda_chunk) chunks;
};

struct plim_cuda_function {
    const char *name;
    CUfunction function;
};

struct plim_cuda_modules {
    CUmodule *loaded; /* one for each image, NULL while it is not loaded */
    PLIM_ARRAY(struct plim_cuda_function) functions;
};

struct plim_cuda {
    struct plim_device device; /* first: the head of every device */
    const struct plim_cuda_driver *driver;
    CUdevice gpu;
    CUcontext context; /* the GPU's primary one, which libraries use as well */
    CUstream stream;   /* all work goes here */
    CUevent marks[2];  /* marks[last] was recorded when time was asked for the last time */
    int last;
    double seconds; /* between open and marks[last] */
    struct plim_cuda_memory memory;
    struct plim_cuda_modules modules;
    struct plim_cuda_libraries *libraries; /* NULL until one is needed */
    bool suspect;                          /* see plim_device_is_suspect() */
    bool refused;                          /* see plim_device_has_refused() */
    char message[512];                     /* the last failure */
};

/* --- results (settle.c) ----------------------------------------------------------------------- */

/* What the driver says is free on the GPU, for whoever takes it; 0 where it does not say. */
int64_t plim_cuda_driver_free_bytes(const struct plim_cuda *cuda);

/* What `result` of `call` means for an open device. Remembers the message. An error that should not
 * be is followed by a test of the context: PLIM_LOST where that fails too. */
enum plim_status plim_cuda_settle(struct plim_cuda *cuda, const char *call,
                                  CUresult result) PLIM_MUST_CHECK;

/* The same for a call that asked for `asked_bytes`: a strange error is "out of memory" where they
 * would have left the GPU nearly full. */
enum plim_status plim_cuda_settle_allocation(struct plim_cuda *cuda, const char *call,
                                             CUresult result, int64_t asked_bytes) PLIM_MUST_CHECK;

/* Below this, an error that does not say what it is may be "out of memory" where code was to be
 * loaded (llama.cpp saw 303 for it). */
#define PLIM_CUDA_NEARLY_FULL_BYTES (INT64_C(1) << 30)

/* Calls a function of the driver and settles its result. */
#define PLIM_CUDA_CALL(cuda, name, ...)                                                            \
    plim_cuda_settle((cuda), #name, (cuda)->driver->name(__VA_ARGS__))

/* For a call that returns nothing to its caller (giving memory back): the device is lost, or
 * suspect, where it fails. */
#define PLIM_CUDA_CALL_QUIETLY(cuda, name, ...)                                                    \
    plim_cuda_settle_quietly((cuda), #name, (cuda)->driver->name(__VA_ARGS__))
void plim_cuda_settle_quietly(struct plim_cuda *cuda, const char *call, CUresult result);

/* --- context (context.c) ---------------------------------------------------------------------- */

/* Opens the GPU with this ordinal: context, stream, events, figures of the GPU. */
enum plim_status plim_cuda_context_open(struct plim_cuda *cuda, int ordinal,
                                        struct plim_error *err) PLIM_MUST_CHECK;
void plim_cuda_context_close(struct plim_cuda *cuda);

/* --- memory (memory.c) ------------------------------------------------------------------------ */

/* `capacity_bytes` 0: what the GPU has. */
enum plim_status plim_cuda_memory_open(struct plim_cuda *cuda,
                                       int64_t capacity_bytes) PLIM_MUST_CHECK;
/* Gives back everything that is held and keeps the arrays. */
void plim_cuda_memory_clear(struct plim_cuda *cuda);
void plim_cuda_memory_close(struct plim_cuda *cuda);

/* The functions of struct plim_device_ops that memory.c has. */
enum plim_status plim_cuda_segment_get(struct plim_device *device, int64_t bytes,
                                       uint64_t *address);
void plim_cuda_segment_return(struct plim_device *device, uint64_t address, int64_t bytes);
enum plim_status plim_cuda_range_reserve(struct plim_device *device, int64_t bytes,
                                         uint64_t *address);
void plim_cuda_range_release(struct plim_device *device, uint64_t address, int64_t bytes);
enum plim_status plim_cuda_range_map(struct plim_device *device, uint64_t address, int64_t bytes,
                                     int64_t page_bytes);
void plim_cuda_range_unmap(struct plim_device *device, uint64_t address, int64_t bytes);
int64_t plim_cuda_free_bytes(struct plim_device *device);

/* --- our kernels (module.c) ------------------------------------------------------------------- */

/* Launches kernel `name` of the fat binaries in this executable with one argument, a struct. The
 * binary that has it is loaded before its first launch: PLIM_OOM may be that. */
enum plim_status plim_cuda_launch_kernel(struct plim_cuda *cuda, const char *name,
                                         const uint32_t grid[3], const uint32_t block[3],
                                         uint32_t shared_bytes, const void *args) PLIM_MUST_CHECK;
void plim_cuda_modules_close(struct plim_cuda *cuda);

/* The launches that kernels.h plans for an operation. */
enum plim_status plim_cuda_launch_kernels(struct plim_cuda *cuda,
                                          const struct plim_op *op) PLIM_MUST_CHECK;

/* --- libraries (libraries.c) ------------------------------------------------------------------ */

enum plim_status plim_cuda_matmul(struct plim_cuda *cuda, const struct plim_op *op) PLIM_MUST_CHECK;
/* ATTENTION and ATTENTION_BACKWARD: by cuDNN where it can, else by our kernels. */
enum plim_status plim_cuda_attention(struct plim_cuda *cuda,
                                     const struct plim_op *op) PLIM_MUST_CHECK;
/* Everything in cuda->libraries; called while the context is there. */
void plim_cuda_libraries_close(struct plim_cuda *cuda);

#endif
