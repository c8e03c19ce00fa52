/* Nearest-neighbour resizing of images, with which masks of pixels are scaled down
 * (aten/src/ATen/native/cuda/UpSampleNearest2d.cu, UpSample.cuh; PyTorch 2.0 to 2.15).
 *
 *     upsample_nearest2d_out_frame<T, source_index>(const T *in, T *out, size_t images,
 *         size_t height, size_t width, size_t new_height, size_t new_width, float height_scale,
 *         float width_scale) */
#include "plan.h"
#include <math.h>
#include <string.h>

enum { MIDDLES }; /* index of plan->numbers: 1 if pixel centres determine the source ("nearest-exact") */

static bool read(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plim_name_type(plim_name_argument(list, 0));
    plan->numbers[MIDDLES] = strstr(list, "nearest_neighbor_exact_compute_source_index") != NULL;
    bool is_plain = strstr(list, "nearest_neighbor_compute_source_index") != NULL;
    return plan->types[0] != PLIM_NO_TYPE && (is_plain || plan->numbers[MIDDLES]);
}

static size_t source_of(const struct plim_plan *plan, float scale, size_t to, size_t size)
{
    float at = plan->numbers[MIDDLES] ? ((float)to + 0.5F) * scale : (float)to * scale;
    size_t from = (size_t)floorf(at);
    return from < size ? from : size - 1;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct plim_view in = {0}, out = {0};
    size_t sizes[5], width = plim_type_bytes(plan->types[0]);
    float scales[2];
    for (int i = 0; i < 5; i++) {
        sizes[i] = (size_t)plim_launch_long(launch, 2 + i);
        if (!sizes[i] || sizes[i] > PLIM_MOST_ELEMENTS) return false;
    }
    for (int i = 0; i < 2; i++) memcpy(&scales[i], launch->arguments[7 + i], sizeof(scales[i]));
    size_t images = sizes[0], in_pixels = sizes[1] * sizes[2], out_pixels = sizes[3] * sizes[4];
    uintptr_t from = plim_launch_address(launch, 0), to = plim_launch_address(launch, 1);
    if (in_pixels > PLIM_MOST_ELEMENTS / images || out_pixels > PLIM_MOST_ELEMENTS / images ||
        !(scales[0] > 0 && scales[1] > 0))
        return false;
    bool works = plim_view_open(&in, from, images * in_pixels * width) &&
                 plim_view_blank(&out, to, images * out_pixels * width);
    for (size_t i = 0; works && i < images * out_pixels; i++) {
        size_t y = source_of(plan, scales[0], i % out_pixels / sizes[4], sizes[1]),
               x = source_of(plan, scales[1], i % sizes[4], sizes[2]);
        plim_view_move(&out, i * width, &in, (i / out_pixels * in_pixels + y * sizes[2] + x) * width,
                       width);
    }
    if (works)
        plim_view_store(&out, launch->kernel);
    else
        plim_launch_spoil(launch, to, images * out_pixels * width);
    plim_view_close(&in);
    plim_view_close(&out);
    return true;
}

const struct plim_row plim_rows_resize[] = {{"upsample_nearest2d_out_frame<", read, run}, {0}};
