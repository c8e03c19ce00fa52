#define _XOPEN_SOURCE 700 /* nftw() */
#include "fake_root.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check(int good, const char *path)
{
    if (good) return;
    perror(path);
    abort();
}

struct fake_root fake_root_create(void)
{
    struct fake_root root = {.path = "/tmp/plimsoll-root-XXXXXX"};
    check(mkdtemp(root.path) != NULL, root.path);
    return root;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

void fake_root_remove(struct fake_root *root)
{
    check(!nftw(root->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), root->path);
}

/* The full path, with all folders on the way. */
static void prepare(const struct fake_root *root, const char *path, char full[512])
{
    check(snprintf(full, 512, "%s%s", root->path, path) < 512, path);
    for (char *slash = full + strlen(root->path) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
}

void fake_root_write(const struct fake_root *root, const char *path, const char *text)
{
    char full[512];
    prepare(root, path, full);
    FILE *file = fopen(full, "w");
    check(file != NULL, full);
    fputs(text, file);
    fclose(file);
}

void fake_root_link(const struct fake_root *root, const char *path, const char *target)
{
    char full[512];
    prepare(root, path, full);
    check(!symlink(target, full), full);
}

void fake_root_driver(const struct fake_root *root, const char *version)
{
    char text[256];
    snprintf(text, sizeof(text),
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (x)  Sun "
             "Jul 27 07:00:00 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n",
             version);
    fake_root_write(root, "/proc/driver/nvidia/version", text);
}

void fake_root_gpu(const struct fake_root *root, const char *bus_id, const char *driver)
{
    char path[128], target[128];
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", bus_id);
    fake_root_write(root, path, "0x10de\n");
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class", bus_id);
    fake_root_write(root, path, "0x030200\n");
    if (!driver) return;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", bus_id);
    snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver);
    fake_root_link(root, path, target);
}
