/* Intercepts PyTorch's reports of blocks. Its caching allocator reports every block that it hands out or takes back to
 * PyTorch's profiler (c10/cuda/CUDACachingAllocator.cpp, 1.8 to 2.15), through a function of another library; so the
 * call can be intercepted here and passed on. */
#include "devices/virtual/machine/cuda_abi.h"
#include "devices/virtual/machine/version.h"
#include "devices/virtual/memory/block.h"
#include "devices/virtual/record/torch_stream.h"
#include "devices/virtual/steps/watch.h"
#include "dlsym.h"
#include <string.h>

/* `device` is a c10::Device: two bytes, passed in a register. */
typedef void report(void *at, int64_t bytes, uint64_t allocated, uint64_t reserved,
                    uint16_t device);

static void on_block(void *at, int64_t bytes, uint64_t reserved, uint16_t device)
{
    enum { CUDA = 1 }; /* c10::DeviceType, the first of the two bytes; the second is the index */
    int gpu = device >> 8;
    if (bytes > 0)
        plim_block_allocated((uintptr_t)at, (size_t)bytes);
    else
        plim_block_freed((uintptr_t)at);
    if ((device & 0xff) == CUDA)
        plim_watch_block((uintptr_t)at, bytes, (int64_t)reserved, gpu,
                         bytes > 0 ? plim_torch_stream(gpu) : 0);
}

static void pass_on(report **theirs, const char *name, void *at, int64_t bytes, uint64_t allocated,
                    uint64_t reserved, uint16_t device)
{
    if (!*theirs) {
        void *library = plim_version_library("libc10.so");
        plim_dlsym_prepare();
        void *found = library ? plim_dlsym_real(library, name) : NULL;
        memcpy(theirs, &found, sizeof(found));
    }
    if (*theirs) (*theirs)(at, bytes, allocated, reserved, device);
}

/* c10::reportMemoryUsageToProfiler; its totals are int64_t up to PyTorch 2.1 and size_t from then on. */
#define REPORT(symbol)                                                                             \
    ANSWER void symbol(void *at, int64_t bytes, uint64_t allocated, uint64_t reserved,             \
                       uint16_t device)                                                            \
    {                                                                                              \
        static report *theirs;                                                                     \
        on_block(at, bytes, reserved, device);                                                         \
        pass_on(&theirs, #symbol, at, bytes, allocated, reserved, device);                         \
    }
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
