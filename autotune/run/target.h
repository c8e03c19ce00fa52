/* The GPU that `--device` names, found without CUDA: what the search has to know before it starts a
 * worker on it, or why there is no GPU to use.
 *
 *     auto                        the first GPU that CUDA shows, else a simulated GPU
 *     cuda, cuda:N                the first, the Nth (from 0) that CUDA shows
 *     cuda:GPU-uuid, cuda:MIG-uuid   that one; the beginning of a UUID is enough
 *     ...,memory=24GiB            using at most this much of it
 *
 * cuda:all means every GPU that CUDA shows: callers that accept it resolve the GPUs one by one.
 */
#ifndef PLIM_AUTOTUNE_RUN_TARGET_H
#define PLIM_AUTOTUNE_RUN_TARGET_H

#include "devices/catalogue/catalogue.h"
#include "devices/nvml/mps.h"
#include "devices/nvml/nvml.h"

struct plim_target {
    bool simulate; /* "auto" found nothing: only `note` (why) and memory_cap_bytes are set */
    /* There is a driver but no NVML, as in a container without the `utility` capability: only
     * `note`, `uri`, `uuid` if it was given, and memory_cap_bytes are set. The worker reports which
     * GPU it is. */
    bool without_nvml;
    /* A line for stderr: why it is simulated, or what is uncertain about the choice; "": nothing. */
    char note[PLIM_ERROR_TEXT];
    char uuid[PLIM_NVML_TEXT];  /* "GPU-..." or "MIG-...": a worker's CUDA_VISIBLE_DEVICES */
    char uri[128];              /* "cuda:UUID[,memory=N]" (without NVML: also "cuda:N"): names the same GPU */
    int ordinal;                /* without NVML and without a UUID: CUDA's number of it; else 0 */
    char name[PLIM_NVML_TEXT];  /* the driver's name: "NVIDIA A100-SXM4-80GB" */
    const struct plim_gpu *gpu; /* in the catalogue; NULL: not in it. The whole GPU, if `mig` */
    bool mig;
    char mig_profile[32]; /* "1g.10gb"; "": the whole GPU, or not known */
    int cores;                /* of the whole GPU; -1: not known, as for the next two */
    int max_sm_mhz;
    double power_limit_watts;
    int multiprocessors; /* of the instance or, from the catalogue, of the GPU; 0: not known */
    /* What CUDA will report as total, as far as it can be known beforehand: NVML's total less
     * what the driver reserves; the catalogue's if NVML does not tell; 0: not known. */
    int64_t total_bytes;
    int64_t held_bytes;       /* by other processes and the display */
    bool memory_is_told;      /* the sizes are from NVML */
    int64_t memory_cap_bytes; /* 0: none given */
    int compute_capability;   /* 10 * major + minor */
    char driver_version[PLIM_NVML_TEXT];
    int cuda_version; /* the newest that the driver supports: 13000; -1: not known */
    struct plim_mps mps; /* if active, held_bytes are held by its clients */
};

/* Is it "cuda:all", perhaps with options after a comma? */
bool plim_target_is_all(const char *uri);

/* PLIM_NODEVICE: there is none, or it cannot be used (driver too old, GPU busy, lost, hidden, in
 * MIG mode without an instance); PLIM_UNSUPPORTED: this build cannot use it; PLIM_INVALID: `uri` is
 * not understood. "auto" does not fail if there is no GPU, and only takes GPUs that NVML
 * shows. */
enum plim_status plim_target_resolve(const char *uri, struct plim_target *out,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Where to look. Tests make their own; the command line uses plim_target_here(). */
struct plim_target_place {
    const char *library;                        /* NVML; NULL: the usual place */
    const char *driver;                         /* CUDA's library; NULL: libcuda.so.1 */
    const char *root;                           /* put before /proc, /sys and /dev; "" except in tests */
    const char *visible_devices, *device_order; /* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER */
    struct plim_mps_variables mps;
    bool has_cuda;                              /* are the CUDA device and kernels built in? */
};

struct plim_target_place plim_target_here(void);
enum plim_status plim_target_resolve_at(const struct plim_target_place *place, const char *uri,
                                        struct plim_target *out,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* All GPUs that CUDA shows, in its order, whether they can be used or not; at most `room`. Only queries
 * NVML. PLIM_NODEVICE: there is none; `err` says why. */
enum plim_status plim_target_list(const struct plim_target_place *place, struct plim_target *out,
                                  size_t room, size_t *count,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* plim_nvml_open(), and on failure an explanation from the state of the system (absence.h). */
enum plim_status plim_target_open(const struct plim_target_place *place, struct plim_nvml **out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* The catalogue's GPU for one of this machine: by name, unless the size of its memory shows that it is another
 * one of that name (an RTX 3060 has 12 or 8 GB). NULL: not in the catalogue. */
const struct plim_gpu *plim_target_known(const struct plim_nvml_gpu *gpu);

#endif
