#include "report_reader.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The document, and the first thing that was wrong with it: everything after that does nothing. */
struct reader {
    const struct plim_yaml *yaml;
    struct plim_error *err;
    enum plim_status status;
};

/* --- values ----------------------------------------------------------------------------------- */

/* NULL: absent, or null. */
static const struct plim_yaml_node *part(const struct reader *r,
                                         const struct plim_yaml_node *mapping, const char *key)
{
    if (r->status || !mapping || mapping->kind != PLIM_YAML_MAPPING) return NULL;
    const struct plim_yaml_node *node = plim_yaml_get(mapping, key);
    return node && !plim_yaml_is_null(node) ? node : NULL;
}

static const struct plim_yaml_node *part_of_kind(struct reader *r,
                                                 const struct plim_yaml_node *mapping,
                                                 const char *key, enum plim_yaml_kind kind)
{
    const struct plim_yaml_node *node = part(r, mapping, key);
    if (!node || node->kind == kind) return node;
    r->status = plim_yaml_fail(r->yaml, node, r->err, "%s: expected a %s", key,
                               kind == PLIM_YAML_MAPPING ? "mapping" : "list");
    return NULL;
}

static int64_t read_int(struct reader *r, const struct plim_yaml_node *mapping, const char *key)
{
    int64_t value = 0;
    const struct plim_yaml_node *node = part(r, mapping, key);
    if (node) r->status = plim_yaml_int(r->yaml, node, &value, r->err);
    return value;
}

static double read_number(struct reader *r, const struct plim_yaml_node *mapping, const char *key)
{
    double value = 0;
    const struct plim_yaml_node *node = part(r, mapping, key);
    if (node) r->status = plim_yaml_number(r->yaml, node, &value, r->err);
    return value;
}

static bool read_bool(struct reader *r, const struct plim_yaml_node *mapping, const char *key)
{
    bool value = false;
    const struct plim_yaml_node *node = part(r, mapping, key);
    if (node) r->status = plim_yaml_bool(r->yaml, node, &value, r->err);
    return value;
}

/* Cut where there is no room. */
static void read_text(struct reader *r, const struct plim_yaml_node *mapping, const char *key,
                      char *out, size_t size)
{
    const char *text = "";
    const struct plim_yaml_node *node = part(r, mapping, key);
    if (node) r->status = plim_yaml_text(r->yaml, node, &text, r->err);
    snprintf(out, size, "%s", text);
}

#define READ_TEXT(r, mapping, key, field) read_text(r, mapping, key, field, sizeof(field))

/* Of texts that a result knows by a static name. NULL: absent, or not one of them. */
static const char *read_name(struct reader *r, const struct plim_yaml_node *mapping,
                             const char *key)
{
    static const char *const names[] = {
        "ok", "oom", "unsupported", "lost", "timeout", "crashed", "unstable", "untried",
        "estimate", "given", "measured",
        "shown", "kept", "checked", "given", "decides",
        "throughput", "balanced", "longest-sequence", "least-memory", "largest-batch",
        "max-memory", "max-speed", "safe", "medium", "aggressive", "max"};
    char text[24];
    READ_TEXT(r, mapping, key, text);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(names[i], text)) return names[i];
    return NULL;
}

/* --- parts of a result ------------------------------------------------------------------------ */

