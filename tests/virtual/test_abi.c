/* The numbers that the virtual GPU writes down of CUDA (machine/cuda_abi.h and others) against
 * a toolkit's headers, and structures that go to and fro: filled here as a program fills them that
 * was compiled with these headers, read by the virtual GPU, and the other way round. What it
 * writes down of the libraries is in test_abi_libraries.c, and launches. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include "devices/virtual/machine/attribute.h"
#include "devices/virtual/memory/ipc.h"
#include "devices/virtual/work/stream.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <string.h>

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
#define OK(call) cr_assert(eq(int, (int)(call), 0), #call)

static const int64_t MIB = 1 << 20;

static void two_gpus(void) { make_machine("H100-SXM", 2, 1000 * MIB); }

/* --- numbers: cuda_abi.h, stream.h, attribute.h ----------------------------------------------- */

#define ERROR(ours, runtime, driver)                                                               \
    SAME(ours, runtime);                                                                           \
    SAME(ours, driver)
ERROR(GPU_OK, cudaSuccess, CUDA_SUCCESS);
ERROR(GPU_INVALID_VALUE, cudaErrorInvalidValue, CUDA_ERROR_INVALID_VALUE);
ERROR(GPU_OUT_OF_MEMORY, cudaErrorMemoryAllocation, CUDA_ERROR_OUT_OF_MEMORY);
ERROR(GPU_NOT_INITIALIZED, cudaErrorInitializationError, CUDA_ERROR_NOT_INITIALIZED);
SAME(GPU_INVALID_CONFIGURATION, cudaErrorInvalidConfiguration);
SAME(GPU_INVALID_SYMBOL, cudaErrorInvalidSymbol);
SAME(GPU_INVALID_DEVICE_FUNCTION, cudaErrorInvalidDeviceFunction);
ERROR(GPU_NO_DEVICE, cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE);
ERROR(GPU_INVALID_DEVICE, cudaErrorInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
ERROR(GPU_INVALID_CONTEXT, cudaErrorDeviceUninitialized, CUDA_ERROR_INVALID_CONTEXT);
ERROR(GPU_NO_BINARY, cudaErrorNoKernelImageForDevice, CUDA_ERROR_NO_BINARY_FOR_GPU);
ERROR(GPU_PEER_ACCESS_ALREADY_ENABLED, cudaErrorPeerAccessAlreadyEnabled,
      CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
ERROR(GPU_PEER_ACCESS_NOT_ENABLED, cudaErrorPeerAccessNotEnabled,
      CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
ERROR(GPU_HOST_MEMORY_ALREADY_REGISTERED, cudaErrorHostMemoryAlreadyRegistered,
      CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
ERROR(GPU_HOST_MEMORY_NOT_REGISTERED, cudaErrorHostMemoryNotRegistered,
      CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
ERROR(GPU_FILE_NOT_FOUND, cudaErrorFileNotFound, CUDA_ERROR_FILE_NOT_FOUND);
ERROR(GPU_INVALID_HANDLE, cudaErrorInvalidResourceHandle, CUDA_ERROR_INVALID_HANDLE);
ERROR(GPU_NOT_FOUND, cudaErrorSymbolNotFound, CUDA_ERROR_NOT_FOUND);
ERROR(GPU_NOT_READY, cudaErrorNotReady, CUDA_ERROR_NOT_READY);
ERROR(GPU_NOT_SUPPORTED, cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED);
ERROR(GPU_CAPTURE_UNSUPPORTED, cudaErrorStreamCaptureUnsupported,
      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
ERROR(GPU_CAPTURE_INVALIDATED, cudaErrorStreamCaptureInvalidated,
      CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
ERROR(GPU_CAPTURE_MERGE, cudaErrorStreamCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
ERROR(GPU_CAPTURE_UNMATCHED, cudaErrorStreamCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
ERROR(GPU_CAPTURE_UNJOINED, cudaErrorStreamCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
ERROR(GPU_CAPTURE_ISOLATION, cudaErrorStreamCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
ERROR(GPU_CAPTURE_IMPLICIT, cudaErrorStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
ERROR(GPU_CAPTURED_EVENT, cudaErrorCapturedEvent, CUDA_ERROR_CAPTURED_EVENT);
ERROR(GPU_CAPTURE_WRONG_THREAD, cudaErrorStreamCaptureWrongThread,
      CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
ERROR(GPU_UNKNOWN, cudaErrorUnknown, CUDA_ERROR_UNKNOWN);
SAME(719, cudaErrorLaunchFailure); /* nccl/comm.c */

SAME(GPU_MEMORY_UNREGISTERED, cudaMemoryTypeUnregistered);
SAME(GPU_MEMORY_HOST, cudaMemoryTypeHost);
SAME(GPU_MEMORY_DEVICE, cudaMemoryTypeDevice);
SAME(GPU_MEMORY_MANAGED, cudaMemoryTypeManaged);
ERROR(GPU_CAPTURE_NONE, cudaStreamCaptureStatusNone, CU_STREAM_CAPTURE_STATUS_NONE);
ERROR(GPU_CAPTURE_ACTIVE, cudaStreamCaptureStatusActive, CU_STREAM_CAPTURE_STATUS_ACTIVE);
ERROR(GPU_CAPTURE_BROKEN, cudaStreamCaptureStatusInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
ERROR(GPU_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, cudaMemPoolReuseFollowEventDependencies,
      CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
ERROR(GPU_POOL_REUSE_ALLOW_OPPORTUNISTIC, cudaMemPoolReuseAllowOpportunistic,
      CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
ERROR(GPU_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, cudaMemPoolReuseAllowInternalDependencies,
      CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
ERROR(GPU_POOL_RELEASE_THRESHOLD, cudaMemPoolAttrReleaseThreshold,
      CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
ERROR(GPU_POOL_RESERVED_CURRENT, cudaMemPoolAttrReservedMemCurrent,
      CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
ERROR(GPU_POOL_RESERVED_HIGH, cudaMemPoolAttrReservedMemHigh, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
ERROR(GPU_POOL_USED_CURRENT, cudaMemPoolAttrUsedMemCurrent, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
ERROR(GPU_POOL_USED_HIGH, cudaMemPoolAttrUsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME(sizeof(struct gpu_dim3), sizeof(dim3));
SAME(offsetof(struct gpu_dim3, z), offsetof(dim3, z));
SAME(sizeof(struct plim_ipc_handle), sizeof(cudaIpcMemHandle_t));
SAME(sizeof(struct plim_ipc_handle), sizeof(CUipcMemHandle));
SAME(sizeof(struct plim_ipc_handle), sizeof(cudaIpcEventHandle_t));
SAME(PLIM_NODE_KERNEL, cudaGraphNodeTypeKernel);
SAME(PLIM_NODE_MEMCPY, cudaGraphNodeTypeMemcpy);
SAME(PLIM_NODE_MEMSET, cudaGraphNodeTypeMemset);
SAME(PLIM_NODE_HOST, cudaGraphNodeTypeHost);
SAME(PLIM_NODE_GRAPH, cudaGraphNodeTypeGraph);
SAME(PLIM_NODE_EMPTY, cudaGraphNodeTypeEmpty);
SAME(PLIM_NODE_WAIT, cudaGraphNodeTypeWaitEvent);
SAME(PLIM_NODE_RECORD, cudaGraphNodeTypeEventRecord);
ERROR(GPU_ATTRIBUTE_PCI_BUS, cudaDevAttrPciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
ERROR(GPU_ATTRIBUTE_PCI_DEVICE, cudaDevAttrPciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
ERROR(GPU_ATTRIBUTE_PCI_DOMAIN, cudaDevAttrPciDomainId, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
ERROR(GPU_ATTRIBUTE_MAJOR, cudaDevAttrComputeCapabilityMajor,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
ERROR(GPU_ATTRIBUTE_MINOR, cudaDevAttrComputeCapabilityMinor,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

Test(numbers, special_streams)
{
    cr_expect(eq(ptr, cudaStreamLegacy, (void *)(uintptr_t)GPU_STREAM_LEGACY));
    cr_expect(eq(ptr, cudaStreamPerThread, (void *)(uintptr_t)GPU_STREAM_PER_THREAD));
}

/* --- attributes of a GPU --------------------------------------------------------------------- */

static const struct known_attribute {
    enum cudaDeviceAttr attribute;
    int value;
} known_attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, INT32_MAX},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
    {cudaDevAttrTotalConstantMemory, 64 << 10},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMultiProcessorCount, 132},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrMemoryPoolSupportedHandleTypes, cudaMemHandleTypePosixFileDescriptor},
    {cudaDevAttrIpcEventSupport, 1},
    {cudaDevAttrClusterLaunch, 1},
    {(enum cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {(enum cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {(enum cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
    {(enum cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0},
};

Test(gpu, has_the_attributes_that_it_should_under_their_numbers, .init = two_gpus)
{
    for (size_t i = 0; i < sizeof(known_attributes) / sizeof(known_attributes[0]); i++) {
        int value = -1;
        cr_expect(eq(int, cudaDeviceGetAttribute(&value, known_attributes[i].attribute, 0), 0));
        cr_expect(eq(int, value, known_attributes[i].value), "attribute %d",
                  known_attributes[i].attribute);
    }
}

/* Fields of cudaDeviceProp, their types told apart by size, and what they have to agree with. */
#define FIELD(name, attribute)                                                                     \
    {                                                                                              \
        #name, offsetof(struct cudaDeviceProp, name), sizeof(((struct cudaDeviceProp *)0)->name),  \
            attribute                                                                              \
    }
static const struct {
    const char *name;
    size_t offset, bytes;
    int attribute;
} property_fields[] = {
    FIELD(sharedMemPerBlock, cudaDevAttrMaxSharedMemoryPerBlock),
    FIELD(regsPerBlock, cudaDevAttrMaxRegistersPerBlock),
    FIELD(warpSize, cudaDevAttrWarpSize),
    FIELD(memPitch, cudaDevAttrMaxPitch),
    FIELD(maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock),
    FIELD(maxThreadsDim[0], cudaDevAttrMaxBlockDimX),
    FIELD(maxThreadsDim[1], cudaDevAttrMaxBlockDimY),
    FIELD(maxThreadsDim[2], cudaDevAttrMaxBlockDimZ),
    FIELD(maxGridSize[0], cudaDevAttrMaxGridDimX),
    FIELD(maxGridSize[1], cudaDevAttrMaxGridDimY),
    FIELD(maxGridSize[2], cudaDevAttrMaxGridDimZ),
    FIELD(totalConstMem, cudaDevAttrTotalConstantMemory),
    FIELD(major, cudaDevAttrComputeCapabilityMajor),
    FIELD(minor, cudaDevAttrComputeCapabilityMinor),
    FIELD(textureAlignment, cudaDevAttrTextureAlignment),
    FIELD(texturePitchAlignment, cudaDevAttrTexturePitchAlignment),
    FIELD(multiProcessorCount, cudaDevAttrMultiProcessorCount),
    FIELD(integrated, cudaDevAttrIntegrated),
    FIELD(canMapHostMemory, cudaDevAttrCanMapHostMemory),
    FIELD(maxTexture1D, cudaDevAttrMaxTexture1DWidth),
    FIELD(maxTexture1DMipmap, cudaDevAttrMaxTexture1DMipmappedWidth),
    FIELD(maxTexture2D[0], cudaDevAttrMaxTexture2DWidth),
    FIELD(maxTexture2D[1], cudaDevAttrMaxTexture2DHeight),
    FIELD(maxTexture3D[0], cudaDevAttrMaxTexture3DWidth),
    FIELD(maxTexture3D[2], cudaDevAttrMaxTexture3DDepth),
    FIELD(surfaceAlignment, cudaDevAttrSurfaceAlignment),
    FIELD(concurrentKernels, cudaDevAttrConcurrentKernels),
    FIELD(ECCEnabled, cudaDevAttrEccEnabled),
    FIELD(pciBusID, cudaDevAttrPciBusId),
    FIELD(pciDeviceID, cudaDevAttrPciDeviceId),
    FIELD(pciDomainID, cudaDevAttrPciDomainId),
    FIELD(tccDriver, cudaDevAttrTccDriver),
    FIELD(asyncEngineCount, cudaDevAttrAsyncEngineCount),
    FIELD(unifiedAddressing, cudaDevAttrUnifiedAddressing),
    FIELD(memoryBusWidth, cudaDevAttrGlobalMemoryBusWidth),
    FIELD(l2CacheSize, cudaDevAttrL2CacheSize),
    FIELD(persistingL2CacheMaxSize, cudaDevAttrMaxPersistingL2CacheSize),
    FIELD(maxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor),
    FIELD(streamPrioritiesSupported, cudaDevAttrStreamPrioritiesSupported),
    FIELD(globalL1CacheSupported, cudaDevAttrGlobalL1CacheSupported),
    FIELD(localL1CacheSupported, cudaDevAttrLocalL1CacheSupported),
    FIELD(sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor),
    FIELD(regsPerMultiprocessor, cudaDevAttrMaxRegistersPerMultiprocessor),
    FIELD(managedMemory, cudaDevAttrManagedMemory),
    FIELD(isMultiGpuBoard, cudaDevAttrIsMultiGpuBoard),
    FIELD(multiGpuBoardGroupID, cudaDevAttrMultiGpuBoardGroupID),
    FIELD(hostNativeAtomicSupported, cudaDevAttrHostNativeAtomicSupported),
    FIELD(pageableMemoryAccess, cudaDevAttrPageableMemoryAccess),
    FIELD(concurrentManagedAccess, cudaDevAttrConcurrentManagedAccess),
    FIELD(computePreemptionSupported, cudaDevAttrComputePreemptionSupported),
    FIELD(canUseHostPointerForRegisteredMem, cudaDevAttrCanUseHostPointerForRegisteredMem),
    FIELD(cooperativeLaunch, cudaDevAttrCooperativeLaunch),
    FIELD(sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin),
    FIELD(pageableMemoryAccessUsesHostPageTables,
          cudaDevAttrPageableMemoryAccessUsesHostPageTables),
    FIELD(directManagedMemAccessFromHost, cudaDevAttrDirectManagedMemAccessFromHost),
    FIELD(maxBlocksPerMultiProcessor, cudaDevAttrMaxBlocksPerMultiprocessor),
    FIELD(accessPolicyMaxWindowSize, cudaDevAttrMaxAccessPolicyWindowSize),
    FIELD(reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock),
    FIELD(hostRegisterSupported, cudaDevAttrHostRegisterSupported),
    FIELD(sparseCudaArraySupported, cudaDevAttrSparseCudaArraySupported),
    FIELD(hostRegisterReadOnlySupported, cudaDevAttrHostRegisterReadOnlySupported),
    FIELD(timelineSemaphoreInteropSupported, cudaDevAttrTimelineSemaphoreInteropSupported),
    FIELD(memoryPoolsSupported, cudaDevAttrMemoryPoolsSupported),
    FIELD(gpuDirectRDMASupported, cudaDevAttrGPUDirectRDMASupported),
    FIELD(gpuDirectRDMAWritesOrdering, cudaDevAttrGPUDirectRDMAWritesOrdering),
    FIELD(memoryPoolSupportedHandleTypes, cudaDevAttrMemoryPoolSupportedHandleTypes),
    FIELD(deferredMappingCudaArraySupported, cudaDevAttrDeferredMappingCudaArraySupported),
    FIELD(ipcEventSupported, cudaDevAttrIpcEventSupport),
    FIELD(clusterLaunch, cudaDevAttrClusterLaunch),
};

static int64_t field_of(const struct cudaDeviceProp *gpu, size_t i)
{
    int narrow = 0;
    int64_t wide = 0;
    const char *at = (const char *)gpu + property_fields[i].offset;
    if (property_fields[i].bytes == sizeof(wide)) memcpy(&wide, at, sizeof(wide));
    else memcpy(&narrow, at, sizeof(narrow));
    return property_fields[i].bytes == sizeof(wide) ? wide : narrow;
}

Test(gpu, its_properties_are_its_attributes, .init = two_gpus)
{
    struct {
        struct cudaDeviceProp gpu;
        unsigned char behind;
    } out;
    memset(&out, 0xaa, sizeof(out));
    cr_assert(eq(int, plim_attribute_properties(1, CUDART_VERSION / 1000, &out.gpu), GPU_OK));
    for (size_t i = 0; i < sizeof(property_fields) / sizeof(property_fields[0]); i++) {
        int value = 0;
        cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)property_fields[i].attribute, 1);
        cr_expect(eq(i64, field_of(&out.gpu, i), value), "%s", property_fields[i].name);
    }
    cr_expect(eq(str, out.gpu.name, machine->gpus[1].name));
    cr_expect(eq(int, memcmp(&out.gpu.uuid, machine->gpus[1].uuid, 16), 0));
    cr_expect(eq(sz, out.gpu.totalGlobalMem, (size_t)(1000 * MIB)));
    cr_expect(eq(int, out.gpu.pciBusID, 2));
    cr_expect(eq(u8, out.behind, 0xaa), "nothing is written behind it");
}

/* --- memory ----------------------------------------------------------------------------------- */

Test(memory, pointers_are_described, .init = two_gpus)
{
    struct {
        struct cudaPointerAttributes about;
        unsigned char behind;
    } out = {.behind = 0xaa};
    void *device, *host, *managed;
    cudaSetDevice(1);
    OK(cudaMalloc(&device, 4096));
    OK(cudaMallocHost(&host, 4096));
    OK(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
    cudaPointerGetAttributes(&out.about, (char *)device + 5);
    cr_expect(out.about.type == cudaMemoryTypeDevice && out.about.device == 1);
    cr_expect(out.about.devicePointer == (char *)device + 5 && !out.about.hostPointer);
    cudaPointerGetAttributes(&out.about, host);
    cr_expect(out.about.type == cudaMemoryTypeHost && out.about.hostPointer == host);
    cudaPointerGetAttributes(&out.about, managed);
    cr_expect(out.about.type == cudaMemoryTypeManaged && out.about.devicePointer == managed);
    cudaPointerGetAttributes(&out.about, &out);
    cr_expect(out.about.type == cudaMemoryTypeUnregistered &&
              out.about.device == cudaInvalidDeviceId && !out.about.devicePointer);
    cr_expect(eq(u8, out.behind, 0xaa));
}

static CUcontext enter_driver(int device)
{
    CUcontext context = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    return context;
}

Test(memory, attributes_of_a_pointer_have_their_numbers, .init = two_gpus)
{
    CUcontext context = NULL, entered = enter_driver(1);
    CUdeviceptr at = 0, value = 0;
    size_t bytes = 0;
    unsigned type = 0;
    int ordinal = -1, managed = -1;
    OK(cuMemAlloc(&at, 4096));
    cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at);
    cr_expect(context == entered);
    cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
    cr_expect(eq(u32, type, CU_MEMORYTYPE_DEVICE));
    cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at + 1);
    cr_expect(value == at + 1);
    cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
    cr_expect(eq(int, managed, 0));
    cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
    cr_expect(eq(int, ordinal, 1));
    cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 9);
    cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at + 9);
    cr_expect(value == at && bytes == 4096);
}

Test(memory, pools_are_where_their_properties_say, .init = two_gpus)
{
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {cudaMemLocationTypeDevice, 1}};
    CUmemPoolProps driver = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    cudaMemPool_t pool;
    void *at;
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaMallocFromPoolAsync(&at, 4096, pool, NULL));
    cr_expect(eq(i64, plim_machine_free_bytes(machine, 0), 1000 * MIB));
    cr_expect(lt(i64, plim_machine_free_bytes(machine, 1), 1000 * MIB));
    enter_driver(0);
    CUmemoryPool other;
    OK(cuMemPoolCreate(&other, &driver));
    driver.location.id = 2;
    cr_expect(cuMemPoolCreate(&other, &driver) != CUDA_SUCCESS, "there is no third GPU");
}

Test(memory, allocations_are_where_their_properties_say, .init = two_gpus)
{
    CUmemAllocationProp wish = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    struct {
        CUmemAllocationProp properties;
        unsigned char behind;
    } out = {.behind = 0xaa};
    CUmemGenericAllocationHandle handle;
    enter_driver(0);
    OK(cuMemCreate(&handle, (size_t)(2 * MIB), &wish, 0));
    cr_expect(eq(i64, machine->gpus[1].held_bytes, 2 * MIB));
    cuMemGetAllocationPropertiesFromHandle(&out.properties, handle);
    cr_expect(eq(int, memcmp(&out.properties, &wish, sizeof(wish)), 0));
    cr_expect(eq(u8, out.behind, 0xaa));
    wish.location.type = CU_MEM_LOCATION_TYPE_HOST;
    cr_expect(cuMemCreate(&handle, (size_t)(2 * MIB), &wish, 0) == CUDA_ERROR_NOT_SUPPORTED);

    CUdeviceptr at;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READ};
    unsigned long long flags = 0;
    OK(cuMemAddressReserve(&at, (size_t)(2 * MIB), 0, 0, 0));
    OK(cuMemMap(at, (size_t)(2 * MIB), 0, handle, 0));
    OK(cuMemSetAccess(at, (size_t)(2 * MIB), &access, 1));
    cuMemGetAccess(&flags, &access.location, at);
    cr_expect(eq(u64, flags, CU_MEM_ACCESS_FLAGS_PROT_READ));
}

/* A rectangle of 2 rows of 3 bytes, cut out and put elsewhere. */
static const char picture[4][8] = {"0123456", "abcdefg", "ABCDEFG", "7890!?."};

Test(memory, rectangles_are_cut_as_described, .init = two_gpus)
{
    CUdeviceptr at;
    char out[2][4] = {"", ""};
    CUDA_MEMCPY2D in = {.srcXInBytes = 2, .srcY = 1, .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = picture, .srcPitch = 8, .dstXInBytes = 16, .dstY = 3,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstPitch = 64, .WidthInBytes = 3,
                        .Height = 2};
    enter_driver(0);
    OK(cuMemAlloc(&at, 4096));
    in.dstDevice = at;
    OK(cuMemcpy2D(&in));
    cuMemcpyDtoH(out[0], at + 3 * 64 + 16, 3);
    cuMemcpyDtoH(out[1], at + 4 * 64 + 16, 3);
    cr_expect(eq(str, out[0], "cde"));
    cr_expect(eq(str, out[1], "CDE"));
}

Test(memory, boxes_are_cut_as_described, .init = two_gpus)
{
    CUdeviceptr at;
    char out[4] = "";
    CUDA_MEMCPY3D in = {.srcXInBytes = 1, .srcY = 1, .srcZ = 1, .srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = picture, .srcPitch = 8, .srcHeight = 2, .dstXInBytes = 4,
                        .dstY = 1, .dstZ = 2, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstPitch = 32,
                        .dstHeight = 4, .WidthInBytes = 3, .Height = 1, .Depth = 1};
    enter_driver(0);
    OK(cuMemAlloc(&at, 4096));
    in.dstDevice = at;
    OK(cuMemcpy3D(&in));
    cuMemcpyDtoH(out, at + (2 * 4 + 1) * 32 + 4, 3);
    cr_expect(eq(str, out, "890"));
}
