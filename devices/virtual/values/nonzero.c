/* Indices of nonzero elements (aten/src/ATen/native/cuda/Nonzero.cu, ATen/cuda/cub.cuh; PyTorch 2.0 to 2.15). nonzero
 * selects them with CUB (cub.c). nonzero_static, whose caller gives the size of the result, uses these kernels:
 *
 *     calc_block_sums<threads, items, true, T, int>(const T *in, int *sums, long count, int rounds)
 *     compute_agg<threads>(int *sums, long *ends, unsigned blocks)
 *     flag_kernel<threads, items, T>(const T *in, long *places, const long *ends, long count, long size, int rounds)
 *     write_fill_value(long *places, long *found, long fill, long size)
 *
 * A block processes threads * items * rounds elements. In both cases each linear index is then split into one index per
 * dimension:
 *
 *     write_indices<index>(long *indices, sizes[16], int dimensions, index count)
 *     write_indices<index>(..., long *found, long fill)                               for nonzero_static */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ELEMENTS };

/* --- nonzero_static --------------------------------------------------------------------------- */

/* Reads template argument `index` as a number. Returns false if it is not a number from 1 to the largest that a block
 * allows. */
static bool read_number(const char *list, int index, int64_t *out)
{
    enum { MOST = 1 << 16 };
    struct plim_name part = plim_name_argument(list, index);
    *out = part.at ? strtoll(part.at, NULL, 10) : 0;
    return *out > 0 && *out <= MOST;
}

static bool read_blocks(const char *list, int type, struct plim_plan *plan)
{
    int64_t threads, items;
    if (!read_number(list, 0, &threads) || !read_number(list, 1, &items)) return false;
    plan->numbers[BLOCK_ELEMENTS] = threads * items;
    plan->types[0] = plim_name_type(plim_name_argument(list, type));
    return plan->types[0] != PLIM_NO_TYPE;
}

static bool read_sums(const char *list, struct plim_plan *plan)
{
    enum { NONZERO = 2, TYPE };
    return plim_name_begins(plim_name_argument(list, NONZERO), "true") && read_blocks(list, TYPE, plan);
}

static bool read_flags(const char *list, struct plim_plan *plan)
{
    enum { TYPE = 2 };
    return read_blocks(list, TYPE, plan);
}

static bool run_sums(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t count = plim_launch_long(launch, 2), block = plan->numbers[BLOCK_ELEMENTS] * plim_launch_int(launch, 3);
    size_t width = plim_type_bytes(plan->types[0]), blocks = launch->grid->x;
    struct plim_view in = {0}, sums = {0};
    bool works = count > 0 && count <= PLIM_MOST_OF_MASK && block > 0 && blocks <= PLIM_MOST_ELEMENTS &&
                 plim_view_open_mask(&in, plim_launch_address(launch, 0), (size_t)count * width) &&
                 plim_view_open(&sums, plim_launch_address(launch, 1), blocks * sizeof(int32_t));
    for (int64_t first = 0; works && first < count; first += block) {
        struct plim_number sum = {0}, x;
        unsigned char known = PLIM_KNOWN;
        for (int64_t i = first; i < count && i < first + block; i++) {
            known = plim_known_both(known, plim_view_get(&in, (size_t)i * width, plan->types[0], &x));
            sum.i += plim_number_is_true(x);
        }
        plim_view_set(&sums, (size_t)(first / block) * sizeof(int32_t), PLIM_INT32, sum, known);
    }
    if (works) plim_view_store(&sums, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&sums);
    return works;
}

static bool run_ends(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t blocks = (uint32_t)plim_launch_int(launch, 2);
    struct plim_view sums = {0}, ends = {0};
    struct plim_number sum, end = {0};
    unsigned char known = PLIM_KNOWN;
    (void)plan;
    bool works = blocks && blocks <= PLIM_MOST_ELEMENTS &&
                 plim_view_open(&sums, plim_launch_address(launch, 0), blocks * sizeof(int32_t)) &&
                 plim_view_blank(&ends, plim_launch_address(launch, 1), blocks * sizeof(int64_t));
    for (size_t i = 0; works && i < blocks; i++) {
        known = plim_known_both(known, plim_view_get(&sums, i * sizeof(int32_t), PLIM_INT32, &sum));
        end.i += sum.i;
        plim_view_set(&ends, i * sizeof(int64_t), PLIM_INT64, end, known);
    }
    if (works) plim_view_store(&ends, launch->kernel);
    plim_view_close(&sums);
    plim_view_close(&ends);
    return works;
}

static bool run_flags(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t count = plim_launch_long(launch, 3), size = plim_launch_long(launch, 4), found = 0;
    size_t width = plim_type_bytes(plan->types[0]);
    struct plim_view in = {0}, places = {0};
    struct plim_number x;
    unsigned char known = PLIM_KNOWN;
    bool works = count > 0 && count <= PLIM_MOST_OF_MASK && size > 0 && size <= PLIM_MOST_OF_MASK &&
                 plim_view_open_mask(&in, plim_launch_address(launch, 0), (size_t)count * width) &&
                 plim_view_open_mask(&places, plim_launch_address(launch, 1), (size_t)size * sizeof(int64_t));
    for (int64_t i = 0; works && i < count && found < size; i++) {
        known = plim_known_both(known, plim_view_get(&in, (size_t)i * width, plan->types[0], &x));
        works = known & PLIM_KNOWN;
        if (works && plim_number_is_true(x))
            plim_view_set(&places, (size_t)found++ * sizeof(int64_t), PLIM_INT64, (struct plim_number){.i = i}, known);
    }
    if (works) plim_view_store(&places, launch->kernel);
    plim_view_close(&in);
    plim_view_close(&places);
    return works;
}

