/* models: the specs that are built in. */
#include "autotune/base/text.h"
#include "autotune/run/run_device.h"
#include "autotune/search/space.h"
#include "common.h"
#include <inttypes.h>

/* Too large for comfort on a stack. */
struct model {
    struct plim_spec spec;
    struct plim_spec_question question;
    struct plim_run_device device;
};

/* The parameters that the engine makes when it builds the model: one step without a limit. */
static enum plim_status count_parameters(struct model *model, int64_t *parameters,
                                         struct plim_error *err)
{
    static const struct plim_allowance allowance = {0};
    const struct plim_run_options options = {
        .uri = "sim:A100-SXM4-80GB", .allowance = &allowance, .question = &model->question};
    struct plim_trial trial;
    plim_spec_question_make(&model->spec, PLIM_OBJECTIVE_THROUGHPUT, &model->question);
    const struct plim_axes *axes = &model->question.question.axes;
    struct plim_setting setting = plim_space_first(axes);
    setting.micro_batch = setting.accumulation = 1;
    setting.value[axes->seq] = 16;
    enum plim_status st = plim_run_device_open(&model->device, &options, err);
    const struct plim_runner *runner = &model->device.runner;
    if (!st) st = runner->run(runner->user, &setting, PLIM_RUN_UNLIMITED, &trial, err);
    if (!st) *parameters = ((const struct plim_replay *)trial.details)->parameters;
    plim_run_device_close(&model->device);
    return st;
}

/* "57 K", "124 M", "6.74 B" */
static const char *count_text(int64_t count, char out[16])
{
    double millions = (double)count / 1e6;
    if (millions < 1) snprintf(out, 16, "%.0f K", millions * 1e3);
    else if (millions < 1000) snprintf(out, 16, "%.0f M", millions);
    else snprintf(out, 16, "%.2f B", millions / 1e3);
    return out;
}

static enum plim_status print_model(struct model *model, const char *name, FILE *out,
                                    struct plim_error *err)
{
    char parameters[16];
    int64_t count;
    enum plim_status st = plim_spec_load(name, &model->spec, err);
    if (!st) st = count_parameters(model, &count, err);
    if (!st)
        fprintf(out, "%-18s %10s  %-12s %10" PRId64 "\n", name, count_text(count, parameters),
                plim_family_names[model->spec.model.family], model->spec.model.positions);
    return st;
}

static enum plim_status run_models(const struct plim_request *request, const struct plim_io *io,
                                   struct plim_error *err)
{
    struct model *model = calloc(1, sizeof(*model));
    enum plim_status st = model ? PLIM_OK : plim_no_memory(err);
    (void)request;
    if (!st)
        fprintf(io->out, "%-18s %10s  %-12s %10s\n", "name", "parameters", "family", "positions");
    for (size_t i = 0; i < plim_zoo_count() && !st; i++)
        st = print_model(model, plim_zoo_name(i), io->out, err);
    if (!st)
        fprintf(io->out, "\nAny other model of these families: give its config.json, or the folder "
                         "that has one.\n");
    free(model);
    return st;
}

const struct plim_command plim_command_models = {
    .name = "models",
    .id = PLIM_COMMAND_MODELS,
    .run = run_models,
    .summary = "the models that are known by name",
    .about = "Lists the models that need no file: a name is a SPEC for every command.\n"};
