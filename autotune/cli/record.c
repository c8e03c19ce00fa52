/* record: records a program at a few sizes, for tune, plan and explain. */
#include "autotune/record/record.h"
#include "asked_program.h"
#include "asked_trials.h"
#include "autotune/base/outfile.h"
#include "autotune/decide/black_box.h"
#include "autotune/exec/launch.h"
#include "autotune/exec/workspace.h"
#include "autotune/run/run_device.h"
#include "common.h"
#include "devices/open.h"
#include "workloads/recording/merge.h"
#include <inttypes.h>
#include <stdio.h>

static const double LIMIT_SECONDS = 600;
/* The state of a run of record. */
struct recording_run {
    struct plim_asked_program asked;
    struct plim_allowance allowance;
    struct plim_log log;
    struct plim_stop stop;
    struct plim_run_device device;
    struct plim_run_options run_options;
    struct plim_workspace workspace;
    struct plim_machine_gpu gpus[1];
    struct plim_record record;
    struct plim_recording recording;
    char failed_log[40];
};

static enum plim_status check_request(const struct plim_request *request, struct plim_error *err)
{
    if (request->files.count != 1 || !plim_recording_is_name(request->files.items[0]))
        return plim_fail(err, PLIM_INVALID, "expected one --out FILE.plim for the recording");
    if (request->devices.count > 1)
        return plim_fail(err, PLIM_INVALID, "expected one --device: a recording is made on one");
    return plim_outfile_check(request->files.items[0], err);
}

static enum plim_status open_device(struct recording_run *x, const struct plim_request *request,
                                    struct plim_error *err)
{
    const char *uri = request->devices.count ? request->devices.items[0] : "sim:A100-SXM4-80GB";
    if (plim_uri_scheme(uri) != PLIM_SCHEME_SIM)
        return plim_fail(err, PLIM_INVALID,
                         "--device %s: recordings are made on simulated GPUs, expected sim:NAME",
                         uri);
    x->run_options = (struct plim_run_options){
        .uri = uri, .allowance = &x->allowance, .stop = &x->stop, .log = &x->log};
    enum plim_status st = plim_workspace_create(&x->workspace, PLIM_PRELOAD_VIRTUAL_GPU,
                                                request->program.logs, err);
    if (!st) st = plim_run_device_open(&x->device, &x->run_options, err);
    if (!st) plim_execution_gpus(&x->device.gpu, &x->device.limit, 1, x->gpus);
    return st;
}

/* Checks the batches; sets the default ones if --batch is not given. */
static enum plim_status check_batches(struct recording_run *x, struct plim_error *err)
{
    static const int64_t usual[] = {1, 2, 3, 4};
    struct plim_program_question *q = &x->asked.question;
    struct plim_batch_request *batch = &q->question.batch;
    if (!q->uses_batch)
        return plim_fail(err, PLIM_INVALID,
                         "there is no {batch} in the command, expected it instead of the batch size");
    if (!x->asked.request->program.batch) {
        batch->listed = usual;
        batch->listed_count = sizeof(usual) / sizeof(usual[0]);
    } else if (!batch->listed_count) {
        return plim_fail(err, PLIM_INVALID, "--batch: expected a list such as 1,2,4");
    }
    return PLIM_OK;
}

static void fill(struct recording_run *x, const struct plim_io *io)
{
    const struct plim_request_program *asked = &x->asked.request->program;
    x->record = (struct plim_record){
        .options = {.program = &x->asked.program,
                    .library = x->workspace.library,
                    .gpus = x->gpus,
                    .gpu_count = 1,
                    .folder = x->workspace.folder,
                    .logs = x->workspace.logs,
                    .hold = x->workspace.keeper,
                    .run_seconds = asked->run_seconds,
                    .limit_seconds =
                        asked->limit_seconds > 0 ? asked->limit_seconds : LIMIT_SECONDS,
                    .steps = (int)asked->steps,
                    .repetitions = plim_asked_repetitions(asked),
                    .stop = &x->stop},
        .question = &x->asked.question,
        .may_extend = !asked->batch,
        .each_batch = asked->each_batch,
        .device = x->run_options.uri,
        .gpu = &x->device.info,
        .name = plim_program_name(&x->asked.program),
        .version = io->version,
        .log = &x->log,
        .failed_log = x->failed_log};
}

static void print_summary(const struct plim_request *request, const struct plim_recording *r, size_t bytes,
                          const struct plim_io *io)
{
    char size[16];
    if (request->quiet) return;
    fprintf(io->out, "%s: %s, %zu stream%s\n", request->files.items[0],
            plim_format_bytes((int64_t)bytes, size), r->streams.count,
            r->streams.count == 1 ? "" : "s");
    for (size_t i = 0; i < r->streams.count; i++) {
        const struct plim_recorded_stream *s = &r->streams.items[i];
        fprintf(io->out,
                "  %s%s batch %" PRId64 ", length %" PRId64 " on: %zu allocations and frees "
                "before the step, %zu in it, %zu launches; %zu sizes; %zu by table\n",
                !r->accumulates ? "" : i % 2 ? "several micro-steps, " : "one micro-step, ",
                r->each_batch ? "of" : "from",
                s->from.batch, s->from.seq, s->before, s->events.count - s->before,
                plim_recorded_stream_launches(s), s->sizes.count,
                plim_recorded_stream_tables(s));
    }
    fprintf(io->out, "allocator: %s (%s)\n", plim_recorded_allocator_names[r->allocator], r->proof);
}

