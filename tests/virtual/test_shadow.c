/* What is known of the GPU's memory: states of bytes, and the blocks that a framework hands out. */
#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/memory/round_trip.h"
#include "devices/virtual/memory/shadow.h"
#include "machine_fixture.h"
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MIB = 1 << 20;
static const uintptr_t AT = 0x300000000000;

static void expect_states(uintptr_t at, const char *states)
{
    static const char letters[] = "-u2k";
    size_t count = strlen(states);
    unsigned char bytes[64], known[64];
    char found[65] = {0};
    plim_shadow_load(at, bytes, known, count);
    for (size_t i = 0; i < count; i++) found[i] = known[i] & PLIM_KNOWN ? 'k' : letters[known[i]];
    cr_expect(eq(str, found, (char *)states));
}

Test(shadow, what_the_host_wrote_comes_back_and_the_rest_is_zero)
{
    char out[16];
    plim_shadow_write(AT + 4, "hello", 5);
    cr_expect(eq(uint, plim_shadow_load(AT, out, NULL, 16), PLIM_KNOWN | PLIM_SOME_UNKNOWN));
    cr_expect(eq(int, memcmp(out, "\0\0\0\0hello\0\0\0\0\0\0\0", 16), 0));
    plim_shadow_write(AT + 5, "EL", 2);
    plim_shadow_copy(AT + 100, AT + 4, 5);
    plim_shadow_clear(AT, 16);
    cr_expect(eq(uint, plim_shadow_load(AT, out, NULL, 16), PLIM_SOME_UNKNOWN));
    cr_expect(eq(uint, plim_shadow_load(AT + 100, out, NULL, 5), PLIM_KNOWN));
    cr_expect(eq(int, memcmp(out, "hELlo", 5), 0));
}

Test(shadow, three_states_and_who_wrote)
{
    plim_shadow_write(AT + 2, "abcd", 4);
    plim_shadow_spoil(AT + 4, 4, "kernel");
    expect_states(AT, "--kkuuuu--");
    cr_expect(eq(str, (char *)plim_shadow_writer(AT, 10), "kernel"));
    cr_expect(plim_shadow_writer(AT, 4) == NULL);
    plim_shadow_copy(AT + 20, AT, 10);
    expect_states(AT + 20, "--kkuuuu--");
    plim_shadow_clear(AT + 23, 2);
    expect_states(AT + 20, "--k--uuu--");
}

/* A kernel's elements may be known one by one. */
Test(shadow, states_of_elements_stay_apart)
{
    const unsigned char values[] = {1, 2, 3, 4},
                        known[] = {PLIM_KNOWN, PLIM_UNKNOWN, PLIM_KNOWN | PLIM_ASSUMPTION_SPREAD,
                                   PLIM_KNOWN};
    unsigned char out[4], states[4];
    plim_shadow_store(AT, values, known, 4, "kernel");
    unsigned bits = plim_shadow_load(AT, out, states, 4);
    cr_expect(eq(uint, bits, PLIM_SOME_UNKNOWN | PLIM_UNKNOWN | PLIM_KNOWN | PLIM_ASSUMPTION_SPREAD));
    cr_expect(eq(uint, plim_shadow_survey(AT, 4), bits));
    cr_expect(eq(int, memcmp(states, known, 4), 0));
    cr_expect(eq(int, memcmp(out, "\1\0\3\4", 4), 0));
    plim_shadow_write(AT + 1, "x", 1);
    cr_expect(eq(uint, plim_shadow_survey(AT, 4), PLIM_KNOWN | PLIM_ASSUMPTION_SPREAD));
}

/* A gigabyte of one number needs no memory, and has that number in any part of it. */
Test(shadow, fills_of_any_size)
{
    const uint32_t number = 0x01020304;
    unsigned char known;
    uint32_t out = 0;
    plim_shadow_fill(AT, &number, 4, PLIM_KNOWN, (size_t)1 << 30);
    cr_expect(plim_shadow_is_filled(AT + 4000, 4096, 4, &out, &known));
    cr_expect(eq(u32, out, number));
    plim_shadow_write(AT + 8192, "x", 1);
    cr_expect(not(plim_shadow_is_filled(AT + 4096, 8192, 4, &out, &known)));
    out = 0;
    plim_shadow_load(AT + 8193, &out, NULL, 3);
    cr_expect(eq(u32, out, 0x010203));
}

/* More than would be kept. An element is what repeats: 1, 0, 1, 0 is no 1. */
Test(shadow, what_a_host_writes_over_and_over_is_a_fill)
{
    unsigned char known;
    int64_t one = 1, out = 0;
    const size_t count = SHADOW_BYTES / sizeof(int64_t) + 1;
    int64_t *ones = malloc(count * sizeof(*ones));
    cr_assert(ones != NULL);
    for (size_t i = 0; i < count; i++) ones[i] = one;
    plim_shadow_write(AT, ones, count * sizeof(*ones));
    cr_expect(plim_shadow_is_filled(AT, count * sizeof(*ones), 8, &out, &known));
    cr_expect(eq(i64, out, one));
    cr_expect(not(plim_shadow_is_filled(AT, count * sizeof(*ones), 4, &out, &known)));
    ones[count - 1] = 2;
    plim_shadow_write(AT, ones + count - 8, 8 * sizeof(*ones));
    cr_expect(not(plim_shadow_is_filled(AT, 8 * sizeof(*ones), 8, &out, &known)));
    free(ones);
}

