/* Max and average pooling (aten/src/ATen/native/cuda/DilatedMaxPool2d.cu and AveragePool2d.cu, PyTorch 2.0 to 2.15;
 * also used in one dimension):
 *
 *     max_pool_forward_nchw<T, I>(int outputs, const T *in, long channels, height, width, int out height, out width,
 *         2 window, 2 step, 2 padding, 2 dilation, T *out, long *indices)
 *     max_pool_forward_nhwc<T, I>(const T *in, int images, channels, height, width, out height, out width, 2 window,
 *         2 step, 2 padding, 2 dilation, 4 strides, kernel_stride_C, kernel_size_C, T *out, long *indices)
 *     avg_pool2d_out_cuda_frame<T, S>(int outputs, const T *in, long channels, height, width, out height,
 *         int out width, 2 window, 2 step, 2 padding, T *out, int divisor, bool counts padding, bool has divisor)
 *     avg_pool2d_out_cuda_frame_nhwc<T, S>(the same, int out height) */
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <math.h>
#include <string.h>

enum { IN, WIDTH = sizeof(int64_t), LONG_HEIGHT = 0, CHANNELS_LAST };

#define INTS_8 "int, int, int, int, int, int, int, int, "

/* `parameters`: the parameter types that must follow the input pointer. */
static bool read(const char *list, const char *parameters, struct plim_plan *plan)
{
    const char *begin = strstr(list, "const*, ");
    plan->types[IN] = plim_name_type(plim_name_argument(list, 0));
    plan->numbers[CHANNELS_LAST] = strstr(plan->row->name, "nhwc") != NULL;
    return begin && plan->types[IN] != PLIM_NO_TYPE && plim_type_is_float(plan->types[IN]) &&
           !strncmp(begin + strlen("const*, "), parameters, strlen(parameters));
}

static bool read_largest(const char *list, struct plim_plan *plan)
{
    return read(list, "long, long, long, " INTS_8 "int, int, ", plan);
}

static bool read_largest_last(const char *list, struct plim_plan *plan)
{
    return read(list, INTS_8 INTS_8 "int, int, int, int, ", plan);
}

static bool read_mean(const char *list, struct plim_plan *plan)
{
    plan->numbers[LONG_HEIGHT] = 1;
    return read(list, "long, long, long, long, int, int, int, int, int, int, int, ", plan);
}

static bool read_mean_last(const char *list, struct plim_plan *plan)
{
    return read(list, "long, long, long, " INTS_8, plan);
}

/* --- windows ---------------------------------------------------------------------------------- */

enum { HIGH, WIDE, AXES };

struct pooling {
    enum plim_type type;
    size_t width;
    uintptr_t from, to, indices; /* indices 0: average pooling */
    int64_t outputs, channels, size[AXES], out_size[AXES], window[AXES], step[AXES], padding[AXES], dilation[AXES];
    bool channels_last;
    int64_t divisor; /* 0: the number of elements in the window */
    bool counts_padding;
    struct plim_view in, out, places;
};

/* Reads two consecutive arguments, from i on: the height's and the width's. */
static void read_axes(const struct plim_launch *launch, int i, int64_t *out)
{
    for (int axis = 0; axis < AXES; axis++) out[axis] = plim_launch_int(launch, i + axis);
}

static bool is_possible(const struct pooling *p)
{
    enum { MOST = 1 << 20, MOST_STEPS = 1 << 24 };
    int64_t plane = p->out_size[HIGH] * p->out_size[WIDE];
    for (int axis = 0; axis < AXES; axis++)
        if (p->size[axis] <= 0 || p->size[axis] > MOST || p->out_size[axis] <= 0 || p->out_size[axis] > MOST ||
            p->window[axis] <= 0 || p->window[axis] > MOST || p->step[axis] <= 0 || p->step[axis] > MOST ||
            p->padding[axis] < 0 || p->padding[axis] > p->window[axis] || p->dilation[axis] <= 0 ||
            p->dilation[axis] > MOST)
            return false;
    return p->outputs > 0 && p->outputs <= PLIM_MOST_ELEMENTS && p->channels > 0 && p->channels <= p->outputs &&
           p->outputs % (p->channels * plane) == 0 && p->size[HIGH] * p->size[WIDE] <= PLIM_MOST_ELEMENTS &&
           p->outputs * p->window[HIGH] <= MOST_STEPS && p->outputs * p->window[HIGH] * p->window[WIDE] <= MOST_STEPS;
}

