#include "tree.h"
#include <inttypes.h>
#include <stdio.h>

/* In a result 0 means "not known", and what is not known is absent. */
static void known_int(struct plim_json *json, json_t *parent, const char *key, int64_t value)
{
    if (value) plim_json_int(json, parent, key, value);
}

static void known_number(struct plim_json *json, json_t *parent, const char *key, double value)
{
    if (value > 0) plim_json_number(json, parent, key, value);
}

static void known_text(struct plim_json *json, json_t *parent, const char *key, const char *text)
{
    if (text && *text) plim_json_text(json, parent, key, text);
}

static void add_spec(struct plim_json *json, json_t *root, const struct plim_result_spec *spec)
{
    char hash[20];
    snprintf(hash, sizeof(hash), "%016" PRIx64, spec->hash);
    json_t *node = plim_json_object(json, root, "spec");
    plim_json_text(json, node, "name", spec->name);
    plim_json_text(json, node, "source", spec->source);
    plim_json_text(json, node, "hash", hash);
    known_int(json, node, "parameters", spec->parameters);
    known_int(json, node, "trainable_parameters", spec->trainable_parameters);
    if (spec->lora[0]) plim_json_text(json, node, "lora", spec->lora);
    known_text(json, node, "quantization", spec->quantization);
    if (spec->use_reentrant[0]) plim_json_bool(json, node, "use_reentrant", !strcmp(spec->use_reentrant, "true"));
    known_number(json, node, "host_speed", spec->host_speed);
    if (spec->defaults[0]) plim_json_text(json, node, "defaults", spec->defaults);
    known_text(json, node, "config", spec->config);
    known_text(json, node, "unplanned", spec->unplanned);
    if (!spec->options.count) return;
    json_t *list = plim_json_array(json, node, "options");
    for (size_t i = 0; i < spec->options.count; i++) {
        json_t *option = plim_json_object(json, list, NULL);
        plim_json_text(json, option, "key", spec->options.items[i].key);
        plim_json_text(json, option, "value", spec->options.items[i].value);
    }
}

static void add_device(struct plim_json *json, json_t *root,
                       const struct plim_result_device *device)
{
    json_t *node = plim_json_object(json, root, "device");
    plim_json_text(json, node, "name", device->name);
    plim_json_text(json, node, "uri", device->uri);
    plim_json_bool(json, node, "simulated", device->simulated);
    known_text(json, node, "based_on", device->based_on);
    known_int(json, node, "total_bytes", device->total_bytes);
    known_int(json, node, "compute_capability", device->compute_capability);
    known_int(json, node, "multiprocessors", device->multiprocessors);
    known_int(json, node, "tdp_watts", device->tdp_watts);
    known_int(json, node, "gpus", device->gpus);
}

static void add_limit(struct plim_json *json, json_t *root, const struct plim_result_limit *limit)
{
    json_t *node = plim_json_object(json, root, "limit");
    plim_json_int(json, node, "usable_bytes", limit->usable_bytes);
    plim_json_int(json, node, "overhead_bytes", limit->overhead_bytes);
    known_int(json, node, "vllm_bytes", limit->vllm_bytes);
    known_text(json, node, "overhead_source", limit->overhead_source);
    known_int(json, node, "overhead_measured_bytes", limit->overhead_measured_bytes);
    plim_json_int(json, node, "margin_bytes", limit->margin_bytes);
    plim_json_int(json, node, "budget_bytes", limit->budget_bytes);
    known_text(json, node, "alloc_conf", limit->alloc_conf);
}

static void add_peak(struct plim_json *json, json_t *parent, const struct plim_result_peak *peak)
{
    if (!peak->reserved_bytes) return;
    json_t *node = plim_json_object(json, parent, "peak");
    known_int(json, node, "allocated_bytes", peak->allocated_bytes);
    known_int(json, node, "reserved_bytes", peak->reserved_bytes);
    known_int(json, node, "device_bytes", peak->device_bytes);
}