Test(shadow, what_one_write_made_unknown_is_spoilt_as_a_whole)
{
    unsigned char known;
    plim_shadow_spoil_as(AT, 64, PLIM_UNKNOWN | PLIM_NOT_NEGATIVE, "writer");
    plim_shadow_spoil(AT + 64, 8, "another");
    cr_expect(plim_shadow_is_spoilt(AT + 8, 56, &known));
    cr_expect(eq(uint, known, PLIM_UNKNOWN | PLIM_NOT_NEGATIVE));
    cr_expect(not(plim_shadow_is_spoilt(AT + 8, 64, &known)));
    cr_expect(plim_shadow_is_spoilt(AT + 80, 16, &known));
    cr_expect(eq(uint, known, PLIM_NEVER));
    plim_shadow_write(AT, "a", 1);
    cr_expect(not(plim_shadow_is_spoilt(AT, 64, &known)));
}

Test(shadow, too_much_to_keep_is_unknown)
{
    char *large = calloc(1, SHADOW_BYTES + 1);
    cr_assert(large != NULL);
    large[0] = 1; /* not the same over and over */
    plim_shadow_write(AT, large, SHADOW_BYTES + 1);
    cr_expect(eq(uint, plim_shadow_survey(AT, SHADOW_BYTES + 1), PLIM_UNKNOWN | PLIM_SOME_UNKNOWN));
    free(large);
}

Test(shadow, the_oldest_large_values_make_room)
{
    enum { UNKNOWN = PLIM_UNKNOWN | PLIM_SOME_UNKNOWN, ROOM = SHADOW_TOTAL_BYTES / SHADOW_BYTES };
    const uintptr_t small = AT - 4096;
    char *large = calloc(1, SHADOW_BYTES);
    cr_assert(large != NULL);
    large[0] = 1;
    plim_shadow_write(small, "mask", 4);
    for (size_t i = 0; i <= ROOM; i++) plim_shadow_write(AT + i * SHADOW_BYTES, large, SHADOW_BYTES);
    cr_expect(eq(uint, plim_shadow_survey(small, 4), PLIM_KNOWN));
    cr_expect(eq(uint, plim_shadow_survey(AT, SHADOW_BYTES), UNKNOWN));
    cr_expect(eq(uint, plim_shadow_survey(AT + SHADOW_BYTES, SHADOW_BYTES), UNKNOWN), "the small one needs room too");
    cr_expect(eq(uint, plim_shadow_survey(AT + 2 * (uintptr_t)SHADOW_BYTES, (ROOM - 1) * (size_t)SHADOW_BYTES),
                 PLIM_KNOWN));
    plim_shadow_clear(AT, (size_t)1 << 40);
    for (size_t i = 0; i < ROOM - 1; i++) plim_shadow_write(AT + i * SHADOW_BYTES, large, SHADOW_BYTES);
    cr_expect(eq(uint, plim_shadow_survey(AT, (ROOM - 1) * (size_t)SHADOW_BYTES), PLIM_KNOWN),
              "what is forgotten makes room");
    free(large);
}

/* --- over the host and back -------------------------------------------------------------------- */

/* What the host gets of device memory, as a transfer does it. */
static void take_to_host(unsigned char *host, uintptr_t from, size_t bytes)
{
    plim_round_trip_record(from, host, bytes, plim_shadow_load(from, host, NULL, bytes));
}

Test(shadow, what_is_not_known_comes_back_from_the_host_as_it_was)
{
    enum { BYTES = 12 };
    unsigned char host[BYTES] = {0}, number[8] = {0};
    plim_shadow_spoil(AT, BYTES, "writer");
    plim_shadow_write(AT + 4, "abc", 3);
    take_to_host(host, AT, BYTES);
    plim_shadow_clear(AT, BYTES);
    cr_expect(plim_round_trip_return(AT + 100, host, BYTES));
    expect_states(AT + 100, "uuuukkkuuuuu");
    cr_expect(eq(str, (char *)plim_shadow_writer(AT + 100, BYTES), "writer"));
    cr_expect(not(plim_round_trip_return(AT, host, BYTES - 1)), "other memory");
    host[11] = 1;
    cr_expect(not(plim_round_trip_return(AT, host, BYTES)), "the host has worked on it");
    take_to_host(number, AT + 100, sizeof(number));
    cr_expect(not(plim_round_trip_return(AT, number, sizeof(number))), "a number");
}

