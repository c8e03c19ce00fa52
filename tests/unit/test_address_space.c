/* Addresses of device memory, compared with those of an H200's driver (tests/gpu/measured/h200-addresses.json). */
#include "devices/address_space.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <jansson.h>

static const int64_t MIB = 1 << 20;
/* The memory of the context here: 8 MiB in the highest region, 30 MiB in the next. */
static const int64_t TOP = INT64_C(1) << 46;
enum { HOLE_OF_24 = -24, HOLE_OF_2 = -34, NEW_REGIONS_END = -64, MOST = 256 };

struct bed {
    struct plim_address_space space;
    int64_t holes[2]; /* the driver's: of 2 and of 24 MiB */
};

/* MiB above the top, as the driver had them in its process. */
static int64_t ours(const struct bed *bed, int64_t mib)
{
    if (mib >= bed->holes[1] && mib < bed->holes[1] + 24) return mib - bed->holes[1] + HOLE_OF_24;
    if (mib == bed->holes[0]) return HOLE_OF_2;
    return mib + NEW_REGIONS_END;
}

static void play(struct bed *bed, const char *name, const json_t *steps)
{
    int64_t held[MOST], count = 0;
    size_t i;
    const json_t *step;
    json_array_foreach(steps, i, step)
    {
        int64_t mib = json_integer_value(json_array_get(step, 0));
        uint64_t wanted =
                     (uint64_t)(TOP + ours(bed, json_integer_value(json_array_get(step, 1))) * MIB),
                 at;
        if (mib < 0) {
            plim_address_space_release(&bed->space, wanted);
            for (int64_t k = 0; k < count; k++)
                if (held[k] == (int64_t)wanted) held[k--] = held[--count];
            continue;
        }
        cr_assert_eq(plim_address_space_reserve(&bed->space, (uint64_t)(mib * MIB), false, &at),
                     PLIM_OK);
        cr_assert_eq(at, wanted, "%s, step %zu: %lld MiB at %lld, the driver's at %lld", name, i,
                     (long long)mib, (long long)((int64_t)at - TOP) / MIB,
                     (long long)((int64_t)wanted - TOP) / MIB);
        cr_assert_lt(count, MOST);
        held[count++] = (int64_t)at;
    }
    while (count) plim_address_space_release(&bed->space, (uint64_t)held[--count]);
}

Test(address_space, memory_lies_where_the_driver_of_an_h200_placed_it)
{
    json_error_t error;
    json_t *file = json_load_file(PLIM_MEASURED "/h200-addresses.json", 0, &error);
    cr_assert_not_null(file, "%s", error.text);
    json_t *process, *steps;
    const char *name;
    size_t i, count = 0;
    json_array_foreach(json_object_get(file, "processes"), i, process)
    {
        struct bed bed = {0};
        cr_assert_eq(plim_address_space_begin(&bed.space, 0, (uint64_t)TOP), PLIM_OK);
        for (size_t k = 0; k < 2; k++)
            bed.holes[k] = json_integer_value(json_array_get(json_object_get(process, "holes"), k));
        uint64_t empty = plim_address_space_fingerprint(&bed.space);
        json_object_foreach(json_object_get(process, "sequences"), name, steps)
        {
            play(&bed, name, steps);
            count += json_array_size(steps);
            cr_expect(eq(u64, plim_address_space_fingerprint(&bed.space), empty));
        }
        plim_address_space_clear(&bed.space);
    }
    cr_expect(lt(sz, 1500, count));
    json_decref(file);
}

Test(address_space, a_range_shares_its_region_with_nothing)
{
    struct plim_address_space space = {0};
    uint64_t range, segment, next;
    cr_assert_eq(plim_address_space_begin(&space, 0, (uint64_t)TOP), PLIM_OK);
    cr_assert_eq(plim_address_space_reserve(&space, (uint64_t)(34 * MIB), true, &range), PLIM_OK);
    cr_assert_eq(plim_address_space_reserve(&space, (uint64_t)(26 * MIB), false, &segment), PLIM_OK);
    cr_expect(eq(u64, range, (uint64_t)(TOP - 128 * MIB)));
    cr_expect(eq(u64, segment, (uint64_t)(TOP - 160 * MIB)), "in a region of its own");
    plim_address_space_release(&space, range);
    cr_assert_eq(plim_address_space_reserve(&space, (uint64_t)(28 * MIB), false, &next), PLIM_OK);
    cr_expect(eq(u64, next, (uint64_t)(TOP - 96 * MIB)), "in the hole that it left");
    plim_address_space_clear(&space);
}

Test(address_space, there_is_an_end_of_addresses)
{
    struct plim_address_space space = {0};
    uint64_t at;
    cr_assert_eq(plim_address_space_begin(&space, 0, (uint64_t)(256 * MIB)), PLIM_OK);
    cr_expect(
        eq(int, plim_address_space_reserve(&space, (uint64_t)(192 * MIB), false, &at), PLIM_OOM));
    cr_expect(eq(int, plim_address_space_reserve(&space, UINT64_MAX - 1, false, &at), PLIM_OOM));
    cr_expect(eq(int, plim_address_space_reserve(&space, (uint64_t)(128 * MIB), false, &at), PLIM_OK));
    plim_address_space_clear(&space);
}
