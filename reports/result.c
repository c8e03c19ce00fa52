#include "result.h"
#include <stdio.h>

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

void plim_result_finish(struct plim_result *result)
{
    if (!result) return;
    for (size_t i = 0; i < result->spec.options.count; i++)
        free(result->spec.options.items[i].value);
    PLIM_ARRAY_FINISH(&result->spec.options);
    PLIM_ARRAY_FINISH(&result->points);
    PLIM_ARRAY_FINISH(&result->samples);
    PLIM_ARRAY_FINISH(&result->advice);
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
    double key = order == PLIM_ORDER_SPEED    ? choice->tokens_per_second
                 : order == PLIM_ORDER_MEMORY ? -(double)choice->peak.device_bytes
                                              : (double)choice->setting.micro_batch;
    return (struct place){.index = index, .present = choice->present, .key = key};
}

/* Items of `size` bytes in the order of their places. Without host memory they stay as they are. */
static void reorder(void *items, size_t count, size_t size, struct place *places)
{
    char *copy = malloc(count * size);
    if (!copy) return;
    memcpy(copy, items, count * size);
    qsort(places, count, sizeof(*places), compare_places);
    for (size_t i = 0; i < count; i++)
        memcpy((char *)items + i * size, copy + places[i].index * size, size);
    free(copy);
}

static void sort_points(struct plim_result *result, enum plim_result_order order)
{
    size_t count = result->points.count;
    struct place *places = count ? calloc(count, sizeof(*places)) : NULL;
    if (!places) return;
    for (size_t i = 0; i < count; i++)
        places[i] = place_of(&result->points.items[i].best, i, order);
    reorder(result->points.items, count, sizeof(*result->points.items), places);
    free(places);
}

static void sort_results(struct plim_report *report, enum plim_result_order order)
{
    size_t count = report->results.count;
    struct place *places = count ? calloc(count, sizeof(*places)) : NULL;
    if (!places) return;
    for (size_t i = 0; i < count; i++)
        places[i] = place_of(&report->results.items[i].choice, i, order);
    reorder(report->results.items, count, sizeof(*report->results.items), places);
    free(places);
}

void plim_report_sort(struct plim_report *report, enum plim_result_order order)
{
    enum plim_result_order of_points = order == PLIM_ORDER_DEFAULT ? PLIM_ORDER_SPEED : order;
    if (order == PLIM_ORDER_GIVEN) return;
    for (size_t i = 0; i < report->results.count; i++)
        sort_points(&report->results.items[i], of_points);
    if (order != PLIM_ORDER_DEFAULT && report->is_table) sort_results(report, order);
}

const char *plim_result_value(const struct plim_result_setting *setting, const char *name)
{
    for (size_t i = 0; i < setting->value_count; i++)
        if (!strcmp(setting->values[i].name, name)) return setting->values[i].text;
    return "";
}
