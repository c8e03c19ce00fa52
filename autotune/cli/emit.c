/* emit: writes an answer as the arguments, environment or config of a training framework. */
#include "emit.h"
#include "answer_file.h"
#include "autotune/base/outfile.h"
#include "autotune/base/text.h"
#include "autotune/run/target.h"
#include "command.h"
#include "reports/configs/emission.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The default of plan. */
static const int64_t GPUS_PER_NODE = 8;

/* --- from a result ---------------------------------------------------------------------------- */

static void describe_answer(const struct plim_result *result, const char *version,
                            struct plim_config_answer *answer)
{
    char name[160];
    snprintf(name, sizeof(name), "%s on %s%s", result->spec.name[0] ? result->spec.name : "a program",
             result->device.name, result->device.simulated ? ", simulated" : "");
    char about[256];
    snprintf(about, sizeof(about), "%s%s%s", name, version ? ", plimsoll " : "",
             version ? version : "");
    plim_text_show(about, answer->about, sizeof(answer->about));
}

static int64_t gpus_per_node(const struct plim_request *request, const struct plim_result *result)
{
    int64_t number = request->emit.gpus_per_node;
    for (size_t i = 0; !number && result && i < result->spec.options.count; i++)
        if (!strcmp(result->spec.options.items[i].key, "train.gpus_per_node"))
            number = strtoll(result->spec.options.items[i].value, NULL, 10);
    return number > 0 ? number : GPUS_PER_NODE;
}

/* Fills in the sizes; the command line overrides the answer. */
static void fill_answer(const struct plim_request *request, const struct plim_result *result,
                        const struct plim_result_choice *choice, const char *version,
                        struct plim_config_answer *answer)
{
    const struct plim_request_apply *asked = &request->apply;
    *answer = (struct plim_config_answer){
        .sizes = {asked->micro_batch, asked->accumulation, asked->dp, asked->seq}};
    struct plim_config_sizes *sizes = &answer->sizes;
    if (choice) {
        const struct plim_result_setting *setting = &choice->setting;
        *sizes = (struct plim_config_sizes){
            setting->micro_batch, plim_result_first_accumulation(choice),
            asked->dp ? asked->dp : choice->world, asked->seq ? asked->seq : setting->seq};
        answer->setting = setting;
        answer->spec = &result->spec;
        answer->world = choice->world;
        describe_answer(result, version, answer);
    }
    if (!sizes->accumulation) sizes->accumulation = 1;
    if (!answer->world) answer->world = sizes->dp;
    answer->gpus_per_node = gpus_per_node(request, result);
}

/* --- the text --------------------------------------------------------------------------------- */

static void print_note(const struct plim_request *request, const struct plim_io *io, const char *what,
                       const char *text)
{
    if (request->quiet || !text || !*text) return;
    fprintf(io->err, "plimsoll: %s", what);
    plim_text_write(io->err, text);
    fputc('\n', io->err);
}

static enum plim_status make_text(const struct plim_request *request, const struct plim_io *io,
                                  const char *name, const struct plim_config_answer *answer,
                                  char **text, struct plim_error *err)
{
    struct plim_config_form form;
    char *unsaid = NULL, what[96];
    *text = NULL;
    enum plim_status st = plim_config_form_find(name, &form, err);
    if (!st) st = plim_config_emit(&form, answer, text, &unsaid, err);
    if (st) return st;
    snprintf(what, sizeof(what), "%s.%s does not say: ", form.framework->name, form.name);
    print_note(request, io, what, unsaid);
    print_note(request, io, "", form.framework->warning);
    free(unsaid);
    return PLIM_OK;
}

enum plim_status plim_emit_check(const struct plim_request *request, struct plim_error *err)
{
    struct plim_config_form form;
    if (!request->emit.name) return PLIM_OK;
    if (request->json)
        return plim_fail(err, PLIM_INVALID, "--json and --emit are both for stdout, expected one");
    if (request->devices.count > 1 ||
        (request->devices.count && (!strcmp(request->devices.items[0], "all") ||
                                    plim_target_is_all(request->devices.items[0]))))
        return plim_fail(err, PLIM_INVALID, "--emit is one device's answer, expected one --device");
    return plim_config_form_find(request->emit.name, &form, err);
}

/* Makes the text of a choice in the format `name`. `version` is that of the plimsoll that made the result. */
static enum plim_status choice_text(const struct plim_request *request, const struct plim_io *io,
                                    const char *name, const char *version,
                                    const struct plim_result *result,
                                    const struct plim_result_choice *choice, char **text,
                                    struct plim_error *err)
{
    struct plim_config_answer answer;
    fill_answer(request, result, choice, version, &answer);
    if (choice->phase_count > 1)
        print_note(request, io, "the accumulation follows a schedule, and only its ", "first phase is said");
    return make_text(request, io, name, &answer, text, err);
}

