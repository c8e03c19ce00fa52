/* Behaviour of the caching allocator by itself: small rules, failure, and what must hold after
 * every event of a random walk. Equality with PyTorch is in test_allocator_traces.c. */
#include "devices/allocator/blocks.h"
#include "support/fake_device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>

#define MIB ((int64_t)1 << 20)

struct bed {
    struct fake_device device;
    struct plim_allocator *a;
};

static void make_bed(struct bed *bed, int64_t capacity_bytes, const char *conf)
{
    struct plim_allocator_config config;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_allocator_config_parse(conf, &config, &err), PLIM_OK), "%s", err.text);
    fake_device_init(&bed->device, capacity_bytes);
    cr_assert(eq(int, plim_allocator_create(&bed->device.base, &config, &bed->a, &err), PLIM_OK));
}

/* Whatever is still allocated goes back with the allocator. */
static void clear_bed(struct bed *bed)
{
    plim_allocator_destroy(&bed->a);
    cr_expect(fake_device_is_clean(&bed->device), "memory was not given back");
    fake_device_finish(&bed->device);
}

static struct plim_block *get(struct bed *bed, int64_t bytes)
{
    struct plim_block *block;
    cr_assert(eq(int, plim_allocator_malloc(bed->a, bytes, 0, &block), PLIM_OK));
    return block;
}

static const struct plim_allocator_stats *stats(const struct bed *bed)
{
    return plim_allocator_statistics(bed->a);
}

/* ---- small rules ---- */

Test(caching_allocator, nothing_asked_is_no_block)
{
    struct bed bed;
    make_bed(&bed, 64 * MIB, "");
    cr_expect(get(&bed, 0) == NULL);
    plim_allocator_free(bed.a, NULL);
    cr_expect(eq(i64, stats(&bed)->reserved, 0));
    cr_expect(eq(u64, plim_block_address(NULL), 0));
    cr_expect(eq(i64, plim_block_bytes(NULL), 0));
    clear_bed(&bed);
}

Test(caching_allocator, refuses_what_is_no_size_or_stream)
{
    struct bed bed;
    struct plim_block *block;
    make_bed(&bed, 64 * MIB, "");
    cr_expect(eq(int, plim_allocator_malloc(bed.a, -1, 0, &block), PLIM_INVALID));
    cr_expect(eq(int, plim_allocator_malloc(bed.a, 512, -1, &block), PLIM_INVALID));
    cr_expect(eq(int, plim_allocator_malloc(bed.a, 512, 1 << 30, &block), PLIM_INVALID));
    cr_expect(eq(int, plim_allocator_malloc(bed.a, INT64_MAX, 0, &block), PLIM_OOM));
    cr_expect(block == NULL);
    clear_bed(&bed);
}

struct rounding {
    char conf[48];
    int64_t bytes, block, reserved;
};

static struct rounding roundings[] = {
    {"", 1, 512, 2 * MIB},
    {"", 512, 512, 2 * MIB},
    {"", 513, 1024, 2 * MIB},
    {"", MIB, MIB, 2 * MIB},
    {"", MIB + 1, MIB + 512, 20 * MIB},
    {"", 10 * MIB - 512, 10 * MIB - 512, 20 * MIB},
    {"", 10 * MIB, 10 * MIB, 10 * MIB},
    {"", 11 * MIB, 12 * MIB, 12 * MIB},        /* a remainder of 1 MiB is not split off */
    {"", 11 * MIB - 512, 11 * MIB - 512, 12 * MIB},
    {"large_segment_size_mb:40", 2 * MIB, 2 * MIB, 40 * MIB},
    {"max_split_size_mb:20", 21 * MIB, 22 * MIB, 22 * MIB}, /* oversize: never split */
    {"expandable_segments:True", 1, 512, 2 * MIB},
    {"expandable_segments:True", 11 * MIB, 11 * MIB, 20 * MIB},
    {"expandable_segments:True", 21 * MIB, 21 * MIB, 40 * MIB},
    {"roundup_power2_divisions:4", 1200, 1536, 2 * MIB},
    {"roundup_power2_divisions:4", 5 * 1024, 5 * 1024, 2 * MIB},
    {"roundup_power2_divisions:4", 5 * 1024 + 1, 6 * 1024, 2 * MIB},
    {"roundup_power2_divisions:4", 33 * MIB, 40 * MIB, 40 * MIB},
    {"roundup_power2_divisions:[1:1,32:2]", 33 * MIB, 48 * MIB, 48 * MIB},
};

