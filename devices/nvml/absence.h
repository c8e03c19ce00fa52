/* Explains, from what the operating system shows, why NVML does not open.
 *
 * Nothing here wakes a GPU or needs NVIDIA's libraries. */
#ifndef PLIM_DEVICES_NVML_ABSENCE_H
#define PLIM_DEVICES_NVML_ABSENCE_H

#include "autotune/base/status.h"
#include <stdbool.h>

struct plim_absence {
    char driver_version[64]; /* from /proc/driver/nvidia/version; "": the driver is not loaded */
    int driver_gpus;        /* in /proc/driver/nvidia/gpus */
    int pci_gpus;           /* NVIDIA's display controllers in /sys/bus/pci/devices */
    bool pci_listed;         /* that list exists */
    char pci_id[32];         /* of the first one: "0000:01:00.0" */
    char pci_driver[32];     /* its driver: "nvidia", "nouveau", "vfio-pci"; "": none */
    bool nodes;              /* /dev/nvidiactl exists */
    bool container;
    bool wsl, wsl_gpu; /* Windows' Linux; it has /dev/dxg */
    bool wsl_library;  /* it has libnvidia-ml.so.1 */
    bool no_memory;    /* host memory ran out during the search */
};

/* `root` is prepended to every path: "" for this machine, a folder in tests. */
void plim_absence_read(const char *root, struct plim_absence *out);

/* Writes one line into `err`: what was looked for, where, what would help. `code` and `nvml` come from
 * plim_nvml_open(); its message is kept, unless it only tells that a library or the driver is missing and the system
 * shows why. PLIM_NOMEM: host memory ran out during the search. Returns the status. */
enum plim_status plim_absence_explain(const struct plim_absence *absence, int code,
                                      const struct plim_error *nvml, struct plim_error *err);

#endif
