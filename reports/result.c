#include "result.h"
#include "autotune/base/text.h"
#include <stddef.h>
#include <stdio.h>

void plim_result_write_fixed(const char *name, const char *value, const char **separator, FILE *out)
{
    if (!*value) return;
    fprintf(out, "%s%s ", *separator, name);
    plim_text_write(out, value);
    *separator = ", ";
}

/* Keys of Trainer alone, parts of Liger, and what is axolotl's alone, which no configuration that is emitted says. */
static bool is_of_trainer(const char *key)
{
    static const char *const keys[] = {"train.evaluation", "train.label_smoothing", "train.empty_cache_steps",
                                       "train.liger_kernels", "train.cut_cross_entropy", "train.upcast",
                                       "train.fsdp_plan", "train.fsdp_wrap", "train.lora.qkv_kernel",
                                       "train.lora.o_kernel", "train.lora.mlp_kernel"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!strncmp(key, keys[i], strlen(keys[i]))) return true;
    return false;
}

static bool is_in(const char *const *keys, const char *key)
{
    while (keys && *keys && strcmp(*keys, key) != 0) keys++;
    return keys && *keys;
}

void plim_result_spec_fixed(const struct plim_result_spec *spec, const char *const *said, const char *separator,
                            FILE *out)
{
    static const char zero[] = "train.zero.", train[] = "train.", use_reentrant[] = "train.use_reentrant";
    if (!spec) return;
    plim_result_write_fixed("LoRA", spec->lora, &separator, out);
    plim_result_write_fixed("quantization", spec->quantization, &separator, out);
    for (size_t i = 0; i < spec->options.count; i++) {
        const struct plim_result_option *option = &spec->options.items[i];
        if (is_in(said, option->key)) continue;
        if (!strncmp(option->key, zero, strlen(zero)) && option->value)
            plim_result_write_fixed(option->key + strlen(zero), option->value, &separator, out);
        bool is_held = is_of_trainer(option->key) || !strcmp(option->key, use_reentrant);
        if (is_held && option->value)
            plim_result_write_fixed(option->key + strlen(train), option->value, &separator, out);
    }
}

void plim_result_reason(struct plim_result *result, const char *fmt, ...)
{
    if (result->reason_count == PLIM_RESULT_REASONS) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(result->reasons[result->reason_count++], PLIM_RESULT_LINE, fmt, args);
    va_end(args);
}

enum plim_status plim_result_option(struct plim_result *result, const char *key, const char *value)
{
    struct plim_result_option option = {.value = strdup(value)};
    if (!option.value) return PLIM_NOMEM;
    snprintf(option.key, sizeof(option.key), "%s", key);
    enum plim_status st = PLIM_ARRAY_PUSH(&result->spec.options, option);
    if (st) free(option.value);
    return st;
}

bool plim_result_is_uncertain(const struct plim_result *result)
{
    for (size_t i = 0; i < result->question_count; i++)
        if (!strcmp(result->questions[i].use, "decides")) return true;
    return result->is_doubtful;
}

void plim_result_finish(struct plim_result *result)
{
    if (!result) return;
    for (size_t i = 0; i < result->spec.options.count; i++)
        free(result->spec.options.items[i].value);
    PLIM_ARRAY_FINISH(&result->spec.options);
    PLIM_ARRAY_FINISH(&result->points);
    PLIM_ARRAY_FINISH(&result->samples);
    PLIM_ARRAY_FINISH(&result->advice);
    PLIM_ARRAY_FINISH(&result->timeline);
}

enum plim_status plim_report_append(struct plim_report *report, struct plim_report *from,
                                    struct plim_error *err)
{
    report->is_table |= from->is_table;
    for (size_t i = 0; i < from->results.count; i++) {
        if (PLIM_ARRAY_PUSH(&report->results, from->results.items[i]) != PLIM_OK)
            return plim_no_memory(err);
        from->results.items[i] = (struct plim_result){0};
    }
    return PLIM_OK;
}

void plim_report_finish(struct plim_report *report)
{
    if (!report) return;
    for (size_t i = 0; i < report->results.count; i++)
        plim_result_finish(&report->results.items[i]);
    PLIM_ARRAY_FINISH(&report->results);
}

/* --- order ------------------------------------------------------------------------------------ */

/* A choice, where it stood, and what decides. */
struct place {
    size_t index;
    bool present;
    double key; /* the greater comes first */
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->present != y->present) return x->present ? -1 : 1;
    if (x->present && x->key > y->key) return -1;
    if (x->present && x->key < y->key) return 1;
    return x->index < y->index ? -1 : 1;
}

