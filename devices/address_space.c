#include "address_space.h"

#define REGION_BYTES (UINT64_C(32) << 20)

struct piece {
    uint64_t at, bytes;
};

struct plim_address_space_region {
    uint64_t at, bytes;
    uint64_t widest; /* of its gaps */
    bool is_alone;
    PLIM_ARRAY(struct piece) held; /* by address */
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* --- one region ------------------------------------------------------------------------------- */

/* Returns the gap before piece i, or after all of them. */
static struct piece gap_before(const struct plim_address_space_region *region, size_t i)
{
    const struct piece *held = region->held.items;
    uint64_t begin = i ? held[i - 1].at + held[i - 1].bytes : region->at;
    uint64_t end = i < region->held.count ? held[i].at : region->at + region->bytes;
    return (struct piece){begin, end - begin};
}

static void measure(struct plim_address_space_region *region)
{
    region->widest = 0;
    for (size_t i = 0; i <= region->held.count && !region->is_alone; i++) {
        uint64_t bytes = gap_before(region, i).bytes;
        if (bytes > region->widest) region->widest = bytes;
    }
}

static enum plim_status place_in_region(struct plim_address_space_region *region, uint64_t bytes,
                                        uint64_t *at)
{
    size_t best = 0;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i <= region->held.count; i++) {
        uint64_t room = gap_before(region, i).bytes;
        if (room < bytes || room >= least) continue;
        least = room;
        best = i;
    }
    struct piece piece = {gap_before(region, best).at, bytes};
    if (PLIM_ARRAY_PUSH(&region->held, piece) != PLIM_OK) return PLIM_NOMEM;
    struct piece *held = region->held.items;
    memmove(&held[best + 1], &held[best], (region->held.count - 1 - best) * sizeof(*held));
    held[best] = piece;
    measure(region);
    *at = piece.at;
    return PLIM_OK;
}

/* --- all regions ------------------------------------------------------------------------------ */

