/* Random numbers, computed from the program's seed: cuRAND's Philox, with one stream per thread
 * (aten/src/ATen/native/cuda/DistributionTemplates.h, ATen/core/TransformationHelper.h, Randperm.cuh; PyTorch 2.0 to
 * 2.15; curand_kernel.h):
 *
 *     distribution_elementwise_grid_stride_kernel<A, n, ...>(count, PhiloxCudaState, words, transform)
 *
 * A thread draws n numbers of type A at a time and writes them to elements that are one grid of threads apart.
 * `transform` holds the output, {char *out; int stride} or {OffsetCalculator<1>; char *out}, followed by the parameters
 * of the distribution.
 *
 *     kernelPointwiseApply2<bernoulli_tensor_cuda_kernel<T, P>, T, P, index, ...>(TensorInfo<T> out, TensorInfo<P>
 *         chances, count, PhiloxCudaState)                                  four elements per thread
 *     randperm_handle_duplicate_keys_kernel<K, V>(K *keys, V *indices, K mask, int count, PhiloxCudaState)
 *
 * Dense outputs are computed when they are read; most never are. Normal numbers, and uniform ones not starting at 0,
 * are likely weights rather than values on which a program's decisions depend, so they are known only up to a smaller
 * size. */
#include "devices/random.h"
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256 };               /* threads of a block: block_size_bound */
enum { MOST_AROUND_ZERO = 1 << 16 }; /* largest number of elements of such outputs */

/* --- drawing numbers -------------------------------------------------------------------------- */

enum kind { UNIFORM, NORMAL, BERNOULLI, FROM_TO, FULL_RANGE, WHOLE, KINDS };

static const char *const names[KINDS] = {
    "cuda::uniform_kernel<",      "cuda::normal_kernel<", "cuda::bernoulli_kernel<",
    "cuda::random_from_to_kernel<", "cuda::random_full_64_bits_range_kernel<", "cuda::random_kernel<"};

struct philox {
    uint64_t seed, offset; /* `offset`: words of each thread's stream that earlier launches drew */
};

struct draw {
    enum kind kind;
    enum plim_type type;
    size_t count, threads;
    int drawn; /* numbers per draw of four words: four or two */
    struct philox philox;
    /* Parameters of the distribution. UNIFORM: `from` and `to`, with `range` their difference. NORMAL: mean `from`,
     * standard deviation `range`. BERNOULLI: probability `range`. */
    double from, to, range;
    uint64_t modulus; /* FROM_TO: the range is `modulus` numbers starting at `base` */
    int64_t base;
};

/* Returns the number of values that random_() draws from for a type (uniform_int). */
static uint64_t modulus_of(enum plim_type type)
{
    switch (type) {
    case PLIM_BOOL: return 2;
    case PLIM_UINT8: return (uint64_t)1 << 8;
    case PLIM_INT8: return (uint64_t)1 << 7;
    case PLIM_INT16: return (uint64_t)1 << 15;
    case PLIM_INT32: return (uint64_t)1 << 31;
    case PLIM_INT64: return (uint64_t)1 << 63;
    case PLIM_BFLOAT16: return ((uint64_t)1 << 8) + 1;
    case PLIM_HALF: return ((uint64_t)1 << 11) + 1;
    case PLIM_FLOAT: return ((uint64_t)1 << 24) + 1;
    default: return ((uint64_t)1 << 53) + 1;
    }
}

/* Returns a number in (0, 1]: curand_uniform4 or curand_uniform2_double. */
static double unit_of(const uint32_t words[4], int which, int drawn)
{
    if (drawn == 4) return (float)words[which] * 0x1p-32F + 0x1p-33F;
    return (double)(words[2 * which] ^ (uint64_t)words[2 * which + 1] << 21) * 0x1p-53 + 0x1p-54;
}

