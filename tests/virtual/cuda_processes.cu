// The part of cuda_program that uses the GPU from several threads and processes.
#include "cuda_program.cuh"
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static __device__ int device_table[4];
static __global__ void read_only(const int *in) { (void)*in; }
static __global__ void nothing() {}

static void work(int number, int *failed)
{
    cudaStream_t stream;
    int device = -1, back = 0, *at = nullptr;
    *failed = cudaGetDevice(&device) || device || cudaStreamCreate(&stream);
    for (int i = 0; i < 200 && !*failed; i++) {
        *failed |= cudaMalloc(&at, 3 * MIB) ||
                   cudaMemcpyAsync(at, &number, 4, cudaMemcpyDefault, stream);
        read_only<<<1, 32, 0, stream>>>(at);
        *failed |= cudaMemcpy(&back, at, 4, cudaMemcpyDefault) || cudaFree(at);
        *failed |= back && back != number; // others' kernels let it be forgotten
    }
    *failed |= cudaMalloc(&at, TOTAL + 1) != cudaErrorMemoryAllocation;
    *failed |= cudaGetLastError() != cudaErrorMemoryAllocation || cudaStreamDestroy(stream);
}

static void check_threads()
{
    std::vector<std::thread> threads;
    int failed[8] = {0}, sum = 0;
    for (int i = 0; i < 8; i++) threads.emplace_back(work, i, &failed[i]);
    for (auto &thread : threads) thread.join();
    for (int one : failed) sum += one;
    EQUAL(sum, 0);
    OK(cudaGetLastError()); // theirs are not ours
    EQUAL(free_bytes(), TOTAL);
}

// ---- processes ---------------------------------------------------------------------------------

static int exit_code_of(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void check_fork_before()
{
    pid_t pid = fork();
    if (!pid) {
        void *at;
        size_t now, total;
        bool works = !cudaMalloc(&at, 100 * MIB) && !cudaMemGetInfo(&now, &total) &&
                     total - now == 100 * MIB;
        nothing<<<1, 1>>>();
        _exit(works && !cudaDeviceSynchronize() ? 0 : 1); // without a word
    }
    EQUAL(exit_code_of(pid), 0);
}

// What a child of a process that has used CUDA may do: nothing.
static int try_everything()
{
    const cudaError_t none = cudaErrorInitializationError;
    void *at = nullptr, *held = nullptr;
    int count, number = 0;
    size_t now, total;
    cudaStream_t stream;
    cudaEvent_t event;
    if (cudaMalloc(&at, MIB) != none || cudaGetLastError() != none) return 1;
    if (cudaGetDeviceCount(&count) != none) return 2;
    if (cudaMemGetInfo(&now, &total) != none) return 3;
    if (cudaSetDevice(0) != none) return 4;
    if (cudaStreamCreate(&stream) != none) return 5;
    if (cudaEventCreate(&event) != none) return 6;
    if (cudaMallocHost(&at, MIB) != none || cudaMallocManaged(&at, MIB) != none) return 7;
    if (cudaMallocAsync(&at, MIB, nullptr) != none) return 8;
    if (cudaDeviceSynchronize() != none || cudaStreamSynchronize(nullptr) != none) return 9;
    (void)cudaGetLastError();
    nothing<<<1, 1>>>();
    if (cudaGetLastError() != none) return 10;
    if (cudaMemcpyFromSymbol(&number, device_table, sizeof(number)) != none) return 11;
    if (cudaMemcpyToSymbol(device_table, &number, sizeof(number)) != none) return 12;
    if (cudaMemset(held, 0, 1) != none) return 13;
    if (cudaFree(nullptr) != none) return 14;
    return 0;
}

static void check_fork_after()
{
    void *at = nullptr;
    OK(cudaMalloc(&at, 10 * MIB));
    pid_t pid = fork();
    if (!pid) _exit(try_everything());
    EQUAL(exit_code_of(pid), 0);
    EQUAL(TOTAL - free_bytes(), 10 * MIB);
    OK(cudaFree(at));
}

int be_peer(const char *text)
{
    cudaIpcMemHandle_t handle;
    cudaPointerAttributes about;
    void *at = nullptr;
    for (size_t i = 0; i < sizeof(handle); i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        handle.reserved[i] = (char)byte;
    }
    EQUAL(TOTAL - free_bytes(), 32 * MIB);
    OK(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess));
    OK(cudaPointerGetAttributes(&about, (char *)at + 32 * MIB - 1));
    EQUAL(about.type, cudaMemoryTypeDevice);
    OK(cudaMemset(at, 0, 32 * MIB));
    EQUAL(TOTAL - free_bytes(), 32 * MIB);
    OK(cudaIpcCloseMemHandle(at));
    EXPECT(cudaFree(at), cudaErrorInvalidValue);
    return 0;
}

extern char **environ;

static void check_peer(const char *self)
{
    cudaIpcMemHandle_t handle;
    char text[2 * sizeof(handle) + 1];
    void *at = nullptr;
    OK(cudaMalloc(&at, 32 * MIB));
    OK(cudaIpcGetMemHandle(&handle, at));
    for (size_t i = 0; i < sizeof(handle); i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)handle.reserved[i]);
    const char *arguments[] = {self, "--peer", text, nullptr};
    pid_t pid;
    EQUAL(posix_spawn(&pid, self, nullptr, nullptr, (char **)arguments, environ), 0);
    EQUAL(exit_code_of(pid), 0);
    OK(cudaFree(at));
}

void check_processes()
{
    check_threads();
    check_fork_after();
    check_peer("/proc/self/exe");
}
