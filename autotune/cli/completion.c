/* completion: prints a shell script that completes commands, options and their values, made from the tables of
 * --help. */
#include "command.h"
#include "option_kinds.h"
#include "workloads/spec/zoo.h"
#include <string.h>

/* A supported shell. */
struct shell {
    const char *name;
    void (*print)(FILE *out);
};

static void print_bash(FILE *out);
static void print_zsh(FILE *out);
static void print_fish(FILE *out);

static const struct shell shells[] = {
    {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
enum { SHELL_COUNT = sizeof(shells) / sizeof(shells[0]) };

/* --- words to complete ------------------------------------------------------------------------ */

static bool takes(const char *argument, const char *what)
{
    return argument && strstr(argument, what);
}

/* True if an argument is a file or folder. */
static bool takes_file(const char *argument)
{
    return takes(argument, "FILE") || takes(argument, "DIR") || takes(argument, "PATH") ||
           takes(argument, "SPEC") || takes(argument, "RESULT");
}

/* Returns word number `index` of those that may be the command's argument; NULL after the last. */
static const char *subject(const struct plim_command *command, size_t index)
{
    if (takes(command->argument, "SPEC"))
        return index < plim_zoo_count ? plim_zoo_names[index] : NULL;
    if (command->id == PLIM_COMMAND_HELP)
        return index < PLIM_COMMAND_COUNT ? plim_command_at(index)->name : plim_help_topic(index - PLIM_COMMAND_COUNT);
    if (command->id == PLIM_COMMAND_COMPLETION)
        return index < SHELL_COUNT ? shells[index].name : NULL;
    return NULL;
}

static void print_subjects(FILE *out, const struct plim_command *command)
{
    const char *word;
    for (size_t i = 0; (word = subject(command, i)); i++) fprintf(out, "%s%s", i ? " " : "", word);
}

static bool has_values(const struct plim_option *option)
{
    char scratch[PLIM_OPTION_VALUE];
    return plim_option_value(option, 0, scratch);
}

/* Prints the values of an option. `escape` is put before colons, which are special in some shells. */
static void print_values(FILE *out, const struct plim_option *option, const char *escape)
{
    char scratch[PLIM_OPTION_VALUE];
    const char *value;
    for (size_t i = 0; (value = plim_option_value(option, i, scratch)); i++) {
        if (i) fputc(' ', out);
        for (; *value; value++) fprintf(out, "%s%c", *value == ':' ? escape : "", *value);
    }
}

/* Prints a text up to its first semicolon, for use inside single quotes of the shell. Characters of `special` are
 * escaped with a backslash; single quotes are omitted. */
static void print_short(FILE *out, const char *text, const char *special)
{
    for (const char *c = text; *c && *c != ';'; c++) {
        if (*c == '\'') continue;
        if (strchr(special, *c)) fputc('\\', out);
        fputc(*c, out);
    }
}

/* --- bash ------------------------------------------------------------------------------------- */

static void print_bash_command(FILE *out, const struct plim_command *command)
{
    const struct plim_option *option = NULL;
    fprintf(out, "    %s)\n        subjects='", command->name);
    print_subjects(out, command);
    fprintf(out, "' files=%d\n        options='", takes_file(command->argument));
    while ((option = plim_options_next(command->id, option))) fprintf(out, "%s ", option->name);
    fprintf(out, "'\n        case $before in\n");
    while ((option = plim_options_next(command->id, option))) {
        if (!option->argument) continue;
        fprintf(out, "        %s) takes=1 values='", option->name);
        print_values(out, option, "");
        fprintf(out, "' files=%d ;;\n", takes_file(option->argument));
    }
    fprintf(out, "        esac\n        ;;\n");
}

/* The script splits the line at blanks itself: COMP_WORDS is also split at colons and equal signs, and a reply only
 * replaces the text after the last of them. */
static void print_bash(FILE *out)
{
    fprintf(out, "# plimsoll completion bash: source this, or install it as\n"
                 "# /usr/share/bash-completion/completions/plimsoll\n"
                 "_plimsoll() {\n"
                 "    local line=${COMP_LINE:0:COMP_POINT} words current before word\n"
                 "    local subjects='' options='' values='' files=0 takes=0 list='' kept\n"
                 "    read -ra words <<<\"$line\"\n"
                 "    [[ $line == *[[:blank:]] ]] && words+=('')\n"
                 "    current=${words[${#words[@]}-1]}\n"
                 "    before=${words[${#words[@]}-2]}\n"
                 "    COMPREPLY=()\n"
                 "    for word in \"${words[@]:1:${#words[@]}-2}\"; do\n"
                 "        if [ \"$word\" = -- ]; then\n"
                 "            COMPREPLY=($(compgen -o default -f -- \"$current\"))\n"
                 "            return\n"
                 "        fi\n"
                 "    done\n"
                 "    kept=$current\n"
                 "    if [[ $current == --*=* ]]; then\n"
                 "        before=${current%%%%=*}\n"
                 "        current=${current#*=}\n"
                 "    fi\n"
                 "    if [ \"${#words[@]}\" -le 2 ]; then\n"
                 "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++)
        fprintf(out, "%s ", plim_command_at(i)->name);
    fprintf(out, "--help --version' -- \"$current\"))\n"
                 "        return\n"
                 "    fi\n"
                 "    case ${words[1]} in\n");
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) print_bash_command(out, plim_command_at(i));
    fprintf(out, "    esac\n"
                 "    if [ $takes = 1 ]; then\n"
                 "        list=${current%%\"${current##*,}\"}\n"
                 "        COMPREPLY=($(compgen -P \"$list\" -W \"$values\" -- \"${current##*,}\"))\n"
                 "    elif [[ $current == -* ]]; then\n"
                 "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
                 "    else\n"
                 "        COMPREPLY=($(compgen -W \"$subjects\" -- \"$current\"))\n"
                 "    fi\n"
                 "    [ $files = 1 ] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
                 "    current=${current%%\"${current##*[:=]}\"}\n"
                 "    COMPREPLY=(\"${COMPREPLY[@]#\"$current\"}\")\n"
                 "}\n"
                 "complete -o filenames -F _plimsoll plimsoll\n");
}

/* --- zsh -------------------------------------------------------------------------------------- */

static void print_zsh_command(FILE *out, const struct plim_command *command)
{
    const struct plim_option *option = NULL;
    fprintf(out, "    %s)\n        _arguments -s", command->name);
    while ((option = plim_options_next(command->id, option))) {
        fprintf(out, " \\\n            '*%s%s[", option->name, option->argument ? "=" : "");
        print_short(out, option->help, "[]:\\");
        fputc(']', out);
        if (option->argument) fprintf(out, ":%s:", option->argument);
        if (has_values(option)) {
            fputs("_sequence compadd - ", out);
            print_values(out, option, "\\");
        } else if (option->argument && takes_file(option->argument)) {
            fputs("_files", out);
        }
        fputc('\'', out);
    }
    if (command->argument && command->argument[0] == '-') fputs(" \\\n            '*::command:_normal'", out);
    if (subject(command, 0)) {
        fputs(" \\\n            '*:argument:_alternative \"words\\:word\\:(", out);
        print_subjects(out, command);
        fprintf(out, ")\"%s'", takes_file(command->argument) ? " \"files\\:file\\:_files\"" : "");
    } else if (takes_file(command->argument)) {
        fputs(" \\\n            '*:file:_files'", out);
    }
    fputs("\n        ;;\n", out);
}

static void print_zsh(FILE *out)
{
    fprintf(out, "#compdef plimsoll\n"
                 "# plimsoll completion zsh: install it as _plimsoll in a folder of $fpath\n"
                 "_plimsoll() {\n"
                 "    local -a commands=(\n");
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) {
        fprintf(out, "        '%s:", plim_command_at(i)->name);
        print_short(out, plim_command_at(i)->summary, "\\:");
        fputs("'\n", out);
    }
    fprintf(out, "    )\n"
                 "    if ((CURRENT == 2)); then\n"
                 "        _describe command commands\n"
                 "        return\n"
                 "    fi\n"
                 "    local command=${words[2]}\n"
                 "    shift words\n"
                 "    ((CURRENT--))\n"
                 "    case $command in\n");
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) print_zsh_command(out, plim_command_at(i));
    fprintf(out, "    esac\n"
                 "}\n"
                 "compdef _plimsoll plimsoll\n");
}

