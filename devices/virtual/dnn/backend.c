#include "convolution_cost.h"
#include "devices/virtual/work/stream.h"
#include "devices/virtual/machine/version.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- choice of the descriptors: the library's or our own -------------------------------------- */

enum { DESCRIBES_GPUS = 90800 }; /* first version that accepts a description of a GPU */

static struct plim_dnn_backend backend;
static pthread_once_t found = PTHREAD_ONCE_INIT;

static void find_backend(void)
{
    bool is_whole = DNN_REAL(backend.create, "cudnnBackendCreateDescriptor") &&
                    DNN_REAL(backend.destroy, "cudnnBackendDestroyDescriptor") &&
                    DNN_REAL(backend.finalize, "cudnnBackendFinalize") &&
                    DNN_REAL(backend.set, "cudnnBackendSetAttribute") &&
                    DNN_REAL(backend.get, "cudnnBackendGetAttribute");
    int version = plim_dnn_version();
    if (is_whole && version >= DESCRIBES_GPUS) return;
    plim_self_note("cuDNN %d plans only on a GPU: convolution workspaces are estimates, those of "
                   "fused graphs (attention, norms) count as 0; newer ones take a description",
                   version);
    backend = plim_dnn_own;
}

static const struct plim_dnn_backend *use_backend(void)
{
    pthread_once(&found, find_backend);
    return &backend;
}

/* --- description of the GPU ------------------------------------------------------------------ */

/* Values that are not in struct plim_machine_gpu are the same for all GPUs that CUDA 11 and later support (CUDA C++
 * Programming Guide, technical specifications per compute capability). cudaDeviceId must be 0. */
static int describe(const struct plim_machine_gpu *gpu, char *out, size_t size)
{
    return snprintf(
        out, size,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"
        "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
        "\"reservedSharedMemoryPerBlock\":%d,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,\"isTccDriver\":0,"
        "\"supportCoopLaunch\":1,\"totalGlobalMem\":%" PRId64 ",\"smClockRateKHz\":%d,"
        "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%d,"
        "\"driverVer\":%d,\"deviceName\":\"%s\"}",
        gpu->multiprocessors, gpu->shared_per_block_optin,
        gpu->shared_per_multiprocessor - gpu->shared_per_block_optin,
        gpu->blocks_per_multiprocessor, gpu->threads_per_multiprocessor, gpu->total_bytes,
        gpu->clock_khz, gpu->memory_clock_khz, gpu->l2_bytes, gpu->compute_capability * 10,
        PLIM_VERSION_DRIVER, gpu->name);
}

static int set_description(void *descriptor, int device)
{
    char json[2048];
    const struct plim_machine_gpu *gpu = plim_self_gpu(device);
    if (!gpu) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    int length = describe(gpu, json, sizeof(json));
    return backend.set(descriptor, DNN_DEVICE_JSON, DNN_OF_CHAR, length + 1, json);
}

/* Returns the description of a GPU, or NULL if cuDNN refuses it. There is one per GPU in use, never destroyed, as
 * engines refer to it. */
static void *description_of(int device)
{
    static struct { void *descriptor; bool made; } gpus[PLIM_MACHINE_GPUS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!gpus[device].made) {
        void *made = NULL;
        int failed = backend.create(DNN_DEVICE_PROPERTIES, &made);
        if (!failed) failed = set_description(made, device);
        if (!failed) failed = backend.finalize(made);
        if (failed) plim_self_note("cuDNN %d refuses the description of a GPU (status %d)",
                                   plim_dnn_version(), failed);
        gpus[device].descriptor = failed ? NULL : made;
        gpus[device].made = true;
    }
    pthread_mutex_unlock(&lock);
    return gpus[device].descriptor;
}

/* --- descriptors implemented here ------------------------------------------------------------- */

/* Each starts with the address of a mark, which tells it from the library's descriptors and gives its kind. */
static const char plan_mark, pack_mark;

static void *ours_of(const void *descriptor, const char *mark)
{
    const void *has = NULL;
    if (descriptor) memcpy(&has, descriptor, sizeof(has));
    return has == mark ? (void *)(uintptr_t)descriptor : NULL;
}

static int create(const char *mark, size_t bytes, void **out)
{
    void *made = calloc(1, bytes);
    if (!made) return plim_dnn_status(PLIM_DNN_ALLOC_FAILED);
    memcpy(made, &mark, sizeof(mark));
    *out = made;
    return 0;
}

/* --- execution plans -------------------------------------------------------------------------- */

/* Plans are implemented here, since the library would compile kernels and load them. The only attribute that is needed,
 * the workspace, is known from the engine configuration. */
struct plan {
    const void *mark;
    void *config;
    bool is_final, has_cost;
    int64_t workspace_bytes;
    struct plim_cost cost;
};

