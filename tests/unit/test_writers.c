/* Whole reports as text, JSON and YAML: made-up results, every number another one, against the files
 * in data/reports. PLIM_WRITE_GOLDEN=1 writes those anew; what changed in them is then to be read. */
#include "autotune/base/outfile.h"
#include "reports/writer.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MIB = INT64_C(1) << 20;

static char *read_golden(const char *path)
{
    static char text[131072];
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void expect_text(const char *text, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/reports/%s", PLIM_UNIT_DATA_FOLDER, name);
    if (getenv("PLIM_WRITE_GOLDEN"))
        cr_assert(eq(int, plim_outfile_save(path, text, NULL), PLIM_OK), "%s", path);
    cr_expect(eq(str, (char *)text, read_golden(path)), "%s", name);
}

static char *written(const struct plim_report *report, const struct plim_writer *writer, bool color)
{
    char *text = NULL;
    const struct plim_style style = {.color = color};
    cr_assert(eq(int, writer->write(report, &style, &text, NULL), PLIM_OK));
    return text;
}

static void expect_golden(const struct plim_report *report, const struct plim_writer *writer,
                          bool color, const char *name)
{
    char *text = written(report, writer, color);
    expect_text(text, name);
    free(text);
}

static void push_result(struct plim_report *report, struct plim_result result)
{
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&report->results, result), PLIM_OK));
}

static void push_sample(struct plim_result *result, struct plim_result_sample sample)
{
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&result->samples, sample), PLIM_OK));
}

static void push_advice(struct plim_result *result, struct plim_result_advice advice)
{
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&result->advice, advice), PLIM_OK));
}

static void add_value(struct plim_result_setting *setting, const char *name, const char *text,
                      bool is_size)
{
    struct plim_result_value *value = &setting->values[setting->value_count++];
    snprintf(value->name, sizeof(value->name), "%s", name);
    snprintf(value->text, sizeof(value->text), "%s", text);
    value->is_size = is_size;
}

static struct plim_result_setting setting_of(int64_t micro_batch)
{
    struct plim_result_setting setting = {
        .micro_batch = micro_batch, .seq = 768, .accumulation = 3};
    add_value(&setting, "precision", "bf16-mixed", false);
    add_value(&setting, "checkpointing", "full", false);
    add_value(&setting, "sharding", micro_batch == 5 ? "zero2" : "none", false);
    return setting;
}

static struct plim_result_choice choice_of(int64_t micro_batch)
{
    return (struct plim_result_choice){
        .present = true,
        .setting = setting_of(micro_batch),
        .world = 2,
        .effective_batch = 6 * micro_batch,
        .effective_batch_target = 6 * micro_batch + 1,
        .peak = {101 * micro_batch * MIB, 120 * micro_batch * MIB, 160 * micro_batch * MIB},
        .step_seconds = 0.0625,
        .tokens_per_second = 73728.0 * (double)micro_batch,
        .samples_per_second = 96.0 * (double)micro_batch,
        .mfu = 0.375,
        .verified = true};
}