/* The image and channel of an output, and the bounds of its window in the input. */
struct window {
    int64_t image, channel, begin[AXES], end[AXES];
};

static struct window window_of(const struct pooling *p, int64_t output)
{
    struct window w;
    int64_t at[AXES];
    if (p->channels_last) w.channel = output % p->channels, output /= p->channels;
    for (int axis = AXES; axis-- > 0;) at[axis] = output % p->out_size[axis], output /= p->out_size[axis];
    if (!p->channels_last) w.channel = output % p->channels, output /= p->channels;
    w.image = output;
    for (int axis = 0; axis < AXES; axis++) {
        w.begin[axis] = at[axis] * p->step[axis] - p->padding[axis];
        w.end[axis] = w.begin[axis] + (p->window[axis] - 1) * p->dilation[axis] + 1;
    }
    return w;
}

static unsigned char load(const struct pooling *p, const struct window *w, int64_t row, int64_t column, double *x)
{
    struct plim_number number;
    int64_t at = p->channels_last
                     ? ((w->image * p->size[HIGH] + row) * p->size[WIDE] + column) * p->channels + w->channel
                     : ((w->image * p->channels + w->channel) * p->size[HIGH] + row) * p->size[WIDE] + column;
    unsigned char known = plim_view_get(&p->in, (size_t)at * p->width, p->type, &number);
    *x = number.f;
    return known;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static void compute_max(struct pooling *p, int64_t output)
{
    struct window w = window_of(p, output);
    unsigned char known = PLIM_KNOWN;
    double largest = -(double)INFINITY, x;
    for (int axis = 0; axis < AXES; axis++) {
        while (w.begin[axis] < 0) w.begin[axis] += p->dilation[axis];
        w.end[axis] = least(w.end[axis], p->size[axis]);
    }
    int64_t place = p->channels_last ? 0 : w.begin[HIGH] * p->size[WIDE] + w.begin[WIDE];
    for (int64_t row = w.begin[HIGH]; row < w.end[HIGH]; row += p->dilation[HIGH])
        for (int64_t column = w.begin[WIDE]; column < w.end[WIDE]; column += p->dilation[WIDE]) {
            known = plim_known_both(known, load(p, &w, row, column, &x));
            if (x > largest || isnan(x)) largest = x, place = row * p->size[WIDE] + column;
        }
    plim_view_set(&p->out, (size_t)output * p->width, p->type, (struct plim_number){.f = largest, .is_float = true},
                  known);
    plim_view_set(&p->places, (size_t)output * WIDTH, PLIM_INT64, (struct plim_number){.i = place}, known);
}

static int64_t area(const struct window *w)
{
    return (w->end[HIGH] - w->begin[HIGH]) * (w->end[WIDE] - w->begin[WIDE]);
}

static void compute_mean(struct pooling *p, int64_t output)
{
    struct window w = window_of(p, output);
    unsigned char known = PLIM_KNOWN;
    enum plim_type math = plim_type_math(p->type);
    double sum = 0, x;
    for (int axis = 0; axis < AXES; axis++) w.end[axis] = least(w.end[axis], p->size[axis] + p->padding[axis]);
    int64_t with_padding = area(&w);
    for (int axis = 0; axis < AXES; axis++) {
        w.begin[axis] = most(w.begin[axis], 0);
        w.end[axis] = least(w.end[axis], p->size[axis]);
    }
    bool is_empty = w.begin[HIGH] >= w.end[HIGH] || w.begin[WIDE] >= w.end[WIDE];
    for (int64_t row = w.begin[HIGH]; row < w.end[HIGH]; row++)
        for (int64_t column = w.begin[WIDE]; column < w.end[WIDE]; column++) {
            known = plim_known_both(known, load(p, &w, row, column, &x));
            sum = plim_number_round(sum + x, math);
        }
    int64_t divisor = p->divisor ? p->divisor : p->counts_padding ? with_padding : area(&w);
    if (!is_empty) sum = plim_number_round(sum / (double)divisor, math);
    plim_view_set(&p->out, (size_t)output * p->width, p->type, (struct plim_number){.f = sum, .is_float = true}, known);
}

static bool run(struct pooling *p, const struct plim_launch *launch)
{
    if (!is_possible(p) || !plim_heap_is_device(p->to) || (p->indices && !plim_heap_is_device(p->indices)))
        return false;
    int64_t images = p->outputs / (p->channels * p->out_size[HIGH] * p->out_size[WIDE]);
    size_t bytes = (size_t)(images * p->channels * p->size[HIGH] * p->size[WIDE]) * p->width,
           out_bytes = (size_t)p->outputs * p->width, places_bytes = (size_t)p->outputs * WIDTH;
    bool works = plim_shadow_survey(p->from, bytes) & PLIM_KNOWN && plim_view_open(&p->in, p->from, bytes) &&
                 plim_view_blank(&p->out, p->to, out_bytes) &&
                 (!p->indices || plim_view_blank(&p->places, p->indices, places_bytes));
    for (int64_t i = 0; works && i < p->outputs; i++) p->indices ? compute_max(p, i) : compute_mean(p, i);
    if (works) {
        plim_view_store(&p->out, launch->kernel);
        if (p->indices) plim_view_store(&p->places, launch->kernel);
    } else {
        plim_launch_spoil(launch, p->to, out_bytes);
        if (p->indices) plim_launch_spoil(launch, p->indices, places_bytes);
    }
    plim_view_close(&p->in);
    plim_view_close(&p->out);
    plim_view_close(&p->places);
    return true;
}

/* --- launches --------------------------------------------------------------------------------- */

static struct pooling pooling_of(const struct plim_plan *plan)
{
    return (struct pooling){.type = plan->types[IN],
                            .width = plim_type_bytes(plan->types[IN]),
                            .dilation = {1, 1},
                            .channels_last = plan->numbers[CHANNELS_LAST]};
}

/* Reads the arguments that max_pool_forward_nchw and the average kernels have in common. */
static struct pooling pooling_of_images(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct pooling p = pooling_of(plan);
    p.outputs = plim_launch_int(launch, 0);
    p.from = plim_launch_address(launch, 1);
    p.channels = plim_launch_long(launch, 2);
    for (int axis = 0; axis < AXES; axis++) p.size[axis] = plim_launch_long(launch, 3 + axis);
    read_axes(launch, 5, p.out_size);
    read_axes(launch, 7, p.window);
    read_axes(launch, 9, p.step);
    read_axes(launch, 11, p.padding);
    return p;
}

static bool run_largest(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct pooling p = pooling_of_images(plan, launch);
    read_axes(launch, 13, p.dilation);
    p.to = plim_launch_address(launch, 15);
    p.indices = plim_launch_address(launch, 16);
    return run(&p, launch);
}

/* Supports only windows without dilation: PyTorch versions differ in which elements of a dilated window they visit. */
static bool run_largest_last(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct pooling p = pooling_of(plan);
    int64_t images = plim_launch_int(launch, 1), strides[2][AXES];
    p.from = plim_launch_address(launch, 0);
    p.channels = plim_launch_int(launch, 2);
    read_axes(launch, 3, p.size);
    read_axes(launch, 5, p.out_size);
    read_axes(launch, 7, p.window);
    read_axes(launch, 9, p.step);
    read_axes(launch, 11, p.padding);
    read_axes(launch, 13, p.dilation);
    read_axes(launch, 15, strides[0]);
    read_axes(launch, 17, strides[1]);
    p.to = plim_launch_address(launch, 21);
    p.indices = plim_launch_address(launch, 22);
    p.outputs = images * p.channels * p.out_size[HIGH] * p.out_size[WIDE];
    bool is_dense = strides[0][1] == 1 && strides[1][1] == p.channels && strides[1][0] == p.channels * p.size[WIDE] &&
                    (images == 1 || strides[0][0] == strides[1][0] * p.size[HIGH]);
    return is_dense && p.dilation[HIGH] == 1 && p.dilation[WIDE] == 1 && run(&p, launch);
}

static bool run_mean(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct pooling p = pooling_of_images(plan, launch);
    if (plan->numbers[LONG_HEIGHT]) p.out_size[HIGH] = plim_launch_long(launch, 5);
    p.to = plim_launch_address(launch, 13);
    p.counts_padding = *(const char *)launch->arguments[15] != 0;
    if (*(const char *)launch->arguments[16]) p.divisor = plim_launch_int(launch, 14);
    return run(&p, launch);
}

const struct plim_row plim_rows_pooling[] = {{"max_pool_forward_nchw<", read_largest, run_largest},
                                             {"max_pool_forward_nhwc<", read_largest_last, run_largest_last},
                                             {"avg_pool2d_out_cuda_frame<", read_mean, run_mean},
                                             {"avg_pool2d_out_cuda_frame_nhwc<", read_mean_last, run_mean},
                                             {0}};
