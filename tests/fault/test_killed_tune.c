/* A `plimsoll tune` on a pretended GPU, and SIGKILL at a random moment for it or for its worker: no
 * process and no memory of the GPU is left, and a killed worker does not change the answer.
 *
 *   PLIM_FAULT_ROUNDS   how often in all; plain: 10
 */
#include "autotune/base/clock.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/plimsoll-kills-XXXXXX";
static char state_path[64], report_path[64], budget[16] = PLIM_KILL_BUDGET;

static void set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(state_path, sizeof(state_path), "%s/gpus", folder);
    snprintf(report_path, sizeof(report_path), "%s/report", folder);
    setenv("PLIM_DOUBLE_STATE", state_path, 1);
    setenv("PLIM_DOUBLE_MEMORY", "300MiB", 1);
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("TMPDIR", folder, 1);
    setenv("PLIMSOLL_STORE", "off", 1);
    cr_assert(not(prctl(PR_SET_CHILD_SUBREAPER, 1))); /* orphans become ours */
}

static void tear_down(void)
{
    unlink(state_path);
    unlink(report_path);
    int removed = rmdir(folder);
    cr_expect(eq(int, removed, 0), "%s: a file is left", folder);
}

TestSuite(kills, .init = set_up, .fini = tear_down);

static const double MOST_BUDGET_SECONDS = 120;

static int rounds(void)
{
    const char *text = getenv("PLIM_FAULT_ROUNDS");
    return (text ? atoi(text) : PLIM_FAULT_ROUNDS) / 2;
}

static void nap(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))}, NULL);
}

static double random_share(void)
{
    return (double)rand() / RAND_MAX;
}

static pid_t start_tune(void)
{
    pid_t pid = fork();
    cr_assert(ge(int, pid, 0));
    if (pid) return pid;
    int out = open(report_path, O_WRONLY | O_CREAT | O_TRUNC, 0600),
        none = open("/dev/null", O_RDWR);
    dup2(none, 0);
    dup2(out, 1);
    dup2(none, 2);
    execl(PLIM_BINARY, PLIM_BINARY, "tune", PLIM_SPECS "/smallest.yaml", "--margin", "0", "--overhead", "278MiB",
          "--device", "cuda:0", "--budget", budget, "--json", "--quiet", (char *)NULL);
    _exit(127);
}

static int exit_code_of(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) cr_assert(eq(int, errno, EINTR));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_nothing_left(int round)
{
    char line[128] = "";
    double start = plim_clock_seconds();
    while (waitpid(-1, NULL, WNOHANG) >= 0 && plim_clock_seconds() - start < 5) nap(0.002);
    bool alone = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
    cr_expect(alone, "round %d: a process is left", round);
    FILE *held = popen("'" PLIM_GPU_PROCESSES "'", "r");
    cr_assert(held != NULL);
    cr_expect(fgets(line, sizeof(line), held) == NULL, "round %d: on the GPU: %s", round, line);
    cr_expect(eq(int, pclose(held), 0));
}

static void expect_the_answer(int round, int exit_code)
{
    json_t *report = json_load_file(report_path, 0, NULL),
           *choice = json_object_get(report, "choice");
    cr_expect(eq(int, exit_code, 0), "round %d", round);
    cr_expect(eq(i64, json_integer_value(json_object_get(choice, "micro_batch")), 9), "round %d",
              round);
    bool verified = json_is_true(json_object_get(choice, "verified"));
    cr_expect(verified, "round %d", round);
    json_decref(report);
}

/* How long a search takes that nothing disturbs. Where that is more than a third of the budget, the
 * machine is slow, and all have a longer one. */
static double undisturbed_seconds(void)
{
    for (double budget_seconds = strtod(budget, NULL);; budget_seconds *= 2) {
        snprintf(budget, sizeof(budget), "%gs", budget_seconds);
        double start = plim_clock_seconds();
        int exit_code = exit_code_of(start_tune());
        double seconds = plim_clock_seconds() - start;
        expect_nothing_left(-1);
        bool enough = seconds < budget_seconds / 3;
        if (!enough && budget_seconds <= MOST_BUDGET_SECONDS / 2) continue;
        expect_the_answer(-1, exit_code);
        return seconds;
    }
}

Test(kills, a_killed_search_leaves_nothing)
{
    double seconds = undisturbed_seconds();
    srand(21);
    for (int i = 0; i < rounds(); i++) {
        pid_t pid = start_tune();
        nap(seconds * random_share());
        kill(pid, SIGKILL);
        exit_code_of(pid);
        expect_nothing_left(i);
    }
}

/* 0: there is none now. At its end a program with sanitizers has another child, which looks for leaks and
 * must not be killed: the program would wait for it for ever. */
static pid_t worker_of(pid_t parent)
{
    static const char worker[] = "plimsoll\0--worker";
    char path[64], arguments[sizeof(worker)] = "";
    long pid = 0;
    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)parent, (long)parent);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%ld", &pid) != 1) pid = 0;
    if (file) fclose(file);
    if (!pid) return 0;
    snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
    file = fopen(path, "re");
    if (file && fread(arguments, 1, sizeof(arguments), file) < sizeof(arguments)) pid = 0;
    if (file) fclose(file);
    return memcmp(arguments, worker, sizeof(worker)) ? 0 : (pid_t)pid;
}

Test(kills, a_killed_worker_does_not_change_the_answer)
{
    double seconds = undisturbed_seconds();
    int killed = 0;
    srand(22);
    for (int i = 0; i < rounds(); i++) {
        pid_t pid = start_tune();
        nap(seconds * random_share());
        pid_t worker = worker_of(pid);
        if (worker > 0) killed += !kill(worker, SIGKILL);
        expect_the_answer(i, exit_code_of(pid));
        expect_nothing_left(i);
    }
    cr_expect(ge(int, killed, rounds() / 4));
}
