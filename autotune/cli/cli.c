#include "cli.h"
#include "autotune/base/text.h"
#include "autotune/run/worker/worker.h"
#include "command.h"
#include "devices/cuda/cuda.h"
#include <errno.h>

static const struct plim_command *const commands[] = {&plim_command_tune, &plim_command_plan,
                                                      &plim_command_explain, &plim_command_devices,
                                                      &plim_command_exec, &plim_command_import};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

/* --- exit codes ------------------------------------------------------------------------------- */

enum exit_code {
    EXIT_ANSWER,
    EXIT_NOFIT,
    EXIT_USAGE,
    EXIT_NODEVICE,
    EXIT_NOT_BUILT,
    EXIT_EARLY,
    EXIT_INTERNAL
};

static const char *const exit_texts[] = {
    [EXIT_ANSWER] = "an answer was found",
    [EXIT_NOFIT] = "nothing fits (the report says why and what would)",
    [EXIT_USAGE] = "usage, spec or configuration error",
    [EXIT_NODEVICE] = "no such device, or it cannot be used",
    [EXIT_NOT_BUILT] = "built without what was asked for",
    [EXIT_EARLY] = "interrupted or out of time: partial report written",
    [EXIT_INTERNAL] = "device lost, or an internal error",
};

static enum exit_code exit_code_of(enum plim_status status)
{
    static const struct {
        enum plim_status status;
        enum exit_code code;
    } codes[] = {{PLIM_OK, EXIT_ANSWER},      {PLIM_NOFIT, EXIT_NOFIT},
                 {PLIM_INVALID, EXIT_USAGE},  {PLIM_SPEC, EXIT_USAGE},
                 {PLIM_IO, EXIT_USAGE},       {PLIM_NODEVICE, EXIT_NODEVICE},
                 {PLIM_TIMEOUT, EXIT_EARLY},  {PLIM_UNSUPPORTED, EXIT_NOT_BUILT},
                 {PLIM_CANCELLED, EXIT_EARLY}};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].status == status) return codes[i].code;
    return EXIT_INTERNAL;
}

/* --- help ------------------------------------------------------------------------------------- */

static void print_help(FILE *out)
{
    fprintf(out, "plimsoll finds the fastest training settings that fit a GPU.\n\nusage: plimsoll "
                 "VERB ...\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-8s %-6s %s\n", commands[i]->name,
                commands[i]->argument ? commands[i]->argument : "", commands[i]->summary);
    fprintf(out,
            "\nSPEC is a plimsoll YAML file, a Hugging Face config.json, a directory with one,\n"
            "or a name such as gpt2-124m. 'plimsoll VERB --help' lists the options of a verb.\n"
            "\nexit codes:\n");
    for (size_t i = 0; i < sizeof(exit_texts) / sizeof(exit_texts[0]); i++)
        fprintf(out, "  %zu  %s\n", i, exit_texts[i]);
}

static void print_command_help(const struct plim_command *command, FILE *out)
{
    const char *argument = command->argument ? command->argument : "";
    bool is_last = argument[0] == '-'; /* "-- CMD" */
    fprintf(out, "usage: plimsoll %s%s%s [options]%s%s\n\n%s\n", command->name,
            *argument && !is_last ? " " : "", is_last ? "" : argument, is_last ? " " : "",
            is_last ? argument : "", command->about);
    plim_options_help(command->verb, out);
}

static void print_version(FILE *out)
{
    fprintf(out, "plimsoll %s\n", PLIM_VERSION);
#if PLIM_WITH_CUDA
    char text[2048];
    fputs(plim_cuda_versions_text(text, sizeof(text)), out);
#else
    fprintf(out, "built without GPU kernels\n");
#endif
}

/* --- running ---------------------------------------------------------------------------------- */

static enum plim_status find_command(const char *name, const struct plim_command **out,
                                     struct plim_error *err)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        *out = commands[i];
        names[i] = commands[i]->name;
        if (!strcmp(names[i], name)) return PLIM_OK;
    }
    int near = plim_nearest(name, names, COMMAND_COUNT);
    if (near < 0) return plim_fail(err, PLIM_INVALID, "%s: unknown verb (--help lists them)", name);
    return plim_fail(err, PLIM_INVALID, "%s: unknown verb, did you mean %s?", name, names[near]);
}

static enum plim_status run(int argc, char **argv, const struct plim_io *io, struct plim_error *err)
{
    const struct plim_command *command;
    struct plim_request request;
    enum plim_status st = PLIM_OK;
    if (argc < 2)
        return plim_fail(err, PLIM_INVALID,
                         "no verb was given, expected one of tune, plan, explain, devices, exec, import");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_help(io->out);
        return PLIM_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        print_version(io->out);
        return PLIM_OK;
    }
    PLIM_TRY(find_command(argv[1], &command, err));
    PLIM_TRY(plim_options_parse(argc - 2, argv + 2, command->verb, &request, err));
    if (request.help) print_command_help(command, io->out);
    else PLIM_TRY(command->run(&request, io, err));
out:
    return st;
}

int plim_cli_run(int argc, char **argv, const struct plim_io *io)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char text[1024];
    if (argc > 1 && !strcmp(argv[1], "--worker")) return plim_worker_command(argc - 2, argv + 2);
    enum plim_status st = run(argc, argv, io, &err);
    bool part_lost = ferror(io->out), rest_lost = fflush(io->out); /* neither implies the other */
    if ((part_lost || rest_lost) && (!st || st == PLIM_NOFIT))
        st = plim_fail(&err, PLIM_INTERNAL, "the result cannot be written: %s",
                       rest_lost ? strerror(errno) : "a part of it was refused");
    if (st && err.text[0]) {
        plim_error_format(&err, text, sizeof(text));
        if (!err.file[0]) fputs("plimsoll: ", io->err);
        plim_text_write(io->err, text);
        fputc('\n', io->err);
    }
    return exit_code_of(st);
}
