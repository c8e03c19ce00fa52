/* help: prints the help of the program, or of a topic. */
#include "autotune/base/text.h"
#include "command.h"
#include "exit_code.h"
#include <string.h>

/* Returns the length of the longest name of a command, or of the longest argument. */
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

static enum plim_status unknown_topic(const char *word, struct plim_error *err)
{
    const char *names[PLIM_COMMAND_COUNT + 512];
    size_t count = 0, room = sizeof(names) / sizeof(names[0]);
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) names[count++] = plim_command_at(i)->name;
    for (size_t i = 0; count < room && plim_help_topic(i); i++) names[count++] = plim_help_topic(i);
    int near = plim_nearest(word, names, count);
    return plim_fail(err, PLIM_INVALID, "%s: no command, family or key of a spec%s%s%s", word,
                     near < 0 ? " (plimsoll help lists the commands)" : ", did you mean ",
                     near < 0 ? "" : names[near], near < 0 ? "" : "?");
}

static enum plim_status print_about(const char *subject, bool man, const struct plim_io *io, struct plim_error *err)
{
    const struct plim_command *command;
    struct plim_error other = PLIM_ERROR_INIT;
    if (plim_command_find(subject, &command, &other) == PLIM_OK) {
        if (man) plim_manual_print_command(command, io->version, io->out);
        else plim_help_print_command(command, io->out);
        return PLIM_OK;
    }
    if (man && !strcmp(subject, "spec")) plim_manual_print_spec(io->version, io->out);
    else if (man || !plim_help_print_topic(subject, io->out)) return unknown_topic(subject, err);
    return PLIM_OK;
}

static enum plim_status run_help(const struct plim_request *request, const struct plim_io *io,
                                 struct plim_error *err)
{
    if (request->subject) return print_about(request->subject, request->man, io, err);
    if (request->man) plim_manual_print(io->version, io->out);
    else plim_help_print(io->out);
    return PLIM_OK;
}

const struct plim_command plim_command_help = {
    .name = "help",
    .argument = "[TOPIC]",
    .id = PLIM_COMMAND_HELP,
    .run = run_help,
    .summary = "this text, a command with its options, or keys of a spec",
    .about = "Lists the commands, or what there is to say about one topic: the options of a\n"
             "command (plan), the keys of a spec (spec), one of them (train.clip), a section\n"
             "(train.zero), the families of models (model), or the keys of one (llama).\n"};
