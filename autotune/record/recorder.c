/* A run of the program that is recorded. */
#include "recorder.h"
#include "autotune/base/clock.h"
#include "autotune/exec/program_files.h"
#include "autotune/trace/trace.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Environment variables that make the allocators of PyTorch and XLA call cudaMalloc for every tensor; and those that
 * override options of PyTorch's allocator set in this environment, which do not apply to the recording. */
static const char *const uncached[] = {"PYTORCH_NO_CUDA_MEMORY_CACHING=1", "XLA_PYTHON_CLIENT_ALLOCATOR=platform"};
static const char *const as_it_is[] = {"PYTORCH_CUDA_ALLOC_CONF=", "PYTORCH_ALLOC_CONF="};
enum { MORE_VARIABLES = 5, VARIABLE_BYTES = 512 };

static enum plim_status check_verdict(const struct plim_record *record,
                                      const struct plim_execution *run,
                                      struct plim_recorded_point point, struct plim_error *err)
{
    for (uint32_t i = 0; i < run->note_count; i++)
        plim_log(record->log, PLIM_LOG_WARNING, "%s", run->notes[i]);
    if (run->verdict == PLIM_OK) return PLIM_OK;
    return plim_fail(err, run->verdict, "recording at batch %lld, length %lld: %s",
                     (long long)point.batch, (long long)point.seq, run->why);
}

static void add_variables(struct plim_program *program, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count && program->variable_count < PLIM_PROGRAM_VARIABLES; i++)
        program->variables[program->variable_count++] = list[i];
}

void plim_recorder_describe_axes(const struct recorder *r, const struct plim_setting *setting, bool with_seq,
                          char *text, size_t size)
{
    const struct plim_axes *axes = &r->record->question->question.axes;
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < axes->count && used < size; i++) {
        char room[PLIM_AXIS_TEXT];
        if ((int)i == axes->seq && !with_seq) continue;
        used += (size_t)snprintf(text + used, size - used, ", %s %s", axes->axis[i].name,
                                 plim_axes_text(axes, setting, i, room));
    }
}

/* Logs a line about a run. */
static void log_run(const struct recorder *r, const struct plim_setting *setting, bool caches,
                    const struct plim_trace *trace, double seconds)
{
    char micro_steps[48] = "", axes[512];
    if (r->out->accumulates)
        snprintf(micro_steps, sizeof(micro_steps), ", %lld micro-steps", (long long)setting->accumulation);
    plim_recorder_describe_axes(r, setting, true, axes, sizeof(axes));
    plim_log(r->record->log, PLIM_LOG_INFO, "batch %lld%s%s%s: %zu events, %zu steps, %.1f s",
             (long long)setting->micro_batch, micro_steps, axes,
             caches ? ", with its own allocator" : "", trace->events.count, trace->steps, seconds);
}

enum plim_status plim_recorder_doubt(struct recorder *r, const char *text)
{
    struct plim_recorded_texts *doubts = &r->out->doubts;
    size_t known = doubts->count;
    enum plim_status st = plim_recorded_texts_add_once(doubts, text, PLIM_RECORDED_PARTS);
    if (doubts->count > known)
        plim_log(r->record->log, PLIM_LOG_WARNING, "the recording is uncertain: %s", text);
    return st;
}

/* Adds the program's decisions by values that only a real GPU knows. */
static enum plim_status note_doubts(struct recorder *r, const struct plim_machine_questions *asked)
{
    enum plim_status st = PLIM_OK;
    char text[PLIM_DECISION_TEXT];
    for (uint32_t i = 0; i < asked->count && !st; i++) {
        if (asked->rows[i].use != PLIM_QUESTION_DECIDES) continue;
        plim_execution_describe_decision(&asked->rows[i], text, sizeof(text));
        st = plim_recorder_doubt(r, text);
    }
    return st;
}

enum plim_status plim_recorder_run(struct recorder *r, const struct plim_setting *setting, bool caches,
                            struct plim_trace *trace, struct plim_error *err)
{
    const struct plim_record *record = r->record;
    struct plim_program program = *record->options.program;
    struct plim_execution_options options = record->options;
    struct plim_execution *execution = calloc(1, sizeof(*execution));
    char folder[256], variable[VARIABLE_BYTES];
    const char *const more[] = {variable};
    if (!execution) return plim_no_memory(err);
    if (program.variable_count + MORE_VARIABLES > PLIM_PROGRAM_VARIABLES) {
        free(execution);
        return plim_fail(err, PLIM_INVALID, "--env: expected at most %d",
                         PLIM_PROGRAM_VARIABLES - MORE_VARIABLES);
    }
    snprintf(folder, sizeof(folder), "%s/recorded-%lld", options.folder, (long long)++r->runs);
    snprintf(variable, sizeof(variable), "PLIMSOLL_RECORDING=%s", folder);
    add_variables(&program, more, 1);
    add_variables(&program, caches ? as_it_is : uncached, 2);
    options.program = &program;
    options.repetitions *= r->patience;
    options.compiles_alone = !caches;
    options.forgets_tuned = caches && !r->has_cached;
    r->has_cached |= caches;
    double start = plim_clock_seconds();
    enum plim_status st = PLIM_OK;
    if (mkdir(folder, 0700))
        st = plim_fail(err, PLIM_IO, "%s: %s", folder, strerror(errno));
    if (!st) st = plim_execution_run(&options, setting, r->runs, execution, err);
    if (!st) st = check_verdict(record, execution, trace->point, err);
    if (st == PLIM_CRASHED || st == PLIM_TIMEOUT || st == PLIM_UNSUPPORTED)
        memcpy(record->failed_log, execution->log, sizeof(execution->log));
    r->was_ended = !st && execution->end == PLIM_END_STEADY;
    if (!st) st = plim_trace_read(folder, trace, err);
    if (!st) log_run(r, setting, caches, trace, plim_clock_seconds() - start);
    if (!st && note_doubts(r, &execution->questions)) st = plim_no_memory(err);
    r->out->is_compiled |= execution->makes_compiled;
    r->peak_bytes = execution->peak_bytes;
    plim_execution_remove_folder(folder);
    free(execution);
    return st;
}
