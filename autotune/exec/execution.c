#define _GNU_SOURCE /* nftw */
#include "execution.h"
#include "autotune/base/clock.h"
#include "autotune/base/exit_status.h"
#include "autotune/base/outfile.h"
#include "autotune/base/text.h"
#include "devices/virtual/record/stream.h"
#include "devices/virtual/steps/steps_verdict.h"
#include "last_lines.h"
#include "launch.h"
#include "rest.h"
#include "starting.h"
#include "workspace.h"
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_NANOSECONDS = 10000000,
    WAITS_FOR_INPUT_SECONDS = 3,
    VARIABLES = 9,
    FOLDER_BYTES = 256,
    COMPILED_BYTES = FOLDER_BYTES + 16, /* length of the name of the compilers' cache folder */
};

struct trial {
    const struct plim_execution_options *options;
    struct plim_execution *out;
    struct plim_machine *machine;
    int machine_fd;
    int log; /* -1: none */
    char machine_path[64], mark[96], folder[FOLDER_BYTES], blocks[FOLDER_BYTES + 8];
    char library_folder[PATH_MAX], modules[PATH_MAX], programs[PATH_MAX], caches[2][COMPILED_BYTES + 48];
    struct plim_program_variable more[VARIABLES]; /* point into the buffers above */
    size_t more_count;
    struct plim_program_instance instance;
    struct plim_launch launch;
    double start, waits_since; /* clock seconds; waits_since is 0 while it does not wait for input */
    struct plim_rest rest;
    struct plim_rest_seen seen;
    struct plim_starting starting;
    double first_step; /* seconds from the start until a first step was seen; 0: none yet */
    int64_t unmet;      /* refused allocations that did not succeed later */
    int64_t refused_in; /* number of steps when an unmet refusal was first seen; -1: never */
    int64_t retried_in; /* number of steps when a refusal, met later or not, was last seen; -1: never */
};

/* --- start of a trial ------------------------------------------------------------------------- */

static void add(struct trial *t, const char *name, const char *value)
{
    t->more[t->more_count++] = (struct plim_program_variable){PLIM_VARIABLE_SET, name, value};
}

static void prepend_variable(struct trial *t, const char *name, const char *value)
{
    t->more[t->more_count++] = (struct plim_program_variable){PLIM_VARIABLE_PUT_BEFORE, name, value};
}

/* Writes the path of a folder of the workspace to `path` and returns it. */
static const char *folder_of(const struct trial *t, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", t->options->folder, name);
    return path;
}

static bool is_set(const struct plim_program *program, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < program->variable_count; i++)
        if (!strncmp(program->variables[i], name, length) && program->variables[i][length] == '=')
            return true;
    return getenv(name) != NULL;
}

/* Inductor's cache holds tuning choices besides code; Triton's holds code, and choices if the program caches them. */
enum { INDUCTOR, TRITON };
#define INDUCTOR_FOLDER "/torchinductor"
static const struct {
    const char *variable, *folder;
} caches[] = {[INDUCTOR] = {"TORCHINDUCTOR_CACHE_DIR", INDUCTOR_FOLDER},
              [TRITON] = {"TRITON_CACHE_DIR", "/triton"}};

static void name_compiled(const struct trial *t, bool is_own, char folder[COMPILED_BYTES])
{
    snprintf(folder, COMPILED_BYTES, "%s/" PLIM_WORKSPACE_COMPILED,
             is_own ? t->folder : t->options->folder);
}

/* True for a file in which Triton keeps the configuration that it chose for a kernel by benchmarking, which takes
 * memory. */
static bool is_tuned(const char *path)
{
    return plim_text_ends_with(path, ".autotune.json");
}

static int delete_if_tuned(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)place;
    if (kind == FTW_F && is_tuned(path)) unlink(path);
    return 0;
}

/* For nftw(): stops at a file whose creation takes GPU memory. Folders do not count: PyTorch creates them even if it
 * compiles nothing. */
static int saves_memory(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)place;
    return kind == FTW_F &&
           (is_tuned(path) || strstr(path, "/" PLIM_WORKSPACE_COMPILED INDUCTOR_FOLDER "/"));
}

/* True if the trial's caches hold results whose creation takes GPU memory. */
static bool is_compiled(const struct trial *t)
{
    char folder[COMPILED_BYTES];
    name_compiled(t, t->options->compiles_alone, folder);
    return nftw(folder, saves_memory, 16, FTW_PHYS) == 1;
}