static struct plan *plan_of(const void *descriptor)
{
    return ours_of(descriptor, &plan_mark);
}

/* Five of cuDNN 9.19's engines for convolutions give a different workspace for a GPU described in JSON than for one
 * that is present, whatever its size: 368 of 864 configurations for an H100, where both were compared. The other
 * engines give the same. */
static void note_convolution(const struct plan *plan)
{
    enum { MATTERS = 1 << 20 };
    bool is_convolution = plan->has_cost && plan->cost.kind == PLIM_COST_CONVOLUTION;
    if (is_convolution && plan->workspace_bytes >= MATTERS && backend.create != plim_dnn_own.create)
        plim_self_note("convolutions have cuDNN's workspaces for a GPU that it does not see; an "
                       "H100's own took eight programs 0 to 2 %% more memory, one 12 %%");
}

static int finalize_plan(struct plan *plan)
{
    int64_t count = 0;
    if (!plan->config) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    plim_self_plans();
    int failed = backend.get(plan->config, DNN_CONFIG_WORKSPACE, DNN_OF_INT64, 1, &count,
                             &plan->workspace_bytes);
    plan->is_final = !failed;
    plan->has_cost = !failed && plim_dnn_config_cost(&backend, plan->config, &plan->cost);
    note_convolution(plan);
    return failed;
}

static int set_of_plan(struct plan *plan, int attribute, int64_t count, const void *values)
{
    if (attribute == DNN_PLAN_JSON) return plim_unsupported(PLIM_CUDNN, "a stored cuDNN plan");
    if (attribute != DNN_PLAN_CONFIG) return 0; /* a handle, a kernel cache, a GPU */
    if (count != 1 || !values) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    memcpy(&plan->config, values, sizeof(plan->config));
    return 0;
}

/* cudnn-frontend stores this text beside each plan; plans cannot be created from it (set_of_plan()). */
static int text_of_plan(const struct plan *plan, int64_t room, int64_t *count, char *out)
{
    char text[64];
    int length = snprintf(text, sizeof(text), "{\"workspace_bytes\":%" PRId64 "}", plan->workspace_bytes);
    if (count) *count = length + 1;
    if (out && room > 0) snprintf(out, (size_t)room, "%s", text);
    return 0;
}

static int get_of_plan(const struct plan *plan, int attribute, int64_t asked, int64_t *count,
                       void *values)
{
    if (!plan->is_final) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    if (attribute == DNN_PLAN_JSON) return text_of_plan(plan, asked, count, values);
    bool is_empty = attribute == DNN_PLAN_COMPUTED_UIDS || attribute == DNN_PLAN_RUN_ONLY_UIDS;
    if (!is_empty && attribute != DNN_PLAN_WORKSPACE)
        return plim_unsupported(PLIM_CUDNN, "cudnnBackendGetAttribute of a plan");
    if (count) *count = !is_empty;
    if (!is_empty && values && asked > 0)
        memcpy(values, &plan->workspace_bytes, sizeof(plan->workspace_bytes));
    return 0;
}

/* --- variant packs ----------------------------------------------------------------------------- */

/* Implemented here too: the library's descriptor does not return what was set ("not supported"). */
struct pack {
    const void *mark;
    const void *operands[64];
    size_t count;
};

static struct pack *pack_of(const void *descriptor)
{
    return ours_of(descriptor, &pack_mark);
}

static int set_of_pack(struct pack *pack, int attribute, int64_t count, const void *values)
{
    const int64_t most = sizeof(pack->operands) / sizeof(pack->operands[0]);
    if (attribute != DNN_PACK_POINTERS) return 0; /* identifiers, a workspace */
    if (count < 0 || (count && !values)) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    pack->count = (size_t)(count < most ? count : most);
    if (count) memcpy(pack->operands, values, pack->count * sizeof(pack->operands[0]));
    return 0;
}

/* --- the backend functions -------------------------------------------------------------------- */

/* Heuristics and engines are created for a GPU. */
ANSWER int cudnnBackendCreateDescriptor(int type, void **out)
{
    if (!out) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    use_backend();
    if (type == DNN_PLAN) return create(&plan_mark, sizeof(struct plan), out);
    if (type == DNN_VARIANT_PACK) return create(&pack_mark, sizeof(struct pack), out);
    int failed = plim_self_use_current() ? plim_dnn_status(PLIM_DNN_NOT_INITIALIZED)
                                         : backend.create(type, out);
    bool is_for_gpu = type == DNN_HEURISTICS || type == DNN_ENGINE;
    if (failed || !is_for_gpu || backend.create == plim_dnn_own.create) return failed;
    void *gpu = description_of(plim_self_device());
    int attribute = type == DNN_ENGINE ? DNN_ENGINE_DEVICE : DNN_HEURISTICS_DEVICE;
    if (gpu) failed = backend.set(*out, attribute, DNN_OF_DESCRIPTOR, 1, &gpu);
    return failed;
}