/* Box-Muller transform, as in curand_normal4. */
static double normal_of(const uint32_t words[4], int which)
{
    static const float step = 0x1p-32F * 6.2831855F; /* angle per unit of a word */
    int first = which & ~1;
    float u = (float)words[first] * 0x1p-32F + 0x1p-33F, angle = fmaf((float)words[first + 1], step, step / 2),
          radius = sqrtf(-2 * logf(u));
    return radius * (which & 1 ? cosf(angle) : sinf(angle));
}

static struct plim_number whole(uint64_t number)
{
    return (struct plim_number){.i = (int64_t)number, .f = (double)number};
}

static struct plim_number transform(const struct draw *d, const uint32_t words[4], int which)
{
    struct plim_number n = {.is_float = true};
    uint64_t word = d->drawn == 4 ? words[which] : (uint64_t)words[2 * which] << 32 | words[2 * which + 1];
    switch (d->kind) {
    case UNIFORM:
        n.f = unit_of(words, which, d->drawn);
        n.f = d->type == PLIM_DOUBLE ? fma(n.f, d->range, d->from)
                                     : fmaf((float)n.f, (float)d->range, (float)d->from);
        n.f = plim_number_round(n.f, d->type);
        if (n.f == d->to) n.f = d->from; /* the interval is [from, to) */
        return n;
    case NORMAL: n.f = fmaf((float)normal_of(words, which), (float)d->range, (float)d->from); return n;
    case BERNOULLI: return whole(unit_of(words, which, d->drawn) < d->range);
    case FROM_TO: return whole(word % d->modulus + (uint64_t)d->base);
    case FULL_RANGE: return whole(word);
    default: return whole(word % modulus_of(d->type));
    }
}

static struct plim_number element_of(const struct draw *d, size_t i)
{
    uint32_t words[4];
    size_t round = d->threads * (size_t)d->drawn, in_round = i % round;
    plim_philox_stream(d->philox.seed, in_round % d->threads, d->philox.offset / 4 + i / round, words);
    return transform(d, words, (int)(in_round / d->threads));
}

/* --- launches --------------------------------------------------------------------------------- */

enum { KIND, DRAWN, COUNT_BYTES, IS_STRIDED };

/* Returns the start of the last occurrence of `word`, or NULL. */
static const char *last_of(const char *text, const char *word)
{
    const char *last = NULL;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) last = at;
    return last;
}

static bool read(const char *list, struct plim_plan *plan)
{
    static const char nullary[] = "distribution_nullary_kernel<";
    struct plim_name whole_list = {list, strlen(list)}, drawn = plim_name_argument(list, 1);
    const char *type = plim_name_behind(whole_list, nullary), *parameters = last_of(list, ">(");
    plan->numbers[KIND] = KINDS;
    for (int kind = 0; kind < KINDS; kind++)
        if (plim_name_behind(whole_list, names[kind])) plan->numbers[KIND] = kind;
    plan->numbers[DRAWN] = plim_name_begins(drawn, "4") ? 4 : 2;
    if (!type || plan->numbers[KIND] == KINDS) return false;
    const char *lambda = last_of(type, "{lambda(int, "), *number = lambda ? strchr(lambda, '#') : NULL;
    plan->types[0] = plim_name_type(plim_name_argument(type, 0));
    plan->numbers[IS_STRIDED] = number && number[1] == '2';
    plan->numbers[COUNT_BYTES] = parameters && !strncmp(parameters, ">(int", 5) ? 4 : 8;
    return number && plan->types[0] != PLIM_NO_TYPE;
}

/* Reads an at::PhiloxCudaState (PhiloxCudaStateRaw.cuh), which starts with the seed and the offset, or, under CUDA
 * graphs, with their addresses. Returns false in the latter case. Only the offset can tell: the seed may be any number
 * (if a program sets none, it has 53 random bits: c10::detail::getNonDeterministicRandom). */
static bool read_philox(const void *argument, struct philox *out)
{
    memcpy(out, argument, sizeof(*out));
    return !plim_heap_is_device((uintptr_t)out->offset) && out->offset % 4 == 0;
}