/* Points the compilers' caches to a folder that the trials share, so that each kernel is compiled once. The user's own
 * caches are not used: results of tuning on a virtual GPU are wrong for a real one, and a program that finds compiled
 * code may take a different amount of memory than at its first launch. With `compiles_alone` only Triton's code is
 * shared. */
static void share_compiled(struct trial *t)
{
    bool is_alone = t->options->compiles_alone;
    char folder[COMPILED_BYTES];
    name_compiled(t, false, folder);
    if (is_alone || t->options->forgets_tuned) nftw(folder, delete_if_tuned, 16, FTW_PHYS);
    t->out->finds_compiled = is_compiled(t);
    for (int i = INDUCTOR; i <= TRITON; i++) {
        if (is_set(t->options->program, caches[i].variable)) continue;
        name_compiled(t, is_alone && i == INDUCTOR, folder);
        snprintf(t->caches[i], sizeof(t->caches[i]), "%s%s", folder, caches[i].folder);
        add(t, caches[i].variable, t->caches[i]);
    }
}

static enum plim_status fill(struct trial *t, const struct plim_setting *setting, int64_t number,
                             struct plim_error *err)
{
    const char *library = t->options->library, *name = strrchr(library, '/');
    snprintf(t->mark, sizeof(t->mark), "%s=%s", PLIM_MACHINE_VARIABLE, t->machine_path);
    add(t, PLIM_MACHINE_VARIABLE, t->machine_path);
    prepend_variable(t, "LD_PRELOAD", library);
    prepend_variable(t, "PYTHONPATH", folder_of(t, PLIM_WORKSPACE_MODULES, t->modules));
    share_compiled(t);
    if (t->options->visible) {
        add(t, "CUDA_VISIBLE_DEVICES", t->options->visible);
    } else {
        snprintf(t->library_folder, sizeof(t->library_folder), "%.*s", (int)(name - library), library);
        prepend_variable(t, "LD_LIBRARY_PATH", t->library_folder);
        prepend_variable(t, "PATH", folder_of(t, PLIM_WORKSPACE_PROGRAMS, t->programs));
        add(t, PLIM_STREAM_BLOCKS_VARIABLE, t->blocks);
        /* The user's choice among real GPUs does not apply to virtual ones. */
        if (getenv("CUDA_VISIBLE_DEVICES"))
            t->more[t->more_count++] =
                (struct plim_program_variable){PLIM_VARIABLE_TAKEN_OUT, "CUDA_VISIBLE_DEVICES", NULL};
    }
    return plim_program_fill(t->options->program, setting, t->folder, number, t->more,
                             t->more_count, &t->instance, err);
}

static enum plim_status begin(struct trial *t, const struct plim_setting *setting, int64_t number,
                              struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    snprintf(t->folder, sizeof(t->folder), "%s/%" PRId64, t->options->folder, number);
    snprintf(t->out->log, sizeof(t->out->log), "trial-%" PRId64 ".log", number);
    snprintf(t->blocks, sizeof(t->blocks), "%s/blocks", t->folder);
    if (mkdir(t->folder, 0700) || mkdir(t->blocks, 0700))
        return plim_fail(err, PLIM_IO, "%s: %s", t->folder, strerror(errno));
    t->machine = plim_machine_create(t->options->gpus, t->options->gpu_count, &t->machine_fd,
                                     t->machine_path);
    if (!t->machine) return plim_fail(err, PLIM_NOMEM, "no memory for the virtual machine");
    t->machine->repetitions = t->options->repetitions;
    t->machine->epoch_steps = t->options->epoch_steps;
    t->out->short_epochs = t->options->epoch_steps > 0;
    t->machine->accumulation = t->options->tells_accumulation ? (int32_t)setting->accumulation : 0;
    t->machine->given_count = (int32_t)t->options->given_count;
    memcpy(t->machine->given, t->options->given, sizeof(t->machine->given));
    PLIM_TRY(fill(t, setting, number, err));
    t->rest = (struct plim_rest){.folder = t->blocks,
                                 .allocator = {.environment = t->instance.environment,
                                               .ascending = t->options->gpus[0].ascending != 0},
                                 .repetitions = t->options->repetitions};
    t->log = plim_outfile_log(t->options->logs, t->out->log, err);
    if (t->log < 0) return PLIM_IO;
    const struct plim_launch_options launch = {.arguments = t->instance.arguments,
                                               .environment = t->instance.environment,
                                               .mark = t->mark,
                                               .log = t->log,
                                               .hold = t->options->hold,
                                               .files = t->instance.written.items,
                                               .file_count = t->instance.written.count};
    PLIM_TRY(plim_launch_start(&launch, &t->launch, err));
out:
    return st;
}

