/* plan and tune: find the best setting. plan only simulates; tune validates the plan on a real GPU if there is one. */
#include "all_gpus.h"
#include "devices/catalogue/catalogue.h"
#include "devices/open.h"
#include "prove.h"
#include "prove_with.h"

enum { URI_SIZE = 64 };

struct targets {
    size_t count;
    const char **uris;
    char *texts; /* owns the strings of `uris` that are not the user's */
    struct plim_all_gpus gpus; /* of --device cuda:all, instead of `uris` */
    bool is_table;
};

static void targets_finish(struct targets *targets)
{
    free(targets->uris);
    free(targets->texts);
    plim_all_gpus_finish(&targets->gpus);
}

/* Adds all GPUs of the catalogue, in its order. */
static void add_catalogue(struct targets *targets)
{
    for (size_t i = 0; i < plim_catalogue_count(); i++) {
        char *text = targets->texts + i * URI_SIZE;
        snprintf(text, URI_SIZE, "sim:%s", plim_catalogue_at(i)->name);
        targets->uris[targets->count++] = text;
    }
}

static enum plim_status resolve_targets(const struct plim_request *request,
                                        const struct plim_spec *spec, const struct plim_log *log,
                                        struct plim_target *target, struct targets *targets,
                                        struct plim_error *err)
{
    bool simulate = !target;
    enum plim_status st = plim_catalogue_check(err);
    if (st) return st;
    if (!simulate && request->devices.count && plim_target_is_all(request->devices.items[0])) {
        st = plim_all_gpus_find(request->devices.items[0], log, &targets->gpus, err);
        targets->count = targets->gpus.count;
        targets->is_table = targets->count > 1;
        return st;
    }
    size_t gpus = plim_catalogue_count(),
           asked = request->devices.count ? request->devices.count : 1;
    targets->uris = calloc(asked * (gpus + 1), sizeof(*targets->uris));
    targets->texts = calloc(gpus + 1, URI_SIZE);
    if (!targets->uris || !targets->texts) return plim_no_memory(err);
    for (size_t i = 0; i < asked; i++) {
        const char *uri = request->devices.count ? request->devices.items[i] : "auto";
        if (!strcmp(uri, "all")) add_catalogue(targets);
        else if (!strcmp(uri, "auto"))
            targets->uris[targets->count++] = plim_common_auto_device(spec, log, target);
        else if (simulate && (plim_uri_scheme(uri) == PLIM_SCHEME_CUDA
                              || plim_uri_scheme(uri) == PLIM_SCHEME_HOST))
            return plim_fail(err, PLIM_INVALID,
                             "--device %s: plan simulates, expected sim:NAME (tune runs on a GPU)",
                             uri);
        else targets->uris[targets->count++] = uri;
        targets->is_table |= asked > 1 || !strcmp(uri, "all");
    }
    return PLIM_OK;
}

/* Returns PLIM_OK if there is an answer for at least one device; PLIM_UNSUPPORTED if no device supports the
 * settings. */
static enum plim_status verdict(const struct plim_report *report)
{
    size_t answers = 0, unsupported = 0;
    for (size_t i = 0; i < report->results.count; i++) {
        const struct plim_result *result = &report->results.items[i];
        if (result->interrupted) return result->ended;
        answers += result->choice.present;
        unsupported += result->unsupported;
    }
    return answers ? PLIM_OK : unsupported && unsupported == report->results.count ? PLIM_UNSUPPORTED : PLIM_NOFIT;
}

/* Returns an option for trials that is given, or NULL. */
static const char *option_of_trials(const struct plim_request *request)
{
    const struct plim_request_program *program = &request->program;
    return program->repetitions         ? "--repetitions"
           : program->epoch_steps       ? "--epoch-steps"
           : program->limit_seconds > 0 ? "--timeout"
           : program->logs              ? "--logs"
                                        : NULL;
}

static enum plim_status check_no_trials(const struct plim_request *request, struct plim_error *err)
{
    const char *option = option_of_trials(request);
    if (!option || request->framework_python) return PLIM_OK;
    return plim_fail(
        err, PLIM_INVALID,
        "%s says how a program is run, expected --prove or --prove-with, which run one", option);
}

/* Checks that --prove is used with a recording, --prove-with with a spec, and both with one device. */
static enum plim_status check_prove(const struct plim_request *request, const struct plim_decide *d,
                                    const struct targets *targets, struct plim_error *err)
{
    const char *option = request->prove ? "--prove" : "--prove-with";
    if (!request->prove && !request->prove_with) return check_no_trials(request, err);
    if (request->prove && !d->asked.question.recording)
        return plim_fail(err, PLIM_INVALID,
                         "--prove is for recordings (--prove-with runs a command for a spec)");
    if (targets->count != 1 || targets->gpus.count || request->tiers)
        return plim_fail(err, PLIM_INVALID,
                         "%s runs the program, expected one --device and no --tiers", option);
    return PLIM_OK;
}

