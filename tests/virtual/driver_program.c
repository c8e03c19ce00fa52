/* A program that knows nothing of plimsoll and uses the CUDA driver of the machine it runs on, the
 * virtual one: memory and its limits, virtual memory management, pools, streams, captures,
 * modules, threads, other processes. One line a check; it ends with 1 at the first that fails.
 *
 * It needs one GPU and is linked with nothing: libcuda.so.1 is opened at run time.
 */
#define _GNU_SOURCE
#include "check.h"
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void *library;

static void *find(const char *name)
{
    void *found = dlsym(library, name);
    if (found) return found;
    printf("FAILED: there is no %s\n", name);
    exit(1);
}

/* cuda.h turns plain names into the newest ones. */
#define TEXT_OF(name) #name
#define NAME_OF(name) TEXT_OF(name)
#define DRIVER(function) ((__typeof__(&function))find(NAME_OF(function)))

/* Of two functions the newest has one argument more since CUDA 13. */
#if CUDA_VERSION >= 13000
#define CREATE_CONTEXT(context, device) DRIVER(cuCtxCreate)(context, NULL, 0, device)
#define ADD_NODE(node, graph, after, parameters) \
    DRIVER(cuGraphAddNode)(node, graph, after, NULL, 1, parameters)
#else
#define CREATE_CONTEXT(context, device) DRIVER(cuCtxCreate)(context, 0, device)
#define ADD_NODE(node, graph, after, parameters) DRIVER(cuGraphAddNode)(node, graph, after, 1, parameters)
#endif

static void expect(CUresult result, CUresult expected, const char *what)
{
    check(result == expected, "%s gives %d (%d)", what, (int)expected, (int)result);
}

static size_t free_bytes(void)
{
    size_t free_now = 0, total = 0;
    expect(DRIVER(cuMemGetInfo)(&free_now, &total), CUDA_SUCCESS, "cuMemGetInfo");
    return free_now;
}

/* --- start ------------------------------------------------------------------------------------ */

static void check_start(void)
{
    CUcontext context = (CUcontext)1, current;
    CUdevice device;
    int count = 0, active = 1, version = 0;
    unsigned flags;
    expect(DRIVER(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED, "a call before cuInit");
    expect(DRIVER(cuInit)(0), CUDA_SUCCESS, "cuInit");
    expect(DRIVER(cuDriverGetVersion)(&version), CUDA_SUCCESS, "cuDriverGetVersion");
    check(version >= 12000, "version %d", version);
    expect(DRIVER(cuDeviceGetCount)(&count), CUDA_SUCCESS, "cuDeviceGetCount");
    check(count >= 1, "%d GPUs", count);
    expect(DRIVER(cuDeviceGet)(&device, count), CUDA_ERROR_INVALID_DEVICE, "one GPU too far");
    expect(DRIVER(cuDeviceGet)(&device, 0), CUDA_SUCCESS, "cuDeviceGet");
    expect(DRIVER(cuCtxGetCurrent)(&context), CUDA_SUCCESS, "cuCtxGetCurrent");
    check(!context, "no context is current");
    CUdeviceptr at;
    expect(DRIVER(cuMemAlloc)(&at, MIB), CUDA_ERROR_INVALID_CONTEXT, "memory without a context");
    DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    check(!active, "the primary context is not there");
    expect(DRIVER(cuDevicePrimaryCtxRetain)(&context, device), CUDA_SUCCESS, "retain");
    DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active);
    check(active, "the primary context is there");
    DRIVER(cuCtxGetCurrent)(&current);
    check(!current, "a retained context is not current");
    expect(DRIVER(cuCtxSetCurrent)(context), CUDA_SUCCESS, "cuCtxSetCurrent");
    DRIVER(cuCtxGetCurrent)(&current);
    check(current == context, "it is current");
}

