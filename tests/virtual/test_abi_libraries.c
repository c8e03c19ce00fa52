/* Launches, and the numbers that the virtual GPU writes down of cuBLAS, cuBLASLt, cuDNN, NCCL and
 * NVML, against the headers of a toolkit (see test_abi.c). cuDNN, NCCL and NVML where it has them:
 * nvml.h is in few. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#if __has_include(<nvml.h>) /* names that ours has too */
#define NVML_SUCCESS THEIR_NVML_SUCCESS
#define NVML_CLOCK_SM THEIR_NVML_CLOCK_SM
#include <nvml.h>
#undef NVML_SUCCESS
#undef NVML_CLOCK_SM
#endif
#include "devices/virtual/blas/blas.h"
#include "devices/virtual/dnn/backend.h"
#include "devices/virtual/nccl/nccl.h"
#include "devices/virtual/nvml/nvml_device.h"
#include "devices/virtual/work/fat_binary.h"
#include "devices/virtual/memory/readable.h"
#include "devices/virtual/work/kernel.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
#define AT(type, member, offset) SAME(offset, offsetof(type, member))

#define OK(call) cr_assert(eq(int, (int)(call), 0), #call)

static const int64_t MIB = 1 << 20;

static void newer(void) { make_machine("H100-SXM", 1, 1000 * MIB); }
static void older(void) { make_machine("A100-SXM4-80GB", 1, 1000 * MIB); }

/* --- kernels ---------------------------------------------------------------------------------- */

static void kernel(void) {} /* its symbol on the host */

static void register_kernel(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n";
    plim_kernel_register((const void *)kernel, "kernel",
                         plim_fat_binary_read(ptx, PLIM_UNKNOWN_BYTES));
}

Test(kernels, are_described, .init = newer)
{
    struct cudaFuncAttributes about = {.numRegs = -1};
    register_kernel();
    OK(cudaFuncGetAttributes(&about, (const void *)kernel));
    cr_expect(eq(int, about.maxThreadsPerBlock, 1024));
    cr_expect(eq(int, about.numRegs, 32));
    cr_expect(eq(int, about.ptxVersion, 90));
    cr_expect(eq(int, about.binaryVersion, 90));
    cr_expect(eq(int, about.cacheModeCA, 0));
    cr_expect(eq(int, about.maxDynamicSharedSizeBytes, 48 << 10));
    cr_expect(eq(int, about.preferredShmemCarveout, -1));
}

Test(kernels, their_attributes_have_their_numbers, .init = newer)
{
    cudaFunction_t function;
    int value;
    register_kernel();
    OK(cuInit(0));
    OK(cudaSetDevice(0));
    OK(cudaGetFuncBySymbol(&function, (const void *)kernel));
    cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    cr_expect(eq(int, value, 1024));
    cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    cr_expect(eq(int, value, 32));
    cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, function);
    cr_expect(eq(int, value, 90));
    cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function);
    cr_expect(eq(int, value, 90));
    cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
    cr_expect(eq(int, value, 48 << 10));
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    cr_expect(eq(int, cuFuncSetAttribute(function, most, 227 << 10), 0));
    cr_expect(eq(int, cuFuncSetAttribute(function, most, 228 << 10), CUDA_ERROR_INVALID_VALUE));
    cr_expect(eq(int, cudaFuncSetAttribute((const void *)kernel,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10),
                 cudaErrorInvalidValue));
}

/* Of the capture that a stream is in; it is destroyed. */
static size_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    size_t nodes = 0;
    OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphGetNodes(graph, NULL, &nodes);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return nodes;
}

