/* NVML on the virtual machine. It shows all GPUs, whatever CUDA_VISIBLE_DEVICES says, and a process that only queries
 * it does not enter the machine.
 *
 * Layouts are in devices/nvml/nvml_abi.h. The handle of a GPU is its address in the machine. */
#ifndef PLIM_DEVICES_VIRTUAL_NVML_NVML_DEVICE_H
#define PLIM_DEVICES_VIRTUAL_NVML_NVML_DEVICE_H

#include "devices/nvml/nvml_abi.h"
#include "devices/virtual/machine/self.h"

/* Values of nvmlReturn_t that only the library itself uses. */
enum { NVML_UNINITIALIZED = 1, NVML_INVALID_ARGUMENT = 2, NVML_ARGUMENT_VERSION_MISMATCH = 25 };

/* Returns the GPU of a handle. If there is none, or nvmlInit() was not called, returns NULL and stores the error in
 * *failed. */
const struct plim_machine_gpu *plim_nvml_gpu(const struct nvml_device *device, int *failed);
/* Returns the index of a GPU in the machine. */
int plim_nvml_index(const struct plim_machine_gpu *gpu);

/* Defines `gpu` from the handle `device`; returns the error code from the enclosing function if there is none. */
#define NVML_GPU(gpu, device)                                                                    \
    int gpu##_failed;                                                                             \
    const struct plim_machine_gpu *gpu = plim_nvml_gpu(device, &gpu##_failed);                 \
    if (!gpu) return gpu##_failed

#endif
