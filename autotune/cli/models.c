/* models: lists the built-in specs. */
#include "common.h"
#include "workloads/spec/zoo.h"

/* Formats a count as "57 K", "124 M" or "6.74 B". */
static const char *count_text(int64_t count, char out[16])
{
    double millions = (double)count / 1e6;
    if (millions < 1) snprintf(out, 16, "%.0f K", millions * 1e3);
    else if (millions < 999.5) snprintf(out, 16, "%.0f M", millions);
    else snprintf(out, 16, "%.2f B", millions / 1e3);
    return out;
}

static enum plim_status run_models(const struct plim_request *request, const struct plim_io *io,
                                   struct plim_error *err)
{
    (void)request;
    (void)err;
    fprintf(io->out, "%-20s  %10s  %-16s  %s\n", "name", "parameters", "family", "in the Hub");
    for (size_t i = 0; i < plim_zoo_count; i++) {
        const struct plim_zoo_model *model = &plim_zoo_models[i];
        char parameters[16];
        fprintf(io->out, "%-20s  %10s  %-16s  %s\n", model->name, count_text(model->parameters, parameters),
                model->family, model->hub[0] ? model->hub[0] : "-");
    }
    fprintf(io->out, "\nAny other model of these families: give its config.json, or the folder "
                     "that has one.\n");
    return PLIM_OK;
}

const struct plim_command plim_command_models = {
    .name = "models",
    .id = PLIM_COMMAND_MODELS,
    .run = run_models,
    .summary = "the models that are known by name",
    .about = "Lists the models that need no file. A name is a SPEC for every command, and so\n"
             "is a name in the Hub: the one that is listed, and others of the same sizes\n"
             "(NousResearch/Llama-3.2-1B).\n"};
