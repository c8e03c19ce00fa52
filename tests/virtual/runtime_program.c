/* A program of one version of the CUDA runtime, compiled with that version's own headers and linked
 * with its own library, for what changed from 11.8 to 13: structures and signatures. It wants an A100
 * with 2 GiB and ends with 1 at the first answer that is wrong. */
#include "check.h"
#include <cuda_runtime_api.h>
#include <string.h>

#define OK(call) check_call(call, #call)
static void check_call(cudaError_t result, const char *call)
{
    check(!result, "%s: %d", call, (int)result);
}

static void check_gpu(void)
{
    struct { /* what is written must not pass its end */
        struct cudaDeviceProp properties;
        unsigned char behind[64];
    } gpu;
    int version = 0;
    memset(&gpu, 0xaa, sizeof(gpu));
    OK(cudaRuntimeGetVersion(&version));
    EQUAL(version / 1000, CUDART_VERSION / 1000);
    if (CUDART_VERSION >= 12000) EQUAL(version, CUDART_VERSION);
    OK(cudaDriverGetVersion(&version));
    check(version >= CUDART_VERSION, "the driver is new enough: %d", version);
    OK(cudaGetDeviceProperties(&gpu.properties, 0));
    check(strstr(gpu.properties.name, "A100") != NULL, "its name: %s", gpu.properties.name);
    EQUAL(gpu.properties.totalGlobalMem, (size_t)2 << 30);
    EQUAL(gpu.properties.major * 10 + gpu.properties.minor, 80);
    EQUAL(gpu.properties.multiProcessorCount, 108);
    EQUAL(gpu.properties.l2CacheSize, 40 << 20);
    EQUAL(gpu.properties.sharedMemPerBlockOptin, 163 * 1024);
    EQUAL(gpu.properties.reservedSharedMemPerBlock, 1024);
    for (size_t i = 0; i < sizeof(gpu.behind); i++) EQUAL(gpu.behind[i], 0xaa);
}

static void check_memory(void)
{
    void *at = NULL;
    struct cudaPointerAttributes attributes;
    size_t free_bytes = 0, total_bytes = 0;
    OK(cudaMalloc(&at, 5 << 20));
    OK(cudaMemGetInfo(&free_bytes, &total_bytes));
    EQUAL(total_bytes - free_bytes, (size_t)6 << 20);
    OK(cudaPointerGetAttributes(&attributes, at));
    EQUAL(attributes.type, cudaMemoryTypeDevice);
    EQUAL(attributes.device, 0);
    OK(cudaFree(at));
}

static void check_pool(void)
{
    struct cudaMemPoolProps properties;
    cudaMemPool_t pool;
    void *at = NULL;
    memset(&properties, 0, sizeof(properties));
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaMallocFromPoolAsync(&at, 1 << 20, pool, NULL));
    OK(cudaFreeAsync(at, NULL));
    OK(cudaMemPoolDestroy(pool));
}

static void check_graph(void)
{
    void *at = NULL;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t whole;
    OK(cudaMalloc(&at, 16));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    OK(cudaMemsetAsync(at, 1, 16, stream));
    OK(cudaStreamEndCapture(stream, &graph));
#if CUDART_VERSION < 12000
    OK(cudaGraphInstantiate(&whole, graph, NULL, NULL, 0));
#else
    OK(cudaGraphInstantiate(&whole, graph, 0));
#endif
    OK(cudaGraphLaunch(whole, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaGraphExecDestroy(whole));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(at));
}

static void check_driver(void)
{
    typedef int query(size_t *, size_t *);
    void *found = NULL;
    size_t free_bytes = 0, total_bytes = 0;
#if CUDART_VERSION < 12000
    OK(cudaGetDriverEntryPoint("cuMemGetInfo", &found, cudaEnableDefault));
#else
    enum cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION < 13000
    OK(cudaGetDriverEntryPoint("cuMemGetInfo", &found, cudaEnableDefault, &status));
#else
    OK(cudaGetDriverEntryPointByVersion("cuMemGetInfo", &found, CUDART_VERSION, cudaEnableDefault,
                                        &status));
#endif
    EQUAL(status, cudaDriverEntryPointSuccess);
#endif
    query *function;
    memcpy(&function, &found, sizeof(function));
    OK((cudaError_t)function(&free_bytes, &total_bytes));
    EQUAL(total_bytes, (size_t)2 << 30);
}

int main(void)
{
    check_gpu();
    check_memory();
    check_pool();
    check_graph();
    check_driver();
    printf("{\"runtime\": %d}\n", CUDART_VERSION);
    return 0;
}
