/* Loss scaling (aten/src/ATen/native/cuda/AmpKernels.cu, PyTorch 2.0 to 2.15):
 *
 *     amp_update_scale_cuda_kernel(float *scale, int *steps, const float *found, double growth,
 *                                  double backoff, int interval)
 *
 * The checks for infinities are done by an elementwise kernel (elementwise.c) or by one over tensor lists (lists.c). */
#include "plan.h"
#include <math.h>
#include <string.h>

void plim_launch_check(const struct plim_launch *launch, int i)
{
    struct plim_view flag;
    if (!plim_view_open(&flag, plim_launch_address(launch, i), sizeof(float))) return;
    for (size_t b = 0; b < flag.bytes; b++)
        flag.known[b] = plim_known_both(flag.known[b], PLIM_KNOWN | PLIM_ASSUMPTION_FINITE);
    plim_view_store(&flag, launch->kernel);
    plim_view_close(&flag);
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct plim_view views[3] = {{0}};
    static const enum plim_type types[3] = {PLIM_FLOAT, PLIM_INT32, PLIM_FLOAT};
    struct plim_number scale, steps, found;
    double growth, backoff;
    bool works = true;
    (void)plan;
    for (int i = 0; i < 3 && works; i++)
        works =
            plim_view_open(&views[i], plim_launch_address(launch, i), plim_type_bytes(types[i]));
    unsigned char known = plim_view_get(&views[0], 0, PLIM_FLOAT, &scale);
    known = plim_known_both(known, plim_view_get(&views[1], 0, PLIM_INT32, &steps));
    known = plim_known_both(known, plim_view_get(&views[2], 0, PLIM_FLOAT, &found));
    memcpy(&growth, launch->arguments[3], sizeof(growth));
    memcpy(&backoff, launch->arguments[4], sizeof(backoff));
    bool grows = !plim_number_is_true(found) && steps.i + 1 == plim_launch_int(launch, 5);
    if (plim_number_is_true(found))
        scale.f *= backoff;
    else if (grows && isfinite((float)(scale.f * growth)))
        scale.f *= growth;
    steps.i = plim_number_is_true(found) || grows ? 0 : steps.i + 1;
    if (works) {
        plim_view_set(&views[0], 0, PLIM_FLOAT, scale, known);
        plim_view_set(&views[1], 0, PLIM_INT32, steps, known);
        plim_view_store(&views[0], launch->kernel);
        plim_view_store(&views[1], launch->kernel);
    }
    for (int i = 0; i < 3; i++) plim_view_close(&views[i]);
    return works;
}

const struct plim_row plim_rows_amp[] = {{"amp_update_scale_cuda_kernel(", NULL, run}, {0}};
