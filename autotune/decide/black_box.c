#include "black_box.h"
#include "autotune/answer/executions.h"
#include "autotune/base/clock.h"
#include "autotune/exec/last_lines.h"
#include <math.h>

/* --- failed trials ------------------------------------------------------------------------------ */

struct shown {
    const struct plim_log *log;
    const char *why; /* to be logged before the first line; NULL: it was */
};

static void show_line(void *user, const char *line)
{
    struct shown *shown = user;
    if (shown->why) plim_log(shown->log, PLIM_LOG_WARNING, "%s; its last lines:", shown->why);
    shown->why = NULL;
    plim_log(shown->log, PLIM_LOG_WARNING, "| %s", line);
}

void plim_black_box_show_log(const struct plim_log *log, const char *folder, const char *name)
{
    plim_last_lines(folder, name, show_line, &(struct shown){.log = log});
}

bool plim_black_box_show_failure(const struct plim_log *log, const char *folder,
                                 const struct plim_execution *execution)
{
    if (!execution || execution->verdict == PLIM_OK || execution->verdict == PLIM_OOM ||
        execution->verdict == PLIM_CANCELLED)
        return false;
    struct shown shown = {log, execution->why};
    plim_last_lines(folder, execution->log, show_line, &shown);
    if (shown.why) plim_log(log, PLIM_LOG_WARNING, "%s; it wrote nothing", shown.why);
    return true;
}

/* Logs the failure of the last trial that failed. */
static void show_failure(const struct plim_black_box *box, const struct plim_prober *prober)
{
    bool shown = false;
    for (size_t i = prober->samples.count; i-- > 0 && !shown;)
        shown = plim_black_box_show_failure(box->log, box->options.logs,
                                            prober->samples.items[i].trial.details);
}

/* --- the decision ----------------------------------------------------------------------------- */

/* Makes one search. The samples of the prober are used again by the next. */
static enum plim_status search(const struct plim_black_box *box, enum plim_objective objective,
                               struct plim_prober *prober, struct plim_decision *decision,
                               struct plim_error *err)
{
    struct plim_question *question = &box->question->question;
    question->objective = objective;
    enum plim_status st = plim_decide(question, NULL, prober, decision, err);
    if (decision->failed || st) show_failure(box, prober);
    return st;
}

static enum plim_status write_answer(const struct plim_black_box *box,
                                     const struct plim_prober *prober,
                                     const struct plim_decision *decision,
                                     struct plim_result *result, struct plim_error *err)
{
    const struct plim_answer answer = {.name = plim_program_name(box->program),
                                       .source = "",
                                       .question = &box->question->question,
                                       .prober = prober,
                                       .device = &box->device->info,
                                       .limit = &box->device->limit,
                                       .details = &plim_details_execution,
                                       .gpus = box->gpus};
    enum plim_status st = plim_answer_decision(&answer, decision, result, err);
    if (!st) plim_reasons_program(&answer, decision, box->question->uses_batch, result);
    return st;
}

/* State of the callback before each trial, which warns once if the first trial took long. */
struct between {
    const struct plim_black_box *box;
    struct plim_executor *executor;
    bool warned;
};

static void warn_of_length(struct between *between)
{
    enum { TRIALS = 10 }; /* of the search for one combination of values, about */
    const struct plim_batch_request *batch = &between->box->question->question.batch;
    const struct plim_execution *first = plim_executor_first(between->executor);
    if (!first || between->warned) return;
    between->warned = true;
    if (first->end != PLIM_END_EXITED || first->seconds < PLIM_LONG_TRIAL_SECONDS) return;
    bool few = batch->only_listed && batch->listed_count && batch->listed_count < TRIALS;
    size_t trials = few ? batch->listed_count : TRIALS;
    plim_log(between->box->log, PLIM_LOG_WARNING,
             "the first trial ran to the program's own end, %.0f s; a search takes up to %zu such "
             "trials, about %.0f min for each value of other axes; --steps N or --for TIME ends "
             "them earlier",
             first->seconds, trials, ceil(first->seconds * (double)trials / 60));
}

static void note_run(void *user)
{
    struct between *between = user;
    if (between->box->on_run) between->box->on_run(between->box->user);
    warn_of_length(between);
}

/* Searches with the objective if times are known, otherwise with the one that replaces it. */
static enum plim_status search_timed(const struct plim_black_box *box, enum plim_objective asked,
                                     struct plim_prober *prober, struct plim_decision *decision,
                                     struct plim_error *err)
{
    bool times = !box->device->info.simulated && box->question->uses_batch;
    enum plim_objective untimed = plim_objectives[asked].untimed;
    enum plim_status st = search(box, times ? asked : untimed, prober, decision, err);
    if (st || !times || !decision->found || decision->choice.step_seconds > 0) return st;
    plim_decision_finish(decision);
    *decision = (struct plim_decision){0};
    return search(box, untimed, prober, decision, err);
}

/* Makes a decision and confirms its choice. Sets *again, and writes no answer, if the choice turns out to take more
 * memory than in its first trial. */
static enum plim_status decide_once(const struct plim_black_box *box, struct plim_executor *executor,
                                    struct between *between, enum plim_objective asked, bool *again,
                                    struct plim_result *result, struct plim_error *err)
{
    const struct plim_runner runner = plim_executor_runner(executor);
    struct plim_decision decision = {0};
    struct plim_cache cache = {0};
    struct plim_prober prober = {.runner = &runner,
                               .cache = &cache,
                               .stop = box->stop,
                               .on_run = note_run,
                               .on_run_user = between};
    enum plim_status st = search_timed(box, asked, &prober, &decision, err);
    const struct plim_execution *chosen =
        !st && decision.found ? plim_executor_confirm(executor, &decision.choice.setting) : NULL;
    *again = false;
    if (chosen) {
        *again = chosen->verdict != PLIM_OK || chosen->peak_bytes > decision.choice.trial.reserved_bytes;
        decision.choice.trial.details = chosen;
        if (box->chosen) *box->chosen = *chosen;
    }
    if (!st && !*again) st = write_answer(box, &prober, &decision, result, err);
    plim_decision_finish(&decision);
    plim_prober_finish(&prober);
    plim_cache_finish(&cache);
    return st;
}

static enum plim_status decide(const struct plim_black_box *box, struct plim_executor *executor,
                               struct plim_result *result, struct plim_error *err)
{
    struct between between = {.box = box, .executor = executor};
    enum plim_objective asked = box->question->question.objective;
    enum plim_status st = PLIM_OK;
    for (bool again = true; again && !st;)
        st = decide_once(box, executor, &between, asked, &again, result, err);
    return st;
}

enum plim_status plim_black_box_tune(const struct plim_black_box *box, struct plim_result *result,
                                     struct plim_error *err)
{
    const struct plim_run_device *device = box->device;
    struct plim_machine_gpu gpus[PLIM_MACHINE_GPUS];
    struct plim_execution_options options = box->options;
    struct plim_executor *executor;
    double start = plim_clock_seconds();
    plim_execution_gpus(&device->gpu, &device->limit, box->gpus, gpus);
    options.program = box->program;
    options.gpus = gpus;
    options.gpu_count = (int)box->gpus;
    options.stop = box->stop;
    options.adapts = !box->question->uses_batch;
    options.tells_accumulation = box->question->uses_accumulation;
    enum plim_status st = plim_executor_create(&options, (int)box->jobs, &executor, err);
    if (st) return st;
    st = decide(box, executor, result, err);
    plim_executor_destroy(&executor);
    result->seconds = plim_clock_seconds() - start;
    return st;
}
