/* The small tensors that vision towers compute from the grids of images (transformers' vision_utils.py). They are
 * allocated as in Python; the values of those that are used are computed on the host and written to the device, unless
 * it is simulated. */
#include "devices/needs/needs.h"
#include "model.h"
#include "workloads/spec/spec_vision.h"
#include <math.h>
#include <stdlib.h>

/* The images of a batch: their number, the rows and columns of patches of each, the number of patches of all, the merge
 * size, and the side of the square of learned positions. */
struct grid {
    int64_t images, rows, columns, patches, merge, side;
    int64_t window; /* rows and columns of a window, after merging; 0: no windows */
};

static struct grid grid_of(const struct decoder *m)
{
    const struct plim_train_setting *s = m->setting;
    const struct plim_vision *v = &m->config->vision;
    int64_t images = s->micro_batch * s->images.count;
    return (struct grid){.images = images,
                         .rows = s->images.height / v->patch_size,
                         .columns = s->images.width / v->patch_size,
                         .patches = images * plim_image_patches(v, &s->images),
                         .merge = v->merge_size,
                         .side = (int64_t)sqrt((double)v->positions),
                         .window = v->window_size / v->merge_size / v->patch_size};
}

/* Allocates a result of index arithmetic, and launches one kernel that writes `count` numbers; named. */
static struct tensor *numbers(struct engine *e, enum plim_dtype dtype, int64_t count)
{
    return tensor_keep(op_full(e, dtype, 1, &count, 0));
}

static struct tensor *integers(struct engine *e, int64_t count)
{
    return numbers(e, PLIM_I64, count);
}

/* The same for an expression of two operations, the first of which has a temporary result. */
static struct tensor *of_two(struct engine *e, int64_t count)
{
    struct tensor *first = integers(e, count), *y = integers(e, count);
    tensor_drop(e, first);
    return y;
}

static void scan(struct engine *e, enum plim_dtype dtype, int64_t count)
{
    int64_t bytes = plim_cumsum_temporary_bytes(dtype, 1, count);
    struct tensor *scratch = bytes && !e->halted ? tensor_keep(tensor_empty_bytes(e, bytes)) : NULL;
    tensor_drop(e, scratch);
}

/* repeat_interleave(x, repeats) of `count` numbers to `total` (repeat_interleave_common() in native/Repeat.h);
 * is_strided: the repeats are a column of a matrix. */
static struct tensor *repeated(struct engine *e, int64_t count, int64_t total, bool is_strided)
{
    struct tensor *column = is_strided ? integers(e, count) : NULL, *sums = integers(e, count);
    struct tensor *copy = is_strided ? integers(e, count) : NULL;
    scan(e, PLIM_I64, count);
    tensor_drop(e, copy);
    struct tensor *right = numbers(e, PLIM_BOOL, count), *all = numbers(e, PLIM_BOOL, 1);
    if (!e->halted) engine_item(e, all);
    tensor_drop_all(e, all, right);
    struct tensor *index = integers(e, total);
    tensor_drop_all(e, sums, column);
    struct tensor *y = integers(e, total);
    tensor_drop(e, index);
    return y;
}

/* _interpolation_axis_taps_weights(), bilinear with aligned corners: *taps (n, 2) int64, *weights (n, 2) fp32 */
static void axis(struct engine *e, int64_t n, struct tensor **taps, struct tensor **weights)
{
    struct tensor *index = numbers(e, PLIM_F32, n), *scaled = numbers(e, PLIM_F32, n), *size = of_two(e, n);
    struct tensor *source = numbers(e, PLIM_F32, n);
    tensor_drop_all(e, scaled, size);
    struct tensor *floor = numbers(e, PLIM_F32, n), *offsets = integers(e, 2), *whole = integers(e, n);
    struct tensor *raw = integers(e, 2 * n);
    tensor_drop(e, whole);
    *taps = integers(e, 2 * n);
    struct tensor *off = numbers(e, PLIM_F32, n), *off_taps = numbers(e, PLIM_F32, 2 * n);
    tensor_drop(e, off);
    struct tensor *distance = numbers(e, PLIM_F32, 2 * n);
    tensor_drop(e, off_taps);
    struct tensor *rest = numbers(e, PLIM_F32, 2 * n);
    *weights = numbers(e, PLIM_F32, 2 * n);
    tensor_drop_all(e, rest, index, source, floor, offsets, raw, distance);
}

