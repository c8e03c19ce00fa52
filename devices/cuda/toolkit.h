/* All differences between the CUDA toolkits that plimsoll can be built with, 12.4 to 13.x, so that no other file tests
 * CUDA_VERSION.
 *
 * Machine code runs with drivers of its toolkit's major version and later ones (NVIDIA's "minor version compatibility";
 * only PTX needs a driver as new as the toolkit). A build with 12.x, which still supports Volta (sm_70), runs with
 * driver 535 (12.2) and later; older drivers are out of support. A build with 13 runs with 580 and later. */
#ifndef PLIM_DEVICES_CUDA_TOOLKIT_H
#define PLIM_DEVICES_CUDA_TOOLKIT_H

#include "config.h"

#if !PLIM_WITH_CUDA
#define CUDA_VERSION 13000 /* built without CUDA: messages name the newest versions of the libraries */
#else
#include <cuda.h>
#endif

#if CUDA_VERSION < 12040
#error "plimsoll needs CUDA 12.4 or later"
#endif

/* The oldest driver (by its CUDA version and by its number) and the lowest compute capability (minimum.h). */
#if CUDA_VERSION >= 13000
#define PLIM_CUDA_LEAST 13000
#define PLIM_DRIVER_LEAST 580
#define PLIM_CAPABILITY_LEAST 75
#else
#define PLIM_CUDA_LEAST 12020
#define PLIM_DRIVER_LEAST 535
#define PLIM_CAPABILITY_LEAST 70
#endif

/* cuBLASLt is that of the toolkit's major version: its folder, and how to install it. */
#if CUDA_VERSION >= 13000
#define PLIM_CUBLASLT_SONAME "libcublasLt.so.13"
#define PLIM_CUBLASLT_LEAST 130000
#define PLIM_CUBLASLT_HELP "install libcublas-13-0 or nvidia-cublas (pip)"
#define PLIM_CUDNN_HELP "install libcudnn9-cuda-13 or nvidia-cudnn-cu13 (pip)"
#define PLIM_NCCL_HELP "install libnccl2 or nvidia-nccl-cu13 (pip)"
#define PLIM_TOOLKIT_FOLDER "/usr/local/cuda-13*"
#define PLIM_CUBLAS_WHEEL "cu13"
#else
#define PLIM_CUBLASLT_SONAME "libcublasLt.so.12"
#define PLIM_CUBLASLT_LEAST 120400
#define PLIM_CUBLASLT_HELP "install libcublas-12-4 or nvidia-cublas-cu12 (pip)"
#define PLIM_CUDNN_HELP "install libcudnn9-cuda-12 or nvidia-cudnn-cu12 (pip)"
#define PLIM_NCCL_HELP "install libnccl2 or nvidia-nccl-cu12 (pip)"
#define PLIM_TOOLKIT_FOLDER "/usr/local/cuda-12*"
#define PLIM_CUBLAS_WHEEL "cublas"
#endif

/* Results that a driver may return but the headers of 12.4 do not name (cuda.h of 13.0 does). */
enum plim_cuda_newer_result {
    PLIM_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
    PLIM_CUDA_ERROR_CONTAINED = 226,
    PLIM_CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
    PLIM_CUDA_ERROR_KEY_ROTATION = 916
};

#endif
