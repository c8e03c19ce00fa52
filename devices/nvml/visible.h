/* Which GPUs CUDA would show to a program, and which of them a user selects.
 *
 * CUDA has its own numbering of GPUs: fastest first (CUDA_DEVICE_ORDER=FASTEST_FIRST, also if it is not set) or by PCI
 * bus (PCI_BUS_ID), counting only those that CUDA_VISIBLE_DEVICES selects. `cuda:0` here is the same as in PyTorch. All
 * functions are pure: the environment is passed in as text.
 *
 * CUDA_VISIBLE_DEVICES (CUDA programming guide, environment variables; what the guide does not specify as imitated by
 * PyTorch's torch/cuda/__init__.py):
 *   - not set: all GPUs. Empty: none.
 *   - a comma-separated list, either of ordinals in CUDA's order, of "GPU-..." or of "MIG-..."; the first entry
 *     determines which, and one of another kind ends the list
 *   - an ordinal is read up to its last digit ("1x" is 1), blanks around it are ignored
 *   - a prefix of a UUID is enough if it matches only one device
 *   - the first invalid entry ends the list; a device that is named twice makes it empty
 *   - a GPU in MIG mode is shown as its first instance, or not at all if it has none, and if there is any instance,
 *     CUDA shows one instance and nothing else (MIG user guide) */
#ifndef PLIM_DEVICES_NVML_VISIBLE_H
#define PLIM_DEVICES_NVML_VISIBLE_H

#include "nvml.h"

enum { PLIM_VISIBLE_MAX = 64 };

/* GPUs as NVML lists them (only those with status PLIM_OK are CUDA's), and the environment; NULL for variables that are
 * not set. */
struct plim_visible_world {
    const struct plim_nvml_gpu *gpus;
    size_t count;
    const char *visible_devices, *device_order;
};

struct plim_visible_device {
    int gpu;      /* index in gpus[] */
    int instance; /* index of the MIG instance; -1: the whole GPU */
};

/* CUDA's devices in CUDA's order. */
struct plim_visible {
    size_t count;
    struct plim_visible_device devices[PLIM_VISIBLE_MAX];
    /* CUDA does not document how it finds the fastest GPU. If GPUs differ and are ordered fastest first, the order here
     * is ours: by compute capability, then cores x clock. */
    bool guessed;
};

void plim_visible_list(const struct plim_visible_world *world, struct plim_visible *out);

/* Returns the UUID of a device, to which CUDA_VISIBLE_DEVICES of a worker is set. */
const char *plim_visible_uuid(const struct plim_visible_world *world,
                              const struct plim_visible_device *device);

/* Finds the device that a user selects by the text after "cuda:".
 *   "" or "N"    the first, or Nth (from 0), of plim_visible_list()
 *   "GPU-..."    a GPU by its UUID or a prefix of it; in MIG mode its first instance
 *   "MIG-..."    an instance by its UUID, likewise
 * Letters of a UUID may have either case. Devices that CUDA_VISIBLE_DEVICES hides are not found, but any instance of a
 * GPU that it shows is. PLIM_NODEVICE: no such device, and `err` lists those that exist; PLIM_INVALID: not understood,
 * or ambiguous. */
enum plim_status plim_visible_choose(const struct plim_visible_world *world, const char *choice,
                                     struct plim_visible_device *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