static struct place place_of(const struct plim_result_choice *choice, size_t index,
                             enum plim_result_order order)
{
    double key = order == PLIM_ORDER_SPEED    ? plim_result_rate(choice)
                 : order == PLIM_ORDER_MEMORY ? -(double)choice->peak.device_bytes
                                              : (double)choice->setting.micro_batch;
    return (struct place){.index = index, .present = choice->present, .key = key};
}

/* Sorts items of `size` bytes by the choice that each has at `offset`. */
static enum plim_status sort(void *items, size_t count, size_t size, size_t offset, enum plim_result_order order)
{
    if (!count) return PLIM_OK;
    char *copy = malloc(count * size), *first = items;
    struct place *places = calloc(count, sizeof(*places));
    if (copy && places) {
        for (size_t i = 0; i < count; i++) {
            const void *choice = first + i * size + offset;
            places[i] = place_of(choice, i, order);
        }
        memcpy(copy, items, count * size);
        qsort(places, count, sizeof(*places), compare_places);
        for (size_t i = 0; i < count; i++) memcpy(first + i * size, copy + places[i].index * size, size);
    }
    enum plim_status st = copy && places ? PLIM_OK : PLIM_NOMEM;
    free(places);
    free(copy);
    return st;
}

static enum plim_status sort_points(struct plim_result *result, enum plim_result_order order)
{
    return sort(result->points.items, result->points.count, sizeof(*result->points.items),
                offsetof(struct plim_result_point, best), order);
}

static enum plim_status sort_results(struct plim_report *report, enum plim_result_order order)
{
    return sort(report->results.items, report->results.count, sizeof(*report->results.items),
                offsetof(struct plim_result, choice), order);
}

enum plim_status plim_report_sort(struct plim_report *report, enum plim_result_order order)
{
    enum plim_result_order of_points = order == PLIM_ORDER_DEFAULT ? PLIM_ORDER_SPEED : order;
    enum plim_status st = PLIM_OK;
    if (order == PLIM_ORDER_GIVEN) return PLIM_OK;
    for (size_t i = 0; i < report->results.count && !st; i++)
        if (order != PLIM_ORDER_DEFAULT || !report->results.items[i].waterfall[0])
            st = sort_points(&report->results.items[i], of_points);
    if (!st && order != PLIM_ORDER_DEFAULT && report->is_table) st = sort_results(report, order);
    return st;
}

#define CLASS_NAME(name) #name,
static const char *const class_names[] = {PLIM_RESULT_CLASS_MAP(CLASS_NAME)};
#define CLASS_OFFSET(name) offsetof(struct plim_result_breakdown, name##_bytes),
static const size_t class_offsets[] = {PLIM_RESULT_CLASS_MAP(CLASS_OFFSET)};

const char *plim_result_class_name(int index) { return class_names[index]; }

int64_t *plim_result_class(struct plim_result_breakdown *breakdown, int index)
{
    return (int64_t *)(void *)((char *)breakdown + class_offsets[index]);
}

int64_t plim_result_class_bytes(const struct plim_result_breakdown *breakdown, int index)
{
    return *(const int64_t *)(const void *)((const char *)breakdown + class_offsets[index]);
}

double plim_result_time_all(const struct plim_result_time *time)
{
    double all = 0;
#define ADD_SECONDS(name, words) all += time->name##_seconds;
    PLIM_RESULT_TIME_MAP(ADD_SECONDS)
#undef ADD_SECONDS
    return all;
}

double plim_result_rate(const struct plim_result_choice *choice)
{
    return choice->setting.seq ? choice->tokens_per_second : choice->samples_per_second;
}

const char *plim_result_rate_unit(const struct plim_result_setting *setting)
{
    return setting->seq ? "tokens/s" : "samples/s";
}

const char *plim_result_gpus(const struct plim_result_device *device, char text[PLIM_RESULT_GPUS])
{
    if (device->gpus <= 1) return device->name;
    snprintf(text, PLIM_RESULT_GPUS, "%d x %s", device->gpus, device->name);
    return text;
}

const char *plim_result_value(const struct plim_result_setting *setting, const char *name)
{
    for (size_t i = 0; i < setting->value_count; i++)
        if (!strcmp(setting->values[i].name, name)) return setting->values[i].text;
    return "";
}

int64_t plim_result_first_accumulation(const struct plim_result_choice *choice)
{
    return choice->phase_count ? choice->phases[0].accumulation : choice->setting.accumulation;
}
