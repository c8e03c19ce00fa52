/* CUB's radix sort, which PyTorch uses for long rows, unique and randperm (CUDA 11.8 to 13).
 *
 *     DeviceRadixSortSingleTileKernel<policy, descending, K, V, ...>(const K *in, K *out, const V *values in,
 *         V *values out, count, first bit, last bit)
 *     DeviceRadixSortOnesweepKernel<policy, descending, K, V, ...>(look-back, counters, bins out, bins in, K *out,
 *         const K *in, V *values out, const V *values in, int count, int bit, int bits)             one pass
 *     DeviceRadixSortHistogramKernel, DeviceRadixSortExclusiveSumKernel                             prepare the passes
 *
 * Values whose keys are unknown are assumed to come in a random order; each still occurs exactly once. */
#include "devices/random.h"
#include "devices/virtual/memory/heap.h"
#include "plan.h"
#include <stdlib.h>
#include <string.h>

enum { DESCENDING, VALUE_BYTES };

static bool read_from(const char *list, int first, struct plim_plan *plan)
{
    struct plim_name order = plim_name_argument(list, first), value = plim_name_argument(list, first + 2);
    int64_t opaque = plim_name_opaque_bytes(value);
    bool is_falling = plim_name_behind(order, ")1") || plim_name_begins(order, "true");
    bool is_rising = plim_name_behind(order, ")0") || plim_name_begins(order, "false");
    plan->types[0] = plim_name_type(plim_name_argument(list, first + 1));
    plan->numbers[DESCENDING] = is_falling;
    plan->numbers[VALUE_BYTES] = opaque ? opaque : (int64_t)plim_type_bytes(plim_name_type(value));
    bool has_no_values = plim_name_behind(value, "NullType");
    return (is_falling || is_rising) && plan->types[0] != PLIM_NO_TYPE &&
           (has_no_values || plan->numbers[VALUE_BYTES] > 0);
}

static bool read(const char *list, struct plim_plan *plan) { return read_from(list, 1, plan); }

static bool read_down(const char *list, struct plim_plan *plan) { return read_from(list, 2, plan); }

/* Returns the key as an unsigned integer with the same order. */
static uint64_t bits_of(const unsigned char *key, enum plim_type type)
{
    size_t width = plim_type_bytes(type);
    uint64_t bits = 0, sign = (uint64_t)1 << (8 * width - 1), all = sign | (sign - 1);
    if (width == sizeof(bits))
        memcpy(&bits, key, sizeof(bits)); /* the compiler makes this one load */
    else
        memcpy(&bits, key, width);
    if (type == PLIM_UINT8 || type == PLIM_BOOL) return bits;
    if (!plim_type_is_float(type)) return bits ^ sign;
    if (bits == sign) bits = 0; /* -0 sorts as 0 */
    return bits & sign ? ~bits & all : bits | sign;
}

struct item {
    uint64_t bits;
    size_t place;
};

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* Sorts by one digit; stable. */
static void sort_digit(const struct item *from, struct item *to, size_t count, int shift)
{
    size_t begins[DIGITS + 1] = {0};
    for (size_t i = 0; i < count; i++) begins[(from[i].bits >> shift) % DIGITS + 1]++;
    for (size_t d = 0; d < DIGITS; d++) begins[d + 1] += begins[d];
    for (size_t i = 0; i < count; i++)
        to[begins[(from[i].bits >> shift) % DIGITS]++] = from[i];
}

/* Sorts the items by their low `bits` bits. `items` has room for 2 * count items. Returns the sorted ones, in either
 * half. */
static struct item *sort_items(struct item *items, size_t count, int bits)
{
    struct item *from = items, *to = items + count, *swapped;
    for (int shift = 0; shift < bits && shift < 64; shift += DIGIT_BITS) {
        sort_digit(from, to, count, shift);
        swapped = from, from = to, to = swapped;
    }
    return from;
}

struct pass {
    uintptr_t from, to, values_from, values_to;
    size_t count;
    int first_bit, bits;
};

