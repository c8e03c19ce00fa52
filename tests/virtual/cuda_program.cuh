// What the parts of cuda_program share: checks, one line each, of which the first that fails ends
// the program.
#ifndef PLIM_TESTS_VIRTUAL_CUDA_PROGRAM_H
#define PLIM_TESTS_VIRTUAL_CUDA_PROGRAM_H

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

static const size_t MIB = 1 << 20, TOTAL = 2048 * MIB;

static inline void check(bool holds, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("%s: ", holds ? "ok" : "FAILED");
    vprintf(fmt, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    if (!holds) exit(1);
}

static inline void expect_error(cudaError_t result, cudaError_t expected, const char *what)
{
    if (result == expected) check(true, "%s: %s", what, cudaGetErrorName(result));
    else
        check(false, "%s: expected %d, was %d (%s)", what, expected, result,
              cudaGetErrorString(result));
}
#define EXPECT(call, expected) expect_error(call, expected, #call)
#define OK(call) EXPECT(call, cudaSuccess)

static inline void expect_number(long long value, long long expected, const char *what)
{
    if (value == expected) check(true, "%s is %lld", what, value);
    else check(false, "%s: expected %lld, was %lld", what, expected, value);
}
#define EQUAL(value, expected) expect_number((long long)(value), (long long)(expected), #value)

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
