/* Temporaries and workspaces against PyTorch: data/needs.txt is what PyTorch 2.11 asked its allocator
 * for on the virtual GPU, call by call, data/needs_2_15.txt what of it 2.15 asks for otherwise;
 * data/make_needs.py measured both and explains the format. */
#include "devices/needs/needs.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#ifndef PLIM_UNIT_DATA_FOLDER /* given by the build */
#define PLIM_UNIT_DATA_FOLDER "tests/unit/data"
#endif

enum { EVENTS_SIZE = 8192, LINE_SIZE = EVENTS_SIZE + 512 };

/* --- event streams, written as the data file has them ----------------------------------------- */

struct events {
    char text[EVENTS_SIZE];
    size_t length;
    int allocations;
};

static void add_text(struct events *e, char sign, int64_t n)
{
    int written = snprintf(e->text + e->length, sizeof e->text - e->length, "%s%c%" PRId64,
                           e->length ? "," : "", sign, n);
    cr_assert(lt(sz, e->length + (size_t)written, sizeof e->text));
    e->length += (size_t)written;
}

static int allocate(struct events *e, int64_t bytes)
{
    add_text(e, '+', bytes);
    return e->allocations++;
}

static void release(struct events *e, int allocation)
{
    add_text(e, '-', allocation);
}

/* --- measured calls --------------------------------------------------------------------------- */

struct measured {
    bool torch_2_15;
    const char *line;
    struct plim_device_info info;
    const char *fields; /* the fields after the GPU */
};

static void for_each_call_of(bool torch_2_15, const char *kind, int at_least,
                             void (*each)(const struct measured *))
{
    const char *path =
        torch_2_15 ? PLIM_UNIT_DATA_FOLDER "/needs_2_15.txt" : PLIM_UNIT_DATA_FOLDER "/needs.txt";
    FILE *f = fopen(path, "r");
    cr_assert(ne(ptr, f, NULL), "%s does not open", path);
    static char line[LINE_SIZE];
    int count = 0;
    while (fgets(line, sizeof line, f)) {
        struct measured m = {.torch_2_15 = torch_2_15, .line = line};
        char name[32];
        int end = 0;
        int n = sscanf(line, "%31s %d %d %d %n", name, &m.info.compute_capability,
                       &m.info.multiprocessors, &m.info.threads_per_multiprocessor, &end);
        cr_assert(eq(int, n, 4), "%s", line);
        if (strcmp(name, kind) != 0) continue;
        m.fields = line + end;
        each(&m);
        count++;
    }
    fclose(f);
    cr_assert(ge(int, count, at_least));
}

/* Calls `each` for every measured call of this kind; there must be `at_least` so many. */
static void for_each_call(const char *kind, int at_least, void (*each)(const struct measured *))
{
    for_each_call_of(false, kind, at_least, each);
}

static enum plim_dtype dtype_named(const char *name)
{
    for (int t = 0; t < PLIM_DTYPE_COUNT; t++)
        if (strcmp(plim_dtype_name((enum plim_dtype)t), name) == 0) return (enum plim_dtype)t;
    cr_fatal("no such dtype: %s", name);
    return PLIM_F32;
}

static int read_list(const char *text, int64_t values[PLIM_MAX_DIMS])
{
    int n = 0, width = 0;
    while (n < PLIM_MAX_DIMS && sscanf(text, "%" SCNd64 "%n", &values[n], &width) == 1) {
        n++;
        text += width;
        if (*text++ != ',') break;
    }
    return n;
}

/* --- reductions ------------------------------------------------------------------------------- */

static enum plim_binary fold_named(const char *name)
{
    static const struct { const char *name; enum plim_binary fold; } folds[] = {
        {"add", PLIM_BINARY_ADD}, {"mean", PLIM_BINARY_ADD}, {"norm", PLIM_BINARY_ADD},
        {"max", PLIM_BINARY_MAX}, {"min", PLIM_BINARY_MIN},
        {"and", PLIM_BINARY_AND}, {"or", PLIM_BINARY_OR}};
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (strcmp(folds[i].name, name) == 0) return folds[i].fold;
    cr_fatal("no such fold: %s", name);
    return PLIM_BINARY_ADD;
}

