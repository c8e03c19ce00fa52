/* help: every command, or one with its options; and what finds a command by its name. */
#include "autotune/base/text.h"
#include "command.h"
#include "exit_code.h"
#include <string.h>

static const struct plim_command *const commands[PLIM_COMMAND_COUNT] = {
#define ENTRY(id, name) &plim_command_##name,
    PLIM_COMMAND_MAP(ENTRY)
#undef ENTRY
};

const struct plim_command *plim_command_at(size_t index) { return commands[index]; }

enum plim_status plim_command_find(const char *name, const struct plim_command **out,
                                   struct plim_error *err)
{
    const char *names[PLIM_COMMAND_COUNT];
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) {
        *out = commands[i];
        names[i] = commands[i]->name;
        if (!strcmp(names[i], name)) return PLIM_OK;
    }
    int near = plim_nearest(name, names, PLIM_COMMAND_COUNT);
    if (near < 0)
        return plim_fail(err, PLIM_INVALID, "%s: unknown command (plimsoll help lists them)", name);
    return plim_fail(err, PLIM_INVALID, "%s: unknown command, did you mean %s?", name, names[near]);
}

const char plim_help_about[] =
    "SPEC is a plimsoll YAML file, a Hugging Face config.json, a directory with one,\n"
    "or a name such as gpt2-124m (plimsoll models). 'plimsoll help COMMAND' lists\n"
    "the options of a command.\n";

/* Of the longest command, and of the longest argument beside it. */
static int widest(bool of_arguments)
{
    size_t most = 0;
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) {
        const char *text = of_arguments ? commands[i]->argument : commands[i]->name;
        if (text && strlen(text) > most) most = strlen(text);
    }
    return (int)most;
}

void plim_help_print(FILE *out)
{
    int names = widest(false), arguments = widest(true);
    fprintf(out, "plimsoll finds the fastest training settings that fit a GPU.\n\n"
                 "usage: plimsoll COMMAND ...\n\n");
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++)
        fprintf(out, "  %-*s %-*s %s\n", names, commands[i]->name, arguments,
                commands[i]->argument ? commands[i]->argument : "", commands[i]->summary);
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