ParameterizedTestParameters(caching_allocator, rounds)
{
    return cr_make_param_array(struct rounding, roundings,
                               sizeof(roundings) / sizeof(roundings[0]));
}

ParameterizedTest(struct rounding *r, caching_allocator, rounds)
{
    struct bed bed;
    make_bed(&bed, (int64_t)1 << 30, r->conf);
    struct plim_block *block = get(&bed, r->bytes);
    cr_expect(eq(i64, plim_block_bytes(block), r->block), "%s %ld", r->conf, (long)r->bytes);
    cr_expect(eq(i64, stats(&bed)->allocated, r->block));
    cr_expect(eq(i64, stats(&bed)->requested, r->bytes));
    cr_expect(eq(i64, stats(&bed)->reserved, r->reserved), "%s %ld", r->conf, (long)r->bytes);
    clear_bed(&bed);
}

Test(caching_allocator, takes_the_smallest_block_that_fits_at_the_lowest_address)
{
    struct bed bed;
    struct plim_block *b[5], *last = NULL;
    static const int64_t sizes[] = {8192, 4096, 4096, 1024, 16384};
    make_bed(&bed, 64 * MIB, "");
    for (int i = 0; i < 5; i++) {
        b[i] = get(&bed, sizes[i]);
        last = get(&bed, 512); /* keeps the others apart */
    }
    uint64_t wanted = plim_block_address(b[1]);
    for (int i = 4; i >= 0; i--) plim_allocator_free(bed.a, b[i]);
    struct plim_block *block = get(&bed, 2000);
    cr_expect(eq(u64, plim_block_address(block), wanted));
    cr_expect(lt(u64, wanted, plim_block_address(last)));
    clear_bed(&bed);
}

Test(caching_allocator, streams_do_not_share_free_blocks)
{
    struct bed bed;
    struct plim_block *block, *other;
    make_bed(&bed, 64 * MIB, "");
    block = get(&bed, 4096);
    plim_allocator_free(bed.a, block);
    cr_assert(eq(int, plim_allocator_malloc(bed.a, 4096, 3, &other), PLIM_OK));
    cr_expect(eq(i64, stats(&bed)->reserved, 4 * MIB));
    clear_bed(&bed);
}

Test(caching_allocator, a_block_used_on_another_stream_is_free_one_malloc_later)
{
    struct bed bed;
    make_bed(&bed, 64 * MIB, "");
    struct plim_block *block = get(&bed, 4096);
    uint64_t address = plim_block_address(block);
    plim_allocator_record_stream(bed.a, block, 1);
    plim_allocator_free(bed.a, block);
    cr_expect(eq(i64, stats(&bed)->allocated, 0));
    cr_expect(eq(i64, stats(&bed)->requested, 4096)); /* still in use by the other stream */
    cr_expect(eq(u64, plim_block_address(get(&bed, 4096)), address));
    cr_expect(eq(i64, stats(&bed)->requested, 4096));
    clear_bed(&bed);
}

Test(caching_allocator, emptying_the_cache_returns_what_another_stream_is_done_with)
{
    struct bed bed;
    make_bed(&bed, 64 * MIB, "");
    struct plim_block *block = get(&bed, 4096);
    plim_allocator_record_stream(bed.a, block, 1);
    plim_allocator_free(bed.a, block);
    plim_allocator_empty_cache(bed.a);
    cr_expect(eq(i64, stats(&bed)->requested, 0));
    cr_expect(eq(i64, stats(&bed)->reserved, 0));
    clear_bed(&bed);
}

