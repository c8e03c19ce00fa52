#define _GNU_SOURCE /* dladdr, dl_iterate_phdr, RTLD_NEXT */
#include "lookup.h"
#include "dlsym.h"
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

/* Prefixes of the file names of NVIDIA's libraries, used to tell them apart; all parts of cuDNN count as one
 * library. */
static const char *const libraries[] = {"libcudart.so", "libcublas.so", "libcublasLt.so",
                                        "libcudnn", "libnccl.so", "libnvidia-ml.so",
                                        "libcupti.so", "libcufft.so", "libcusparse.so", "libcusolver.so"};
enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]), NO_LIBRARY = -1, OURSELVES = -2 };

struct place {
    const void *address;
    const char *path; /* of the library that contains it */
    bool is_ours;
};

static bool holds(const struct dl_phdr_info *info, const void *address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)address >= begin &&
            (uintptr_t)address < begin + info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

static int visit_library(struct dl_phdr_info *info, size_t size, void *user)
{
    static const char ours;
    struct place *place = user;
    (void)size;
    if (!holds(info, place->address)) return 0;
    place->path = info->dlpi_name;
    place->is_ours = holds(info, &ours);
    return 1;
}

/* Returns the library that contains an address. Does not use dladdr(), which searches all symbols of a library: cuDNN
 * looks up its functions very often. */
static int library_at(const void *address)
{
    struct place place = {.address = address};
    if (!dl_iterate_phdr(visit_library, &place)) return NO_LIBRARY;
    if (place.is_ours) return OURSELVES;
    const char *slash = strrchr(place.path, '/');
    const char *file = slash ? slash + 1 : place.path;
    for (int i = 0; i < LIBRARIES; i++)
        if (!strncmp(file, libraries[i], strlen(libraries[i]))) return i;
    return NO_LIBRARY;
}

static void *self_handle(void)
{
    static void *handle;
    Dl_info self;
    if (!handle && dladdr((const void *)&plim_dlsym_real, &self))
        handle = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

static bool is_nvidias_name(const char *name)
{
    static const char *const prefixes[] = {"cuda", "cublas", "cudnn", "nccl",
                                           "nvml", "cupti",  "__cuda", "cufft", "cusparse", "cusolver"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

bool plim_lookup_is_nvidias(const void *address) { return library_at(address) != NO_LIBRARY; }

void *plim_lookup_own(const char *name)
{
    if (!is_nvidias_name(name)) return NULL;
    plim_dlsym_prepare();
    void *self = self_handle();
    void *ours = self ? plim_dlsym_real(self, name) : NULL;
    return ours && library_at(ours) == OURSELVES ? ours : NULL;
}

void *plim_dlsym_choose(void *handle, const char *name, const void *caller)
{
    plim_dlsym_prepare();
    if (handle == RTLD_DEFAULT || handle == RTLD_NEXT || !name || !is_nvidias_name(name))
        return NULL;
    int asking = library_at(caller);
    if (asking == OURSELVES) return NULL;
    void *theirs = plim_dlsym_real(handle, name);
    int asked = theirs ? library_at(theirs) : NO_LIBRARY;
    if (asked < 0 || asked == asking) return NULL;
    return plim_lookup_own(name);
}
