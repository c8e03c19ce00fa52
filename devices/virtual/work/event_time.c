#include "event_time.h"
#include "devices/aligned.h"
#include "devices/virtual/machine/self.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the best rate, by the largest power of two up to 16 that divides the bytes from row to row. */
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

/* aten/src/ATen/native/cuda/Shape.cu: each thread copies one element after the other, or one vector where operands
 * begin at whole ones, and waits for each: for 1 us on a GPU that is busy with such (DRAM answers after 0.5 to 0.8; as
 * remembered). With it GPT-2 reserves, compiled, what it does on an H100, to the byte (tests/gpu/records). */
int64_t plim_event_lost_by_copying(const char *kernel, int64_t threads, int64_t bytes)
{
    static const char cat[] = "CatArrayBatchedCopy", element[] = "OpaqueTypeILj";
    enum { NANOSECONDS = 1000, TIMES = 1000 };
    const struct plim_machine_gpu *gpu = plim_self_gpu(plim_self_device());
    const char *at = strstr(kernel, cat), *type = at ? strstr(at, element) : NULL;
    if (!type || !gpu || !strncmp(at + sizeof(cat) - 1, "_vectorized", 11)) return 0;
    bool has_vectors = !strncmp(at + sizeof(cat) - 1, "_aligned", 8);
    int64_t most = (int64_t)gpu->multiprocessors * gpu->threads_per_multiprocessor;
    int64_t each = has_vectors ? 8 : strtol(type + sizeof(element) - 1, NULL, 10);
    if (threads > most) threads = most;
    if (each < 1 || threads < 1) return 0;
    return (int64_t)fmin((double)(bytes / each) / (double)threads * NANOSECONDS * TIMES, 1e15);
}