Test(caching_allocator, its_own_stream_holds_nothing_back)
{
    struct bed bed;
    make_bed(&bed, 64 * MIB, "");
    struct plim_block *block = get(&bed, 4096);
    plim_allocator_record_stream(bed.a, block, 0);
    plim_allocator_free(bed.a, block);
    cr_expect(eq(i64, stats(&bed)->requested, 0));
    clear_bed(&bed);
}

Test(caching_allocator, an_oversize_block_is_reused_for_a_little_less_only)
{
    struct bed bed;
    make_bed(&bed, 400 * MIB, "max_split_size_mb:40");
    plim_allocator_free(bed.a, get(&bed, 60 * MIB));
    plim_allocator_free(bed.a, get(&bed, 40 * MIB + 512)); /* less than 20 MiB more */
    cr_expect(eq(i64, stats(&bed)->reserved, 60 * MIB));
    get(&bed, 40 * MIB);
    cr_expect(eq(i64, stats(&bed)->reserved, 100 * MIB));
    clear_bed(&bed);
}

Test(caching_allocator, an_empty_expandable_range_goes_back_too)
{
    struct bed bed;
    make_bed(&bed, 400 * MIB, "expandable_segments:True");
    plim_allocator_free(bed.a, get(&bed, 30 * MIB));
    cr_expect(eq(sz, bed.device.ranges.count, 1));
    plim_allocator_empty_cache(bed.a);
    cr_expect(eq(sz, bed.device.ranges.count, 0));
    clear_bed(&bed);
}

/* Searches that find something, so that what is free meanwhile grows older. */
static void pass_time(struct bed *bed, int searches)
{
    while (searches-- > 0) plim_allocator_free(bed->a, get(bed, 2 * MIB));
}

/* Ages 11, 5, 2: over the average is the first, then, of those left, the second. */
Test(caching_allocator, garbage_collection_takes_the_oldest_until_it_has_enough)
{
    struct bed bed;
    make_bed(&bed, 1000 * MIB,
             "garbage_collection_threshold:0.3,per_process_memory_fraction:0.5");
    struct plim_block *old = get(&bed, 100 * MIB), *middle = get(&bed, 100 * MIB),
                      *young = get(&bed, 100 * MIB);
    get(&bed, 2 * MIB);
    plim_allocator_free(bed.a, old);
    pass_time(&bed, 6);
    plim_allocator_free(bed.a, middle);
    pass_time(&bed, 3);
    plim_allocator_free(bed.a, young);
    pass_time(&bed, 1);
    cr_expect(eq(i64, stats(&bed)->reserved, 320 * MIB)); /* 170 MiB over the threshold */
    get(&bed, 110 * MIB);
    cr_expect(eq(i64, stats(&bed)->reserved, 230 * MIB));
    clear_bed(&bed);
}

/* ---- the fingerprint ---- */

/* An allocator of two large segments, 30 and 40 MiB, of which all is held. */
struct pair {
    struct bed bed;
    struct plim_block *small, *large;
};

static void make_pair(struct pair *p, const char *conf)
{
    make_bed(&p->bed, 96 * MIB, conf);
    p->small = get(&p->bed, 30 * MIB);
    p->large = get(&p->bed, 40 * MIB);
}

Test(caching_allocator, the_fingerprint_is_that_of_the_state_and_not_of_the_way_to_it)
{
    struct pair p;
    make_pair(&p, "");
    uint64_t before = plim_allocator_fingerprint(p.bed.a);
    struct plim_block *block = get(&p.bed, 100), *other = get(&p.bed, 5000);
    plim_allocator_free(p.bed.a, block);
    plim_allocator_free(p.bed.a, other);
    uint64_t cached = plim_allocator_fingerprint(p.bed.a); /* a small segment more */
    cr_expect(ne(u64, before, cached));
    plim_allocator_free(p.bed.a, get(&p.bed, 7000));
    cr_expect(eq(u64, plim_allocator_fingerprint(p.bed.a), cached));
    plim_allocator_reset_peaks(p.bed.a);
    cr_expect(eq(u64, plim_allocator_fingerprint(p.bed.a), cached));
    plim_allocator_empty_cache(p.bed.a);
    cr_expect(eq(u64, plim_allocator_fingerprint(p.bed.a), before));
    clear_bed(&p.bed);
}

