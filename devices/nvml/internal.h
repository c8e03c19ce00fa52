/* Shared by the files of this folder. */
#ifndef PLIM_DEVICES_NVML_INTERNAL_H
#define PLIM_DEVICES_NVML_INTERNAL_H

#include "nvml_abi.h"
#include "autotune/base/array.h"
#include "nvml.h"

/* The handles of plim_nvml_gpu, at the same index. */
struct nvml_handles {
    struct nvml_device *gpu, *instances[PLIM_NVML_INSTANCES];
};

struct plim_nvml {
    void *library;
    struct nvml_calls call;
    bool started;
    char driver_version[PLIM_NVML_TEXT];
    int cuda_version;
    PLIM_ARRAY(struct plim_nvml_gpu) gpus;
    PLIM_ARRAY(struct nvml_handles) handles;
};

/* Calls a function of NVML; one that this version of the library lacks returns NVML_FUNCTION_NOT_FOUND. */
#define NVML(nvml, member, ...)                                                                    \
    ((nvml)->call.member ? (nvml)->call.member(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)

/* plim_fail() with NVML's error number; `what` is the call that failed. */
enum plim_status plim_nvml_fail(struct plim_error *err, int code, const char *what);

int plim_nvml_read_memory(const struct plim_nvml *nvml, struct nvml_device *device,
                          struct plim_nvml_memory *out);

#endif
