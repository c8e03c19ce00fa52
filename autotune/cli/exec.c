#define _GNU_SOURCE /* vasprintf */
#include "exec.h"
#include "asked_program.h"
#include "asked_trials.h"
#include "autotune/decide/black_box.h"
#include "autotune/exec/launch.h"
#include "autotune/exec/template.h"
#include "autotune/search/space.h"
#include "common.h"
#include "devices/open.h"
#include "kept.h"
#include "progress.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of a run of exec. */
struct exec {
    const struct plim_request *request;
    const struct plim_io *io;
    const char *uri; /* of the device; NULL: the request's */
    bool is_silent;  /* no progress */
    struct plim_asked_program asked;
    struct plim_allowance allowance;
    struct plim_log log;
    struct plim_stop stop;
    struct plim_run_device device;
    struct plim_run_options run_options;
    struct plim_target target; /* the GPU that "auto" found */
    struct plim_asked_trials trials;
    struct plim_black_box box;
};

/* --- the device ------------------------------------------------------------------------------- */

static enum plim_status open_real(struct exec *x, struct plim_error *err)
{
    if (x->request->program.gpus > 1)
        return plim_fail(err, PLIM_INVALID, "--gpus is for simulated GPUs, not for %s",
                         x->run_options.uri);
    enum plim_status st = plim_run_device_open_for_program(&x->device, &x->run_options, err);
    x->trials.options.visible = x->device.uuid;
    return st;
}

static enum plim_status find_device(struct exec *x, struct plim_error *err)
{
    enum plim_status st = x->uri ? PLIM_OK
                                 : plim_common_device(x->request, &x->asked.options, &x->log, &x->target,
                                                      &x->uri, err);
    if (st) return st;
    enum plim_device_scheme scheme = plim_uri_scheme(x->uri);
    if (scheme == PLIM_SCHEME_CUDA || scheme == PLIM_SCHEME_SIM) return PLIM_OK;
    return plim_fail(err, PLIM_UNSUPPORTED,
                     "--device %s: exec runs programs on sim:NAME and cuda:N", x->uri);
}

static enum plim_status open_device(struct exec *x, struct plim_error *err)
{
    x->run_options = (struct plim_run_options){
        .uri = x->uri, .allowance = &x->allowance, .stop = &x->stop, .log = &x->log};
    bool real = plim_uri_scheme(x->uri) == PLIM_SCHEME_CUDA;
    return real ? open_real(x, err) : plim_run_device_open(&x->device, &x->run_options, err);
}

static void fill_box(struct exec *x)
{
    const struct plim_request_program *asked = &x->request->program;
    struct plim_black_box *box = &x->box;
    box->options = x->trials.options;
    box->program = &x->asked.program;
    box->question = &x->asked.question;
    box->device = &x->device;
    box->stop = &x->stop;
    box->log = &x->log;
    box->gpus = asked->gpus ? asked->gpus : 1;
    box->jobs = asked->jobs ? asked->jobs : 1;
    if (box->options.visible) box->jobs = 1; /* there is only one GPU */
    /* If a file has the same path in all trials, they cannot run at the same time. */
    for (size_t i = 0; i < x->asked.program.file_count && box->jobs > 1; i++) {
        const char *path = x->asked.program.files[i].path;
        if (plim_template_has(path, "dir") || plim_template_has(path, "trial")) continue;
        plim_log(&x->log, PLIM_LOG_INFO, "one trial at a time: --file %s has no {dir}", path);
        box->jobs = 1;
    }
}

/* --- dry run and search ----------------------------------------------------------------------- */

