/* Reductions as PyTorch launches them: an iterator over input and output whose dimensions are sorted and merged, halved
 * until it fits 32-bit offsets, and for each part a launch configuration, which determines the scratch memory. */
#include "needs.h"

enum { WARP = 32, MAX_THREADS = 512, MIN_VALUES_PER_THREAD = 16, MAX_VALUES_PER_THREAD = 256 };

/* --- the iterator --------------------------------------------------------------------------------
 *
 * Dimensions from fastest to slowest, strides in bytes. A stride of 0 in the output marks a
 * dimension that is reduced. */

enum { OUT, IN, OPERANDS };

struct walk {
    int ndim;
    int64_t shape[PLIM_MAX_DIMS];
    int64_t stride[OPERANDS][PLIM_MAX_DIMS];
    uint64_t data; /* address of the first input element */
};

static void walk_init(struct walk *w, const struct plim_array *in, unsigned dims,
                      enum plim_dtype result)
{
    *w = (struct walk){.ndim = in->ndim, .data = in->data};
    int64_t out_stride = plim_dtype_size(result);
    for (int i = in->ndim - 1; i >= 0; i--) { /* stored slowest first, like dimensions of arrays */
        bool reduced = dims >> i & 1;
        w->shape[i] = in->shape[i];
        w->stride[IN][i] = in->stride[i] * plim_dtype_size((enum plim_dtype)in->dtype);
        w->stride[OUT][i] = reduced ? 0 : out_stride;
        if (!reduced) out_stride *= in->shape[i];
    }
}

/* Compares two dimensions: 1 if `a` should come after `b`, -1 if before; 0 if it does not matter. */
static int walk_compare(const struct walk *w, int a, int b)
{
    for (int operand = OUT; operand < OPERANDS; operand++) {
        int64_t stride_a = w->stride[operand][a], stride_b = w->stride[operand][b];
        if (operand == OUT && (stride_a == 0) != (stride_b == 0)) return stride_b == 0 ? 1 : -1;
        if (stride_a == 0 || stride_b == 0) continue;
        if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
        if (w->shape[a] > w->shape[b]) return 1;
    }
    return 0;
}

/* An insertion sort that passes over ambiguous neighbours, from the last dimension to the first. */
static void walk_sort(struct walk *w)
{
    int order[PLIM_MAX_DIMS];
    for (int i = 0; i < w->ndim; i++) order[i] = w->ndim - 1 - i;
    for (int i = 1; i < w->ndim; i++) {
        for (int before = i - 1, at = i; before >= 0; before--) {
            int comparison = walk_compare(w, order[before], order[at]);
            if (comparison < 0) break;
            if (comparison == 0) continue;
            int moved = order[before];
            order[before] = order[at];
            order[at] = moved;
            at = before;
        }
    }
    struct walk sorted = *w;
    for (int i = 0; i < w->ndim; i++) {
        sorted.shape[i] = w->shape[order[i]];
        for (int operand = OUT; operand < OPERANDS; operand++)
            sorted.stride[operand][i] = w->stride[operand][order[i]];
    }
    *w = sorted;
}

static bool walk_can_merge(const struct walk *w, int inner, int outer)
{
    if (w->shape[inner] == 1 || w->shape[outer] == 1) return true;
    for (int operand = OUT; operand < OPERANDS; operand++)
        if (w->shape[inner] * w->stride[operand][inner] != w->stride[operand][outer]) return false;
    return true;
}

static void walk_merge(struct walk *w)
{
    if (w->ndim <= 1) return;
    int last = 0;
    for (int i = 1; i < w->ndim; i++) {
        bool merge = walk_can_merge(w, last, i);
        bool take_stride = !merge || w->shape[last] == 1;
        w->shape[merge ? last : last + 1] = merge ? w->shape[last] * w->shape[i] : w->shape[i];
        if (!merge) last++;
        for (int operand = OUT; operand < OPERANDS && take_stride; operand++)
            w->stride[operand][last] = w->stride[operand][i];
    }
    w->ndim = last + 1;
}

static int64_t walk_elements(const struct walk *w)
{
    int64_t n = 1;
    for (int i = 0; i < w->ndim; i++) n *= w->shape[i];
    return n;
}

static int64_t walk_outputs(const struct walk *w)
{
    int64_t n = 1;
    for (int i = 0; i < w->ndim; i++)
        if (w->stride[OUT][i] != 0) n *= w->shape[i];
    return n;
}

