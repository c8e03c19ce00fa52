#include "dnn.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/work/launches.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* --- the program's library -------------------------------------------------------------------- */

/* libcudnn.so passes every call on to its parts, in all versions. A program may also have loaded only the part that it
 * uses. */
static const char *const libraries[] = {"libcudnn.so", "libcudnn_graph.so", "libcudnn_ops.so",
                                        "libcudnn_cnn.so", "libcudnn_adv.so"};

/* Returns NULL if there is no function of this name. */
static void *find_real(const char *name)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        void *library = plim_version_library(libraries[i]);
        void *found = library ? dlsym(library, name) : NULL;
        if (found) return found;
    }
    return NULL;
}

bool plim_dnn_real_into(void *pointer, size_t size, const char *name)
{
    void *found = find_real(name);
    memcpy(pointer, &found, size);
    return found;
}

int plim_dnn_version(void)
{
    static int version = -1;
    size_t (*query)(void);
    if (version < 0) version = DNN_REAL(query, "cudnnGetVersion") ? (int)query() : 0;
    return version;
}

int plim_dnn_status(enum plim_dnn_result result)
{
    static const struct { int cudnn8, cudnn9; } numbers[] = {
        [PLIM_DNN_OK] = {0, 0},
        [PLIM_DNN_NOT_INITIALIZED] = {1, 1001},
        [PLIM_DNN_ALLOC_FAILED] = {2, 4004},
        [PLIM_DNN_BAD_PARAM] = {3, 2000},
        [PLIM_DNN_NOT_SUPPORTED] = {9, 3000},
        [PLIM_DNN_EXECUTION_FAILED] = {8, 5000},
    };
    return plim_version_is_cudnn8() ? numbers[result].cudnn8 : numbers[result].cudnn9;
}

/* --- handles ---------------------------------------------------------------------------------- */

ANSWER int cudnnCreate(struct plim_handle **out)
{
    if (!out) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    *out = NULL;
    int failed = plim_self_use_current();
    if (failed == GPU_OUT_OF_MEMORY) return plim_dnn_status(PLIM_DNN_ALLOC_FAILED);
    if (failed) return plim_dnn_status(PLIM_DNN_NOT_INITIALIZED);
    struct plim_handle *handle = calloc(1, sizeof(*handle));
    if (!handle) return plim_dnn_status(PLIM_DNN_ALLOC_FAILED);
    handle->device = plim_self_device();
    *out = handle;
    return 0;
}

ANSWER int cudnnDestroy(struct plim_handle *handle)
{
    free(handle);
    return 0;
}

ANSWER int cudnnSetStream(struct plim_handle *handle, void *stream)
{
    if (!handle) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    handle->stream = stream;
    return 0;
}

ANSWER int cudnnGetStream(const struct plim_handle *handle, void **stream)
{
    if (!handle || !stream) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    *stream = handle->stream;
    return 0;
}

/* Reports errors of kernels; there are none. */
ANSWER int cudnnQueryRuntimeError(const struct plim_handle *handle, int *status, int mode,
                                  void *tag)
{
    (void)mode;
    (void)tag;
    if (!handle || !status) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    *status = 0;
    return 0;
}

int plim_dnn_launch(const struct plim_handle *handle, const char *what, uint64_t form,
                    const void *const *operands, size_t count, const struct plim_cost *cost)
{
    enum { KEPT = 64 };
    const void *kept[KEPT];
    size_t n = 0;
    if (!handle) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    for (size_t i = 0; i < count && n < KEPT; i++)
        if (plim_heap_is_device((uintptr_t)operands[i])) kept[n++] = operands[i];
    int failed = plim_library_launch(&(struct plim_work){
        .stream = handle->stream, .what = what, .form = form, .operands = kept, .read = n,
        .cost = cost});
    return plim_dnn_status(failed ? PLIM_DNN_EXECUTION_FAILED : PLIM_DNN_OK);
}

/* --- types and tensors ------------------------------------------------------------------------ */

int64_t plim_dnn_type_bytes(int type)
{
    static const int8_t bytes[] = {[DNN_FLOAT] = 4, [DNN_DOUBLE] = 8, [DNN_HALF] = 2,
                                   [DNN_INT8] = 1, [DNN_INT32] = 4, [DNN_INT8X4] = 4,
                                   [DNN_UINT8] = 1, [DNN_UINT8X4] = 4, [DNN_INT8X32] = 32,
                                   [DNN_BFLOAT16] = 2, [DNN_INT64] = 8, [DNN_BOOLEAN] = 1};
    return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 0;
}

bool plim_dnn_tensor_read(const void *descriptor, struct plim_dnn_tensor *out)
{
    int (*query)(const void *, int, int *, int *, int *, int *);
    int dimensions[PLIM_DNN_DIMENSIONS] = {0}, strides[PLIM_DNN_DIMENSIONS] = {0};
    if (!descriptor || !DNN_REAL(query, "cudnnGetTensorNdDescriptor") ||
        query(descriptor, PLIM_DNN_DIMENSIONS, &out->type, &out->count, dimensions, strides) ||
        out->count > PLIM_DNN_DIMENSIONS)
        return false;
    for (int i = 0; i < out->count; i++) {
        out->dimension[i] = dimensions[i];
        out->stride[i] = strides[i];
    }
    return true;
}

int64_t plim_dnn_tensor_bytes(const struct plim_dnn_tensor *tensor)
{
    int64_t bytes = plim_dnn_type_bytes(tensor->type);
    for (int i = 0; i < tensor->count; i++) bytes *= tensor->dimension[i];
    return bytes;
}

bool plim_dnn_channels_last(const struct plim_dnn_tensor *tensor)
{
    return tensor->count > 2 && tensor->stride[1] == 1 && tensor->dimension[1] > 1;
}
