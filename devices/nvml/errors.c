#include "internal.h"

static const struct meaning {
    int code;
    enum plim_status status;
    const char *text;
} meanings[] = {
    {NVML_SUCCESS, PLIM_OK, "ok"},
    {1, PLIM_INTERNAL, "NVML was used before it was started"},
    {2, PLIM_INTERNAL, "NVML was asked with a wrong argument"},
    {NVML_NOT_SUPPORTED, PLIM_UNSUPPORTED, "this GPU or driver does not tell that"},
    {NVML_NO_PERMISSION, PLIM_NODEVICE,
     "no permission: look at the rights of /dev/nvidia* and at the groups of this user"},
    {NVML_NOT_FOUND, PLIM_NODEVICE, "there is no such device"},
    {NVML_INSUFFICIENT_SIZE, PLIM_INTERNAL, "NVML has more to tell than there is room for"},
    {8, PLIM_NODEVICE, "the GPU's power cables are not plugged in properly"},
    {NVML_DRIVER_NOT_LOADED, PLIM_NODEVICE,
     "the NVIDIA driver is not loaded: `modprobe nvidia`, or install the driver"},
    {10, PLIM_LOST, "the driver did not answer in time: look for Xid in the kernel's log"},
    {11, PLIM_LOST, "the kernel sees a problem with the GPU's interrupts: see the kernel's log"},
    {NVML_LIBRARY_NOT_FOUND, PLIM_NODEVICE,
     "a library of the NVIDIA driver is missing: install the driver's libraries anew"},
    {NVML_FUNCTION_NOT_FOUND, PLIM_NODEVICE,
     "the NVIDIA driver is too old for what is asked of it: a newer one would help"},
    {14, PLIM_LOST, "the GPU's infoROM is corrupted: the GPU has to be serviced"},
    {NVML_GPU_IS_LOST, PLIM_LOST,
     "the GPU fell off the bus: a restart of the machine may bring it back"},
    {NVML_RESET_REQUIRED, PLIM_LOST,
     "the GPU waits for a reset: `nvidia-smi --gpu-reset` as root, or a restart"},
    {NVML_OPERATING_SYSTEM, PLIM_NODEVICE,
     "blocked by the operating system (a cgroup, as of Slurm or a container): ask for this GPU "
     "when the job is submitted"},
    {NVML_VERSION_MISMATCH, PLIM_NODEVICE,
     "the driver's libraries were updated but the old driver is still loaded: restart the machine "
     "(or unload and load the nvidia modules)"},
    {19, PLIM_NODEVICE, "the GPU is in use and cannot be asked now: try again later"},
    {NVML_MEMORY, PLIM_NOMEM, "NVML ran out of host memory"},
    {21, PLIM_UNSUPPORTED, "the GPU has no data for that"},
    {23, PLIM_NODEVICE, "the driver is short of a resource: end other users of the GPU"},
    {25, PLIM_UNSUPPORTED, "the driver does not know this version of a structure"},
    {26, PLIM_UNSUPPORTED, "the driver does not have this function any more"},
    {27, PLIM_NODEVICE, "the GPU is not ready yet (fabric manager, or it is starting): wait"},
    {28, PLIM_NODEVICE, "there is no such GPU"},
    {29, PLIM_LOST, "the GPU is in a state in which it cannot be asked"},
};

static const struct meaning *find(int code)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].code == code) return &meanings[i];
    return NULL;
}

enum plim_status plim_nvml_status(int code)
{
    const struct meaning *meaning = find(code);
    return meaning ? meaning->status : PLIM_INTERNAL;
}

const char *plim_nvml_status_text(int code)
{
    const struct meaning *meaning = find(code);
    return meaning ? meaning->text : "an error without a name: see the kernel's log";
}

enum plim_status plim_nvml_fail(struct plim_error *err, int code, const char *what)
{
    return plim_fail(err, plim_nvml_status(code), "%s: %s (NVML error %d)", what,
                     plim_nvml_status_text(code), code);
}
