/* Every training run that PyTorch made on the virtual GPU (cases.jsonl, cases-packed.jsonl: the
 * project's golden runs; more.jsonl: small and odd models made with the same script), or on a real one
 * (h100.jsonl), run by the engine on the simulated device and compared byte for byte. One test a case; its
 * message names the case and the number. Each operation of theirs has a kernel on a GPU, too. */
#include "autotune/base/status.h"
#include "devices/sim/sim.h"
#include "support/case_file.h"
#include "support/planned.h"
#include "workloads/spec/family.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The GPUs that the virtual GPU plays (oracle/virtual_cuda/cudart.c), and the limit of the run. */
static struct plim_device *open_gpu(const json_t *c)
{
    static const struct {
        int capability;
        const char *name;
    } gpus[] = {{80, "A100-SXM4-80GB"},
                 {90, "H100-SXM5-80GB"},
                 {86, "RTX-3090"},
                 {89, "L40S"},
                 {75, "Quadro-RTX-6000"}};
    const json_t *fit = json_object_get(c, "fit");
    int64_t capacity = fit ? case_integer(fit, "capacity_bytes", 0) : (int64_t)1 << 46;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device = NULL;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        const struct plim_gpu *gpu;
        if (gpus[i].capability != case_integer(c, "compute_capability", 80)) continue;
        cr_assert_eq(plim_catalogue_find(gpus[i].name, &gpu, &err), PLIM_OK, "%s", err.text);
        struct plim_gpu as_then = *gpu;
        as_then.ascending = true;
        cr_assert_eq(plim_sim_open_gpu(&as_then, capacity, &device, &err), PLIM_OK, "%s", err.text);
    }
    cr_assert_not_null(device);
    return device;
}

static void replay(struct plim_device *device, const struct plim_spec *spec,
                   const struct plim_train_setting *setting, struct plim_replay *out)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    const char *trace = getenv("PLIM_GOLDEN_TRACE"); /* a file: what is allocated and freed, to look for a difference */
    FILE *file = trace ? fopen(trace, "w") : NULL;
    if (file) plim_replayer_trace(replayer, file);
    cr_assert_eq(plim_replay_run(replayer, &spec->model, setting, out, &err), PLIM_OK, "%s",
                 err.text);
    plim_replayer_destroy(&replayer);
    if (file) fclose(file);
}

static void expect(const char *id, int step, const char *number, int64_t ours, const json_t *theirs)
{
    int64_t want = case_integer(theirs, number, -1);
    cr_expect_eq(ours, want, "%s: step %d, %s: %lld, PyTorch %lld (%+lld)", id, step, number,
                 (long long)ours, (long long)want, (long long)(ours - want));
}

static void compare(const json_t *c, const struct plim_replay *r)
{
    const char *id = case_text(c, "id", "?");
    const json_t *steps = json_object_get(c, "steps");
    /* On a real GPU holes in the address space, which differ from process to process, decide which free block a
     * request takes, and with it all figures but this one. */
    bool placed_by_driver = !strcmp(case_text(c, "placement", "ascending"), "driver");
    cr_assert_eq(r->verdict, PLIM_OK, "%s: %s", id, r->why);
    cr_expect_eq(r->parameters, case_integer(c, "parameters", 0), "%s: parameters", id);
    cr_expect_eq(r->trainable_parameters, case_integer(c, "trainable_parameters", 0),
                 "%s: trainable parameters", id);
    if (json_object_get(c, "loading_peak_allocated")) {
        expect(id, 0, "loading_peak_allocated", r->loading_allocated_bytes, c);
        expect(id, 0, "loading_peak_reserved", r->loading_reserved_bytes, c);
    }
    const json_t *start = json_object_get(c, "start"); /* an evaluation before the first step */
    cr_expect_eq(!start, !r->start_allocated_bytes, "%s: evaluation before the first step", id);
    if (start) {
        expect(id, 0, "peak_requested", r->start_requested_bytes, start);
        expect(id, 0, "peak_allocated", r->start_allocated_bytes, start);
        expect(id, 0, "peak_reserved", r->start_reserved_bytes, start);
    }
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        const json_t *theirs = json_array_get(steps, (size_t)i);
        const struct plim_replay_step *ours = &r->step[i];
        expect(id, i + 1, "peak_requested", ours->peak_requested_bytes, theirs);
        if (placed_by_driver) continue;
        if (strcmp(case_text(c, "loop", "plain"), "plain") == 0) /* of the others it is not known */
            expect(id, i + 1, "after_forward", ours->after_forward_bytes, theirs);
        expect(id, i + 1, "peak_allocated", ours->peak_allocated_bytes, theirs);
        expect(id, i + 1, "end_allocated", ours->end_allocated_bytes, theirs);
        expect(id, i + 1, "peak_reserved", ours->peak_reserved_bytes, theirs);
        expect(id, i + 1, "end_reserved", ours->end_reserved_bytes, theirs);
        const json_t *evaluation = json_object_get(theirs, "evaluation");
        cr_expect_eq(!evaluation, !ours->evaluation_allocated_bytes, "%s: step %d, evaluation", id, i + 1);
        if (!evaluation) continue;
        expect(id, i + 1, "peak_requested", ours->evaluation_requested_bytes, evaluation);
        expect(id, i + 1, "peak_allocated", ours->evaluation_allocated_bytes, evaluation);
        expect(id, i + 1, "peak_reserved", ours->evaluation_reserved_bytes, evaluation);
    }
}