ANSWER int cudnnBackendDestroyDescriptor(void *descriptor)
{
    struct plan *plan = plan_of(descriptor);
    struct pack *pack = pack_of(descriptor);
    if (!plan && !pack) {
        plim_dnn_descriptor_destroyed(descriptor);
        return use_backend()->destroy(descriptor);
    }
    if (plan) plan->mark = NULL;
    if (pack) pack->mark = NULL;
    free(descriptor);
    return 0;
}

/* Initialises a descriptor in the program's storage; no current program does that. */
ANSWER int cudnnBackendInitialize(void *descriptor)
{
    (void)descriptor;
    return plim_unsupported(PLIM_CUDNN, "cudnnBackendInitialize");
}

ANSWER int cudnnBackendFinalize(void *descriptor)
{
    struct plan *plan = plan_of(descriptor);
    if (pack_of(descriptor)) return 0;
    return plan ? finalize_plan(plan) : use_backend()->finalize(descriptor);
}

/* Handles are ours and are not passed on. If a handle stands for a GPU, the GPU is described instead. */
ANSWER int cudnnBackendSetAttribute(void *descriptor, int attribute, int type, int64_t count,
                                    const void *values)
{
    struct plan *plan = plan_of(descriptor);
    struct pack *pack = pack_of(descriptor);
    if (plan) return set_of_plan(plan, attribute, count, values);
    if (pack) return set_of_pack(pack, attribute, count, values);
    if (attribute == DNN_DEVICE_HANDLE && values) {
        const struct plim_handle *handle;
        memcpy(&handle, values, sizeof(handle));
        return handle ? set_description(descriptor, handle->device)
                      : plim_dnn_status(PLIM_DNN_BAD_PARAM);
    }
    if (attribute == DNN_DEVICE_ID && values) {
        int32_t device;
        memcpy(&device, values, sizeof(device));
        return set_description(descriptor, device);
    }
    if (type == DNN_OF_HANDLE) return 0;
    int failed = use_backend()->set(descriptor, attribute, type, count, values);
    if (!failed && type == DNN_OF_DESCRIPTOR)
        plim_dnn_attribute_set(&backend, descriptor, attribute, count, values);
    return failed;
}

ANSWER int cudnnBackendGetAttribute(const void *descriptor, int attribute, int type, int64_t asked,
                                    int64_t *count, void *values)
{
    const struct plan *plan = plan_of(descriptor);
    if (plan) return get_of_plan(plan, attribute, asked, count, values);
    if (pack_of(descriptor))
        return plim_unsupported(PLIM_CUDNN, "cudnnBackendGetAttribute of a variant pack");
    if (type == DNN_OF_HANDLE)
        return plim_unsupported(PLIM_CUDNN, "cudnnBackendGetAttribute of a handle");
    int64_t given = 0;
    int failed = use_backend()->get(descriptor, attribute, type, asked, &given, values);
    if (count) *count = given;
    if (!failed && attribute == DNN_HEURISTICS_RESULTS)
        plim_dnn_results_returned(descriptor, given < asked ? given : asked, values);
    return failed;
}

ANSWER int cudnnBackendExecute(const struct plim_handle *handle, const void *plan, const void *pack)
{
    const struct plan *of = plan_of(plan);
    const struct pack *with = pack_of(pack);
    if (!handle || !of || !of->is_final || !with) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    plim_self_plans();
    return plim_dnn_launch(handle, "cudnnBackendExecute", (uint64_t)(uintptr_t)plan, with->operands,
                           with->count, of->has_cost ? &of->cost : NULL);
}

/* Adds a plan as a node to a graph that the program builds. */
ANSWER int cudnnBackendPopulateCudaGraph(const struct plim_handle *handle, const void *plan,
                                         const void *pack, struct plim_graph *graph)
{
    struct plim_node *node;
    if (!handle || !plan_of(plan) || !pack || !graph) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    int failed = plim_graph_add(graph, PLIM_NODE_KERNEL, &node);
    return plim_dnn_status(failed ? PLIM_DNN_EXECUTION_FAILED : PLIM_DNN_OK);
}

ANSWER int cudnnBackendUpdateCudaGraph(const struct plim_handle *handle, const void *plan,
                                       const void *pack, struct plim_graph *graph)
{
    bool is_known = handle && plan_of(plan) && pack && graph;
    return plim_dnn_status(is_known ? PLIM_DNN_OK : PLIM_DNN_BAD_PARAM);
}
