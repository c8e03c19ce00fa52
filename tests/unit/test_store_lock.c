/* The lock of a GPU while it is measured: its owner, and its path. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "autotune/store/lock.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/plimsoll-lock-XXXXXX";

static void set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL);
}

static void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_expect(eq(int, system(command), 0));
}

TestSuite(store_lock, .init = set_up, .fini = tear_down);

static enum plim_status lock_once(struct plim_store_lock *lock, double seconds, bool *waited)
{
    struct plim_error err = PLIM_ERROR_INIT;
    setenv("XDG_RUNTIME_DIR", folder, 1);
    return plim_store_lock_acquire(lock, "GPU-1", seconds, NULL, NULL, waited, &err);
}

Test(store_lock, a_lock_ends_with_its_holder)
{
    struct plim_store_lock lock;
    int ready[2];
    char byte;
    bool waited;
    cr_assert(eq(int, pipe(ready), 0));
    pid_t child = fork();
    if (!child) {
        if (lock_once(&lock, 10, &waited) || write(ready[1], "x", 1) != 1) _exit(1);
        pause();
    }
    cr_assert(eq(int, (int)read(ready[0], &byte, 1), 1));
    cr_expect(eq(int, lock_once(&lock, 0.05, &waited), PLIM_TIMEOUT));
    cr_expect(waited);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_expect(eq(int, lock_once(&lock, 10, &waited), PLIM_OK));
    plim_store_lock_release(&lock);
}

/* A folder of others, or a link, is not used; the next place is. */
Test(store_lock, no_lock_lies_in_a_folder_of_others)
{
    struct plim_store_lock lock;
    char path[96];
    struct stat info;
    bool waited;
    snprintf(path, sizeof(path), "%s/plimsoll", folder);
    cr_assert(eq(int, symlink("/tmp", path), 0));
    cr_expect(eq(int, lock_once(&lock, 1, &waited), PLIM_OK));
    snprintf(path, sizeof(path), "%s/plimsoll/GPU-1.lock", folder);
    cr_expect(eq(int, lstat(path, &info), -1));
    plim_store_lock_release(&lock);
    snprintf(path, sizeof(path), "%s/plimsoll", folder);
    unlink(path);
    cr_assert(eq(int, mkdir(path, 0700), 0));
    chmod(path, 0777);
    cr_expect(eq(int, lock_once(&lock, 1, &waited), PLIM_OK));
    snprintf(path, sizeof(path), "%s/plimsoll/GPU-1.lock", folder);
    cr_expect(eq(int, lstat(path, &info), -1));
    plim_store_lock_release(&lock);
}

Test(store_lock, no_name_leads_out_of_the_lock_folder)
{
    struct plim_store_lock lock;
    struct plim_error err = PLIM_ERROR_INIT;
    char path[96];
    bool waited;
    setenv("XDG_RUNTIME_DIR", folder, 1);
    cr_assert(
        eq(int, plim_store_lock_acquire(&lock, "../../x", 1, NULL, NULL, &waited, &err), PLIM_OK));
    snprintf(path, sizeof(path), "%s/plimsoll/_._.._x.lock", folder);
    cr_expect(eq(int, access(path, F_OK), 0), "%s", path);
    plim_store_lock_release(&lock);
}