static void read_spec(struct reader *r, const struct plim_yaml_node *root,
                      struct plim_result *result)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "spec", PLIM_YAML_MAPPING);
    struct plim_result_spec *spec = &result->spec;
    char hash[24], key[sizeof(spec->options.items->key)];
    const char *value = NULL;
    READ_TEXT(r, node, "name", spec->name);
    READ_TEXT(r, node, "source", spec->source);
    READ_TEXT(r, node, "hash", hash);
    spec->hash = strtoull(hash, NULL, 16);
    spec->parameters = read_int(r, node, "parameters");
    spec->trainable_parameters = read_int(r, node, "trainable_parameters");
    READ_TEXT(r, node, "lora", spec->lora);
    READ_TEXT(r, node, "quantization", spec->quantization);
    READ_TEXT(r, node, "use_reentrant", spec->use_reentrant);
    spec->host_speed = read_number(r, node, "host_speed");
    READ_TEXT(r, node, "defaults", spec->defaults);
    READ_TEXT(r, node, "config", spec->config);
    READ_TEXT(r, node, "unplanned", spec->unplanned);
    const struct plim_yaml_node *list = part_of_kind(r, node, "options", PLIM_YAML_SEQUENCE);
    for (size_t i = 0; list && i < list->count && !r->status; i++) {
        const struct plim_yaml_node *text = part(r, list->items[i], "value");
        READ_TEXT(r, list->items[i], "key", key);
        if (text && !r->status) r->status = plim_yaml_text(r->yaml, text, &value, r->err);
        if (text && !r->status) r->status = plim_result_option(result, key, value);
    }
}

static void read_device(struct reader *r, const struct plim_yaml_node *root,
                        struct plim_result_device *device)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "device", PLIM_YAML_MAPPING);
    READ_TEXT(r, node, "name", device->name);
    READ_TEXT(r, node, "uri", device->uri);
    device->simulated = read_bool(r, node, "simulated");
    READ_TEXT(r, node, "based_on", device->based_on);
    device->total_bytes = read_int(r, node, "total_bytes");
    device->compute_capability = (int)read_int(r, node, "compute_capability");
    device->multiprocessors = (int)read_int(r, node, "multiprocessors");
    device->tdp_watts = (int)read_int(r, node, "tdp_watts");
    device->gpus = (int)read_int(r, node, "gpus");
}

static void read_limit(struct reader *r, const struct plim_yaml_node *root,
                       struct plim_result_limit *limit)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "limit", PLIM_YAML_MAPPING);
    limit->usable_bytes = read_int(r, node, "usable_bytes");
    limit->overhead_bytes = read_int(r, node, "overhead_bytes");
    limit->vllm_bytes = read_int(r, node, "vllm_bytes");
    limit->overhead_source = read_name(r, node, "overhead_source");
    limit->overhead_measured_bytes = read_int(r, node, "overhead_measured_bytes");
    limit->margin_bytes = read_int(r, node, "margin_bytes");
    limit->budget_bytes = read_int(r, node, "budget_bytes");
    READ_TEXT(r, node, "alloc_conf", limit->alloc_conf);
}

static void read_all_reduce(struct reader *r, const struct plim_yaml_node *root,
                            struct plim_result_all_reduce *a)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "all_reduce", PLIM_YAML_MAPPING);
    a->gpus = (int)read_int(r, node, "gpus");
    a->bytes_per_second = read_number(r, node, "bytes_per_second");
    a->latency_seconds = read_number(r, node, "latency_seconds");
    a->waits_seconds = read_number(r, node, "waits_seconds");
    READ_TEXT(r, node, "nccl", a->nccl);
    READ_TEXT(r, node, "why_not", a->why_not);
}

static void read_peak(struct reader *r, const struct plim_yaml_node *parent,
                      struct plim_result_peak *peak)
{
    const struct plim_yaml_node *node = part_of_kind(r, parent, "peak", PLIM_YAML_MAPPING);
    peak->allocated_bytes = read_int(r, node, "allocated_bytes");
    peak->reserved_bytes = read_int(r, node, "reserved_bytes");
    peak->device_bytes = read_int(r, node, "device_bytes");
}

