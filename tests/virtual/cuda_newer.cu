// The part of cuda_program that is compiled for a newer GPU than the one it runs on.
#include "cuda_program.cuh"

static __global__ void newer_kernel(int *out) { *out = 7; }

cudaError_t launch_newer(int *out)
{
    newer_kernel<<<1, 32>>>(out);
    return cudaGetLastError();
}

cudaError_t describe_newer(cudaFuncAttributes *out)
{
    return cudaFuncGetAttributes(out, newer_kernel);
}
