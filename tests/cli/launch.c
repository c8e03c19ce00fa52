#define _DEFAULT_SOURCE /* mkdtemp */
#include "launch.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/plimsoll-env-XXXXXX";

void launch_set(const char *name, const char *value)
{
    cr_assert(zero(int, setenv(name, value, 1)));
}

const char *launch_path(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

void launch_set_up(void)
{
    static const char *const unset[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                        "LOCAL_RANK",           "SLURM_LOCALID",
                                        "SLURM_STEP_ID",        "PLIM_DOUBLE_NVML",
                                        "PLIM_DOUBLE_OTHERS",   "PLIM_DOUBLE_MEMORY",
                                        "PYTORCH_ALLOC_CONF",   "PYTORCH_CUDA_ALLOC_CONF"};
    cr_assert(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++) unsetenv(unset[i]);
    launch_set("PLIMSOLL_STORE", launch_path("store"));
    launch_set("XDG_RUNTIME_DIR", folder);
    launch_set("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER);
    launch_set("PLIMSOLL_CUDA_PATH", launch_path("cuda"));
    /* Libraries by name: env loads none. */
    cr_assert(zero(int, mkdir(launch_path("cuda"), 0755)));
    fclose(fopen(launch_path("cuda/" PLIM_CUBLASLT), "w"));
    fclose(fopen(launch_path("cuda/libcudnn.so.9"), "w"));
    launch_set("PLIM_DOUBLE_GPU", "A100-SXM4-80GB");
}

void launch_tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "chmod -R u+w %s; rm -rf %s", folder, folder);
    cr_expect(eq(int, system(command), 0));
}

struct program launch_run(const char *arguments, int exit_code)
{
    struct program p = program_run(arguments);
    cr_assert(eq(int, p.exit_code, exit_code), "%s: %s", arguments, p.err);
    return p;
}

bool launch_has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

void launch_keep(const char *arguments)
{
    char command[1024];
    struct program p = launch_run("--version", 0);
    p.out[strcspn(p.out, "\n")] = '\0';
    snprintf(command, sizeof(command), "'%s' '%s' %s", PLIM_KEEP_ANSWER, strchr(p.out, ' ') + 1,
             arguments);
    cr_assert(eq(int, system(command), 0), "%s", command);
    program_finish(&p);
}

void launch_expect_env(const char *arguments, const char *out, const char *err)
{
    struct program p = launch_run(arguments, 0);
    cr_expect(launch_has(p.out, out), "'%s' is not in: %s", out, p.out);
    if (*err)
        cr_expect(launch_has(p.err, err), "'%s' is not in: %s", err, p.err);
    else
        cr_expect(eq(str, p.err, (char *)""));
    program_finish(&p);
}