/* Reads the distribution's parameters from `state` + `at`, with C++ alignment. */
static void read_numbers(struct draw *d, const unsigned char *state, size_t at)
{
    enum plim_type math = d->type == PLIM_DOUBLE ? PLIM_DOUBLE : PLIM_FLOAT;
    size_t width = plim_type_bytes(math), own = plim_type_bytes(d->type);
    const unsigned char *wide = state + plim_align(at, 8), *numbers = state + plim_align(at, width);
    switch (d->kind) {
    case UNIFORM:
        d->range = plim_number_load(numbers, math).f;
        d->from = plim_number_load(numbers + width, d->type).f;
        d->to = plim_number_load(numbers + width + own, d->type).f;
        break;
    case NORMAL:
        d->from = plim_number_load(numbers, math).f;
        d->range = plim_number_load(numbers + width, math).f;
        break;
    case BERNOULLI: memcpy(&d->range, wide, sizeof(d->range)); break;
    case FROM_TO:
        memcpy(&d->modulus, wide, sizeof(d->modulus));
        memcpy(&d->base, wide + sizeof(d->modulus), sizeof(d->base));
        break;
    default: break;
    }
    /* The probability is compared as a double when drawing doubles, otherwise as a float. */
    if (d->kind == BERNOULLI && d->drawn == 4) d->range = (float)d->range;
}

struct output {
    uintptr_t at;
    int64_t stride;                    /* in bytes */
    const struct plim_offsets *offsets; /* NULL: elements are `stride` apart */
};

static size_t offset_of(const struct output *out, size_t i)
{
    return out->offsets ? plim_offsets_of(out->offsets, i, 0, 1) : i * (size_t)out->stride;
}

static bool find(const struct plim_plan *plan, const struct plim_launch *launch, struct draw *d, struct output *out)
{
    const unsigned char *state = launch->arguments[3];
    int64_t count = plan->numbers[COUNT_BYTES] == 8 ? plim_launch_long(launch, 0) : plim_launch_int(launch, 0);
    *d = (struct draw){.kind = (enum kind)plan->numbers[KIND],
                       .type = plan->types[0],
                       .count = (size_t)count,
                       .threads = (size_t)launch->grid->x * THREADS,
                       .drawn = (int)plan->numbers[DRAWN]};
    *out = (struct output){0};
    bool is_known = read_philox(launch->arguments[1], &d->philox) && count > 0 && d->threads;
    if (!is_known) return false;
    size_t at = sizeof(out->at);
    if (plan->numbers[IS_STRIDED]) {
        out->offsets = (const void *)state;
        at = plim_align(plim_offsets_bytes(1), sizeof(out->at));
        memcpy(&out->at, state + at, sizeof(out->at));
        read_numbers(d, state, at + sizeof(out->at));
        is_known = plim_offsets_check(out->offsets, d->count);
    } else {
        int32_t stride;
        memcpy(&out->at, state, sizeof(out->at));
        memcpy(&stride, state + at, sizeof(stride));
        out->stride = stride;
        read_numbers(d, state, at + sizeof(stride));
        is_known = stride > 0;
    }
    return is_known && (d->kind != FROM_TO || d->modulus) && plim_heap_is_device(out->at);
}

static bool is_known_at_all(const struct draw *d)
{
    bool is_around_zero = d->kind == NORMAL || (d->kind == UNIFORM && d->from != 0);
    return d->count <= (is_around_zero ? MOST_AROUND_ZERO : PLIM_MOST_ELEMENTS) &&
           !(d->kind == NORMAL && d->drawn == 2);
}

static bool read_later(void *user, size_t offset, void *out, size_t bytes)
{
    const struct draw *d = user;
    size_t width = plim_type_bytes(d->type);
    unsigned char element[sizeof(uint64_t)], *to = out;
    while (bytes) {
        size_t in_element = offset % width, part = width - in_element < bytes ? width - in_element : bytes;
        plim_number_store(element, d->type, element_of(d, offset / width));
        memcpy(to, element + in_element, part);
        to += part, offset += part, bytes -= part;
    }
    return true;
}

