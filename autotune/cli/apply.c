/* apply: writes the batch sizes of a result, or of the command line, into the user's configs. revert undoes it. */
#include "answer_file.h"
#include "autotune/base/text.h"
#include "command.h"
#include "reports/configs/change_journal.h"
#include "reports/configs/unified_diff.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* All arguments that are not options. */
struct paths {
    size_t count;
    const char *items[PLIM_REQUEST_LIST + 1];
};

static struct paths read_paths(const struct plim_request *request)
{
    struct paths paths = {.count = request->subject != NULL, .items = {request->subject}};
    for (size_t i = 0; i < request->arguments.count; i++)
        paths.items[paths.count++] = request->arguments.items[i];
    return paths;
}

static enum plim_status usage(struct plim_error *err)
{
    return plim_fail(err, PLIM_INVALID,
                     "expected apply RESULT FILE..., or apply --micro-batch N FILE...");
}

/* --- from a result ---------------------------------------------------------------------------- */

/* Prints the settings for which the sizes are valid; of these, apply only writes checkpointing. */
static void note_settings(const struct plim_result *result, const struct plim_io *io)
{
    const struct plim_result_setting *setting = &result->choice.setting;
    const char *separator = " ";
    fputs("the result holds for", io->err);
    if (setting->seq) {
        fprintf(io->err, " sequence %" PRId64, setting->seq);
        separator = ", ";
    }
    for (size_t i = 0; i < setting->value_count; i++)
        plim_result_write_fixed(setting->values[i].name, setting->values[i].text, &separator, io->err);
    plim_result_spec_fixed(&result->spec, NULL, separator, io->err);
    fputc('\n', io->err);
}

/* Marks the values of the choice for which the search had alternatives. */
static void find_chosen(const struct plim_result *result, struct plim_config_ask *ask)
{
    const struct plim_result_setting *setting = &ask->setting;
    for (size_t i = 0; i < setting->value_count; i++)
        for (size_t k = 0; k < result->points.count && !ask->chose[i]; k++) {
            const char *other =
                plim_result_value(&result->points.items[k].best.setting, setting->values[i].name);
            ask->chose[i] = *other && strcmp(other, setting->values[i].text) != 0;
        }
}

static enum plim_status read_result(const struct plim_request *request, const struct plim_io *io,
                                    struct plim_config_ask *ask, struct plim_error *err)
{
    struct plim_answer_file file;
    enum plim_status st = plim_answer_file_read(request, &file, err);
    if (!st) {
        const struct plim_result_choice *choice = &file.result->choice;
        ask->sizes.micro = choice->setting.micro_batch;
        ask->sizes.accumulation = plim_result_first_accumulation(choice);
        ask->phase_count = choice->phase_count;
        memcpy(ask->phases, choice->phases, sizeof(ask->phases));
        if (!ask->sizes.dp) ask->sizes.dp = choice->world;
        if (!ask->sizes.seq) ask->sizes.seq = choice->setting.seq;
        ask->setting = choice->setting;
        find_chosen(file.result, ask);
        if (!strcmp(plim_result_value(&ask->setting, "checkpointing"), "full"))
            snprintf(ask->use_reentrant, sizeof(ask->use_reentrant), "%s", file.result->spec.use_reentrant);
        if (!request->quiet) note_settings(file.result, io);
    }
    plim_answer_file_finish(&file);
    return st;
}

/* --- from the command line -------------------------------------------------------------------- */

static enum plim_status read_sets(const struct plim_request *request, char texts[][256],
                                  struct plim_config_ask *ask, struct plim_error *err)
{
    static const struct {
        const char *name;
        enum plim_config_role role;
    } names[] = {{"micro_batch", PLIM_CONFIG_MICRO},
                 {"accumulation", PLIM_CONFIG_ACCUMULATION},
                 {"global_batch", PLIM_CONFIG_GLOBAL},
                 {"step_batch", PLIM_CONFIG_STEP},
                 {"total_batch", PLIM_CONFIG_TOTAL},
                 {"rounds", PLIM_CONFIG_ROUNDS},
                 {"seq", PLIM_CONFIG_SEQ}};
    const struct plim_request_list *sets = &request->apply.sets;
    for (size_t i = 0; i < sets->count; i++) {
        const char *mark = strrchr(sets->items[i], '=');
        size_t n = 0;
        while (n < sizeof(names) / sizeof(names[0]) && strcmp(names[n].name, mark + 1) != 0) n++;
        if (n == sizeof(names) / sizeof(names[0]) || (size_t)(mark - sets->items[i]) >= 256)
            return plim_fail(
                err, PLIM_INVALID,
                "--set is '%s', expected PATH=micro_batch, accumulation, global_batch, "
                "step_batch, total_batch or seq",
                sets->items[i]);
        snprintf(texts[i], 256, "%.*s", (int)(mark - sets->items[i]), sets->items[i]);
        ask->sets[i].path = texts[i];
        ask->sets[i].role = names[n].role;
    }
    ask->set_count = sets->count;
    return PLIM_OK;
}

