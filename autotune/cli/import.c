/* import: converts a Hugging Face config.json, or a trainer's config, to a spec. */
#include "autotune/base/outfile.h"
#include "common.h"

static enum plim_status run_import(const struct plim_request *request, const struct plim_io *io,
                                   struct plim_error *err)
{
    struct plim_spec *spec = calloc(1, sizeof(*spec));
    const struct plim_log log = plim_common_log(request, io);
    char *text = NULL;
    enum plim_status st = spec ? PLIM_OK : plim_no_memory(err);
    if (st) goto out;
    PLIM_TRY(plim_common_spec(request, &log, spec, err));
    PLIM_TRY(plim_spec_write(spec, &text, err));
    for (size_t i = 0; i < request->files.count; i++)
        PLIM_TRY(plim_outfile_save(request->files.items[i], text, err));
    if (!request->files.count) fputs(text, io->out);
out:
    free(text);
    free(spec);
    return st;
}

const struct plim_command plim_command_import = {
    .name = "import", .argument = "FILE", .id = PLIM_COMMAND_IMPORT, .run = run_import,
    .summary = "a config.json, or a trainer's config, as a plimsoll spec",
    .about = "Reads a Hugging Face config.json (a file, or a directory that contains one),\n"
             "or the config of a training job (of transformers' Trainer, LLaMA-Factory,\n"
             "axolotl; or a launch script), and writes a spec, to stdout or to --out FILE.\n"};
