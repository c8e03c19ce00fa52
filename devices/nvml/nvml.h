/* The GPUs of this machine, as listed by the driver's management library (NVML).
 *
 * No CUDA call is made and no context created: the process that searches stays able to fork, holds no device memory and
 * cannot be affected by a device's fault.
 *
 * NVML numbers GPUs by PCI bus. CUDA does not (visible.h): a GPU is identified by its UUID, never by its index here.
 *
 * A number that NVML does not report is -1, a text "".
 *
 * Thread safety: NVML's own calls are safe; a `struct plim_nvml` is constant after opening, so another thread may take
 * samples until it is closed. */
#ifndef PLIM_DEVICES_NVML_H
#define PLIM_DEVICES_NVML_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At most 7 instances of a GPU exist (MIG user guide). */
enum { PLIM_NVML_INSTANCES = 7, PLIM_NVML_PROCESSES = 32, PLIM_NVML_TEXT = 96 };

/* total = reserved + held + free. CUDA's total is about total - reserved. */
struct plim_nvml_memory {
    int64_t total_bytes;
    int64_t reserved_bytes; /* by driver and firmware; -1: an old driver, which counts it as held */
    int64_t free_bytes;
    int64_t held_bytes; /* by processes and the display */
};

/* A slice of a GPU in MIG mode. It has a UUID of its own ("MIG-..."). */
struct plim_nvml_instance {
    char uuid[PLIM_NVML_TEXT];
    char profile[32]; /* "1g.10gb"; "1c.3g.40gb" for a part of an instance's engines */
    struct plim_nvml_memory memory;
    int multiprocessors;
};

/* NVML's numbers. In the exclusive modes one process at a time has a context on the GPU. */
enum plim_compute_mode {
    PLIM_COMPUTE_DEFAULT,
    PLIM_COMPUTE_EXCLUSIVE_THREAD,
    PLIM_COMPUTE_PROHIBITED,
    PLIM_COMPUTE_EXCLUSIVE_PROCESS
};

struct plim_nvml_gpu {
    enum plim_status status; /* not PLIM_OK: the GPU is present, but cannot be queried or used */
    char problem[256];       /* if so: why, and what would help, in one line */
    int index;               /* that of NVML and nvidia-smi */
    char name[PLIM_NVML_TEXT], uuid[PLIM_NVML_TEXT];
    char bus_id[32];        /* as written by CUDA and Linux: "0000:01:00.0" */
    int compute_capability; /* 10 * major + minor */
    int cores, max_sm_mhz;
    double power_limit_watts; /* the current one */
    struct plim_nvml_memory memory;
    bool mig; /* in MIG mode: only its instances compute */
    size_t instance_count;
    struct plim_nvml_instance instances[PLIM_NVML_INSTANCES];
    enum plim_compute_mode compute_mode;
    bool display_active, persistence;
};

struct plim_nvml;

/* Opens the library and lists all GPUs. `library` is a path, or NULL for libnvidia-ml.so.1 in the loader's search path,
 * then that of WSL. Waking an idle GPU takes a second or two if persistence mode is off. PLIM_NODEVICE: no library, no
 * driver, no permission; `code` is then NVML's number (12 also if the library itself was not found), from which
 * absence.h finds more to report. A machine without a GPU may open successfully with 0 GPUs. */
enum plim_status plim_nvml_open(const char *library, struct plim_nvml **out, int *code,
                                struct plim_error *err) PLIM_MUST_CHECK;
void plim_nvml_close(struct plim_nvml **nvml); /* NULL is allowed; clears the pointer */

const char *plim_nvml_driver_version(const struct plim_nvml *nvml); /* "580.65.06" */
int plim_nvml_cuda_version(const struct plim_nvml *nvml); /* newest that the driver supports: 13000; -1: unknown */

/* Returns the GPUs by PCI bus; they live until the close. */
const struct plim_nvml_gpu *plim_nvml_gpus(const struct plim_nvml *nvml, size_t *count);

/* --- the state of a GPU ----------------------------------------------------------------------- */

/* Below, `uuid` is that of a GPU or of a MIG instance, in full. PLIM_NODEVICE: there is none; PLIM_LOST: it fell off
 * the bus or needs a reset. */

enum plim_status plim_nvml_memory(const struct plim_nvml *nvml, const char *uuid,
                                  struct plim_nvml_memory *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

struct plim_nvml_process {
    int64_t pid;        /* as seen by this process only if both share a pid namespace */
    int64_t held_bytes; /* -1: not reported, as in some containers and under WSL */
};

/* Lists the processes with a CUDA context on the GPU. At most PLIM_NVML_PROCESSES are written; `*count` is their number
 * and may be larger. */
enum plim_status plim_nvml_processes(const struct plim_nvml *nvml, const char *uuid,
                                     struct plim_nvml_process out[PLIM_NVML_PROCESSES],
                                     size_t *count, struct plim_error *err) PLIM_MUST_CHECK;

/* Returns how many processes have computed on the GPU for at least a tenth of the time since `microseconds` of the wall
 * clock (a display does not reach that). 0: none, or the driver does not report it, as in MIG mode. (Pids would be of
 * no use: in a container they are the host's.) */
size_t plim_nvml_computing(const struct plim_nvml *nvml, const char *uuid, uint64_t microseconds);

/* Reasons for the current clock rate: X(name, bit, text, spoils a timing). The bits are NVML's. A dense matmul reaches
 * the power cap on most GPUs, so that is normal and not a disturbance; heat and the hardware's own slowdowns are
 * disturbances. */
#define PLIM_CLOCK_REASON_MAP(X)                                                                   \
    X(IDLE, 0x1, "idle", false)                                                                    \
    X(SETTING, 0x2, "application clocks", false)                                                   \
    X(POWER_CAP, 0x4, "power cap", false)                                                          \
    X(HW_SLOWDOWN, 0x8, "hardware slowdown", true)                                                 \
    X(SYNC_BOOST, 0x10, "sync boost", false)                                                       \
    X(SW_THERMAL, 0x20, "software thermal slowdown", true)                                         \
    X(HW_THERMAL, 0x40, "hardware thermal slowdown", true)                                         \
    X(POWER_BRAKE, 0x80, "power brake", true)                                                      \
    X(DISPLAY, 0x100, "display clocks", false)

enum plim_clock_reason {
#define PLIM_CLOCK_REASON_ENUM(name, bit, text, spoils) PLIM_CLOCK_##name = bit,
    PLIM_CLOCK_REASON_MAP(PLIM_CLOCK_REASON_ENUM)
#undef PLIM_CLOCK_REASON_ENUM
};

/* Returns the subset of `reasons` that makes a timing worthless. */
uint64_t plim_clock_reasons_spoiling(uint64_t reasons);

/* Formats "power cap, hardware slowdown"; "none"; a bit without a name is "0x200". Returns `out`. */
char *plim_clock_reasons_text(uint64_t reasons, char out[192]);

/* The state of the GPU (of the whole GPU for an instance); cheap enough for 10 a second. */
struct plim_nvml_sample {
    int sm_mhz, max_sm_mhz, celsius;
    double power_watts, power_limit_watts;
    uint64_t clock_reasons; /* enum plim_clock_reason; 0 if unknown */
};

enum plim_status plim_nvml_sample(const struct plim_nvml *nvml, const char *uuid,
                                  struct plim_nvml_sample *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* --- errors ----------------------------------------------------------------------------------- */

/* The status for an NVML error code, and a line that tells what would help. Unknown codes are PLIM_INTERNAL. */
enum plim_status plim_nvml_status(int code);
const char *plim_nvml_status_text(int code);

#endif