ParameterizedTestParameters(golden, allocates_what_pytorch_allocates)
{
    size_t count;
    struct case_line *cases = case_lines(getenv("PLIM_GOLDEN_CASES"), &count);
    return cr_make_param_array(struct case_line, cases, count);
}

/* What is learned, where config.json does not say it */
static void case_task(const json_t *c, struct plim_model_config *model)
{
    static const struct {
        const char *kind;
        enum plim_task task;
    } kinds[] = {{"classify", PLIM_TASK_CLASSIFICATION},
                 {"tokens", PLIM_TASK_TOKEN_CLASSIFICATION},
                 {"answers", PLIM_TASK_QUESTION_ANSWERING}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(case_text(c, "kind", ""), kinds[i].kind)) model->task = kinds[i].task;
    bool is_decoder = plim_family_is_decoder(model->family) && model->task == PLIM_TASK_CLASSIFICATION;
    if (is_decoder || json_object_get(c, "labels")) model->labels = case_integer(c, "labels", 2);
}

ParameterizedTest(struct case_line *given, golden, allocates_what_pytorch_allocates)
{
    json_t *c = json_loads(given->line, 0, NULL);
    cr_assert_not_null(c);
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", given->folder, case_text(c, "config", ""));
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_spec spec;
    enum plim_status st = plim_spec_load(path, &spec, &err);
    bool is_whole = json_object_get(c, "family"); /* golden.py uses its own class, else AutoModelForCausalLM */
    if (!st && !is_whole) st = plim_spec_set(&spec, "train.auto_class", "causal-lm", &err);
    if (!st && !is_whole) st = plim_spec_resolve(&spec, &err);
    cr_assert_eq(st, PLIM_OK, "%s", err.text);
    if (json_object_get(c, "dropout")) plim_spec_set_dropout(&spec, 0);
    spec.model.use_cache = json_is_true(json_object_get(c, "use_cache"));
    struct plim_train_setting setting;
    case_setting(c, &setting);
    case_resolve_lora(&spec, &setting);
    if (plim_loop_disables_dropout(setting.loop)) plim_model_disable_dropout(&spec.model);
    case_task(c, &spec.model);
    if (spec.model.task == PLIM_TASK_CLASSIFICATION && plim_family_is_decoder(spec.model.family)) {
        bool is_told = spec.model.pad_token_id != PLIM_NO_TOKEN || json_is_true(json_object_get(c, "no_padding"));
        if (!is_told) spec.model.pad_token_id = 0; /* as golden.py gives its models one */
    }
    if (spec.model.patch_size) setting.seq = spec.model.positions;
    struct plim_device *device = open_gpu(c);
    static struct plim_replay r;
    planned_watch(device);
    replay(device, &spec, &setting, &r);
    compare(c, &r);
    cr_expect_str_eq(planned_without_kernels(), "", "%s: no kernel for %s", case_text(c, "id", "?"),
                     planned_without_kernels());
    if (json_object_get(c, "fit")) { /* and not one sample more */
        setting.micro_batch++;
        replay(device, &spec, &setting, &r);
        cr_expect_eq(r.verdict, PLIM_OOM, "%s: batch %lld fits too", case_text(c, "id", "?"),
                     (long long)setting.micro_batch);
    }
    plim_device_close(&device);
    json_decref(c);
}