/* What a setting has besides the values along its axes. */
static bool is_axis(const char *key)
{
    static const char *const others[] = {
        "micro_batch", "seq", "accumulation", "world", "effective_batch", "effective_batch_target",
        "step_seconds", "tokens_per_second", "samples_per_second", "host_bound", "mfu", "verified",
        "repeats_after_steps", "verdict", "fits", "chosen", "short_bytes",
        "tokens_per_second_at_most", "samples_per_second_at_most", "why", "seconds", "simulated",
        "repeats", "noisy", "attention_engine", "change"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (!strcmp(others[i], key)) return false;
    return true;
}

static void add_value(struct reader *r, const struct plim_yaml_node *mapping, size_t index,
                      bool is_size, struct plim_result_setting *setting)
{
    const char *key = mapping->keys[index]->text;
    if (setting->value_count == PLIM_RESULT_VALUES ||
        mapping->items[index]->kind != PLIM_YAML_SCALAR)
        return;
    struct plim_result_value *value = &setting->values[setting->value_count++];
    value->is_size = is_size;
    snprintf(value->name, sizeof(value->name), "%s", key);
    READ_TEXT(r, mapping, key, value->text);
}

static void read_setting(struct reader *r, const struct plim_yaml_node *node,
                         struct plim_result_setting *setting)
{
    if (r->status || !node || node->kind != PLIM_YAML_MAPPING) return;
    setting->micro_batch = read_int(r, node, "micro_batch");
    setting->seq = read_int(r, node, "seq");
    setting->accumulation = read_int(r, node, "accumulation");
    for (size_t i = 0; i < node->count; i++)
        if (is_axis(node->keys[i]->text)) add_value(r, node, i, false, setting);
    const struct plim_yaml_node *sizes = part_of_kind(r, node, "sizes", PLIM_YAML_MAPPING);
    for (size_t i = 0; sizes && i < sizes->count; i++) add_value(r, sizes, i, true, setting);
}

static void read_phases(struct reader *r, const struct plim_yaml_node *node,
                        struct plim_result_choice *choice)
{
    const struct plim_yaml_node *list =
        part_of_kind(r, node, "accumulation_schedule", PLIM_YAML_SEQUENCE);
    for (size_t i = 0; list && i < list->count && i < PLIM_RESULT_PHASES; i++)
        choice->phases[choice->phase_count++] = (struct plim_result_phase){
            .epoch = read_int(r, list->items[i], "epoch"),
            .accumulation = read_int(r, list->items[i], "accumulation"),
            .effective_batch = read_int(r, list->items[i], "effective_batch")};
}

static void read_choice(struct reader *r, const struct plim_yaml_node *node,
                        struct plim_result_choice *choice)
{
    if (r->status || !node || node->kind != PLIM_YAML_MAPPING) return;
    choice->present = true;
    read_setting(r, node, &choice->setting);
    choice->world = read_int(r, node, "world");
    choice->effective_batch = read_int(r, node, "effective_batch");
    choice->effective_batch_target = read_int(r, node, "effective_batch_target");
    read_phases(r, node, choice);
    read_peak(r, node, &choice->peak);
    choice->step_seconds = read_number(r, node, "step_seconds");
    choice->tokens_per_second = read_number(r, node, "tokens_per_second");
    choice->samples_per_second = read_number(r, node, "samples_per_second");
    choice->host_bound = read_bool(r, node, "host_bound");
    choice->mfu = read_number(r, node, "mfu");
    choice->verified = read_bool(r, node, "verified");
    choice->repeats_after_steps = read_int(r, node, "repeats_after_steps");
}

static void read_next(struct reader *r, const struct plim_yaml_node *largest,
                      struct plim_result_next *next)
{
    const struct plim_yaml_node *node = part_of_kind(r, largest, "next", PLIM_YAML_MAPPING);
    next->micro_batch = read_int(r, node, "micro_batch");
    next->verdict = read_name(r, node, "verdict");
    READ_TEXT(r, node, "why", next->why);
}

static void read_prediction(struct reader *r, const struct plim_yaml_node *root,
                            struct plim_result_prediction *prediction)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "prediction", PLIM_YAML_MAPPING);
    prediction->step_seconds = read_number(r, node, "step_seconds");
    prediction->reserved_bytes = read_int(r, node, "reserved_bytes");
    prediction->largest_micro_batch = read_int(r, node, "largest_micro_batch");
}

