/* Finding and loading NVIDIA's libraries; see library.h. */
#define _GNU_SOURCE /* dladdr, secure_getenv */
#include "library.h"
#include "toolkit.h"
#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct plim_cuda_library_spec plim_cuda_library_cublaslt = {
    .name = "cuBLASLt",
    .soname = PLIM_CUBLASLT_SONAME,
    .version_symbol = "cublasLtGetVersion",
    .least_version = PLIM_CUBLASLT_LEAST,
    .help = PLIM_CUBLASLT_HELP,
};

/* 9.10.0 and 9.10.1 compute attention wrongly. */
const struct plim_cuda_library_spec plim_cuda_library_cudnn = {
    .name = "cuDNN",
    .soname = "libcudnn.so.9",
    .version_symbol = "cudnnGetVersion",
    .least_version = 91002,
    .help = PLIM_CUDNN_HELP,
};

/* Versions before 2.9 were numbered differently. */
const struct plim_cuda_library_spec plim_cuda_library_nccl = {
    .name = "NCCL",
    .soname = "libnccl.so.2",
    .version_symbol = "ncclGetVersion",
    .version_is_stored = true,
    .least_version = 21000,
    .help = PLIM_NCCL_HELP,
};

/* A place is the value of a variable, or a fixed folder, and a pattern below it. */
static const struct place {
    const char *variable, *below;
} places[] = {
    {"PLIMSOLL_CUDA_PATH", ""},
    {"PLIMSOLL_CUDA_PATH", "/lib64"},
    {"PLIMSOLL_CUDA_PATH", "/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/cudnn/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/" PLIM_CUBLAS_WHEEL "/lib"},
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/nvidia/nccl/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/cudnn/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/" PLIM_CUBLAS_WHEEL "/lib"},
    {"CONDA_PREFIX", "/lib/python3*/site-packages/nvidia/nccl/lib"},
    {"CUDNN_PATH", "/lib64"},
    {"CUDNN_PATH", "/lib"},
    {"CUDA_HOME", "/lib64"},
    {"CUDA_HOME", "/lib"},
    {"CUDA_PATH", "/lib64"},
    {"CUDA_PATH", "/lib"},
    {NULL, "/usr/local/cuda/lib64"},
    {NULL, PLIM_TOOLKIT_FOLDER "/lib64"},
    {NULL, NULL}, /* the loader's path */
    {"CONDA_PREFIX", "/lib"},
};

static const char searched[] = "$PLIMSOLL_CUDA_PATH, $VIRTUAL_ENV, $CONDA_PREFIX, $CUDNN_PATH, "
                               "$CUDA_HOME, $CUDA_PATH, /usr/local/cuda* and the loader's path";

/* RTLD_LOCAL: another CUDA in the process keeps its own symbols. */
static void *load(const char *file)
{
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

/* True if only the superuser can change the file at this path, which contains no link. In a folder with the sticky bit,
 * names can be changed only by their owners. Truncates `path`. */
static bool is_only_roots(char *path)
{
    struct stat info;
    for (bool is_file = true;; is_file = false) {
        if (stat(*path ? path : "/", &info) || info.st_uid != 0) return false;
        bool is_sticky = !is_file && (info.st_mode & S_ISVTX);
        if ((info.st_mode & (S_IWGRP | S_IWOTH)) && !is_sticky) return false;
        char *slash = strrchr(path, '/');
        if (!slash) return true;
        *slash = '\0';
    }
}

/* The library's code runs with our rights: the superuser loads none that others can change. */
static void *load_checked(const char *file, char problem[256])
{
    if (geteuid() != 0) return load(file);
    char *real = realpath(file, NULL), *path = real ? strdup(real) : NULL;
    bool is_safe = path && is_only_roots(path);
    void *handle = is_safe ? load(real) : NULL;
    if (!is_safe)
        snprintf(problem, 256, "%.180s can be changed by others than root", real ? real : file);
    free(path);
    free(real);
    return handle;
}

/* Tries the newest match first: glob sorts in ascending order. `problem` keeps why an existing file failed. */
static void *load_from(const struct place *place, const char *soname, char problem[256])
{
    const char *root = place->variable ? secure_getenv(place->variable) : "";
    char pattern[512];
    if (!root || (place->variable && *root != '/')) return NULL;
    int n = snprintf(pattern, sizeof pattern, "%s%s/%s", root, place->below, soname);
    if (n < 0 || (size_t)n >= sizeof pattern) return NULL;
    glob_t found = {0};
    void *handle = NULL;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; i-- > 0 && !handle;) {
            problem[0] = '\0';
            handle = load_checked(found.gl_pathv[i], problem);
            if (!handle && !problem[0]) snprintf(problem, 256, "%s", dlerror());
        }
    globfree(&found);
    return handle;
}

static void *load_anywhere(const char *soname, char problem[256])
{
    void *handle = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !handle; i++)
        handle = places[i].below ? load_from(&places[i], soname, problem) : load(soname);
    return handle;
}

