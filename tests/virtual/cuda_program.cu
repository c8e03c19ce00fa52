// A program that knows nothing of plimsoll and uses the CUDA runtime of the machine it runs on,
// the virtual one, linked with NVIDIA's own libcudart and cuBLAS as nvcc links them. One line a
// check; it ends with 1 at the first that fails, and says what was expected.
//
// It wants an A100 with 2 GiB, that no other process uses.
#include "cuda_program.cuh"
#include <cstring>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

__device__ int device_table[4];
__constant__ float constant_table[16];
__managed__ int managed_number;

__global__ void write_seven(int *out) { *out = 7; }
__global__ void read_only(const int *in) { (void)*in; }
__global__ void nothing() {}

// ---- the GPU -----------------------------------------------------------------------------------

static void check_gpu()
{
    struct stat status;
    check(!access("/dev/nvidiactl", F_OK) && !stat("/dev/nvidia0", &status), "its files are there");
    check(stat("/dev/nvidia1", &status) < 0, "a second GPU's are not");
    int count = 0, value = 0, version = 0;
    char bus[16];
    cudaDeviceProp gpu;
    OK(cudaGetDeviceCount(&count));
    EQUAL(count, 1);
    OK(cudaGetDeviceProperties(&gpu, 0));
    check(strstr(gpu.name, "A100") != nullptr, "its name has A100: %s", gpu.name);
    EQUAL(gpu.major * 10 + gpu.minor, 80);
    EQUAL(gpu.totalGlobalMem, TOTAL);
    EQUAL(gpu.multiProcessorCount, 108);
    EQUAL(gpu.warpSize, 32);
    EQUAL(gpu.maxThreadsPerBlock, 1024);
    EQUAL(gpu.sharedMemPerBlockOptin, 163 * 1024);
    EQUAL(gpu.memoryPoolsSupported, 1);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    EQUAL(value, 163 * 1024);
    EXPECT(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0), cudaErrorInvalidValue);
    OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
    EXPECT(cudaDeviceGetPCIBusId(bus, 5, 0), cudaErrorInvalidValue);
    for (const char *name : {(const char *)bus, "1:0.0", "0000:01:00", "00000000:01:00.0"}) {
        OK(cudaDeviceGetByPCIBusId(&value, name));
        EQUAL(value, 0);
    }
    for (const char *name : {"0000:02:00.0", "0000:01:00.1", "01", "0000:01:00.0!", ""})
        EXPECT(cudaDeviceGetByPCIBusId(&value, name), cudaErrorInvalidDevice);
    EXPECT(cudaMalloc((void **)nullptr, 1), cudaErrorInvalidValue);
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaRuntimeGetVersion(&version));
    EQUAL(version, CUDART_VERSION);
    OK(cudaDriverGetVersion(&version));
    check(version >= CUDART_VERSION, "the driver is new enough: %d", version);
    OK(cudaSetDevice(0));
    EXPECT(cudaSetDevice(1), cudaErrorInvalidDevice);
    EXPECT(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
    OK(cudaGetLastError());
    OK(cudaGetDevice(&value));
    EQUAL(value, 0);
}