static void add_values(struct plim_json *json, json_t *node,
                       const struct plim_result_setting *setting)
{
    for (size_t i = 0; i < setting->value_count; i++)
        if (!setting->values[i].is_size)
            known_text(json, node, setting->values[i].name, setting->values[i].text);
    json_t *sizes = plim_json_object(json, node, "sizes");
    for (size_t i = 0; i < setting->value_count; i++)
        if (setting->values[i].is_size)
            plim_json_text(json, sizes, setting->values[i].name, setting->values[i].text);
}

static void add_phases(struct plim_json *json, json_t *node,
                       const struct plim_result_choice *choice)
{
    if (!choice->phase_count) return;
    json_t *list = plim_json_array(json, node, "accumulation_schedule");
    for (size_t i = 0; i < choice->phase_count; i++) {
        json_t *phase = plim_json_object(json, list, NULL);
        plim_json_int(json, phase, "epoch", choice->phases[i].epoch);
        plim_json_int(json, phase, "accumulation", choice->phases[i].accumulation);
        plim_json_int(json, phase, "effective_batch", choice->phases[i].effective_batch);
    }
}

static void fill_choice(struct plim_json *json, json_t *node,
                        const struct plim_result_choice *choice, bool with_peak)
{
    known_int(json, node, "micro_batch", choice->setting.micro_batch);
    known_int(json, node, "seq", choice->setting.seq);
    plim_json_int(json, node, "accumulation", choice->setting.accumulation);
    plim_json_int(json, node, "world", choice->world);
    plim_json_int(json, node, "effective_batch", choice->effective_batch);
    known_int(json, node, "effective_batch_target", choice->effective_batch_target);
    add_phases(json, node, choice);
    add_values(json, node, &choice->setting);
    if (with_peak) add_peak(json, node, &choice->peak);
    known_number(json, node, "step_seconds", choice->step_seconds);
    known_number(json, node, "tokens_per_second", choice->tokens_per_second);
    known_number(json, node, "samples_per_second", choice->samples_per_second);
    if (choice->host_bound) plim_json_bool(json, node, "host_bound", true);
    known_number(json, node, "mfu", choice->mfu);
    plim_json_bool(json, node, "verified", choice->verified);
    known_int(json, node, "repeats_after_steps", choice->repeats_after_steps);
}

/* NULL when there is no such choice: then the key says null. */
static json_t *add_choice(struct plim_json *json, json_t *root, const char *key,
                          const struct plim_result_choice *choice, bool with_peak)
{
    if (!choice->present) {
        plim_json_null(json, root, key);
        return NULL;
    }
    json_t *node = plim_json_object(json, root, key);
    fill_choice(json, node, choice, with_peak);
    return node;
}

/* The key "fits" is absent where that was not tried. */
static void add_points(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    if (!result->points.count) return;
    json_t *list = plim_json_array(json, root, "points");
    for (size_t i = 0; i < result->points.count; i++) {
        const struct plim_result_point *point = &result->points.items[i];
        json_t *node = plim_json_object(json, list, NULL);
        if (point->best.present) {
            fill_choice(json, node, &point->best, true);
        } else {
            known_int(json, node, "seq", point->best.setting.seq);
            add_values(json, node, &point->best.setting);
        }
        plim_json_text(json, node, "verdict", point->verdict);
        if (strcmp(point->verdict, "untried") != 0)
            plim_json_bool(json, node, "fits", point->best.present);
        plim_json_bool(json, node, "chosen", point->chosen);
        known_int(json, node, "short_bytes", point->short_bytes);
        known_number(json, node, point->best.setting.seq ? "tokens_per_second_at_most"
                                                         : "samples_per_second_at_most",
                     point->rate_limit);
        known_text(json, node, "why", point->why);
    }
}

