/* env: writes a kept answer, or a plan, as variables when a job is launched. It fails open: if there is no answer, no
 * variables are set, the reason is reported, and the exit code is 0. */
#include "env.h"
#include "autotune/base/outfile.h"
#include "autotune/base/text.h"
#include "autotune/base/trust.h"
#include "autotune/store/handover.h"
#include "emit.h"
#include "autotune/store/least.h"
#include "spec_decision.h"
#include "env_gpus.h"
#include "exec.h"
#include "reports/report_reader.h"
#include "workloads/spec/zoo.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Time limit of a hook. */
static const double HOOK_SECONDS = 1;

enum on_miss { ON_MISS_PLAN, ON_MISS_TUNE, ON_MISS_NOTHING };

/* The state of a run. */
struct env {
    const struct plim_request *request;
    const struct plim_io *io;
    struct plim_log log;  /* warnings */
    struct plim_log info; /* requested information */
    enum on_miss on_miss;
    struct plim_handover handover;
    struct plim_decide decide; /* for a spec */
    struct plim_kept kept;     /* for a program; for a spec decide.kept is used */
    size_t count;
    struct plim_env_gpu gpus[PLIM_ENV_GPUS];
    struct plim_result results[PLIM_ENV_GPUS];
    size_t from; /* index of the result that has the choice */
    bool measured, stale;
};

/* --- messages --------------------------------------------------------------------------------- */

/* Writes a message in Slurm's protocol, which shows lines that start with "print" to the user. */
static void write_print(void *file, enum plim_log_level level, const char *text)
{
    fprintf(file, "print plimsoll: %s", level == PLIM_LOG_WARNING ? "warning: " : "");
    plim_text_write(file, text);
    fputc('\n', file);
}

static struct plim_log make_log(const struct plim_request *request, const struct plim_io *io,
                                enum plim_log_level level)
{
    if (request->quiet) return (struct plim_log){0};
    if (request->store.task_prolog)
        return (struct plim_log){.level = level, .write = write_print, .user = io->out};
    return (struct plim_log){.level = level, .write = plim_log_write_file, .user = io->err};
}

enum plim_status plim_env_fail_open(const struct plim_request *request, const struct plim_io *io,
                                    enum plim_status st, struct plim_error *err)
{
    char text[1024];
    const struct plim_log log = make_log(request, io, PLIM_LOG_INFO);
    if (!st) return PLIM_OK;
    plim_error_format(err, text, sizeof(text));
    if (!err->text[0]) snprintf(text, sizeof(text), "%s", plim_status_text(st));
    if (!request->store.strict)
        plim_log(&log, PLIM_LOG_INFO, "nothing is set: %s", text);
    else if (request->store.task_prolog)
        plim_log(&log, PLIM_LOG_INFO, "%s", text);
    else
        return err->text[0] ? st : plim_fail(err, st, "%s", text);
    *err = (struct plim_error)PLIM_ERROR_INIT; /* it was reported */
    return request->store.strict ? st : PLIM_OK;
}

/* --- time limit ------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_strict;
static char time_out_text[128];

/* Ends the process, whatever it waits for (a file server, a driver). Nothing has been written yet. */
static void on_time_out(int number)
{
    (void)number;
    ssize_t ignored = write(STDERR_FILENO, time_out_text, strlen(time_out_text));
    (void)ignored;
    _exit(is_strict ? 5 : 0);
}

static void set_timer(const struct env *env)
{
    const struct plim_request *request = env->request;
    double seconds = request->budget_seconds;
    if (seconds <= 0 && request->store.task_prolog && env->on_miss != ON_MISS_TUNE)
        seconds = HOOK_SECONDS;
    if (seconds <= 0) return;
    /* The search ends at its budget; it may take a moment longer to write its answer. */
    if (request->budget_seconds > 0 && env->on_miss != ON_MISS_NOTHING) seconds += HOOK_SECONDS;
    is_strict = request->store.strict;
    if (!request->store.task_prolog && !request->quiet)
        snprintf(time_out_text, sizeof(time_out_text),
                 "plimsoll: nothing is set: no answer within %g s\n", seconds);
    struct sigaction action = {.sa_handler = on_time_out};
    struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    timer.it_value.tv_usec = (suseconds_t)(1e6 * (seconds - (double)timer.it_value.tv_sec));
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* --- the question ----------------------------------------------------------------------------- */

static enum plim_status read_name(const char *option, const char *text, const char *const *names,
                                  size_t count, int *out, struct plim_error *err)
{
    char expected[128];
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(names[i], text) != 0) continue;
        *out = (int)i;
        return PLIM_OK;
    }
    if (!text) return PLIM_OK;
    plim_join_names(names, count, expected, sizeof(expected));
    return plim_fail(err, PLIM_INVALID, "%s is '%s', expected %s", option, text, expected);
}