/* --- end of a trial --------------------------------------------------------------------------- */

/* Collects the state of the program's processes. The number of steps is the smallest of all processes that have done
 * any. */
static void poll_processes(struct trial *t)
{
    struct plim_execution *out = t->out;
    int64_t steps = INT64_MAX, unmet = 0, pending = 0, replanned = 0, limited = 0, refusals = t->out->refusals;
    int waiting = 0;
    t->seen = (struct plim_rest_seen){0};
    out->processes = out->launches = out->refusals = 0;
    for (int i = 0; i < PLIM_MACHINE_PROCESSES; i++) {
        struct plim_machine_process row, *p = &row;
        if (!t->machine->processes[i].pid) continue;
        plim_machine_read_process(t->machine, i, p);
        out->processes++;
        out->launches += p->launches + p->allocations;
        out->refusals += p->refusal.count;
        unmet += p->refusal.unmet;
        pending += p->refusal.pending;
        replanned += p->refusal.replanned;
        limited += p->refusal.limited;
        if (p->refusal.count) {
            out->asked_bytes = p->refusal.asked_bytes;
            out->free_bytes = p->refusal.free_bytes;
        }
        plim_rest_count(&t->seen, p);
        if (p->steps && p->steps < steps) steps = p->steps;
        if (p->steps) out->step_seconds = p->step_seconds, out->rule = p->rule;
        if (p->steps) out->in_epoch = p->in_epoch, out->epochs = p->epochs;
        if (p->waiting_optimizers > waiting) waiting = p->waiting_optimizers;
        if (p->leak_bytes > out->leak_bytes) out->leak_bytes = p->leak_bytes;
    }
    out->steps = t->seen.steps = steps == INT64_MAX ? 0 : steps;
    if (out->steps && t->first_step <= 0) t->first_step = plim_clock_seconds() - t->start;
    out->waiting_optimizers = waiting;
    t->unmet = unmet + pending;
    out->replanned = unmet && replanned == unmet;
    out->limited = unmet && limited == unmet;
    if (unmet && t->refused_in < 0) t->refused_in = out->steps;
    if (out->refusals != refusals) t->retried_in = out->steps;
}

/* Returns the count at which --steps is reached; what is counted may be micro-steps. */
static int64_t steps_needed(const struct trial *t)
{
    return plim_steps_needed((enum plim_steps_rule)t->out->rule, t->options->steps,
                             t->machine->accumulation);
}

/* True if the program still releases cached memory in almost every step after PLIM_FORECAST_STEPS. Not if the user
 * gave the length of trials (--steps, --for). */
static bool is_restless(const struct trial *t)
{
    enum { JUST_NOW = 2 };
    const struct plim_execution_options *options = t->options;
    int64_t steps = t->out->steps;
    return !options->steps && options->run_seconds <= 0 && steps >= PLIM_FORECAST_STEPS &&
           steps >= options->repetitions && t->retried_in >= steps - JUST_NOW;
}

/* True if all processes have reached their final memory and none is starting up. */
static bool is_at_rest(struct trial *t)
{
    return plim_rest_is_reached(&t->rest, t->machine, &t->seen) &&
           !plim_starting_any(&t->starting, t->machine, t->launch.guardian, t->first_step);
}

static bool is_over(struct trial *t)
{
    const struct plim_execution_options *options = t->options;
    double seconds = plim_clock_seconds() - t->start;
    enum plim_execution_end end = PLIM_END_EXITED;
    if (plim_launch_poll(&t->launch)) {
        t->out->end = PLIM_END_EXITED;
        return true;
    }
    if (plim_stop_check(options->stop, NULL) ||
        (options->given_up && atomic_load(options->given_up)))
        end = PLIM_END_STOPPED;
    else if (options->steps && t->out->steps >= steps_needed(t))
        end = PLIM_END_STEPS;
    else if (t->refused_in >= 0 && t->out->steps > t->refused_in + 1 && !options->adapts)
        end = PLIM_END_REFUSED; /* a step later, since the program may still be handling the error */
    else if (is_at_rest(t))
        end = PLIM_END_STEADY;
    else if (is_restless(t))
        end = PLIM_END_RESTLESS;
    else if (options->run_seconds > 0 && seconds >= options->run_seconds)
        end = PLIM_END_TIME;
    else if (options->limit_seconds > 0 && seconds >= options->limit_seconds)
        end = PLIM_END_LIMIT;
    else if (t->waits_since > 0 && plim_clock_seconds() - t->waits_since > WAITS_FOR_INPUT_SECONDS)
        end = PLIM_END_INPUT;
    t->out->end = end;
    return end != PLIM_END_EXITED;
}

