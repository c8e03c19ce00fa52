/* What a forecast says of the steps to come beside what they turn out to need: of steps made of chance, with PyTorch's
 * allocator under them. */
#include "autotune/trace/forecast.h"
#include "autotune/trace/trace.h"
#include "devices/allocator/allocator.h"
#include "devices/open.h"
#include "devices/virtual/record/stream.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCKS = 60, /* of a step */
    KEPT = 12,    /* of these, until the next step has its own */
    PROGRAMS = 400,
    SEEN = 8,      /* steps of the trial */
    STEPS = 300,   /* that are made in truth */
    SURELY = 240,  /* a forecast looks as far ahead */
};

/* A training program with the allocator that it has. */
struct program {
    uint64_t chance;
    int64_t bytes[BLOCKS];
    int order[BLOCKS]; /* in which the blocks are given back */
    struct plim_device *device;
    struct plim_allocator *allocator;
    struct plim_block *held[BLOCKS], *kept[KEPT];
    int fd; /* of the stream; -1: nothing is written any more */
    uint64_t events;
};

static int64_t chance(struct program *p, int64_t most)
{
    p->chance = p->chance * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(p->chance >> 33) % most;
}

static void begin(struct program *p, uint64_t seed, const char *config, const char *path)
{
    struct plim_error err;
    struct plim_allocator_config parsed;
    *p = (struct program){.chance = seed * 977 + 13};
    for (int i = 0; i < BLOCKS; i++) {
        p->bytes[i] = chance(p, 8) ? 1 + chance(p, 60 << 20) : 1 + chance(p, 1 << 20);
        p->order[i] = i;
    }
    for (int i = BLOCKS - 1; i > 0; i--) {
        int other = (int)chance(p, i + 1), order = p->order[i];
        p->order[i] = p->order[other];
        p->order[other] = order;
    }
    cr_assert(eq(int, plim_allocator_config_parse(config, &parsed, &err), PLIM_OK));
    cr_assert(eq(int, plim_device_open("sim:80GiB", &p->device, &err), PLIM_OK));
    cr_assert(eq(int, plim_allocator_create(p->device, &parsed, &p->allocator, &err), PLIM_OK));
    p->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert(ge(int, p->fd, 0));
}

static void finish(struct program *p)
{
    plim_allocator_destroy(&p->allocator);
    plim_device_close(&p->device);
}

static void write_event(struct program *p, enum plim_stream_kind kind, uint64_t what, int64_t bytes)
{
    const struct plim_stream_event event = {.kind = (uint16_t)kind, .what = what, .bytes = bytes};
    if (p->fd < 0) return;
    off_t at = PLIM_STREAM_HEAD_BYTES + (off_t)(p->events++ * sizeof(event));
    cr_assert(eq(long, pwrite(p->fd, &event, sizeof(event), at), sizeof(event)));
}

static void stop_writing(struct program *p, uint64_t lost)
{
    const struct plim_stream_head head = {.magic = "plimstrm", .version = PLIM_STREAM_VERSION,
                                          .event_bytes = sizeof(struct plim_stream_event),
                                          .count = p->events, .lost = lost};
    cr_assert(eq(long, pwrite(p->fd, &head, sizeof(head), 0), sizeof(head)));
    close(p->fd);
    p->fd = -1;
}

static struct plim_block *take(struct program *p, int64_t bytes)
{
    struct plim_block *block;
    cr_assert(eq(int, plim_allocator_malloc(p->allocator, bytes, 0, &block), PLIM_OK));
    write_event(p, PLIM_STREAM_ALLOCATION, plim_block_address(block), plim_block_bytes(block));
    return block;
}

static void give(struct program *p, struct plim_block *block)
{
    if (!block) return;
    write_event(p, PLIM_STREAM_FREE, plim_block_address(block), 0);
    plim_allocator_free(p->allocator, block);
}

static int64_t reserved(const struct program *p)
{
    return plim_allocator_statistics(p->allocator)->reserved_peak;
}

/* The forward pass takes blocks and gives some of them back at once; the last are kept for a step. */
static void step(struct program *p)
{
    for (int i = 0; i < BLOCKS; i++) {
        p->held[i] = take(p, p->bytes[i]);
        if (i % 5 != 4) continue;
        give(p, p->held[i - 2]);
        p->held[i - 2] = NULL;
    }
    for (int i = 0; i < BLOCKS; i++) {
        int at = p->order[i], kept = at - (BLOCKS - KEPT);
        if (kept >= 0) {
            give(p, p->kept[kept]);
            p->kept[kept] = p->held[at];
        } else give(p, p->held[at]);
    }
    write_event(p, PLIM_STREAM_STEP, 0, reserved(p));
}

