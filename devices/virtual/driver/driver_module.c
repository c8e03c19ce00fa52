/* The CUDA driver: modules, libraries, linking. A library is implemented as a module, a kernel as a function. */
#include "driver_context.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/work/cubin.h"
#include "devices/virtual/work/fat_binary.h"
#include "devices/virtual/memory/readable.h"
#include "autotune/base/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_NOT_FOUND = 301, LAZY_LOADING = 2, IS_LOADED = 1 };

/* --- loading ---------------------------------------------------------------------------------- */

/* The loaded modules. A program may free the image after loading it, so what is needed later is copied if the format is
 * known. */
static PLIM_ARRAY(struct loaded {
    struct plim_fat_binary *module;
    void *cubin; /* NULL: other format */
    size_t bytes;
}) modules;

static void *copy_cubin(const void *image, size_t room, size_t *bytes)
{
    *bytes = plim_cubin_bytes(image, room);
    void *copy = *bytes ? malloc(*bytes) : NULL;
    return copy ? memcpy(copy, image, *bytes) : NULL;
}

static const void *cubin_of(const struct plim_fat_binary *module, size_t *bytes)
{
    const void *cubin = NULL;
    plim_self_lock();
    for (size_t i = modules.count; i-- > 0 && !cubin;) {
        if (modules.items[i].module != module) continue;
        cubin = modules.items[i].cubin;
        *bytes = modules.items[i].bytes;
    }
    plim_self_unlock();
    return cubin;
}

static int load(struct plim_fat_binary **out, const void *image, size_t bytes)
{
    *out = NULL;
    if (!image) return GPU_INVALID_VALUE;
    struct plim_fat_binary *module = plim_fat_binary_read(image, bytes);
    if (!module) return GPU_OUT_OF_MEMORY;
    if (!plim_fat_binary_code(module, plim_self_gpu(plim_self_device())->compute_capability)) {
        free(module);
        return GPU_NO_BINARY;
    }
    struct loaded loaded = {.module = module};
    loaded.cubin = copy_cubin(image, bytes, &loaded.bytes);
    plim_self_lock();
    int failed = PLIM_ARRAY_PUSH(&modules, loaded) == PLIM_OK ? GPU_OK : GPU_OUT_OF_MEMORY;
    plim_self_unlock();
    *out = module;
    return failed;
}

ANSWER int cuModuleLoadData(struct plim_fat_binary **out, const void *image)
{
    int failed = plim_driver_enter();
    return failed ? failed : load(out, image, PLIM_UNKNOWN_BYTES);
}
ALSO(cuModuleLoadData, cuModuleLoadDataEx)
ALSO(cuModuleLoadData, cuModuleLoadFatBinary)

/* A library needs no context until one of its kernels is used. On which GPU that will be is not known yet; it is
 * assumed to be the thread's. */
static int load_library(struct plim_fat_binary **out, const void *image, size_t bytes)
{
    int failed = plim_driver_ready();
    if (!failed && !plim_self_gpu(plim_self_device())) failed = GPU_INVALID_DEVICE;
    return failed ? failed : load(out, image, bytes);
}

ANSWER int cuLibraryLoadData(struct plim_fat_binary **out, const void *image)
{
    return load_library(out, image, PLIM_UNKNOWN_BYTES);
}

/* Returns the contents of a file, which the caller frees; NULL if it cannot be read. */
static void *read_file(const char *path, long *size)
{
    FILE *file = fopen(path, "rb");
    long length = -1;
    if (file && !fseek(file, 0, SEEK_END)) length = ftell(file);
    char *bytes = length > 0 ? calloc((size_t)length + 1, 1) : NULL; /* PTX ends with a null byte */
    if (bytes) rewind(file);
    if (bytes && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
        free(bytes);
        bytes = NULL;
    }
    if (file) fclose(file);
    *size = length;
    return bytes;
}

ANSWER int cuLibraryLoadFromFile(struct plim_fat_binary **out, const char *path)
{
    long size;
    void *image = path ? read_file(path, &size) : NULL;
    int failed = image ? load_library(out, image, (size_t)size) : FILE_NOT_FOUND;
    free(image);
    return failed;
}

