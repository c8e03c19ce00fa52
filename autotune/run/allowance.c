#include "allowance.h"
#include <stdint.h>
#include <stdio.h>

/* Estimates of the GPU memory that a training process takes outside of the caching allocator: the CUDA context, kernel
 * modules, libraries. Measured for a bare context with lazy loading of modules: 426 MiB on compute capability 8.9
 * (torch 2.10, CUDA 13), 0.47 GiB on 8.0 (torch 2.1, CUDA 12.1). KERNELS_MIB is added for the kernels that the first
 * training steps load. H200 (torch 2.11, CUDA 13.0): 527 MiB for the context, 758 to 767 in total for training
 * programs, 828 with torch.compile, 934 with cuSOLVER (tests/gpu/records). */
static const int64_t KERNELS_MIB = 128;
static const struct {
    int up_to_capability;
    int64_t mib;
} overhead_table[] = {
    {79, 512},
    {80, 610},
    {89, 554},
    {INT32_MAX, 768},
};

int64_t plim_overhead_estimate(int compute_capability)
{
    size_t i = 0;
    while (compute_capability > overhead_table[i].up_to_capability) i++;
    return overhead_table[i].mib << 20;
}

int64_t plim_context_estimate(int compute_capability)
{
    return plim_overhead_estimate(compute_capability) - (KERNELS_MIB << 20);
}

struct plim_limit plim_allowance_limit(const struct plim_allowance *allowance, int64_t usable_bytes,
                                       int64_t estimate_bytes, int64_t measured_bytes)
{
    bool measured = measured_bytes > estimate_bytes;
    struct plim_limit limit = {.usable_bytes = usable_bytes,
                               .overhead_bytes = measured ? measured_bytes : estimate_bytes,
                               .overhead_source = measured ? "measured" : "estimate",
                               .overhead_measured_bytes = measured_bytes,
                               .margin_bytes = allowance->margin_bytes};
    if (allowance->overhead_given) {
        limit.overhead_bytes = allowance->overhead_bytes;
        limit.overhead_source = "given";
    }
    if (allowance->margin_bytes < 0)
        limit.margin_bytes = (int64_t)(allowance->margin_share * (double)usable_bytes);
    limit.budget_bytes = usable_bytes - limit.overhead_bytes - limit.margin_bytes;
    if (allowance->alloc_conf)
        snprintf(limit.alloc_conf, sizeof(limit.alloc_conf), "%s", allowance->alloc_conf);
    return limit;
}

void plim_allowance_add_communicator(const struct plim_allowance *allowance,
                                     struct plim_limit *limit)
{
    if (allowance->overhead_given) return;
    limit->communicator_bytes += PLIM_COMMUNICATOR_BYTES;
    limit->overhead_bytes += PLIM_COMMUNICATOR_BYTES;
    limit->budget_bytes -= PLIM_COMMUNICATOR_BYTES;
}