static bool write_later(const struct plim_launch *launch, const struct draw *d, uintptr_t at)
{
    struct draw *kept = malloc(sizeof(*kept));
    if (!kept) return false;
    *kept = *d;
    plim_shadow_write_later(at, &(struct plim_shadow_source){read_later, free, kept}, PLIM_KNOWN | PLIM_ASSUMPTION_SEED,
                            d->count * plim_type_bytes(d->type), launch->kernel);
    return true;
}

static bool run(const struct plim_plan *plan, const struct plim_launch *launch)
{
    struct draw d;
    struct output out;
    struct plim_view view = {0};
    if (!find(plan, launch, &d, &out)) return false;
    size_t width = plim_type_bytes(d.type),
           last = out.offsets ? plim_offsets_last(out.offsets, 0, 1) : offset_of(&out, d.count - 1);
    bool is_known = is_known_at_all(&d), is_dense = last + width == d.count * width;
    if (is_known && is_dense && !out.offsets && write_later(launch, &d, out.at)) return true;
    if (!is_known || !plim_view_open(&view, out.at, last + width)) {
        plim_launch_spoil(launch, out.at, last + width);
        return true;
    }
    for (size_t i = 0; i < d.count; i++)
        plim_view_set(&view, offset_of(&out, i), d.type, element_of(&d, i), PLIM_KNOWN | PLIM_ASSUMPTION_SEED);
    plim_view_store(&view, launch->kernel);
    plim_view_close(&view);
    return true;
}

/* --- Bernoulli with a probability per element ------------------------------------------------- */

enum { OUT, CHANCES, INDEX_BYTES = 0 };

static bool read_chances(const char *list, struct plim_plan *plan)
{
    enum { FUNCTION, OUT_TYPE, CHANCES_TYPE, INDEX };
    struct plim_name index = plim_name_argument(list, INDEX);
    plan->types[OUT] = plim_name_type(plim_name_argument(list, OUT_TYPE));
    plan->types[CHANCES] = plim_name_type(plim_name_argument(list, CHANCES_TYPE));
    plan->numbers[INDEX_BYTES] = plim_name_begins(index, "unsigned int") ? 4 : 8;
    return plim_name_behind(plim_name_argument(list, FUNCTION), "bernoulli_tensor_cuda_kernel<") &&
           plan->types[OUT] != PLIM_NO_TYPE && plim_type_is_float(plan->types[CHANCES]);
}

static void draw_each(const struct plim_plan *plan, const struct philox *philox, size_t threads, size_t count,
                      const struct plim_tensor tensors[2], struct plim_view views[2])
{
    enum { EACH = 4 };
    uint32_t words[EACH];
    size_t widths[2] = {plim_type_bytes(plan->types[OUT]), plim_type_bytes(plan->types[CHANCES])};
    for (size_t i = 0; i < count; i++) {
        struct plim_number chance;
        plim_philox_stream(philox->seed, i / EACH % threads, philox->offset / 4, words);
        unsigned char known = plim_view_get(&views[CHANCES], plim_tensor_offset(&tensors[CHANCES], i) * widths[CHANCES],
                                            plan->types[CHANCES], &chance);
        plim_view_set(&views[OUT], plim_tensor_offset(&tensors[OUT], i) * widths[OUT], plan->types[OUT],
                      whole(unit_of(words, (int)(i % EACH), EACH) <= chance.f),
                      plim_known_both(known, PLIM_KNOWN | PLIM_ASSUMPTION_SEED));
    }
}

