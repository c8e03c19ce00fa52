/* The records of scripts/gpu-suite, replayed without a GPU: the search, given the answers that the
 * GPU gave then, must decide as it did. A search that asks for what no record answers has changed
 * its questions: then the GPU has to be asked again (PENDING.md). */
#include "autotune/cli/common.h"
#include "autotune/run/run_device_internal.h"
#include "autotune/search/decide.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* --- a recorded tune -------------------------------------------------------------------------- */

struct tune {
    const char *name;
    const json_t *report;
    struct plim_request request;
    struct plim_spec spec;
    struct plim_spec_question question;
    struct plim_run_device twin;
    struct plim_run_options options;
    struct plim_replay replay; /* of the last run */
    const char *unknown; /* the query that is not recorded; NULL: none */
};

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The options as they were typed. Their texts are the record's. */
static void read_request(struct tune *t, const json_t *request)
{
    enum { WORDS = 64 };
    char *words[WORDS];
    int count = 0;
    size_t i;
    json_t *option;
    struct plim_error err = PLIM_ERROR_INIT;
    words[count++] = (char *)text(request, "subject");
    words[count++] = "--device";
    words[count++] = (char *)text(request, "device");
    json_array_foreach(json_object_get(request, "options"), i, option)
    {
        cr_assert_lt(count, WORDS);
        words[count++] = (char *)json_string_value(option);
    }
    cr_assert_eq(plim_options_parse(count, words, PLIM_COMMAND_TUNE, &t->request, &err), PLIM_OK,
                 "%s: %s", t->name, err.text);
    cr_assert_eq(plim_common_spec(&t->request, NULL, &t->spec, &err), PLIM_OK, "%s: %s", t->name,
                 err.text);
    t->spec.made_on = PLIM_MADE_ON_GPU; /* as the recorded needs were, before models were moved */
}

/* As run_device_real.c makes it, from what the report says of the GPU. */
static void make_twin(struct tune *t)
{
    const json_t *device = json_object_get(t->report, "device");
    const json_t *limit = json_object_get(t->report, "limit");
    const struct plim_gpu *like = NULL;
    struct plim_run_device *twin = &t->twin;
    struct plim_error err = PLIM_ERROR_INIT;
    int capability = (int)integer(device, "compute_capability");
    if (plim_catalogue_find(text(device, "name"), &like, NULL) != PLIM_OK) like = NULL;
    for (size_t i = 0; !like && i < plim_catalogue_count(); i++)
        if (plim_catalogue_at(i)->compute_capability == capability) like = plim_catalogue_at(i);
    cr_assert_not_null(like, "%s: compute capability %d", t->name, capability);
    twin->gpu = *like;
    twin->gpu.compute_capability = capability;
    twin->gpu.multiprocessors = (int)integer(device, "multiprocessors");
    twin->gpu.total_bytes = twin->info.total_bytes = integer(device, "total_bytes");
    twin->limit.budget_bytes = integer(limit, "budget_bytes");
    plim_spec_question_make(&t->spec, t->request.objective, &t->question);
    t->options = (struct plim_run_options){.allowance = &t->request.allowance,
                                           .question = &t->question};
    twin->options = &t->options;
    cr_assert_eq(plim_allocator_config_parse(text(limit, "alloc_conf"), &twin->allocator, &err),
                 PLIM_OK, "%s: %s", t->name, err.text);
    twin->planner = plim_run_simulator(twin);
}

/* --- what the GPU answered ------------------------------------------------------------------- */

static bool is_of(const struct tune *t, const json_t *sample, const struct plim_setting *s)
{
    static const char *const names[] = {"precision", "optimizer", "checkpointing", "attention"};
    const struct plim_axes *axes = &t->question.question.axes;
    bool same = integer(sample, "micro_batch") == s->micro_batch &&
                integer(sample, "seq") == plim_axes_seq(axes, s) &&
                integer(sample, "accumulation") == s->accumulation;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char room[PLIM_AXIS_TEXT];
        size_t axis = (size_t)plim_axes_find(axes, names[i]);
        same &= !strcmp(text(sample, names[i]), plim_axes_text(axes, s, axis, room));
    }
    return same;
}

static enum plim_status verdict_of(const json_t *sample)
{
    static const struct {
        const char *name;
        enum plim_status verdict;
    } names[] = {{"ok", PLIM_OK},
                 {"oom", PLIM_OOM},
                 {"lost", PLIM_LOST},
                 {"unsupported", PLIM_UNSUPPORTED},
                 {"timeout", PLIM_TIMEOUT},
                 {"crashed", PLIM_CRASHED},
                 {"unstable", PLIM_UNSTABLE}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text(sample, "verdict"), names[i].name)) return names[i].verdict;
    return PLIM_INTERNAL;
}

/* What decides is the record's, the rest the twin's. */
static void answer(const json_t *sample, struct plim_replay *out)
{
    const json_t *peak = json_object_get(sample, "peak");
    out->verdict = verdict_of(sample);
    if (out->verdict == PLIM_OOM) out->oom_asked_bytes = 1;
    if (out->verdict != PLIM_OK) return;
    out->peak_allocated_bytes = integer(peak, "allocated_bytes");
    out->peak_reserved_bytes = integer(peak, "reserved_bytes");
    out->step[PLIM_REPLAY_STEPS - 1].seconds =
        json_number_value(json_object_get(sample, "seconds"));
}