static void expect_reduction(const struct measured *m, int64_t out_bytes, int launches,
                             const struct plim_reduce_scratch *scratch, const char *wanted)
{
    static struct events e;
    e = (struct events){.length = 0};
    allocate(&e, out_bytes);
    int64_t carried_bytes = launches ? scratch[0].accumulation_bytes : 0;
    int accumulation = carried_bytes ? allocate(&e, carried_bytes) : -1;
    for (int i = 0; i < launches; i++) {
        if (!scratch[i].partials_bytes) continue;
        int partials = allocate(&e, scratch[i].partials_bytes);
        release(&e, allocate(&e, scratch[i].semaphores_bytes));
        release(&e, partials);
    }
    if (accumulation >= 0) release(&e, accumulation);
    cr_expect(eq(str, e.text, (char *)wanted), "%s", m->line);
}

static void reduction_asks_alike(const struct measured *m)
{
    char dtype[8], result[8], fold[8], shape[128], stride[128];
    static char wanted[EVENTS_SIZE];
    unsigned dims;
    int64_t offset;
    int n = sscanf(m->fields, "%7s %7s %7s %u %" SCNd64 " %127s %127s %8191s", dtype, result, fold,
                   &dims, &offset, shape, stride, wanted);
    cr_assert(eq(int, n, 8), "%s", m->line);
    struct plim_array in = {.dtype = (uint8_t)dtype_named(dtype)};
    in.ndim = (uint8_t)read_list(shape, in.shape);
    read_list(stride, in.stride);
    in.data = (uint64_t)(4096 + offset * plim_dtype_size((enum plim_dtype)in.dtype));
    int64_t out_bytes = plim_dtype_size(dtype_named(result));
    for (int i = 0; i < in.ndim; i++) out_bytes *= dims >> i & 1 ? 1 : in.shape[i];

    struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES];
    int launches = plim_reduce_needs(&m->info, &in, dims, fold_named(fold), dtype_named(result),
                                     scratch);
    cr_assert(lt(int, 0, launches));
    expect_reduction(m, out_bytes, launches, scratch, wanted);
}

Test(needs, reductions_ask_for_what_pytorch_asks_for)
{
    for_each_call("reduce", 400, reduction_asks_alike);
}

static void argmax_asks_alike(const struct measured *m)
{
    char dtype[8], shape[128];
    static char wanted[EVENTS_SIZE];
    int n = sscanf(m->fields, "%7s %127s %8191s", dtype, shape, wanted);
    cr_assert(eq(int, n, 3), "%s", m->line);
    struct plim_array in = {.data = 4096, .dtype = (uint8_t)dtype_named(dtype)};
    in.ndim = (uint8_t)read_list(shape, in.shape);
    int64_t elements = 1;
    for (int i = in.ndim; i-- > 0; elements *= in.shape[i]) in.stride[i] = elements;
    struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES];
    int launches = plim_argmax_needs(&m->info, &in, scratch);
    expect_reduction(m, elements / in.shape[in.ndim - 1] * plim_dtype_size(PLIM_I64), launches, scratch, wanted);
}

Test(needs, argmax_asks_for_what_pytorch_asks_for)
{
    for_each_call("argmax", 2000, argmax_asks_alike);
}

/* --- embedding -------------------------------------------------------------------------------- */

static void embedding_asks_alike(const struct measured *m)
{
    char dtype[8];
    static char wanted[EVENTS_SIZE];
    int64_t tokens, rows, width;
    int padding;
    int n = sscanf(m->fields, "%7s %" SCNd64 " %" SCNd64 " %" SCNd64 " %d %8191s", dtype, &tokens,
                   &rows, &width, &padding, wanted);
    cr_assert(eq(int, n, 6), "%s", m->line);
    struct plim_need needs[PLIM_EMBEDDING_MAX_NEEDS];
    int count = plim_embedding_backward_needs(&m->info, dtype_named(dtype), tokens, rows, width,
                                              m->torch_2_15, needs);
    static struct events e;
    e = (struct events){.length = 0};
    for (int i = 0; i <= count; i++) {
        for (int j = i - 1; j >= 0; j--)
            if (!needs[j].is_result && needs[j].before == i) release(&e, j);
        if (i < count) allocate(&e, needs[i].bytes);
    }
    cr_expect(eq(str, e.text, wanted), "%s", m->line);
}

Test(needs, embedding_backward_asks_for_what_pytorch_asks_for)
{
    for_each_call("embedding", 400, embedding_asks_alike);
    for_each_call_of(true, "embedding", 600, embedding_asks_alike);
}

