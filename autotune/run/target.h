/* Finds the GPU that `--device` names, without CUDA: its properties, which the search needs before it starts a worker,
 * or the reason why there is no usable GPU.
 *
 *     auto                        the first usable GPU of those that CUDA shows, otherwise a simulated GPU
 *     cuda, cuda:N                the first, the Nth (from 0) that CUDA shows
 *     cuda:GPU-uuid, cuda:MIG-uuid   by UUID, of which the beginning is enough
 *     ...,memory=24GiB            using at most this much of its memory
 *
 * cuda:all means every GPU that CUDA shows: callers that accept it resolve the GPUs one by one. */
#ifndef PLIM_AUTOTUNE_RUN_TARGET_H
#define PLIM_AUTOTUNE_RUN_TARGET_H

#include "devices/catalogue/catalogue.h"
#include "devices/nvml/mps.h"
#include "devices/nvml/nvml.h"

struct plim_target {
    bool simulate; /* "auto" found no GPU: only `note` (the reason) and memory_cap_bytes are set */
    /* There is a driver but no NVML, as in a container without the `utility` capability: only `note`, `uri`, `uuid` or
     * `ordinal`, and memory_cap_bytes are set. The worker reports which GPU it is. */
    bool without_nvml;
    /* A line for stderr: why the GPU is simulated, or what is uncertain about the choice; "": none. */
    char note[PLIM_ERROR_TEXT];
    char uuid[PLIM_NVML_TEXT];  /* "GPU-..." or "MIG-...", for a worker's CUDA_VISIBLE_DEVICES */
    char uri[128];              /* "cuda:UUID[,memory=N]" (without NVML also "cuda:N") */
    int ordinal;                /* CUDA's number of the GPU if neither NVML nor a UUID is available; otherwise 0 */
    char name[PLIM_NVML_TEXT];  /* the driver's name: "NVIDIA A100-SXM4-80GB" */
    const struct plim_gpu *gpu; /* its entry in the catalogue, for MIG that of the whole GPU; NULL: it is missing */
    bool mig;
    char mig_profile[32]; /* "1g.10gb"; "": the whole GPU, or not known */
    int cores;                /* of the whole GPU; -1: not known, as for the next two */
    int max_sm_mhz;
    double power_limit_watts;
    int multiprocessors; /* of the instance or, from the catalogue, of the GPU; 0: not known */
    /* The expected total of CUDA: NVML's total less the driver's reserve; the catalogue's total if NVML has none; 0:
     * not known. */
    int64_t total_bytes;
    int64_t held_bytes;       /* used by other processes and the display */
    bool memory_is_reported;  /* the two sizes are from NVML */
    int64_t memory_cap_bytes; /* of "memory="; 0: not given */
    int compute_capability;   /* 10 * major + minor */
    char driver_version[PLIM_NVML_TEXT];
    int cuda_version; /* the newest that the driver supports: 13000; -1: not known */
    struct plim_mps mps; /* if active, held_bytes are held by its clients */
};

/* True for "cuda:all", with or without options after a comma. */
bool plim_target_is_all(const char *uri);

/* Finds the GPU that `uri` names. PLIM_NODEVICE: there is none, or it cannot be used (driver too old; GPU busy, lost,
 * hidden, in MIG mode without an instance); PLIM_UNSUPPORTED: this build cannot use it; PLIM_INVALID: a syntax error.
 * "auto" does not fail if there is no GPU, and only takes GPUs that NVML shows. */
enum plim_status plim_target_resolve(const char *uri, struct plim_target *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Where to look for GPUs. The command line uses plim_target_local(); tests fill in their own. */
struct plim_target_place {
    const char *library;                        /* NVML; NULL: the usual place */
    const char *driver;                         /* CUDA's library; NULL: libcuda.so.1 */
    const char *root;                           /* prefix of /proc, /sys and /dev; "" except in tests */
    const char *visible_devices, *device_order; /* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER */
    struct plim_mps_variables mps;
    bool has_cuda;                              /* the CUDA device and kernels are built in */
};

struct plim_target_place plim_target_local(void);
enum plim_status plim_target_resolve_at(const struct plim_target_place *place, const char *uri,
                                        struct plim_target *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Lists all GPUs that CUDA shows, in its order, usable or not; at most `room`. Only queries NVML. PLIM_NODEVICE: there
 * is none; `err` says why. */
enum plim_status plim_target_list(const struct plim_target_place *place, struct plim_target *out,
                                  size_t room, size_t *count,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* As plim_nvml_open(), but explains a failure from the state of the system (absence.h). */
enum plim_status plim_target_open(const struct plim_target_place *place, struct plim_nvml **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the catalogue's entry for a GPU, by name; NULL if there is none, or if its memory differs by 10 % or more, as
 * it is another GPU of that name then (an RTX 3060 has 12 or 8 GB). */
const struct plim_gpu *plim_target_known(const struct plim_nvml_gpu *gpu);

#endif