static void add_next(struct plim_json *json, json_t *parent, const struct plim_result_next *next)
{
    if (!parent || !next->micro_batch) return;
    json_t *node = plim_json_object(json, parent, "next");
    plim_json_int(json, node, "micro_batch", next->micro_batch);
    known_text(json, node, "verdict", next->verdict);
    known_text(json, node, "why", next->why);
}

/* A class without bytes at the peak is a measured 0, and is said; not where it was inferred. */
static void add_breakdown(struct plim_json *json, json_t *root,
                          const struct plim_result_breakdown *b)
{
    char key[48];
    if (!b->present) return;
    json_t *node = plim_json_object(json, root, "breakdown");
    for (int i = 0; i < PLIM_RESULT_CLASSES; i++) {
        int64_t bytes = plim_result_class_bytes(b, i);
        snprintf(key, sizeof(key), "%s_bytes", plim_result_class_name(i));
        if (bytes || (!b->inferred && i != PLIM_RESULT_OTHER))
            plim_json_int(json, node, key, bytes);
    }
    if (b->inferred) plim_json_bool(json, node, "inferred", true);
    plim_json_int(json, node, "cached_bytes", b->cached_bytes);
    plim_json_int(json, node, "overhead_bytes", b->overhead_bytes);
    known_int(json, node, "managed_bytes", b->managed_bytes);
    known_int(json, node, "host_bytes", b->host_bytes);
    if (b->rank0_reserved_bytes) plim_json_int(json, node, "rank", b->rank);
    known_int(json, node, "rank0_reserved_bytes", b->rank0_reserved_bytes);
}

static void add_time(struct plim_json *json, json_t *root, const struct plim_result_time *time)
{
    if (plim_result_time_all(time) <= 0) return;
    json_t *node = plim_json_object(json, root, "time");
#define ADD_SECONDS(name, words) plim_json_number(json, node, #name "_seconds", time->name##_seconds);
    PLIM_RESULT_TIME_MAP(ADD_SECONDS)
#undef ADD_SECONDS
}

static void add_all_reduce(struct plim_json *json, json_t *root,
                           const struct plim_result_all_reduce *a)
{
    if (a->bytes_per_second <= 0) return;
    json_t *node = plim_json_object(json, root, "all_reduce");
    plim_json_bool(json, node, "measured", a->gpus > 0);
    known_int(json, node, "gpus", a->gpus);
    plim_json_number(json, node, "bytes_per_second", a->bytes_per_second);
    if (a->gpus) plim_json_number(json, node, "latency_seconds", a->latency_seconds);
    known_number(json, node, "waits_seconds", a->waits_seconds);
    known_text(json, node, "nccl", a->nccl);
    known_text(json, node, "why_not", a->why_not);
}

static void add_reasons(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    json_t *list = plim_json_array(json, root, "why");
    for (size_t i = 0; i < result->reason_count; i++)
        plim_json_text(json, list, NULL, result->reasons[i]);
}

static void add_samples(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    json_t *list = plim_json_array(json, root, "samples");
    for (size_t i = 0; i < result->samples.count; i++) {
        const struct plim_result_sample *sample = &result->samples.items[i];
        json_t *node = plim_json_object(json, list, NULL);
        known_int(json, node, "micro_batch", sample->setting.micro_batch);
        known_int(json, node, "seq", sample->setting.seq);
        plim_json_int(json, node, "accumulation", sample->setting.accumulation);
        add_values(json, node, &sample->setting);
        plim_json_text(json, node, "verdict", sample->verdict);
        add_peak(json, node, &sample->peak);
        known_number(json, node, "seconds", sample->seconds);
        plim_json_bool(json, node, "simulated", sample->simulated);
        known_int(json, node, "repeats", sample->repeats);
        if (sample->noisy) plim_json_bool(json, node, "noisy", true);
        if (sample->attention_engine[0])
            plim_json_text(json, node, "attention_engine", sample->attention_engine);
    }
}