/* Returns how many regions start above `at`: the index of the region that contains `at`. */
static size_t count_above(const struct plim_address_space *space, uint64_t at)
{
    size_t low = 0, high = space->by_address.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (space->by_address.items[middle]->at > at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Finds the highest hole in which a region of this size can be mapped; `above`: the number of regions above it. */
static bool find_hole(const struct plim_address_space *space, uint64_t bytes, uint64_t *at, size_t *above)
{
    bool is_known = space->full_bytes && bytes >= space->full_bytes;
    uint64_t end = is_known ? space->full_from : space->top;
    for (size_t i = is_known ? count_above(space, end) + 1 : 0; i <= space->by_address.count; i++) {
        const struct plim_address_space_region *below =
            i < space->by_address.count ? space->by_address.items[i] : NULL;
        uint64_t begin = below ? below->at + below->bytes : space->bottom;
        if (end - begin >= bytes + REGION_BYTES) {
            *at = end - bytes;
            *above = i;
            return true;
        }
        if (below) end = below->at;
    }
    return false;
}

static enum plim_status add_region(struct plim_address_space *space, uint64_t bytes,
                                   struct plim_address_space_region **out)
{
    uint64_t whole = (bytes + REGION_BYTES - 1) / REGION_BYTES * REGION_BYTES, at;
    size_t i;
    if (whole < bytes || !find_hole(space, whole, &at, &i)) return PLIM_OOM;
    size_t count = space->by_age.count + 1;
    if (PLIM_ARRAY_RESERVE(&space->by_age, count) != PLIM_OK ||
        PLIM_ARRAY_RESERVE(&space->by_address, count) != PLIM_OK)
        return PLIM_NOMEM;
    struct plim_address_space_region *region = calloc(1, sizeof(*region));
    if (!region) return PLIM_NOMEM;
    region->at = space->full_from = at;
    region->bytes = space->full_bytes = whole;
    space->by_age.items[space->by_age.count++] = region;
    struct plim_address_space_region **items = space->by_address.items;
    memmove(&items[i + 1], &items[i], (space->by_address.count++ - i) * sizeof(*items));
    items[i] = region;
    *out = region;
    return PLIM_OK;
}

static void remove_region(struct plim_address_space *space, size_t by_address)
{
    struct plim_address_space_region **items = space->by_address.items, *region = items[by_address];
    if (region->at >= space->full_from) space->full_bytes = 0;
    memmove(&items[by_address], &items[by_address + 1],
            (--space->by_address.count - by_address) * sizeof(*items));
    items = space->by_age.items;
    size_t i = 0;
    while (items[i] != region) i++;
    memmove(&items[i], &items[i + 1], (--space->by_age.count - i) * sizeof(*items));
    PLIM_ARRAY_FINISH(&region->held);
    free(region);
}

/* Returns the newest region with a gap that is wide enough. */
static struct plim_address_space_region *find_region(struct plim_address_space *space, uint64_t bytes)
{
    uint64_t widest = 0;
    if (space->widest < bytes) return NULL;
    for (size_t i = space->by_age.count; i-- > 0;) {
        struct plim_address_space_region *region = space->by_age.items[i];
        if (region->widest >= bytes) return region;
        if (region->widest > widest) widest = region->widest;
    }
    space->widest = widest;
    return NULL;
}

static void note_gaps(struct plim_address_space *space, const struct plim_address_space_region *region)
{
    if (region->widest > space->widest) space->widest = region->widest;
}

enum plim_status plim_address_space_reserve(struct plim_address_space *space, uint64_t bytes,
                                            bool alone, uint64_t *at)
{
    struct plim_address_space_region *region = alone ? NULL : find_region(space, bytes);
    if (region) return place_in_region(region, bytes, at);
    enum plim_status st = add_region(space, bytes, &region);
    if (st != PLIM_OK) return st;
    region->is_alone = alone;
    st = place_in_region(region, bytes, at);
    if (st == PLIM_OK) note_gaps(space, region);
    else remove_region(space, count_above(space, region->at));
    return st;
}

static void remove_all(struct plim_address_space *space)
{
    for (size_t i = 0; i < space->by_age.count; i++) {
        PLIM_ARRAY_FINISH(&space->by_age.items[i]->held);
        free(space->by_age.items[i]);
    }
    space->by_age.count = space->by_address.count = 0;
}

void plim_address_space_release(struct plim_address_space *space, uint64_t at)
{
    size_t index = count_above(space, at);
    struct plim_address_space_region *region = space->by_address.items[index];
    size_t i = 0;
    while (region->held.items[i].at != at) i++;
    memmove(&region->held.items[i], &region->held.items[i + 1],
            (--region->held.count - i) * sizeof(*region->held.items));
    if (region->held.count) {
        measure(region);
        note_gaps(space, region);
    } else {
        remove_region(space, index);
    }
}

enum plim_status plim_address_space_begin(struct plim_address_space *space, uint64_t bottom,
                                          uint64_t top)
{
    static const uint64_t of_context[] = {UINT64_C(8) << 20, UINT64_C(30) << 20};
    enum plim_status st = PLIM_OK;
    uint64_t at;
    remove_all(space);
    space->widest = space->full_bytes = 0;
    space->bottom = bottom;
    space->top = top;
    for (size_t i = 0; i < sizeof(of_context) / sizeof(of_context[0]) && st == PLIM_OK; i++)
        st = plim_address_space_reserve(space, of_context[i], false, &at);
    return st;
}

uint64_t plim_address_space_fingerprint(const struct plim_address_space *space)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < space->by_age.count; i++) {
        const struct plim_address_space_region *region = space->by_age.items[i];
        hash = mix(mix(hash, region->at), region->bytes);
        for (size_t k = 0; k < region->held.count; k++)
            hash = mix(mix(hash, region->held.items[k].at), region->held.items[k].bytes);
    }
    return hash;
}

void plim_address_space_clear(struct plim_address_space *space)
{
    remove_all(space);
    PLIM_ARRAY_FINISH(&space->by_age);
    PLIM_ARRAY_FINISH(&space->by_address);
}