static enum plim_status save(const struct plim_request *request, const struct plim_recording *recording,
                             const struct plim_io *io, struct plim_error *err)
{
    size_t bytes;
    enum plim_status st = plim_recording_save(recording, request->files.items[0], &bytes, err);
    if (!st) print_summary(request, recording, bytes, io);
    return st;
}

/* Merges earlier recordings into one. */
static enum plim_status merge(const struct plim_request *request, const struct plim_io *io,
                              struct plim_error *err)
{
    const struct plim_request_program *asked = &request->program;
    const struct plim_request_list *merged = &asked->merged;
    struct plim_recording all = {0};
    enum plim_status st = PLIM_OK;
    PLIM_TRY(check_request(request, err));
    if (asked->command || asked->batch || asked->seq || asked->axes.count || request->setting_count)
        PLIM_TRY(plim_fail(err, PLIM_INVALID,
                           "--merge is of recordings that are there, expected no command and no sizes"));
    PLIM_TRY(plim_recording_read(merged->items[0], &all, err));
    for (size_t i = 1; i < merged->count && !st; i++) {
        struct plim_recording part = {0};
        struct plim_error failure = PLIM_ERROR_INIT;
        st = plim_recording_read(merged->items[i], &part, err);
        if (!st && (st = plim_recording_merge(&all, &part, &failure)))
            st = plim_fail(err, st, "--merge %s: %s", merged->items[i], failure.text);
        plim_recording_finish(&part);
    }
    if (!st) st = save(request, &all, io, err);
out:
    plim_recording_finish(&all);
    return st;
}

/* Logs a failed run. A program that does not run, or cannot be recorded, is an error of the user: PLIM_INVALID. */
static enum plim_status blame(const struct recording_run *x, enum plim_status st)
{
    static const enum plim_status matters[] = {PLIM_CRASHED, PLIM_TIMEOUT, PLIM_OOM, PLIM_UNSTABLE, PLIM_DIFFERS,
                                               PLIM_UNSUPPORTED};
    if (x->failed_log[0]) plim_black_box_show_log(&x->log, x->workspace.logs, x->failed_log);
    for (size_t i = 0; i < sizeof(matters) / sizeof(matters[0]); i++)
        if (st == matters[i]) return PLIM_INVALID;
    return st;
}

static enum plim_status run_record(const struct plim_request *request, const struct plim_io *io,
                                   struct plim_error *err)
{
    if (request->program.merged.count) return merge(request, io, err);
    struct recording_run *x = calloc(1, sizeof(*x)); /* too large for the stack */
    enum plim_status st = x ? PLIM_OK : plim_no_memory(err);
    if (st) return st;
    x->workspace.keeper = -1; /* so that it can be finished */
    x->log = plim_common_log(request, io);
    x->allowance = request->allowance;
    x->stop = plim_common_stop(request, io);
    PLIM_TRY(check_request(request, err));
    PLIM_TRY(plim_asked_program_read(request, &x->asked, err));
    PLIM_TRY(check_batches(x, err));
    PLIM_TRY(open_device(x, request, err));
    plim_launch_prepare();
    fill(x, io);
    PLIM_TRY(plim_asked_trials_assume(&request->program, &x->record.options, err));
    st = plim_record_run(&x->record, &x->recording, err);
    st = blame(x, st);
    if (!st) st = save(request, &x->recording, io, err);
out:
    plim_recording_finish(&x->recording);
    plim_run_device_close(&x->device);
    plim_asked_program_finish(&x->asked);
    plim_workspace_finish(&x->workspace);
    free(x);
    return st;
}

const struct plim_command plim_command_record = {
    .name = "record",
    .argument = "-- CMD",
    .id = PLIM_COMMAND_RECORD,
    .run = run_record,
    .summary = "a program of yours becomes a spec, by a few runs",
    .about = "Runs a training program of yours on a virtual GPU at a few sizes, and writes\n"
             "what it allocates, frees and launches in a step, as a function of batch and\n"
             "sequence length. The file is a SPEC for tune, plan and explain. It proves itself: one\n"
             "more run with the program's own allocator has to ask for the same segments.\n"
             "A size at which the program ends with an error is left out.\n"
             "With {accumulation} in CMD the file is good for any effective batch.\n"
             "Packed by xz: xzcat shows what is in it. Axes may be recorded value by value, on\n"
             "several machines: --merge makes one file of them.\n"
             "Example:\n\n"
             "  plimsoll record -o train.plim -- \\\n"
             "    python train.py --batch-size {batch}\n"
             "  plimsoll plan train.plim --device all\n"};
