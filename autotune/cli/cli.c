#include "cli.h"
#include "autotune/base/text.h"
#include "autotune/run/worker/worker.h"
#include "command.h"
#include "config.h"
#include "devices/cuda/cuda.h"
#include "earlier.h"
#include "env.h"
#include "exit_code.h"
#include "trainer_config.h"
#include <errno.h>
#include <string.h>

static void print_version(const struct plim_io *io)
{
    FILE *out = io->out;
    fprintf(out, "plimsoll %s\n", io->version);
#if PLIM_WITH_CUDA
    char text[2048];
    fputs(plim_cuda_versions_text(text, sizeof(text)), out);
#else
    fprintf(out, "built without GPU kernels\n");
#endif
}

static bool takes_report(enum plim_command_id id)
{
    return id == PLIM_COMMAND_TUNE || id == PLIM_COMMAND_PLAN || id == PLIM_COMMAND_EXPLAIN;
}

/* Finds the switches that decide how env fails. */
static void find_switches(int argc, char **argv, struct plim_request *request)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        request->store.strict |= !strcmp(argv[i], "--strict");
        request->store.task_prolog |= !strcmp(argv[i], "--task-prolog");
    }
}

static enum plim_status run(int argc, char **argv, const struct plim_io *io, struct plim_error *err)
{
    const struct plim_command *command;
    struct plim_request request;
    struct plim_earlier earlier = {0};
    struct plim_trainer_config *config = NULL;
    enum plim_status st = PLIM_OK;
    if (argc < 2)
        return plim_fail(
            err, PLIM_INVALID,
            "no command was given, expected one such as tune (plimsoll help lists them)");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        plim_help_print(io->out);
        return PLIM_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        print_version(io);
        return PLIM_OK;
    }
    PLIM_TRY(plim_command_find(argv[1], &command, err));
    st = plim_options_parse(argc - 2, argv + 2, command->id, &request, err);
    if (st && command->id == PLIM_COMMAND_ENV) {
        find_switches(argc - 2, argv + 2, &request); /* also those after the invalid option */
        st = plim_env_fail_open(&request, io, st, err);
        if (!st) return PLIM_OK;
    }
    PLIM_TRY(st);
    if (request.help) {
        plim_help_print_command(command, io->out);
        return PLIM_OK;
    }
    if (request.subject && !command->argument)
        return plim_fail(err, PLIM_INVALID, "%s takes no argument, '%s' was given", command->name,
                         request.subject);
    if (takes_report(command->id)) PLIM_TRY(plim_earlier_apply(&request, io, &earlier, err));
    config = calloc(1, sizeof(*config)); /* large: it has room for many files */
    if (!config) st = plim_no_memory(err);
    if (!st) st = plim_trainer_config_apply(&request, command->id, io, config, err);
    if (st && command->id == PLIM_COMMAND_ENV)
        st = plim_env_fail_open(&request, io, st, err);
    else if (!st)
        st = command->run(&request, io, err);
out:
    plim_trainer_config_finish(config);
    free(config);
    plim_earlier_finish(&earlier);
    return st;
}

int plim_cli_run(int argc, char **argv, const struct plim_io *io)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char text[1024];
    if (argc > 1 && !strcmp(argv[1], "--worker")) return plim_worker_command(argc - 2, argv + 2);
    enum plim_status st = run(argc, argv, io, &err);
    bool part_lost = ferror(io->out), rest_lost = fflush(io->out); /* neither implies the other */
    if ((part_lost || rest_lost) && (!st || st == PLIM_NOFIT || st == PLIM_UNSUPPORTED))
        st = plim_fail(&err, PLIM_INTERNAL, "the result cannot be written: %s",
                       rest_lost ? strerror(errno) : "a part of it was refused");
    if (st && err.text[0]) {
        plim_error_format(&err, text, sizeof(text));
        if (!err.file[0]) fputs("plimsoll: ", io->err);
        plim_text_write(io->err, text);
        fputc('\n', io->err);
    }
    return (int)plim_exit_of(st);
}