static int walk_reduced_dims(const struct walk *w)
{
    int n = 0;
    for (int i = 0; i < w->ndim; i++) n += w->stride[OUT][i] == 0;
    return n;
}

static bool walk_fits_32_bits(const struct walk *w)
{
    if (walk_elements(w) > INT32_MAX) return false;
    for (int operand = OUT; operand < OPERANDS; operand++) {
        int64_t end = 1;
        for (int i = 0; i < w->ndim; i++) end += (w->shape[i] - 1) * w->stride[operand][i];
        if (end > INT32_MAX) return false;
    }
    return true;
}

/* Returns the dimension with the largest span. */
static int walk_longest(const struct walk *w)
{
    int64_t longest = -1;
    int dim = 0;
    for (int i = w->ndim - 1; i >= 0; i--) {
        for (int operand = OUT; operand < OPERANDS; operand++) {
            int64_t extent = (w->shape[i] - 1) * w->stride[operand][i];
            if (extent <= longest) continue;
            longest = extent;
            dim = i;
        }
    }
    return dim;
}

/* Splits the first half of a dimension off `w` and returns it. */
static struct walk walk_split(struct walk *w, int dim)
{
    struct walk half = *w;
    half.shape[dim] = w->shape[dim] / 2;
    w->shape[dim] -= half.shape[dim];
    w->data += (uint64_t)(half.shape[dim] * w->stride[IN][dim]);
    return half;
}

/* --- the launch configuration ----------------------------------------------------------------- */