static enum plim_status read_options(struct env *env, struct plim_error *err)
{
    static const char *const misses[] = {
        [ON_MISS_PLAN] = "plan", [ON_MISS_TUNE] = "tune", [ON_MISS_NOTHING] = "nothing"};
    const struct plim_request_store *asked = &env->request->store;
    int format = env->request->json ? PLIM_HANDOVER_JSON : PLIM_HANDOVER_SH, on_miss = ON_MISS_PLAN;
    enum plim_status st = read_name("--format", asked->format, plim_handover_formats,
                                    PLIM_HANDOVER_FORMATS, &format, err);
    if (!st) st = read_name("--on-miss", asked->on_miss, misses, 3, &on_miss, err);
    if (st) return st;
    if (asked->task_prolog && env->request->emit.name)
        return plim_fail(err, PLIM_INVALID, "--task-prolog and --emit, expected one of them");
    if ((st = plim_emit_check(env->request, err))) return st;
    if (asked->task_prolog) format = PLIM_HANDOVER_TASK_PROLOG;
    env->on_miss = asked->root_owned ? ON_MISS_NOTHING : (enum on_miss)on_miss;
    env->handover = (struct plim_handover){.format = (enum plim_handover_format)format,
                                           .names = asked->names.items,
                                           .name_count = asked->names.count};
    return plim_handover_check(&env->handover, err);
}

/* With --root-owned, accepts only names of the zoo and files that only root may write. */
static enum plim_status check_subject(const struct plim_request *request, struct plim_error *err)
{
    const char *subject = request->subject;
    if (!request->store.root_owned || !subject) return PLIM_OK;
    if (plim_zoo_find(subject) || plim_trust_only_root(subject)) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID,
                     "%s: anyone but root may write it, or its path is not absolute: not read",
                     subject);
}

/* --- one GPU ---------------------------------------------------------------------------------- */

static bool is_program(const struct env *env)
{
    return env->request->program.command != NULL;
}

static const struct plim_kept *kept_of(const struct env *env)
{
    return is_program(env) ? &env->kept : &env->decide.kept;
}

static enum plim_status put_question(struct env *env, const struct plim_store_gpu *gpu,
                                     struct plim_store_question *question, struct plim_error *err)
{
    if (is_program(env))
        return plim_exec_store_question(env->request, env->io, &env->log, &env->kept, gpu, question,
                                        err);
    plim_decide_store_question(&env->decide, gpu, question);
    return PLIM_OK;
}

/* Looks up the answer for a GPU, measured or simulated. `why` is the reason of a miss or a stale answer. */
static enum plim_status look_up(struct env *env, const struct plim_store_gpu *gpu, size_t index,
                                bool *found, char why[256], struct plim_error *err)
{
    struct plim_store_question question = {0};
    struct plim_store_found kept = {0};
    const struct plim_store *store = &kept_of(env)->store;
    *found = false;
    enum plim_status st = put_question(env, gpu, &question, err);
    if (!st) st = plim_store_find(store, &question, &kept, err);
    /* A stale plan is not used, since a new one takes little time. */
    enum plim_store_state least = gpu->simulated ? PLIM_STORE_HIT : PLIM_STORE_STALE;
    if (!st && kept.state >= least && kept.result.choice.present) {
        *found = true;
        env->results[index] = kept.result;
        kept.result = (struct plim_result){0};
        env->measured &= !gpu->simulated;
        env->stale |= kept.state == PLIM_STORE_STALE;
        if (kept.state == PLIM_STORE_STALE)
            plim_log(&env->log, PLIM_LOG_WARNING, "a stale answer of %s on %s: %s", kept.made,
                     kept.host, kept.why);
    }
    if (kept.why[0]) snprintf(why, 256, "%s", kept.why);
    if (!st && !*found && env->request->store.explain_miss)
        st = plim_store_explain_miss(store, &question, &env->info, err);
    plim_store_found_finish(&kept);
    plim_store_question_finish(&question);
    return st;
}

