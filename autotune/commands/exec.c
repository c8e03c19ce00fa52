#define _DEFAULT_SOURCE /* realpath */
#include "autotune/program/decide.h"
#include "autotune/program/launch.h"
#include "autotune/program/words.h"
#include "common.h"
#include "devices/open.h"
#include "progress.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double LIMIT_SECONDS = 600;
enum { REPETITIONS = 5 };
#define SEPARATORS " :"

/* Everything of one run of exec. */
struct exec {
    const struct plim_request *request;
    struct plim_program program;
    struct plim_spec spec;
    struct plim_allowance allowance;
    struct plim_log log;
    struct plim_stop stop;
    struct plim_card card;
    struct plim_card_order card_order;
    struct plim_target target; /* what "auto" finds */
    struct plim_program_question question;
    char library[PATH_MAX], folder[64];
};

/* --- what was asked --------------------------------------------------------------------------- */

static const char *const own_names[] = {"batch", "seq",  "accumulation", "world",
                                        "precision", "dir", "trial"};

static enum plim_status add_axis(struct plim_program *program, const char *text,
                                 struct plim_error *err)
{
    size_t length = strcspn(text, "=");
    struct plim_axis *axis = &program->axes[program->axis_count];
    char option[64];
    bool taken = false, uses = false;
    if (!plim_words_is_name(text, length) || length >= sizeof(axis->name))
        return plim_fail(err, PLIM_INVALID, "--axis is '%s', expected NAME=LIST", text);
    snprintf(axis->name, sizeof(axis->name), "%.*s", (int)length, text);
    for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
        taken |= !strcmp(own_names[i], axis->name);
    for (size_t i = 0; i < program->axis_count; i++)
        taken |= !strcmp(program->axes[i].name, axis->name);
    if (taken) return plim_fail(err, PLIM_INVALID, "--axis %s: that name is taken", axis->name);
    program->axis_count++;
    snprintf(option, sizeof(option), "--axis %s", axis->name);
    enum plim_status st = plim_axis_parse(option, text + length + 1, axis, err);
    if (!st) st = plim_axis_spread(axis, option, err);
    if (!st) st = plim_program_uses(program, axis->name, &uses, err);
    if (!st && !uses)
        st = plim_fail(err, PLIM_INVALID, "--axis %s: there is no {%s} in the command", axis->name,
                       axis->name);
    return st;
}

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

static enum plim_status read_program(struct exec *x, char (*names)[PATH_MAX], struct plim_error *err)
{
    const struct plim_request_program *asked = &x->request->program;
    struct plim_program *program = &x->program;
    enum plim_status st = PLIM_OK;
    if (!asked->command || !asked->command[0])
        return plim_fail(err, PLIM_INVALID,
                         "no command was given, expected it after --: plimsoll exec --batch 1:512 -- "
                         "python train.py --batch-size {batch}");
    program->command = asked->command;
    program->variable_count = asked->variable_count;
    memcpy(program->variables, asked->variables, sizeof(program->variables));
    for (size_t i = 0; i < asked->file_count && !st; i++)
        st = add_file(program, asked->files[i], names[i], PATH_MAX, err);
    for (size_t i = 0; i < asked->axis_count && !st; i++)
        st = add_axis(program, asked->axes[i], err);
    if (!st && plim_program_variants(program) > 4096)
        st = plim_fail(err, PLIM_INVALID, "the axes have more than 4096 combinations");
    return st;
}

/* --- the axes that are plimsoll's own ----------------------------------------------------------- */

/* A placeholder and the option that says what it may be go together. */
static enum plim_status check_pair(const char *name, bool uses, bool given, bool needed,
                                   struct plim_error *err)
{
    if (given && !uses)
        return plim_fail(err, PLIM_INVALID, "--%s is given, but there is no {%s} in the command",
                         name, name);
    if (uses && !given && needed)
        return plim_fail(err, PLIM_INVALID, "there is {%s} in the command: --%s says what it may be",
                         name, name);
    return PLIM_OK;
}