/* Prints the command of every combination, at the smallest batch. */
static enum plim_status dry_run(struct exec *x, const struct plim_io *io, struct plim_error *err)
{
    struct plim_program program = x->asked.program;
    struct plim_space space = {0};
    struct plim_batch_rule rule;
    struct plim_batch batch = {.micro_batch = 1, .accumulation = 1};
    enum plim_status st = plim_batch_rule_init(&rule, &x->asked.question.question.batch, err);
    int64_t smallest = 0;
    if (!st) st = plim_batch_smallest(&rule, &smallest, err);
    if (!st) plim_batch_allowed(&rule, smallest, &batch);
    if (!st) st = plim_space_build(&space, &x->asked.question.question.axes, NULL, 0, err);
    program.file_count = 0; /* nothing is written */
    for (size_t i = 0; i < space.points.count && !st; i++) {
        struct plim_setting setting = space.points.items[i];
        struct plim_program_instance instance = {0};
        char *line = NULL;
        setting.micro_batch = smallest;
        setting.accumulation = batch.accumulation;
        st = plim_program_fill(&program, &setting, "{dir}", 1, NULL, 0, &instance, err);
        if (!st) st = plim_program_shell_line(&instance, &line);
        if (!st) fprintf(io->out, "%s\n", line);
        free(line);
        plim_program_instance_finish(&instance);
    }
    plim_space_finish(&space);
    return st;
}

/* Runs the trials of one answer. */
static enum plim_status search_round(struct exec *x, size_t round, struct plim_report *report,
                                     struct plim_error *err)
{
    struct plim_result result = {0};
    struct plim_progress progress;
    plim_common_round_allowance(x->request, round, &x->allowance);
    enum plim_status st = open_device(x, err);
    if (st) return st;
    fill_box(x);
    plim_progress_init(&progress, x->request, x->io, 1);
    if (x->is_silent) progress.file = NULL;
    x->box.on_run = plim_progress_run;
    x->box.user = &progress;
    st = plim_black_box_tune(&x->box, &result, err);
    plim_progress_finish(&progress);
    plim_run_device_close(&x->device);
    x->device = (struct plim_run_device){0};
    plim_common_record_question(x->request, round, &result);
    if (!st && PLIM_ARRAY_PUSH(&report->results, result) != PLIM_OK) st = plim_no_memory(err);
    if (st) plim_result_finish(&result);
    return st;
}

static enum plim_status search(void *user, struct plim_report *report, struct plim_error *err)
{
    struct exec *x = user;
    x->stop = plim_common_stop(x->request, x->io); /* waiting for other processes does not count */
    report->version = x->io->version;
    report->is_table = x->request->tiers;
    bool is_real = plim_uri_scheme(x->uri) == PLIM_SCHEME_CUDA;
    enum plim_status st = plim_asked_trials_create_workspace(&x->trials, is_real, err);
    plim_launch_prepare();
    for (size_t i = 0; i < plim_common_rounds(x->request) && !st; i++)
        st = search_round(x, i, report, err);
    return st;
}

/* --- kept answers ----------------------------------------------------------------------------- */

/* Finds the store's description of the GPU, without starting anything on it. Returns false if that is not possible. */
static bool find_gpu(struct exec *x, bool counts_others, struct plim_store_gpu *gpu,
                     char place[PLIM_STORE_PLACE])
{
    struct plim_target target;
    struct plim_target_place here = plim_target_local();
    here.has_cuda = true; /* the program has its own kernels */
    if (plim_uri_scheme(x->uri) == PLIM_SCHEME_SIM) {
        place[0] = '\0';
        return plim_kept_gpu_of_uri(x->uri, &x->allowance, gpu, NULL) == PLIM_OK;
    }
    if (plim_target_resolve_at(&here, x->uri, &target, NULL) != PLIM_OK) return false;
    snprintf(place, PLIM_STORE_PLACE, "%s", target.uuid);
    return plim_store_gpu_of_target(&target, counts_others, gpu);
}

/* A list of owned strings. */
struct texts {
    PLIM_ARRAY(char *) list;
    bool failed;
};

static void add(struct texts *texts, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    va_end(arguments);
    if (text && PLIM_ARRAY_PUSH(&texts->list, text) == PLIM_OK) return;
    free(text);
    texts->failed = true;
}

