#include "patch_plan.h"
#include "autotune/base/textfile.h"
#include "config_format.h"
#include "hydra.h"
#include "plan_group.h"
#include "splice.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 8 << 20 };

/* --- planning over all files ------------------------------------------------------------------ */

static enum plim_status read_files(const struct plim_config_ask *ask, const char *const *paths,
                                   size_t count, struct plim_config_plan *plan,
                                   struct plim_error *err)
{
    const struct plim_config_format *format = NULL;
    enum plim_status st = PLIM_OK;
    if (count > PLIM_CONFIG_FILES)
        return plim_fail(err, PLIM_INVALID, "%zu files, expected at most %d", count,
                         PLIM_CONFIG_FILES);
    if (ask->format) st = plim_config_format_find(ask->format, &format, err);
    for (size_t i = 0; i < count && !st; i++) {
        char *text = NULL;
        size_t length;
        plan->files[i].path = paths[i];
        st = plim_textfile_read(paths[i], MAX_BYTES, &text, &length, err);
        if (!st)
            st = plim_config_read(paths[i], text, length, format, &plan->files[i].document, err);
        free(text);
        if (!st) plan->count = i + 1;
    }
    return st;
}

/* Plans the files as one job: one may hold the batch size, another the accumulation. */
static enum plim_status plan_together(struct plim_config_plan *plan,
                                      const struct plim_config_ask *ask,
                                      enum plim_config_outcome *outcome, struct plim_error *err)
{
    plan->places.list.count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        enum plim_status st =
            plim_config_places_add(&plan->places, &plan->files[i].document, "", err);
        if (st) return st;
    }
    return plim_config_group_plan(plan, ask, outcome, err);
}

static void clear_edits(struct plim_config_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        plan->files[i].edits.count = 0;
        plan->files[i].sized = false;
        plan->files[i].framework = NULL;
    }
}

/* Outcomes of planning every file on its own. */
struct tally {
    struct plim_error nothing, refusal; /* the first error of either kind */
    bool sized, overridden, open;
};

/* Looks for sizes in the commands within a file none of whose values is a size. */
static enum plim_status plan_commands(struct plim_config_plan *plan, const struct plim_config_ask *ask, size_t file,
                                      enum plim_config_outcome *outcome, struct plim_error *err)
{
    struct plim_config_document *document = &plan->files[file].document;
    struct plim_error here = PLIM_ERROR_INIT;
    if (!plim_config_read_commands(document)) return err->status;
    plan->places.list.count = 0;
    enum plim_status st = plim_config_places_add(&plan->places, document, "", &here);
    if (!st) st = plim_config_group_plan(plan, ask, outcome, &here);
    if (!st || *outcome != PLIM_CONFIG_NOTHING) *err = here;
    return st ? err->status : PLIM_OK;
}

static enum plim_status plan_one(struct plim_config_plan *plan, const struct plim_config_ask *ask,
                                 size_t file, struct tally *tally, struct plim_error *err)
{
    struct plim_error here = PLIM_ERROR_INIT;
    enum plim_config_outcome outcome = PLIM_CONFIG_NOTHING;
    plan->places.list.count = 0;
    enum plim_status st =
        plim_config_places_add(&plan->places, &plan->files[file].document, "", &here);
    if (!st) st = plim_config_group_plan(plan, ask, &outcome, &here);
    if (st == PLIM_SPEC && outcome == PLIM_CONFIG_NOTHING) st = plan_commands(plan, ask, file, &outcome, &here);
    if (st == PLIM_NOMEM || st == PLIM_INVALID || st == PLIM_INTERNAL) {
        *err = here;
        return st;
    }
    struct plim_error *first = outcome == PLIM_CONFIG_NOTHING ? &tally->nothing : &tally->refusal;
    if (st && !first->status) *first = here;
    tally->sized |= !st && outcome == PLIM_CONFIG_SIZED;
    tally->overridden |= !st && outcome == PLIM_CONFIG_OVERRIDDEN;
    tally->open |= !st && outcome == PLIM_CONFIG_OPEN;
    return PLIM_OK;
}

/* Plans every file on its own. A file without sizes is left alone if another one has them. */
static enum plim_status plan_each(struct plim_config_plan *plan, const struct plim_config_ask *ask,
                                  struct plim_error *err)
{
    struct tally tally = {0};
    enum plim_status st = PLIM_OK;
    plan->leave_open = plan->count > 1;
    for (size_t i = 0; i < plan->count && !st; i++) st = plan_one(plan, ask, i, &tally, err);
    plan->leave_open = false;
    for (size_t i = 0; i < plan->count && !st && tally.open && !tally.sized; i++)
        st = plan_one(plan, ask, i, &tally, err);
    if (st) return st;
    if (!tally.refusal.status && (tally.sized || tally.overridden)) {
        if (tally.sized) free(plan->overrides), plan->overrides = NULL;
        return PLIM_OK;
    }
    struct plim_error together = PLIM_ERROR_INIT;
    enum plim_config_outcome outcome;
    clear_edits(plan);
    if (plan->count > 1 && plan_together(plan, ask, &outcome, &together) == PLIM_OK) return PLIM_OK;
    *err = tally.refusal.status ? tally.refusal : tally.nothing;
    return err->status;
}

/* Plans all files. The notes are those of the last attempt, and remain even if the plan is refused. */
static enum plim_status plan_all(struct plim_config_plan *plan, const struct plim_config_ask *ask,
                                 struct plim_error *err)
{
    bool composed;
    enum plim_config_outcome outcome;
    enum plim_status st = plim_config_compose(plan, ask->select, &composed, err);
    if (st) return st;
    st = composed ? plim_config_group_plan(plan, ask, &outcome, err) : plan_each(plan, ask, err);
    for (size_t i = 0; i < plan->count && !st; i++) {
        struct plim_config_file *file = &plan->files[i];
        st = plim_config_splice(file, err);
        plan->changes |= file->edits.count > 0;
        if (!st && plan->count > 1 && !file->sized && !plan->overrides)
            plim_config_note(plan, "%s: no size of the job is set here; it stays unchanged",
                             file->path);
    }
    return st;
}

enum plim_status plim_config_plan_make(const struct plim_config_ask *ask, const char *const *paths,
                                       size_t count, struct plim_config_plan *plan,
                                       struct plim_error *err)
{
    *plan = (struct plim_config_plan){0};
    enum plim_status st = read_files(ask, paths, count, plan, err);
    if (st) return st;
    plan->notes_file = plim_text_stream_open(&plan->notes_stream);
    st = plan_all(plan, ask, err);
    enum plim_status closed = plim_text_stream_close(&plan->notes_stream, &plan->notes);
    plan->notes_file = NULL;
    return st || !closed ? st : plim_no_memory(err);
}

void plim_config_plan_finish(struct plim_config_plan *plan)
{
    if (!plan) return;
    for (size_t i = 0; i < PLIM_CONFIG_FILES; i++) {
        PLIM_ARRAY_FINISH(&plan->files[i].edits);
        free(plan->files[i].after);
        plim_config_finish(&plan->files[i].document);
    }
    plim_config_places_finish(&plan->places);
    free(plan->notes);
    free(plan->overrides);
    *plan = (struct plim_config_plan){0};
}
