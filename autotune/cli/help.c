/* help: every command, or one with its options. */
#include "command.h"
#include "exit_code.h"
#include <string.h>

/* Of the longest command, and of the longest argument beside it. */
static int widest(bool of_arguments)
{
    size_t most = 0;
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) {
        const struct plim_command *command = plim_command_at(i);
        const char *text = of_arguments ? command->argument : command->name;
        if (text && strlen(text) > most) most = strlen(text);
    }
    return (int)most;
}

void plim_help_print(FILE *out)
{
    int names = widest(false), arguments = widest(true);
    fprintf(out, "plimsoll finds the fastest training settings that fit a GPU.\n\n"
                 "usage: plimsoll COMMAND ...\n\n");
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) {
        const struct plim_command *command = plim_command_at(i);
        fprintf(out, "  %-*s %-*s %s\n", names, command->name, arguments,
                command->argument ? command->argument : "", command->summary);
    }
    fprintf(out, "\n%s\nexit codes:\n", plim_help_about);
    for (int code = 0; code < PLIM_EXIT_COUNT; code++)
        fprintf(out, "  %d  %s\n", code, plim_exit_text((enum plim_exit)code));
}

void plim_help_print_command(const struct plim_command *command, FILE *out)
{
    const char *argument = command->argument ? command->argument : "";
    bool is_last = argument[0] == '-'; /* "-- CMD" */
    fprintf(out, "usage: plimsoll %s%s%s [options]%s%s\n\n%s\n", command->name,
            *argument && !is_last ? " " : "", is_last ? "" : argument, is_last ? " " : "",
            is_last ? argument : "", command->about);
    plim_options_help(command->id, out);
}

static enum plim_status run_help(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_error *err)
{
    const struct plim_command *command = NULL;
    if (request->subject) {
        enum plim_status st = plim_command_find(request->subject, &command, err);
        if (st) return st;
    }
    if (command && request->man) plim_manual_print_command(command, io->version, io->out);
    else if (command) plim_help_print_command(command, io->out);
    else if (request->man) plim_manual_print(io->version, io->out);
    else plim_help_print(io->out);
    return PLIM_OK;
}

const struct plim_command plim_command_help = {
    .name = "help",
    .argument = "[COMMAND]",
    .id = PLIM_COMMAND_HELP,
    .run = run_help,
    .summary = "this text, or a command with its options",
    .about = "Lists the commands, or the options of one command.\n"};