static void add_advice(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    json_t *list = plim_json_array(json, root, "advice");
    for (size_t i = 0; i < result->advice.count; i++) {
        const struct plim_result_advice *advice = &result->advice.items[i];
        json_t *node = plim_json_object(json, list, NULL);
        plim_json_text(json, node, "change", advice->change);
        add_peak(json, node, &advice->peak);
        plim_json_bool(json, node, "fits", advice->fits);
    }
}

static void add_segments(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    if (!result->segment_count) return;
    json_t *list = plim_json_array(json, root, "segments");
    for (size_t i = 0; i < result->segment_count; i++) {
        json_t *node = plim_json_object(json, list, NULL);
        plim_json_int(json, node, "from_bytes", result->segments[i].from_bytes);
        plim_json_int(json, node, "count", result->segments[i].count);
        plim_json_int(json, node, "bytes", result->segments[i].bytes);
    }
}

/* What is only shown or kept steers nothing, as far as it is seen. */
static bool is_shown(const struct plim_result_question *question)
{
    return !strcmp(question->use, "shown") || !strcmp(question->use, "kept");
}

static void add_questions(struct plim_json *json, json_t *root, const char *key, bool shown,
                          const struct plim_result *result)
{
    json_t *list = plim_json_array(json, root, key);
    for (size_t i = 0; i < result->question_count; i++) {
        const struct plim_result_question *question = &result->questions[i];
        if (is_shown(question) != shown) continue;
        json_t *node = plim_json_object(json, list, NULL);
        known_text(json, node, "place", question->place);
        known_text(json, node, "kernel", question->kernel);
        plim_json_text(json, node, "use", question->use);
        plim_json_int(json, node, "count", question->count);
        plim_json_int(json, node, "bytes", question->bytes);
        plim_json_int(json, node, "answer", question->answer);
        plim_json_int(json, node, "turned", question->turned);
    }
}

/* On a real GPU a program's values are those that they are. */
static void add_values_read(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    bool are_known = result->device.simulated && (result->is_program || result->question_count);
    if (are_known) {
        add_questions(json, root, "unknown_reads", false, result);
        add_questions(json, root, "shown_reads", true, result);
        known_text(json, root, "assumptions", result->assumptions);
    }
    if (are_known || result->is_doubtful)
        plim_json_bool(json, root, "uncertain", plim_result_is_uncertain(result));
}

static void add_evaluation(struct plim_json *json, json_t *root, const struct plim_result_evaluation *evaluation)
{
    if (!evaluation->reserved_bytes) return;
    json_t *node = plim_json_object(json, root, "evaluation");
    plim_json_int(json, node, "peak_allocated_bytes", evaluation->allocated_bytes);
    plim_json_int(json, node, "peak_reserved_bytes", evaluation->reserved_bytes);
}

static void add_steps(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    json_t *list = plim_json_array(json, root, "steps");
    for (size_t i = 0; i < result->step_count; i++) {
        const struct plim_result_step *step = &result->steps[i];
        json_t *node = plim_json_object(json, list, NULL);
        if (step->after_forward_bytes) /* not known of a recording */
            plim_json_int(json, node, "after_forward_bytes", step->after_forward_bytes);
        plim_json_int(json, node, "peak_allocated_bytes", step->peak_allocated_bytes);
        plim_json_int(json, node, "peak_reserved_bytes", step->peak_reserved_bytes);
        plim_json_int(json, node, "end_allocated_bytes", step->end_allocated_bytes);
    }
}

static void add_timeline(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    if (!result->timeline.count) return;
    plim_json_int(json, root, "timeline_micro_steps", result->timeline_micro_steps);
    json_t *list = plim_json_array(json, root, "timeline");
    for (size_t i = 0; i < result->timeline.count; i++) {
        const struct plim_result_moment *moment = &result->timeline.items[i];
        json_t *node = plim_json_object(json, list, NULL);
        plim_json_number(json, node, "seconds", moment->seconds);
        plim_json_text(json, node, "phase", moment->phase);
        add_breakdown(json, node, &moment->memory);
    }
}