static bool run_fill(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t size = plim_launch_long(launch, 3);
    struct plim_view found = {0}, places = {0};
    struct plim_number count = {0}, fill = {.i = plim_launch_long(launch, 2)};
    unsigned char known = PLIM_UNKNOWN;
    (void)plan;
    bool works = size > 0 && size <= PLIM_MOST_OF_MASK &&
                 plim_view_open(&found, plim_launch_address(launch, 1), sizeof(int64_t)) &&
                 plim_view_open_mask(&places, plim_launch_address(launch, 0), (size_t)size * sizeof(int64_t));
    if (works) known = plim_view_get(&found, 0, PLIM_INT64, &count);
    works = works && known & PLIM_KNOWN && count.i >= 0;
    for (int64_t i = count.i; works && i < size; i++)
        plim_view_set(&places, (size_t)i * sizeof(int64_t), PLIM_INT64, fill, known);
    if (works) plim_view_store(&places, launch->kernel);
    plim_view_close(&found);
    plim_view_close(&places);
    return works;
}

/* --- indices per dimension -------------------------------------------------------------------- */

enum { INDEX_BYTES, HAS_COUNT };

static bool read_indices(const char *list, struct plim_plan *plan)
{
    struct plim_name whole = {list, strlen(list)};
    plan->numbers[INDEX_BYTES] = plim_name_begins(plim_name_argument(list, 0), "long") ? 8 : 4;
    plan->numbers[HAS_COUNT] = plim_name_behind(whole, ", long*, long)") != NULL;
    return true;
}

/* The shape of the indexed tensor. */
struct shape {
    int32_t dimensions;
    size_t count; /* number of linear indices */
    int64_t sizes[16];
};

static bool read_shape(const struct plim_plan *plan, const struct plim_launch *launch, struct shape *out)
{
    enum { MOST = sizeof(out->sizes) / sizeof(out->sizes[0]) };
    size_t width = (size_t)plan->numbers[INDEX_BYTES];
    *out = (struct shape){.dimensions = plim_launch_int(launch, 2)};
    out->count = width == 8 ? (size_t)plim_launch_long(launch, 3) : (uint32_t)plim_launch_int(launch, 3);
    if (out->dimensions < 1 || out->dimensions > MOST || !out->count || out->count > PLIM_MOST_OF_MASK) return false;
    for (int d = 0; d < out->dimensions; d++) {
        memcpy(&out->sizes[d], (const char *)launch->arguments[1] + (size_t)d * width, width);
        if (out->sizes[d] <= 0) return false;
    }
    return true;
}

/* Reads how many indices were found; without that argument, all of them were. */
static unsigned char read_found(const struct plim_plan *plan, const struct plim_launch *launch, size_t count,
                                struct plim_number *out)
{
    struct plim_view view = {0};
    *out = (struct plim_number){.i = (int64_t)count};
    if (!plan->numbers[HAS_COUNT] || !plim_launch_address(launch, 4)) return PLIM_KNOWN;
    if (!plim_view_open(&view, plim_launch_address(launch, 4), sizeof(int64_t))) return PLIM_UNKNOWN;
    unsigned char known = plim_view_get(&view, 0, PLIM_INT64, out);
    plim_view_close(&view);
    return known;
}

/* On entry the first row holds linear indices; on return each row holds the indices of its dimension. If the shape is
 * not valid or too large, the block that the kernel writes becomes unknown. Entries of `sizes` after the last dimension
 * are not initialised and not read. */
static bool run_indices(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { WIDTH = sizeof(int64_t) };
    struct shape shape;
    struct plim_view view;
    struct plim_number found;
    if (!read_shape(plan, launch, &shape) ||
        !plim_view_open_mask(&view, plim_launch_address(launch, 0),
                             shape.count * (size_t)shape.dimensions * WIDTH)) {
        plim_launch_spoil_block(launch, plim_launch_address(launch, 0));
        return true;
    }
    unsigned char count_known = read_found(plan, launch, shape.count, &found);
    int64_t fill = plan->numbers[HAS_COUNT] ? plim_launch_long(launch, 5) : 0;
    for (size_t i = 0; i < shape.count; i++) {
        struct plim_number place;
        unsigned char known = plim_known_both(count_known, plim_view_get(&view, i * WIDTH, PLIM_INT64, &place));
        bool is_found = (int64_t)i < found.i;
        for (int d = shape.dimensions; d-- > 0;) {
            plim_view_set(&view, (i + (size_t)d * shape.count) * WIDTH, PLIM_INT64,
                          (struct plim_number){.i = is_found ? place.i % shape.sizes[d] : fill}, known);
            place.i /= shape.sizes[d];
        }
    }
    plim_view_store(&view, launch->kernel);
    plim_view_close(&view);
    return true;
}

const struct plim_row plim_rows_nonzero[] = {{"calc_block_sums<", read_sums, run_sums},
                                             {"compute_agg<", NULL, run_ends},
                                             {"flag_kernel<", read_flags, run_flags},
                                             {"write_fill_value(", NULL, run_fill},
                                             {"write_indices<", read_indices, run_indices},
                                             {0}};