static enum plim_status prepare_prove_with(struct plim_decide *d, const char *uri,
                                           struct plim_prove_with **out, struct plim_error *err)
{
    *out = calloc(1, sizeof(**out)); /* too large for the stack */
    if (!*out) return plim_no_memory(err);
    d->proving = &(*out)->proving;
    d->asked.question.question.can_advise = false; /* the command has no placeholders for other settings */
    return plim_prove_with_read(d->request, &d->asked.question, uri, *out, err);
}

/* Makes the decision. If only some kinds of GPU have answers, returns PLIM_OK and sets `some_failed`. */
static enum plim_status decide(struct plim_decide *d, const struct targets *targets,
                               struct plim_report *report, struct plim_error *some_failed,
                               struct plim_error *err)
{
    if (!targets->gpus.count)
        return plim_decide_report(d, targets->uris, targets->count, report, err);
    enum plim_status st = plim_all_gpus_decide(d, &targets->gpus, report, err);
    if (!st || !report->results.count) return st;
    *some_failed = *err;
    return PLIM_OK;
}

/* Runs plan or tune. `target` receives the GPU that "auto" finds; NULL: only simulated devices. */
static enum plim_status run(const struct plim_request *request, const struct plim_io *io,
                            struct plim_target *target, struct plim_error *err)
{
    struct plim_decide *d = calloc(1, sizeof(*d)); /* too large for the stack */
    struct plim_log log = plim_common_log(request, io);
    struct plim_prove_with *prove_with = NULL;
    struct plim_report report = {0};
    struct targets targets = {0};
    struct plim_error some_failed = PLIM_ERROR_INIT;
    enum plim_status st = d ? PLIM_OK : plim_no_memory(err);
    if (st) goto out;
    PLIM_TRY(plim_common_check_files(request, err));
    PLIM_TRY(plim_decide_init(d, request, io, &log, err));
    PLIM_TRY(resolve_targets(request, &d->asked.spec, &log,
                             d->asked.question.recording ? NULL : target, &targets, err));
    PLIM_TRY(check_prove(request, d, &targets, err));
    if (request->prove_with)
        PLIM_TRY(prepare_prove_with(d, targets.uris[0], &prove_with, err));
    PLIM_TRY(decide(d, &targets, &report, &some_failed, err));
    if (request->prove && report.results.count)
        PLIM_TRY(plim_prove_recording(request, io, &log, &d->asked.recording, targets.uris[0],
                                      &report.results.items[0], err));
    report.is_table |= targets.is_table;
    PLIM_TRY(plim_common_emit(request, io, &report, err));
    st = some_failed.status ? some_failed.status : verdict(&report);
    if (prove_with && st == PLIM_LOST)
        st = plim_fail(err, PLIM_INVALID, "the command of --prove-with does not run: see the report");
out:
    plim_report_finish(&report);
    plim_prove_with_finish(prove_with);
    free(prove_with);
    targets_finish(&targets);
    plim_decide_finish(d);
    free(d);
    return st;
}

static enum plim_status run_plan(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_error *err)
{
    return run(request, io, NULL, err);
}

static enum plim_status run_tune(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_error *err)
{
    if (request->devices.count > 1 ||
        (request->devices.count && !strcmp(request->devices.items[0], "all")))
        return plim_fail(err, PLIM_INVALID,
                         "tune works on one device or on cuda:all, expected one --device (plan "
                         "takes several)");
    struct plim_target target;
    return run(request, io, &target, err);
}

const struct plim_command plim_command_plan = {
    .name = "plan", .argument = "SPEC", .id = PLIM_COMMAND_PLAN, .run = run_plan,
    .summary = "the best settings on simulated GPUs; several give a table",
    .about = "Finds the fastest training settings that fit on a GPU that need not be there:\n"
             "micro-batch, checkpointing and whatever else is given as a list. Example:\n\n"
             "  plimsoll plan gpt2-124m --device sim:RTX-4090 --effective-batch 256\n\n"
             "SPEC may be the config of a training job: the arguments of transformers'\n"
             "Trainer, LLaMA-Factory's or axolotl's YAML, the script that launches it. Its\n"
             "job is planned, its effective batch kept:\n\n"
             "  plimsoll plan train.yaml --device sim:RTX-4090\n"};

const struct plim_command plim_command_tune = {
    .name = "tune", .argument = "SPEC", .id = PLIM_COMMAND_TUNE, .run = run_tune,
    .summary = "find and prove the best settings on one device",
    .about = "Finds the fastest training settings that fit on one device, and shows why.\n"
             "Example:\n\n"
             "  plimsoll tune llama-3.2-1b --device sim:A100-SXM4-40GB --effective-batch 64\n\n"
             "--device cuda:all is every GPU of this machine: one of each kind is tuned,\n"
             "all at the same time. For a job of several GPUs (--world) the all-reduce among\n"
             "those of a kind is measured with NCCL, and kept; else it is modelled.\n"};