static bool run_chances(const struct plim_plan *plan, const struct plim_launch *launch)
{
    enum { APPLY_THREADS = 512 };
    size_t index_bytes = (size_t)plan->numbers[INDEX_BYTES],
           count = index_bytes == 8 ? (size_t)plim_launch_long(launch, 2) : (uint32_t)plim_launch_int(launch, 2);
    struct plim_tensor tensors[2];
    struct plim_view views[2] = {{0}};
    struct philox philox;
    bool works = count && count <= PLIM_MOST_ELEMENTS && read_philox(launch->arguments[3], &philox);
    for (int i = OUT; works && i <= CHANCES; i++)
        works = plim_tensor_read(launch->arguments[i], index_bytes, &tensors[i]) &&
                plim_view_open(&views[i], tensors[i].at,
                               plim_tensor_span(&tensors[i]) * plim_type_bytes(plan->types[i]));
    if (works) draw_each(plan, &philox, (size_t)launch->grid->x * APPLY_THREADS, count, tensors, views);
    if (works) plim_view_store(&views[OUT], launch->kernel);
    plim_view_close(&views[OUT]);
    plim_view_close(&views[CHANCES]);
    return works;
}

/* --- randperm --------------------------------------------------------------------------------- */

enum { KEY_BYTES, VALUE_BYTES };

static bool read_duplicates(const char *list, struct plim_plan *plan)
{
    plan->numbers[KEY_BYTES] = (int64_t)plim_type_bytes(plim_name_type(plim_name_argument(list, 0)));
    plan->numbers[VALUE_BYTES] = plim_name_opaque_bytes(plim_name_argument(list, 1));
    return plan->numbers[KEY_BYTES] && plan->numbers[VALUE_BYTES] > 0 && plan->numbers[VALUE_BYTES] <= 8;
}

static uint64_t key_at(const unsigned char *keys, size_t i, size_t width, uint64_t mask)
{
    uint64_t key = 0;
    memcpy(&key, keys + i * width, width);
    return key & mask;
}

/* Shuffles `count` values with equal keys, starting at element `first`, with the random numbers of the thread of that
 * element. */
static void shuffle(struct plim_view *values, size_t count, size_t width, size_t first, const struct philox *philox)
{
    uint32_t words[4];
    for (size_t i = count - 1, drawn = 0; i > 0; i--, drawn++) {
        plim_philox_stream(philox->seed, first, philox->offset / 4 + drawn / 4, words);
        plim_view_swap(values, (first + i) * width, (first + words[drawn % 4] % (i + 1)) * width, width);
    }
}

/* If the keys are unknown, the values keep their order. */
static bool run_duplicates(const struct plim_plan *plan, const struct plim_launch *launch)
{
    size_t key_bytes = (size_t)plan->numbers[KEY_BYTES], value_bytes = (size_t)plan->numbers[VALUE_BYTES];
    int32_t given = plim_launch_int(launch, 3);
    size_t count = given > 0 ? (size_t)given : 0;
    struct plim_view keys = {0}, values = {0};
    struct philox philox;
    uint64_t mask = 0;
    memcpy(&mask, launch->arguments[2], key_bytes);
    bool works = count && count <= PLIM_MOST_ELEMENTS && read_philox(launch->arguments[4], &philox) &&
                 plim_view_open(&keys, plim_launch_address(launch, 0), count * key_bytes) &&
                 plim_view_open(&values, plim_launch_address(launch, 1), count * value_bytes) &&
                 plim_view_known(&keys, 0, keys.bytes) & PLIM_KNOWN;
    for (size_t i = 0, end; works && i < count; i = end) {
        uint64_t key = key_at(keys.data, i, key_bytes, mask);
        for (end = i + 1; end < count && key_at(keys.data, end, key_bytes, mask) == key; end++) continue;
        shuffle(&values, end - i, value_bytes, i, &philox);
    }
    if (works) plim_view_store(&values, launch->kernel);
    plim_view_close(&keys);
    plim_view_close(&values);
    return true;
}

const struct plim_row plim_rows_random[] = {{"distribution_elementwise_grid_stride_kernel<", read, run},
                                            {"kernelPointwiseApply2<", read_chances, run_chances},
                                            {"randperm_handle_duplicate_keys_kernel<", read_duplicates, run_duplicates},
                                            {0}};