/* Takes the only result of a report. */
static enum plim_status take(struct env *env, struct plim_report *report, size_t index, struct plim_error *err)
{
    struct plim_result *result = &report->results.items[0];
    if (!result->choice.present)
        return plim_fail(err, result->ended ? result->ended : PLIM_NOFIT, "%s on %s",
                         result->ended ? plim_status_text(result->ended) : "nothing fits",
                         result->device.name);
    env->measured &= !result->device.simulated;
    env->stale |= result->interrupted;
    env->results[index] = *result;
    *result = (struct plim_result){0};
    return PLIM_OK;
}

static enum plim_status make(struct env *env, size_t index, const char *uri, struct plim_error *err)
{
    struct plim_report report = {0};
    enum plim_status st =
        is_program(env) ? plim_exec_report(env->request, env->io, &env->log, uri, &report, NULL, err)
                        : plim_decide_report(&env->decide, &uri, 1, &report, err);
    if (!st) st = take(env, &report, index, err);
    plim_report_finish(&report);
    return st;
}

/* Finds the answer for a GPU: measured answers are preferred to simulated ones, kept answers to new ones. */
static enum plim_status answer(struct env *env, size_t index, struct plim_error *err)
{
    const struct plim_env_gpu *gpu = &env->gpus[index];
    bool found = false, real = !gpu->gpu.simulated, off = kept_of(env)->off,
         fresh = kept_of(env)->fresh;
    char why[256] = "the store is not asked";
    enum plim_status st = PLIM_OK;
    if (!off && !fresh) st = look_up(env, &gpu->gpu, index, &found, why, err);
    if (st || found) return st;
    if (env->on_miss == ON_MISS_TUNE) return make(env, index, gpu->uri, err);
    if (real && gpu->twin[0] && !off && !fresh) {
        char ignored[256];
        st = look_up(env, &gpu->simulated, index, &found, ignored, err);
    }
    if (!st && !found && (env->on_miss == ON_MISS_NOTHING || !gpu->twin[0]))
        st = plim_fail(err, PLIM_NOFIT, "%s: %s", gpu->gpu.name, why);
    if (st) return st;
    if (real)
        plim_log(&env->log, PLIM_LOG_WARNING, "%s: simulated, not measured: %s", gpu->gpu.name,
                 why);
    return found ? PLIM_OK : make(env, index, gpu->twin, err);
}

/* --- all GPUs and output ---------------------------------------------------------------------- */

static enum plim_status prepare(struct env *env, struct plim_error *err)
{
    const struct plim_request *request = env->request;
    const char *device = NULL;
    const struct plim_allowance *allowance = &request->allowance;
    enum plim_status st = check_subject(request, err);
    if (st) return st;
    if (is_program(env)) {
        plim_kept_init(&env->kept, request, env->io->version, &env->log);
    } else {
        st = plim_decide_init(&env->decide, request, env->io, &env->log, err);
        env->decide.is_silent = true;
        device = env->decide.asked.spec.device;
        allowance = &env->decide.allowance;
    }
    return st ? st : plim_env_gpus(request, device, allowance, env->gpus, &env->count, err);
}

static enum plim_status choose(struct env *env, struct plim_result_choice *choice,
                               struct plim_error *err)
{
    const struct plim_result *results[PLIM_ENV_GPUS];
    for (size_t i = 0; i < env->count; i++) results[i] = &env->results[i];
    enum plim_status st = plim_store_least(results, env->count, choice, &env->from, err);
    if (!st && env->count > 1)
        plim_log(&env->log, PLIM_LOG_WARNING, "for %zu kinds of GPUs, as %s can", env->count,
                 env->gpus[env->from].gpu.name);
    return st;
}

static enum plim_status hand_over(struct env *env, const struct plim_result_choice *choice,
                                  struct plim_error *err)
{
    char *text = NULL;
    enum plim_status st = PLIM_OK;
    env->handover.choice = choice;
    env->handover.measured = env->measured;
    env->handover.stale = env->stale;
    if (env->request->emit.name)
        PLIM_TRY(plim_emit_text(env->request, env->io, &env->results[env->from], choice, &text, err));
    else
        PLIM_TRY(plim_handover_write(&env->handover, &text, err));
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL); /* the output must not be interrupted */
    for (size_t i = 0; i < env->request->files.count; i++)
        PLIM_TRY(plim_outfile_save(env->request->files.items[i], text, err));
    fputs(text, env->io->out);
