/* Shell completions and manual pages, which are generated from the tables of --help. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What bash offers behind `line`, sorted, with a blank behind each. */
static void complete(const char *line, char *out, size_t size)
{
    char command[1024], word[256];
    size_t length = 0;
    snprintf(command, sizeof(command),
             "bash -c 'source <(\"$0\" completion bash); COMP_LINE=$1 COMP_POINT=${#1}; cd /; _plimsoll; "
             "printf \"%%s\\n\" \"${COMPREPLY[@]}\" | sort' '" PLIM_BINARY "' '%s'",
             line);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    *out = '\0';
    while (fgets(word, sizeof(word), pipe) && length + strlen(word) < size) {
        word[strcspn(word, "\n")] = '\0';
        length += (size_t)snprintf(out + length, size - length, "%s ", word);
    }
    cr_expect(eq(int, pclose(pipe), 0), "%s", line);
}

static void expect_completed(const char *line, const char *words)
{
    char found[4096];
    complete(line, found, sizeof(found));
    cr_expect(eq(str, found, (char *)words), "behind '%s'", line);
}

Test(shells, bash_completes_commands_options_and_values)
{
    expect_completed("plimsoll expl", "explain ");
    expect_completed("plimsoll tune --checkp", "--checkpointing ");
    expect_completed("plimsoll tune --checkpointing f", "full ");
    expect_completed("plimsoll plan --objective lea", "least-memory ");
    expect_completed("plimsoll plan --sort ", "batch given memory speed ");
    expect_completed("plimsoll plan gpt2-m", "gpt2-medium ");
    expect_completed("plimsoll help comp", "completion ");
    expect_completed("plimsoll help train.zero.o", "train.zero.offload_optimizer train.zero.offload_param "
                                                   "train.zero.overlap_comm ");
    expect_completed("plimsoll explain --out usr/bi", "usr/bin ");
}

/* Colons, equal signs and commas separate words for bash, or for plimsoll. */
Test(shells, bash_completes_the_rest_of_a_word)
{
    expect_completed("plimsoll plan --device sim:RTX-409", "RTX-4090 ");
    expect_completed("plimsoll plan --device=sim:RTX-409", "RTX-4090 ");
    expect_completed("plimsoll plan --checkpointing none,f", "none,full ");
    expect_completed("plimsoll plan --device sim:T4,sim:RTX-409", "RTX-4090 ");
}

Test(shells, behind_two_dashes_bash_completes_files)
{
    expect_completed("plimsoll exec --batch 1:8 -- usr/bi", "usr/bin ");
}

/* Where the shell is here, it reads its script. */
static void expect_read_by(const char *shell)
{
    char command[512];
    snprintf(command, sizeof(command),
             "command -v %s >/dev/null || exit 0; '" PLIM_BINARY "' completion %s | %s -n", shell,
             shell, shell);
    cr_expect(eq(int, system(command), 0), "%s", shell);
}

Test(shells, each_shell_reads_its_script)
{
    expect_read_by("bash");
    expect_read_by("zsh");
    expect_read_by("fish");
}

Test(shells, another_shell_is_told_which_there_are)
{
    struct program p = program_run("completion csh");
    cr_expect(eq(int, p.exit_code, 2));
    cr_expect(strstr(p.err, "csh: expected bash, zsh or fish") != NULL, "%s", p.err);
    program_finish(&p);
}

/* Of every option that help lists, its name in bold stands in the page. */
static void expect_all_options(const char *help, const char *page)
{
    const char *line = help;
    size_t count = 0;
    while ((line = strstr(line, "\n  --"))) {
        char bold[128] = ".TP\n\\fB";
        size_t length = strlen(bold);
        for (line += 3; *line != ' ' && *line != '\n' && length < sizeof(bold) - 3; line++) {
            if (*line == '-') bold[length++] = '\\';
            bold[length++] = *line;
        }
        bold[length] = '\0';
        cr_expect(strstr(page, bold) != NULL, "%s", bold);
        count++;
    }
    cr_expect(count > 0);
}

Test(shells, every_command_has_a_manual_page_with_its_options)
{
    char arguments[64], name[32];
    struct program all = program_run("help");
    const char *line = strstr(all.out, "COMMAND ...\n\n");
    cr_assert(line != NULL);
    for (line += strlen("COMMAND ...\n\n"); sscanf(line, "%31s", name) == 1 && *line != '\n';
         line = strchr(line, '\n') + 1) {
        snprintf(arguments, sizeof(arguments), "help %s", name);
        struct program help = program_run(arguments);
        snprintf(arguments, sizeof(arguments), "help %s --man", name);
        struct program page = program_run(arguments);
        cr_expect(eq(int, page.exit_code, 0), "%s", name);
        cr_expect(eq(int, strncmp(page.out, ".TH PLIMSOLL\\-", 14), 0), "%s", page.out);
        expect_all_options(help.out, page.out);
        program_finish(&help);
        program_finish(&page);
    }
    program_finish(&all);
}

/* A line of the page that begins with a dot is a macro that man(7) knows, and no text begins so. */
static void expect_known_macros(const char *arguments)
{
    static const char *const macros[] = {".TH ", ".SH ", ".TP\n", ".PP\n", ".RS ", ".RS\n", ".RE\n",
                                         ".nf\n", ".fi\n", ".B ",  ".BR ", ".RI ", ".I "};
    struct program page = program_run(arguments);
    cr_expect(eq(int, page.exit_code, 0), "%s", arguments);
    for (const char *line = page.out; *line; line = strchr(line, '\n') + 1) {
        bool is_known = line[0] != '.' && line[0] != '\'';
        for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]) && !is_known; i++)
            is_known = !strncmp(line, macros[i], strlen(macros[i]));
        cr_expect(is_known, "%.*s", (int)strcspn(line, "\n"), line);
    }
    program_finish(&page);
}

Test(shells, a_manual_page_has_only_macros_that_man_knows)
{
    expect_known_macros("help exec --man");
    expect_known_macros("help spec --man");
}
