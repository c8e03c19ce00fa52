#include "event_time.h"
#include "devices/aligned.h"
#include "devices/virtual/machine/self.h"
#include <math.h>

/* Returns the share of the best rate, by the largest power of two up to 16 that divides the bytes of a row. */
static double share_of(int64_t row_bytes)
{
    static const double shares[] = {PLIM_ALIGNED_2_SHARE, PLIM_ALIGNED_2_SHARE, PLIM_ALIGNED_4_SHARE,
                                    PLIM_ALIGNED_8_SHARE, 1};
    int log2 = 0;
    while (log2 < 4 && !(row_bytes >> log2 & 1)) log2++;
    return shares[log2];
}

int64_t plim_event_lost_nanoseconds(const struct plim_cost *cost)
{
    enum { RESULTS_SINCE = 90, TIMES = 1000 };
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    if (!cost || !gpu || cost->kind != PLIM_COST_MATMUL || cost->type == PLIM_COST_FP32) return 0;
    const int64_t *n = cost->number;
    double rate = cost->type == PLIM_COST_TF32 ? gpu->tf32_flops : gpu->half_flops;
    double share = fmin(share_of(n[4]), share_of(n[5]));
    int64_t result_bytes = n[1] * (cost->type == PLIM_COST_TF32 ? 4 : 2);
    if (gpu->compute_capability >= RESULTS_SINCE && share_of(result_bytes) < 1)
        share = fmin(share, share_of(result_bytes) * PLIM_UNALIGNED_RESULT_SHARE);
    if (rate <= 0 || share >= 1) return 0;
    double seconds = 2.0 * (double)n[0] * (double)n[1] * (double)n[2] * (double)n[3] / rate;
    return (int64_t)fmin(1e9 * TIMES * seconds * (1 / share - 1), 1e15);
}

/* The sectors all pass through the L2 cache, which is twice as fast as memory (sim/roofline.h). */
int64_t plim_event_lost_by_jumping(int64_t bytes)
{
    enum { TIMES = 1000, L2_SPEEDUP = 2, DATA_RATE = 2 };
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    if (!gpu || bytes <= 0) return 0;
    double per_second = 1e3 * DATA_RATE * (double)gpu->memory_clock_khz * gpu->memory_bus_bits / 8;
    return per_second > 0 ? (int64_t)fmin(1e9 * TIMES * (double)bytes / (L2_SPEEDUP * per_second), 1e15) : 0;
}
