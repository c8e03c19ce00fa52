/* Kernels that only move elements or compute their positions (aten/src/ATen/native/cuda, PyTorch 2.0 to 2.15):
 *
 *     roll_cuda_kernel<T>(const T *in, T *out, long count, long dimension, long start, long size, long stride, long)
 *     triu_tril_kernel<T, index, upper, ...>(TensorInfo<T> out, TensorInfo<const T> in, long diagonal, ...)
 *     compute_cuda_kernel<T>(const T *repeats, const long *sums, T *out, long count, long total)    repeat_interleave
 *     scatter_kernel(long count, const long *in, const long *places, long *out)                     inverse of unique
 *     searchsorted_cuda_kernel<in, out>(out *, const in *, const in *bounds, const long *order, long row,
 *         long bounds in a row, long count, bool right, bool one row) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <string.h>

static bool read_first(const char *list, struct plim_plan *plan)
{
    plan->types[0] = plim_name_type(plim_name_argument(list, 0));
    return plan->types[0] != PLIM_NO_TYPE;
}

/* --- roll ------------------------------------------------------------------------------------- */

static bool run_roll(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t width = plim_type_bytes(plan->types[0]);
    int64_t count = plim_launch_long(launch, 2), start = plim_launch_long(launch, 4),
            size = plim_launch_long(launch, 5);
    int64_t stride = plim_launch_long(launch, 6);
    struct plim_view in = {0}, out = {0};
    bool works = count > 0 && count <= PLIM_MOST_ELEMENTS && size > 0 && stride > 0 && start >= 0 &&
                 start <= size &&
                 plim_view_open(&in, plim_launch_address(launch, 0), (size_t)count * width) &&
                 plim_view_blank(&out, plim_launch_address(launch, 1), (size_t)count * width);
    for (int64_t i = 0; works && i < count; i++) {
        int64_t place = i % (stride * size) / stride;
        int64_t source = place >= size - start ? i - (size - start) * stride : i + start * stride;
        plim_view_move(&out, (size_t)i * width, &in, (size_t)source * width, width);
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&out);
    return works;
}

/* --- triu and tril ---------------------------------------------------------------------------- */

enum { UPPER, INDEX_BYTES };

static bool read_triangle(const char *list, struct plim_plan *plan)
{
    struct plim_name index = plim_name_argument(list, 1);
    plan->numbers[UPPER] = plim_name_begins(plim_name_argument(list, 2), "true");
    plan->numbers[INDEX_BYTES] = plim_name_begins(index, "int")    ? 4
                                 : plim_name_begins(index, "long") ? 8
                                                                   : 0;
    return read_first(list, plan) && plan->numbers[INDEX_BYTES];
}

static bool run_triangle(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t index_bytes = (size_t)plan->numbers[INDEX_BYTES],
           width = plim_type_bytes(plan->types[0]), count = 1;
    struct plim_tensor out, in;
    struct plim_view to = {0}, from = {0};
    int64_t diagonal = plim_launch_long(launch, 2);
    if (!plim_tensor_read(launch->arguments[0], index_bytes, &out) ||
        !plim_tensor_read(launch->arguments[1], index_bytes, &in) || out.dimensions < 2 ||
        in.dimensions != out.dimensions)
        return false;
    for (int d = 0; d < out.dimensions; d++) count *= (size_t)out.sizes[d];
    size_t columns = (size_t)out.sizes[out.dimensions - 1],
           rows = (size_t)out.sizes[out.dimensions - 2];
    bool works = count <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&to, out.at, plim_tensor_span(&out) * width) &&
                 plim_view_open(&from, in.at, plim_tensor_span(&in) * width);
    for (size_t i = 0; works && i < count; i++) {
        int64_t off = (int64_t)(i % columns) - (int64_t)(i / columns % rows);
        size_t at = plim_tensor_offset(&out, i) * width;
        if (plan->numbers[UPPER] ? off >= diagonal : off <= diagonal)
            plim_view_move(&to, at, &from, plim_tensor_offset(&in, i) * width, width);
        else
            plim_view_set(&to, at, plan->types[0], (struct plim_number){0}, PLIM_KNOWN);
    }
    if (works) plim_view_store(&to, launch->kernel);
    plim_view_close(&to);
    plim_view_close(&from);
    return works;
}

/* --- repeat_interleave ------------------------------------------------------------------------ */

