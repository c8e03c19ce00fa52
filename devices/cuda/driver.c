#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const places[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

enum { PLACE_COUNT = sizeof(places) / sizeof(places[0]) };

/* Two levels, so that the headers' macros first turn cuMemAlloc into cuMemAlloc_v2. */
#define SYMBOL_TEXT(name) #name
#define SYMBOL(name) SYMBOL_TEXT(name)

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL_ROW(name) {SYMBOL(name), offsetof(struct plim_cuda_driver, name)},
    PLIM_CUDA_DRIVER_MAP(SYMBOL_ROW)
#undef SYMBOL_ROW
};

static enum plim_status resolve(void *library, struct plim_cuda_driver *driver,
                                struct plim_error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return plim_fail(err, PLIM_NODEVICE,
                             "%s has no %s, which CUDA %d.%d has: install a driver for CUDA %d.%d",
                             driver->path, symbols[i].name, CUDA_VERSION / 1000,
                             CUDA_VERSION % 1000 / 10, CUDA_VERSION / 1000,
                             CUDA_VERSION % 1000 / 10);
        memcpy((char *)driver + symbols[i].offset, &found, sizeof(found));
    }
    return PLIM_OK;
}

/* A driver runs code built for its own major version (minor-version compatibility) and earlier ones, so only the major
 * version counts. */
static enum plim_status check_version(struct plim_cuda_driver *driver, struct plim_error *err)
{
    char text[256];
    CUresult result = driver->cuDriverGetVersion(&driver->version);
    if (result != CUDA_SUCCESS)
        return plim_fail(
            err, PLIM_NODEVICE, "%s: %s", driver->path,
            plim_cuda_result_text(driver, "cuDriverGetVersion", result, text, sizeof(text)));
    if (driver->version / 1000 < CUDA_VERSION / 1000)
        return plim_fail(err, PLIM_NODEVICE,
                         "%s is a driver for CUDA %d.%d and this plimsoll is built for CUDA %d: "
                         "install a newer driver",
                         driver->path, driver->version / 1000, driver->version % 1000 / 10,
                         CUDA_VERSION / 1000);
    return PLIM_OK;
}

static void *open_library(struct plim_cuda_driver *driver, char *why, size_t size)
{
    void *library = NULL;
    *why = '\0';
    for (size_t i = 0; i < PLACE_COUNT && !library; i++) {
        library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        snprintf(driver->path, sizeof(driver->path), "%s", places[i]);
        if (!library && !*why) snprintf(why, size, "%s", dlerror());
    }
    return library;
}

enum plim_status plim_cuda_driver_load(const struct plim_cuda_driver **out, struct plim_error *err)
{
    static struct plim_cuda_driver driver;
    static bool loaded;
    char why[256];
    *out = &driver;
    if (loaded) return PLIM_OK;
    *out = NULL;
    void *library = open_library(&driver, why, sizeof(why));
    if (!library)
        return plim_fail(err, PLIM_NODEVICE,
                         "no NVIDIA driver: %s, also looked for %s; install the driver, in a "
                         "container pass the GPU in (--gpus all)",
                         why, places[1]);
    enum plim_status st = resolve(library, &driver, err);
    if (st == PLIM_OK) st = check_version(&driver, err);
    if (st != PLIM_OK) {
        dlclose(library);
        return st;
    }
    loaded = true;
    *out = &driver;
    return PLIM_OK;
}