Test(kernels, are_launched_as_a_configuration_says, .init = newer)
{
    cudaLaunchConfig_t config = {.gridDim = {2, 1, 1}, .blockDim = {32, 1, 1}};
    const void *function = (const void *)kernel;
    register_kernel();
    OK(cudaStreamCreate(&config.stream));
    OK(cudaStreamBeginCapture(config.stream, cudaStreamCaptureModeRelaxed));
    cr_expect(eq(int, cudaLaunchKernelExC(&config, function, NULL), 0));
    cr_expect(eq(sz, end_capture(config.stream), 1), "in its stream");
    config = (cudaLaunchConfig_t){.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1},
                                  .dynamicSmemBytes = 1 << 20};
    cr_expect(eq(int, cudaLaunchKernelExC(&config, function, NULL), cudaErrorInvalidValue));
    config = (cudaLaunchConfig_t){.gridDim = {1, 1, 0}, .blockDim = {1, 1, 1}};
    cr_expect(eq(int, cudaLaunchKernelExC(&config, function, NULL), cudaErrorInvalidConfiguration));
    config = (cudaLaunchConfig_t){.gridDim = {1, 1, 1}, .blockDim = {1, 1, 65}};
    cr_expect(eq(int, cudaLaunchKernelExC(&config, function, NULL), cudaErrorInvalidConfiguration));
}

Test(kernels, are_launched_as_the_driver_is_told, .init = newer)
{
    cudaFunction_t function;
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                 .value.clusterDim = {4, 1, 1}};
    CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1024,
                             .blockDimY = 1, .blockDimZ = 1, .attrs = &cluster, .numAttrs = 1};
    int clusters = 0;
    register_kernel();
    OK(cuInit(0));
    OK(cudaSetDevice(0));
    OK(cudaGetFuncBySymbol(&function, (const void *)kernel));
    OK(cuStreamCreate(&config.hStream, 0));
    OK(cuStreamBeginCapture(config.hStream, CU_STREAM_CAPTURE_MODE_RELAXED));
    cr_expect(eq(int, cuLaunchKernelEx(&config, function, NULL, NULL), 0));
    cr_expect(eq(sz, end_capture(config.hStream), 1), "in its stream");
    config.hStream = NULL;
    cr_expect(eq(int, cuOccupancyMaxActiveClusters(&clusters, function, &config), 0));
    cr_expect(eq(int, clusters, 2 * 132 / 4), "of four blocks");
    config.sharedMemBytes = 1 << 20;
    cr_expect(eq(int, cuLaunchKernelEx(&config, function, NULL, NULL), CUDA_ERROR_INVALID_VALUE));
}

Test(kernels, graphs_report_as_described, .init = newer)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.hErrNode_out = (CUgraphNode)&how,
                                         .result_out = CUDA_GRAPH_INSTANTIATE_ERROR};
    cudaGraphExecUpdateResultInfo update = {.result = cudaGraphExecUpdateError};
    cudaGraph_t graph;
    CUgraphExec runnable;
    OK(cuInit(0));
    OK(cudaSetDevice(0));
    OK(cudaGraphCreate(&graph, 0));
    cr_expect(eq(int, cuGraphInstantiateWithParams(&runnable, graph, &how), 0));
    cr_expect(eq(int, how.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS));
    cr_expect(eq(ptr, how.hErrNode_out, NULL));
    cr_expect(eq(int, cudaGraphExecUpdate(runnable, graph, &update), 0));
    cr_expect(eq(int, update.result, cudaGraphExecUpdateSuccess));
    cudaGraphExecDestroy(runnable);
    cudaGraphDestroy(graph);
}