/* The order of addresses decides among blocks of one size; where they are does not. */
Test(caching_allocator, the_fingerprint_knows_the_order_of_segments_and_not_their_addresses)
{
    struct pair p;
    make_pair(&p, "");
    uint64_t before = plim_allocator_fingerprint(p.bed.a);
    plim_allocator_free(p.bed.a, p.large);
    plim_allocator_empty_cache(p.bed.a);
    p.large = get(&p.bed, 40 * MIB); /* at another address, but after the other block as before */
    cr_expect(eq(u64, plim_allocator_fingerprint(p.bed.a), before));
    plim_allocator_free(p.bed.a, p.small);
    plim_allocator_empty_cache(p.bed.a);
    p.small = get(&p.bed, 30 * MIB);
    cr_expect(ne(u64, plim_allocator_fingerprint(p.bed.a), before));
    clear_bed(&p.bed);
}

Test(caching_allocator, the_fingerprint_tells_which_block_is_free)
{
    struct pair p;
    make_bed(&p.bed, 96 * MIB, "");
    p.small = get(&p.bed, 4 * MIB);
    p.large = get(&p.bed, 4 * MIB);
    get(&p.bed, 4 * MIB);
    plim_allocator_free(p.bed.a, p.small);
    uint64_t first = plim_allocator_fingerprint(p.bed.a);
    p.small = get(&p.bed, 4 * MIB);
    plim_allocator_free(p.bed.a, p.large);
    cr_expect(ne(u64, plim_allocator_fingerprint(p.bed.a), first));
    clear_bed(&p.bed);
}

Test(caching_allocator, the_fingerprint_knows_what_waits_for_another_stream)
{
    struct pair p;
    make_pair(&p, "");
    uint64_t plain = plim_allocator_fingerprint(p.bed.a);
    plim_allocator_record_stream(p.bed.a, p.small, 1);
    uint64_t recorded = plim_allocator_fingerprint(p.bed.a);
    plim_allocator_free(p.bed.a, p.small);
    uint64_t pending = plim_allocator_fingerprint(p.bed.a);
    plim_allocator_process_events(p.bed.a);
    cr_expect(ne(u64, plain, recorded));
    cr_expect(ne(u64, recorded, pending));
    cr_expect(ne(u64, pending, plim_allocator_fingerprint(p.bed.a)));
    clear_bed(&p.bed);
}

/* How long a segment has been free decides only where garbage is collected. */
Test(caching_allocator, the_fingerprint_knows_ages_where_they_count)
{
    static const char *const confs[] = {
        "", "garbage_collection_threshold:0.9,per_process_memory_fraction:0.99"};
    for (int counts = 0; counts < 2; counts++) {
        struct pair p;
        make_pair(&p, confs[counts]);
        plim_allocator_free(p.bed.a, p.small);
        uint64_t young = plim_allocator_fingerprint(p.bed.a);
        plim_allocator_free(p.bed.a, p.large);
        p.large = get(&p.bed, 40 * MIB);
        bool same = plim_allocator_fingerprint(p.bed.a) == young;
        cr_expect(eq(int, same, !counts));
        clear_bed(&p.bed);
    }
}

