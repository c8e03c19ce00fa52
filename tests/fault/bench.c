#include "bench.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    cr_assert(folder != NULL);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

int bench_children(void)
{
    char path[64], word[32];
    int count = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
    FILE *file = fopen(path, "re");
    cr_assert(file != NULL, "%s", path);
    while (fscanf(file, "%31s", word) == 1) count++;
    fclose(file);
    return count;
}

void bench_init(struct bench *b, const char *script)
{
    *b = (struct bench){.config = PLIM_REMOTE_CONFIG_INIT, .err = PLIM_ERROR_INIT};
    cr_assert(eq(int, plim_spec_load("gpt2-124m", &b->spec, &b->err), PLIM_OK), "%s", b->err.text);
    snprintf(b->count_path, sizeof(b->count_path), "/tmp/plimsoll-fault-XXXXXX");
    int fd = mkstemp(b->count_path);
    cr_assert(ge(int, fd, 0));
    close(fd);
    setenv("PLIM_FAKE_COUNT", b->count_path, 1);
    setenv("PLIM_FAKE_SCRIPT", script, 1);
    for (int i = 0; i < PLIM_PHASE_COUNT; i++)
        b->config.deadlines[i] = (struct plim_deadline){.seconds = 0.3};
    b->config.timing_seconds = 0;
    b->config.uri = "fake";
    b->config.spec = &b->spec;
    b->config.program = PLIM_FAKE_WORKER;
}

void bench_start(struct bench *b)
{
    b->fds = open_fds();
    cr_assert(eq(int, plim_remote_create(&b->config, &b->remote, &b->err), PLIM_OK));
    plim_remote_set_budget(b->remote, INT64_C(64) << 20);
}

enum plim_status bench_run(struct bench *b, int64_t micro_batch, struct plim_replay *out)
{
    struct plim_setting setting = {.micro_batch = micro_batch, .accumulation = 1};
    b->err = (struct plim_error)PLIM_ERROR_INIT;
    return plim_remote_run(b->remote, &setting, PLIM_RUN_LIMITED, out, &b->err);
}

void bench_finish(struct bench *b)
{
    plim_remote_destroy(&b->remote);
    cr_expect(eq(int, bench_children(), 0));
    cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    cr_expect(eq(int, open_fds(), b->fds));
    unlink(b->count_path);
}

void bench_listen(void *user, enum plim_log_level level, const char *text)
{
    struct bench_ear *ear = user;
    ear->times += level == ear->level && strstr(text, ear->text) != NULL;
}