static enum plim_status set_batch(struct exec *x, struct plim_error *err)
{
    const char *text = x->request->program.batch;
    struct plim_spec *spec = &x->spec;
    struct plim_axis axis = {0};
    enum plim_status st = PLIM_OK;
    if (!x->question.uses_batch) {
        spec->micro_batch = (struct plim_int_axis){.count = 1, .values = {1}};
        spec->micro_batch_listed = true;
    }
    if (!text) return PLIM_OK;
    PLIM_TRY(plim_axis_parse("--batch", text, &axis, err));
    if (axis.is_range && axis.last > axis.first) {
        spec->micro_batch_first = axis.first;
        spec->micro_batch_last = axis.last;
    } else {
        spec->micro_batch_listed = true;
        PLIM_TRY(plim_axis_integers(&axis, "--batch", spec->micro_batch.values, PLIM_MAX_CHOICES,
                                    &spec->micro_batch.count, err));
    }
out:
    plim_axis_finish(&axis);
    return st;
}

static enum plim_status set_seq(struct exec *x, struct plim_error *err)
{
    const char *text = x->request->program.seq;
    struct plim_axis axis = {0};
    x->spec.seq = (struct plim_int_axis){.count = 1, .values = {1}};
    if (!text) return PLIM_OK;
    enum plim_status st = plim_axis_parse("--seq", text, &axis, err);
    if (!st)
        st = plim_axis_integers(&axis, "--seq", x->spec.seq.values, PLIM_MAX_CHOICES,
                                &x->spec.seq.count, err);
    plim_axis_finish(&axis);
    return st;
}

static enum plim_status read_spec(struct exec *x, struct plim_error *err)
{
    const struct plim_request *request = x->request;
    struct plim_program_question *q = &x->question;
    const char *name = strrchr(x->program.command[0], '/');
    bool precision = false;
    enum plim_status st = PLIM_OK;
    x->spec.world = request->program.gpus ? request->program.gpus : 1;
    x->spec.variants = (int64_t)plim_program_variants(&x->program);
    snprintf(x->spec.name, sizeof(x->spec.name), "%s", name ? name + 1 : x->program.command[0]);
    PLIM_TRY(plim_program_uses(&x->program, "batch", &q->uses_batch, err));
    PLIM_TRY(plim_program_uses(&x->program, "seq", &q->uses_seq, err));
    PLIM_TRY(plim_program_uses(&x->program, "precision", &q->uses_precision, err));
    PLIM_TRY(plim_program_uses(&x->program, "accumulation", &q->uses_accumulation, err));
    for (size_t i = 0; i < request->setting_count; i++) {
        const struct plim_request_setting *s = &request->settings[i];
        precision |= !strcmp(s->key, "train.precision");
        PLIM_TRY(plim_common_setting(s, &x->spec, err));
    }
    if (request->program.observe &&
        (q->uses_batch || q->uses_seq || q->uses_precision || x->program.axis_count)) {
        st = plim_fail(err, PLIM_INVALID,
                       "--observe runs the command once as it is, expected no placeholders in it");
        goto out;
    }
    PLIM_TRY(check_pair("batch", q->uses_batch, request->program.batch, false, err));
    PLIM_TRY(check_pair("seq", q->uses_seq, request->program.seq, true, err));
    PLIM_TRY(check_pair("precision", q->uses_precision, precision, true, err));
    PLIM_TRY(set_batch(x, err));
    PLIM_TRY(set_seq(x, err));
    x->program.world = x->spec.world;
out:
    return st;
}

/* --- where it runs ---------------------------------------------------------------------------- */

/* What is preloaded lies beside the executable in a build, and under lib when installed. */
static enum plim_status find_library(struct exec *x, const char *build_folder, const char *name,
                                     struct plim_error *err)
{
    const char *const folders[] = {build_folder, "../lib/plimsoll", "../" PLIM_LIBDIR "/plimsoll"};
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length < 0) return plim_fail(err, PLIM_INTERNAL, "/proc/self/exe: %s", strerror(errno));
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s/%s", self, folders[i], name);
        if (realpath(path, x->library)) return PLIM_OK;
    }
    return plim_fail(err, PLIM_UNSUPPORTED, "%s is not beside plimsoll (looked for it in %s/%s)",
                     name, self, folders[1]);
}

/* A folder of our own, and the one for logs. */
static enum plim_status make_folders(struct exec *x, struct plim_error *err)
{
    const char *logs = x->request->program.logs, *base = getenv("TMPDIR");
    bool is_fit = base && strlen(base) < sizeof(x->folder) - 20 && !base[strcspn(base, SEPARATORS)];
    snprintf(x->folder, sizeof(x->folder), "%s/plimsoll-XXXXXX", is_fit ? base : "/tmp");
    if (!mkdtemp(x->folder)) {
        enum plim_status st = plim_fail(err, PLIM_IO, "%s: %s", x->folder, strerror(errno));
        x->folder[0] = '\0';
        return st;
    }
    if (logs && mkdir(logs, 0777) && errno != EEXIST)
        return plim_fail(err, PLIM_IO, "%s: %s", logs, strerror(errno));
    x->question.order.folder = x->folder;
    x->question.order.logs = logs ? logs : x->folder;
    return PLIM_OK;
}

