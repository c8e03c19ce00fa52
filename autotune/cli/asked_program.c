#include "asked_program.h"
#include "autotune/exec/template.h"
#include "autotune/run/spec_question.h"
#include "common.h"
#include <stdio.h>
#include <stdlib.h>
#include <inttypes.h>
#include <string.h>

enum { POINTS_AT_MOST = 4096 };

/* --- the program ------------------------------------------------------------------------------ */

static enum plim_status add_file(struct plim_program *program, const char *text, char *copy,
                                 size_t size, struct plim_error *err)
{
    size_t length = strcspn(text, "=");
    if (length >= size) return plim_fail(err, PLIM_INVALID, "--file: the name is too long");
    snprintf(copy, size, "%.*s", (int)length, text);
    program->files[program->file_count++] =
        (struct plim_program_file){.template_path = copy, .path = text + length + 1};
    return PLIM_OK;
}

static enum plim_status read_program(struct plim_asked_program *x, struct plim_error *err)
{
    const struct plim_request_program *asked = &x->request->program;
    struct plim_program *program = &x->program;
    enum plim_status st = PLIM_OK;
    if (!asked->command || !asked->command[0])
        return plim_fail(
            err, PLIM_INVALID,
            "no command was given, expected it after --: plimsoll exec --batch 1:512 -- "
            "python train.py --batch-size {batch}");
    program->command = asked->command;
    program->variable_count = asked->variables.count;
    for (size_t i = 0; i < asked->variables.count; i++)
        program->variables[i] = asked->variables.items[i];
    for (size_t i = 0; i < asked->files.count && !st; i++)
        st = add_file(program, asked->files.items[i], x->names[i], PATH_MAX, err);
    program->axes = &x->question.question.axes;
    return st;
}

/* --- axes ------------------------------------------------------------------------------------- */

/* A placeholder and the option that lists its values. */
struct pair {
    const char *name;
    bool is_used, is_given, is_needed; /* the placeholder is used; the option is given; the option is required */
};

static enum plim_status check_pairs(const struct pair *pairs, size_t count, struct plim_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct pair *p = &pairs[i];
        if (p->is_given && !p->is_used)
            return plim_fail(err, PLIM_INVALID, "--%s is given, but there is no {%s} in the command",
                             p->name, p->name);
        if (p->is_used && !p->is_given && p->is_needed)
            return plim_fail(err, PLIM_INVALID,
                             "the command has {%s}: expected --%s, which says what it may be", p->name,
                             p->name);
    }
    return PLIM_OK;
}

static enum plim_status find_placeholders(struct plim_asked_program *x, struct plim_error *err)
{
    const struct plim_program *program = &x->program;
    enum plim_status st = plim_program_uses(program, "batch", &x->question.uses_batch, err);
    if (!st) st = plim_program_uses(program, "seq", &x->uses_seq, err);
    if (!st) st = plim_program_uses(program, "precision", &x->uses_precision, err);
    if (!st) st = plim_program_uses(program, "accumulation", &x->question.uses_accumulation, err);
    if (st) return st;
    bool any = x->question.uses_batch || x->uses_seq || x->uses_precision;
    if (x->request->program.observe && (any || x->request->program.axes.count))
        return plim_fail(
            err, PLIM_INVALID,
            "--observe runs the command once as it is, expected no placeholders in it");
    return PLIM_OK;
}