static void head(struct plim_result *r)
{
    r->spec = (struct plim_result_spec){.name = "model",
                                        .source = "a/model.yaml",
                                        .hash = 0xabcdef,
                                        .parameters = 1234,
                                        .trainable_parameters = 567,
                                        .config = "train.yaml (some trainer)",
                                        .unplanned = "torch_compile, noise"};
    r->device = (struct plim_result_device){.name = "GPU 9000",
                                            .uri = "sim:GPU-9000",
                                            .simulated = true,
                                            .total_bytes = 2048 * MIB,
                                            .compute_capability = 89,
                                            .multiprocessors = 76};
    r->limit = (struct plim_result_limit){.usable_bytes = 2000 * MIB,
                                          .overhead_bytes = 200 * MIB,
                                          .margin_bytes = 100 * MIB,
                                          .budget_bytes = 1700 * MIB,
                                          .overhead_measured_bytes = 199 * MIB,
                                          .overhead_source = "measured",
                                          .alloc_conf = "expandable_segments:True"};
    r->breakdown = (struct plim_result_breakdown){.present = true,
                                                  .parameters_bytes = 11 * MIB,
                                                  .gradients_bytes = 22 * MIB,
                                                  .optimizer_bytes = 133 * MIB,
                                                  .activations_bytes = 244 * MIB,
                                                  .logits_bytes = 99 * MIB,
                                                  .temporaries_bytes = 55 * MIB,
                                                  .workspace_bytes = 366 * MIB,
                                                  .cached_bytes = 277 * MIB,
                                                  .overhead_bytes = 188 * MIB};
    r->time = (struct plim_result_time){.matmul_seconds = 0.25,
                                        .attention_seconds = 0.0625,
                                        .other_seconds = 0.125,
                                        .copies_seconds = 0.00025, /* too little for a row */
                                        .waits_seconds = 0.03125,
                                        .idle_seconds = 0.015625};
    r->all_reduce = (struct plim_result_all_reduce){.bytes_per_second = 24e9,
                                                    .why_not = "ncclCommInitAll: internal error"};
    r->seconds = 1.5;
}

/* A decision with everything that one can have. */
static struct plim_report full_decision(void)
{
    struct plim_report report = {0};
    struct plim_result r = {.kind = PLIM_RESULT_DECISION};
    head(&r);
    r.all_reduce = (struct plim_result_all_reduce){.bytes_per_second = 2.5e11,
                                                   .latency_seconds = 2.5e-5,
                                                   .gpus = 4,
                                                   .waits_seconds = 0.0125,
                                                   .nccl = "2.28.9"};
    r.spec.host_speed = 1.5;
    r.profile = "balanced";
    snprintf(r.waterfall, sizeof(r.waterfall), "precision,seq");
    r.choice = choice_of(5);
    r.choice.phase_count = 2;
    r.choice.phases[0] = (struct plim_result_phase){0, 3, 30};
    r.choice.phases[1] = (struct plim_result_phase){4, 1, 10};
    r.largest_fit = choice_of(7);
    r.largest_fit.verified = false;
    r.largest_fit.host_bound = true;
    r.next = (struct plim_result_next){8, "oom", "out of memory: 3 MiB more"};
    r.prediction = (struct plim_result_prediction){0.03125, 640 * MIB, 9};
    r.segment_count = 2;
    r.segments[0] = (struct plim_result_segments){0, 3, 6 * MIB};
    r.segments[1] = (struct plim_result_segments){2 * MIB, 4, 14 * MIB};
    plim_result_reason(&r, "Micro-batch 6 does not divide the effective batch of 30, and this "
                           "sentence is longer than a line of the report may be.");
    plim_result_reason(&r, "Short.");
    struct plim_result_sample quiet = {.setting = setting_of(5),
                                       .verdict = "ok",
                                       .peak = {1 * MIB, 2 * MIB, 3 * MIB},
                                       .seconds = 0.5,
                                       .simulated = true,
                                       .repeats = 6,
                                       .attention_engine = "cuDNN"},
                              noisy = {.setting = setting_of(8), .verdict = "oom", .noisy = true};
    add_value(&noisy.setting, "images", "64", true);
    push_sample(&r, quiet);
    push_sample(&r, noisy);
    struct plim_result_advice fits = {"checkpointing full", {1 * MIB, 2 * MIB, 3 * MIB}, true},
                              large = {"micro-batch 1", {4 * MIB, 5 * MIB, 6 * MIB}, false};
    push_advice(&r, fits);
    push_advice(&r, large);
    push_result(&report, r);
    return report;
}

Test(writers, a_full_decision)
{
    struct plim_report report = full_decision();
    expect_golden(&report, &plim_writer_json, false, "decision.json");
    expect_golden(&report, &plim_writer_yaml, false, "decision.yaml");
    expect_golden(&report, &plim_writer_text, false, "decision.txt");
    expect_golden(&report, &plim_writer_text, true, "decision.color.txt");
    plim_report_finish(&report);
}