Test(caching_allocator, the_fingerprint_of_large_blocks_knows_no_small_ones)
{
    struct bed bed;
    make_bed(&bed, 96 * MIB, "");
    struct plim_block *large = get(&bed, 10 * MIB), *small = get(&bed, 512);
    uint64_t one = plim_allocator_fingerprint_large(bed.a), all = plim_allocator_fingerprint(bed.a);
    plim_allocator_free(bed.a, small);
    cr_expect(eq(u64, plim_allocator_fingerprint_large(bed.a), one));
    cr_expect(ne(u64, plim_allocator_fingerprint(bed.a), all));
    plim_allocator_free(bed.a, large);
    cr_expect(ne(u64, plim_allocator_fingerprint_large(bed.a), one));
    clear_bed(&bed);
}

Test(caching_allocator, the_fingerprint_of_an_expandable_range_knows_its_pages)
{
    struct bed bed;
    make_bed(&bed, 96 * MIB, "expandable_segments:True");
    plim_allocator_free(bed.a, get(&bed, 10 * MIB));
    uint64_t one = plim_allocator_fingerprint(bed.a);
    plim_allocator_free(bed.a, get(&bed, 30 * MIB));
    cr_expect(ne(u64, plim_allocator_fingerprint(bed.a), one));
    plim_allocator_empty_cache(bed.a);
    plim_allocator_free(bed.a, get(&bed, 10 * MIB));
    cr_expect(eq(u64, plim_allocator_fingerprint(bed.a), one));
    clear_bed(&bed);
}

Test(caching_allocator, peaks_start_anew_at_what_is_held)
{
    struct bed bed;
    make_bed(&bed, 64 * MIB, "");
    struct plim_block *small = get(&bed, 512), *large = get(&bed, 20 * MIB);
    plim_allocator_free(bed.a, large);
    cr_expect(eq(i64, stats(&bed)->allocated_peak, 20 * MIB + 512));
    plim_allocator_empty_cache(bed.a);
    plim_allocator_reset_peaks(bed.a);
    cr_expect(eq(i64, stats(&bed)->allocated_peak, 512));
    cr_expect(eq(i64, stats(&bed)->requested_peak, 512));
    cr_expect(eq(i64, stats(&bed)->reserved_peak, 2 * MIB));
    plim_allocator_free(bed.a, small);
    clear_bed(&bed);
}

/* ---- failure ---- */

Test(caching_allocator, cached_segments_are_given_back_before_it_fails)
{
    struct bed bed;
    make_bed(&bed, 50 * MIB, "");
    struct plim_block *kept = get(&bed, 512), *cached = get(&bed, 30 * MIB);
    plim_allocator_free(bed.a, cached);
    get(&bed, 40 * MIB);
    cr_expect(eq(i64, stats(&bed)->retries, 1));
    cr_expect(eq(i64, stats(&bed)->ooms, 0));
    cr_expect(eq(i64, stats(&bed)->reserved, 42 * MIB));
    plim_allocator_free(bed.a, kept);
    clear_bed(&bed);
}

Test(caching_allocator, oversize_segments_go_first_and_only_as_many_as_needed)
{
    struct bed bed;
    struct plim_block *b[3];
    make_bed(&bed, 200 * MIB, "max_split_size_mb:40");
    for (int i = 0; i < 3; i++) b[i] = get(&bed, i == 0 ? 44 * MIB : 50 * MIB);
    for (int i = 0; i < 3; i++) plim_allocator_free(bed.a, b[i]);
    get(&bed, 100 * MIB);
    cr_expect(eq(i64, stats(&bed)->reserved, 144 * MIB));
    cr_expect(eq(i64, stats(&bed)->retries, 0));
    clear_bed(&bed);
}

Test(caching_allocator, out_of_memory_leaves_it_usable)
{
    struct bed bed;
    struct plim_block *block, *kept;
    make_bed(&bed, 50 * MIB, "");
    kept = get(&bed, 30 * MIB);
    cr_expect(eq(int, plim_allocator_malloc(bed.a, 40 * MIB, 0, &block), PLIM_OOM));
    cr_expect(block == NULL);
    cr_expect(eq(i64, stats(&bed)->allocated, 30 * MIB));
    cr_expect(eq(i64, stats(&bed)->ooms, 1));
    plim_allocator_free(bed.a, kept);
    get(&bed, 40 * MIB);
    cr_expect(eq(i64, stats(&bed)->allocated, 40 * MIB));
    clear_bed(&bed);
}