static bool run_repeat(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t width = plim_type_bytes(plan->types[0]);
    int64_t count = plim_launch_long(launch, 3), total = plim_launch_long(launch, 4);
    struct plim_view repeats = {0}, sums = {0}, out = {0};
    bool works = count > 0 && total > 0 && count <= PLIM_MOST_ELEMENTS &&
                 total <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&repeats, plim_launch_address(launch, 0), (size_t)count * width) &&
                 plim_view_open(&sums, plim_launch_address(launch, 1), (size_t)count * 8) &&
                 plim_view_blank(&out, plim_launch_address(launch, 2), (size_t)total * width);
    for (int64_t i = 0; works && i < count; i++) {
        struct plim_number n, end;
        unsigned char known = plim_view_get(&repeats, (size_t)i * width, plan->types[0], &n);
        known = plim_known_both(known, plim_view_get(&sums, (size_t)i * 8, PLIM_INT64, &end));
        works = known & PLIM_KNOWN && n.i >= 0 && end.i >= n.i && end.i <= total;
        for (int64_t k = end.i - n.i; works && k < end.i; k++)
            plim_view_set(&out, (size_t)k * width, plan->types[0], (struct plim_number){.i = i},
                          known);
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&repeats);
    plim_view_close(&sums);
    plim_view_close(&out);
    return works;
}

/* --- inverse of unique ------------------------------------------------------------------------ */

static bool run_scatter(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t count = plim_launch_long(launch, 0);
    struct plim_view in = {0}, places = {0}, out = {0};
    (void)plan;
    bool works = count > 0 && count <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&in, plim_launch_address(launch, 1), (size_t)count * 8) &&
                 plim_view_open(&places, plim_launch_address(launch, 2), (size_t)count * 8) &&
                 plim_view_blank(&out, plim_launch_address(launch, 3), (size_t)count * 8);
    for (int64_t i = 0; works && i < count; i++) {
        struct plim_number x, place;
        unsigned char known = plim_view_get(&in, (size_t)i * 8, PLIM_INT64, &x);
        known = plim_known_both(known, plim_view_get(&places, (size_t)i * 8, PLIM_INT64, &place));
        works = known & PLIM_KNOWN && place.i >= 0 && place.i < count;
        if (works) plim_view_set(&out, (size_t)place.i * 8, PLIM_INT64, x, known);
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&places);
    plim_view_close(&out);
    return works;
}

/* --- searchsorted ----------------------------------------------------------------------------- */

static bool read_search(const char *list, struct plim_plan *plan)
{
    plan->types[1] = plim_name_type(plim_name_argument(list, 1));
    return read_first(list, plan) && plan->types[1] != PLIM_NO_TYPE;
}

static bool run_search(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t width = plim_type_bytes(plan->types[0]), out_width = plim_type_bytes(plan->types[1]);
    int64_t row = plim_launch_long(launch, 4), bounds = plim_launch_long(launch, 5),
            count = plim_launch_long(launch, 6);
    bool right = *(const unsigned char *)launch->arguments[7] != 0,
         one_row = *(const unsigned char *)launch->arguments[8] != 0;
    struct plim_view in = {0}, sorted = {0}, out = {0};
    if (count <= 0 || bounds <= 0 || row <= 0 || plim_launch_address(launch, 3)) return false;
    int64_t rows = one_row ? 1 : (count + row - 1) / row;
    bool works =
        count <= PLIM_MOST_ELEMENTS && rows * bounds <= PLIM_MOST_ELEMENTS &&
        plim_view_open(&in, plim_launch_address(launch, 1), (size_t)count * width) &&
        plim_view_open(&sorted, plim_launch_address(launch, 2), (size_t)(rows * bounds) * width) &&
        plim_view_blank(&out, plim_launch_address(launch, 0), (size_t)count * out_width);
    for (int64_t i = 0; works && i < count; i++) {
        int64_t first = one_row ? 0 : i / row * bounds, low = first, high = first + bounds;
        struct plim_number x, bound;
        unsigned char known = plim_view_get(&in, (size_t)i * width, plan->types[0], &x);
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            known = plim_known_both(
                known, plim_view_get(&sorted, (size_t)middle * width, plan->types[0], &bound));
            int order = plim_number_compare(bound, x);
            if (right ? order <= 0 : order < 0)
                low = middle + 1;
            else
                high = middle;
        }
        plim_view_set(&out, (size_t)i * out_width, plan->types[1],
                      (struct plim_number){.i = low - first}, known);
    }
    if (works) plim_view_store(&out, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&sorted);
    plim_view_close(&out);
    return works;
}

const struct plim_row plim_rows_shape[] = {{"roll_cuda_kernel<", read_first, run_roll},
                                           {"triu_tril_kernel<", read_triangle, run_triangle},
                                           {"compute_cuda_kernel<", read_first, run_repeat},
                                           {"scatter_kernel(", NULL, run_scatter},
                                           {"searchsorted_cuda_kernel<", read_search, run_search},
                                           {0}};