out:
    free(text);
    return st;
}

/* Reads a report given instead of a spec, whose answer is then handed over. *is_report is false for anything else. */
static enum plim_status read_report(struct env *env, bool *is_report,
                                    struct plim_result_choice *choice, struct plim_error *err)
{
    struct plim_yaml yaml = {0};
    struct plim_result *result = &env->results[0];
    const struct plim_yaml_node *schema = NULL;
    *is_report = false;
    enum plim_status st = check_subject(env->request, err);
    if (st || !env->request->subject) return st;
    if (plim_yaml_read_file(env->request->subject, &yaml, NULL) == PLIM_OK && yaml.root &&
        yaml.root->kind == PLIM_YAML_MAPPING)
        schema = plim_yaml_get(yaml.root, "schema");
    const char *kind = schema && schema->kind == PLIM_YAML_SCALAR ? schema->text : "";
    if (!strcmp(kind, "plimsoll.plan/1"))
        st = plim_fail(err, PLIM_INVALID,
                       "%s has several answers, and env hands over one: expected the result of one GPU",
                       env->request->subject);
    if (!strcmp(kind, "plimsoll.result/1")) {
        *is_report = true;
        st = plim_report_read_result(&yaml, yaml.root, result, err);
        if (!st && !result->choice.present)
            st = plim_fail(err, PLIM_NOFIT, "%s: nothing fitted", env->request->subject);
        *choice = result->choice;
        env->measured = !result->device.simulated;
        env->stale = result->interrupted;
    }
    plim_yaml_finish(&yaml);
    return st;
}

static enum plim_status run(struct env *env, struct plim_error *err)
{
    struct plim_result_choice choice;
    bool is_report;
    enum plim_status st = read_options(env, err);
    if (st) return st;
    set_timer(env);
    st = read_report(env, &is_report, &choice, err);
    if (!st && !is_report) st = prepare(env, err);
    for (size_t i = 0; i < env->count && !st && !is_report; i++) st = answer(env, i, err);
    if (!st && !is_report) st = choose(env, &choice, err);
    if (!st) st = hand_over(env, &choice, err);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    return st;
}

static enum plim_status run_env(const struct plim_request *request, const struct plim_io *io,
                                struct plim_error *err)
{
    struct env *env = NULL;
    /* Slurm runs the hook for the batch script too, but only steps have tasks. */
    if (request->store.task_prolog && !getenv("SLURM_STEP_ID")) return PLIM_OK;
    env = calloc(1, sizeof(*env));
    enum plim_status st = env ? PLIM_OK : plim_no_memory(err);
    if (!st) {
        env->request = request;
        env->io = io;
        env->log = make_log(request, io, PLIM_LOG_WARNING);
        env->info = make_log(request, io, PLIM_LOG_INFO);
        env->measured = true;
        st = run(env, err);
        for (size_t i = 0; i < PLIM_ENV_GPUS; i++) plim_result_finish(&env->results[i]);
    }
    if (env) plim_decide_finish(&env->decide);
    free(env);
    /* A reader of the file would mistake an older answer for this one. */
    for (size_t i = 0; st && i < request->files.count; i++)
        if (plim_outfile_save(request->files.items[i], "", NULL) != PLIM_OK) break;
    return plim_env_fail_open(request, io, st, err);
}

const struct plim_command plim_command_env = {
    .name = "env",
    .argument = "SPEC",
    .id = PLIM_COMMAND_ENV,
    .run = run_env,
    .summary = "the answer as shell variables, at the moment of launch",
    .about = "Prints the answer that is kept for the GPUs here, in milliseconds, or plans one:\n\n"
             "  eval \"$(plimsoll env llama-3-8b --effective-batch 256)\"\n\n"
             "sets PLIMSOLL_MICRO_BATCH, _ACCUMULATION, _GLOBAL_BATCH, _SEQ, _PRECISION,\n"
             "_CHECKPOINTING, _SOURCE (measured or simulated) and _STALE (1: it still fits, but\n"
             "something else may be faster by now). Where there is no answer nothing is set,\n"
             "the reason is said, and the exit code is 0. SPEC may be a report, whose own answer\n"
             "is printed. It takes the options of plan, which have to be those that the answer\n"
             "was asked with; with a command behind --, those of exec. Its own options:\n"};
