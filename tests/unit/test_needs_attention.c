/* Attention against PyTorch: data/attention_needs.txt is what PyTorch 2.11 did on the virtual GPU, call
 * by call, data/attention_needs_2_15.txt what 2.15 did, data/attention_needs_values.txt what 2.11 did where values have
 * heads of another size; data/make_attention_needs.py measured them and
 * explains the format. */
#include "devices/needs/needs_attention.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifndef PLIM_UNIT_DATA_FOLDER /* given by the build */
#define PLIM_UNIT_DATA_FOLDER "tests/unit/data"
#endif

enum { EVENTS_SIZE = 512 };

/* 2.15 has no kernels for 7.0. */
static struct measurement {
    int compute_capability;
    bool torch_2_15, values; /* values: their heads have a size of their own */
} measurements[] = {
    {70, false, false}, {75, false, false},  {80, false, false},  {86, false, false}, {89, false, false},
    {90, false, false}, {100, false, false}, {120, false, false}, {75, true, false},  {80, true, false},
    {86, true, false},  {89, true, false},   {90, true, false},   {100, true, false}, {120, true, false},
    {75, false, true},  {80, false, true},   {86, false, true},   {89, false, true},  {90, false, true},
    {100, false, true}, {120, false, true}};
enum { MEASUREMENT_COUNT = sizeof measurements / sizeof *measurements };

/* --- a measured call ----------------------------------------------------------------------- */

struct measured {
    struct plim_device_info info;
    struct plim_attention_shape shape;
    char kernel[16], forward[EVENTS_SIZE], backward[EVENTS_SIZE];
};

static enum plim_dtype dtype_named(const char *name)
{
    for (int t = 0; t < PLIM_DTYPE_COUNT; t++)
        if (strcmp(plim_dtype_name((enum plim_dtype)t), name) == 0) return (enum plim_dtype)t;
    cr_fatal("no such dtype: %s", name);
    return PLIM_F32;
}