static void describe(const struct tune *t, const struct plim_setting *s, char out[128])
{
    char room[PLIM_AXIS_TEXT];
    const struct plim_axes *axes = &t->question.question.axes;
    size_t checkpointing = (size_t)plim_axes_find(axes, "checkpointing");
    snprintf(out, 128, "batch %lld, seq %lld, accumulation %lld, checkpointing %s",
             (long long)s->micro_batch, (long long)plim_axes_seq(axes, s),
             (long long)s->accumulation, plim_axes_text(axes, s, checkpointing, room));
}

static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct tune *t = user;
    size_t i;
    json_t *sample;
    static char unknown[128];
    enum plim_status st = plim_run_simulate(&t->twin, setting, PLIM_RUN_UNLIMITED, &t->replay, err);
    bool known = mode == PLIM_RUN_UNLIMITED;
    if (st) return st;
    json_array_foreach(json_object_get(t->report, "samples"), i, sample)
    {
        if (known || !is_of(t, sample, setting)) continue;
        answer(sample, &t->replay);
        known = true;
    }
    plim_run_trial(&t->replay, out);
    if (known) return PLIM_OK;
    describe(t, setting, unknown);
    t->unknown = unknown;
    return plim_fail(err, PLIM_INTERNAL, "not recorded");
}

/* --- the decision ----------------------------------------------------------------------------- */

static void expect_choice(const struct tune *t, const char *key, bool found,
                          const struct plim_candidate *ours)
{
    const json_t *theirs = json_object_get(t->report, key);
    cr_expect_eq(found, json_is_object(theirs), "%s: %s", t->name, key);
    if (found && json_is_object(theirs)) {
        char now[128];
        describe(t, &ours->setting, now);
        cr_expect(is_of(t, theirs, &ours->setting), "%s: %s: %s; then it was %lld, %lld, %s",
                  t->name, key, now, (long long)integer(theirs, "micro_batch"),
                  (long long)integer(theirs, "seq"), text(theirs, "checkpointing"));
    }
}

static enum plim_status decide(struct tune *t, const struct plim_runner *runner,
                               const struct plim_decision *plan, struct plim_decision *out)
{
    struct plim_cache cache = {0};
    struct plim_prober prober = {.runner = runner, .cache = &cache};
    const struct plim_known known = {.plan = plan};
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = plim_decide(&t->question.question, &known, &prober, out, &err);
    cr_expect_eq(st, PLIM_OK, "%s: %s: %s", t->name, err.text, t->unknown ? t->unknown : "");
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
    return st;
}

static void replay_tune(const char *name, const json_t *recorded)
{
    static struct tune t;
    struct plim_decision plan = {0}, decision = {0};
    memset(&t, 0, sizeof t);
    t.name = name;
    t.report = json_object_get(recorded, "report");
    read_request(&t, json_object_get(recorded, "request"));
    make_twin(&t);
    struct plim_runner runner = {.run = run,
                                 .user = &t,
                                 .details_bytes = sizeof t.replay,
                                 .budget_bytes = t.twin.limit.budget_bytes,
                                 .limit_acts_early = true,
                                 .measured = true,
                                 .beyond_doubt = 1.1};
    if (decide(&t, &t.twin.planner, NULL, &plan) == PLIM_OK &&
        decide(&t, &runner, &plan, &decision) == PLIM_OK) {
        expect_choice(&t, "choice", decision.found, &decision.choice);
        expect_choice(&t, "largest_fit", decision.has_largest, &decision.largest);
    }
    plim_decision_finish(&decision);
    plim_decision_finish(&plan);
    plim_run_device_close(&t.twin);
}

/* A tune that ran out of time stopped at a place that depends on the day. */
static bool can_be_replayed(const json_t *recorded)
{
    const json_t *report = json_object_get(recorded, "report");
    return json_is_object(report) && !json_is_true(json_object_get(report, "interrupted"));
}

static int replay_record(const char *path)
{
    int count = 0;
    const char *part, *key;
    json_t *entry, *result;
    json_error_t where;
    json_t *record = json_load_file(path, 0, &where);
    cr_assert_not_null(record, "%s:%d: %s", path, where.line, where.text);
    json_object_foreach(json_object_get(record, "parts"), part, entry)
    {
        json_object_foreach(json_object_get(entry, "results"), key, result)
        {
            char name[512];
            if (!can_be_replayed(result)) continue;
            snprintf(name, sizeof name, "%s: %s: %s", strrchr(path, '/') + 1, part, key);
            replay_tune(name, result);
            count++;
        }
    }
    json_decref(record);
    return count;
}

Test(gpu_records, recorded_answers_lead_to_the_recorded_decisions)
{
    glob_t found;
    int count = 0;
    cr_assert_eq(glob(PLIM_GPU_RECORDS "/*.json", 0, NULL, &found), 0, "no records");
    for (size_t i = 0; i < found.gl_pathc; i++) count += replay_record(found.gl_pathv[i]);
    globfree(&found);
    cr_expect_gt(count, 0, "no tune in any record");
}
