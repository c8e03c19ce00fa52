#include "absence.h"

#include "nvml_abi.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

/* --- reading the system ----------------------------------------------------------------------- */

/* Reads the start of a small file of the kernel, as one line; "" if there is none. */
static void read_line(const char *root, const char *path, char *out, size_t size)
{
    char full[PATH_BYTES];
    out[0] = '\0';
    if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full)) return;
    FILE *file = fopen(full, "r");
    if (!file) return;
    if (!fgets(out, (int)size, file)) out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    fclose(file);
}

static bool exists(const char *root, const char *path)
{
    char full[PATH_BYTES];
    return (size_t)snprintf(full, sizeof(full), "%s%s", root, path) < sizeof(full) &&
           access(full, F_OK) == 0;
}

/* Reads the version from "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ...": the
 * first word that is a number with a dot. */
static void read_driver(const char *root, char *out, size_t size)
{
    char line[512], *rest;
    read_line(root, "/proc/driver/nvidia/version", line, sizeof(line));
    for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        size_t length = strspn(word, "0123456789.");
        if (length < 3 || word[length] || !strchr(word, '.')) continue;
        snprintf(out, size, "%s", word);
        return;
    }
    if (exists(root, "/proc/driver/nvidia/version")) snprintf(out, size, "of unknown version");
}

static unsigned long read_number(const char *root, const char *device, const char *name)
{
    char path[512], line[64];
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.64s/%s", device, name);
    read_line(root, path, line, sizeof(line));
    return strtoul(line, NULL, 16);
}

/* Base class 3 is a display controller: 0x030000 with a display, 0x030200 without one. A GPU's sound and USB functions
 * are also NVIDIA's, but have other classes. */
static bool is_gpu(const char *root, const char *device)
{
    return read_number(root, device, "vendor") == 0x10de &&
           read_number(root, device, "class") >> 16 == 3;
}

static void note_gpu(const char *root, const char *device, struct plim_absence *out)
{
    char link[PATH_BYTES], target[256];
    if (out->pci_gpus++ && strcmp(device, out->pci_id) > 0) return;
    snprintf(out->pci_id, sizeof(out->pci_id), "%.31s", device);
    snprintf(link, sizeof(link), "%.700s/sys/bus/pci/devices/%.64s/driver", root, device);
    ssize_t length = readlink(link, target, sizeof(target) - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *name = strrchr(target, '/');
    snprintf(out->pci_driver, sizeof(out->pci_driver), "%.31s", name ? name + 1 : target);
}

/* Calls `visit` with the name of every entry of a folder. Returns false if it cannot be read. */
static bool visit_folder(const char *root, const char *path, struct plim_absence *out,
                         void (*visit)(const char *root, const char *name, struct plim_absence *out))
{
    char full[PATH_BYTES];
    if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full)) return false;
    DIR *folder = opendir(full);
    if (!folder) {
        out->no_memory |= errno == ENOMEM;
        return false;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.') visit(root, entry->d_name, out);
    closedir(folder);
    return true;
}

static void check_pci(const char *root, const char *name, struct plim_absence *out)
{
    if (is_gpu(root, name)) note_gpu(root, name, out);
}

static void count_driver_gpu(const char *root, const char *name, struct plim_absence *out)
{
    (void)root, (void)name;
    out->driver_gpus++;
}

void plim_absence_read(const char *root, struct plim_absence *out)
{
    char release[256];
    *out = (struct plim_absence){0};
    read_driver(root, out->driver_version, sizeof(out->driver_version));
    visit_folder(root, "/proc/driver/nvidia/gpus", out, count_driver_gpu);
    out->pci_listed = visit_folder(root, "/sys/bus/pci/devices", out, check_pci);
    out->nodes = exists(root, "/dev/nvidiactl");
    out->container = exists(root, "/.dockerenv") || exists(root, "/run/.containerenv");
    read_line(root, "/proc/sys/kernel/osrelease", release, sizeof(release));
    for (char *c = release; *c && !out->wsl; c++) out->wsl = !strncasecmp(c, "microsoft", 9);
    out->wsl_gpu = exists(root, "/dev/dxg");
    out->wsl_library = exists(root, "/usr/lib/wsl/lib/libnvidia-ml.so.1");
}