/* How thread blocks cover a reduction. */
struct blocks {
    int64_t step_output, step_input;
    int64_t width, height;
    int64_t ctas_per_output;
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t power_of_two_below(int64_t n, int64_t limit)
{
    int64_t power = 1;
    while (power * 2 <= n && power * 2 <= limit) power *= 2;
    return power;
}

static int64_t blocks_grid(const struct blocks *b, const struct plim_reduce_launch *r)
{
    return ceil_div(r->outputs / r->vector, b->step_output);
}

static int64_t blocks_values_per_thread(const struct blocks *b, const struct plim_reduce_launch *r)
{
    return ceil_div(r->inputs, b->step_input);
}

/* PyTorch also loads four inputs at once if a row is contiguous, in a narrower block. Blocks that share an output are
 * full with or without it, so that is not modelled. */
static void blocks_shape(struct blocks *b, const struct plim_reduce_launch *r)
{
    int64_t outputs = r->outputs / r->vector, threads = MAX_THREADS / r->vector;
    int64_t wide = power_of_two_below(r->threads_share ? r->inputs : outputs, threads);
    int64_t high = power_of_two_below(r->threads_share ? outputs : r->inputs, threads);
    b->height = smaller(high, threads / smaller(wide, WARP));
    b->width = smaller(wide, threads / b->height);
}

static struct blocks blocks_configure(const struct plim_device_info *info,
                                      const struct plim_reduce_launch *r)
{
    struct blocks b = {.step_output = 1, .step_input = 1, .ctas_per_output = 1};
    blocks_shape(&b, r);
    *(r->threads_share ? &b.step_input : &b.step_output) *= b.width;

    int64_t worth_sharing = smaller(b.height * MIN_VALUES_PER_THREAD, MAX_VALUES_PER_THREAD);
    bool warps_share = blocks_values_per_thread(&b, r) >= worth_sharing;
    *(warps_share ? &b.step_input : &b.step_output) *= b.height;

    int64_t values = blocks_values_per_thread(&b, r), grid = blocks_grid(&b, r);
    int64_t target_grid =
        info->multiprocessors * (info->threads_per_multiprocessor / (b.width * b.height));
    if (warps_share && values >= MAX_VALUES_PER_THREAD && grid <= target_grid)
        b.ctas_per_output =
            larger(smaller(ceil_div(target_grid, grid), ceil_div(values, MIN_VALUES_PER_THREAD)),
                   ceil_div(values, MAX_VALUES_PER_THREAD));
    return b;
}

struct plim_reduce_scratch plim_reduce_launch_needs(const struct plim_device_info *info,
                                                    const struct plim_reduce_launch *r)
{
    struct blocks b = blocks_configure(info, r);
    struct plim_reduce_scratch scratch = {0};
    if (b.ctas_per_output == 1) return scratch;
    scratch.partials_bytes = r->partial_bytes * r->outputs * b.ctas_per_output;
    if (!r->threads_share) scratch.partials_bytes *= b.width * r->vector;
    scratch.semaphores_bytes = (int64_t)sizeof(int32_t) * blocks_grid(&b, r);
    return scratch;
}

/* --- the whole reduction ---------------------------------------------------------------------- */

static bool is_16_bit_float(enum plim_dtype t)
{
    return t == PLIM_BF16 || t == PLIM_F16;
}

/* Returns the number of elements that the output spans, as the accumulation buffer counts them: over the walk's
 * strides, and at least one element's bytes. */
static int64_t output_span(const struct walk *w, int element_bytes)
{
    int64_t span = element_bytes;
    for (int i = 0; i < w->ndim; i++) span = larger(span, w->shape[i] * w->stride[OUT][i]);
    return span / element_bytes;
}

/* Returns the widest load, up to 4 outputs, for which every address of the walk is aligned. */
static int64_t output_vector(const struct walk *w, int element_bytes)
{
    int first_output = walk_reduced_dims(w);
    uint64_t vector = 4;
    while ((w->data / (uint64_t)element_bytes) % vector) vector /= 2;
    for (int i = 0; i < w->ndim; i++) {
        int64_t n = i == first_output ? w->shape[i] : w->stride[IN][i] / element_bytes;
        while ((uint64_t)n % vector) vector /= 2;
    }
    return (int64_t)vector;
}

static struct plim_reduce_launch launch_of(const struct walk *w, int element_bytes,
                                           int partial_bytes)
{
    int reduced = walk_reduced_dims(w);
    struct plim_reduce_launch r = {
        .outputs = walk_outputs(w), .vector = 1, .partial_bytes = (uint8_t)partial_bytes};
    r.inputs = walk_elements(w) / r.outputs;
    r.threads_share = reduced == w->ndim || w->stride[IN][0] < w->stride[IN][reduced];
    if (!r.threads_share && w->stride[IN][reduced] == element_bytes)
        r.vector = (uint8_t)output_vector(w, element_bytes);
    return r;
}

/* `carries`: the output cannot hold intermediate results of several launches. */
static int needs_of(const struct plim_device_info *info, const struct plim_array *in, unsigned dims,
                    enum plim_dtype result, int partial_bytes, bool carries,
                    struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES])
{
    int element_bytes = plim_dtype_size((enum plim_dtype)in->dtype);
    struct walk pending[64]; /* halving a 63-bit count: never deeper */
    walk_init(&pending[0], in, dims, result);
    walk_sort(&pending[0]);
    walk_merge(&pending[0]);
    if (walk_elements(&pending[0]) == 0) return 0;
    int64_t accumulation_bytes = 0;
    if (carries && !walk_fits_32_bits(&pending[0]))
        accumulation_bytes = output_span(&pending[0], plim_dtype_size(result)) * partial_bytes;

    int launches = 0;
    for (int depth = 1; depth > 0 && launches < PLIM_REDUCE_MAX_LAUNCHES; depth--) {
        for (; !walk_fits_32_bits(&pending[depth - 1]); depth++) {
            int dim = walk_longest(&pending[depth - 1]);
            if (pending[depth - 1].shape[dim] < 2) return 0; /* one element, repeated: not supported */
            pending[depth] = walk_split(&pending[depth - 1], dim);
        }
        const struct plim_reduce_launch r =
            launch_of(&pending[depth - 1], element_bytes, partial_bytes);
        scratch[launches++] = plim_reduce_launch_needs(info, &r);
    }
    scratch[0].accumulation_bytes = accumulation_bytes;
    return launches;
}

int plim_reduce_needs(const struct plim_device_info *info, const struct plim_array *in,
                      unsigned dims, enum plim_binary fold, enum plim_dtype result,
                      struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES])
{
    enum plim_dtype dtype = (enum plim_dtype)in->dtype;
    bool widened = (fold == PLIM_BINARY_ADD || fold == PLIM_BINARY_HYPOT) && is_16_bit_float(dtype);
    int partial_bytes = plim_dtype_size(widened ? PLIM_F32 : dtype);
    return needs_of(info, in, dims, result, partial_bytes, widened && is_16_bit_float(result), scratch);
}

int plim_argmax_needs(const struct plim_device_info *info, const struct plim_array *in,
                      struct plim_reduce_scratch scratch[PLIM_REDUCE_MAX_LAUNCHES])
{
    enum { PAIR_BYTES = 16 }; /* a value in fp32 or its own type, and its index in int64 */
    return needs_of(info, in, 1u << (in->ndim - 1), PLIM_I64, PAIR_BYTES, true, scratch);
}
