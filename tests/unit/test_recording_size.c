/* Sizes of a recording as functions of batch and length. */
#include "devices/open.h"
#include "workloads/recording/play.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static const struct plim_recorded_point grid[] = {{2, 64}, {2, 128}, {2, 192}, {2, 256}, {3, 256},
                                                  {4, 64}, {4, 128}, {4, 192}, {4, 256}};
enum { POINTS = sizeof(grid) / sizeof(grid[0]) };

static struct plim_recorded_size fit(int64_t (*bytes_of)(int64_t b, int64_t s))
{
    struct plim_recorded_size size;
    int64_t bytes[POINTS];
    for (size_t i = 0; i < POINTS; i++) bytes[i] = bytes_of(grid[i].batch, grid[i].seq);
    cr_assert(eq(int, plim_recorded_size_fit(grid, bytes, POINTS, &size), PLIM_OK));
    return size;
}

static int64_t at(const struct plim_recorded_size *size, int64_t batch, int64_t seq)
{
    return plim_recorded_size_at(size, (struct plim_recorded_point){batch, seq}, NULL);
}

static int64_t attention(int64_t b, int64_t s) { return 16 * b * s * s + 24 * b * s + 8 * b + 512; }
static int64_t constant(int64_t b, int64_t s) { (void)b, (void)s; return 4096; }
static int64_t positions(int64_t b, int64_t s) { (void)b; return 8 * s + 8; }
static int64_t cubic(int64_t b, int64_t s) { return b * s * s * s; }
static int64_t steps_of_batch(int64_t b, int64_t s) { return (b + 1) / 2 * 1024 + s; }

Test(recording_size, products_of_dimensions_are_exact_where_nothing_was_recorded)
{
    int64_t (*const all[])(int64_t, int64_t) = {attention, constant, positions};
    for (size_t i = 0; i < 3; i++) {
        const struct plim_recorded_size size = fit(all[i]);
        cr_expect(not(size.is_table), "%zu", i);
        cr_expect(eq(i64, at(&size, 37, 1000), all[i](37, 1000)), "%zu", i);
    }
}

/* Chunks of 256 tokens, the last of which is not full; half a chunk more, and it is one more. */
Test(recording_size, what_is_kept_of_chunks_is_exact_between_recorded_lengths)
{
    static const struct plim_recorded_point points[] = {{2, 150000}, {2, 225000}, {2, 300000}};
    int64_t bytes[3], others[3];
    for (size_t i = 0; i < 3; i++) {
        bytes[i] = (points[i].seq + 255) / 256 * 65536;
        others[i] = bytes[i] + (i == 1);
    }
    struct plim_recorded_size size;
    cr_assert(eq(int, plim_recorded_size_fit(points, bytes, 3, &size), PLIM_OK));
    cr_expect(not(size.is_table));
    cr_expect(eq(i64, at(&size, 2, 256 * 1000), 65536 * 1000));
    cr_expect(eq(i64, at(&size, 2, 256 * 1000 + 1), 65536 * 1001));
    cr_assert(eq(int, plim_recorded_size_fit(points, others, 3, &size), PLIM_OK));
    cr_expect(size.is_table);
    free(size.entries);
}

/* Of three lengths one is the proof: of a square there is one, of a square, a line and a constant none. */
Test(recording_size, three_lengths_show_a_square_but_not_three_terms)
{
    struct plim_recorded_point points[6];
    int64_t squares[6], sums[6];
    for (size_t i = 0; i < 6; i++) {
        points[i] = (struct plim_recorded_point){4 + (int64_t)(i / 3), 1024 + 512 * (int64_t)(i % 3)};
        const int64_t b = points[i].batch, s = points[i].seq;
        squares[i] = 8 * b * s * s;
        sums[i] = 8 * b * s * s + 2 * b * s + 16 * b;
    }
    struct plim_recorded_size size;
    cr_assert(eq(int, plim_recorded_size_fit(points, squares, 6, &size), PLIM_OK));
    cr_expect(not(size.is_table));
    cr_expect(eq(i64, at(&size, 9, 700), 8 * INT64_C(9) * 700 * 700));
    cr_assert(eq(int, plim_recorded_size_fit(points, sums, 6, &size), PLIM_OK));
    cr_expect(size.is_table);
    free(size.entries);
}

