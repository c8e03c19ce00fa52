/* Constants of the NVIDIA binary interfaces that the virtual GPU implements: error codes, enumerations, flags, and the
 * layouts of structures that programs pass by pointer.
 *
 * They are defined here rather than taken from a toolkit's headers because one library serves programs built with any
 * toolkit from 11.8 to 13.x, and because plimsoll is also built without a toolkit. tests/virtual/test_abi.c compares
 * them with the headers. */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_CUDA_ABI_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Marks functions that are visible to the program. */
#define ANSWER __attribute__((visibility("default")))

/* CUresult and cudaError_t; errors that both have share their number. */
enum gpu_error {
    GPU_OK = 0,
    GPU_INVALID_VALUE = 1,
    GPU_OUT_OF_MEMORY = 2,
    GPU_NOT_INITIALIZED = 3,
    GPU_INVALID_CONFIGURATION = 9,
    GPU_INVALID_SYMBOL = 13,
    GPU_INVALID_DEVICE_FUNCTION = 98,
    GPU_NO_DEVICE = 100,
    GPU_INVALID_DEVICE = 101,
    GPU_INVALID_CONTEXT = 201,
    GPU_NO_BINARY = 209,
    GPU_PEER_ACCESS_ALREADY_ENABLED = 704,
    GPU_PEER_ACCESS_NOT_ENABLED = 705,
    GPU_HOST_MEMORY_ALREADY_REGISTERED = 712,
    GPU_HOST_MEMORY_NOT_REGISTERED = 713,
    GPU_FILE_NOT_FOUND = 301,
    GPU_INVALID_HANDLE = 400,
    GPU_NOT_FOUND = 500,
    GPU_NOT_READY = 600,
    GPU_NOT_SUPPORTED = 801,
    GPU_CAPTURE_UNSUPPORTED = 900,
    GPU_CAPTURE_INVALIDATED = 901,
    GPU_CAPTURE_MERGE = 902,
    GPU_CAPTURE_UNMATCHED = 903,
    GPU_CAPTURE_UNJOINED = 904,
    GPU_CAPTURE_ISOLATION = 905,
    GPU_CAPTURE_IMPLICIT = 906,
    GPU_CAPTURED_EVENT = 907,
    GPU_CAPTURE_WRONG_THREAD = 908,
    GPU_UNKNOWN = 999,
};

/* cudaMemoryType; CUmemorytype uses other numbers. */
enum gpu_memory_type {
    GPU_MEMORY_UNREGISTERED = 0,
    GPU_MEMORY_HOST = 1,
    GPU_MEMORY_DEVICE = 2,
    GPU_MEMORY_MANAGED = 3,
};

/* cudaStreamCaptureStatus */
enum gpu_capture_status { GPU_CAPTURE_NONE = 0, GPU_CAPTURE_ACTIVE = 1, GPU_CAPTURE_BROKEN = 2 };

/* cudaMemPoolAttr, CUmemPool_attribute */
enum gpu_pool_attribute {
    GPU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    GPU_POOL_REUSE_ALLOW_OPPORTUNISTIC = 2,
    GPU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    GPU_POOL_RELEASE_THRESHOLD = 4,
    GPU_POOL_RESERVED_CURRENT = 5,
    GPU_POOL_RESERVED_HIGH = 6,
    GPU_POOL_USED_CURRENT = 7,
    GPU_POOL_USED_HIGH = 8,
};

struct gpu_dim3 { uint32_t x, y, z; };

/* Special stream handles. NULL is the legacy stream or, with per-thread default streams, the thread's. */
enum gpu_special_stream { GPU_STREAM_LEGACY = 1, GPU_STREAM_PER_THREAD = 2 };

/* cudaEventDisableTiming, CU_EVENT_DISABLE_TIMING */
enum gpu_event_flags { GPU_EVENT_WITHOUT_TIME = 2 };

#endif
