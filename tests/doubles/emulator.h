/* Our CUDA kernels on a CPU: the very sources of devices/cuda/kernels, compiled by the host's C++
 * compiler against emulator_cuda.h, run here block after block.
 *
 * The threads of a block are fibers. One that neither waits at a barrier nor exchanges values with
 * its warp costs little more than a function call. Between barriers threads run to the end one
 * after the other, in the order that the environment variable PLIM_EMULATOR_ORDER asks for:
 * "forward" (default), "backward" or "shuffled". A kernel whose result depends on it lacks a
 * barrier.
 *
 * Aborts with one line on stderr: a launch that no GPU accepts, a barrier or exchange that not all
 * of its threads reach, an exchange with a lane that takes no part, writes beyond the dynamic
 * shared memory (with AddressSanitizer any access beyond shared memory, at the place); an
 * asynchronous copy that its thread never waits for; a load of matrices whose rows share banks,
 * which a GPU makes slowly. What a block finds in dynamic shared memory at
 * its start is bytes of 0xff: NaN. An asynchronous copy happens when it is waited for, no earlier.
 *
 * Not emulated: races between blocks, warps in lockstep, limits on static shared memory.
 *
 * Thread safety: one host thread at a time. */
#ifndef PLIM_TESTS_DOUBLES_EMULATOR_H
#define PLIM_TESTS_DOUBLES_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    EMULATED_SHARED_LIMIT = 99 * 1024, /* what a block may ask for on every GPU from 8.0 on */
    EMULATED_ARGS_LIMIT = 4096         /* CUDA's limit on the parameters of a kernel */
};

struct emulated_kernel {
    const char *name;
    size_t args_bytes;
    uint32_t max_threads; /* of a block: its __launch_bounds__ */
    void (*entry)(const void *args);
    const struct emulated_kernel *next;
};

/* NULL: there is none of this name. */
const struct emulated_kernel *emulated_kernel_find(const char *name);

/* All kernels, in no particular order; linked by `next`. */
const struct emulated_kernel *emulated_kernel_first(void);

/* One launch, to its end. `args` points to `k->args_bytes` bytes. */
void emulated_kernel_run(const struct emulated_kernel *k, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t shared_bytes, const void *args);

#ifdef __cplusplus
}
#endif

#endif