static void check_texts()
{
#define TEXT(error, text)                                                                          \
    check(!strcmp(cudaGetErrorName(error), #error), "%s is the name of %d", #error, error);        \
    check(!strcmp(cudaGetErrorString(error), text), "%s: %s", #error, text)
    TEXT(cudaSuccess, "no error");
    TEXT(cudaErrorInvalidValue, "invalid argument");
    TEXT(cudaErrorMemoryAllocation, "out of memory");
    TEXT(cudaErrorInitializationError, "initialization error");
    TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument");
    TEXT(cudaErrorNoKernelImageForDevice,
         "no kernel image is available for execution on the device");
    TEXT(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing");
    TEXT(cudaErrorNotSupported, "operation not supported");
#undef TEXT
    const char *name = cudaGetErrorName(cudaErrorStreamCaptureUnjoined);
    check(!strcmp(name, "cudaErrorStreamCaptureUnjoined"), "%s has a name", name);
}

// ---- memory -------------------------------------------------------------------------------------

static void check_memory()
{
    size_t now = 0, total = 0, pitch = 0;
    void *at = nullptr, *other = nullptr;
    OK(cudaMemGetInfo(&now, &total));
    EQUAL(total, TOTAL);
    EQUAL(now, TOTAL);
    OK(cudaMalloc(&at, 5 * MIB));
    EQUAL(TOTAL - free_bytes(), 6 * MIB);
    EQUAL((uintptr_t)at % 512, 0);
    OK(cudaFree(at));
    EXPECT(cudaFree(at), cudaErrorInvalidValue);
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaFree(nullptr));
    OK(cudaMalloc(&at, 0));
    check(at == nullptr, "nothing is nowhere");
    EQUAL(free_bytes(), TOTAL);
    OK(cudaMallocPitch(&at, &pitch, 1000, 10));
    EQUAL(pitch, 1024);
    OK(cudaMalloc(&other, 1000 * 10));
    OK(cudaMemcpy2D(other, 1000, at, pitch, 1000, 10, cudaMemcpyDeviceToDevice));
    OK(cudaFree(at));
    OK(cudaFree(other));
    EQUAL(free_bytes(), TOTAL);
}

static void check_limit()
{
    std::vector<void *> held;
    void *at = nullptr;
    EXPECT(cudaMalloc(&at, TOTAL + 1), cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
    OK(cudaGetLastError());
    while (!cudaMalloc(&at, 64 * MIB)) held.push_back(at);
    EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
    EQUAL(held.size(), 32);
    EQUAL(free_bytes(), 0);
    EXPECT(cudaMalloc(&at, 1), cudaErrorMemoryAllocation);
    EXPECT(cudaMallocAsync(&at, 1, nullptr), cudaErrorMemoryAllocation);
    EXPECT(cudaMallocAsync(&at, ~(size_t)0, nullptr), cudaErrorMemoryAllocation);
    (void)cudaGetLastError();
    OK(cudaFree(held.back()));
    held.pop_back();
    OK(cudaMalloc(&at, 64 * MIB));
    OK(cudaFree(at));
    for (void *each : held) cudaFree(each);
    EQUAL(free_bytes(), TOTAL);
    OK(cudaMalloc(&at, TOTAL));
    OK(cudaFree(at));
}

static unsigned long long pool_value(cudaMemPool_t pool, cudaMemPoolAttr attribute)
{
    unsigned long long value = ~0ull;
    OK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void check_pools()
{
    cudaStream_t stream;
    cudaMemPool_t pool;
    void *at = nullptr;
    OK(cudaStreamCreate(&stream));
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMallocAsync(&at, 40 * MIB, stream));
    EQUAL(TOTAL - free_bytes(), 64 * MIB);
    EQUAL(pool_value(pool, cudaMemPoolAttrUsedMemCurrent), 40 * MIB);
    EQUAL(pool_value(pool, cudaMemPoolAttrReservedMemCurrent), 64 * MIB);
    OK(cudaFreeAsync(at, stream));
    EQUAL(TOTAL - free_bytes(), 64 * MIB);
    OK(cudaStreamSynchronize(stream));
    EQUAL(free_bytes(), TOTAL);

    cudaMemPoolProps properties = {};
    unsigned long long threshold = 100 * MIB;
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    OK(cudaMallocFromPoolAsync(&at, 50 * MIB, pool, stream));
    OK(cudaFreeAsync(at, stream));
    OK(cudaStreamSynchronize(stream));
    EQUAL(TOTAL - free_bytes(), 64 * MIB);
    OK(cudaMemPoolTrimTo(pool, 0));
    EQUAL(free_bytes(), TOTAL);
    OK(cudaMemPoolDestroy(pool));
    properties.location.id = 1;
    EXPECT(cudaMemPoolCreate(&pool, &properties), cudaErrorInvalidValue);
    (void)cudaGetLastError();
    OK(cudaStreamDestroy(stream));
}

static void check_host_memory()
{
    int *pinned = nullptr, *managed = nullptr, *mapped = nullptr, mine[1024] = {0};
    cudaPointerAttributes about;
    unsigned flags = 0;
    OK(cudaMallocHost(&pinned, MIB));
    pinned[0] = 5;
    OK(cudaPointerGetAttributes(&about, pinned));
    EQUAL(about.type, cudaMemoryTypeHost);
    OK(cudaFreeHost(pinned));
    EXPECT(cudaFreeHost(pinned), cudaErrorInvalidValue);
    (void)cudaGetLastError();
    OK(cudaHostAlloc(&pinned, MIB, cudaHostAllocMapped));
    OK(cudaHostGetFlags(&flags, pinned));
    check(flags & cudaHostAllocMapped, "it is mapped");
    OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
    OK(cudaFreeHost(pinned));
    OK(cudaHostRegister(mine, sizeof(mine), cudaHostRegisterDefault));
    EXPECT(cudaHostRegister(mine, sizeof(mine), 0), cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostUnregister(mine));
    EXPECT(cudaHostUnregister(mine), cudaErrorHostMemoryNotRegistered);
    (void)cudaGetLastError();
    OK(cudaPointerGetAttributes(&about, mine));
    EQUAL(about.type, cudaMemoryTypeUnregistered);
    OK(cudaMallocManaged(&managed, MIB));
    managed[MIB / 4 - 1] = 9;
    OK(cudaPointerGetAttributes(&about, managed));
    EQUAL(about.type, cudaMemoryTypeManaged);
    OK(cudaFree(managed));
    EQUAL(free_bytes(), TOTAL);
}

// ---- contents -----------------------------------------------------------------------------------

static void check_symbols()
{
    const int in[4] = {1, 2, 3, 4};
    int out[4] = {0};
    float half = 0.5f, back = 0;
    void *at = nullptr;
    size_t bytes = 0;
    OK(cudaMemcpyToSymbol(device_table, in, sizeof(in)));
    OK(cudaMemcpyFromSymbol(out, device_table, sizeof(out)));
    check(!memcmp(in, out, sizeof(in)), "what was put into a variable comes back");
    OK(cudaMemcpyToSymbol(constant_table, &half, sizeof(half), 3 * sizeof(half)));
    OK(cudaMemcpyFromSymbol(&back, constant_table, sizeof(back), 3 * sizeof(back)));
    check(back == half, "constants, too");
    EXPECT(cudaMemcpyToSymbol(device_table, in, sizeof(in), 1), cudaErrorInvalidValue);
    OK(cudaGetSymbolSize(&bytes, device_table));
    EQUAL(bytes, sizeof(device_table));
    OK(cudaGetSymbolAddress(&at, device_table));
    OK(cudaMemcpy(out, (int *)at + 2, sizeof(int), cudaMemcpyDeviceToHost));
    EQUAL(out[0], 3);
    EXPECT(cudaGetSymbolAddress(&at, out), cudaErrorInvalidSymbol);
    (void)cudaGetLastError();
    managed_number = 12;
    EQUAL(managed_number, 12);
}

static void check_contents()
{
    int *at = nullptr, *other = nullptr, number = 41, back = 0;
    OK(cudaMalloc(&at, MIB));
    OK(cudaMalloc(&other, MIB));
    OK(cudaMemcpy(at + 5, &number, sizeof(number), cudaMemcpyHostToDevice));
    OK(cudaMemcpy(other, at + 5, sizeof(number), cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(&back, other, sizeof(back), cudaMemcpyDefault));
    EQUAL(back, 41);
    OK(cudaMemset(at, 1, 64));
    OK(cudaMemcpy(&back, at + 5, sizeof(back), cudaMemcpyDeviceToHost));
    EQUAL(back, 0x01010101);
    read_only<<<1, 32>>>(at);
    OK(cudaGetLastError());
    OK(cudaMemcpy(&back, at + 5, sizeof(back), cudaMemcpyDeviceToHost));
    EQUAL(back, 0x01010101);
    write_seven<<<1, 32>>>(at);
    OK(cudaGetLastError());
    OK(cudaMemcpy(&back, at, sizeof(back), cudaMemcpyDeviceToHost));
    EQUAL(back, 0); // kernels do nothing: not 7, nor what was there before
    OK(cudaMemcpy(&back, other, sizeof(back), cudaMemcpyDeviceToHost));
    EQUAL(back, 41);
    OK(cudaFree(at));
    OK(cudaFree(other));
}

// ---- kernels ------------------------------------------------------------------------------------

static void check_launches()
{
    cudaFuncAttributes about;
    int blocks = 0, *at = nullptr;
    void *arguments[] = {&at};
    nothing<<<1, 1024>>>();
    OK(cudaGetLastError());
    nothing<<<1, 1025>>>();
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    nothing<<<0, 32>>>();
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    nothing<<<dim3(1, 65536), 32>>>();
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    nothing<<<1, dim3(1, 1, 65)>>>();
    EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
    nothing<<<1, 32, 164 * 1024>>>();
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 164 * 1024),
           cudaErrorInvalidValue);
    OK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 163 * 1024));
    (void)cudaGetLastError();
    nothing<<<1, 32, 163 * 1024>>>();
    OK(cudaGetLastError());
    OK(cudaLaunchKernel((const void *)write_seven, 1, 32, arguments, 0, nullptr));
    OK(cudaLaunchCooperativeKernel((const void *)nothing, 1, 32, nullptr, 0, nullptr));
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = 1;
    OK(cudaLaunchKernelEx(&config, nothing));
    config.blockDim = 2000;
    EXPECT(cudaLaunchKernelEx(&config, nothing), cudaErrorInvalidConfiguration);
    EXPECT(cudaLaunchKernel(&blocks, 1, 32, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
    (void)cudaGetLastError();
    OK(cudaFuncGetAttributes(&about, nothing));
    EQUAL(about.binaryVersion, 80);
    EQUAL(about.maxThreadsPerBlock, 1024);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 1024, 0));
    EQUAL(blocks, 2);
    EXPECT(launch_newer(at), cudaErrorNoKernelImageForDevice);
    EXPECT(describe_newer(&about), cudaErrorNoKernelImageForDevice);
    (void)cudaGetLastError();
    OK(cudaDeviceSynchronize());
}

// ---- streams ------------------------------------------------------------------------------------

static void set_flag(void *flag) { *(bool *)flag = true; }

static void check_streams()
{
    cudaStream_t stream, urgent;
    cudaEvent_t from, to, timeless;
    float milliseconds = -1;
    int least = 1, greatest = 1, priority = 1;
    unsigned flags = 0;
    bool called = false;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check(least == 0 && greatest < 0, "priorities from %d to %d", least, greatest);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamGetFlags(stream, &flags));
    EQUAL(flags, cudaStreamNonBlocking);
    OK(cudaStreamCreateWithPriority(&urgent, cudaStreamDefault, greatest));
    OK(cudaStreamGetPriority(urgent, &priority));
    EQUAL(priority, greatest);
    OK(cudaEventCreate(&from));
    OK(cudaEventCreateWithFlags(&to, cudaEventBlockingSync));
    EXPECT(cudaEventElapsedTime(&milliseconds, from, to), cudaErrorInvalidResourceHandle);
    (void)cudaGetLastError();
    OK(cudaEventRecord(from, stream));
    nothing<<<1, 32, 0, stream>>>();
    OK(cudaStreamWaitEvent(urgent, from, 0));
    OK(cudaEventRecord(to, urgent));
    OK(cudaEventQuery(to));
    OK(cudaEventSynchronize(to));
    OK(cudaEventElapsedTime(&milliseconds, from, to));
    check(milliseconds >= 0 && milliseconds < 1000, "%g ms went by", (double)milliseconds);
    OK(cudaEventCreateWithFlags(&timeless, cudaEventDisableTiming));
    OK(cudaEventRecord(timeless, stream));
    EXPECT(cudaEventElapsedTime(&milliseconds, from, timeless), cudaErrorInvalidResourceHandle);
    EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    OK(cudaEventDestroy(timeless));
    OK(cudaLaunchHostFunc(stream, set_flag, &called));
    OK(cudaStreamSynchronize(stream));
    check(called, "the host function was called");
    OK(cudaStreamQuery(cudaStreamPerThread));
    OK(cudaEventDestroy(from));
    OK(cudaEventDestroy(to));
    OK(cudaStreamDestroy(urgent));
    OK(cudaStreamDestroy(stream));
}