static void read_breakdown(struct reader *r, const struct plim_yaml_node *root,
                           struct plim_result_breakdown *breakdown)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "breakdown", PLIM_YAML_MAPPING);
    char key[48];
    breakdown->present = node != NULL;
    breakdown->inferred = read_bool(r, node, "inferred");
    for (int i = 0; i < PLIM_RESULT_CLASSES; i++) {
        snprintf(key, sizeof(key), "%s_bytes", plim_result_class_name(i));
        *plim_result_class(breakdown, i) = read_int(r, node, key);
    }
    breakdown->cached_bytes = read_int(r, node, "cached_bytes");
    breakdown->overhead_bytes = read_int(r, node, "overhead_bytes");
    breakdown->managed_bytes = read_int(r, node, "managed_bytes");
    breakdown->host_bytes = read_int(r, node, "host_bytes");
    breakdown->rank = read_int(r, node, "rank");
    breakdown->rank0_reserved_bytes = read_int(r, node, "rank0_reserved_bytes");
}

static void read_time(struct reader *r, const struct plim_yaml_node *root,
                      struct plim_result_time *time)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "time", PLIM_YAML_MAPPING);
#define READ_SECONDS(name, words) time->name##_seconds = read_number(r, node, #name "_seconds");
    PLIM_RESULT_TIME_MAP(READ_SECONDS)
#undef READ_SECONDS
}

/* --- lists ------------------------------------------------------------------------------------ */

static void read_point(struct reader *r, const struct plim_yaml_node *node,
                       struct plim_result *result)
{
    struct plim_result_point point = {.chosen = read_bool(r, node, "chosen"),
                                      .verdict = read_name(r, node, "verdict"),
                                      .short_bytes = read_int(r, node, "short_bytes"),
                                      .rate_limit =
                                          read_number(r, node, "tokens_per_second_at_most") +
                                          read_number(r, node, "samples_per_second_at_most")};
    READ_TEXT(r, node, "why", point.why);
    if (read_bool(r, node, "fits")) read_choice(r, node, &point.best);
    else read_setting(r, node, &point.best.setting);
    if (!point.verdict) point.verdict = "untried";
    if (!r->status) r->status = PLIM_ARRAY_PUSH(&result->points, point);
}

static void read_sample(struct reader *r, const struct plim_yaml_node *node,
                        struct plim_result *result)
{
    struct plim_result_sample sample = {.verdict = read_name(r, node, "verdict"),
                                        .seconds = read_number(r, node, "seconds"),
                                        .simulated = read_bool(r, node, "simulated"),
                                        .repeats = (int)read_int(r, node, "repeats"),
                                        .noisy = read_bool(r, node, "noisy")};
    READ_TEXT(r, node, "attention_engine", sample.attention_engine);
    read_setting(r, node, &sample.setting);
    read_peak(r, node, &sample.peak);
    if (!sample.verdict) sample.verdict = "unstable";
    if (!r->status) r->status = PLIM_ARRAY_PUSH(&result->samples, sample);
}

static void read_advice(struct reader *r, const struct plim_yaml_node *node,
                        struct plim_result *result)
{
    struct plim_result_advice advice = {.fits = read_bool(r, node, "fits")};
    READ_TEXT(r, node, "change", advice.change);
    read_peak(r, node, &advice.peak);
    if (!r->status) r->status = PLIM_ARRAY_PUSH(&result->advice, advice);
}

static void read_segment(struct reader *r, const struct plim_yaml_node *node,
                         struct plim_result *result)
{
    if (result->segment_count == PLIM_RESULT_SEGMENTS) return;
    result->segments[result->segment_count++] =
        (struct plim_result_segments){.from_bytes = read_int(r, node, "from_bytes"),
                                      .count = read_int(r, node, "count"),
                                      .bytes = read_int(r, node, "bytes")};
}