/* --- layer norm ------------------------------------------------------------------------------- */

/* The sum over the partial rows, into a new array. */
static void add_sum(struct events *e, const struct plim_device_info *info, enum plim_dtype dtype,
                    int64_t rows, int64_t width)
{
    struct plim_array in = {.data = 4096, .shape = {rows, width}, .stride = {width, 1}, .ndim = 2,
                            .dtype = (uint8_t)dtype};
    struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES];
    int launches = plim_reduce_needs(info, &in, 1, PLIM_BINARY_ADD, dtype, scratch);
    cr_assert(eq(int, launches, 1));
    allocate(e, width * plim_dtype_size(dtype));
    if (!scratch[0].partials_bytes) return;
    int partials = allocate(e, scratch[0].partials_bytes);
    release(e, allocate(e, scratch[0].semaphores_bytes));
    release(e, partials);
}

static void layer_norm_asks_alike(const struct measured *m)
{
    char name[8];
    static char wanted[EVENTS_SIZE];
    int64_t rows, width;
    int bias;
    int n = sscanf(m->fields, "%7s %" SCNd64 " %" SCNd64 " %d %8191s", name, &rows, &width, &bias,
                   wanted);
    cr_assert(eq(int, n, 5), "%s", m->line);
    enum plim_dtype dtype = dtype_named(name);
    int64_t row_bytes = width * plim_dtype_size(dtype);
    int64_t partial_rows = plim_layer_norm_partial_rows(&m->info, rows, width);
    int parameters = bias ? 2 : 1, grad[2], partial[2];
    static struct events e;
    e = (struct events){.length = 0};
    allocate(&e, rows * row_bytes);
    for (int i = 0; i < parameters; i++) grad[i] = allocate(&e, row_bytes);
    if (!partial_rows) parameters = 0;
    for (int i = 0; i < parameters; i++) partial[i] = allocate(&e, partial_rows * row_bytes);
    for (int i = 0; i < parameters; i++) {
        add_sum(&e, &m->info, dtype, partial_rows, width);
        release(&e, grad[i]);
    }
    for (int i = parameters - 1; i >= 0; i--) release(&e, partial[i]);
    cr_expect(eq(str, e.text, wanted), "%s", m->line);
}

Test(needs, layer_norm_backward_asks_for_what_pytorch_asks_for)
{
    for_each_call("layer_norm", 400, layer_norm_asks_alike);
}

/* --- cumulative sums -------------------------------------------------------------------------- */

static void cumsum_asks_alike(const struct measured *m)
{
    char name[8];
    static char wanted[EVENTS_SIZE];
    int64_t rows, length;
    int n = sscanf(m->fields, "%7s %" SCNd64 " %" SCNd64 " %8191s", name, &rows, &length, wanted);
    cr_assert(eq(int, n, 4), "%s", m->line);
    enum plim_dtype dtype = dtype_named(name);
    int64_t temporary_bytes = plim_cumsum_temporary_bytes(dtype, rows, length);
    static struct events e;
    e = (struct events){.length = 0};
    allocate(&e, rows * length * plim_dtype_size(dtype));
    if (temporary_bytes) release(&e, allocate(&e, temporary_bytes));
    cr_expect(eq(str, e.text, wanted), "%s", m->line);
}

Test(needs, cumsum_asks_for_what_pytorch_asks_for)
{
    for_each_call("cumsum", 100, cumsum_asks_alike);
}

/* What PyTorch 2.11 and 2.15 allocated on the virtual GPU, for masks that hide the last item, or all of many. */
Test(needs, nonzero_asks_for_what_pytorch_asks_for)
{
    static const struct {
        int cc, multiprocessors, threads;
        int64_t items, sum_bytes, selection_bytes;
    } rows[] = {
        {80, 108, 2048, 4096, 1, 1023},        {80, 108, 2048, 4097, 17663, 1023},
        {80, 108, 2048, 100000, 17663, 1279},  {80, 108, 2048, 1 << 28, 17663, 932863},
        {90, 132, 2048, 131072, 21503, 1023},  {90, 132, 2048, 1 << 28, 21503, 509183},
        {86, 82, 1536, 1 << 28, 10239, 3356415},  {89, 142, 1536, 1 << 28, 17407, 3356415},
        {100, 148, 2048, 1 << 28, 24063, 611071}, {120, 170, 1536, 1 << 28, 20735, 611071},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plim_need needs[PLIM_NONZERO_NEEDS];
        struct plim_device_info info = {.compute_capability = rows[i].cc,
                                        .multiprocessors = rows[i].multiprocessors,
                                        .threads_per_multiprocessor = rows[i].threads};
        plim_nonzero_needs(&info, rows[i].items, rows[i].items - 1, 1, needs);
        cr_expect(eq(i64, needs[0].bytes, 4));
        cr_expect(eq(i64, needs[1].bytes, rows[i].sum_bytes), "row %zu", i);
        cr_expect(eq(i64, needs[2].bytes, 8 * (rows[i].items - 1)));
        cr_expect(eq(i64, needs[3].bytes, rows[i].selection_bytes), "row %zu", i);
    }
}