Test(writers, nothing_was_found)
{
    struct plim_report report = {0};
    struct plim_result r = {.kind = PLIM_RESULT_DECISION, .device = {.name = "GPU"}, .seconds = 2};
    r.short_bytes = 3 * MIB;
    push_result(&report, r);
    expect_golden(&report, &plim_writer_json, false, "nothing.json");
    expect_golden(&report, &plim_writer_text, false, "nothing.txt");
    report.results.items[0].interrupted = true;
    expect_golden(&report, &plim_writer_text, false, "no_answer.txt");
    expect_golden(&report, &plim_writer_json, false, "no_answer.json");
    plim_report_finish(&report);
}

static struct plim_report explanation(bool fits)
{
    struct plim_report report = {0};
    struct plim_result r = {.kind = PLIM_RESULT_EXPLANATION, .fits = fits, .step_count = 2};
    head(&r);
    r.choice = choice_of(5);
    r.short_bytes = fits ? 0 : 77 * MIB;
    r.interrupted = !fits;
    for (int i = 0; i < 2; i++)
        r.steps[i] =
            (struct plim_result_step){(i + 1) * MIB, (i + 3) * MIB, (i + 5) * MIB, (i + 7) * MIB};
    push_result(&report, r);
    return report;
}

Test(writers, an_explanation)
{
    struct plim_report fits = explanation(true), does_not = explanation(false);
    expect_golden(&fits, &plim_writer_json, false, "explanation.json");
    expect_golden(&fits, &plim_writer_text, false, "explanation.txt");
    expect_golden(&does_not, &plim_writer_json, false, "too_large.json");
    expect_golden(&does_not, &plim_writer_text, false, "too_large.txt");
    plim_report_finish(&fits);
    plim_report_finish(&does_not);
}

/* A step of four moments, as it is drawn. */
Test(writers, an_explanation_with_a_timeline)
{
    static const char *const phases[] = {"forward", "forward", "backward", "optimizer"};
    struct plim_report report = explanation(true);
    struct plim_result *r = &report.results.items[0];
    r->timeline_micro_steps = 2;
    r->device.tdp_watts = 450;
    r->device.gpus = 1;
    for (int i = 0; i < 4; i++) {
        struct plim_result_moment moment = {.seconds = i * 0.25, .memory = r->breakdown};
        snprintf(moment.phase, sizeof(moment.phase), "%s", phases[i]);
        moment.memory.activations_bytes = (i + 1) * 100 * MIB;
        moment.memory.communication_bytes = i * MIB;
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&r->timeline, moment), PLIM_OK));
    }
    expect_golden(&report, &plim_writer_json, false, "timeline.json");
    expect_golden(&report, &plim_writer_svg, false, "timeline.svg");
    plim_report_finish(&report);
}

/* A page with all that one can have. */
Test(writers, a_page)
{
    struct plim_report report = full_decision();
    expect_golden(&report, &plim_writer_html, false, "decision.html");
    plim_report_finish(&report);
}

/* What a program's process shows: no tensors, no sequence, sizes of its own. */
Test(writers, a_program)
{
    struct plim_report report = full_decision();
    struct plim_result *r = &report.results.items[0];
    r->is_program = true;
    r->breakdown.present = false;
    r->choice.setting = (struct plim_result_setting){.accumulation = 1};
    add_value(&r->choice.setting, "images", "64", true);
    r->choice.mfu = 0;
    r->samples.items[0].setting.seq = 0;
    r->samples.items[0].setting.value_count = 0;
    r->question_count = 2;
    r->questions[0] = (struct plim_result_question){.place = "train.py:9", .kernel = "at::native::reduce_kernel",
                                                    .use = "decides", .count = 3, .bytes = 1, .turned = 14};
    r->questions[1] = (struct plim_result_question){.use = "kept", .count = 40, .bytes = 4, .answer = 8663};
    snprintf(r->assumptions, sizeof(r->assumptions), "learned numbers are finite");
    expect_golden(&report, &plim_writer_text, false, "program.txt");
    expect_golden(&report, &plim_writer_json, false, "program.json");
    r->choice.present = false;
    r->ended = PLIM_LOST;
    r->interrupted = true;
    expect_golden(&report, &plim_writer_text, false, "program_fails.txt");
    plim_report_finish(&report);
}