/* LD_PRELOAD is a list with blanks and colons: a library in a folder that has one is preloaded by way
 * of a link. */
static enum plim_status link_library(struct exec *x, struct plim_error *err)
{
    char link[sizeof(x->folder) + 8], *name = strrchr(x->library, '/');
    if (!x->library[strcspn(x->library, SEPARATORS)]) return PLIM_OK;
    snprintf(link, sizeof(link), "%s/lib", x->folder);
    *name = '\0';
    if (symlink(x->library, link))
        return plim_fail(err, PLIM_IO, "%s: %s", link, strerror(errno));
    char file[64];
    snprintf(file, sizeof(file), "%s", name + 1);
    snprintf(x->library, sizeof(x->library), "%s/%s", link, file);
    return PLIM_OK;
}

static enum plim_status open_real(struct exec *x, struct plim_error *err)
{
    if (x->request->program.gpus > 1)
        return plim_fail(err, PLIM_INVALID, "--gpus is for simulated cards, not for %s",
                         x->card_order.uri);
    enum plim_status st =
        find_library(x, "../devices/observe", "libplimsoll-observe.so", err);
    if (!st) st = plim_card_open_for_program(&x->card, &x->card_order, err);
    x->question.order.visible = x->card.uuid;
    return st;
}

static enum plim_status open_card(struct exec *x, struct plim_error *err)
{
    const char *uri;
    enum plim_status st =
        plim_common_device(x->request, &x->spec, &x->log, &x->target, &uri, err);
    if (st) return st;
    x->card_order = (struct plim_card_order){
        .uri = uri, .allowance = &x->allowance, .spec = &x->spec, .stop = &x->stop, .log = &x->log};
    enum plim_device_scheme scheme = plim_uri_scheme(uri);
    if (scheme == PLIM_SCHEME_CUDA) return open_real(x, err);
    if (scheme != PLIM_SCHEME_SIM)
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "--device %s: exec runs programs on sim:NAME and cuda:N", uri);
    st = find_library(x, "../devices/virtual", "libcuda.so.1", err);
    return st ? st : plim_card_open(&x->card, &x->card_order, err);
}

static void fill_question(struct exec *x)
{
    const struct plim_request_program *asked = &x->request->program;
    struct plim_program_question *q = &x->question;
    q->program = &x->program;
    q->spec = &x->spec;
    q->card = &x->card;
    q->stop = &x->stop;
    q->log = &x->log;
    q->cards = asked->gpus ? asked->gpus : 1;
    q->jobs = asked->jobs ? asked->jobs : 1;
    q->order.library = x->library;
    q->order.run_seconds = asked->run_seconds;
    q->order.limit_seconds = asked->limit_seconds > 0 ? asked->limit_seconds : LIMIT_SECONDS;
    q->order.steps = (int)asked->steps;
    q->order.repetitions = asked->repetitions ? (int)asked->repetitions : REPETITIONS;
    if (asked->observe && !asked->repetitions) q->order.repetitions = 0; /* to its own end */
    if (asked->observe && asked->limit_seconds <= 0) q->order.limit_seconds = 0;
    if (q->order.visible) q->jobs = 1; /* there is one card */
    /* A file that is written to one place keeps trials from running beside each other. */
    for (size_t i = 0; i < x->program.file_count && q->jobs > 1; i++) {
        const char *path = x->program.files[i].path;
        if (plim_words_has(path, "dir") || plim_words_has(path, "trial")) continue;
        plim_log(&x->log, PLIM_LOG_INFO, "one trial at a time: --file %s has no {dir}", path);
        q->jobs = 1;
    }
}

/* --- the modes -------------------------------------------------------------------------------- */