/* --- cuBLAS ----------------------------------------------------------------------------------- */

/* A library's workspace for one call. */
static void borrow(struct events *e, int64_t bytes)
{
    release(e, allocate(e, bytes));
}

static void matmuls_ask_alike(const struct measured *m)
{
    char dtype[8];
    static char wanted[EVENTS_SIZE];
    cr_assert(eq(int, sscanf(m->fields, "%7s %8191s", dtype, wanted), 2), "%s", m->line);
    int64_t result_bytes = 64 * 64 * plim_dtype_size(dtype_named(dtype));
    int64_t bytes = plim_cublas_workspace_bytes(&m->info, m->torch_2_15);
    int64_t lt_bytes = plim_cublaslt_workspace_bytes(&m->info);
    static struct events e;
    e = (struct events){.length = 0};
    allocate(&e, result_bytes);
    if (m->torch_2_15) {
        borrow(&e, lt_bytes);
        allocate(&e, result_bytes);
        borrow(&e, bytes);
        allocate(&e, result_bytes);
        borrow(&e, lt_bytes);
    } else {
        allocate(&e, bytes);
        allocate(&e, lt_bytes);
        for (int i = 0; i < 2; i++) allocate(&e, result_bytes);
    }
    cr_expect(eq(str, e.text, wanted), "%s", m->line);
}

Test(needs, first_matmuls_take_the_workspaces)
{
    for_each_call("cublas", 24, matmuls_ask_alike);
    for_each_call_of(true, "cublas", 21, matmuls_ask_alike);
}

/* Two lists of addresses but of few large matrices (triangular_solve_kernel). */
Test(needs, triangular_systems_ask_for_lists_of_addresses)
{
    static const struct {
        int64_t matrices, n, bytes;
    } rows[] = {{16, 64, 128}, {9, 64, 72}, {8, 64, 0}, {8, 63, 64}, {1, 1, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct plim_array a = {.ndim = 3, .shape = {rows[i].matrices, rows[i].n, rows[i].n}};
        cr_expect(eq(i64, plim_triangular_list_bytes(&a), rows[i].bytes), "%zu", i);
    }
}

/* What cuDNN 9.19 said for the two convolutions of whisper-small and 4 sounds: half types turn all three operands
 * round, TF32's kernels write a forward's result as it lies. */
Test(needs, convolutions_along_rows_ask_for_turned_copies)
{
    static const struct {
        int cc;
        enum plim_dtype dtype;
        bool is_forward;
        int64_t channels, results, bytes;
    } rows[] = {{80, PLIM_BF16, true, 80, 3000, 20720656},  {80, PLIM_BF16, true, 768, 1500, 31186960},
                {80, PLIM_F16, false, 768, 1500, 31186960}, {75, PLIM_F16, true, 80, 3000, 20720656},
                {80, PLIM_F32, true, 768, 1500, 43941904},  {80, PLIM_F32, false, 768, 1500, 62373904},
                {75, PLIM_F32, true, 80, 3000, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct plim_device_info info = {.compute_capability = rows[i].cc};
        struct plim_array x = {.dtype = rows[i].dtype, .ndim = 3, .shape = {4, rows[i].channels, 3000}},
                          weight = {.dtype = rows[i].dtype, .ndim = 3, .shape = {768, rows[i].channels, 3}},
                          y = {.dtype = rows[i].dtype, .ndim = 3, .shape = {4, 768, rows[i].results}};
        int64_t bytes = plim_conv1d_workspace_bytes(&info, rows[i].is_forward, &x, &weight, &y);
        cr_expect(eq(i64, bytes, rows[i].bytes), "%zu", i);
    }
}
