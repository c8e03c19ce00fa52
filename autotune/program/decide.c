#include "decide.h"
#include "autotune/base/clock.h"
#include "autotune/base/text.h"
#include "autotune/outcome.h"
#include "autotune/tune.h"
#include "devices/virtual/machine/machine.h"
#include "devices/virtual/steps/steps_verdict.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)PLIM_PROGRAM_GPUS == (int)PLIM_MACHINE_CARDS,
               "all GPUs of a program are in its machine");

void plim_program_cards(const struct plim_card *card, int64_t count, struct plim_machine_card *out)
{
    for (int64_t i = 0; i < count; i++) {
        plim_machine_card_fill(&out[i], &card->gpu, (int)i);
        out[i].total_bytes = card->limit.usable_bytes;
        out[i].withheld_bytes = card->limit.margin_bytes;
        out[i].context_bytes = card->limit.overhead_bytes;
    }
}

/* --- what is particular to programs in a result ------------------------------------------------ */

/* What plimsoll knows of a model's training and not of a program's is absent. */
static void strip_setting(const struct plim_program_question *q, size_t variant,
                          struct plim_result_setting *setting)
{
    setting->optimizer = setting->checkpointing = setting->attention = setting->sharding = NULL;
    if (!q->uses_precision) setting->precision = NULL;
    if (!q->uses_seq) setting->seq = 0;
    if (!q->uses_batch) setting->micro_batch = 0;
    for (size_t i = 0; i < q->program->axis_count; i++) {
        struct plim_result_size *size = &setting->sizes[setting->size_count++];
        snprintf(size->name, sizeof(size->name), "%s", q->program->axes[i].name);
        snprintf(size->value, sizeof(size->value), "%s",
                 plim_program_value(q->program, variant, i));
    }
}

static void strip(const struct plim_program_question *q, const struct plim_prober *prober,
                  const struct plim_decision *decision, struct plim_result *result)
{
    strip_setting(q, (size_t)decision->choice.setting.variant, &result->choice.setting);
    strip_setting(q, (size_t)decision->largest.setting.variant, &result->largest_fit.setting);
    for (size_t i = 0; i < prober->samples.count; i++)
        strip_setting(q, (size_t)prober->samples.items[i].setting.variant,
                      &result->samples.items[i].setting);
    result->breakdown.present = false;
    result->is_program = true;
}

static void copy_segments(const struct plim_trial *trial, struct plim_result *result)
{
    for (int i = 0; i < PLIM_MACHINE_SIZES; i++) {
        if (!trial->sizes[i].count) continue;
        result->segments[result->segment_count++] = (struct plim_result_segments){
            .from_bytes = i ? (int64_t)1 << 20 << i : 0,
            .count = trial->sizes[i].count,
            .bytes = trial->sizes[i].bytes};
    }
}

static void tell_trial(const struct plim_trial *trial, struct plim_result *result)
{
    static const char *const ends[] = {
        [PLIM_TRIAL_EXITED] = "the program ended by itself",
        [PLIM_TRIAL_STEADY] = "its peak did not grow any more",
        [PLIM_TRIAL_STEPS] = "it had done the steps that were asked for",
        [PLIM_TRIAL_TIME] = "its time was over (--for)",
        [PLIM_TRIAL_LIMIT] = "it took too long",
        [PLIM_TRIAL_INPUT] = "it waited for input",
        [PLIM_TRIAL_STOPPED] = "it was interrupted",
    };
    char bytes[16], seen[96] = "no training steps were recognised";
    copy_segments(trial, result);
    if (trial->steps)
        snprintf(seen, sizeof(seen), "%" PRId64 " training steps were recognised, by %s",
                 trial->steps, plim_steps_rule_name((enum plim_steps_rule)trial->rule));
    plim_result_reason(result, "The trial of the choice was over after %.1f s: %s; %s.",
                       trial->seconds, ends[trial->end], seen);
    if (trial->leak_bytes > 0)
        plim_result_reason(result, "The program leaks: it holds %s more after each step.",
                           plim_format_bytes((int64_t)trial->leak_bytes, bytes));
}

static void tell_programs_end(const struct plim_program_question *q,
                              const struct plim_program_runner *runner,
                              const struct plim_decision *decision, struct plim_result *result)
{
    struct plim_setting setting = decision->choice.setting;
    const struct plim_trial *trial = NULL;
    if (setting.accumulation > PLIM_PROBED_STEPS && !plim_program_runner_trial(runner, &setting))
        setting.accumulation = PLIM_PROBED_STEPS;
    if (decision->found) trial = plim_program_runner_trial(runner, &setting);
    if (trial) tell_trial(trial, result);
    for (size_t i = 0; i < plim_program_runner_count(runner); i++) {
        trial = plim_program_runner_at(runner, i);
        if (!trial || !trial->went_on) continue;
        plim_result_reason(result, "The program itself goes on with less when memory is refused%s.",
                           q->uses_batch ? "; such a trial counts as out of memory" : "");
        break;
    }
    if (q->card->device.simulated)
        plim_result_reason(result,
                           "A virtual card has no time and computes nothing: how fast it is, and "
                           "what depends on values (routing, sampling), is not known.");
}