Test(caching_allocator, a_memory_fraction_limits_segments)
{
    struct bed bed;
    struct plim_block *block;
    make_bed(&bed, 100 * MIB, "per_process_memory_fraction:0.5");
    get(&bed, 40 * MIB);
    cr_expect(eq(int, plim_allocator_malloc(bed.a, 2 * MIB, 0, &block), PLIM_OOM)); /* 20 MiB */
    cr_expect(eq(int, plim_allocator_malloc(bed.a, 10 * MIB, 0, &block), PLIM_OK));
    clear_bed(&bed);
}

Test(caching_allocator, more_than_an_expandable_range_holds_is_out_of_memory)
{
    struct bed bed;
    struct plim_block *block;
    make_bed(&bed, 100 * MIB, "expandable_segments:True");
    cr_expect(eq(int, plim_allocator_malloc(bed.a, 500 * MIB, 0, &block), PLIM_OOM));
    cr_expect(eq(i64, stats(&bed)->reserved, 0));
    get(&bed, 90 * MIB);
    clear_bed(&bed);
}

Test(caching_allocator, a_lost_device_is_told_and_not_retried)
{
    struct bed bed;
    struct plim_block *block;
    make_bed(&bed, 100 * MIB, "");
    get(&bed, 512);
    bed.device.lose_after = 0;
    cr_expect(eq(int, plim_allocator_malloc(bed.a, 20 * MIB, 0, &block), PLIM_LOST));
    cr_expect(eq(i64, stats(&bed)->retries, 0));
    plim_allocator_destroy(&bed.a);
    fake_device_finish(&bed.device);
}

/* ---- what holds after every event of a random walk ---- */

struct held {
    struct plim_block *block;
    int64_t bytes; /* size and address of the block when it was given */
    uint64_t address;
};

struct walk {
    struct bed bed;
    struct held held[200];
    int count;
    uint64_t state;
    int64_t mapped, allocated; /* sums over all blocks */
};

static uint64_t draw(struct walk *w, uint64_t below)
{
    w->state ^= w->state << 13;
    w->state ^= w->state >> 7;
    w->state ^= w->state << 17;
    return w->state % below;
}

static void check_block(void *user, struct plim_block *b)
{
    struct walk *w = user;
    const struct plim_block *next = b->next;
    cr_assert(lt(i64, 0, b->size));
    cr_assert(eq(i64, b->size % 512, 0));
    if (!b->unmapped) w->mapped += b->size;
    if (b->allocated) w->allocated += b->size;
    if (!next) return;
    cr_assert(eq(u64, b->address + (uint64_t)b->size, next->address), "a gap or an overlap");
    cr_assert(next->prev == b);
    cr_assert(not(plim_block_available(b) && plim_block_available(next) &&
                  b->unmapped == next->unmapped), "free neighbours were not merged");
}

/* The index holds its blocks in order, forwards and backwards. */
static void check_index(const struct plim_block_index *index)
{
    const struct plim_block *b = plim_block_index_find(index, 0), *previous = NULL;
    for (; b; previous = b, b = plim_block_index_next(index, b)) {
        cr_assert(plim_block_available(b) && !b->unmapped);
        cr_assert(plim_block_index_previous(index, b) == previous);
        cr_assert(not(previous && (previous->size > b->size || (previous->size == b->size &&
                                                                previous->address > b->address))));
    }
    cr_assert(plim_block_index_last(index) == previous);
}