/* --- explaining ------------------------------------------------------------------------------- */

static enum plim_status explain_wsl(const struct plim_absence *a, struct plim_error *err)
{
    if (!a->wsl_gpu)
        return plim_fail(err, PLIM_NODEVICE,
                         "no GPU in this WSL: there is no /dev/dxg; WSL 2 has it (`wsl --update`, "
                         "`wsl --set-version DISTRIBUTION 2`)");
    if (!a->wsl_library)
        return plim_fail(
            err, PLIM_NODEVICE,
            "no NVIDIA driver for this WSL: there is no "
            "/usr/lib/wsl/lib/libnvidia-ml.so.1; install the driver in Windows, not in "
            "Linux, and `wsl --shutdown`");
    return PLIM_OK;
}

static enum plim_status explain_no_driver(const struct plim_absence *a, struct plim_error *err)
{
    bool foreign = a->pci_driver[0] && strncmp(a->pci_driver, "nvidia", 6);
    if (a->pci_gpus && foreign)
        return plim_fail(err, PLIM_NODEVICE,
                         "the NVIDIA GPU at PCI %s is driven by %s (/sys/bus/pci/devices), not by "
                         "nvidia: install NVIDIA's driver and give the GPU to it",
                         a->pci_id, a->pci_driver);
    if (a->pci_gpus)
        return plim_fail(
            err, PLIM_NODEVICE,
            "there is an NVIDIA GPU at PCI %s (/sys/bus/pci/devices), but no driver "
            "is loaded (/proc/driver/nvidia/version): install it, or `modprobe nvidia`",
            a->pci_id);
    return plim_fail(err, PLIM_NODEVICE,
                     "no NVIDIA GPU here (no driver in /proc/driver/nvidia, %s); --device "
                     "sim:NAME simulates one",
                     a->pci_listed ? "no device of vendor 0x10de in /sys/bus/pci/devices"
                                   : "and /sys/bus/pci/devices cannot be read");
}

/* Returns PLIM_OK if no problem with the driver is visible; likewise explain_wsl(). */
static enum plim_status explain_driver(const struct plim_absence *a, struct plim_error *err)
{
    if (!a->nodes)
        return plim_fail(
            err, PLIM_NODEVICE,
            "the NVIDIA driver %s is loaded, but there is no /dev/nvidiactl: %s", a->driver_version,
            a->container ? "start the container with its GPUs (docker --gpus all, podman --device "
                           "nvidia.com/gpu=all, apptainer --nv)"
                         : "ask the scheduler for a GPU, or make the nodes with `nvidia-modprobe`");
    return PLIM_OK;
}

enum plim_status plim_absence_explain(const struct plim_absence *absence, int code,
                                      const struct plim_error *nvml, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    if (absence->no_memory) return plim_no_memory(err);
    if (code == NVML_DRIVER_NOT_LOADED || code == NVML_LIBRARY_NOT_FOUND) {
        if (absence->wsl)
            st = explain_wsl(absence, err);
        else if (!absence->driver_version[0])
            st = explain_no_driver(absence, err);
        else
            st = explain_driver(absence, err);
    }
    if (st) return st;
    if (!absence->driver_version[0]) return plim_fail(err, nvml->status, "%s", nvml->text);
    return plim_fail(err, nvml->status,
                     "NVIDIA driver %s (/proc/driver/nvidia) has %d GPU%s, but %s",
                     absence->driver_version, absence->driver_gpus,
                     absence->driver_gpus == 1 ? "" : "s", nvml->text);
}
