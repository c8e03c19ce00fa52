#define _GNU_SOURCE /* dladdr */
#include "driver_names.h"
#include "devices/virtual/machine/version.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Names that stand for different functions in different versions of CUDA, oldest first, as in cudaTypedefs.h. Number 1
 * is the plain name. Where number 1 is missing, it had 32-bit addresses. A name that is not listed always stands for
 * itself. */
static const struct version {
    const char *name;
    short since, number; /* 12080 is 12.8 */
} versions[] = {
    {"cuCtxCreate", 2000, 1},          {"cuCtxCreate", 3020, 2},
    {"cuCtxCreate", 11040, 3},         {"cuCtxCreate", 12050, 4},
    {"cuCtxDestroy", 2000, 1},         {"cuCtxDestroy", 4000, 2},
    {"cuCtxGetDevice", 2000, 1},       {"cuCtxGetDevice", 13000, 2},
    {"cuCtxPopCurrent", 2000, 1},      {"cuCtxPopCurrent", 4000, 2},
    {"cuCtxPushCurrent", 2000, 1},     {"cuCtxPushCurrent", 4000, 2},
    {"cuCtxSynchronize", 2000, 1},     {"cuCtxSynchronize", 13000, 2},
    {"cuDeviceGetUuid", 9020, 1},      {"cuDeviceGetUuid", 11040, 2},
    {"cuDevicePrimaryCtxRelease", 7000, 1},  {"cuDevicePrimaryCtxRelease", 11000, 2},
    {"cuDevicePrimaryCtxReset", 7000, 1},    {"cuDevicePrimaryCtxReset", 11000, 2},
    {"cuDevicePrimaryCtxSetFlags", 7000, 1}, {"cuDevicePrimaryCtxSetFlags", 11000, 2},
    {"cuDeviceTotalMem", 3020, 2},
    {"cuEventDestroy", 2000, 1},       {"cuEventDestroy", 4000, 2},
    {"cuEventElapsedTime", 2000, 1},   {"cuEventElapsedTime", 12080, 2},
    {"cuGetProcAddress", 11030, 1},    {"cuGetProcAddress", 12000, 2},
    {"cuGraphAddDependencies", 10000, 1},       {"cuGraphAddDependencies", 12030, 2},
    {"cuGraphAddKernelNode", 10000, 1},         {"cuGraphAddKernelNode", 12000, 2},
    {"cuGraphAddNode", 12020, 1},               {"cuGraphAddNode", 12030, 2},
    {"cuGraphExecKernelNodeSetParams", 10010, 1}, {"cuGraphExecKernelNodeSetParams", 12000, 2},
    {"cuGraphExecUpdate", 10020, 1},   {"cuGraphExecUpdate", 12000, 2},
    {"cuGraphGetEdges", 10000, 1},     {"cuGraphGetEdges", 12030, 2},
    {"cuGraphInstantiate", 10000, 1},  {"cuGraphInstantiate", 11000, 2},
    {"cuGraphKernelNodeGetParams", 10000, 1},   {"cuGraphKernelNodeGetParams", 12000, 2},
    {"cuGraphKernelNodeSetParams", 10000, 1},   {"cuGraphKernelNodeSetParams", 12000, 2},
    {"cuGraphNodeGetDependencies", 10000, 1},   {"cuGraphNodeGetDependencies", 12030, 2},
    {"cuGraphNodeGetDependentNodes", 10000, 1}, {"cuGraphNodeGetDependentNodes", 12030, 2},
    {"cuGraphRemoveDependencies", 10000, 1},    {"cuGraphRemoveDependencies", 12030, 2},
    {"cuIpcOpenMemHandle", 4010, 1},   {"cuIpcOpenMemHandle", 11000, 2},
    {"cuLinkAddData", 5050, 1},        {"cuLinkAddData", 6050, 2},
    {"cuLinkAddFile", 5050, 1},        {"cuLinkAddFile", 6050, 2},
    {"cuLinkCreate", 5050, 1},         {"cuLinkCreate", 6050, 2},
    {"cuMemAdvise", 8000, 1},          {"cuMemAdvise", 12020, 2},
    {"cuMemAlloc", 3020, 2},           {"cuMemAllocHost", 3020, 2},
    {"cuMemAllocPitch", 3020, 2},      {"cuMemFree", 3020, 2},
    {"cuMemGetAddressRange", 3020, 2}, {"cuMemGetInfo", 3020, 2},
    {"cuMemHostGetDevicePointer", 3020, 2},
    {"cuMemHostRegister", 4000, 1},    {"cuMemHostRegister", 6050, 2},
    {"cuMemPrefetchAsync", 8000, 1},   {"cuMemPrefetchAsync", 12020, 2},
    {"cuMemcpy2D", 3020, 2},           {"cuMemcpy2DAsync", 3020, 2},
    {"cuMemcpy2DUnaligned", 3020, 2},  {"cuMemcpy3D", 3020, 2},
    {"cuMemcpy3DAsync", 3020, 2},
    {"cuMemcpy3DBatchAsync", 12080, 1}, {"cuMemcpy3DBatchAsync", 13000, 2},
    {"cuMemcpyAtoA", 3020, 2},         {"cuMemcpyAtoD", 3020, 2},
    {"cuMemcpyAtoH", 3020, 2},         {"cuMemcpyAtoHAsync", 3020, 2},
    {"cuMemcpyBatchAsync", 12080, 1},  {"cuMemcpyBatchAsync", 13000, 2},
    {"cuMemcpyDtoA", 3020, 2},         {"cuMemcpyDtoD", 3020, 2},
    {"cuMemcpyDtoDAsync", 3020, 2},    {"cuMemcpyDtoH", 3020, 2},
    {"cuMemcpyDtoHAsync", 3020, 2},    {"cuMemcpyHtoA", 3020, 2},
    {"cuMemcpyHtoAAsync", 3020, 2},    {"cuMemcpyHtoD", 3020, 2},
    {"cuMemcpyHtoDAsync", 3020, 2},
    {"cuMemsetD16", 3020, 2},          {"cuMemsetD2D16", 3020, 2},
    {"cuMemsetD2D32", 3020, 2},        {"cuMemsetD2D8", 3020, 2},
    {"cuMemsetD32", 3020, 2},          {"cuMemsetD8", 3020, 2},
    {"cuModuleGetGlobal", 3020, 2},
    {"cuStreamBatchMemOp", 8000, 1},   {"cuStreamBatchMemOp", 11070, 2},
    {"cuStreamBeginCapture", 10000, 1}, {"cuStreamBeginCapture", 10010, 2},
    {"cuStreamDestroy", 2000, 1},      {"cuStreamDestroy", 4000, 2},
    {"cuStreamGetCaptureInfo", 10010, 1}, {"cuStreamGetCaptureInfo", 11030, 2},
    {"cuStreamGetCaptureInfo", 12030, 3},
    {"cuStreamGetCtx", 9020, 1},       {"cuStreamGetCtx", 12050, 2},
    {"cuStreamUpdateCaptureDependencies", 11030, 1},
    {"cuStreamUpdateCaptureDependencies", 12030, 2},
    {"cuStreamWaitValue32", 8000, 1},  {"cuStreamWaitValue32", 11070, 2},
    {"cuStreamWaitValue64", 9000, 1},  {"cuStreamWaitValue64", 11070, 2},
    {"cuStreamWriteValue32", 8000, 1}, {"cuStreamWriteValue32", 11070, 2},
    {"cuStreamWriteValue64", 9000, 1}, {"cuStreamWriteValue64", 11070, 2},
};

int plim_driver_name_number(const char *name, int cuda_version)
{
    int number = 1;
    bool is_first = true;
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        if (strcmp(versions[i].name, name)) continue;
        if (is_first) number = 0;
        if (versions[i].since <= cuda_version) number = versions[i].number;
        is_first = false;
    }
    return number;
}

/* Returns a handle of this library, whatever its file name. */
static void *library(void)
{
    static void *handle;
    Dl_info info;
    if (!handle && dladdr(versions, &info))
        handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

/* Functions that differ only in which default stream they use are one function here. */
void *plim_driver_function(const char *name, int cuda_version)
{
    char symbol[96];
    int number = plim_driver_name_number(name, cuda_version);
    bool is_driver = !strncmp(name, "cu", 2) && name[2] >= 'A' && name[2] <= 'Z';
    if (!is_driver || !number || cuda_version > PLIM_VERSION_DRIVER) return NULL;
    int length = number == 1 ? snprintf(symbol, sizeof(symbol), "%s", name)
                             : snprintf(symbol, sizeof(symbol), "%s_v%d", name, number);
    if (length >= (int)sizeof(symbol) || !library()) return NULL;
    return dlsym(library(), symbol);
}