static unsigned char known_of(const struct plim_view *view)
{
    unsigned char known = PLIM_KNOWN;
    if (!memcmp(view->known, view->known + 1, view->bytes - 1)) return view->known[0];
    for (size_t i = 0; i < view->bytes; i++) known = plim_known_both(known, view->known[i]);
    return known;
}

/* Gathers elements. The two usual widths have loops of their own, so that each copy is a single instruction. */
static void gather(unsigned char *to, const unsigned char *from, const struct item *items,
                   size_t count, size_t width)
{
    if (width == 8)
        for (size_t i = 0; i < count; i++) memcpy(to + i * 8, from + items[i].place * 8, 8);
    else if (width == 4)
        for (size_t i = 0; i < count; i++) memcpy(to + i * 4, from + items[i].place * 4, 4);
    else
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * width, from + items[i].place * width, width);
}

/* Writes keys or values in sorted order; `known` is the state of all keys. */
static void move(const struct plim_launch *launch, const struct item *items, size_t count,
                 const struct plim_view *from, struct plim_view *to, size_t width,
                 unsigned char known)
{
    gather(to->data, from->data, items, count, width);
    gather(to->known, from->known, items, count, width);
    for (size_t i = 0; i < to->bytes; i++) to->known[i] = plim_known_both(to->known[i], known);
    plim_view_store(to, launch->kernel);
}

static uint64_t mask_of(const struct pass *p)
{
    return p->bits >= 64 ? UINT64_MAX : ((uint64_t)1 << p->bits) - 1;
}

/* True if all keys have the same digit, as the upper digits of indices do: the pass then changes nothing. */
static bool is_sorted(const struct pass *p, const struct plim_view *in, enum plim_type type)
{
    size_t width = plim_type_bytes(type);
    uint64_t first = bits_of(in->data, type), differs = 0;
    for (size_t i = 1; i < p->count; i++) differs |= first ^ bits_of(in->data + i * width, type);
    return !(differs >> p->first_bit & mask_of(p));
}

static void copy(const struct pass *p, size_t width, size_t value_width)
{
    plim_shadow_copy(p->to, p->from, p->count * width);
    if (value_width) plim_shadow_copy(p->values_to, p->values_from, p->count * value_width);
}

/* Does one pass over known keys. Returns false if memory runs out or a view is too large. */
static bool rearrange(const struct plim_plan *plan, const struct plim_launch *launch,
                      const struct pass *p, const struct plim_view *in, size_t value_width)
{
    enum plim_type type = plan->types[0];
    unsigned char known = known_of(in);
    size_t width = plim_type_bytes(type);
    struct plim_view out = {0}, values_in = {0}, values_out = {0};
    struct item *items = malloc(2 * p->count * sizeof(*items));
    bool works = items && plim_view_blank(&out, p->to, p->count * width) &&
                 (!value_width ||
                  (plim_view_open(&values_in, p->values_from, p->count * value_width) &&
                   plim_view_blank(&values_out, p->values_to, p->count * value_width)));
    for (size_t i = 0; works && i < p->count; i++) {
        uint64_t bits = bits_of(in->data + i * width, type) >> p->first_bit;
        items[i] = (struct item){(plan->numbers[DESCENDING] ? ~bits : bits) & mask_of(p), i};
    }
    const struct item *sorted = works ? sort_items(items, p->count, p->bits) : NULL;
    if (works) move(launch, sorted, p->count, in, &out, width, known);
    if (works && value_width)
        move(launch, sorted, p->count, &values_in, &values_out, value_width, known);
    free(items);
    plim_view_close(&out);
    plim_view_close(&values_in);
    plim_view_close(&values_out);
    return works;
}

/* Shuffles the elements (Fisher-Yates) into an order that depends only on their number; a descending sort reverses
 * it. */