static void format_version(size_t version, char out[32])
{
    snprintf(out, 32, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

static size_t read_version(const struct plim_cuda_library_spec *spec, void *symbol)
{
    size_t (*get)(void);
    int (*store)(int *version), version = 0;
    memcpy(&get, &symbol, sizeof get);
    memcpy(&store, &symbol, sizeof store);
    if (!spec->version_is_stored) return get();
    return store(&version) || version < 0 ? 0 : (size_t)version;
}

static enum plim_status check_version(const struct plim_cuda_library_spec *spec,
                                      struct plim_cuda_library *library, struct plim_error *err)
{
    void *symbol = dlsym(library->handle, spec->version_symbol);
    if (!symbol)
        return plim_fail(err, PLIM_NODEVICE, "%s has no %s, expected %s", library->path,
                         spec->version_symbol, spec->name);
    library->version = read_version(spec, symbol);
    if (library->version >= spec->least_version) return PLIM_OK;
    char has[32], wants[32];
    format_version(library->version, has);
    format_version(spec->least_version, wants);
    return plim_fail(err, PLIM_NODEVICE, "%s is %s %s, expected %s or newer; %s", library->path,
                     spec->name, has, wants, spec->help);
}

enum plim_status plim_cuda_library_open(const struct plim_cuda_library_spec *spec,
                                        struct plim_cuda_library *out, struct plim_error *err)
{
    char problem[256] = "";
    *out = (struct plim_cuda_library){.handle = load_anywhere(spec->soname, problem)};
    if (!out->handle && *problem)
        return plim_fail(err, PLIM_NODEVICE, "%s does not load: %s", spec->name, problem);
    if (!out->handle)
        return plim_fail(err, PLIM_NODEVICE,
                         "%s (%s) is not in %s; %s, or set PLIMSOLL_CUDA_PATH to its folder",
                         spec->soname, spec->name, searched, spec->help);
    snprintf(out->path, sizeof out->path, "%s", spec->soname);
    Dl_info info;
    void *symbol = dlsym(out->handle, spec->version_symbol);
    if (symbol && dladdr(symbol, &info))
        snprintf(out->path, sizeof out->path, "%s", info.dli_fname);
    enum plim_status st = check_version(spec, out, err);
    if (st) plim_cuda_library_close(out);
    return st;
}

void plim_cuda_library_close(struct plim_cuda_library *library)
{
    if (library && library->handle) dlclose(library->handle);
    if (library) *library = (struct plim_cuda_library){0};
}

enum plim_status plim_cuda_library_resolve(const struct plim_cuda_library *library,
                                           const struct plim_cuda_library_symbol *symbols,
                                           size_t count, void *functions, struct plim_error *err)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library->handle, symbols[i].name);
        if (!symbol)
            return plim_fail(err, PLIM_NODEVICE, "%s has no function %s", library->path,
                             symbols[i].name);
        memcpy((char *)functions + symbols[i].offset, &symbol, sizeof symbol);
    }
    return PLIM_OK;
}

char *plim_cuda_library_text(const struct plim_cuda_library_spec *spec, char *out, size_t size)
{
    struct plim_cuda_library library;
    struct plim_error err = PLIM_ERROR_INIT;
    if (plim_cuda_library_open(spec, &library, &err) == PLIM_OK) {
        char version[32];
        format_version(library.version, version);
        snprintf(out, size, "%s %s (%s)", spec->name, version, library.path);
    } else {
        snprintf(out, size, "%s: none: %s", spec->name, err.text);
    }
    return out;
}

/* --- without loading -------------------------------------------------------------------------- */

static bool name_at(const char *path, char *out, size_t size)
{
    char *real = realpath(path, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    if (slash) snprintf(out, size, "%s", slash + 1);
    free(real);
    return slash != NULL;
}

static bool name_in_place(const struct place *place, const char *soname, char *out, size_t size)
{
    const char *root = place->variable ? secure_getenv(place->variable) : "";
    char pattern[512];
    glob_t found = {0};
    if (!root || (place->variable && *root != '/')) return false;
    int length = snprintf(pattern, sizeof(pattern), "%s%s/%s", root, place->below, soname);
    if (length < 0 || (size_t)length >= sizeof(pattern)) return false;
    bool named = !glob(pattern, 0, NULL, &found) &&
                 name_at(found.gl_pathv[found.gl_pathc - 1], out, size);
    globfree(&found);
    return named;
}

static bool name_of_loaders(const char *soname, char *out, size_t size)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64", "/usr/lib"};
    char path[512];
    const char *list = secure_getenv("LD_LIBRARY_PATH");
    while (list && *list) {
        size_t length = strcspn(list, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)length, list, soname);
        if (length && length < 400 && name_at(path, out, size)) return true;
        list += length + (list[length] == ':');
    }
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folders[i], soname);
        if (name_at(path, out, size)) return true;
    }
    return false;
}

char *plim_cuda_library_file(const struct plim_cuda_library_spec *spec, char *out, size_t size)
{
    bool named = false;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !named; i++)
        named = places[i].below ? name_in_place(&places[i], spec->soname, out, size)
                                : name_of_loaders(spec->soname, out, size);
    if (!named) out[0] = '\0';
    return out;
}