static enum plim_status dry_run(struct exec *x, const struct plim_io *io, struct plim_error *err)
{
    struct plim_program_instance instance = {0};
    struct plim_setting setting = {.micro_batch = 1, .seq = x->spec.seq.values[0],
                                   .accumulation = 1};
    struct plim_program program = x->program;
    struct plim_batch_rule rule;
    char *line = NULL;
    enum plim_status st = plim_batch_rule_init(&rule, &x->spec, err);
    if (st) return st;
    program.file_count = 0; /* nothing is written */
    for (size_t v = 0; v < plim_program_variants(&program) && !st; v++) {
        struct plim_batch batch = {0};
        setting.micro_batch = plim_batch_next(&rule, 0);
        if (setting.micro_batch) plim_batch_allowed(&rule, setting.micro_batch, &batch);
        setting.accumulation = batch.accumulation ? batch.accumulation : 1;
        setting.precision = (enum plim_precision)(x->spec.precision.count ? x->spec.precision.values[0] : 0);
        setting.variant = (int64_t)v;
        st = plim_program_fill(&program, &setting, "{dir}", 1, NULL, 0, &instance, err);
        if (!st) st = plim_program_shell_line(&instance, &line);
        if (!st) fprintf(io->out, "%s\n", line);
        free(line);
        line = NULL;
        plim_program_instance_finish(&instance);
    }
    return st;
}

static enum plim_status tune_program(struct exec *x, const struct plim_io *io,
                                     struct plim_error *err)
{
    struct plim_report report = {0};
    struct plim_result result = {0};
    struct plim_progress progress;
    plim_progress_init(&progress, x->request, io, 1);
    x->question.on_run = plim_progress_run;
    x->question.user = &progress;
    enum plim_status st = plim_program_decide(&x->question, &result, err);
    plim_progress_finish(&progress);
    if (!st && PLIM_ARRAY_PUSH(&report.results, result) != PLIM_OK)
        st = plim_fail(err, PLIM_NOMEM, "out of host memory");
    if (!st) st = plim_common_emit(x->request, io, &report, err);
    if (!st && result.ended == PLIM_LOST)
        st = plim_fail(err, PLIM_INVALID, "the program does not run: see the report");
    else if (!st && result.interrupted) st = result.ended;
    else if (!st && !result.choice.present) st = PLIM_NOFIT;
    if (report.results.count) plim_report_finish(&report);
    else plim_result_finish(&result);
    return st;
}

static enum plim_status run_exec(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_error *err)
{
    struct exec *x = calloc(1, sizeof(*x)); /* too large for comfort on a stack */
    char(*names)[PATH_MAX] = calloc(PLIM_PROGRAM_FILES, sizeof(*names));
    enum plim_status st = x && names ? PLIM_OK : plim_fail(err, PLIM_NOMEM, "out of host memory");
    if (st) goto out;
    x->request = request;
    x->log = plim_common_log(request, io);
    x->allowance = request->allowance; /* PyTorch reads its allocator options itself */
    x->stop = plim_common_stop(request, io);
    PLIM_TRY(plim_common_check_files(request, err));
    PLIM_TRY(read_program(x, names, err));
    PLIM_TRY(read_spec(x, err));
    if (request->program.dry_run) {
        st = dry_run(x, io, err);
        goto out;
    }
    PLIM_TRY(open_card(x, err));
    PLIM_TRY(make_folders(x, err));
    PLIM_TRY(link_library(x, err));
    plim_launch_prepare();
    fill_question(x);
    PLIM_TRY(tune_program(x, io, err));
out:
    if (x) {
        plim_card_close(&x->card);
        plim_program_finish(&x->program);
        if (x->folder[0]) plim_trial_remove_folder(x->folder);
    }
    free(x);
    free(names);
    return st;
}

const struct plim_command plim_command_exec = {
    .name = "exec", .argument = "-- CMD", .verb = PLIM_VERB_EXEC, .run = run_exec,
    .summary = "the largest batch of any program, on a GPU that is not there",
    .about = "Runs a training program of yours again and again, with another batch each\n"
             "time. On sim:NAME it runs on a virtual GPU: no GPU and no driver are needed,\n"
             "and PyTorch runs out of memory where that card would. On cuda:N it runs for\n"
             "real and is watched and timed. {batch}, {seq}, {accumulation}, {world},\n"
             "{precision} and {NAME} of an --axis are filled in, and {dir}, a folder of each\n"
             "trial's own. Example:\n\n"
             "  plimsoll exec --device sim:A100-SXM4-80GB --batch 1:512 \\\n"
             "    --effective-batch 512 -- \\\n"
             "    python train.py --batch-size {batch} --grad-accum {accumulation}\n"};