static bool is_one_of(const char *name, const char *a, const char *b)
{
    return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

static struct measured parse(const char *line)
{
    struct measured m = {0};
    struct plim_attention_shape *s = &m.shape;
    char dtype[8], layout[16], sizes[16];
    int causal, dropout, training;
    int n = sscanf(line,
                   "%d %d %7s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %15s"
                   " %" SCNd64 " %" SCNd64 " %d %d %d %15s %15s %511s %511s",
                   &m.info.compute_capability, &m.info.multiprocessors, dtype, &s->batch, &s->heads,
                   &s->kv_heads, &s->q_length, &s->k_length, sizes, &s->mask_batch,
                   &s->mask_heads, &causal, &dropout, &training, layout, m.kernel, m.forward,
                   m.backward);
    cr_assert(eq(int, n, 18), "%s", line);
    cr_assert(ge(int, sscanf(sizes, "%" SCNd64 "/%" SCNd64, &s->head_size, &s->value_size), 1), "%s", line);
    s->dtype = dtype_named(dtype);
    s->has_mask = s->mask_batch > 0;
    s->causal = causal;
    s->dropout = dropout;
    s->training = training;
    s->contiguous_heads = !is_one_of(layout, "cat", "heads") && strcmp(layout, "latent") != 0;
    s->grad_heads_first = strcmp(layout, "grad") == 0;
    return m;
}

/* Calls `each` for every call of a measurement; returns how many. */
static int for_each_call(const struct measurement *of, void (*each)(const struct measured *))
{
    const char *path = of->torch_2_15 ? PLIM_UNIT_DATA_FOLDER "/attention_needs_2_15.txt"
                       : of->values   ? PLIM_UNIT_DATA_FOLDER "/attention_needs_values.txt"
                                      : PLIM_UNIT_DATA_FOLDER "/attention_needs.txt";
    FILE *f = fopen(path, "r");
    cr_assert(ne(ptr, f, NULL), "%s does not open", path);
    char line[3 * EVENTS_SIZE];
    int count = 0;
    while (fgets(line, sizeof line, f)) {
        struct measured m = parse(line);
        if (m.info.compute_capability != of->compute_capability) continue;
        m.shape.torch_2_15 = of->torch_2_15;
        each(&m);
        count++;
    }
    fclose(f);
    return count;
}

/* --- our answer, written as events --------------------------------------------------------- */

struct events {
    char text[EVENTS_SIZE];
    size_t length;
    int allocations;
};

__attribute__((format(printf, 2, 3))) static void add(struct events *e, const char *format, ...)
{
    va_list arguments;
    if (e->length) e->text[e->length++] = ',';
    va_start(arguments, format);
    int n = vsnprintf(e->text + e->length, sizeof e->text - e->length, format, arguments);
    va_end(arguments);
    cr_assert(n > 0 && (size_t)n < sizeof e->text - e->length);
    e->length += (size_t)n;
}

static int add_allocation(struct events *e, char role, int64_t bytes)
{
    add(e, "%c%" PRId64, role, bytes);
    return e->allocations++;
}

static void add_releases(struct events *e, const struct plim_attention_need *needs, int count,
                         int before, int first)
{
    for (int order = 0; order < count; order++)
        for (int i = 0; i < count; i++)
            if ((needs[i].role == PLIM_NEED_TEMPORARY || (needs[i].role == PLIM_NEED_MASK && before)) &&
                needs[i].before == before && needs[i].release == order)
                add(e, "%d", first + i);
}

static void add_needs(struct events *e, const struct plim_attention_need *needs, int count,
                      const char *letters)
{
    int first = e->allocations;
    for (int i = 0; i < count; i++) {
        add_releases(e, needs, count, i, first);
        add_allocation(e, letters[needs[i].role], needs[i].bytes);
    }
    add_releases(e, needs, count, count, first);
}

/* The roles in the order of enum plim_attention_role. */
static const char LETTERS[] = "OLRMQKVBT", LETTERS_OF_PADDED[] = "OLRMTTTTT", LETTERS_UNSAVED[] = "OLRTQKVBT";

static int64_t bytes_of(const struct plim_attention_shape *s, int64_t heads, int64_t length,
                        int64_t head_size)
{
    return s->batch * heads * length * head_size * plim_dtype_size(s->dtype);
}

static struct plim_attention_shape padded(const struct plim_attention_shape *s,
                                          enum plim_sdpa kernel)
{
    struct plim_attention_shape p = *s;
    p.head_size = plim_sdpa_head_size(kernel, s->head_size);
    p.contiguous_heads = false;
    p.grad_heads_first = true;
    return p;
}

static struct events forward_events(const struct measured *m, enum plim_sdpa kernel)
{
    struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS];
    struct plim_attention_shape s = m->shape;
    struct events e = {0};
    bool pads = plim_sdpa_head_size(kernel, s.head_size) != s.head_size;
    if (pads) {
        s = padded(&m->shape, kernel);
        char role = s.training ? 'P' : 'T';
        add_allocation(&e, role, bytes_of(&s, s.heads, s.q_length, s.head_size));
        add_allocation(&e, role, bytes_of(&s, s.kv_heads, s.k_length, s.head_size));
        add_allocation(&e, role, bytes_of(&s, s.kv_heads, s.k_length, s.head_size));
    }
    add_needs(&e, needs, plim_attention_forward_needs(&m->info, kernel, &s, needs),
              s.training ? LETTERS : LETTERS_UNSAVED);
    for (int i = 2; pads && !s.training && i >= 0; i--) add(&e, "%d", i);
    return e;
}

/* Backward of the padded call: of the slice (zeros), of the kernel, of the pads of v, k and q. */
static struct events padded_backward_events(const struct measured *m, enum plim_sdpa kernel)
{
    struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS];
    struct plim_attention_shape s = padded(&m->shape, kernel);
    struct events e = {0};
    int zeros = add_allocation(&e, 'T', bytes_of(&s, s.heads, s.q_length, s.head_size));
    int count = plim_attention_backward_needs(&m->info, kernel, &s, needs), gradient[3] = {0};
    for (int i = 0; i < count; i++)
        if (needs[i].role >= PLIM_NEED_DQ && needs[i].role <= PLIM_NEED_DV)
            gradient[needs[i].role - PLIM_NEED_DQ] = e.allocations + i;
    add_needs(&e, needs, count, LETTERS_OF_PADDED);
    add(&e, "%d", zeros);
    for (int i = 2; i >= 0; i--) {
        bool is_q = i == 0;
        add_allocation(&e, "QKV"[i],
                       bytes_of(&s, is_q ? s.heads : s.kv_heads, is_q ? s.q_length : s.k_length,
                                m->shape.head_size));
        add(&e, "%d", gradient[i]);
    }
    return e;
}