/* get_vision_interpolation_indices_and_weights() */
static void make_taps(struct engine *e, const struct grid *g, struct vision_index *index)
{
    enum { LOCALS = 12 };
    int64_t n = g->patches, count = 0;
    struct tensor *held[LOCALS], *h[2], *w[2];
    held[count++] = of_two(e, g->images);                           /* counts */
    held[count++] = repeated(e, g->images, n, false);               /* heights */
    held[count++] = repeated(e, g->images, n, false);               /* widths */
    struct tensor *sums = integers(e, g->images);
    scan(e, PLIM_I64, g->images);
    struct tensor *padded = integers(e, g->images);
    tensor_drop(e, sums);
    held[count++] = repeated(e, g->images, n, false);               /* starts */
    tensor_drop(e, padded);
    struct tensor *total = integers(e, 1);
    if (!e->halted) engine_item(e, total);
    struct tensor *all = integers(e, n);
    tensor_drop(e, total);
    struct tensor *beside = integers(e, n);
    tensor_drop(e, all);
    struct tensor *area = integers(e, n);
    held[count++] = integers(e, n);                                 /* within */
    tensor_drop_all(e, beside, area);
    held[count++] = integers(e, n);                                 /* blocks_w */
    held[count++] = integers(e, n);                                 /* in_col */
    while (count < LOCALS) held[count++] = of_two(e, n);            /* in_row, block_col, block_row, row, col */
    axis(e, n, &h[0], &h[1]);
    axis(e, n, &w[0], &w[1]);
    struct tensor *rows = integers(e, 2 * n);
    index->taps = tensor_keep(op_full(e, PLIM_I64, SHAPE(n, 4), 0));
    tensor_drop(e, rows);
    index->weights = tensor_keep(op_full(e, PLIM_F32, SHAPE(n, 4), 0));
    for (int64_t i = 0; i < count; i++) tensor_drop(e, held[i]);
    tensor_drop_all(e, h[0], h[1], w[0], w[1]);
}

/* get_vision_position_ids() */
static void make_position_ids(struct engine *e, const struct grid *g, struct vision_index *index)
{
    int64_t patches = g->patches / g->images;
    struct tensor **list = calloc((size_t)g->images, sizeof(struct tensor *));
    if (!list) {
        engine_fail(e, PLIM_NOMEM);
        return;
    }
    struct tensor *merge = integers(e, 1), *sizes = integers(e, g->images), *row = NULL, *column = NULL;
    tensor_drop(e, sizes);
    for (int64_t i = 0; i < g->images; i++) {
        struct tensor *rows = integers(e, g->rows), *columns = integers(e, g->columns);
        tensor_drop_all(e, row, column);
        row = integers(e, patches);
        tensor_drop(e, rows);
        column = integers(e, patches);
        tensor_drop(e, columns);
        list[i] = of_two(e, 2 * patches);
    }
    index->position_ids = tensor_keep(op_full(e, PLIM_I64, SHAPE(g->patches, 2), 0));
    tensor_drop(e, merge);
    for (int64_t i = g->images; i-- > 0;) tensor_drop(e, list[i]);
    tensor_drop_all(e, row, column);
    free(list);
}

/* get_vision_cu_seqlens() */
static void make_ends(struct engine *e, const struct grid *g, struct vision_index *index)
{
    struct tensor *areas = integers(e, g->images), *lengths = repeated(e, g->images, g->images, true);
    tensor_drop(e, areas);
    struct tensor *sums = numbers(e, PLIM_I32, g->images), *cast = numbers(e, PLIM_I32, g->images);
    scan(e, PLIM_I32, g->images);
    tensor_drop(e, cast);
    index->ends = numbers(e, PLIM_I32, g->images + 1);
    tensor_drop_all(e, sums, lengths);
}

/* get_max_seqlen(), which is only needed for flash-attention-2. */
static void read_longest(struct engine *e, const struct grid *g, const struct vision_index *index)
{
    if (e->halted) return;
    struct tensor *behind = op_slice(e, index->ends, 0, 1, g->images);
    struct tensor *lengths = tensor_keep(op_sub(e, behind, op_slice(e, index->ends, 0, 0, g->images)));
    struct tensor *longest = tensor_keep(op_reduce(e, lengths, 1, false, PLIM_BINARY_MAX, 1, PLIM_I32));
    tensor_drop(e, lengths);
    if (!e->halted) engine_item(e, longest);
    tensor_drop(e, longest);
}

