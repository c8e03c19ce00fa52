/* What PyTorch's allocator did, line by line (tests/golden/traces and extra, which says its own
 * settings; those of the others are from the README beside the originals). */
#include "support/allocator_trace.h"
#include "support/fake_device.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <stdio.h>

struct recorded {
    char name[40];
    char conf[64];          /* "": as in the file */
    int64_t capacity_bytes; /* 0: as in the file */
    int steps, memory;      /* step lines and S s M m lines it has */
};

static struct recorded recorded[] = {
    {"gpt2-b1-s64", "", 0, 3, 115},
    {"gpt2-b15-expandable", "expandable_segments:True", 25769803776, 3, 144},
    {"gpt2-b15-max-split-128", "max_split_size_mb:128,garbage_collection_threshold:0.8", 0, 3, 212},
    {"resnet50", "", 0, 3, 102},
    {"tinyllama-bf16-ckpt", "", 0, 3, 381},
    {"tinyllama-bf16-ckpt-at-12.5GB", "", 12500000000, 3, 557},
    {"extra/streams", "", 0, 6, 100},
    {"extra/record-stream", "", 0, 6, 121},
    {"extra/roundup", "", 0, 6, 110},
    {"extra/fraction-gc", "", 0, 6, 132},
    {"extra/max-split-oom", "", 0, 6, 230},
    {"extra/expandable-oom", "", 0, 6, 130},
    {"extra/large-segment", "", 0, 6, 106},
};

struct replay {
    struct allocator_trace trace;
    struct fake_device device;
    struct plim_allocator *allocator;
    struct plim_error err;
    int steps, memory;
};

static void open_replay(struct replay *r, const struct recorded *what, const char *conf)
{
    char path[512];
    struct plim_allocator_config config;
    snprintf(path, sizeof(path), "%s/%s.trace", allocator_traces_folder, what->name);
    cr_assert(eq(int, allocator_trace_read(path, &r->trace, &r->err), PLIM_OK), "%s", r->err.text);
    if (what->capacity_bytes) r->trace.capacity_bytes = what->capacity_bytes;
    cr_assert(eq(int, plim_allocator_config_parse(*conf ? conf : r->trace.conf, &config, &r->err),
                 PLIM_OK), "%s", r->err.text);
    fake_device_init(&r->device, r->trace.capacity_bytes);
    cr_assert(eq(int, plim_allocator_create(&r->device.base, &config, &r->allocator, &r->err),
                 PLIM_OK));
}

static enum plim_status run(struct replay *r)
{
    return allocator_trace_check(&r->trace, r->allocator, &r->steps, &r->memory, &r->err);
}

static void close_replay(struct replay *r)
{
    plim_allocator_destroy(&r->allocator);
    fake_device_finish(&r->device);
    allocator_trace_finish(&r->trace);
}

ParameterizedTestParameters(allocator_traces, equals_pytorch_line_by_line)
{
    return cr_make_param_array(struct recorded, recorded, sizeof(recorded) / sizeof(recorded[0]));
}

ParameterizedTest(struct recorded *what, allocator_traces, equals_pytorch_line_by_line)
{
    struct replay r = {0};
    open_replay(&r, what, what->conf);
    cr_expect(eq(int, run(&r), PLIM_OK), "%s: %s", what->name, r.err.text);
    cr_expect(eq(int, r.steps, what->steps), "%s", what->name);
    cr_expect(eq(int, r.memory, what->memory), "%s", what->name);
    close_replay(&r);
}

Test(allocator_traces, a_reset_allocator_repeats_itself)
{
    struct replay r = {0};
    open_replay(&r, &recorded[5], "");
    for (int i = 0; i < 3; i++) {
        cr_expect(eq(int, run(&r), PLIM_OK), "replay %d: %s", i, r.err.text);
        plim_allocator_reset(r.allocator);
        cr_expect(eq(i64, r.device.used_bytes, 0));
    }
    cr_expect(eq(int, r.device.misuses, 0));
    close_replay(&r);
}

/* The comparison itself must see a difference. */
Test(allocator_traces, other_settings_do_not_pass)
{
    struct replay r = {0};
    open_replay(&r, &recorded[0], "expandable_segments:True");
    cr_expect(eq(int, run(&r), PLIM_INTERNAL));
    cr_expect(eq(str, r.err.text, "line 2: expected S 155189248, got M 167772160"));
    close_replay(&r);
}
