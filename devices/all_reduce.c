#include "all_reduce.h"
#include <math.h>
#include <stdbool.h>

static const double MOST_OF_SMALL = 0.5; /* of the large size's time */

enum plim_status plim_all_reduce_fit(int gpus, double small_seconds, double large_seconds,
                                     struct plim_all_reduce *out)
{
    const double small = PLIM_ALL_REDUCE_SMALL_BYTES, large = PLIM_ALL_REDUCE_LARGE_BYTES;
    bool are_times = isfinite(small_seconds) && isfinite(large_seconds) && small_seconds > 0 &&
                     large_seconds > 0;
    if (gpus < 2 || !are_times) return PLIM_INVALID;
    double passed = 2.0 * (gpus - 1) / gpus;
    double per_byte = (large_seconds - small_seconds) / (large - small);
    out->gpus = gpus;
    if (small_seconds > MOST_OF_SMALL * large_seconds || small_seconds <= per_byte * small) {
        out->bytes_per_second = passed * large / large_seconds;
        out->latency_seconds = 0;
    } else {
        out->bytes_per_second = passed / per_byte;
        out->latency_seconds = small_seconds - per_byte * small;
    }
    return PLIM_OK;
}