/* In which step segments grow first after `from`, and to what in all. */
static int truth(struct program *p, int from, int64_t *most)
{
    int grown = 0;
    int64_t before = reserved(p);
    for (int i = from + 1; i <= STEPS; i++) {
        step(p);
        if (!grown && reserved(p) > before) grown = i;
    }
    *most = reserved(p) - before;
    return grown;
}

static char folder[] = "/tmp/plim-forecast-XXXXXX", path[64];

static void make_folder(void)
{
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(path, sizeof(path), "%s/7", folder);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

TestSuite(forecast, .init = make_folder, .fini = remove_folder);

/* All steps of the trial; `lost`: events that the file does not have. */
static void train(struct program *p, uint64_t lost)
{
    for (int i = 0; i < SEEN; i++) step(p);
    stop_writing(p, lost);
}

/* Of a program with these options in its environment (NULL: none). */
static struct plim_forecast forecast_of(const char *name, const char *config)
{
    struct plim_forecast forecast;
    struct plim_error err;
    char entry[64];
    char *environment[] = {entry, NULL};
    const struct plim_forecast_allocator allocator = {.environment = config ? environment : &environment[1]};
    snprintf(entry, sizeof(entry), "PYTORCH_CUDA_ALLOC_CONF=%s", config ? config : "");
    cr_assert(eq(int, plim_forecast_make(folder, name, &allocator, &forecast, &err), PLIM_OK));
    return forecast;
}

/* Of many programs: those that grow after the trial's steps, and what was said of all. A block's rest of less than
 * 1 MiB is not known, and may make a forecast wrong. */
struct score {
    int growing, missed, wrong;
};

static struct score compare_all(const char *config)
{
    struct score score = {0};
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        struct program p;
        int64_t most;
        begin(&p, seed, config, path);
        train(&p, 0);
        struct plim_forecast forecast = forecast_of("7", config);
        int grown = truth(&p, SEEN, &most);
        finish(&p);
        cr_assert(forecast.is_known, "program %d", (int)seed);
        if (grown > SURELY) continue;
        int64_t late = grown ? forecast.steps - (grown - SEEN) : forecast.steps;
        score.growing += grown > 0;
        score.missed += grown && !forecast.steps;
        score.wrong += late < 0 || late > (grown > 0) || forecast.grown_bytes != most;
    }
    return score;
}

Test(forecast, says_in_which_step_segments_grow)
{
    struct score score = compare_all(NULL);
    cr_expect(ge(int, score.growing, PROGRAMS / 10));
    cr_expect(le(int, score.missed, PROGRAMS / 100));
    cr_expect(le(int, score.wrong, PROGRAMS / 25));
}

Test(forecast, follows_the_allocators_options)
{
    struct score score = compare_all("expandable_segments:True");
    cr_expect(ge(int, score.growing, PROGRAMS / 4));
    cr_expect(eq(int, score.missed, 0));
    cr_expect(le(int, score.wrong, PROGRAMS / 100));
}

/* What was played of the trial itself ends with other segments than PyTorch's allocator had. */
Test(forecast, is_none_where_the_allocator_does_otherwise)
{
    static const char config[] = "max_split_size_mb:24";
    struct program p;
    begin(&p, 2, config, path);
    train(&p, 0);
    finish(&p);
    cr_expect(eq(int, forecast_of("7", config).is_known, 1));
    cr_expect(eq(int, forecast_of("7", NULL).is_known, 0));
}

/* Steps that differ; a file that is cut; none. */
Test(forecast, is_none_of_what_is_not_known)
{
    struct program p;
    begin(&p, 2, NULL, path);
    for (int i = 0; i < SEEN; i++) {
        p.bytes[0] = (i + 1) << 22;
        step(&p);
    }
    stop_writing(&p, 0);
    finish(&p);
    cr_expect(eq(int, forecast_of("7", NULL).is_known, 0));
    begin(&p, 2, NULL, path);
    train(&p, 1);
    finish(&p);
    cr_expect(eq(int, forecast_of("7", NULL).is_known, 0));
    cr_expect(eq(int, forecast_of("8", NULL).is_known, 0));
}