/* --- fish ------------------------------------------------------------------------------------- */

static void print_fish_command(FILE *out, const struct plim_command *command)
{
    const struct plim_option *option = NULL;
    fprintf(out, "complete -c plimsoll -n __fish_use_subcommand -f -a %s -d '", command->name);
    print_short(out, command->summary, "\\");
    fputs("'\n", out);
    char condition[96];
    snprintf(condition, sizeof(condition), "'__fish_seen_subcommand_from %s'", command->name);
    if (!takes_file(command->argument))
        fprintf(out, "complete -c plimsoll -n %s -f\n", condition);
    if (subject(command, 0)) {
        fprintf(out, "complete -c plimsoll -n %s -a '", condition);
        print_subjects(out, command);
        fputs("'\n", out);
    }
    while ((option = plim_options_next(command->id, option))) {
        fprintf(out, "complete -c plimsoll -n %s -l %s -d '", condition, option->name + 2);
        print_short(out, option->help, "\\");
        fputc('\'', out);
        if (option->argument && takes_file(option->argument)) fputs(" -rF", out);
        else if (option->argument) fputs(" -x", out);
        if (has_values(option)) {
            fputs(" -a '", out);
            print_values(out, option, "");
            fputc('\'', out);
        }
        fputc('\n', out);
    }
}

static void print_fish(FILE *out)
{
    fprintf(out, "# plimsoll completion fish: install it as plimsoll.fish in\n"
                 "# /usr/share/fish/vendor_completions.d\n");
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) print_fish_command(out, plim_command_at(i));
}

/* --- the command ------------------------------------------------------------------------------ */

static enum plim_status run_completion(const struct plim_request *request, const struct plim_io *io,
                                       struct plim_error *err)
{
    for (size_t i = 0; i < SHELL_COUNT && request->subject; i++) {
        if (strcmp(shells[i].name, request->subject)) continue;
        shells[i].print(io->out);
        return PLIM_OK;
    }
    if (!request->subject) return plim_fail(err, PLIM_INVALID, "which shell? bash, zsh or fish");
    return plim_fail(err, PLIM_INVALID, "%s: expected bash, zsh or fish", request->subject);
}

const struct plim_command plim_command_completion = {
    .name = "completion",
    .argument = "SHELL",
    .id = PLIM_COMMAND_COMPLETION,
    .run = run_completion,
    .summary = "a script that completes words in bash, zsh or fish",
    .about = "Prints what a shell needs to complete plimsoll's commands, options and their\n"
             "values. An installed plimsoll has it installed already. Example:\n\n"
             "  source <(plimsoll completion bash)\n"};
