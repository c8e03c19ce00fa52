#include "attribute.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* --- attributes ------------------------------------------------------------------------------- */

enum { ATTRIBUTES = 160 }; /* upper bound for all versions of CUDA */

/* Attributes that are equal on all GPUs of compute capability 6.0 to 12.1 (CUDA C Programming Guide, technical
 * specifications). Attributes that are not listed are 0: not supported. */
static const struct {
    short attribute;
    int value;
} constants[] = {
    {1, 1024},     /* threads per block */
    {2, 1024},     {3, 1024},  {4, 64},    /* block dimensions */
    {5, INT_MAX},  {6, 65535}, {7, 65535}, /* grid dimensions */
    {8, 49152},    /* shared memory per block without opting in */
    {9, 65536},    /* constant memory */
    {10, 32},      /* warp size */
    {11, INT_MAX}, /* largest pitch */
    {12, 65536},   /* registers per block */
    {14, 512},     /* texture alignment */
    {15, 1},       /* copies overlap with kernels */
    {19, 1},       /* can map host memory */
    {21, 131072},  {22, 131072}, {23, 65536}, {24, 16384}, {25, 16384}, {26, 16384}, /* textures */
    {30, 512},     /* surface alignment */
    {31, 1},       /* concurrent kernels */
    {32, 1},       /* ECC */
    {40, 3},       /* copy engines */
    {41, 1},       /* unified addressing */
    {51, 32},      /* texture pitch alignment */
    {78, 1},       /* stream priorities */
    {79, 1},       {80, 1}, /* L1 for global and local memory */
    {82, 65536},   /* registers per multiprocessor */
    {83, 1},       /* managed memory */
    {89, 1},       /* host and device may use managed memory at once */
    {90, 1},       /* compute preemption */
    {91, 1},       /* registered host memory is accessible at its host address */
    {95, 1},       /* cooperative launch */
    {99, 1},       /* cudaHostRegister */
    {102, 1},      {103, 1}, /* virtual memory management; handles as file descriptors */
    {111, 1024},   /* shared memory per block that the system reserves */
    {114, 1},      /* timeline semaphores */
    {115, 1},      /* memory pools */
    {119, 1},      /* memory pools can be shared as file descriptors */
    {125, 1},      /* events can be shared between processes */
};

static int of_gpu(const struct plim_machine_gpu *gpu, int device, int attribute)
{
    switch (attribute) {
    case 13: return gpu->clock_khz;
    case 16: return gpu->multiprocessors;
    case GPU_ATTRIBUTE_PCI_BUS: return plim_self_machine_index(device) + 1;
    case 36: return gpu->memory_clock_khz;
    case 37: return gpu->memory_bus_bits;
    case 38: return gpu->l2_bytes;
    case 39: return gpu->threads_per_multiprocessor;
    case GPU_ATTRIBUTE_MAJOR: return gpu->compute_capability / 10;
    case GPU_ATTRIBUTE_MINOR: return gpu->compute_capability % 10;
    case 81: return gpu->shared_per_multiprocessor;
    case 87: return gpu->compute_capability == 80 || gpu->compute_capability == 90 ? 2 : 64;
    case 97: return gpu->shared_per_block_optin;
    case 106: return gpu->blocks_per_multiprocessor;
    case 120: return gpu->compute_capability >= 90; /* thread block clusters */
    default: return 0;
    }
}

int plim_attribute_read(int device, int attribute, int *value)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(device);
    if (!gpu) return GPU_INVALID_DEVICE;
    if (attribute <= 0 || attribute >= ATTRIBUTES) return GPU_INVALID_VALUE;
    *value = of_gpu(gpu, device, attribute);
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
        if (constants[i].attribute == attribute) *value = constants[i].value;
    return GPU_OK;
}

void plim_attribute_bus_id(int device, char *out, size_t size)
{
    snprintf(out, size, "0000:%02x:00.0", plim_self_machine_index(device) + 1);
}

int plim_attribute_device_at(const char *bus_id)
{
    unsigned domain = 0, bus, slot, function = 0;
    int used = 0;
    if (sscanf(bus_id, "%x:%x:%x%n.%x%n", &domain, &bus, &slot, &used, &function, &used) < 3) {
        domain = 0;
        if (sscanf(bus_id, "%x:%x.%x%n", &bus, &slot, &function, &used) < 3) return -1;
    }
    if (bus_id[used] || domain || slot || function) return -1;
    int device = 0;
    while (plim_self_gpu(device) && plim_self_machine_index(device) + 1 != (int)bus) device++;
    return plim_self_gpu(device) ? device : -1;
}