static void add_head(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    add_spec(json, root, &result->spec);
    add_device(json, root, &result->device);
    add_limit(json, root, &result->limit);
}

static void add_prediction(struct plim_json *json, json_t *root,
                           const struct plim_result_prediction *p)
{
    if (p->step_seconds <= 0) return;
    json_t *node = plim_json_object(json, root, "prediction");
    plim_json_number(json, node, "step_seconds", p->step_seconds);
    plim_json_int(json, node, "reserved_bytes", p->reserved_bytes);
    known_int(json, node, "largest_micro_batch", p->largest_micro_batch);
}

static void fill_decision(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    known_text(json, root, "objective", result->objective);
    known_text(json, root, "profile", result->profile);
    known_text(json, root, "tier", result->tier);
    known_text(json, root, "waterfall", result->waterfall);
    if (result->is_program) plim_json_bool(json, root, "program", true);
    add_head(json, root, result);
    add_choice(json, root, "choice", &result->choice, true);
    json_t *largest = add_choice(json, root, "largest_fit", &result->largest_fit, true);
    add_next(json, largest, &result->next);
    add_points(json, root, result);
    add_prediction(json, root, &result->prediction);
    add_breakdown(json, root, &result->breakdown);
    add_time(json, root, &result->time);
    add_all_reduce(json, root, &result->all_reduce);
    add_evaluation(json, root, &result->evaluation);
    add_segments(json, root, result);
    add_values_read(json, root, result);
    add_reasons(json, root, result);
    known_int(json, root, "short_bytes", result->short_bytes);
    add_samples(json, root, result);
    add_advice(json, root, result);
    add_timeline(json, root, result);
    if (result->unsupported) plim_json_bool(json, root, "unsupported", true);
    if (result->interrupted) plim_json_bool(json, root, "interrupted", true);
    plim_json_number(json, root, "seconds", result->seconds);
}

static void fill_explanation(struct plim_json *json, json_t *root, const struct plim_result *result)
{
    add_head(json, root, result);
    add_choice(json, root, "setting", &result->choice, false);
    add_peak(json, root, &result->choice.peak);
    add_breakdown(json, root, &result->breakdown);
    add_time(json, root, &result->time);
    add_all_reduce(json, root, &result->all_reduce);
    add_evaluation(json, root, &result->evaluation);
    plim_json_bool(json, root, "fits", result->fits);
    known_int(json, root, "short_bytes", result->short_bytes);
    add_values_read(json, root, result);
    add_reasons(json, root, result);
    add_advice(json, root, result);
    add_steps(json, root, result);
    add_timeline(json, root, result);
    if (result->interrupted) plim_json_bool(json, root, "interrupted", true);
}

static void fill_result(struct plim_json *json, json_t *root, const struct plim_result *result,
                        const char *version)
{
    bool explains = result->kind == PLIM_RESULT_EXPLANATION;
    plim_json_text(json, root, "schema", explains ? "plimsoll.explain/1" : "plimsoll.result/1");
    known_text(json, root, "version", version);
    if (explains) fill_explanation(json, root, result);
    else fill_decision(json, root, result);
}

void plim_report_tree(const struct plim_report *report, struct plim_json *json)
{
    json_t *root = plim_json_object(json, NULL, NULL);
    if (!report->is_table) {
        if (report->results.count)
            fill_result(json, root, &report->results.items[0], report->version);
        return;
    }
    plim_json_text(json, root, "schema", "plimsoll.plan/1");
    known_text(json, root, "version", report->version);
    json_t *list = plim_json_array(json, root, "results");
    for (size_t i = 0; i < report->results.count; i++)
        fill_result(json, plim_json_object(json, list, NULL), &report->results.items[i], NULL);
}
