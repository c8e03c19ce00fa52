#include "starting.h"
#include "autotune/base/clock.h"
#include "autotune/base/process_stat.h"
#include "processes.h"
#include <time.h>

static const double LOOK_SECONDS = 0.25;
/* A process may take PATIENCE times as long to its first step as the first process did, and at least LEAST_SECONDS. */
static const double PATIENCE = 3, LEAST_SECONDS = 5;
/* CPU time as a share of the time between two looks; a process that only waits uses less. */
static const double BUSY_SHARE = 0.05;

enum { DEEPEST = 64 };

struct round {
    struct plim_starting *now;
    const struct plim_starting *before;
    const struct plim_machine *machine;
    double longest; /* the age in seconds up to which a process may be starting */
};

/* Returns the index of a process in the machine; -1 if it uses no GPU. */
static int row_of(const struct plim_machine *machine, pid_t pid, uint64_t began)
{
    for (int i = 0; i < PLIM_MACHINE_PROCESSES && machine->processes[i].pid; i++)
        if (machine->processes[i].pid == pid && machine->processes[i].born == began) return i;
    return -1;
}

/* True if an ancestor of the process uses a GPU. */
static bool is_helper(const struct plim_machine *machine, struct plim_process_stat stat)
{
    for (int i = 0; i < DEEPEST && stat.parent > 1; i++) {
        pid_t parent = stat.parent;
        if (!plim_process_stat(parent, &stat)) return false;
        if (row_of(machine, parent, stat.began) >= 0) return true;
    }
    return false;
}

static double age_of(const struct plim_process_stat *stat)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (double)stat->began / (double)sysconf(_SC_CLK_TCK);
}

/* True if the process used the CPU since the last look, or did not exist then. */
static bool is_busy(const struct round *round, pid_t pid, const struct plim_process_stat *stat)
{
    if (stat->state == 'R' || stat->state == 'D') return true;
    for (size_t i = 0; i < round->before->count; i++) {
        const struct plim_starting_process *before = &round->before->seen[i];
        if (before->pid != pid || before->began != stat->began) continue;
        double used = (double)(stat->used - before->used) / (double)sysconf(_SC_CLK_TCK);
        return used > BUSY_SHARE * (round->now->looked - round->before->looked);
    }
    return true;
}

static void visit(void *user, pid_t pid)
{
    struct round *round = user;
    struct plim_process_stat stat;
    if (!plim_process_stat(pid, &stat) || stat.state == 'Z' || stat.state == 'X') return;
    int row = row_of(round->machine, pid, stat.began);
    if (row >= 0 && (round->machine->processes[row].launches > 0 || round->machine->processes[row].ended)) return;
    if (row < 0 && is_helper(round->machine, stat)) return;
    if (age_of(&stat) > round->longest) return;
    if (round->now->count < PLIM_STARTING_MOST)
        round->now->seen[round->now->count++] = (struct plim_starting_process){pid, stat.began, stat.used};
    round->now->any |= is_busy(round, pid, &stat);
}

bool plim_starting_any(struct plim_starting *starting, const struct plim_machine *machine, pid_t ancestor,
                       double first_step_seconds)
{
    double now = plim_clock_seconds(), longest = PATIENCE * first_step_seconds;
    if (ancestor <= 0) return false;
    if (starting->looked > 0 && now - starting->looked < LOOK_SECONDS) return starting->any;
    const struct plim_starting before = *starting;
    *starting = (struct plim_starting){.looked = now};
    plim_processes_each(&(struct plim_processes){.ancestor = ancestor}, visit,
                        &(struct round){.now = starting,
                                        .before = &before,
                                        .machine = machine,
                                        .longest = longest > LEAST_SECONDS ? longest : LEAST_SECONDS});
    return starting->any;
}