/* --- properties ------------------------------------------------------------------------------- */

/* The structure lists its fields in order, so it is described by a table: the versions of CUDA in which a field exists,
 * its type, and the attributes it holds (0: zero). */
enum { V11 = 1, V12 = 2, V13 = 4, OLD = V11 | V12, NEW = V12 | V13, ALL = V11 | V12 | V13 };
enum field_type { INT, SIZE, TEXT, TOTAL_BYTES };

static const struct field {
    enum field_type type;
    unsigned char versions, count; /* TEXT: size in bytes */
    short attributes[3];
} fields[] = {
    {TEXT, ALL, 0, {0}},       /* name, uuid, luid */
    {INT, ALL, 1, {0}},        /* luidDeviceNodeMask */
    {TOTAL_BYTES, ALL, 1, {0}}, /* totalGlobalMem */
    {SIZE, ALL, 1, {8}},       /* sharedMemPerBlock */
    {INT, ALL, 2, {12, 10}},   /* regsPerBlock, warpSize */
    {SIZE, ALL, 1, {11}},      /* memPitch */
    {INT, ALL, 1, {1}},        /* maxThreadsPerBlock */
    {INT, ALL, 3, {2, 3, 4}},  /* maxThreadsDim */
    {INT, ALL, 3, {5, 6, 7}},  /* maxGridSize */
    {INT, OLD, 1, {13}},       /* clockRate */
    {SIZE, ALL, 1, {9}},       /* totalConstMem */
    {INT, ALL, 2, {75, 76}},   /* major, minor */
    {SIZE, ALL, 2, {14, 51}},  /* textureAlignment, texturePitchAlignment */
    {INT, OLD, 1, {15}},       /* deviceOverlap */
    {INT, ALL, 1, {16}},       /* multiProcessorCount */
    {INT, OLD, 1, {17}},       /* kernelExecTimeoutEnabled */
    {INT, ALL, 2, {18, 19}},   /* integrated, canMapHostMemory */
    {INT, OLD, 1, {20}},       /* computeMode */
    {INT, ALL, 2, {21, 77}},   /* maxTexture1D, maxTexture1DMipmap */
    {INT, OLD, 1, {69}},       /* maxTexture1DLinear */
    {INT, ALL, 2, {22, 23}},   /* maxTexture2D */
    {INT, ALL, 2, {73, 74}},   /* maxTexture2DMipmap */
    {INT, ALL, 3, {70, 71, 72}}, /* maxTexture2DLinear */
    {INT, ALL, 2, {45, 46}},   /* maxTexture2DGather */
    {INT, ALL, 3, {24, 25, 26}}, /* maxTexture3D */
    {INT, ALL, 3, {47, 48, 49}}, /* maxTexture3DAlt */
    {INT, ALL, 1, {52}},       /* maxTextureCubemap */
    {INT, ALL, 2, {42, 43}},   /* maxTexture1DLayered */
    {INT, ALL, 3, {27, 28, 29}}, /* maxTexture2DLayered */
    {INT, ALL, 2, {53, 54}},   /* maxTextureCubemapLayered */
    {INT, ALL, 1, {55}},       /* maxSurface1D */
    {INT, ALL, 2, {56, 57}},   /* maxSurface2D */
    {INT, ALL, 3, {58, 59, 60}}, /* maxSurface3D */
    {INT, ALL, 2, {61, 62}},   /* maxSurface1DLayered */
    {INT, ALL, 3, {63, 64, 65}}, /* maxSurface2DLayered */
    {INT, ALL, 1, {66}},       /* maxSurfaceCubemap */
    {INT, ALL, 2, {67, 68}},   /* maxSurfaceCubemapLayered */
    {SIZE, ALL, 1, {30}},      /* surfaceAlignment */
    {INT, ALL, 2, {31, 32}},   /* concurrentKernels, ECCEnabled */
    {INT, ALL, 3, {33, 34, 50}}, /* pciBusID, pciDeviceID, pciDomainID */
    {INT, ALL, 3, {35, 40, 41}}, /* tccDriver, asyncEngineCount, unifiedAddressing */
    {INT, OLD, 1, {36}},       /* memoryClockRate */
    {INT, ALL, 2, {37, 38}},   /* memoryBusWidth, l2CacheSize */
    {INT, ALL, 2, {108, 39}},  /* persistingL2CacheMaxSize, maxThreadsPerMultiProcessor */
    {INT, ALL, 3, {78, 79, 80}}, /* streamPrioritiesSupported, global and local L1CacheSupported */
    {SIZE, ALL, 1, {81}},      /* sharedMemPerMultiprocessor */
    {INT, ALL, 2, {82, 83}},   /* regsPerMultiprocessor, managedMemory */
    {INT, ALL, 3, {84, 85, 86}}, /* isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomic... */
    {INT, OLD, 1, {87}},       /* singleToDoublePrecisionPerfRatio */
    {INT, ALL, 2, {88, 89}},   /* pageableMemoryAccess, concurrentManagedAccess */
    {INT, ALL, 3, {90, 91, 95}}, /* computePreemption, canUseHostPointer..., cooperativeLaunch */
    {INT, OLD, 1, {96}},       /* cooperativeMultiDeviceLaunch */
    {SIZE, ALL, 1, {97}},      /* sharedMemPerBlockOptin */
    {INT, ALL, 2, {100, 101}}, /* pageable...UsesHostPageTables, directManagedMemAccessFromHost */
    {INT, ALL, 2, {106, 109}}, /* maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize */
    {SIZE, ALL, 1, {111}},     /* reservedSharedMemPerBlock */
    {INT, NEW, 3, {99, 112, 113}}, /* hostRegister, sparseCudaArray, hostRegisterReadOnly */
    {INT, NEW, 3, {114, 115, 116}}, /* timelineSemaphore, memoryPools, gpuDirectRDMA */
    {INT, NEW, 3, {117, 118, 119}}, /* ...FlushWritesOptions, WritesOrdering, pool handle types */
    {INT, NEW, 3, {121, 125, 120}}, /* deferredMapping, ipcEvent, clusterLaunch */
    {INT, NEW, 1, {0}},        /* unifiedFunctionPointers */
};