static void check_gpu(void)
{
    char name[64] = "";
    int major = 0, value = 0;
    CUuuid id;
    const char *text;
    expect(DRIVER(cuDeviceGetName)(name, sizeof(name), 0), CUDA_SUCCESS, "cuDeviceGetName");
    check(name[0] != '\0', "the GPU is a %s", name);
    expect(DRIVER(cuDeviceGetUuid)(&id, 0), CUDA_SUCCESS, "cuDeviceGetUuid");
    DRIVER(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    check(major >= 5, "compute capability %d", major);
    DRIVER(cuDeviceGetAttribute)
    (&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
    check(value == 1, "virtual memory management is there");
    expect(DRIVER(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS, "error string");
    check(!strcmp(text, "out of memory"), "%s", text);
    expect(DRIVER(cuGetErrorName)((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE, "no error");
    check(!text, "it has no name");
}

/* --- entry points ----------------------------------------------------------------------------- */

static void *named(const char *name, int version)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    DRIVER(cuGetProcAddress)(name, &found, version, 0, &status);
    check(!found == (status != CU_GET_PROC_ADDRESS_SUCCESS), "%s of %d", name, version);
    return found;
}

static void check_names(void)
{
    check(named("cuMemAlloc", 11080) == find("cuMemAlloc_v2"), "cuMemAlloc is the second");
    check(!named("cuMemAlloc", 2000), "the first of 32 bits is not there");
    check(named("cuCtxCreate", 11080) == find("cuCtxCreate_v3"), "cuCtxCreate of 11.8");
    check(named("cuCtxCreate", 12080) == find("cuCtxCreate_v4"), "cuCtxCreate of 12.8");
    check(named("cuStreamGetCaptureInfo", 12020) == find("cuStreamGetCaptureInfo_v2"),
          "cuStreamGetCaptureInfo of 12.2");
    check(named("cuStreamGetCaptureInfo", 12080) == find("cuStreamGetCaptureInfo_v3"),
          "cuStreamGetCaptureInfo of 12.8");
    check(named("cuInit", 2000) == find("cuInit"), "cuInit is always the same");
    check(!named("cuNothingOfTheKind", 12080), "a name that there is not");
    check(!named("cudaMalloc", 12080), "the runtime is not the driver");
}

/* --- memory ----------------------------------------------------------------------------------- */

static void check_memory(void)
{
    CUdeviceptr at = 0, base = 0;
    size_t before = free_bytes(), bytes = 0;
    char text[16] = "";
    expect(DRIVER(cuMemAlloc)(&at, 0), CUDA_ERROR_INVALID_VALUE, "no bytes");
    expect(DRIVER(cuMemAlloc)(&at, 5 * MIB), CUDA_SUCCESS, "cuMemAlloc");
    check(before - free_bytes() == 6 * MIB, "whole pages of 2 MiB are taken");
    expect(DRIVER(cuMemGetAddressRange)(&base, &bytes, at + MIB), CUDA_SUCCESS, "address range");
    check(base == at && bytes == 5 * MIB, "it is the allocation");
    expect(DRIVER(cuMemcpyHtoD)(at, "what is up", 11), CUDA_SUCCESS, "to the GPU");
    expect(DRIVER(cuMemcpyDtoH)(text, at, 11), CUDA_SUCCESS, "from the GPU");
    check(!strcmp(text, "what is up"), "it comes back");
    expect(DRIVER(cuMemsetD8)(at, 'x', 4), CUDA_SUCCESS, "cuMemsetD8");
    DRIVER(cuMemcpyDtoH)(text, at, 11);
    check(!strcmp(text, "xxxx is up"), "it is filled");
    expect(DRIVER(cuMemFree)(at), CUDA_SUCCESS, "cuMemFree");
    expect(DRIVER(cuMemFree)(at), CUDA_ERROR_INVALID_VALUE, "freeing twice");
    check(free_bytes() == before, "it came back");
}

static void check_limit(void)
{
    CUdeviceptr at = 0, other = 0;
    size_t left = free_bytes() / (2 * MIB) * 2 * MIB;
    expect(DRIVER(cuMemAlloc)(&at, left + 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY, "a page too much");
    expect(DRIVER(cuMemAlloc)(&at, left), CUDA_SUCCESS, "all that is left");
    expect(DRIVER(cuMemAlloc)(&other, 1), CUDA_ERROR_OUT_OF_MEMORY, "one byte more");
    expect(DRIVER(cuMemFree)(at), CUDA_SUCCESS, "freeing it");
}

static void check_pointers(void)
{
    CUdeviceptr at = 0;
    void *host = NULL;
    unsigned type = 0, managed = 1;
    int ordinal = 5;
    CUcontext context = NULL, current = NULL;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &ordinal};
    DRIVER(cuMemAlloc)(&at, MIB);
    expect(DRIVER(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at + 5),
           CUDA_SUCCESS, "cuPointerGetAttribute");
    DRIVER(cuCtxGetCurrent)(&current);
    check(context == current, "its context");
    DRIVER(cuPointerGetAttributes)(3, names, values, at);
    check(type == CU_MEMORYTYPE_DEVICE && !managed && ordinal == 0, "device memory of GPU 0");
    expect(DRIVER(cuMemHostAlloc)(&host, MIB, 0), CUDA_SUCCESS, "cuMemHostAlloc");
    memset(host, 1, MIB);
    DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)host);
    check(type == CU_MEMORYTYPE_HOST, "host memory");
    expect(DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         (CUdeviceptr)&type),
           CUDA_ERROR_INVALID_VALUE, "an address that is not CUDA's");
    expect(DRIVER(cuPointerGetAttributes)(3, names, values, (CUdeviceptr)&type), CUDA_SUCCESS,
           "several of it");
    check(type == 0 && ordinal == -2, "they say that it is outside of every allocation");
    DRIVER(cuMemFreeHost)(host);
    DRIVER(cuMemFree)(at);
}

/* --- virtual memory management ---------------------------------------------------------------- */

static const CUmemAllocationProp plain = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static void check_mapping(void)
{
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUmemAccessDesc access = {plain.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAllocationProp prop;
    CUdeviceptr range = 0, base = 0;
    size_t before = free_bytes(), page = 0, bytes = 0;
    unsigned long long flags = 0;
    int back = 0, seven = 7;
    DRIVER(cuMemGetAllocationGranularity)(&page, &plain, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    check(page == 2 * MIB, "pages are of 2 MiB");
    expect(DRIVER(cuMemAddressReserve)(&range, 100 * page, 64 * MIB, 0, 0), CUDA_SUCCESS,
           "cuMemAddressReserve");
    check(range % (64 * MIB) == 0, "it is aligned");
    check(free_bytes() == before, "addresses cost nothing");
    expect(DRIVER(cuMemCreate)(&handle, 10 * page, &plain, 0), CUDA_SUCCESS, "cuMemCreate");
    check(before - free_bytes() == 10 * page, "memory does");
    expect(DRIVER(cuMemCreate)(&again, page + 1, &plain, 0), CUDA_ERROR_INVALID_VALUE, "no pages");
    expect(DRIVER(cuMemCreate)(&again, before / page * page, &plain, 0), CUDA_ERROR_OUT_OF_MEMORY,
           "too much");
    expect(DRIVER(cuMemSetAccess)(range, 10 * page, &access, 1), CUDA_ERROR_INVALID_VALUE,
           "access to nothing");
    expect(DRIVER(cuMemMap)(range + page, 10 * page, 0, handle, 0), CUDA_SUCCESS, "cuMemMap");
    expect(DRIVER(cuMemMap)(range, 10 * page, 0, handle, 0), CUDA_ERROR_INVALID_VALUE, "overlap");
    expect(DRIVER(cuMemMap)(range + 95 * page, 10 * page, 0, handle, 0), CUDA_ERROR_INVALID_VALUE,
           "over the end");
    expect(DRIVER(cuMemSetAccess)(range + page, 10 * page, &access, 1), CUDA_SUCCESS, "access");
    DRIVER(cuMemGetAccess)(&flags, &plain.location, range + page);
    check(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "it may be read and written");
    DRIVER(cuMemcpyHtoD)(range + 2 * page, &seven, sizeof(seven));
    DRIVER(cuMemcpyDtoH)(&back, range + 2 * page, sizeof(back));
    check(back == 7, "it is memory");
    DRIVER(cuMemGetAddressRange)(&base, &bytes, range + 3 * page);
    check(base == range + page && bytes == 10 * page, "its address range is the mapping");
    DRIVER(cuPointerGetAttribute)(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, range + 3 * page);
    check(base == range, "its range is the reservation");
    expect(DRIVER(cuMemRetainAllocationHandle)(&again, (void *)(uintptr_t)(range + page)),
           CUDA_SUCCESS, "the handle of an address");
    check(again == handle, "it is the same");
    DRIVER(cuMemGetAllocationPropertiesFromHandle)(&prop, handle);
    check(prop.location.id == 0 && prop.requestedHandleTypes == plain.requestedHandleTypes,
          "it has what was asked for");
    DRIVER(cuMemRelease)(again);
    expect(DRIVER(cuMemRelease)(handle), CUDA_SUCCESS, "release");
    check(before - free_bytes() == 10 * page, "what is mapped stays");
    expect(DRIVER(cuMemUnmap)(range + page, page), CUDA_ERROR_INVALID_VALUE, "part of a mapping");
    expect(DRIVER(cuMemAddressFree)(range, 100 * page), CUDA_ERROR_INVALID_VALUE, "in use");
    expect(DRIVER(cuMemUnmap)(range + page, 10 * page), CUDA_SUCCESS, "cuMemUnmap");
    check(free_bytes() == before, "it came back");
    expect(DRIVER(cuMemAddressFree)(range, 100 * page), CUDA_SUCCESS, "cuMemAddressFree");
}

static void check_export(void)
{
    CUmemGenericAllocationHandle handle = 0, same = 0;
    size_t before = free_bytes();
    int fd = -1;
    DRIVER(cuMemCreate)(&handle, 2 * MIB, &plain, 0);
    expect(DRIVER(cuMemExportToShareableHandle)(&fd, handle,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
           CUDA_SUCCESS, "export");
    expect(DRIVER(cuMemImportFromShareableHandle)(&same, (void *)(uintptr_t)fd,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
           CUDA_SUCCESS, "import");
    check(before - free_bytes() == 2 * MIB, "it costs once");
    DRIVER(cuMemRelease)(handle);
    check(before - free_bytes() == 2 * MIB, "the imported handle keeps it");
    DRIVER(cuMemRelease)(same);
    check(free_bytes() == before, "it came back");
    close(fd);
}

/* --- pools, streams, captures, modules -------------------------------------------------------- */

static void check_pool(void)
{
    CUmemoryPool pool;
    CUdeviceptr at = 0;
    CUstream stream;
    size_t before = free_bytes();
    cuuint64_t used = 1;
    expect(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS, "cuStreamCreate");
    expect(DRIVER(cuMemAllocAsync)(&at, 40 * MIB, stream), CUDA_SUCCESS, "cuMemAllocAsync");
    check(before - free_bytes() == 64 * MIB, "pools take steps of 32 MiB");
    expect(DRIVER(cuMemFreeAsync)(at, stream), CUDA_SUCCESS, "cuMemFreeAsync");
    DRIVER(cuDeviceGetDefaultMemPool)(&pool, 0);
    DRIVER(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    check(used == 0, "nothing of the pool is used");
    check(before - free_bytes() == 64 * MIB, "it keeps its memory");
    expect(DRIVER(cuStreamSynchronize)(stream), CUDA_SUCCESS, "cuStreamSynchronize");
    check(free_bytes() == before, "until a synchronisation");
    expect(DRIVER(cuStreamDestroy)(stream), CUDA_SUCCESS, "cuStreamDestroy");
}

static void check_events(void)
{
    CUevent from, to;
    float milliseconds = -1;
    DRIVER(cuEventCreate)(&from, 0);
    DRIVER(cuEventCreate)(&to, 0);
    expect(DRIVER(cuEventElapsedTime)(&milliseconds, from, to), CUDA_ERROR_INVALID_HANDLE,
           "time between events that were not recorded");
    DRIVER(cuEventRecord)(from, NULL);
    DRIVER(cuEventRecord)(to, NULL);
    expect(DRIVER(cuEventSynchronize)(to), CUDA_SUCCESS, "cuEventSynchronize");
    expect(DRIVER(cuEventElapsedTime)(&milliseconds, from, to), CUDA_SUCCESS, "elapsed time");
    check(milliseconds >= 0, "%g ms", (double)milliseconds);
    DRIVER(cuEventDestroy)(from);
    DRIVER(cuEventDestroy)(to);
}

static CUfunction load_kernel(void)
{
    CUmodule module = NULL;
    CUfunction function = NULL, again = NULL;
    char *image = calloc(1, 256);
    strcpy(image, ".version 7.0\n.target sm_50\n.address_size 64\n"
                  ".visible .entry nothing() { ret; }");
    expect(DRIVER(cuModuleLoadData)(&module, image), CUDA_SUCCESS, "cuModuleLoadData");
    free(image); /* as programs do */
    expect(DRIVER(cuModuleGetFunction)(&function, module, "nothing"), CUDA_SUCCESS, "its kernel");
    DRIVER(cuModuleGetFunction)(&again, module, "nothing");
    check(function && function == again, "it is one and the same");
    expect(DRIVER(cuModuleUnload)(module), CUDA_SUCCESS, "cuModuleUnload");
    return function;
}

static void check_module(void)
{
    int threads = 0, blocks = 0;
    CUfunction kernel = load_kernel();
    CUmodule module;
    expect(DRIVER(cuModuleLoad)(&module, "/nowhere/at/all"), CUDA_ERROR_FILE_NOT_FOUND, "no file");
    expect(DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS,
           "cuLaunchKernel");
    expect(DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL),
           CUDA_ERROR_INVALID_VALUE, "too many threads");
    expect(DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, NULL, NULL),
           CUDA_ERROR_INVALID_VALUE, "too much shared memory");
    DRIVER(cuFuncGetAttribute)(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel);
    check(threads == 1024, "1024 threads a block");
    DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, kernel, 256, 0);
    check(blocks > 0, "%d blocks on a multiprocessor", blocks);
}

static void check_capture(void)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec runnable;
    CUstreamCaptureStatus status;
    size_t nodes = 0;
    CUfunction kernel = load_kernel();
    DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    expect(DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS,
           "begin of a capture");
    DRIVER(cuStreamIsCapturing)(stream, &status);
    check(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "it goes on");
    DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
    DRIVER(cuLaunchKernel)(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
    expect(DRIVER(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS, "its end");
    DRIVER(cuGraphGetNodes)(graph, NULL, &nodes);
    check(nodes == 2, "%zu nodes", nodes);
    expect(DRIVER(cuGraphInstantiate)(&runnable, graph, 0), CUDA_SUCCESS, "cuGraphInstantiate");
    DRIVER(cuGraphDestroy)(graph);
    expect(DRIVER(cuGraphLaunch)(runnable, stream), CUDA_SUCCESS, "cuGraphLaunch");
    DRIVER(cuGraphExecDestroy)(runnable);
    DRIVER(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    expect(DRIVER(cuStreamSynchronize)(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           "synchronising in a capture");
    expect(DRIVER(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           "the end of what that broke");
    DRIVER(cuStreamDestroy)(stream);
}

/* Put together node by node, as XLA does. */
static void check_graph(void)
{
    CUgraph graph;
    CUgraphNode kernel, empty, loop, inside;
    CUgraphExec runnable;
    CUgraphNodeType type;
    size_t nodes = 0;
    CUDA_KERNEL_NODE_PARAMS launch = {.func = load_kernel(), .gridDimX = 1, .gridDimY = 1,
                                      .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
                                      .blockDimZ = 1};
    CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    DRIVER(cuGraphCreate)(&graph, 0);
    expect(DRIVER(cuGraphAddKernelNode)(&kernel, graph, NULL, 0, &launch), CUDA_SUCCESS,
           "a node that is a kernel");
    expect(DRIVER(cuGraphAddEmptyNode)(&empty, graph, &kernel, 1), CUDA_SUCCESS, "an empty one");
    parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 2;
    DRIVER(cuGraphConditionalHandleCreate)(&parameters.conditional.handle, graph, NULL, 0, 0);
    expect(ADD_NODE(&loop, graph, &empty, &parameters), CUDA_SUCCESS,
           "one with two bodies");
    expect(DRIVER(cuGraphAddKernelNode)(&inside, parameters.conditional.phGraph_out[1], NULL, 0,
                                        &launch),
           CUDA_SUCCESS, "a kernel in the second");
    DRIVER(cuGraphNodeGetType)(loop, &type);
    check(type == CU_GRAPH_NODE_TYPE_CONDITIONAL, "it knows what it is");
    DRIVER(cuGraphGetNodes)(graph, NULL, &nodes);
    check(nodes == 3, "%zu nodes", nodes);
    launch.func = NULL;
    expect(DRIVER(cuGraphAddKernelNode)(&inside, graph, NULL, 0, &launch), CUDA_ERROR_INVALID_VALUE,
           "no kernel");
    DRIVER(cuGraphInstantiate)(&runnable, graph, 0);
    expect(DRIVER(cuGraphLaunch)(runnable, NULL), CUDA_SUCCESS, "its launch");
    DRIVER(cuGraphExecDestroy)(runnable);
    DRIVER(cuGraphDestroy)(graph);
}

/* --- contexts, threads, processes ------------------------------------------------------------- */

static void check_stack(void)
{
    CUcontext primary, current, popped;
    DRIVER(cuCtxGetCurrent)(&primary);
    expect(DRIVER(cuCtxPushCurrent)(primary), CUDA_SUCCESS, "cuCtxPushCurrent");
    expect(DRIVER(cuCtxPopCurrent)(&popped), CUDA_SUCCESS, "cuCtxPopCurrent");
    check(popped == primary, "what was pushed");
    DRIVER(cuCtxGetCurrent)(&current);
    check(current == primary, "what was below");
    DRIVER(cuCtxSetCurrent)(NULL);
    DRIVER(cuCtxGetCurrent)(&current);
    check(!current, "none is current any more");
    expect(DRIVER(cuCtxSynchronize)(), CUDA_ERROR_INVALID_CONTEXT, "a call then");
    DRIVER(cuCtxSetCurrent)(primary);
    expect(DRIVER(cuCtxSetCurrent)((CUcontext)(void *)&popped), CUDA_ERROR_INVALID_CONTEXT,
           "something that is no context");
}

static void *in_thread(void *context)
{
    CUcontext current = context;
    CUdeviceptr at;
    DRIVER(cuCtxGetCurrent)(&current);
    check(!current, "a new thread has no context");
    expect(DRIVER(cuMemAlloc)(&at, MIB), CUDA_ERROR_INVALID_CONTEXT, "memory in it");
    DRIVER(cuCtxSetCurrent)(context);
    expect(DRIVER(cuMemAlloc)(&at, MIB), CUDA_SUCCESS, "memory with a context");
    DRIVER(cuMemFree)(at);
    return NULL;
}

static void check_thread(void)
{
    pthread_t thread;
    CUcontext context;
    DRIVER(cuCtxGetCurrent)(&context);
    pthread_create(&thread, NULL, in_thread, context);
    pthread_join(thread, NULL);
}

static void check_fork(void)
{
    int status = 1, count;
    pid_t pid = fork();
    if (!pid) _exit(DRIVER(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    waitpid(pid, &status, 0);
    check(status == 0, "a fork has no CUDA");
}

static void send_descriptor(int socket, int fd)
{
    char byte = 0, space[CMSG_SPACE(sizeof(fd))] = {0};
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof(space)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    check(sendmsg(socket, &message, 0) == 1, "a descriptor is sent");
}

static int receive_descriptor(int socket)
{
    int fd = -1;
    char byte, space[CMSG_SPACE(sizeof(fd))];
    struct iovec io = {&byte, 1};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = space,
                             .msg_controllen = sizeof(space)};
    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

/* The other process: forked before this one used the GPU. */
static void be_peer(int socket)
{
    CUcontext context;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;
    int fd = receive_descriptor(socket);
    if (fd < 0) exit(1);
    DRIVER(cuInit)(0);
    DRIVER(cuDevicePrimaryCtxRetain)(&context, 0);
    DRIVER(cuCtxSetCurrent)(context);
    size_t before = free_bytes();
    expect(DRIVER(cuMemImportFromShareableHandle)(&handle, (void *)(uintptr_t)fd,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
           CUDA_SUCCESS, "import by another process");
    DRIVER(cuMemAddressReserve)(&range, 4 * MIB, 0, 0, 0);
    expect(DRIVER(cuMemMap)(range, 4 * MIB, 0, handle, 0), CUDA_SUCCESS, "mapping it");
    check(free_bytes() == before, "it costs nothing there");
    exit(0);
}

static void check_peer(int socket, pid_t pid)
{
    CUmemGenericAllocationHandle handle;
    int fd = -1, status = 1;
    DRIVER(cuMemCreate)(&handle, 4 * MIB, &plain, 0);
    DRIVER(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    send_descriptor(socket, fd);
    waitpid(pid, &status, 0);
    check(status == 0, "the other process is content");
    DRIVER(cuMemRelease)(handle);
}

static void check_end(void)
{
    CUcontext context;
    CUdeviceptr at;
    int active = 1;
    unsigned flags;
    expect(CREATE_CONTEXT(&context, 0), CUDA_SUCCESS, "cuCtxCreate");
    expect(DRIVER(cuCtxDestroy)(context), CUDA_SUCCESS, "cuCtxDestroy");
    expect(DRIVER(cuMemAlloc)(&at, MIB), CUDA_SUCCESS, "the primary context is still current");
    expect(DRIVER(cuDevicePrimaryCtxReset)(0), CUDA_SUCCESS, "reset");
    DRIVER(cuDevicePrimaryCtxGetState)(0, &flags, &active);
    check(!active, "the primary context is gone");
}

int main(void)
{
    int sockets[2];
    library = dlopen("libcuda.so.1", RTLD_NOW);
    check(library != NULL, "libcuda.so.1 is there");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) return 1;
    pid_t peer = fork();
    close(sockets[peer ? 1 : 0]);
    if (!peer) be_peer(sockets[1]);
    check_start();
    check_gpu();
    check_names();
    check_memory();
    check_limit();
    check_pointers();
    check_mapping();
    check_export();
    check_pool();
    check_events();
    check_module();
    check_capture();
    check_graph();
    check_stack();
    check_thread();
    check_fork();
    check_peer(sockets[0], peer);
    check_end();
    printf("all is well\n");
    return 0;
}