ANSWER int cuModuleLoad(struct plim_fat_binary **out, const char *path)
{
    int failed = plim_driver_enter();
    return failed ? failed : cuLibraryLoadFromFile(out, path);
}

/* Kernels of the module are kept, as the program may hold a handle. */
ANSWER int cuModuleUnload(struct plim_fat_binary *module)
{
    void *cubin = NULL;
    if (!module) return GPU_INVALID_HANDLE;
    plim_self_lock();
    size_t i = 0;
    while (i < modules.count && modules.items[i].module != module) i++;
    bool is_loaded = i < modules.count;
    if (is_loaded) {
        cubin = modules.items[i].cubin;
        modules.items[i] = modules.items[--modules.count];
    }
    plim_self_unlock();
    free(cubin);
    return is_loaded ? GPU_OK : GPU_INVALID_HANDLE;
}
ALSO(cuModuleUnload, cuLibraryUnload)

ANSWER int cuModuleGetLoadingMode(int *mode)
{
    *mode = LAZY_LOADING;
    return plim_driver_ready();
}

ANSWER int cuLibraryGetModule(struct plim_fat_binary **out, struct plim_fat_binary *library)
{
    *out = library;
    return library ? GPU_OK : GPU_INVALID_HANDLE;
}

/* --- contents of a module --------------------------------------------------------------------- */

static PLIM_ARRAY(struct plim_kernel *) kernels; /* all kernels that were looked up */

static PLIM_ARRAY(struct variable {
    const struct plim_fat_binary *module;
    uintptr_t at;
    size_t bytes;
    int device;
    char name[96];
}) variables;

static struct plim_kernel *find(const struct plim_fat_binary *module, const char *name)
{
    for (size_t i = 0; i < kernels.count; i++)
        if (kernels.items[i]->module == module && !strcmp(kernels.items[i]->name, name))
            return kernels.items[i];
    return NULL;
}

/* Sets the signature from the code, unless the kernel has a C++ name, which also tells which parameters are const. */
static void read_parameters(struct plim_kernel *kernel, int count, uint32_t pointers)
{
    if (!strncmp(kernel->name, "_Z", 2)) return;
    kernel->signature =
        (struct plim_signature){.is_read = true, .parameters = count, .written = pointers};
}

static struct plim_kernel *make(struct plim_fat_binary *module, const char *name)
{
    struct plim_kernel *kernel = calloc(1, sizeof(*kernel));
    char *copy = malloc(strlen(name) + 1);
    if (!kernel || !copy || PLIM_ARRAY_PUSH(&kernels, kernel) != PLIM_OK) {
        free(kernel);
        free(copy);
        return NULL;
    }
    *kernel = (struct plim_kernel){.name = strcpy(copy, name), .module = module};
    return kernel;
}

/* If the format is not known, every name is assumed to be a kernel. */
ANSWER int cuLibraryGetKernel(struct plim_kernel **out, struct plim_fat_binary *module,
                              const char *name)
{
    *out = NULL;
    if (!module) return GPU_INVALID_HANDLE;
    if (!name || !*name) return GPU_INVALID_VALUE;
    size_t size = 0;
    const void *cubin = cubin_of(module, &size);
    uint32_t pointers = 0;
    int count = cubin ? plim_cubin_kernel(cubin, size, name, &pointers) : 0;
    if (count < 0) return GPU_NOT_FOUND;
    plim_self_lock();
    *out = find(module, name);
    if (!*out) *out = make(module, name);
    if (*out && cubin) read_parameters(*out, count, pointers);
    plim_self_unlock();
    return *out ? GPU_OK : GPU_OUT_OF_MEMORY;
}

ANSWER int cuModuleGetFunction(struct plim_kernel **out, struct plim_fat_binary *module,
                               const char *name)
{
    int failed = plim_driver_enter();
    return failed ? failed : cuLibraryGetKernel(out, module, name);
}