/* Lists the options on which the results of trials depend, as they were typed. */
static void list_options(const struct exec *x, struct texts *texts)
{
    const struct plim_request *request = x->request;
    const struct plim_request_program *asked = &request->program;
    for (size_t i = 0; i < request->setting_count; i++)
        add(texts, "%s=%s", request->settings[i].key, request->settings[i].value);
    for (size_t i = 0; i < asked->axes.count; i++) add(texts, "axis %s", asked->axes.items[i]);
    if (asked->batch) add(texts, "batch=%s", asked->batch);
    if (asked->seq) add(texts, "seq=%s", asked->seq);
    if (asked->gpus > 1) add(texts, "gpus=%lld", (long long)asked->gpus);
    if (asked->steps) add(texts, "steps=%lld", (long long)asked->steps);
    if (asked->repetitions) add(texts, "repetitions=%lld", (long long)asked->repetitions);
    if (asked->epoch_steps) add(texts, "epoch_steps=%lld", (long long)asked->epoch_steps);
    for (size_t i = 0; i < asked->assumes.count; i++)
        add(texts, "assume %s", asked->assumes.items[i]);
    if (asked->run_seconds > 0) add(texts, "for=%g", asked->run_seconds);
}

static enum plim_status fill_question(const struct exec *x, const struct plim_store_gpu *gpu,
                                      const struct plim_kept *kept,
                                      struct plim_store_question *question, struct plim_error *err)
{
    struct texts options = {0};
    enum plim_objective objective = x->request->objective;
    const char *name =
        objective == PLIM_OBJECTIVE_THROUGHPUT ? "exec" : plim_objectives[objective].name;
    const struct plim_store_asked asked = plim_kept_asked(kept, name, &x->allowance);
    list_options(x, &options);
    plim_store_question_program(&x->asked.program, &asked, (const char *const *)options.list.items,
                                options.list.count, question);
    plim_store_question_gpu(gpu, question);
    for (size_t i = 0; i < options.list.count; i++) free(options.list.items[i]);
    PLIM_ARRAY_FINISH(&options.list);
    return options.failed ? plim_no_memory(err) : PLIM_OK;
}

/* The callbacks for plim_kept_answer(). The GPU is resolved each time, since the memory that others hold changes. */
struct asking {
    struct exec *exec;
    struct plim_kept kept;
};

static enum plim_status fill_question_for(void *user, bool counts_others, struct plim_store_question *question,
                                          struct plim_error *err)
{
    const struct asking *a = user;
    struct plim_store_gpu gpu;
    char place[PLIM_STORE_PLACE];
    if (!find_gpu(a->exec, counts_others, &gpu, place))
        return plim_fail(err, PLIM_NODEVICE, "%s: it is gone", a->exec->uri);
    return fill_question(a->exec, &gpu, &a->kept, question, err);
}

static enum plim_status make(void *user, struct plim_report *report, struct plim_error *err)
{
    return search(((struct asking *)user)->exec, report, err);
}

static enum plim_status answer(struct exec *x, struct plim_report *report, struct plim_error *err)
{
    struct asking asking = {.exec = x};
    struct plim_store_question question = {0};
    struct plim_store_gpu gpu;
    char place[PLIM_STORE_PLACE], name[PLIM_STORE_NAME];
    plim_kept_init(&asking.kept, x->request, x->io->version, &x->log);
    bool asks_once = x->request->tiers || x->request->program.observe || x->request->program.logs;
    if (asking.kept.off || asks_once || !find_gpu(x, false, &gpu, place))
        return search(x, report, err);
    enum plim_status st = fill_question(x, &gpu, &asking.kept, &question, err);
    plim_store_name(&question.key, name);
    name[strcspn(name, ".")] = '\0';
    /* Processes with trials on simulated GPUs only wait for each other if they have the same question. */
    const struct plim_kept_ask ask = {.place = place[0] ? place : name,
                                      .fill_question = fill_question_for,
                                      .make = make,
                                      .user = &asking,
                                      .stop = &x->stop};
    if (!st) st = plim_kept_answer(&asking.kept, &ask, report, err);
    plim_store_question_finish(&question);
    return st;
}

/* --- the command ------------------------------------------------------------------------------ */