static void check_graph()
{
    cudaStream_t stream, branch;
    cudaEvent_t event;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable;
    cudaStreamCaptureStatus status;
    size_t nodes = 0;
    int *at = nullptr;
    OK(cudaMalloc(&at, MIB));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamCreate(&branch));
    OK(cudaEventCreate(&event));
    EXPECT(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
           cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    write_seven<<<1, 32, 0, stream>>>(at);
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(branch, event, 0));
    OK(cudaMemsetAsync(at, 0, 64, branch));
    OK(cudaStreamIsCapturing(branch, &status));
    EQUAL(status, cudaStreamCaptureStatusActive);
    OK(cudaEventRecord(event, branch));
    OK(cudaStreamWaitEvent(stream, event, 0));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaStreamIsCapturing(branch, &status));
    EQUAL(status, cudaStreamCaptureStatusNone);
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EQUAL(nodes, 2);
    OK(cudaGraphInstantiate(&runnable, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphUpload(runnable, stream));
    OK(cudaGraphLaunch(runnable, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaGraphExecDestroy(runnable));

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    check(graph == nullptr, "a capture that was broken gives no graph");
    (void)cudaGetLastError();
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(branch));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(at));
}

// A child and a loop among them, as JAX puts them together.
static void check_graph_by_hand()
{
    int *at = nullptr;
    cudaGraph_t graph, child, found = nullptr;
    cudaGraphExec_t runnable;
    cudaGraphNode_t kernel, fill, inside, node;
    cudaGraphConditionalHandle handle;
    cudaGraphNodeType type;
    size_t nodes = 0, before = 1;
    OK(cudaMalloc(&at, MIB));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphCreate(&child, 0));
    void *arguments[] = {&at};
    cudaKernelNodeParams launch = {};
    launch.func = (void *)write_seven;
    launch.gridDim = launch.blockDim = dim3(1);
    launch.kernelParams = arguments;
    OK(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &launch));
    cudaMemsetParams zeros = {};
    zeros.dst = at;
    zeros.elementSize = 1, zeros.width = 64, zeros.height = 1;
    OK(cudaGraphAddMemsetNode(&fill, graph, &kernel, 1, &zeros));
    OK(cudaGraphAddEmptyNode(&inside, child, nullptr, 0));
    OK(cudaGraphAddChildGraphNode(&node, graph, &fill, 1, child));
    OK(cudaGraphNodeGetDependencies(node, &inside, nullptr, &before));
    EQUAL(before, 1);
    check(inside == fill, "it comes after the fill");
    OK(cudaGraphChildGraphNodeGetGraph(node, &found));
    OK(cudaGraphGetNodes(found, nullptr, &nodes));
    EQUAL(nodes, 1);
    OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, 0));
    cudaGraphNodeParams loop = {};
    loop.type = cudaGraphNodeTypeConditional;
    loop.conditional.handle = handle;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
    OK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop));
    OK(cudaGraphAddKernelNode(&inside, loop.conditional.phGraph_out[0], nullptr, 0, &launch));
    OK(cudaGraphNodeGetType(node, &type));
    EQUAL(type, cudaGraphNodeTypeConditional);
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EQUAL(nodes, 4);
    OK(cudaGraphInstantiate(&runnable, graph, 0));
    OK(cudaGraphExecKernelNodeSetParams(runnable, kernel, &launch));
    OK(cudaGraphLaunch(runnable, nullptr));
    OK(cudaGraphExecDestroy(runnable));
    OK(cudaGraphDestroy(child));
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(at));
}