/* Losses of all pairs and of all triplets. */
Test(recording_size, of_one_length_squares_and_cubes_of_the_batch_are_seen)
{
    static const int64_t batches[] = {1, 2, 3, 4, 6, 9};
    struct plim_recorded_point points[6];
    int64_t pairs[6], triplets[6], others[6];
    for (size_t i = 0; i < 6; i++) {
        int64_t b = batches[i];
        points[i] = (struct plim_recorded_point){b, 1};
        pairs[i] = 2 * b * b - 2 * b + 8;
        triplets[i] = 4 * b * b * b;
        others[i] = b * b * b + b * b + b + 1;
    }
    struct plim_recorded_size size;
    cr_assert(eq(int, plim_recorded_size_fit(points, triplets, 4, &size), PLIM_OK));
    cr_expect(not(size.is_table));
    cr_expect(eq(i64, at(&size, 128, 1), 4 * INT64_C(128) * 128 * 128));
    cr_assert(eq(int, plim_recorded_size_fit(points, pairs, 4, &size), PLIM_OK));
    cr_expect(eq(i64, at(&size, 1000, 1), 2 * INT64_C(1000) * 1000 - 2 * 1000 + 8));
    for (size_t count = 4; count <= 5; count++) { /* four terms take five */
        cr_assert(eq(int, plim_recorded_size_fit(points, others, count, &size), PLIM_OK));
        cr_expect(eq(int, size.is_table, count == 4));
        if (!size.is_table) cr_expect(eq(i64, at(&size, 10, 1), 1111));
        if (size.is_table) free(size.entries);
    }
}

/* A batch that is rounded up to a power of two, and a workspace that is larger for some. */
Test(recording_size, behind_the_last_batch_a_table_that_grows_goes_on_with_it)
{
    static const struct plim_recorded_point points[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}};
    static const int64_t rounded[] = {8, 16, 32, 32}, workspace[] = {512, 4096, 64, 512};
    struct plim_recorded_size size;
    cr_assert(eq(int, plim_recorded_size_fit(points, rounded, 4, &size), PLIM_OK));
    cr_assert(size.is_table);
    cr_expect(eq(i64, at(&size, 4, 1), 32));
    cr_expect(eq(i64, at(&size, 64, 1), 512));
    cr_expect(eq(i64, plim_recorded_size_guessed(&size, (struct plim_recorded_point){64, 1}), 512));
    free(size.entries);
    cr_assert(eq(int, plim_recorded_size_fit(points, workspace, 4, &size), PLIM_OK));
    cr_expect(eq(i64, at(&size, 64, 1), 512));
    cr_expect(eq(i64, plim_recorded_size_guessed(&size, (struct plim_recorded_point){64, 1}), 4096));
    free(size.entries);
}

Test(recording_size, what_is_no_polynomial_is_a_table)
{
    int64_t (*const all[])(int64_t, int64_t) = {cubic, steps_of_batch};
    for (size_t i = 0; i < 2; i++) {
        struct plim_recorded_size size = fit(all[i]);
        cr_expect(size.is_table, "%zu", i);
        for (size_t k = 0; k < POINTS; k++) {
            cr_expect(eq(i64, at(&size, grid[k].batch, grid[k].seq),
                         all[i](grid[k].batch, grid[k].seq)));
            cr_expect(eq(i64, plim_recorded_size_guessed(&size, grid[k]), 0));
        }
        cr_expect(eq(i64, plim_recorded_size_guessed(&size, (struct plim_recorded_point){4, 200}), all[i](4, 256)));
        cr_expect(eq(i64, at(&size, 3, 200), all[i](3, 256))); /* the next that was recorded */
        cr_expect(eq(i64, at(&size, 9, 999), all[i](4, 256))); /* the last */
        free(size.entries);
    }
}