static void monitor(struct trial *t)
{
    for (;;) {
        poll_processes(t);
        if (!plim_launch_waits_for_input(&t->launch))
            t->waits_since = 0;
        else if (t->waits_since <= 0)
            t->waits_since = plim_clock_seconds();
        if (is_over(t)) return;
        nanosleep(&(struct timespec){0, LOOK_NANOSECONDS}, NULL);
    }
}

/* --- results ---------------------------------------------------------------------------------- */

/* Reads what the process with the highest peak on a GPU held at that peak, by size. */
static void read_sizes(struct trial *t, int gpu)
{
    int64_t largest = -1;
    for (int k = 0; k < PLIM_MACHINE_PROCESSES; k++) {
        struct plim_machine_process row;
        plim_machine_read_process(t->machine, k, &row);
        if (row.peak_bytes[gpu] <= largest) continue;
        largest = row.peak_bytes[gpu];
        memcpy(t->out->sizes, row.at_peak[gpu], sizeof(t->out->sizes));
    }
}

/* Reads the peak of the fullest GPU. */
static void read_memory(struct trial *t)
{
    int fullest = 0;
    for (int i = 0; i < t->options->gpu_count; i++) {
        int contexts;
        int64_t held = plim_machine_read_peak(t->machine, i, &contexts);
        t->out->gpus_used += held > 0;
        if (i && held <= t->out->peak_bytes) continue;
        t->out->peak_bytes = held;
        t->out->peak_contexts = contexts;
        fullest = i;
    }
    read_sizes(t, fullest);
}

static enum plim_status fail(struct plim_execution *out, enum plim_status verdict, const char *why)
{
    snprintf(out->why, sizeof(out->why), "%s", why);
    return verdict;
}

static enum plim_status out_of_memory(struct trial *t)
{
    struct plim_execution *out = t->out;
    char asked[16], left[16];
    bool ended_badly = out->end == PLIM_END_EXITED && t->launch.status != 0;
    out->went_on = !ended_badly;
    if (out->went_on && t->options->adapts) return PLIM_OK;
    snprintf(out->why, sizeof(out->why),
             "out of memory when %s more were requested and %s were free%s%s",
             plim_format_bytes(out->asked_bytes, asked), plim_format_bytes(out->free_bytes, left),
             out->limited ? " of the GPU: it is over PyTorch's memory fraction" : "",
             out->replanned ? "; PyTorch went on with another convolution algorithm"
             : out->went_on ? "; the program went on with less"
                            : "");
    return PLIM_OOM;
}

static enum plim_status never_rests(struct trial *t)
{
    snprintf(t->out->why, sizeof(t->out->why),
             "out of memory again and again: after %" PRId64 " steps its allocator still frees cached memory and "
                                                             "retries",
             t->out->steps);
    return PLIM_OOM;
}

static enum plim_status ended_badly(struct trial *t)
{
    char how[64], error[160];
    struct plim_execution *out = t->out;
    plim_exit_status_text(t->launch.status, how, sizeof(how));
    plim_last_error(t->options->logs, out->log, error, sizeof(error));
    snprintf(out->why, sizeof(out->why), "the program %s%s%s", how, *error ? ": " : "", error);
    return PLIM_CRASHED;
}

static enum plim_status verdict_of(struct trial *t)
{
    struct plim_execution *out = t->out;
    if (out->end == PLIM_END_STOPPED) return fail(out, PLIM_CANCELLED, "interrupted");
    if (t->unmet) return out_of_memory(t);
    if (out->end == PLIM_END_RESTLESS) return never_rests(t);
    if (out->end == PLIM_END_INPUT)
        return fail(out, PLIM_CRASHED, "the program waits for input; there is no terminal here");
    if (out->end == PLIM_END_LIMIT)
        return fail(out, PLIM_TIMEOUT,
                    out->steps ? "the program did not end in time (--timeout)"
                               : "the program did not end in time (--timeout), and no training steps were recognised "
                                 "that would show when it can be ended; --for TIME ends it earlier");
    if (out->end == PLIM_END_EXITED && t->launch.status) return ended_badly(t);
    if (!out->processes || !out->launches)
        return fail(out, PLIM_UNSUPPORTED, "the program did not use a GPU");
    return PLIM_OK;
}

