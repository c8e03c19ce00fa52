/* Explains, from what the operating system shows, why NVML does not open.
 *
 * Nothing here wakes a GPU or needs NVIDIA's libraries.
 */
#ifndef PLIM_DEVICES_NVML_ABSENCE_H
#define PLIM_DEVICES_NVML_ABSENCE_H

#include "autotune/base/status.h"
#include <stdbool.h>

struct plim_absence {
    char driver_version[64]; /* of /proc/driver/nvidia/version; "": the driver is not loaded */
    int driver_gpus;        /* in /proc/driver/nvidia/gpus */
    int pci_gpus;           /* NVIDIA's display controllers in /sys/bus/pci/devices */
    bool pci_listed;         /* is there such a list at all? */
    char pci_id[32];         /* of the first: "0000:01:00.0" */
    char pci_driver[32];     /* what drives it: "nvidia", "nouveau", "vfio-pci"; "": nothing */
    bool nodes;              /* is there a /dev/nvidiactl? */
    bool container;
    bool wsl, wsl_gpu; /* Windows' Linux; its /dev/dxg */
    bool wsl_library;  /* its libnvidia-ml.so.1 */
    bool no_memory;    /* host memory ran out while looking */
};

/* `root` stands before every path: "" for this machine, a folder in tests. */
void plim_absence_read(const char *root, struct plim_absence *out);

/* Puts one line into `err`: what was looked for, where, what would help. `code` and `nvml` come from
 * plim_nvml_open(); its message is kept, unless it only says that a library or the driver is missing
 * and the system shows why. PLIM_NOMEM: host memory ran out while looking. Returns the status. */
enum plim_status plim_absence_explain(const struct plim_absence *absence, int code,
                                      const struct plim_error *nvml, struct plim_error *err);

#endif
