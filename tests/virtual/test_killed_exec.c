/* plimsoll is ended at random moments by what no program can hear or stay for: nothing that a trial
 * started is left, whatever it did to its session and its environment, and no folder.
 *
 *   PLIM_FAULT_ROUNDS   how often; plain: 30
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/plimsoll-kills-XXXXXX";
static char number[16]; /* in the environment of all that is started, or the argument of a sleep */

static void set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(number, sizeof(number), "%d", (int)getpid());
    setenv("TMPDIR", folder, 1);
    setenv("PLIM_TEST", number, 1);
}

static void tear_down(void)
{
    int removed = rmdir(folder);
    cr_expect(eq(int, removed, 0), "something is left in %s", folder);
}

TestSuite(exec_kills, .init = set_up, .fini = tear_down);

static int rounds(void)
{
    const char *text = getenv("PLIM_FAULT_ROUNDS");
    return text ? atoi(text) : PLIM_FAULT_ROUNDS;
}

static void nap(int milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L}, NULL);
}

static bool has_string(const char *pid, const char *name, const char *wanted)
{
    static char text[1 << 17];
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) fclose(file);
    text[length] = '\0';
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        if (!strcmp(text + at, wanted)) return true;
    return false;
}

static bool is_left(const char *pid)
{
    char mark[32];
    snprintf(mark, sizeof(mark), "PLIM_TEST=%s", number);
    if (!isdigit((unsigned char)*pid) || !strcmp(pid, number)) return false;
    return has_string(pid, "environ", mark) ||
           (has_string(pid, "cmdline", "sleep") && has_string(pid, "cmdline", number));
}

/* Processes of what this test started, and entries of its folder. */
static int left_over(void)
{
    int count = 0;
    const char *const places[] = {"/proc", folder};
    for (int i = 0; i < 2; i++) {
        DIR *place = opendir(places[i]);
        for (struct dirent *entry; (entry = readdir(place));)
            count += i ? entry->d_name[0] != '.' : is_left(entry->d_name);
        closedir(place);
    }
    return count;
}

static void expect_nothing_left(int round)
{
    for (int i = 0; i < 500 && left_over(); i++) nap(20);
    cr_assert(eq(int, left_over(), 0), "round %d", round);
}

static pid_t start(const char *file, const char *child)
{
    pid_t pid = fork();
    cr_assert(ge(int, pid, 0));
    if (pid) return pid;
    for (int i = 0; i < 3; i++) dup2(open("/dev/null", O_RDWR), i);
    signal(SIGINT, SIG_DFL); /* nohup, and jobs of shells without job control, ignore them */
    signal(SIGQUIT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    execl(PLIM_BINARY, "plimsoll", "exec", "--device", "sim:A100-SXM4-80GB,memory=1GiB", "--batch",
          "1:64", "--repetitions", "1000000", "--jobs", "2", "--file", file, "--", "sh", "-c",
          "\"$@\"; true", "sh", PLIM_TRAINER, "{batch}", child, "forever=1", "sleep=10",
          (char *)NULL);
    _exit(127);
}

static void end(pid_t pid, int how)
{
    kill(pid, how);
    if (how == SIGINT) {
        nap(5);
        kill(pid, how); /* the second does not wait for the answer so far */
    }
    while (waitpid(pid, NULL, 0) != pid) continue;
}

Test(exec_kills, nothing_is_left_at_whatever_moment)
{
    static const int signals[] = {SIGKILL, SIGQUIT, SIGKILL, SIGPIPE, SIGINT};
    static const char *const children[] = {"fork=0", "fork=1", "fork=2", "fork=3"};
    srand(23);
    for (int i = 0; i < rounds(); i++) {
        pid_t pid = start("/etc/hostname={dir}/config", children[i % 4]);
        nap(rand() % 400);
        end(pid, signals[i % 5]);
        expect_nothing_left(i);
    }
}

Test(exec_kills, files_written_for_a_trial_are_removed)
{
    char file[96];
    snprintf(file, sizeof(file), "/etc/hostname=%s/config", folder);
    pid_t pid = start(file, "fork=0");
    for (int i = 0; i < 500 && left_over() < 6; i++) nap(10); /* until the program runs */
    end(pid, SIGKILL);
    expect_nothing_left(0);
}

static void kill_guardians(void)
{
    DIR *place = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(place));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        FILE *file = is_left(entry->d_name) ? fopen(path, "r") : NULL;
        if (file && fgets(name, sizeof(name), file) && !strcmp(name, "trial-guardian\n"))
            kill(atoi(entry->d_name), SIGKILL);
        if (file) fclose(file);
    }
    closedir(place);
}

/* plimsoll then ends the programs by what is known without their guardians, and itself. */
Test(exec_kills, killed_guardians_leave_nothing_either)
{
    pid_t pid = start("/etc/hostname={dir}/config", "fork=2");
    for (int i = 0; i < 500 && !waitpid(pid, NULL, WNOHANG); i++) {
        nap(20);
        kill_guardians();
    }
    expect_nothing_left(0);
}