static enum plim_status read_ask(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_config_ask *ask, size_t *first, struct plim_error *err)
{
    const struct plim_request_apply *apply = &request->apply;
    bool given = apply->micro_batch || apply->tokens;
    ask->sizes =
        (struct plim_config_sizes){apply->micro_batch, apply->accumulation, apply->dp, apply->seq};
    ask->tokens = apply->tokens;
    ask->framework = apply->framework;
    ask->format = apply->format;
    ask->select = apply->select;
    *first = !given;
    if (read_paths(request).count < 1 + (size_t)!given) return usage(err);
    if (!given) {
        if (apply->accumulation)
            return plim_fail(err, PLIM_INVALID, "--accumulation needs --micro-batch N beside it");
        enum plim_status st = read_result(request, io, ask, err);
        if (st) return st;
    }
    if (!ask->sizes.accumulation) ask->sizes.accumulation = 1;
    if (!ask->sizes.micro) ask->sizes.micro = ask->tokens;
    return PLIM_OK;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void show_changes(const struct plim_config_plan *plan, const struct plim_io *io)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct plim_config_file *file = &plan->files[i];
        if (file->sized && !file->edits.count) {
            plim_text_write(io->out, file->path);
            fputs(": already right\n", io->out);
        }
        for (size_t k = 0; k < file->edits.count; k++) {
            const struct plim_config_edit *edit = &file->edits.items[k];
            if (edit->filler) continue;
            plim_text_write(io->out, file->path);
            fprintf(io->out, ":%d: ", edit->line);
            plim_text_write(io->out, edit->path);
            if (edit->node) {
                fputs(": ", io->out);
                plim_text_write(io->out, edit->old[0] ? edit->old : "(empty)");
                fprintf(io->out, " -> %s\n", edit->new);
            } else {
                fprintf(io->out, "%s%s: %s (added, a key of %s)\n", edit->path[0] ? "." : "", edit->key, edit->new,
                        file->framework->title);
            }
        }
    }
}

static void show_notes(const char *notes, const struct plim_io *io)
{
    for (const char *at = notes; at && *at;) {
        char line[1024];
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)length, at);
        fputs("plimsoll: ", io->err);
        plim_text_write(io->err, line);
        fputc('\n', io->err);
        at += length + (at[length] == '\n');
    }
}

static enum plim_status finish(const struct plim_request *request, const struct plim_io *io,
                               const struct plim_config_ask *ask, struct plim_config_plan *plan,
                               bool from_result, struct plim_error *err)
{
    const char *source = from_result ? request->subject : "the command line";
    if (plan->overrides) fputs(plan->overrides, io->out);
    if (!request->apply.check) {
        enum plim_status st = plan->changes
                                  ? plim_config_commit(plan, &ask->sizes, source, io->version, err)
                                  : PLIM_OK;
        if (!st) show_changes(plan, io);
        return st;
    }
    for (size_t i = 0; i < plan->count; i++) {
        const struct plim_config_file *file = &plan->files[i];
        if (file->after)
            plim_config_diff(file->path, file->document.file, file->document.file_length, file->after,
                             file->after_length, io->out);
    }
    return plan->changes ? PLIM_DIFFERS : PLIM_OK;
}

static enum plim_status run_apply(const struct plim_request *request, const struct plim_io *io,
                                  struct plim_error *err)
{
    struct plim_config_plan *plan = calloc(1, sizeof(*plan));
    struct plim_config_ask ask = {0};
    char texts[PLIM_CONFIG_SETS][256];
    size_t first;
    const struct paths files = read_paths(request);
    enum plim_status st = plan ? PLIM_OK : plim_no_memory(err);
    if (st) return st;
    PLIM_TRY(read_ask(request, io, &ask, &first, err));
    PLIM_TRY(read_sets(request, texts, &ask, err));
    st = plim_config_plan_make(&ask, files.items + first, files.count - first, plan, err);
    if (!request->quiet) show_notes(plan->notes, io);
    if (!st) st = finish(request, io, &ask, plan, first > 0, err);
out:
    plim_config_plan_finish(plan);
    free(plan);
    return st;
}

const struct plim_command plim_command_apply = {
    .name = "apply",
    .argument = "FILE...",
    .id = PLIM_COMMAND_APPLY,
    .run = run_apply,
    .summary = "batch sizes written into your own training configs",
    .about = "Writes micro-batch and accumulation into training configs: YAML, JSON, TOML,\n"
             "INI, shell and sbatch scripts, Python, notebooks, Hydra trees, gin. The first\n"
             "FILE is a result of tune or plan, unless --micro-batch says the number; where\n"
             "that checkpoints activations, so does the job afterwards. Only the bytes of the\n"
             "numbers, and of that switch, change. A file's keys show whose it is; what\n"
             "cannot be changed for certain is refused, and nothing is touched.\n"
             "'plimsoll revert FILE' takes it back.\n\n"
             "  plimsoll apply result.json train.yaml\n"
             "  plimsoll apply --micro-batch 4 --accumulation 8 --dp 8 ds_config.json\n"};

static enum plim_status run_revert(const struct plim_request *request, const struct plim_io *io,
                                   struct plim_error *err)
{
    const struct paths files = read_paths(request);
    if (!files.count) return plim_fail(err, PLIM_INVALID, "expected revert FILE...");
    return plim_config_revert(files.items, files.count, request->apply.force,
                              request->quiet ? NULL : io->out, err);
}

const struct plim_command plim_command_revert = {
    .name = "revert",
    .argument = "FILE...",
    .id = PLIM_COMMAND_REVERT,
    .run = run_revert,
    .summary = "undoes apply, byte for byte",
    .about = "Restores files as they were before 'plimsoll apply'. Of a change of several\n"
             "files that was cut short (a crash), any of them brings all back.\n"};