static enum plim_status prepare(struct exec *x, const struct plim_request *request,
                                const struct plim_io *io, const struct plim_log *log,
                                struct plim_error *err)
{
    x->request = request;
    x->io = io;
    x->log = *log;
    x->allowance = request->allowance; /* PyTorch reads its allocator options itself */
    x->stop = plim_common_stop(request, io);
    enum plim_status st = plim_asked_trials_read(&request->program, &x->trials, err);
    return st ? st : plim_asked_program_read(request, &x->asked, err);
}

static void finish(struct exec *x)
{
    if (!x) return;
    plim_run_device_close(&x->device);
    plim_asked_program_finish(&x->asked);
    plim_asked_trials_finish(&x->trials);
    free(x);
}

enum plim_status plim_exec_report(const struct plim_request *request, const struct plim_io *io,
                                  const struct plim_log *log, const char *uri,
                                  struct plim_report *report, struct plim_execution *chosen,
                                  struct plim_error *err)
{
    struct exec *x = calloc(1, sizeof(*x)); /* too large for the stack */
    enum plim_status st = x ? PLIM_OK : plim_no_memory(err);
    if (st) return st;
    x->uri = uri;
    x->is_silent = true;
    x->box.chosen = chosen;
    st = prepare(x, request, io, log, err);
    if (!st) st = find_device(x, err);
    if (!st) st = answer(x, report, err);
    finish(x);
    return st;
}

enum plim_status plim_exec_store_question(const struct plim_request *request,
                                          const struct plim_io *io, const struct plim_log *log,
                                          const struct plim_kept *kept,
                                          const struct plim_store_gpu *gpu,
                                          struct plim_store_question *question,
                                          struct plim_error *err)
{
    struct exec *x = calloc(1, sizeof(*x));
    enum plim_status st = x ? PLIM_OK : plim_no_memory(err);
    if (st) return st;
    st = prepare(x, request, io, log, err);
    if (!st) st = fill_question(x, gpu, kept, question, err);
    finish(x);
    return st;
}

/* Returns the status for the result of the last tier, which has the most memory. */
static enum plim_status verdict(const struct plim_report *report, struct plim_error *err)
{
    const struct plim_result *result = &report->results.items[report->results.count - 1];
    if (result->ended == PLIM_LOST)
        return plim_fail(err, PLIM_INVALID, "the program does not run: see the report");
    if (result->unsupported)
        return plim_fail(err, PLIM_INVALID, "the program did not use a GPU: see the report");
    if (result->interrupted) return result->ended;
    return result->choice.present ? PLIM_OK : PLIM_NOFIT;
}

static enum plim_status run_exec(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_error *err)
{
    struct exec *x = calloc(1, sizeof(*x));
    struct plim_log log = plim_common_log(request, io);
    struct plim_report report = {0};
    enum plim_status st = x ? PLIM_OK : plim_no_memory(err);
    if (st) goto out;
    PLIM_TRY(plim_common_check_files(request, err));
    PLIM_TRY(prepare(x, request, io, &log, err));
    if (request->program.dry_run) {
        st = dry_run(x, io, err);
        goto out;
    }
    PLIM_TRY(find_device(x, err));
    PLIM_TRY(answer(x, &report, err));
    PLIM_TRY(plim_common_emit(request, io, &report, err));
    st = verdict(&report, err);
out:
    plim_report_finish(&report);
    finish(x);
    return st;
}

const struct plim_command plim_command_exec = {
    .name = "exec",
    .argument = "-- CMD",
    .id = PLIM_COMMAND_EXEC,
    .run = run_exec,
    .summary = "the largest batch of any program of yours",
    .about = "Runs a training program of yours again and again, with another batch each\n"
             "time. On sim:NAME it runs on a virtual GPU: no GPU and no driver are needed,\n"
             "and PyTorch runs out of memory where that GPU would. On cuda:N it runs for\n"
             "real and is watched and timed. {batch}, {seq}, {accumulation}, {world},\n"
             "{precision} and {NAME} of an --axis are filled in, and {dir}, a folder of each\n"
             "trial's own. Example:\n\n"
             "  plimsoll exec --device sim:A100-SXM4-80GB --batch 1:512 \\\n"
             "    --effective-batch 512 -- \\\n"
             "    python train.py --batch-size {batch} --grad-accum {accumulation}\n"};