/* Returns a variable on the current GPU, allocated when it is first looked up. */
static int find_variable(const struct variable *wanted, struct variable *out)
{
    for (size_t i = 0; i < variables.count; i++) {
        *out = variables.items[i];
        if (out->module == wanted->module && out->device == wanted->device &&
            !strcmp(out->name, wanted->name))
            return GPU_OK;
    }
    *out = *wanted;
    struct heap_block block = {
        .bytes = wanted->bytes, .kind = HEAP_SYMBOL, .device = wanted->device};
    int failed = plim_heap_add(&block, &out->at);
    if (!failed && PLIM_ARRAY_PUSH(&variables, *out) != PLIM_OK) failed = GPU_OUT_OF_MEMORY;
    return failed;
}

ANSWER int cuModuleGetGlobal_v2(uintptr_t *at, size_t *bytes, struct plim_fat_binary *module,
                                const char *name)
{
    struct variable variable = {.module = module, .device = plim_self_device()}, found;
    int failed = plim_driver_enter();
    if (failed) return failed;
    size_t size = 0;
    const void *cubin = module ? cubin_of(module, &size) : NULL;
    if (!module || !name) return GPU_INVALID_VALUE;
    if (!cubin) plim_self_note("the variable %.80s of a module in an unknown format", name);
    if (!cubin || !plim_cubin_variable(cubin, size, name, &variable.bytes)) return GPU_NOT_FOUND;
    snprintf(variable.name, sizeof(variable.name), "%s", name);
    failed = find_variable(&variable, &found);
    if (!failed && at) *at = found.at;
    if (!failed && bytes) *bytes = found.bytes;
    return failed;
}
ALSO(cuModuleGetGlobal_v2, cuLibraryGetGlobal)
ALSO(cuModuleGetGlobal_v2, cuLibraryGetManaged)

/* --- queries about kernels -------------------------------------------------------------------- */

ANSWER int cuKernelGetFunction(struct plim_kernel **out, struct plim_kernel *kernel)
{
    int failed = plim_driver_enter();
    *out = kernel;
    if (failed) return failed;
    return kernel ? GPU_OK : GPU_INVALID_HANDLE;
}

ANSWER int cuFuncGetModule(struct plim_fat_binary **out, const struct plim_kernel *kernel)
{
    if (!kernel) return GPU_INVALID_HANDLE;
    *out = kernel->module;
    return GPU_OK;
}
ALSO(cuFuncGetModule, cuKernelGetLibrary)

ANSWER int cuFuncGetName(const char **out, const struct plim_kernel *kernel)
{
    if (!kernel) return GPU_INVALID_HANDLE;
    *out = kernel->name;
    return GPU_OK;
}
ALSO(cuFuncGetName, cuKernelGetName)

ANSWER int cuFuncIsLoaded(int *state, const struct plim_kernel *kernel)
{
    *state = IS_LOADED;
    return kernel ? GPU_OK : GPU_INVALID_HANDLE;
}

ANSWER int cuFuncLoad(const struct plim_kernel *kernel)
{
    return kernel ? GPU_OK : GPU_INVALID_HANDLE;
}

/* --- the linker ------------------------------------------------------------------------------- */

/* The linker's output is never run; as it is in no known format, it fits every GPU. */
static const char linked[64] = "plimsoll: linked at run time";

ANSWER int cuLinkCreate_v2(unsigned count, const int *options, void **values, void **out)
{
    int failed = plim_driver_enter();
    (void)count;
    (void)options;
    (void)values;
    *out = (void *)(uintptr_t)plim_self_new_id();
    return failed;
}
ALSO(cuLinkCreate_v2, cuLinkCreate)

ANSWER int cuLinkAddData_v2(void *state) { return state ? GPU_OK : GPU_INVALID_HANDLE; }
ALSO(cuLinkAddData_v2, cuLinkAddData)
ALSO(cuLinkAddData_v2, cuLinkAddFile)
ALSO(cuLinkAddData_v2, cuLinkAddFile_v2)
ALSO(cuLinkAddData_v2, cuLinkDestroy)

ANSWER int cuLinkComplete(void *state, const void **code, size_t *bytes)
{
    if (!state) return GPU_INVALID_HANDLE;
    if (code) *code = linked;
    if (bytes) *bytes = sizeof(linked);
    return GPU_OK;
}