/* Those that are there are found in a library, which a test is not: see cuda_program.cu. */
Test(kernels, entry_points_that_are_missing_have_their_codes, .init = newer)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult driver;
    enum cudaDriverEntryPointQueryResult runtime;
    cuGetProcAddress("cuNothing", &found, 12080, 0, &driver);
    cr_expect(eq(int, driver, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    cuGetProcAddress("cuMemAlloc", &found, 1000, 0, &driver);
    cr_expect(eq(int, driver, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
    cudaGetDriverEntryPointByVersion("cuNothing", &found, 12080, 0, &runtime);
    cr_expect(eq(int, runtime, cudaDriverEntryPointSymbolNotFound));
}

/* Limits by the order in which the runtime keeps them. */
Test(kernels, limits_have_their_numbers, .init = newer)
{
    size_t stack = 0, heap = 0;
    OK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    OK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    cr_expect(stack == 1024 && heap == 8 << 20);
}

SAME(128, sizeof(CUtensorMap)); /* driver/driver_launch.c */

/* --- cuBLAS and cuBLASLt ---------------------------------------------------------------------- */

SAME(BLAS_OK, CUBLAS_STATUS_SUCCESS);
SAME(BLAS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(BLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(BLAS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(BLAS_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(BLAS_MAPPING_ERROR, CUBLAS_STATUS_MAPPING_ERROR);
SAME(BLAS_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(BLAS_INTERNAL_ERROR, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(BLAS_POINTER_HOST, CUBLAS_POINTER_MODE_HOST);
SAME(BLAS_POINTER_DEVICE, CUBLAS_POINTER_MODE_DEVICE);
/* What a heuristic's result is: blas/blas_lt.c */
SAME(64, sizeof(cublasLtMatmulAlgo_t));
SAME(96, sizeof(cublasLtMatmulHeuristicResult_t));
AT(cublasLtMatmulHeuristicResult_t, workspaceSize, 64);
AT(cublasLtMatmulHeuristicResult_t, state, 72);
AT(cublasLtMatmulHeuristicResult_t, wavesCount, 76);
SAME(64, sizeof(cublasLtMatrixLayoutOpaque_t)); /* blas/blas_lt.h: of 64 bytes or more */
_Static_assert(sizeof(cublasLtMatmulDescOpaque_t) >= 64, "");
_Static_assert(sizeof(cublasLtMatmulPreferenceOpaque_t) >= 64, "");
_Static_assert(sizeof(cublasLtMatrixTransformDescOpaque_t) >= 64, "");
/* Element types that a GPU must be new enough for. */
SAME(28, CUDA_R_8F_E4M3);
SAME(29, CUDA_R_8F_E5M2);
SAME(31, CUDA_R_6F_E2M3);
SAME(32, CUDA_R_6F_E3M2);
SAME(33, CUDA_R_4F_E2M1);
/* Attributes that our own code looks at, and those that are not 0 when they were never set. */
SAME(0, CUBLASLT_MATRIX_LAYOUT_TYPE);
SAME(2, CUBLASLT_MATRIX_LAYOUT_ROWS);
SAME(3, CUBLASLT_MATRIX_LAYOUT_COLS);
SAME(4, CUBLASLT_MATRIX_LAYOUT_LD);
SAME(5, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(3, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(4, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(7, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(1, CUBLASLT_EPILOGUE_DEFAULT);
SAME(22, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE);
SAME(26, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(3, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(8, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(12, CUBLASLT_MATMUL_PREF_IMPL_MASK);

static cublasStatus_t ask_product(cudaDataType type, cublasLtMatmulHeuristicResult_t *result)
{
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t layout, out;
    cublasLtMatmulPreference_t preference;
    int count = 0;
    OK(cublasLtCreate(&lt));
    OK(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    OK(cublasLtMatrixLayoutCreate(&layout, type, 64, 64, 64));
    OK(cublasLtMatrixLayoutCreate(&out, CUDA_R_16BF, 64, 64, 64));
    OK(cublasLtMatmulPreferenceCreate(&preference));
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(lt, matmul, layout, layout, out, out,
                                                           preference, 1, result, &count);
    cr_expect(eq(int, count, status == CUBLAS_STATUS_SUCCESS));
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatrixLayoutDestroy(out);
    cublasLtMatmulDescDestroy(matmul);
    cublasLtDestroy(lt);
    return status;
}

Test(blas, heuristics_fill_their_results, .init = older)
{
    cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_INTERNAL_ERROR};
    cr_expect(eq(int, ask_product(CUDA_R_16BF, &result), CUBLAS_STATUS_SUCCESS));
    cr_expect(result.state == CUBLAS_STATUS_SUCCESS && result.wavesCount > 0);
    cr_expect(eq(int, ask_product(CUDA_R_8F_E4M3, &result), CUBLAS_STATUS_NOT_SUPPORTED));
}

Test(blas, newer_gpus_have_newer_types, .init = newer)
{
    cublasLtMatmulHeuristicResult_t result;
    cr_expect(eq(int, ask_product(CUDA_R_8F_E4M3, &result), CUBLAS_STATUS_SUCCESS));
    cr_expect(eq(int, ask_product(CUDA_R_8F_E5M2, &result), CUBLAS_STATUS_SUCCESS));
    cr_expect(eq(int, ask_product(CUDA_R_4F_E2M1, &result), CUBLAS_STATUS_NOT_SUPPORTED));
}

Test(blas, attributes_have_their_sizes, .init = newer)
{
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulDesc_t matmul;
    uint64_t rows = 0;
    int32_t batch = 0;
    cublasOperation_t transpose = CUBLAS_OP_C;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU;
    size_t written = 0;
    OK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 48, 32, 48));
    cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 8, &written);
    cr_expect(rows == 48 && written == 8);
    cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, 4,
                                     &written);
    cr_expect(batch == 1 && written == 4);
    OK(cublasLtMatmulDescCreate(&matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, 4, &written);
    cr_expect(eq(int, transpose, CUBLAS_OP_N));
    cublasLtMatmulDescGetAttribute(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4, &written);
    cr_expect(eq(int, epilogue, CUBLASLT_EPILOGUE_DEFAULT));
    cublasLtMatmulDescDestroy(matmul);
    cublasLtMatrixLayoutDestroy(layout);
}

/* --- cuDNN ------------------------------------------------------------------------------------ */

#ifdef CUDNN_MAJOR
SAME(DNN_FLOAT, CUDNN_DATA_FLOAT);
SAME(DNN_DOUBLE, CUDNN_DATA_DOUBLE);
SAME(DNN_HALF, CUDNN_DATA_HALF);
SAME(DNN_INT8, CUDNN_DATA_INT8);
SAME(DNN_INT32, CUDNN_DATA_INT32);
SAME(DNN_INT8X4, CUDNN_DATA_INT8x4);
SAME(DNN_UINT8, CUDNN_DATA_UINT8);
SAME(DNN_UINT8X4, CUDNN_DATA_UINT8x4);
SAME(DNN_INT8X32, CUDNN_DATA_INT8x32);
SAME(DNN_BFLOAT16, CUDNN_DATA_BFLOAT16);
SAME(DNN_INT64, CUDNN_DATA_INT64);
SAME(DNN_BOOLEAN, CUDNN_DATA_BOOLEAN);
SAME(DNN_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(DNN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(DNN_HEURISTICS, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(DNN_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(DNN_CONVOLUTION_FORWARD, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(DNN_CONVOLUTION_BACKWARD_FILTER,
     CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(DNN_CONVOLUTION_BACKWARD_DATA, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(DNN_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(DNN_VARIANT_PACK, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(DNN_TENSOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(DNN_HEURISTICS_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(DNN_HEURISTICS_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(DNN_CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(DNN_CONFIG_WORKSPACE, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
SAME(DNN_PLAN_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(DNN_PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(DNN_PLAN_COMPUTED_UIDS, CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS);
SAME(DNN_PLAN_RUN_ONLY_UIDS, CUDNN_ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS);
SAME(DNN_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(DNN_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(DNN_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(DNN_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(DNN_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(DNN_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(DNN_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(DNN_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(DNN_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(DNN_GRAPH_OPERATIONS, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(DNN_GRAPH_ENGINE_COUNT, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
SAME(DNN_TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(DNN_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(DNN_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES);
SAME(DNN_PACK_POINTERS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(DNN_ENGINE_GRAPH, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
SAME(DNN_ENGINE_INDEX, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(DNN_OF_HANDLE, CUDNN_TYPE_HANDLE);
SAME(DNN_OF_INT64, CUDNN_TYPE_INT64);
SAME(DNN_OF_POINTER, CUDNN_TYPE_VOID_PTR);
SAME(DNN_OF_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(DNN_OF_CHAR, CUDNN_TYPE_CHAR);
#if CUDNN_MAJOR >= 9
SAME(DNN_DEVICE_PROPERTIES, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(DNN_HEURISTICS_DEVICE, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(DNN_CONFIG_SHARED_MEMORY, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED);
SAME(DNN_PLAN_JSON, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
SAME(DNN_ENGINE_DEVICE, CUDNN_ATTR_ENGINE_DEVICEPROP);
SAME(DNN_DEVICE_ID, CUDNN_ATTR_DEVICEPROP_DEVICE_ID);
SAME(DNN_DEVICE_HANDLE, CUDNN_ATTR_DEVICEPROP_HANDLE);
SAME(DNN_DEVICE_JSON, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif
/* process/unsupported.c */
SAME(3000, CUDNN_STATUS_NOT_SUPPORTED);
SAME(1001, CUDNN_STATUS_NOT_INITIALIZED);
SAME(5000, CUDNN_STATUS_EXECUTION_FAILED);
/* dnn/convolution.c */
SAME(48, sizeof(cudnnConvolutionFwdAlgoPerf_t));
AT(cudnnConvolutionFwdAlgoPerf_t, status, 4);
AT(cudnnConvolutionFwdAlgoPerf_t, time, 8);
AT(cudnnConvolutionFwdAlgoPerf_t, memory, 16);
AT(cudnnConvolutionBwdDataAlgoPerf_t, determinism, 24);
AT(cudnnConvolutionBwdFilterAlgoPerf_t, mathType, 28);
SAME(8, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
SAME(6, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
SAME(7, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
/* dnn/rnn.c, dnn/legacy.c */
SAME(2, CUDNN_LSTM);
SAME(3, CUDNN_GRU);
SAME(0, CUDNN_RNN_NO_BIAS);
SAME(2, CUDNN_RNN_DOUBLE_BIAS);
SAME(3, CUDNN_RNN_SINGLE_REC_BIAS);
SAME(1, CUDNN_SKIP_INPUT);
SAME(1, CUDNN_FWD_MODE_TRAINING);
SAME(2, CUDNN_BATCHNORM_SPATIAL_PERSISTENT);
SAME(0, CUDNN_BATCHNORM_OPS_BN);

Test(dnn, statuses_are_those_of_the_headers, .init = newer)
{
    char name[64]; /* they depend on which one is loaded */
    snprintf(name, sizeof(name), "libcudnn.so.%d", CUDNN_MAJOR);
    if (!dlopen(name, RTLD_NOW)) cr_skip_test("there are headers of cuDNN, but no library");
    cr_expect(eq(int, plim_dnn_version(), CUDNN_VERSION));
    cr_expect(eq(int, plim_dnn_status(PLIM_DNN_OK), CUDNN_STATUS_SUCCESS));
    cr_expect(eq(int, plim_dnn_status(PLIM_DNN_NOT_INITIALIZED), CUDNN_STATUS_NOT_INITIALIZED));
    cr_expect(eq(int, plim_dnn_status(PLIM_DNN_BAD_PARAM), CUDNN_STATUS_BAD_PARAM));
    cr_expect(eq(int, plim_dnn_status(PLIM_DNN_NOT_SUPPORTED), CUDNN_STATUS_NOT_SUPPORTED));
    cr_expect(eq(int, plim_dnn_status(PLIM_DNN_EXECUTION_FAILED), CUDNN_STATUS_EXECUTION_FAILED));
}
#endif

/* --- NCCL ------------------------------------------------------------------------------------- */

#ifdef NCCL_VERSION_CODE
SAME(NCCL_OK, ncclSuccess);
SAME(NCCL_CUDA_ERROR, ncclUnhandledCudaError);
SAME(NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_INT8, ncclInt8);
SAME(NCCL_UINT8, ncclUint8);
SAME(NCCL_INT32, ncclInt32);
SAME(NCCL_UINT32, ncclUint32);
SAME(NCCL_INT64, ncclInt64);
SAME(NCCL_UINT64, ncclUint64);
SAME(NCCL_FLOAT16, ncclFloat16);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_FLOAT64, ncclFloat64);
SAME(NCCL_BFLOAT16, ncclBfloat16);
#if NCCL_VERSION_CODE >= 22403
SAME(NCCL_FLOAT8_E4M3, ncclFloat8e4m3);
SAME(NCCL_FLOAT8_E5M2, ncclFloat8e5m2);
SAME(NCCL_TYPES, ncclNumTypes);
AT(ncclSimInfo_t, estimatedTime, 16);
#endif
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_PRODUCT, ncclProd);
SAME(NCCL_MAX, ncclMax);
SAME(NCCL_MIN, ncclMin);
SAME(NCCL_AVERAGE, ncclAvg);
SAME(NCCL_OPERATIONS, ncclNumOps);
/* nccl/nccl.c, nccl/setup.c */
SAME(128, sizeof(ncclUniqueId));
SAME(128, NCCL_UNIQUE_ID_BYTES);
SAME(-1, NCCL_SPLIT_NOCOLOR);
SAME(INT32_MIN, NCCL_CONFIG_UNDEF_INT);
AT(ncclConfig_t, magic, 8);
AT(ncclConfig_t, version, 12);
AT(ncclConfig_t, blocking, 16);

Test(nccl, a_communicator_is_made_as_its_configuration_says, .init = newer)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t comm;
    int ranks = 0;
    config.blocking = 0;
    OK(cudaSetDevice(0));
    OK(ncclGetUniqueId(&id));
    ncclResult_t result = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    cr_expect(result == ncclSuccess || result == ncclInProgress);
    while (result == ncclInProgress) ncclCommGetAsyncError(comm, &result);
    cr_expect(eq(int, ncclCommCount(comm, &ranks), 0));
    cr_expect(eq(int, ranks, 1));
    cr_expect(eq(int, ncclCommDestroy(comm), 0));
}
#endif

/* --- NVML ------------------------------------------------------------------------------------- */

#ifdef NVML_API_VERSION
SAME(NVML_SUCCESS, THEIR_NVML_SUCCESS);
SAME(NVML_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME(NVML_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(NVML_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME(NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(NVML_LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME(NVML_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME(NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(NVML_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME(NVML_OPERATING_SYSTEM, NVML_ERROR_OPERATING_SYSTEM);
SAME(NVML_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME(NVML_MEMORY, NVML_ERROR_MEMORY);
SAME(NVML_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME(NVML_CLOCK_SM, THEIR_NVML_CLOCK_SM);
SAME(sizeof(struct nvml_pci), sizeof(nvmlPciInfo_t));
SAME(offsetof(struct nvml_pci, bus), offsetof(nvmlPciInfo_t, bus));
SAME(offsetof(struct nvml_pci, bus_id), offsetof(nvmlPciInfo_t, busId));
SAME(sizeof(struct nvml_memory_v1), sizeof(nvmlMemory_t));
SAME(offsetof(struct nvml_memory_v1, used), offsetof(nvmlMemory_t, used));
SAME(sizeof(struct nvml_memory_v2), sizeof(nvmlMemory_v2_t));
SAME(offsetof(struct nvml_memory_v2, free), offsetof(nvmlMemory_v2_t, free));
SAME(NVML_MEMORY_V2, nvmlMemory_v2);
SAME(sizeof(struct nvml_process), sizeof(nvmlProcessInfo_v2_t));
SAME(offsetof(struct nvml_process, used_bytes), offsetof(nvmlProcessInfo_v2_t, usedGpuMemory));
SAME(sizeof(struct nvml_attributes), sizeof(nvmlDeviceAttributes_t));
SAME(sizeof(struct nvml_temperature), sizeof(nvmlTemperature_v1_t));
SAME(NVML_TEMPERATURE_V1, nvmlTemperature_v1);
/* nvml/nvml_library.c, nvml/nvml_state.c */
SAME(16, sizeof(nvmlProcessInfo_v1_t));
SAME(8, sizeof(nvmlUtilization_t));
SAME(40, sizeof(nvmlFieldValue_t));
AT(nvmlFieldValue_t, nvmlReturn, 28);
AT(nvmlFieldValue_t, value, 32);
AT(nvmlPciInfoExt_v1_t, pciDeviceId, 16);
AT(nvmlPciInfoExt_v1_t, busId, 32);
AT(nvmlUUID_v1_t, value, 8);
SAME(1, NVML_UUID_TYPE_ASCII);
SAME(2, NVML_UUID_TYPE_BINARY);
AT(nvmlGpuFabricInfo_t, status, 16);
AT(nvmlGpuFabricInfo_t, state, 24);
#endif
