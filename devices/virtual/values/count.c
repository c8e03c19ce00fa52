/* bincount and histc: kernelHistogram1D (aten/src/ATen/native/cuda/SummaryOps.cu, PyTorch 2.0 to 2.15).
 *
 *     kernelHistogram1D<out, in, long, ...>(TensorInfo<out> counts, TensorInfo<out>, TensorInfo<const in> in, long
 *     bins,
 *                                           least, greatest, long count, weights) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <string.h>

/* Accepts only the form without weights, in which the second lambda of the operation returns 1. */
static bool read(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plim_name_type(plim_name_argument(list, 0));
    plan->types[1] = plim_name_type(plim_name_argument(list, 1));
    struct plim_name weights = plim_name_argument(list, 7);
    return plan->types[0] != PLIM_NO_TYPE && plan->types[1] != PLIM_NO_TYPE &&
           plim_name_begins(plim_name_argument(list, 2), "long") &&
           plim_name_behind(weights, "{lambda(long)#2}");
}

/* Reads a limit of the histogram. It is passed as double for double, as float for other floats, as long for integers
 * (at::AccumulateType). */
static struct plim_number limit(const struct plim_launch *launch, int i, enum plim_type type)
{
    bool is_float = plim_type_is_float(type);
    return plim_number_load(launch->arguments[i],
                            is_float ? type == PLIM_DOUBLE ? PLIM_DOUBLE : PLIM_FLOAT : PLIM_INT64);
}

/* Returns the bin of x, or -1 if x is outside the range. */
static int64_t bin_of(struct plim_number x, struct plim_number least, struct plim_number greatest,
                      int64_t bins)
{
    if (!(plim_number_compare(x, least) >= 0 && plim_number_compare(x, greatest) <= 0)) return -1;
    int64_t bin;
    if (x.is_float)
        bin = (int64_t)((float)(x.f - least.f) * (float)bins / (float)(greatest.f - least.f));
    else
        bin = greatest.i == least.i ? 0 : (x.i - least.i) * bins / (greatest.i - least.i);
    return bin == bins ? bin - 1 : bin;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct plim_tensor out, in;
    struct plim_view counts = {0}, values = {0};
    size_t width = plim_type_bytes(plan->types[0]), in_width = plim_type_bytes(plan->types[1]);
    int64_t bins = plim_launch_long(launch, 3), count = plim_launch_long(launch, 6);
    struct plim_number least = limit(launch, 4, plan->types[1]),
                       greatest = limit(launch, 5, plan->types[1]);
    if (!plim_tensor_read(launch->arguments[0], 8, &out) ||
        !plim_tensor_read(launch->arguments[2], 8, &in) || out.dimensions != 1 || bins <= 0 ||
        out.sizes[0] != bins || count <= 0)
        return false;
    bool works = count <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&counts, out.at, plim_tensor_span(&out) * width) &&
                 plim_view_open(&values, in.at, plim_tensor_span(&in) * in_width);
    for (int64_t i = 0; works && i < count; i++) {
        struct plim_number x, had;
        unsigned char known = plim_view_get(&values, plim_tensor_offset(&in, (size_t)i) * in_width,
                                            plan->types[1], &x);
        int64_t bin = bin_of(x, least, greatest, bins);
        works = known & PLIM_KNOWN;
        if (!works || bin < 0) continue;
        size_t at = (size_t)(bin * out.strides[0]) * width;
        known = plim_known_both(known, plim_view_get(&counts, at, plan->types[0], &had));
        had.i++;
        had.f++;
        plim_view_set(&counts, at, plan->types[0], had, known);
    }
    if (works)
        plim_view_store(&counts, launch->kernel);
    else
        plim_launch_spoil(launch, out.at, plim_tensor_span(&out) * width);
    plim_view_close(&counts);
    plim_view_close(&values);
    return true;
}

const struct plim_row plim_rows_count[] = {{"kernelHistogram1D<", read, run}, {0}};