int64_t vision_windows(const struct decoder *m, int64_t *lengths, int64_t *order)
{
    const struct grid g = grid_of(m);
    int64_t rows = g.rows / g.merge, columns = g.columns / g.merge, count = 0, tokens = 0;
    for (int64_t window = 0; window < g.images * rows * columns; window++) {
        int64_t image = window / (rows * columns), top = window / columns % rows, left = window % columns;
        if (top % g.window || left % g.window) continue; /* no window starts here */
        int64_t high = rows - top < g.window ? rows - top : g.window;
        int64_t wide = columns - left < g.window ? columns - left : g.window;
        if (lengths) lengths[count] = high * wide * g.merge * g.merge;
        for (int64_t i = 0; i < high * wide && order; i++)
            order[tokens++] = (image * rows + top + i / wide) * columns + left + i % wide;
        count++;
    }
    return count;
}

/* get_vision_window_index(), whose order of patches stays on the host. Grids are padded to whole windows, or by another
 * window if they have only whole ones; windows without patches end where the previous ones do, and
 * torch.unique_consecutive() removes them. Its temporary memory has this size for up to 57,000 windows. */
static void make_windows(struct engine *e, const struct decoder *m, const struct grid *g, struct vision_index *index)
{
    enum { UNIQUE_BYTES = 1023 };
    int64_t high = g->rows / g->merge / g->window + 1, wide = g->columns / g->merge / g->window + 1;
    int64_t all = g->images * high * wide + 1;
    struct tensor *padded = numbers(e, PLIM_I32, all), *ends = numbers(e, PLIM_I32, all), *found = integers(e, 1);
    struct tensor *scratch = e->halted ? NULL : tensor_keep(tensor_empty_bytes(e, UNIQUE_BYTES));
    if (!e->halted) engine_item(e, found);
    tensor_drop_all(e, scratch, found, padded);
    index->window_ends = tensor_hold(op_slice(e, ends, 0, 0, vision_windows(m, NULL, NULL) + 1));
    tensor_drop(e, ends);
}

/* Stores the row and column of a patch in its image: patches that are merged to one row of the text are consecutive. */
static void position_of(const struct grid *g, int64_t patch, int64_t *row, int64_t *column)
{
    int64_t square = g->merge * g->merge, block = patch / square, blocks = g->columns / g->merge;
    *row = block / blocks * g->merge + patch % square / g->merge;
    *column = block % blocks * g->merge + patch % g->merge;
}

/* Interpolates the side of the square of learned positions to `size` patches: stores the indices of the two positions
 * around patch `at`, and their weights. */
static void tap(const struct grid *g, int64_t at, int64_t size, int64_t taps[2], float shares[2])
{
    double source = (double)at * (double)(g->side - 1) / (double)(size > 1 ? size - 1 : 1), whole = floor(source);
    taps[0] = (int64_t)whole;
    taps[1] = taps[0] + 1 < g->side ? taps[0] + 1 : g->side - 1;
    shares[1] = (float)(source - whole);
    shares[0] = 1 - shares[1];
}

/* Computes the values of the index's tensors, except those of windows, and writes them; only for GPUs that are not
 * simulated. */
static void write_values(struct engine *e, const struct grid *g, const struct vision_index *index)
{
    size_t n = (size_t)g->patches;
    size_t count = (size_t)g->images + 1;
    int64_t *taps = malloc(n * 4 * sizeof *taps), *position_ids = malloc(n * 2 * sizeof *position_ids);
    float *weights = malloc(n * 4 * sizeof *weights);
    int32_t *ends = malloc(count * sizeof *ends);
    if (!taps || !position_ids || !weights || !ends) engine_fail(e, PLIM_NOMEM);
    for (size_t i = 0; i < count && !e->halted; i++) ends[i] = (int32_t)((int64_t)i * (g->patches / g->images));
    for (size_t i = 0; i < n && !e->halted; i++) {
        int64_t t[2][2], *at = position_ids + 2 * i;
        float s[2][2];
        position_of(g, (int64_t)i % (g->patches / g->images), &at[0], &at[1]);
        if (!g->side) continue;
        tap(g, at[0], g->rows, t[0], s[0]);
        tap(g, at[1], g->columns, t[1], s[1]);
        for (int k = 0; k < 4; k++) {
            taps[4 * i + (size_t)k] = t[0][k / 2] * g->side + t[1][k % 2];
            weights[4 * i + (size_t)k] = s[0][k / 2] * s[1][k % 2];
        }
    }
    if (!e->halted) {
        if (g->side) engine_write(e, index->taps, taps, n * 4 * sizeof *taps);
        if (g->side) engine_write(e, index->weights, weights, n * 4 * sizeof *weights);
        engine_write(e, index->position_ids, position_ids, n * 2 * sizeof *position_ids);
        engine_write(e, index->ends, ends, count * sizeof *ends);
    }
    free(ends);
    free(taps);
    free(position_ids);
    free(weights);
}