enum plim_status plim_emit_text(const struct plim_request *request, const struct plim_io *io,
                                const struct plim_result *result,
                                const struct plim_result_choice *choice, char **text,
                                struct plim_error *err)
{
    return choice_text(request, io, request->emit.name, io->version, result, choice, text, err);
}

static enum plim_status print(const struct plim_io *io, const char *text, struct plim_error *err)
{
    bool hung_up = io->signalled && *io->signalled == SIGHUP;
    if ((fputs(text, io->out) < 0 || fflush(io->out)) && !hung_up)
        return plim_fail(err, PLIM_INTERNAL, "the answer cannot be written: %s", strerror(errno));
    return PLIM_OK;
}

enum plim_status plim_emit_result(const struct plim_request *request, const struct plim_io *io,
                                  const struct plim_result *result, struct plim_error *err)
{
    char *text = NULL;
    enum plim_status st = plim_emit_text(request, io, result, &result->choice, &text, err);
    if (!st) st = print(io, text, err);
    free(text);
    return st;
}

/* --- the command ------------------------------------------------------------------------------ */

static enum plim_status emit_file(const struct plim_request *request, const struct plim_io *io,
                                  const char *name, char **text, struct plim_error *err)
{
    struct plim_answer_file file;
    enum plim_status st = plim_answer_file_read(request, &file, err);
    if (!st)
        st = choice_text(request, io, name, file.report.version, file.result, &file.result->choice,
                         text, err);
    plim_answer_file_finish(&file);
    return st;
}

/* Completes the name of a format by the suffix of the file: hf for a.yaml is hf.yaml. PLIM_INVALID: there is no such
 * format, so that the file would have another syntax than its suffix says. */
static enum plim_status form_for_file(const char *name, const char *path, char *out, size_t size,
                                      struct plim_error *err)
{
    static const char *const suffixes[][2] = {{".yaml", "yaml"}, {".yml", "yaml"}, {".json", "json"},
                                              {".toml", "toml"}, {".py", "python"}};
    struct plim_config_form form;
    struct plim_error ignored = PLIM_ERROR_INIT; /* an invalid name is reported later */
    snprintf(out, size, "%s", name);
    if (!path || strchr(name, '.') || plim_config_form_find(name, &form, &ignored)) return PLIM_OK;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (!plim_text_ends_with(path, suffixes[i][0]) || !strcmp(form.name, suffixes[i][1])) continue;
        snprintf(out, size, "%s.%s", name, suffixes[i][1]);
        return plim_config_form_find(out, &form, err);
    }
    return PLIM_OK;
}

static enum plim_status run_emit(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_error *err)
{
    const bool given = request->apply.micro_batch != 0;
    const char *name = given ? request->subject
                             : (request->arguments.count ? request->arguments.items[0] : NULL);
    char *text = NULL;
    struct plim_config_answer answer;
    enum plim_status st = PLIM_OK;
    if (request->emit.list) return plim_config_forms_list(io->out, err);
    if (!name || request->arguments.count != (size_t)!given)
        return plim_fail(err, PLIM_INVALID,
                         "expected emit RESULT NAME, emit --micro-batch N NAME, or emit --list");
    char form[96];
    PLIM_TRY(form_for_file(name, request->files.count ? request->files.items[0] : NULL, form, sizeof(form), err));
    name = form;
    if (given) {
        fill_answer(request, NULL, NULL, NULL, &answer);
        PLIM_TRY(make_text(request, io, name, &answer, &text, err));
    } else {
        PLIM_TRY(emit_file(request, io, name, &text, err));
    }
    for (size_t i = 0; i < request->files.count; i++)
        PLIM_TRY(plim_outfile_save(request->files.items[i], text, err));
    if (!request->files.count) PLIM_TRY(print(io, text, err));
out:
    free(text);
    return st;
}

const struct plim_command plim_command_emit = {
    .name = "emit",
    .argument = "NAME",
    .id = PLIM_COMMAND_EMIT,
    .run = run_emit,
    .summary = "the answer as the arguments or config of a framework",
    .about = "plimsoll emit RESULT NAME writes the answer of tune, plan or exec as a training\nframework or a "
             "launcher reads it: a config, arguments, variables or code. NAME\nis one of --list, with a form after a "
             "dot. What the text has no word for is\nsaid on stderr. Without a RESULT --micro-batch says the "
             "number.\n\n  plimsoll emit result.json hf.python\n  torchrun $(plimsoll emit result.json torchrun) "
             "train.py \\\n    $(plimsoll emit result.json hf.cli)\n  plimsoll emit --micro-batch 4 --accumulation 8 "
             "--dp 8 deepspeed\n"};
