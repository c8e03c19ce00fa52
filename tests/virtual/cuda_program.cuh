// What the parts of cuda_program share.
#ifndef PLIM_TESTS_VIRTUAL_CUDA_PROGRAM_H
#define PLIM_TESTS_VIRTUAL_CUDA_PROGRAM_H

#include "check.h"
#include <cuda_runtime.h>

static const size_t MIB = 1 << 20, TOTAL = 2048 * MIB;

static inline void expect_error(cudaError_t result, cudaError_t expected, const char *what)
{
    if (result == expected) check(true, "%s: %s", what, cudaGetErrorName(result));
    else
        check(false, "%s: expected %d, was %d (%s)", what, expected, result,
              cudaGetErrorString(result));
}
#define EXPECT(call, expected) expect_error(call, expected, #call)
#define OK(call) EXPECT(call, cudaSuccess)

static inline size_t free_bytes()
{
    size_t now = 0, total = 0;
    if (cudaMemGetInfo(&now, &total)) check(false, "cudaMemGetInfo");
    return now;
}

// cuda_newer.cu
cudaError_t launch_newer(int *out);
cudaError_t describe_newer(cudaFuncAttributes *out);

// cuda_processes.cu: before anything of CUDA is used; after; what the process that it starts does.
void check_fork_before();
void check_processes();
int be_peer(const char *handle);

#endif