void vision_index_make(struct engine *e, const struct decoder *m, struct vision_index *index)
{
    const struct grid g = grid_of(m);
    *index = (struct vision_index){0};
    if (g.side) make_taps(e, &g, index);
    make_position_ids(e, &g, index);
    make_ends(e, &g, index);
    if (m->setting->attention == PLIM_ATTENTION_FLASH2) read_longest(e, &g, index);
    if (g.window) make_windows(e, m, &g, index);
    if (!e->halted && !e->device->info.simulated) write_values(e, &g, index);
}

void vision_index_drop(struct engine *e, struct vision_index *index)
{
    tensor_drop_all(e, index->taps, index->weights, index->position_ids, index->ends, index->window_ends);
}

/* --- positions of text and images --------------------------------------------------------------- */

/* The variables of the loop over rows, with the names of get_rope_index(). */
struct row {
    struct tensor *ids, *types, *position, *vision, *all;
    struct tensor **list;
    int64_t count;
};

/* Returns the number of tokens of a row that its attention mask does not hide: all, except for the last one of the last
 * row, if rows are padded. */
static int64_t length_of(const struct decoder *m, int64_t row)
{
    const struct plim_train_setting *s = m->setting;
    return s->seq - (decoder_hides_padding(s) && row == s->micro_batch - 1);
}

/* Returns `values` (B, S) of the tokens of a row that its attention mask does not hide; named. */
static struct tensor *let_through(struct engine *e, const struct decoder *m, struct tensor *values, int64_t row)
{
    struct tensor *let = tensor_keep(op_to(e, op_select(e, m->attention_mask, 0, row), PLIM_BOOL));
    struct tensor *y = tensor_keep(op_rows_where(e, op_select(e, values, 0, row), let, length_of(m, row)));
    tensor_drop(e, let);
    return y;
}

static void drop_list(struct engine *e, struct row *r)
{
    while (r->count) tensor_drop(e, r->list[--r->count]);
}

/* x + current_pos, which is a Python number until the first image. */
static struct tensor *plus_position(struct engine *e, const struct row *r, struct tensor *x, double number)
{
    return r->position ? op_add(e, x, r->position) : op_add_scalar(e, x, number);
}

/* Appends the positions of a run of text that starts at `start`. */
static void add_text(struct engine *e, struct row *r, int64_t length, double start)
{
    struct tensor *position_ids = op_view(e, op_arange(e, PLIM_I64, length, 0, 1), SHAPE(1, length));
    r->list[r->count++] = tensor_keep(plus_position(e, r, op_expand(e, position_ids, SHAPE(3, -1)), start));
    if (r->position) op_binary_scalar_(e, PLIM_BINARY_ADD, r->position, (double)length);
}

/* get_vision_position_ids(): (3, rows * columns), named. */
static struct tensor *image_positions(struct engine *e, const struct row *r, int64_t rows, int64_t columns,
                                      double start)
{
    if (e->halted) return e->poison;
    struct tensor *time = tensor_keep(op_mul_scalar(e, op_arange(e, PLIM_I64, 1, 0, 1), 1));
    struct tensor *high = tensor_keep(plus_position(e, r, op_arange(e, PLIM_I64, rows, 0, 1), start));
    struct tensor *wide = tensor_keep(plus_position(e, r, op_arange(e, PLIM_I64, columns, 0, 1), start));
    struct tensor *parts[3] = {
        op_expand(e, op_view(e, time, SHAPE(1, 1, 1)), SHAPE(1, rows, columns)),
        op_expand(e, op_view(e, high, SHAPE(1, rows, 1)), SHAPE(1, rows, columns)),
        op_expand(e, op_view(e, wide, SHAPE(1, 1, columns)), SHAPE(1, rows, columns))};
    struct tensor *y = tensor_keep(op_view(e, op_cat(e, 3, parts, 0), SHAPE(3, rows * columns)));
    struct tensor *times = tensor_keep(op_select(e, y, 0, 0));
    if (r->position) op_binary_(e, PLIM_BINARY_ADD, times, r->position);
    else op_binary_scalar_(e, PLIM_BINARY_ADD, times, start);
    tensor_drop_all(e, times, time, high, wide);
    return y;
}