static void read_question(struct reader *r, const struct plim_yaml_node *node,
                          struct plim_result *result)
{
    if (result->question_count == PLIM_RESULT_QUESTIONS) return;
    struct plim_result_question *question = &result->questions[result->question_count++];
    READ_TEXT(r, node, "place", question->place);
    READ_TEXT(r, node, "kernel", question->kernel);
    question->use = read_name(r, node, "use");
    if (!question->use) question->use = "decides";
    question->count = read_int(r, node, "count");
    question->bytes = read_int(r, node, "bytes");
    question->answer = read_int(r, node, "answer");
    question->turned = read_int(r, node, "turned");
}

static void read_evaluation(struct reader *r, const struct plim_yaml_node *root, struct plim_result_evaluation *out)
{
    const struct plim_yaml_node *node = part_of_kind(r, root, "evaluation", PLIM_YAML_MAPPING);
    if (!node) return;
    out->allocated_bytes = read_int(r, node, "peak_allocated_bytes");
    out->reserved_bytes = read_int(r, node, "peak_reserved_bytes");
}

static void read_step(struct reader *r, const struct plim_yaml_node *node,
                      struct plim_result *result)
{
    if (result->step_count == PLIM_RESULT_STEPS) return;
    result->steps[result->step_count++] = (struct plim_result_step){
        .after_forward_bytes = read_int(r, node, "after_forward_bytes"),
        .peak_allocated_bytes = read_int(r, node, "peak_allocated_bytes"),
        .peak_reserved_bytes = read_int(r, node, "peak_reserved_bytes"),
        .end_allocated_bytes = read_int(r, node, "end_allocated_bytes")};
}

static void read_moment(struct reader *r, const struct plim_yaml_node *node,
                        struct plim_result *result)
{
    struct plim_result_moment moment = {.seconds = read_number(r, node, "seconds")};
    READ_TEXT(r, node, "phase", moment.phase);
    read_breakdown(r, node, &moment.memory);
    if (!r->status) r->status = PLIM_ARRAY_PUSH(&result->timeline, moment);
}

static void read_list(struct reader *r, const struct plim_yaml_node *root, const char *key,
                      struct plim_result *result,
                      void (*read)(struct reader *, const struct plim_yaml_node *,
                                   struct plim_result *))
{
    const struct plim_yaml_node *list = part_of_kind(r, root, key, PLIM_YAML_SEQUENCE);
    for (size_t i = 0; list && i < list->count && !r->status; i++)
        read(r, list->items[i], result);
}

static void read_reasons(struct reader *r, const struct plim_yaml_node *root,
                         struct plim_result *result)
{
    const struct plim_yaml_node *list = part_of_kind(r, root, "why", PLIM_YAML_SEQUENCE);
    for (size_t i = 0; list && i < list->count && !r->status; i++) {
        const char *text = "";
        r->status = plim_yaml_text(r->yaml, list->items[i], &text, r->err);
        if (!r->status) plim_result_reason(result, "%s", text);
    }
}

/* --- whole ------------------------------------------------------------------------------------ */