/* Reads the options that exec shares with specs as keys of a spec. */
static enum plim_status read_options(struct plim_asked_program *x, struct plim_error *err)
{
    const struct plim_request *request = x->request;
    bool precision = false, world = false;
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < request->setting_count; i++) {
        precision |= !strcmp(request->settings[i].key, "train.precision");
        world |= !strcmp(request->settings[i].key, "train.world");
        PLIM_TRY(plim_common_setting(&request->settings[i], &x->options, err));
    }
    const struct pair pairs[] = {
        {"batch", .is_used = x->question.uses_batch, .is_given = request->program.batch != NULL},
        {"seq", .is_used = x->uses_seq, .is_given = request->program.seq != NULL, .is_needed = true},
        {"precision", .is_used = x->uses_precision, .is_given = precision, .is_needed = true},
    };
    PLIM_TRY(check_pairs(pairs, sizeof(pairs) / sizeof(pairs[0]), err));
    if (!world) x->options.world = request->program.gpus ? request->program.gpus : 1;
    if (x->options.world < request->program.gpus) {
        st = plim_fail(err, PLIM_INVALID,
                       "--world %" PRId64 " is the job's GPUs, of which --gpus runs %" PRId64
                       ": expected at least as many",
                       x->options.world, (int64_t)request->program.gpus);
        goto out;
    }
    plim_spec_question_batch(&x->options, &x->question.question.batch);
    x->question.question.batch.is_unknown = !x->question.uses_batch;
    x->program.world = x->options.world;
out:
    return st;
}

static enum plim_status add_precision(struct plim_asked_program *x, struct plim_error *err)
{
    const struct plim_enum_axis *precision = &x->options.precision;
    char list[256];
    size_t used = 0;
    if (!x->uses_precision) return PLIM_OK;
    for (size_t i = 0; i < precision->count && used < sizeof(list); i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? "," : "",
                                 plim_precision_names[precision->values[i]]);
    return plim_program_question_axis(&x->question, "--precision", "precision", list, false, err);
}

static enum plim_status add_users_axis(struct plim_asked_program *x, const char *text, struct plim_error *err)
{
    size_t length = strcspn(text, "=");
    char name[32], option[64];
    bool uses = false;
    if (!plim_template_is_name(text, length) || length >= sizeof(name))
        return plim_fail(err, PLIM_INVALID, "--axis is '%s', expected NAME=LIST", text);
    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    snprintf(option, sizeof(option), "--axis %s", name);
    enum plim_status st =
        plim_program_question_axis(&x->question, option, name, text + length + 1, true, err);
    if (!st) st = plim_program_uses(&x->program, name, &uses, err);
    if (!st && !uses)
        st = plim_fail(err, PLIM_INVALID, "--axis %s: there is no {%s} in the command", name, name);
    return st;
}

static enum plim_status make_question(struct plim_asked_program *x, struct plim_error *err)
{
    const struct plim_request_program *asked = &x->request->program;
    enum plim_status st = PLIM_OK;
    plim_program_question_init(&x->question, x->request->objective);
    PLIM_TRY(find_placeholders(x, err));
    PLIM_TRY(read_options(x, err));
    PLIM_TRY(plim_program_question_batch(&x->question, asked->batch, err));
    if (asked->seq) PLIM_TRY(plim_program_question_seq(&x->question, asked->seq, err));
    PLIM_TRY(add_precision(x, err));
    for (size_t i = 0; i < asked->axes.count; i++) PLIM_TRY(add_users_axis(x, asked->axes.items[i], err));
    if (plim_program_question_points(&x->question) > POINTS_AT_MOST)
        st =
            plim_fail(err, PLIM_INVALID, "the axes have more than %d combinations", POINTS_AT_MOST);
    if (!st) st = plim_common_waterfall(x->request, &x->question.question, err);
out:
    return st;
}

/* --- reading ---------------------------------------------------------------------------------- */

enum plim_status plim_asked_program_read(const struct plim_request *request,
                                         struct plim_asked_program *out, struct plim_error *err)
{
    out->request = request;
    out->names = calloc(PLIM_PROGRAM_FILES, sizeof(*out->names));
    if (!out->names) return plim_no_memory(err);
    enum plim_status st = read_program(out, err);
    return st ? st : make_question(out, err);
}

void plim_asked_program_finish(struct plim_asked_program *asked)
{
    if (!asked) return;
    plim_program_question_finish(&asked->question);
    free(asked->names);
}
