/* Kernels that PyTorch runs around a radix sort of long rows, in which it sorts all numbers together with their
 * positions and then sorts by row (aten/src/ATen/native/cuda/SortStable.cu, PyTorch 2.0 to 2.15):
 *
 *     fill_reverse_indices_kernel(long *places, int count, IntDivider size)            positions in the rows
 *     fill_index_and_segment_kernel(int2 *places, int count, IntDivider size)          rows and positions in them
 *     sort_postprocess_kernel<T>(const T *in, T *out, long *indices, const int2 *places, int rows, int size)
 *
 * An IntDivider starts with the divisor. */
#include "plan.h"

enum { NUMBERS, HAS_ROWS = 0 };

/* `list` starts with the type of the positions. */
static bool read_places(const char *list, struct plim_plan *plan)
{
    plan->numbers[HAS_ROWS] = !strncmp(list, "int2", strlen("int2"));
    return true;
}

static bool run_places(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { WIDTH = sizeof(int64_t) };
    int32_t count = plim_launch_int(launch, 1);
    uint32_t size = (uint32_t)plim_launch_int(launch, 2);
    struct plim_view view = {0};
    if (count <= 0 || count > PLIM_MOST_ELEMENTS || !size ||
        !plim_view_blank(&view, plim_launch_address(launch, 0), (size_t)count * WIDTH))
        return false;
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        uint64_t place = plan->numbers[HAS_ROWS] ? (uint64_t)(i % size) << 32 | i / size : i % size;
        plim_view_set(&view, i * WIDTH, PLIM_INT64, (struct plim_number){.i = (int64_t)place}, PLIM_KNOWN);
    }
    plim_view_store(&view, launch->kernel);
    plim_view_close(&view);
    return true;
}

static bool read(const char *list, struct plim_plan *plan)
{
    plan->types[NUMBERS] = plim_name_type(plim_name_argument(list, 0));
    return plan->types[NUMBERS] != PLIM_NO_TYPE;
}

struct sorted_rows {
    struct plim_view in, out, indices, places;
    size_t count, size, width;
};

static bool open(struct sorted_rows *s, const struct plim_launch *launch)
{
    return plim_view_open(&s->in, plim_launch_address(launch, 0), s->count * s->width) &&
           plim_view_blank(&s->out, plim_launch_address(launch, 1), s->count * s->width) &&
           plim_view_blank(&s->indices, plim_launch_address(launch, 2), s->count * sizeof(int64_t)) &&
           plim_view_open(&s->places, plim_launch_address(launch, 3), s->count * sizeof(int64_t));
}

static bool run_last(const struct plim_plan *plan, const struct plim_launch *launch)
{
    int64_t rows = plim_launch_int(launch, 4), size = plim_launch_int(launch, 5);
    if (rows <= 0 || size <= 0 || rows > PLIM_MOST_ELEMENTS / size) return false;
    struct sorted_rows s = {
        .count = (size_t)(rows * size), .size = (size_t)size, .width = plim_type_bytes(plan->types[NUMBERS])};
    bool works = open(&s, launch);
    for (size_t i = 0; works && i < s.count; i++) {
        struct plim_number place;
        unsigned char known = plim_view_get(&s.places, i * sizeof(int64_t), PLIM_INT64, &place);
        place.i = (int64_t)((uint64_t)place.i >> 32);
        plim_view_set(&s.indices, i * sizeof(int64_t), PLIM_INT64, place, known);
        if (known & PLIM_KNOWN)
            plim_view_move_by(&s.out, i * s.width, &s.in, (i / s.size * s.size + (size_t)place.i) * s.width, s.width,
                              known);
    }
    if (works) plim_view_store(&s.out, launch->kernel);
    if (works) plim_view_store(&s.indices, launch->kernel);
    plim_view_close(&s.in);
    plim_view_close(&s.out);
    plim_view_close(&s.indices);
    plim_view_close(&s.places);
    return works;
}

const struct plim_row plim_rows_segments[] = {{"fill_reverse_indices_kernel(", read_places, run_places},
                                              {"fill_index_and_segment_kernel(", read_places, run_places},
                                              {"sort_postprocess_kernel<", read, run_last},
                                              {0}};
