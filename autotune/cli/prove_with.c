#include "prove_with.h"
#include "autotune/exec/launch.h"
#include "devices/open.h"

static enum plim_status check_placeholder(const struct plim_prove_with *p, const char *name,
                                          struct plim_error *err)
{
    bool uses;
    enum plim_status st = plim_program_uses(&p->program, name, &uses, err);
    if (st || uses) return st;
    return plim_fail(err, PLIM_INVALID,
                     "--prove-with: the command has no {%s}, expected it among the program's arguments", name);
}

/* Checks that the command has a placeholder for an axis with several values. */
static enum plim_status check_axis(const struct plim_prove_with *p, const struct plim_axes *axes,
                                   size_t index, struct plim_error *err)
{
    char room[PLIM_AXIS_TEXT];
    const struct plim_axis *axis = &axes->axis[index];
    struct plim_setting first = {0};
    bool uses;
    if (axis->count < 2) return PLIM_OK;
    enum plim_status st = plim_program_uses(&p->program, axis->name, &uses, err);
    if (st || uses) return st;
    first.value[index] = axis->values[0];
    return plim_fail(err, PLIM_INVALID,
                     "--prove-with: %zu values of %s are compared, expected {%s} in the command, or one "
                     "value (--%s %s)",
                     axis->count, axis->name, axis->name, axis->name,
                     plim_axes_text(axes, &first, index, room));
}

static enum plim_status check_placeholders(const struct plim_prove_with *p,
                                           const struct plim_question *question,
                                           struct plim_error *err)
{
    const struct plim_batch_request *batch = &question->batch;
    bool accumulates = batch->effective_batch || batch->phase_count || batch->accumulation > 1;
    enum plim_status st = check_placeholder(p, "batch", err);
    if (!st && accumulates) st = check_placeholder(p, "accumulation", err);
    for (size_t i = 0; i < question->axes.count && !st; i++)
        st = check_axis(p, &question->axes, i, err);
    return st;
}

static enum plim_status check_question(const struct plim_spec_question *question, bool is_real,
                                       struct plim_error *err)
{
    int64_t world = question->recording ? 1 : question->spec->world;
    if (question->recording)
        return plim_fail(err, PLIM_INVALID,
                         "--prove-with is for specs (--prove runs a recording's own program)");
    if (world > PLIM_MACHINE_GPUS || (is_real && world > 1))
        return plim_fail(err, PLIM_INVALID,
                         "--prove-with runs the command on one real GPU, or on up to %d simulated ones, "
                         "not on %lld",
                         PLIM_MACHINE_GPUS, (long long)world);
    return PLIM_OK;
}

enum plim_status plim_prove_with_read(const struct plim_request *request,
                                      const struct plim_spec_question *question, const char *uri,
                                      struct plim_prove_with *out, struct plim_error *err)
{
    bool is_real = plim_uri_scheme(uri) == PLIM_SCHEME_CUDA;
    if (plim_uri_scheme(uri) == PLIM_SCHEME_HOST)
        return plim_fail(err, PLIM_UNSUPPORTED,
                         "--device %s: --prove-with runs programs on sim:NAME and cuda:N", uri);
    enum plim_status st = check_question(question, is_real, err);
    if (st) return st;
    *out = (struct plim_prove_with){.command = {"sh", "-c", (char *)request->prove_with, NULL}};
    out->program = (struct plim_program){
        .command = out->command, .axes = &question->question.axes, .world = question->spec->world};
    PLIM_TRY(plim_asked_trials_read(&request->program, &out->trials, err));
    PLIM_TRY(check_placeholders(out, &question->question, err));
    PLIM_TRY(plim_asked_trials_create_workspace(&out->trials, is_real, err));
    plim_launch_prepare();
    out->proving = (struct plim_proving){
        .program = &out->program, .options = out->trials.options, .gpus = out->program.world, .jobs = 1};
    st = plim_program_uses(&out->program, "accumulation", &out->proving.options.tells_accumulation, err);
out:
    return st;
}

void plim_prove_with_finish(struct plim_prove_with *prove_with)
{
    if (prove_with) plim_asked_trials_finish(&prove_with->trials);
}