// ---- the rest -----------------------------------------------------------------------------------

static void check_driver()
{
    typedef int query(size_t *, size_t *);
    void *found = nullptr;
    cudaDriverEntryPointQueryResult status;
    size_t now = 0, total = 0;
    OK(cudaGetDriverEntryPointByVersion("cuMemGetInfo", &found, 12080, cudaEnableDefault, &status));
    EQUAL(status, cudaDriverEntryPointSuccess);
    EQUAL(((query *)found)(&now, &total), 0);
    EQUAL(total, TOTAL);
    OK(cudaGetDriverEntryPointByVersion("cuNothing", &found, 12080, cudaEnableDefault, &status));
    EQUAL(status, cudaDriverEntryPointSymbolNotFound);
}

static void check_blas()
{
    cublasHandle_t blas;
    cublasLtHandle_t lt;
    float one = 1, zero = 0, *at = nullptr;
    int version = 0;
    OK(cudaMalloc(&at, MIB));
    EQUAL(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
    EQUAL(cublasGetVersion(blas, &version), CUBLAS_STATUS_SUCCESS);
    EQUAL(version, CUBLAS_VERSION);
    EQUAL(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 8, &one, at, 8, at, 8, &zero, at, 8),
          CUBLAS_STATUS_SUCCESS);
    EQUAL(cublasSaxpy(blas, 8, &one, at, 1, at, 1), CUBLAS_STATUS_SUCCESS);
    EQUAL(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, at, 8, at, 8, &zero, at, 8),
          CUBLAS_STATUS_NOT_INITIALIZED);
    EQUAL(cublasLtCreate(&lt), CUBLAS_STATUS_SUCCESS);
    EQUAL(cublasLtDestroy(lt), CUBLAS_STATUS_SUCCESS);
    EQUAL(cublasDestroy(blas), CUBLAS_STATUS_SUCCESS);
    OK(cudaFree(at));
}

// What is not supported says so, and does not seem to work.
static void check_refusal()
{
    cudaArray_t array = nullptr;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    EXPECT(cudaMallocArray(&array, &format, 64, 64), cudaErrorNotSupported);
    EXPECT(cudaGetLastError(), cudaErrorNotSupported);
}

static void check_end()
{
    void *at = nullptr;
    size_t value = 0;
    OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * MIB));
    OK(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    EQUAL(value, 64 * MIB);
    OK(cudaMalloc(&at, 100 * MIB));
    OK(cudaMallocAsync(&at, 100 * MIB, nullptr));
    OK(cudaDeviceReset());
    EQUAL(free_bytes(), TOTAL);
    OK(cudaMalloc(&at, MIB));
}

int main(int count, char **arguments)
{
    if (count == 3 && !strcmp(arguments[1], "--peer")) return be_peer(arguments[2]);
    check_fork_before();
    check_gpu();
    check_texts();
    check_memory();
    check_limit();
    check_pools();
    check_host_memory();
    check_symbols();
    check_contents();
    check_launches();
    check_streams();
    check_graph();
    check_graph_by_hand();
    check_processes();
    check_driver();
    check_blas();
    check_refusal();
    check_end();
    printf("all is well\n");
    return 0;
}