static struct events backward_events(const struct measured *m, enum plim_sdpa kernel)
{
    struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS];
    if (plim_sdpa_head_size(kernel, m->shape.head_size) != m->shape.head_size)
        return padded_backward_events(m, kernel);
    struct events e = {0};
    add_needs(&e, needs, plim_attention_backward_needs(&m->info, kernel, &m->shape, needs),
              LETTERS);
    return e;
}

/* --- comparing ----------------------------------------------------------------------------- */

static const char *const kernel_names[] = {"flash", "efficient", "cudnn", "math"};

static void describe(const struct measured *m, char text[256])
{
    const struct plim_attention_shape *s = &m->shape;
    snprintf(text, 256,
             "cc %d %s b %" PRId64 " h %" PRId64 "/%" PRId64 " s %" PRId64 "/%" PRId64 " d %" PRId64
             " mask %" PRId64 ",%" PRId64 " causal %d dropout %d training %d heads inside %d %s %s",
             m->info.compute_capability, plim_dtype_name(s->dtype), s->batch, s->heads, s->kv_heads,
             s->q_length, s->k_length, s->head_size, s->mask_batch, s->mask_heads, s->causal,
             s->dropout, s->training, s->contiguous_heads, m->kernel,
             s->torch_2_15 ? "2.15" : "2.11");
}

static void expect_events(const struct measured *m, const char *got, const char *want)
{
    char call[256];
    describe(m, call);
    cr_expect(eq(str, (char *)got, (char *)want), "%s", call);
}

static void expect_same_kernel(const struct measured *m)
{
    char call[256];
    describe(m, call);
    cr_expect(
        eq(str, (char *)kernel_names[plim_sdpa_select(&m->info, &m->shape)], (char *)m->kernel),
        "%s", call);
}

static bool measured_kernel(const struct measured *m, enum plim_sdpa *kernel)
{
    for (int i = 0; i < PLIM_SDPA_MATH; i++)
        if (strcmp(kernel_names[i], m->kernel) == 0) return *kernel = (enum plim_sdpa)i, true;
    return false;
}

static void expect_same_forward(const struct measured *m)
{
    enum plim_sdpa kernel;
    if (!measured_kernel(m, &kernel)) return;
    expect_events(m, forward_events(m, kernel).text, m->forward);
}

/* Measured events less the releases of what forward had saved (those are the engine's). */
static void drop_saved(const char *from, char *to)
{
    while (*from) {
        size_t length = strcspn(from, ",");
        if (*from != '!') {
            memcpy(to, from, length);
            to += length;
            *to++ = ',';
        }
        from += length + (from[length] == ',');
    }
    to[-1] = '\0';
}

static void expect_same_backward(const struct measured *m)
{
    enum plim_sdpa kernel;
    char want[EVENTS_SIZE + 1];
    if (!m->shape.training || !measured_kernel(m, &kernel)) return;
    drop_saved(m->backward, want);
    expect_events(m, backward_events(m, kernel).text, want);
}

/* What is released at the end of backward is what forward said is saved, no more, no less. */
static void expect_same_saved(const struct measured *m)
{
    enum plim_sdpa kernel;
    char saved[16] = "", released[16] = "", call[256];
    size_t n = 0, r = 0;
    if (!m->shape.training || !measured_kernel(m, &kernel)) return;
    struct events e = forward_events(m, kernel);
    for (const char *c = "MPLR"; *c; c++) {
        for (const char *p = e.text; *p; p++)
            if (*p == *c) saved[n++] = *c;
        for (const char *p = m->backward; *p; p++)
            if (*p == '!' && p[1] == *c) released[r++] = *c;
    }
    describe(m, call);
    cr_expect(eq(str, saved, released), "%s", call);
}

#define FOR_EACH_MEASUREMENT(name, expectation)                                                    \
    ParameterizedTestParameters(needs_attention, name)                                             \
    {                                                                                              \
        return cr_make_param_array(struct measurement, measurements, MEASUREMENT_COUNT);           \
    }                                                                                              \
    ParameterizedTest(struct measurement *of, needs_attention, name)                               \
    {                                                                                              \
        cr_assert(ge(int, for_each_call(of, expectation), 200));                                   \
    }

FOR_EACH_MEASUREMENT(takes_the_kernel_that_pytorch_takes, expect_same_kernel)
FOR_EACH_MEASUREMENT(forward_asks_for_the_same_blocks_in_the_same_order, expect_same_forward)
FOR_EACH_MEASUREMENT(backward_asks_for_the_same_blocks_in_the_same_order, expect_same_backward)
FOR_EACH_MEASUREMENT(saves_what_backward_releases, expect_same_saved)
