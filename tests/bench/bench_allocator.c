/* Events (mallocs and frees) a second of the caching allocator on a recorded training run, reset
 * for each replay as a search does. One line of JSON a trace. */
#include "autotune/base/clock.h"
#include "tests/support/allocator_trace.h"
#include "tests/support/fake_device.h"

#include <stdio.h>

enum { ROUNDS = 7 };
#define ROUND_SECONDS 0.2

struct event {
    int64_t bytes; /* 0: the block is freed */
    size_t id;
};

struct bench {
    struct event *events;
    size_t count;
    struct plim_block **blocks;
    struct plim_allocator *allocator;
};

static enum plim_status replay(struct bench *b)
{
    plim_allocator_reset(b->allocator);
    for (size_t i = 0; i < b->count; i++) {
        const struct event *e = &b->events[i];
        if (e->bytes == 0) {
            plim_allocator_free(b->allocator, b->blocks[e->id]);
            continue;
        }
        enum plim_status st = plim_allocator_malloc(b->allocator, e->bytes, 0, &b->blocks[e->id]);
        if (st != PLIM_OK) return st;
    }
    return PLIM_OK;
}

/* The best round: the others were disturbed. */
static enum plim_status best_round(struct bench *b, double *events_per_second)
{
    *events_per_second = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = plim_clock_seconds(), seconds = 0;
        size_t replays = 0;
        for (; seconds < ROUND_SECONDS; replays++, seconds = plim_clock_seconds() - start) {
            enum plim_status st = replay(b);
            if (st != PLIM_OK) return st;
        }
        double rate = (double)(replays * b->count) / seconds;
        if (rate > *events_per_second) *events_per_second = rate;
    }
    return PLIM_OK;
}

static enum plim_status measure(const char *name, const char *conf, struct plim_error *err)
{
    char path[1024];
    struct allocator_trace trace = {0};
    struct fake_device device = {0};
    struct bench b = {0};
    struct plim_allocator_config config;
    double rate;
    enum plim_status st = plim_allocator_config_parse(conf, &config, err);
    if (st != PLIM_OK) return st;
    snprintf(path, sizeof(path), "%s/%s.trace", allocator_traces_folder, name);
    PLIM_TRY(allocator_trace_read(path, &trace, err));
    fake_device_init(&device, trace.capacity_bytes);
    PLIM_TRY(plim_allocator_create(&device.base, &config, &b.allocator, err));
    b.events = calloc(trace.events.count, sizeof(*b.events));
    b.blocks = calloc(trace.ids, sizeof(*b.blocks));
    st = b.events && b.blocks ? PLIM_OK : PLIM_NOMEM;
    for (size_t i = 0; st == PLIM_OK && i < trace.events.count; i++) {
        const struct trace_event *e = &trace.events.items[i];
        if (e->kind == 'a' || e->kind == 'f') b.events[b.count++] = (struct event){e->bytes, e->id};
    }
    if (st == PLIM_OK) PLIM_TRY(best_round(&b, &rate));
    if (st == PLIM_OK)
        printf("{\"bench\": \"allocator\", \"trace\": \"%s\", \"conf\": \"%s\", \"events\": %zu, "
               "\"events_per_second\": %.0f, \"replay_seconds\": %.6f}\n",
               name, conf, b.count, rate, (double)b.count / rate);
out:
    plim_allocator_destroy(&b.allocator);
    fake_device_finish(&device);
    allocator_trace_finish(&trace);
    free(b.events);
    free(b.blocks);
    return st;
}

int main(void)
{
    static const struct {
        const char *name, *conf;
    } runs[] = {
        {"tinyllama-bf16-ckpt", ""},
        {"tinyllama-bf16-ckpt", "expandable_segments:True"},
        {"gpt2-b1-s64", ""},
        {"resnet50", ""},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = measure(runs[i].name, runs[i].conf, &err);
        if (st != PLIM_OK) {
            fprintf(stderr, "bench_allocator: %s: %s\n", plim_status_text(st), err.text);
            return 1;
        }
    }
    return 0;
}
