#include "program_question.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Placeholders that are not axes. */
static const char *const own_names[] = {"batch", "accumulation", "world", "dir", "trial"};

void plim_program_question_init(struct plim_program_question *q, enum plim_objective objective)
{
    *q = (struct plim_program_question){
        .question = {.axes = {.seq = -1}, .batch = {.world = 1}, .objective = objective}};
}

void plim_program_question_finish(struct plim_program_question *q)
{
    if (!q) return;
    for (size_t i = 0; i < PLIM_AXES; i++) {
        plim_axis_values_finish(&q->lists[i]);
        free(q->values[i]);
    }
    free(q->batches);
}

static bool is_taken(const struct plim_program_question *q, const char *name)
{
    for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
        if (!strcmp(own_names[i], name)) return true;
    return plim_axes_find(&q->question.axes, name) >= 0;
}

/* Reads the values of a new axis. The caller increments the number of axes once it is complete. */
static enum plim_status read_values(struct plim_program_question *q, const char *option,
                                    const char *name, const char *text, struct plim_axis **axis,
                                    struct plim_error *err)
{
    struct plim_axes *axes = &q->question.axes;
    if (axes->count == PLIM_AXES)
        return plim_fail(err, PLIM_INVALID, "%s: there are more than %d axes", option, PLIM_AXES);
    struct plim_axis_values *list = &q->lists[axes->count];
    if (is_taken(q, name)) return plim_fail(err, PLIM_INVALID, "%s: that name is taken", option);
    enum plim_status st = plim_axis_values_parse(option, text, list, err);
    if (!st) st = plim_axis_values_spread(list, option, err);
    if (st) return st;
    q->values[axes->count] = calloc(list->values.count, sizeof(int64_t));
    if (!q->values[axes->count]) return plim_no_memory(err);
    *axis = &axes->axis[axes->count];
    **axis = (struct plim_axis){
        .unit = "", .count = list->values.count, .values = q->values[axes->count]};
    snprintf((*axis)->name, sizeof((*axis)->name), "%s", name);
    return PLIM_OK;
}

enum plim_status plim_program_question_axis(struct plim_program_question *q, const char *option,
                                            const char *name, const char *text, bool is_users,
                                            struct plim_error *err)
{
    struct plim_axes *axes = &q->question.axes;
    struct plim_axis *axis;
    enum plim_status st = read_values(q, option, name, text, &axis, err);
    if (st) return st;
    for (size_t i = 0; i < axis->count; i++) q->values[axes->count][i] = (int64_t)i;
    axis->names = (const char *const *)q->lists[axes->count].values.items;
    axis->is_users = is_users;
    axes->count++;
    return PLIM_OK;
}

enum plim_status plim_program_question_seq(struct plim_program_question *q, const char *text,
                                           struct plim_error *err)
{
    struct plim_axes *axes = &q->question.axes;
    struct plim_axis *axis;
    size_t count;
    enum plim_status st = read_values(q, "--seq", "seq", text, &axis, err);
    if (!st)
        st = plim_axis_values_integers(&q->lists[axes->count], "--seq", q->values[axes->count],
                                      axis->count, &count, err);
    if (st) return st;
    axis->unit = "tokens";
    axes->seq = (int)axes->count++;
    return PLIM_OK;
}

enum plim_status plim_program_question_batch(struct plim_program_question *q, const char *text,
                                             struct plim_error *err)
{
    struct plim_batch_request *batch = &q->question.batch;
    struct plim_axis_values list = {0};
    enum plim_status st = PLIM_OK;
    if (!text && q->uses_batch) return PLIM_OK; /* any batch */
    PLIM_TRY(plim_axis_values_parse("--batch", text ? text : "1", &list, err));
    if (list.is_range && list.last > list.first) {
        batch->first = list.first;
        batch->last = list.last;
        goto out;
    }
    PLIM_TRY(plim_axis_values_spread(&list, "--batch", err));
    q->batches = calloc(list.values.count, sizeof(*q->batches));
    if (!q->batches) {
        st = plim_no_memory(err);
        goto out;
    }
    PLIM_TRY(plim_axis_values_integers(&list, "--batch", q->batches, list.values.count,
                                      &batch->listed_count, err));
    batch->listed = q->batches;
    batch->only_listed = true;
out:
    plim_axis_values_finish(&list);
    return st;
}

size_t plim_program_question_points(const struct plim_program_question *q)
{
    size_t points = 1;
    for (size_t i = 0; i < q->question.axes.count; i++) points *= q->question.axes.axis[i].count;
    return points;
}
