#define _GNU_SOURCE /* dl_iterate_phdr */
#include "version.h"
#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct wanted {
    const char *name;
    char path[4096];
};

static int visit_library(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct wanted *wanted = user;
    const char *file = strrchr(info->dlpi_name, '/');
    if (!file || strncmp(file + 1, wanted->name, strlen(wanted->name)) != 0) return 0;
    if (strlen(info->dlpi_name) >= sizeof(wanted->path)) return 0;
    strcpy(wanted->path, info->dlpi_name);
    return 1;
}

void *plim_version_library(const char *name)
{
    struct wanted wanted = {.name = name};
    if (!dl_iterate_phdr(visit_library, &wanted)) return NULL;
    return dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD);
}

bool plim_version_property(const char *library, const char *function, const int newest[3],
                           int property, int *value)
{
    typedef int query(int, int *);
    if (property < 0 || property > 2 || !value) return false;
    void *loaded = plim_version_library(library);
    void *found = loaded ? dlsym(loaded, function) : NULL;
    query *ask;
    memcpy(&ask, &found, sizeof(ask));
    if (!ask || ask(property, value)) *value = newest[property];
    return true;
}

int plim_version_linked;

static int query_runtime(void)
{
    typedef int query(int *);
    int version = PLIM_VERSION_DRIVER;
    struct wanted old = {.name = "libcudart.so.11"};
    /* The runtime of CUDA 11 looks for a driver before it returns its version. */
    if (dl_iterate_phdr(visit_library, &old)) return PLIM_VERSION_OLDEST;
    void *library = plim_version_library("libcudart.so");
    void *found = library ? dlsym(library, "cudaRuntimeGetVersion") : NULL;
    query *function;
    memcpy(&function, &found, sizeof(function));
    if (function && function(&version)) return PLIM_VERSION_DRIVER;
    return version;
}

int plim_version_runtime(void)
{
    static int version;
    if (!version) version = plim_version_linked ? plim_version_linked : query_runtime();
    return version;
}

bool plim_version_has_runtime(void)
{
    return plim_version_linked || plim_version_library("libcudart.so");
}

bool plim_version_is_cudnn8(void)
{
    static int known; /* 1: yes, 2: no */
    if (!known) known = plim_version_library("libcudnn.so.8") ? 1 : 2;
    return known == 1;
}