static void shuffle(struct plim_view *view, size_t count, size_t width, bool is_descending)
{
    for (size_t i = count; i > 1; i--)
        plim_view_swap(view, plim_random_word(count, i) % i * width, (i - 1) * width, width);
    for (size_t i = 0; is_descending && i < count / 2; i++)
        plim_view_swap(view, i * width, (count - 1 - i) * width, width);
}

/* Puts values with unknown keys into a random order: the first pass shuffles them and later passes keep that order.
 * Returns false if there are no values or they are too large. */
static bool order_by_chance(const struct pass *p, size_t width, size_t value_width, bool is_descending)
{
    const char *writer = plim_shadow_writer(p->from, p->count * width);
    struct plim_view values = {0};
    if (!value_width || !plim_view_open(&values, p->values_from, p->count * value_width)) return false;
    values.at = p->values_to;
    if (!p->first_bit) shuffle(&values, p->count, value_width, is_descending);
    for (size_t i = 0; i < values.bytes; i++)
        values.known[i] = plim_known_both(values.known[i], PLIM_KNOWN | PLIM_ASSUMPTION_SPREAD);
    plim_view_store(&values, writer);
    plim_view_close(&values);
    plim_shadow_spoil(p->to, p->count * width, writer);
    return true;
}

static bool sort(const struct plim_plan *plan, const struct plim_launch *launch,
                 const struct pass *p)
{
    size_t width = plim_type_bytes(plan->types[0]), value_width = 0;
    struct plim_view in = {0};
    if (!p->count || p->first_bit < 0 || p->first_bit > 63 || p->bits <= 0 ||
        !plim_heap_is_device(p->to))
        return false;
    if (plim_heap_is_device(p->values_to)) value_width = (size_t)plan->numbers[VALUE_BYTES];
    bool opens =
        p->count <= PLIM_MOST_ELEMENTS && plim_view_open(&in, p->from, p->count * width);
    unsigned char known = opens ? known_of(&in) : PLIM_UNKNOWN;
    if (known == PLIM_KNOWN && is_sorted(p, &in, plan->types[0])) {
        copy(p, width, value_width);
    } else if (!opens || (known & PLIM_KNOWN
                              ? !rearrange(plan, launch, p, &in, value_width)
                              : !order_by_chance(p, width, value_width, plan->numbers[DESCENDING] != 0))) {
        plim_launch_spoil(launch, p->to, p->count * width);
        if (value_width) plim_launch_spoil(launch, p->values_to, p->count * value_width);
    }
    plim_view_close(&in);
    return true;
}

static bool run_tile(const struct plim_plan *plan, const struct plim_launch *l)
{
    int first = plim_launch_int(l, 5);
    return sort(plan, l,
                &(struct pass){plim_launch_address(l, 0), plim_launch_address(l, 1),
                               plim_launch_address(l, 2), plim_launch_address(l, 3),
                               (uint32_t)plim_launch_int(l, 4), first,
                               plim_launch_int(l, 6) - first});
}

static bool run_sweep(const struct plim_plan *plan, const struct plim_launch *l)
{
    return sort(plan, l,
                &(struct pass){plim_launch_address(l, 5), plim_launch_address(l, 4),
                               plim_launch_address(l, 7), plim_launch_address(l, 6),
                               (uint32_t)plim_launch_int(l, 8), plim_launch_int(l, 9),
                               plim_launch_int(l, 10)});
}

static bool run_down(const struct plim_plan *plan, const struct plim_launch *l)
{
    return sort(plan, l,
                &(struct pass){plim_launch_address(l, 0), plim_launch_address(l, 1),
                               plim_launch_address(l, 2), plim_launch_address(l, 3),
                               (uint32_t)plim_launch_int(l, 5), plim_launch_int(l, 6),
                               plim_launch_int(l, 7)});
}

const struct plim_row plim_rows_radix[] = {{"DeviceRadixSortSingleTileKernel<", read, run_tile},
                                           {"DeviceRadixSortOnesweepKernel<", read, run_sweep},
                                           {"DeviceRadixSortDownsweepKernel<", read_down, run_down},
                                           {0}};