Test(writers, several_devices)
{
    struct plim_report report = full_decision();
    struct plim_result none = {.device = {.name = "A GPU with a name of many letters"}};
    report.is_table = true;
    report.results.items[0].tier = "max";
    push_result(&report, none);
    none.short_bytes = 12 * MIB;
    push_result(&report, none);
    none.interrupted = true;
    push_result(&report, none);
    expect_golden(&report, &plim_writer_text, true, "table.txt");
    expect_golden(&report, &plim_writer_json, false, "table.json");
    plim_report_finish(&report);
}

/* The share of the memory's bar and the digits of a step's time, where they change. */
Test(writers, numbers_are_rounded_as_people_read_them)
{
    static const double seconds[] = {0.01234, 0.09999, 0.1, 0.999, 1, 9.99, 10, 99.9, 100, 1234};
    struct plim_report report = explanation(true);
    struct plim_result *r = &report.results.items[0];
    char all[16384] = "";
    r->step_count = 0;
    for (int i = 0; i < 10; i++) {
        r->choice.step_seconds = seconds[i];
        r->choice.tokens_per_second = 999 / seconds[i] / seconds[i];
        r->choice.peak = (struct plim_result_peak){i * 100 * MIB, i * 200 * MIB, i * 250 * MIB};
        r->choice.world = 1 + i % 2;
        r->choice.effective_batch = i;
        char *text = written(&report, &plim_writer_text, false);
        strncat(all, text, sizeof(all) - strlen(all) - 1);
        free(text);
    }
    expect_text(all, "rounded.txt");
    plim_report_finish(&report);
}

Test(writers, there_is_room_for_so_many_reasons)
{
    struct plim_result r = {0};
    for (int i = 0; i < PLIM_RESULT_REASONS + 3; i++) plim_result_reason(&r, "reason %d", i);
    cr_expect(eq(sz, r.reason_count, PLIM_RESULT_REASONS));
    cr_expect(eq(str, r.reasons[0], (char *)"reason 0"));
    cr_expect(eq(str, r.reasons[PLIM_RESULT_REASONS - 1], (char *)"reason 23"));
}

Test(writers, finishing_nothing_is_fine)
{
    plim_result_finish(NULL);
    plim_report_finish(NULL);
}

Test(writers, a_writer_is_chosen_by_the_extension)
{
    static const struct {
        const char *path;
        const struct plim_writer *writer;
    } paths[] = {{"a.json", &plim_writer_json},
                 {"b.c/a.YAML", &plim_writer_yaml},
                 {"a.json.yml", &plim_writer_yaml},
                 {"a.Txt", &plim_writer_text},
                 {"a.html", &plim_writer_html},
                 {"a.svg", &plim_writer_svg},
                 {"a.png", &plim_writer_png},
                 {"json", NULL},
                 {"a.jso", NULL},
                 {"a.json/b", NULL},
                 {"a.", NULL}};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const struct plim_writer *writer = NULL;
        struct plim_error err = PLIM_ERROR_INIT;
        enum plim_status st = plim_writer_for_path(paths[i].path, &writer, &err);
        cr_expect(eq(int, st, paths[i].writer ? PLIM_OK : PLIM_INVALID), "%s", paths[i].path);
        if (!st) cr_expect(eq(ptr, (void *)writer, (void *)paths[i].writer), "%s", paths[i].path);
    }
}