static void check_all(struct walk *w)
{
    const struct plim_allocator_stats *s = stats(&w->bed);
    int64_t bytes = 0;
    w->mapped = w->allocated = 0;
    plim_block_store_visit(&w->bed.a->store, check_block, w);
    for (int i = 0; i < w->count; i++) {
        const struct held *h = &w->held[i];
        cr_assert(eq(u64, plim_block_address(h->block), h->address), "a live block moved");
        cr_assert(eq(i64, plim_block_bytes(h->block), h->bytes));
        bytes += h->bytes;
    }
    for (size_t i = 0; i < w->bed.a->streams.count; i++)
        for (int p = 0; p < PLIM_POOL_COUNT; p++)
            check_index(&w->bed.a->streams.items[i]->pools[p].free);
    cr_assert(eq(i64, s->allocated, bytes));
    cr_assert(eq(i64, s->allocated, w->allocated));
    cr_assert(eq(i64, s->reserved, w->mapped));
    cr_assert(eq(i64, s->reserved, w->bed.device.base.segment_bytes));
    cr_assert(ge(i64, s->allocated_peak, s->allocated));
    cr_assert(ge(i64, s->reserved_peak, s->reserved));
    cr_assert(eq(int, w->bed.device.misuses, 0));
}

static void drop(struct walk *w, int i)
{
    if (draw(w, 8) == 0) plim_allocator_record_stream(w->bed.a, w->held[i].block, (int)draw(w, 2));
    plim_allocator_free(w->bed.a, w->held[i].block);
    w->held[i] = w->held[--w->count];
}

static void take_one(struct walk *w)
{
    struct plim_block *block;
    int64_t bytes = 1 + (int64_t)draw(w, (uint64_t)1 << (6 + draw(w, 21)));
    int64_t ooms = stats(&w->bed)->ooms;
    enum plim_status st = plim_allocator_malloc(w->bed.a, bytes, (int)draw(w, 2), &block);
    cr_assert(eq(i64, stats(&w->bed)->ooms, ooms + (st == PLIM_OOM)));
    cr_assert(st == PLIM_OK || st == PLIM_OOM);
    if (st != PLIM_OK) return;
    cr_assert(ge(i64, plim_block_bytes(block), bytes));
    w->held[w->count++] =
        (struct held){block, plim_block_bytes(block), plim_block_address(block)};
}

struct walked {
    char conf[96];
    int64_t capacity_bytes;
};

static struct walked walks[] = {
    {"", (int64_t)1 << 46},
    {"", 400 * MIB},
    {"expandable_segments:True", (int64_t)1 << 46},
    {"expandable_segments:True", 300 * MIB},
    {"max_split_size_mb:20", 400 * MIB},
    {"max_split_size_mb:40,max_non_split_rounding_mb:60,expandable_segments:True", 400 * MIB},
    {"garbage_collection_threshold:0.5,per_process_memory_fraction:0.5", 900 * MIB},
    {"roundup_power2_divisions:[1:8,4:2,>:4],large_segment_size_mb:32", 500 * MIB},
};

ParameterizedTestParameters(caching_allocator, invariants_hold)
{
    return cr_make_param_array(struct walked, walks, sizeof(walks) / sizeof(walks[0]));
}

ParameterizedTest(struct walked *what, caching_allocator, invariants_hold)
{
    static struct walk w;
    make_bed(&w.bed, what->capacity_bytes, what->conf);
    w.state = 88172645463325252u;
    for (int event = 0; event < 6000; event++) {
        bool full = w.count == 200;
        if (full || (w.count > 0 && draw(&w, 100) < 47)) drop(&w, (int)draw(&w, (uint64_t)w.count));
        else take_one(&w);
        if (draw(&w, 500) == 0) plim_allocator_empty_cache(w.bed.a);
        check_all(&w);
    }
    while (w.count > 0) drop(&w, 0);
    plim_allocator_process_events(w.bed.a);
    check_all(&w);
    cr_expect(eq(i64, stats(&w.bed)->requested, 0));
    plim_allocator_empty_cache(w.bed.a); /* gives back whole segments only: all are whole again */
    cr_expect(eq(i64, stats(&w.bed)->reserved, 0));
    cr_expect(eq(i64, w.bed.device.used_bytes, 0));
    clear_bed(&w.bed);
}