static void find_unread(const struct plim_execution_options *options, struct plim_execution *out)
{
    size_t used = 0;
    for (size_t i = 0; i < options->given_count && used < sizeof(out->unread); i++)
        if (!(out->questions.given_read & 1u << i))
            used += (size_t)snprintf(out->unread + used, sizeof(out->unread) - used, "%s%s", used ? ", " : "",
                                     options->given[i].place);
}

static void finish(struct trial *t)
{
    struct plim_execution *out = t->out;
    out->seconds = plim_clock_seconds() - t->start;
    plim_launch_end(&t->launch);
    out->makes_compiled = !out->finds_compiled && is_compiled(t);
    poll_processes(t);
    read_memory(t);
    out->note_count =
        plim_machine_read_notes(t->machine, out->notes, sizeof(out->notes) / sizeof(out->notes[0]));
    plim_machine_read_questions(t->machine, &out->questions);
    find_unread(t->options, out);
    out->verdict = verdict_of(t);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void plim_execution_remove_folder(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

enum plim_status plim_execution_run(const struct plim_execution_options *options,
                                    const struct plim_setting *setting, int64_t number,
                                    struct plim_execution *out, struct plim_error *err)
{
    struct trial t = {
        .options = options, .out = out, .machine_fd = -1, .log = -1, .refused_in = -1,
        .retried_in = -1, .start = plim_clock_seconds()};
    *out = (struct plim_execution){0};
    enum plim_status st = begin(&t, setting, number, err);
    if (!st) {
        monitor(&t);
        finish(&t);
    }
    if (t.log >= 0) close(t.log);
    plim_program_instance_finish(&t.instance);
    plim_machine_destroy(t.machine, t.machine_fd);
    plim_execution_remove_folder(t.folder);
    return st;
}

void plim_execution_describe_decision(const struct plim_machine_question *question, char *out,
                                      size_t size)
{
    char taken[120] = "0", way_out[PLIM_QUESTION_TEXT + 48] = "";
    const char *place = question->place, *slash = strrchr(place, '/');
    if (question->divides)
        snprintf(taken, sizeof(taken), "1, as 0 would end it");
    else if (question->answer && question->turned)
        snprintf(taken, sizeof(taken), "all that its mask may select, and %" PRId64 " times none, to leave a loop",
                 question->turned);
    else if (question->answer && question->bytes == 1)
        snprintf(taken, sizeof(taken), "true, as its mask may select");
    else if (question->answer)
        snprintf(taken, sizeof(taken), "%" PRId64 ", the most that its mask selects",
                 question->answer);
    else if (question->turned)
        snprintf(taken, sizeof(taken),
                 "0, and %" PRId64 " times otherwise, to leave a loop of %d reads",
                 question->turned, PLIM_LOOP_READS);
    if (place[0])
        snprintf(way_out, sizeof(way_out), "; --assume %s=VALUE gives it", slash ? slash + 1 : place);
    snprintf(out, size, "%s depends on an unknown value (of %.60s), assumed to be %s%s",
             place[0] ? place : "the program",
             question->kernel[0] ? question->kernel : "memory that no kernel wrote", taken, way_out);
}

_Static_assert((int)PLIM_PROGRAM_ASSUMES == (int)PLIM_MACHINE_GIVEN, "what a user says of values");
_Static_assert((int)PLIM_PROGRAM_GPUS == (int)PLIM_MACHINE_GPUS, "GPUs of a virtual machine");

void plim_execution_gpus(const struct plim_gpu *gpu, const struct plim_limit *limit, int64_t count,
                         struct plim_machine_gpu *out)
{
    bool is_given = limit->overhead_source && !strcmp(limit->overhead_source, "given");
    for (int64_t i = 0; i < count; i++) {
        plim_machine_gpu_fill(&out[i], gpu, (int)i);
        out[i].total_bytes = limit->usable_bytes;
        out[i].withheld_bytes = limit->margin_bytes;
        out[i].context_bytes = limit->overhead_bytes - limit->communicator_bytes;
        out[i].communicator_bytes = is_given ? 0 : PLIM_COMMUNICATOR_BYTES;
    }
}