/* Number of reserved ints after the last field. */
enum { RESERVED_12 = 63, RESERVED_13 = 7 + 56, TEXT_BYTES = 256 + 16 + 8 };

struct writer {
    unsigned char *out;
    size_t at;
};

static void put(struct writer *w, const void *value, size_t bytes)
{
    w->at = (w->at + bytes - 1) / bytes * bytes;
    memcpy(w->out + w->at, value, bytes);
    w->at += bytes;
}

static void put_field(struct writer *w, const struct plim_machine_gpu *gpu, int device,
                      const struct field *field)
{
    uint64_t total = (uint64_t)gpu->total_bytes;
    if (field->type == TEXT) {
        memset(w->out, 0, TEXT_BYTES);
        memcpy(w->out, gpu->name, sizeof(gpu->name));
        memcpy(w->out + 256, gpu->uuid, sizeof(gpu->uuid));
        w->at = TEXT_BYTES;
    }
    if (field->type == TOTAL_BYTES) put(w, &total, sizeof(total));
    for (int i = 0; i < field->count && field->type <= SIZE; i++) {
        int value = 0;
        if (field->attributes[i]) (void)plim_attribute_read(device, field->attributes[i], &value);
        uint64_t wide = (uint64_t)value;
        if (field->type == INT) put(w, &value, sizeof(value));
        else put(w, &wide, sizeof(wide));
    }
}

int plim_attribute_properties(int device, int cuda_major, void *out)
{
    const struct plim_machine_gpu *gpu = plim_self_gpu(device);
    struct writer w = {.out = out};
    int version = cuda_major <= 11 ? V11 : cuda_major == 12 ? V12 : V13, zero = 0;
    int reserved = version == V11 ? 0 : version == V12 ? RESERVED_12 : RESERVED_13;
    if (!gpu) return GPU_INVALID_DEVICE;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].versions & version) put_field(&w, gpu, device, &fields[i]);
    for (int i = 0; i < reserved; i++) put(&w, &zero, sizeof(zero));
    return GPU_OK;
}
