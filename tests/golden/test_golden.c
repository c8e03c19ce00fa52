/* Every training run that PyTorch made on the virtual GPU (cases.jsonl: the project's golden runs;
 * more.jsonl: small and odd models made with the same script), run by the engine on the simulated
 * device and compared byte for byte. One test a case; its message names the case and the figure. */
#include "autotune/base/status.h"
#include "devices/sim/sim.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1 << 16 };

struct golden_case {
    char line[LINE];
    char folder[512];
};

static int index_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    cr_assert_fail("unknown name in the case file: %s", name);
    return -1;
}

static int64_t integer(const json_t *object, const char *key, int64_t absent)
{
    const json_t *value = json_object_get(object, key);
    return value ? json_integer_value(value) : absent;
}

static const char *text(const json_t *object, const char *key, const char *absent)
{
    const json_t *value = json_object_get(object, key);
    return value ? json_string_value(value) : absent;
}

static void read_lora(const json_t *lora, struct plim_lora *out)
{
    if (!lora) return;
    const json_t *targets = json_object_get(lora, "target_modules");
    out->r = integer(lora, "r", 0);
    out->dropout = json_number_value(json_object_get(lora, "dropout"));
    out->target_count = json_array_size(targets);
    for (size_t i = 0; i < out->target_count; i++)
        snprintf(out->targets[i], sizeof out->targets[i], "%s",
                 json_string_value(json_array_get(targets, i)));
}

static void read_setting(const json_t *c, struct plim_setting *s)
{
    *s = (struct plim_setting){
        .micro_batch = integer(c, "batch", 0),
        .seq = integer(c, "seq", 0),
        .accumulation = integer(c, "accumulation", 1),
        .precision = (enum plim_precision)index_of(plim_precision_names, PLIM_PRECISION_COUNT,
                                                   text(c, "precision", "")),
        .optimizer = (enum plim_optimizer)index_of(plim_optimizer_names, PLIM_OPTIMIZER_COUNT,
                                                   text(c, "optimizer", "")),
        .checkpointing = (enum plim_checkpointing)index_of(
            plim_checkpointing_names, PLIM_CHECKPOINTING_COUNT, text(c, "checkpointing", "")),
        .attention = (enum plim_attention)index_of(plim_attention_names, PLIM_ATTENTION_COUNT,
                                                   text(c, "attention", "sdpa")),
        .clip = json_is_true(json_object_get(c, "clip")) ? 1.0 : 0,
    };
    read_lora(json_object_get(c, "lora"), &s->lora);
}

/* The cards that the virtual GPU plays (oracle/virtual_cuda/cudart.c), and the limit of the run. */
static struct plim_device *open_card(const json_t *c)
{
    static const struct {
        int capability;
        const char *name;
    } cards[] = {{80, "A100-SXM4-80GB"},
                 {90, "H100-SXM5-80GB"},
                 {86, "RTX-3090"},
                 {89, "L40S"},
                 {75, "Quadro-RTX-6000"}};
    const json_t *fit = json_object_get(c, "fit");
    int64_t capacity = fit ? integer(fit, "capacity_bytes", 0) : (int64_t)1 << 46;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device = NULL;
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const struct plim_gpu *gpu;
        if (cards[i].capability != integer(c, "compute_capability", 80)) continue;
        cr_assert_eq(plim_catalogue_find(cards[i].name, &gpu, &err), PLIM_OK, "%s", err.text);
        cr_assert_eq(plim_sim_open_gpu(gpu, capacity, &device, &err), PLIM_OK, "%s", err.text);
    }
    cr_assert_not_null(device);
    return device;
}

static void replay(struct plim_device *device, const struct plim_spec *spec,
                   const struct plim_setting *setting, struct plim_replay *out)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replay_run(replayer, &spec->model, setting, out, &err), PLIM_OK, "%s",
                 err.text);
    plim_replayer_destroy(&replayer);
}

static void expect(const char *id, int step, const char *figure, int64_t ours, const json_t *theirs)
{
    int64_t want = integer(theirs, figure, -1);
    cr_expect_eq(ours, want, "%s: step %d, %s: %lld, PyTorch %lld (%+lld)", id, step, figure,
                 (long long)ours, (long long)want, (long long)(ours - want));
}

static void compare(const json_t *c, const struct plim_replay *r)
{
    const char *id = text(c, "id", "?");
    const json_t *steps = json_object_get(c, "steps");
    cr_assert_eq(r->verdict, PLIM_OK, "%s: %s", id, r->why);
    cr_expect_eq(r->parameters, integer(c, "parameters", 0), "%s: parameters", id);
    cr_expect_eq(r->trainable_parameters, integer(c, "trainable_parameters", 0),
                 "%s: trainable parameters", id);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        const json_t *theirs = json_array_get(steps, (size_t)i);
        const struct plim_replay_step *ours = &r->step[i];
        expect(id, i + 1, "after_forward", ours->after_forward_bytes, theirs);
        expect(id, i + 1, "peak_allocated", ours->peak_allocated_bytes, theirs);
        expect(id, i + 1, "end_allocated", ours->end_allocated_bytes, theirs);
        expect(id, i + 1, "peak_reserved", ours->peak_reserved_bytes, theirs);
        expect(id, i + 1, "end_reserved", ours->end_reserved_bytes, theirs);
        expect(id, i + 1, "peak_requested", ours->peak_requested_bytes, theirs);
    }
}

ParameterizedTestParameters(golden, allocates_what_pytorch_allocates)
{
    const char *path = getenv("PLIM_GOLDEN_CASES");
    FILE *file = path ? fopen(path, "r") : NULL;
    size_t count = 0, capacity = 512;
    struct golden_case *cases = cr_malloc(capacity * sizeof *cases);
    while (file && count < capacity && fgets(cases[count].line, LINE, file)) {
        snprintf(cases[count].folder, sizeof cases[count].folder, "%s", path);
        *strrchr(cases[count].folder, '/') = '\0';
        count++;
    }
    if (file) fclose(file);
    return cr_make_param_array(struct golden_case, cases, count);
}

ParameterizedTest(struct golden_case *given, golden, allocates_what_pytorch_allocates)
{
    json_t *c = json_loads(given->line, 0, NULL);
    cr_assert_not_null(c);
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", given->folder, text(c, "config", ""));
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_spec spec;
    cr_assert_eq(plim_spec_load(path, &spec, &err), PLIM_OK, "%s", err.text);
    if (json_object_get(c, "dropout")) plim_spec_set_dropout(&spec, 0);
    struct plim_setting setting;
    read_setting(c, &setting);
    struct plim_device *device = open_card(c);
    static struct plim_replay r;
    replay(device, &spec, &setting, &r);
    compare(c, &r);
    if (json_object_get(c, "fit")) { /* and not one sample more */
        setting.micro_batch++;
        replay(device, &spec, &setting, &r);
        cr_expect_eq(r.verdict, PLIM_OOM, "%s: batch %lld fits too", text(c, "id", "?"),
                     (long long)setting.micro_batch);
    }
    plim_device_close(&device);
    json_decref(c);
}