Test(recording_size, a_line_through_two_points_alone_proves_nothing)
{
    static const struct plim_recorded_point points[] = {{1, 1}, {2, 1}};
    static const int64_t bytes[] = {100, 230};
    struct plim_recorded_size size;
    cr_assert(eq(int, plim_recorded_size_fit(points, bytes, 2, &size), PLIM_OK));
    cr_expect(size.is_table);
    free(size.entries);
}

Test(recording_size, beyond_any_memory_and_below_one_byte_is_none)
{
    struct plim_recorded_size size = {.terms = {0, 0, 0, 0, 0, INT64_C(1) << 60}};
    cr_expect(eq(i64, at(&size, 1, 1), INT64_C(1) << 60));
    cr_expect(eq(i64, at(&size, 2, 1), -1));
    cr_expect(eq(i64, at(&size, INT64_C(1) << 40, INT64_C(1) << 40), -1));
    size.terms[5] = -1;
    cr_expect(eq(i64, at(&size, 1, 1), -1));
}

static int64_t pairs_of(int64_t b) { return b * (b - 1) / 2; }
static int64_t triplets_of(int64_t b) { return b * (b - 1) * (b - 2) / 6; }

static void expect_of_batch(int64_t of(int64_t batch), const char *text)
{
    static const int64_t batches[] = {3, 4, 5, 6, 8, 24};
    enum { COUNT = 6 };
    struct plim_recorded_point points[COUNT];
    struct plim_recorded_size size;
    int64_t bytes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        points[i] = (struct plim_recorded_point){batches[i], 1};
        bytes[i] = of(batches[i]);
    }
    cr_assert(eq(int, plim_recorded_size_fit(points, bytes, COUNT, &size), PLIM_OK));
    cr_expect(not(size.is_table), "%s", text);
    for (int64_t b = 3; b < 400; b++)
        cr_expect(eq(i64, plim_recorded_size_at(&size, (struct plim_recorded_point){b, 1}, NULL), of(b)), "%s", text);
    free(size.entries);
}

/* Of different samples, as masks of triangles have them: whole numbers whose coefficients are not. */
Test(recorded_size, pairs_and_triplets_of_different_samples_are_polynomials)
{
    expect_of_batch(pairs_of, "pairs");
    expect_of_batch(triplets_of, "triplets");
}

/* --- other GPUs ------------------------------------------------------------------------------- */

static uint64_t sizes_on(const char *uri, struct plim_recorded_size *size, int64_t batch)
{
    const struct plim_recorded_stream stream = {.from = {1, 1}, .sizes = {.items = size, .count = 1, .capacity = 1}};
    struct plim_device *device;
    struct plim_player *player;
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_recorded_point point = {batch, 1};
    uint64_t sizes = 0;
    cr_assert(eq(int, plim_device_open(uri, &device, &err), PLIM_OK));
    cr_assert(eq(int, plim_player_create(device, NULL, &player, &err), PLIM_OK));
    cr_assert(eq(int, plim_player_sizes(player, &stream, point, &sizes, &err), PLIM_OK), "%s", err.text);
    plim_player_destroy(&player);
    plim_device_close(&device);
    return sizes;
}

/* What blocks share of a sum goes by the multiprocessors, of which these have 82 and 28. */
Test(recording_size, sizes_are_those_of_another_gpu_but_where_reductions_need_scratch)
{
    const char *large = "sim:RTX-3090", *small = "sim:RTX-3060-12GB";
    struct plim_recorded_size plain = {.terms = {0, 512}},
                              sum = {.scratch = PLIM_RECORDED_PARTIALS, .launch = {.partial_bytes = 4, .vector = 4},
                                     .outputs = {64}, .terms = {0, 512}};
    bool differ = false;
    cr_expect(sizes_on(large, &plain, 8) == sizes_on(small, &plain, 8));
    cr_expect(sizes_on(large, &plain, 8) != sizes_on(large, &plain, 9));
    for (int64_t b = 1; b <= 4096; b *= 2) differ |= sizes_on(large, &sum, b) != sizes_on(small, &sum, b);
    cr_expect(differ);
}