Test(shadow, what_the_host_gets_over_it_ends_a_round_trip)
{
    enum { BYTES = 16, TRIPS = 64 };
    unsigned char host[TRIPS + 1][BYTES] = {{0}};
    plim_shadow_spoil(AT, BYTES, "writer");
    plim_shadow_write(AT + 100, host, BYTES);
    take_to_host(host[0], AT, BYTES);
    take_to_host(host[0], AT + 100, BYTES);
    cr_expect(not(plim_round_trip_return(AT, host[0], BYTES)), "known zeros");
    for (int i = 0; i <= TRIPS; i++) take_to_host(host[i], AT, BYTES);
    cr_expect(not(plim_round_trip_return(AT, host[0], BYTES)), "too long ago");
    cr_expect(plim_round_trip_return(AT, host[1], BYTES));
}

/* --- against a model that has a state and a value for each byte ------------------------------- */

enum { MODEL = 256 };

static struct {
    unsigned char value[MODEL], known[MODEL];
} model;

static void do_something(void)
{
    size_t from = (size_t)rand() % MODEL, bytes = 1 + (size_t)rand() % 40,
           to = (size_t)rand() % MODEL;
    unsigned char values[40], known[40], element = (unsigned char)rand();
    if (from + bytes > MODEL) bytes = MODEL - from;
    if (to + bytes > MODEL) to = MODEL - bytes;
    for (size_t i = 0; i < bytes; i++) {
        known[i] = rand() % 3 ? PLIM_KNOWN : PLIM_UNKNOWN;
        values[i] = known[i] == PLIM_KNOWN ? (unsigned char)rand() : 0;
    }
    switch (rand() % 6) {
    case 0:
        plim_shadow_write(AT + from, values, bytes);
        memcpy(model.value + from, values, bytes);
        memset(model.known + from, PLIM_KNOWN, bytes);
        break;
    case 1:
        plim_shadow_store(AT + from, values, known, bytes, "k");
        memcpy(model.value + from, values, bytes);
        memcpy(model.known + from, known, bytes);
        break;
    case 2:
        plim_shadow_fill(AT + from, &element, 1, PLIM_KNOWN, bytes);
        memset(model.value + from, element, bytes);
        memset(model.known + from, PLIM_KNOWN, bytes);
        break;
    case 3:
        plim_shadow_spoil(AT + from, bytes, "k");
        memset(model.value + from, 0, bytes);
        memset(model.known + from, PLIM_UNKNOWN, bytes);
        break;
    case 4:
        plim_shadow_clear(AT + from, bytes);
        memset(model.value + from, 0, bytes);
        memset(model.known + from, PLIM_NEVER, bytes);
        break;
    default:
        if (to < from + bytes && from < to + bytes) return;
        plim_shadow_copy(AT + to, AT + from, bytes);
        memcpy(model.value + to, model.value + from, bytes);
        memcpy(model.known + to, model.known + from, bytes);
    }
}

Test(shadow, does_what_a_table_of_bytes_does)
{
    unsigned char values[MODEL], known[MODEL];
    srand(7);
    for (int round = 0; round < 4000; round++) {
        do_something();
        plim_shadow_load(AT, values, known, MODEL);
        cr_assert(eq(int, memcmp(values, model.value, MODEL), 0), "round %d", round);
        cr_assert(eq(int, memcmp(known, model.known, MODEL), 0), "round %d", round);
    }
}

/* --- blocks ----------------------------------------------------------------------------------- */

Test(block, what_is_handed_out_again_has_no_value)
{
    uintptr_t segment;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_allocate(0, (size_t)(2 * MIB), &segment), GPU_OK));
    plim_block_allocated(segment + 512, 1024);
    plim_shadow_write(segment + 512, "abcd", 4);
    plim_block_freed(segment + 512);
    expect_states(segment + 512, "----");
    plim_shadow_write(segment + 512, "abcd", 4);
    plim_block_allocated(segment, 4096);
    expect_states(segment + 512, "----");
    plim_machine_destroy(machine, machine_fd);
}

static void expect_block(uintptr_t inside, uintptr_t at, size_t bytes)
{
    struct plim_block block = plim_block_find(inside);
    cr_expect(eq(u64, block.at, at));
    cr_expect(eq(sz, block.bytes, bytes));
}

Test(block, around_an_address_is_a_block_a_gap_or_an_allocation)
{
    uintptr_t segment;
    make_machine("A100-SXM4-80GB", 1, 10 * MIB);
    cr_assert(eq(int, plim_self_use(0), GPU_OK));
    cr_assert(eq(int, plim_heap_allocate(0, (size_t)(2 * MIB), &segment), GPU_OK));
    expect_block(segment + 77, segment, (size_t)(2 * MIB));
    plim_block_allocated(segment + 512, 512);
    plim_block_allocated(segment + 4096, 512);
    expect_block(segment + 600, segment + 512, 512);
    expect_block(segment + 2000, segment + 1024, 3072);
    cr_expect(eq(sz, plim_block_find(1234).bytes, 0));
    plim_machine_destroy(machine, machine_fd);
}