static void add_image(struct engine *e, const struct decoder *m, struct row *r, double start)
{
    const struct grid g = grid_of(m);
    int64_t rows = g.rows / g.merge, columns = g.columns / g.merge;
    struct tensor *positions = image_positions(e, r, rows, columns, start);
    tensor_drop(e, r->vision);
    r->vision = positions;
    r->list[r->count++] = tensor_ref(r->vision);
    struct tensor *is_wider = numbers(e, PLIM_BOOL, 1);
    if (!e->halted) engine_item(e, is_wider);
    tensor_drop(e, is_wider);
    struct tensor *longer = tensor_keep(op_full(e, PLIM_I64, 0, NULL, (double)(rows > columns ? rows : columns)));
    if (r->position) op_binary_(e, PLIM_BINARY_ADD, r->position, longer);
    else r->position = tensor_keep(op_add_scalar(e, longer, start));
    tensor_drop(e, longer);
}

/* position_ids[:, row, mask] = torch.cat(list); returns max + 1 - length, named. */
static struct tensor *join_row(struct engine *e, const struct decoder *m, struct row *r, struct tensor *positions,
                               int64_t row)
{
    tensor_set(e, &r->all, op_cat(e, (int)r->count, r->list, 1));
    struct tensor *let = tensor_keep(op_to(e, op_select(e, m->attention_mask, 0, row), PLIM_BOOL));
    struct tensor *indices = tensor_keep(op_nonzero(e, let, length_of(m, row)));
    struct tensor *part = tensor_keep(op_slice(e, op_select(e, positions, 1, row), 1, 0, length_of(m, row)));
    op_copy_(e, part, r->all);
    tensor_drop_all(e, part, indices, let);
    struct tensor *most = op_reduce(e, r->all, 3, false, PLIM_BINARY_MAX, 1, PLIM_I64);
    return tensor_keep(op_add_scalar(e, op_add_scalar(e, most, 1), -(double)length_of(m, row)));
}

static struct tensor *make_row(struct engine *e, const struct decoder *m, struct row *r, struct tensor *positions,
                               int64_t row)
{
    const struct plim_images *images = &m->setting->images;
    int64_t tokens = plim_image_tokens(&m->config->vision, images);
    int64_t text = length_of(m, row) - PLIM_IMAGE_LEAD - images->count * tokens - (images->count - 1) * PLIM_IMAGE_GAP;
    tensor_drop_all(e, r->ids, r->types);
    r->ids = let_through(e, m, m->inputs, row);
    r->types = let_through(e, m, m->token_types, row);
    if (!e->halted) engine_item(e, r->types);
    tensor_drop(e, r->position);
    r->position = NULL;
    drop_list(e, r);
    for (int64_t i = 0; i < images->count; i++) {
        add_text(e, r, i ? PLIM_IMAGE_GAP : PLIM_IMAGE_LEAD, 0);
        add_image(e, m, r, PLIM_IMAGE_LEAD);
    }
    add_text(e, r, text, 0);
    return join_row(e, m, r, positions, row);
}

struct tensor *vision_text_positions(struct engine *e, struct decoder *m)
{
    if (e->halted) return e->poison;
    int64_t batch = m->inputs->a.shape[0], seq = m->inputs->a.shape[1], runs = 2 * m->setting->images.count + 1;
    struct tensor **deltas = calloc((size_t)(batch + runs), sizeof(struct tensor *));
    struct row r = {.list = deltas ? deltas + batch : NULL};
    struct tensor *positions = tensor_keep(op_full(e, PLIM_I64, SHAPE(3, batch, seq), 0));
    if (!deltas) engine_fail(e, PLIM_NOMEM);
    for (int64_t i = 0; i < batch && deltas; i++) deltas[i] = make_row(e, m, &r, positions, i);
    struct tensor *all = tensor_keep(op_full(e, PLIM_I64, SHAPE(batch, 1), 0));
    for (int64_t i = batch; i-- > 0 && deltas;) tensor_drop(e, deltas[i]);
    tensor_drop_all(e, r.ids, r.types, r.position);
    drop_list(e, &r);
    tensor_drop_all(e, r.vision, r.all);
    tensor_drop(e, m->vision.deltas);
    m->vision.deltas = all;
    free(deltas);
    return positions;
}