static void read_result(struct reader *r, const struct plim_yaml_node *root,
                        struct plim_result *result)
{
    char schema[32];
    READ_TEXT(r, root, "schema", schema);
    bool explains = !strcmp(schema, "plimsoll.explain/1");
    if (!explains && strcmp(schema, "plimsoll.result/1") && !r->status)
        r->status = plim_yaml_fail(r->yaml, root, r->err,
                                   "schema '%s', expected plimsoll.result/1, plimsoll.plan/1 or "
                                   "plimsoll.explain/1",
                                   schema);
    result->kind = explains ? PLIM_RESULT_EXPLANATION : PLIM_RESULT_DECISION;
    result->objective = read_name(r, root, "objective");
    result->profile = read_name(r, root, "profile");
    result->tier = read_name(r, root, "tier");
    READ_TEXT(r, root, "waterfall", result->waterfall);
    result->is_program = read_bool(r, root, "program");
    read_spec(r, root, result);
    read_device(r, root, &result->device);
    read_limit(r, root, &result->limit);
    read_all_reduce(r, root, &result->all_reduce);
    const char *choice = explains ? "setting" : "choice";
    read_choice(r, part_of_kind(r, root, choice, PLIM_YAML_MAPPING), &result->choice);
    if (explains) read_peak(r, root, &result->choice.peak);
    const struct plim_yaml_node *largest = part_of_kind(r, root, "largest_fit", PLIM_YAML_MAPPING);
    read_choice(r, largest, &result->largest_fit);
    read_next(r, largest, &result->next);
    read_list(r, root, "points", result, read_point);
    read_prediction(r, root, &result->prediction);
    read_breakdown(r, root, &result->breakdown);
    read_time(r, root, &result->time);
    read_evaluation(r, root, &result->evaluation);
    read_list(r, root, "segments", result, read_segment);
    read_list(r, root, "unknown_reads", result, read_question);
    result->is_doubtful = read_bool(r, root, "uncertain");
    read_list(r, root, "shown_reads", result, read_question);
    READ_TEXT(r, root, "assumptions", result->assumptions);
    read_reasons(r, root, result);
    result->short_bytes = read_int(r, root, "short_bytes");
    read_list(r, root, "samples", result, read_sample);
    read_list(r, root, "advice", result, read_advice);
    read_list(r, root, "steps", result, read_step);
    result->timeline_micro_steps = read_int(r, root, "timeline_micro_steps");
    read_list(r, root, "timeline", result, read_moment);
    result->fits = read_bool(r, root, "fits");
    result->unsupported = read_bool(r, root, "unsupported");
    result->interrupted = read_bool(r, root, "interrupted");
    result->seconds = read_number(r, root, "seconds");
}

static void append_result(struct reader *r, const struct plim_yaml_node *root,
                          struct plim_report *report)
{
    struct plim_result result = {0};
    read_result(r, root, &result);
    if (!r->status) r->status = PLIM_ARRAY_PUSH(&report->results, result);
    if (r->status) plim_result_finish(&result);
}

bool plim_report_is(const struct plim_yaml_node *root)
{
    const struct plim_yaml_node *schema =
        root && root->kind == PLIM_YAML_MAPPING ? plim_yaml_get(root, "schema") : NULL;
    return schema && schema->kind == PLIM_YAML_SCALAR && !strncmp(schema->text, "plimsoll.", 9);
}

enum plim_status plim_report_read(const struct plim_yaml *yaml, struct plim_report *report,
                                  struct plim_error *err)
{
    struct reader r = {.yaml = yaml, .err = err};
    const struct plim_yaml_node *root = yaml->root, *version;
    char schema[32];
    if (!plim_report_is(root))
        return plim_fail(err, PLIM_INVALID, "%s is no report of plimsoll's", yaml->source);
    READ_TEXT(&r, root, "schema", schema);
    version = part(&r, root, "version");
    if (version && version->kind == PLIM_YAML_SCALAR) report->version = version->text;
    report->is_table = !strcmp(schema, "plimsoll.plan/1");
    if (!report->is_table) append_result(&r, root, report);
    const struct plim_yaml_node *list =
        report->is_table ? part_of_kind(&r, root, "results", PLIM_YAML_SEQUENCE) : NULL;
    for (size_t i = 0; list && i < list->count && !r.status; i++)
        append_result(&r, list->items[i], report);
    return r.status == PLIM_NOMEM ? plim_no_memory(err) : r.status;
}

enum plim_status plim_report_read_result(const struct plim_yaml *yaml,
                                         const struct plim_yaml_node *node,
                                         struct plim_result *result, struct plim_error *err)
{
    struct reader r = {.yaml = yaml, .err = err};
    if (!plim_report_is(node))
        return plim_yaml_fail(yaml, node, err, "expected a report of plimsoll's");
    read_result(&r, node, result);
    return r.status == PLIM_NOMEM ? plim_no_memory(err) : r.status;
}