static void tell_notes(const struct plim_program_question *q,
                       const struct plim_program_runner *runner, struct plim_result *result)
{
    char told[8][160];
    size_t count = 0;
    (void)q;
    for (size_t i = 0; i < plim_program_runner_count(runner); i++) {
        const struct plim_trial *trial = plim_program_runner_at(runner, i);
        for (uint32_t n = 0; trial && n < trial->note_count; n++) {
            size_t k = 0;
            while (k < count && strcmp(told[k], trial->notes[n])) k++;
            if (k < count || count == 8) continue;
            snprintf(told[count++], sizeof(told[0]), "%s", trial->notes[n]);
            plim_result_reason(result, "Virtual GPU: %s.", trial->notes[n]);
        }
    }
}

/* --- the log of a trial that failed ------------------------------------------------------------- */

enum { LOG_LINES = 12, LOG_BYTES = 4096 };

/* The last lines of a file, each for itself. */
static void log_tail(const struct plim_log *log, const char *path)
{
    char text[LOG_BYTES + 1];
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (fseek(file, -LOG_BYTES, SEEK_END)) rewind(file);
    size_t length = fread(text, 1, LOG_BYTES, file);
    fclose(file);
    text[length] = '\0';
    size_t at = length;
    for (int lines = 0; at > 0 && lines <= LOG_LINES; lines += text[at] == '\n') at--;
    if (at > 0) at++;
    for (char *rest, *line = strtok_r(text + at, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        plim_log(log, PLIM_LOG_WARNING, "| %s", line);
}

static void show_failure(const struct plim_program_question *q,
                         const struct plim_program_runner *runner)
{
    for (size_t i = plim_program_runner_count(runner); i-- > 0;) {
        const struct plim_trial *trial = plim_program_runner_at(runner, i);
        if (!trial || trial->verdict == PLIM_OK || trial->verdict == PLIM_OOM ||
            trial->verdict == PLIM_CANCELLED)
            continue;
        plim_log(q->log, PLIM_LOG_WARNING, "%s; its last lines:", trial->why);
        log_tail(q->log, trial->log);
        return;
    }
}

/* --- the whole -------------------------------------------------------------------------------- */

/* One search; what was tried is not tried again in the next. */
static enum plim_status search(const struct plim_program_question *q,
                               struct plim_program_runner *runner, enum plim_objective objective,
                               struct plim_prober *prober, struct plim_decision *decision,
                               struct plim_error *err)
{
    struct plim_tuning tuning = {.spec = q->spec, .prober = prober, .objective = objective};
    enum plim_status st = plim_tune(&tuning, decision, err);
    if (decision->failed || st) show_failure(q, runner);
    return st;
}

static void tell(const struct plim_program_question *q, const struct plim_program_runner *runner,
                 const struct plim_prober *prober, const struct plim_decision *decision,
                 struct plim_result *result)
{
    strip(q, prober, decision, result);
    tell_programs_end(q, runner, decision, result);
    tell_notes(q, runner, result);
    if (!q->card->device.simulated && decision->found && decision->choice.step_seconds <= 0)
        plim_result_reason(result, "Nothing is known of time, so the largest batch was chosen.");
}

static enum plim_status decide(const struct plim_program_question *q,
                               struct plim_program_runner *runner, struct plim_result *result,
                               struct plim_error *err)
{
    struct plim_decision decision = {0};
    struct plim_memo memo = {0};
    struct plim_runner asked = {.run = plim_program_runner_run, .user = runner,
                                .budget_bytes = q->card->limit.budget_bytes,
                                .costly = true};
    struct plim_prober prober = {.runner = &asked, .memo = &memo, .stop = q->stop,
                                 .on_run = q->on_run, .on_run_user = q->user};
    bool times = !q->card->device.simulated && q->uses_batch;
    enum plim_status st =
        search(q, runner, times ? PLIM_OBJECTIVE_THROUGHPUT : PLIM_OBJECTIVE_LARGEST_BATCH, &prober,
               &decision, err);
    if (!st && times && decision.found && decision.choice.step_seconds <= 0) {
        plim_decision_finish(&decision);
        decision = (struct plim_decision){0};
        st = search(q, runner, PLIM_OBJECTIVE_LARGEST_BATCH, &prober, &decision, err);
    }
    if (!st) st = plim_outcome_decision(q->card, q->spec, &prober, &decision, result, err);
    if (!st) tell(q, runner, &prober, &decision, result);
    plim_decision_finish(&decision);
    plim_prober_finish(&prober);
    plim_memo_finish(&memo);
    return st;
}

enum plim_status plim_program_decide(const struct plim_program_question *question,
                                     struct plim_result *result, struct plim_error *err)
{
    struct plim_machine_card cards[PLIM_MACHINE_CARDS];
    struct plim_trial_order order = question->order;
    struct plim_program_runner *runner;
    double start = plim_clock_seconds();
    plim_program_cards(question->card, question->cards, cards);
    order.program = question->program;
    order.cards = cards;
    order.card_count = (int)question->cards;
    order.stop = question->stop;
    order.adapts = !question->uses_batch;
    order.tells_accumulation = question->uses_accumulation;
    enum plim_status st = plim_program_runner_create(&order, (int)question->jobs, &runner, err);
    if (st) return st;
    st = decide(question, runner, result, err);
    plim_program_runner_destroy(&runner);
    result->seconds = plim_clock_seconds() - start;
    return st;
}
