/* The environment of trials of a program: the library that is preloaded, and a folder that is removed after
 * the search, even if plimsoll is killed: a child process waits for that.
 */
#ifndef PLIM_AUTOTUNE_EXEC_WORKSPACE_H
#define PLIM_AUTOTUNE_EXEC_WORKSPACE_H

#include "autotune/base/status.h"
#include <limits.h>
#include <sys/types.h>

/* In the workspace's folder: put before PYTHONPATH. */
#define PLIM_WORKSPACE_MODULES "python"
/* Put before PATH: programs that report on the GPU. */
#define PLIM_WORKSPACE_PROGRAMS "bin"
/* The cache of the programs' compilers, which create it when they first need it. */
#define PLIM_WORKSPACE_COMPILED "compiled"

enum plim_preloaded {
    PLIM_PRELOAD_VIRTUAL_GPU, /* on simulated GPUs */
    PLIM_PRELOAD_OBSERVER,    /* on real ones */
};

struct plim_workspace {
    char library[PATH_MAX]; /* the library to preload: without blanks and colons */
    char folder[64];        /* for the folders of trials; "": none was made */
    const char *logs;       /* for their output: the caller's, or `folder` */
    int keeper;             /* once every copy of it is closed, `folder` is removed; -1: none */
    pid_t keeper_pid;
};

/* Finds the library, which lies beside the executable in a build and under lib when installed, and
 * creates the folder; also `logs` (if not NULL) with its parent folders, which are kept. PLIM_UNSUPPORTED: there is no
 * such library. Finish the workspace in any case. */
enum plim_status plim_workspace_make(struct plim_workspace *workspace,
                                     enum plim_preloaded preloaded, const char *logs,
                                     struct plim_error *err) PLIM_MUST_CHECK;
void plim_workspace_finish(struct plim_workspace *workspace); /* NULL and zeroed are fine */

#endif
