#include "prover.h"
#include "autotune/answer/executions.h"
#include "autotune/base/text.h"
#include "black_box.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A setting is not run if the plan needs this many times the budget. The plan is for the framework's plain loop; the
 * program may need much less, through kernels of its own. */
static const double BEYOND_DOUBT = 2;

/* The program's trial of a setting under the budget. */
struct proof {
    struct plim_setting setting;
    const struct plim_execution *execution; /* owned by the executor */
};

struct plim_prover {
    struct plim_runner planner, trials, runner;
    struct plim_executor *executor;
    struct plim_machine_gpu gpus[PLIM_MACHINE_GPUS];
    const char *logs;
    bool is_simulated;
    PLIM_ARRAY(struct proof) proofs;
    struct plim_replay last; /* the details of the last run's trial */
};

/* Replaces the parts of the plan's trial that the program's trial determines. */
static void merge(struct plim_prover *p, const struct plim_trial *tried, struct plim_trial *out)
{
    bool is_timed = tried->seconds > 0;
    p->last.verdict = tried->verdict;
    p->last.peak_reserved_bytes = tried->reserved_bytes;
    p->last.oom_asked_bytes = 0; /* the program ran out of memory elsewhere than the plan */
    out->verdict = tried->verdict;
    out->reserved_bytes = tried->reserved_bytes;
    out->retries = tried->retries;
    out->steps_done = out->repeats_after = 0; /* these were of the plan's replay */
    if (is_timed) {
        out->seconds = tried->seconds;
        out->host_bound = false;
        memset(p->last.running_seconds, 0, sizeof(p->last.running_seconds));
    }
    out->seconds_are_modelled = !is_timed;
    out->details = &p->last;
    snprintf(out->why, sizeof(out->why), "%s", tried->why);
}

static const struct plim_execution *find(const struct plim_prover *p,
                                         const struct plim_setting *setting)
{
    for (size_t i = 0; i < p->proofs.count; i++)
        if (plim_setting_equal(&p->proofs.items[i].setting, setting))
            return p->proofs.items[i].execution;
    return NULL;
}

/* Runs the program for LIMITED runs. UNLIMITED runs are answered by the plan, unless the program ran out of memory
 * under the budget: then the program is run. */
static enum plim_status run(void *user, const struct plim_setting *setting, enum plim_run_mode mode,
                            struct plim_trial *out, struct plim_error *err)
{
    struct plim_prover *p = user;
    struct plim_trial tried;
    const struct plim_execution *known = find(p, setting);
    bool limited = mode == PLIM_RUN_LIMITED, refuted = known && known->verdict == PLIM_OOM;
    enum plim_status st = p->planner.run(p->planner.user, setting, PLIM_RUN_UNLIMITED, out, err);
    if (st || (!limited && !refuted)) return st;
    if (out->details) p->last = *(const struct plim_replay *)out->details;
    st = p->trials.run(p->trials.user, setting, mode, &tried, err);
    if (st) return st;
    merge(p, &tried, out);
    const struct proof proof = {*setting, tried.details};
    if (limited && !known && PLIM_ARRAY_PUSH(&p->proofs, proof) != PLIM_OK)
        return plim_no_memory(err);
    return PLIM_OK;
}

static void expect(void *user, const struct plim_setting *settings, size_t count)
{
    const struct plim_prover *p = user;
    p->trials.expect(p->trials.user, settings, count);
}

enum plim_status plim_prover_create(const struct plim_proving *proving,
                                    const struct plim_run_device *device,
                                    const struct plim_stop *stop, struct plim_prover **out,
                                    struct plim_error *err)
{
    struct plim_execution_options options = proving->options;
    struct plim_prover *p = calloc(1, sizeof(*p));
    *out = p;
    if (!p) return plim_no_memory(err);
    p->is_simulated = device->info.simulated;
    p->planner = p->is_simulated ? device->runner : device->planner;
    plim_execution_gpus(&device->gpu, &device->limit, proving->gpus, p->gpus);
    options.program = proving->program;
    options.gpus = p->gpus;
    options.gpu_count = (int)proving->gpus;
    options.stop = stop;
    if (!p->is_simulated) options.visible = device->uuid;
    p->logs = options.logs;
    enum plim_status st = plim_executor_create(&options, (int)proving->jobs, &p->executor, err);
    if (st) return st;
    p->trials = plim_executor_runner(p->executor);
    p->runner = (struct plim_runner){.run = run,
                                     .expect = expect,
                                     .user = p,
                                     .details_bytes = sizeof(p->last),
                                     .budget_bytes = p->planner.budget_bytes,
                                     .probed_micro_steps = p->trials.probed_micro_steps,
                                     .limit_acts_early = true,
                                     .measured = true,
                                     .beyond_doubt = BEYOND_DOUBT,
                                     .costly = true};
    return PLIM_OK;
}

void plim_prover_destroy(struct plim_prover **place)
{
    struct plim_prover *p = *place;
    if (!p) return;
    plim_executor_destroy(&p->executor);
    PLIM_ARRAY_FINISH(&p->proofs);
    free(p);
    *place = NULL;
}

const struct plim_runner *plim_prover_planner(const struct plim_prover *p)
{
    return &p->planner;
}

const struct plim_runner *plim_prover_runner(const struct plim_prover *p)
{
    return &p->runner;
}

/* Logs the failure of the last trial that failed. */
static void show_failure(const struct plim_prover *p, const struct plim_log *log)
{
    bool shown = false;
    for (size_t i = p->proofs.count; i-- > 0 && !shown;)
        shown = plim_black_box_show_failure(log, p->logs, p->proofs.items[i].execution);
}

void plim_prover_add_reasons(const struct plim_prover *p, const struct plim_setting *choice,
                             const struct plim_log *log, struct plim_result *result)
{
    char planned[16], tried[16];
    const struct plim_execution *execution = choice ? find(p, choice) : NULL;
    int64_t planned_bytes = result->prediction.reserved_bytes,
            bytes = result->choice.peak.reserved_bytes;
    show_failure(p, log);
    plim_result_reason(result, "%s was run %zu time%s.",
                       execution ? "Proven with the program itself, which" : "The program",
                       p->proofs.count, p->proofs.count == 1 ? "" : "s");
    if (!execution) return;
    plim_reasons_execution(execution, result);
    if (planned_bytes)
        plim_result_reason(result, "The program reserved %s, the plan had said %s.",
                           plim_format_bytes(bytes, tried), plim_format_bytes(planned_bytes, planned));
    /* The plan's breakdown only applies if the peaks are equal. */
    if (planned_bytes != bytes) result->breakdown = (struct plim_result_breakdown){0};
    if (p->is_simulated)
        plim_result_reason(result, "Seconds are the plan's: a virtual GPU has no clock.");
}
