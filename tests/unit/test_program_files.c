#define _DEFAULT_SOURCE /* mkdtemp */
/* What a program is made of: an interpreter with packages, and scripts. */
#include "autotune/exec/program_files.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/test_program_files_XXXXXX", told[4096];

static void set_up(void)
{
    char command[1024];
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(command, sizeof(command),
             "cd %s && mkdir -p bin lib/python3.11/site-packages/torch-2.11.0.dist-info "
             "lib/python3.11/site-packages/torch_geometric-2.6.dist-info "
             "lib/python3.11/site-packages/nvidia_cudnn_cu13-9.19.0.56.dist-info "
             "lib/python3.11/site-packages/requests-2.0.dist-info && "
             "touch bin/python && chmod +x bin/python && echo pass >train.py && echo a: 1 >c.yaml",
             folder);
    cr_assert(eq(int, system(command), 0));
    told[0] = '\0';
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_expect(eq(int, system(command), 0));
}

TestSuite(program_files, .init = set_up, .fini = tear_down);

static enum plim_status add(void *user, const char *text)
{
    size_t used = strlen(told);
    snprintf(told + used, sizeof(told) - used, "%s\n", text);
    return *(enum plim_status *)user;
}

static enum plim_status tell(enum plim_status answer)
{
    char python[128], script[128], config[128];
    char *command[] = {python, script, config, "--batch", "{batch}", "/no/such.py", NULL};
    snprintf(python, sizeof(python), "%s/bin/python", folder);
    snprintf(script, sizeof(script), "%s/train.py", folder);
    snprintf(config, sizeof(config), "--config=%s/c.yaml", folder);
    return plim_program_made_with(command, add, &answer);
}

Test(program_files, packages_that_count_and_scripts_are_told)
{
    static const char packages[] = "torch 2.11.0\nnvidia_cudnn_cu13 9.19.0.56\n";
    cr_assert(eq(int, tell(PLIM_OK), PLIM_OK));
    cr_expect(eq(int, strncmp(told, packages, strlen(packages)), 0), "%s", told);
    cr_expect(strstr(told, "/train.py sha256 ") && strstr(told, "/c.yaml sha256 "), "%s", told);
    cr_expect(not(strstr(told, "--config=") || strstr(told, "such.py") || strstr(told, "requests")), "%s", told);
}

Test(program_files, the_end_of_telling_is_its_end)
{
    cr_expect(eq(int, tell(PLIM_NOMEM), PLIM_NOMEM));
    cr_expect(eq(str, told, (char *)"torch 2.11.0\n"));
}

Test(program_files, a_script_that_is_another_one_now_has_changed)
{
    char path[PATH_MAX], command[256], *line;
    cr_assert(eq(int, tell(PLIM_OK), PLIM_OK));
    line = strstr(told, folder);
    *strchr(line, '\n') = '\0';
    cr_expect(not(plim_program_changed(line, path)));
    snprintf(command, sizeof(command), "echo break >%s/train.py", folder);
    cr_assert(eq(int, system(command), 0));
    cr_expect(plim_program_changed(line, path));
    cr_expect(strstr(path, "/train.py") != NULL && !strchr(path, ' '));
    cr_expect(not(plim_program_changed("torch 2.11.0", path)));
}
