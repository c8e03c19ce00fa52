/* What trials of a program need around them: the library that is preloaded, and a folder that goes
 * with the search, also when plimsoll is killed: a child of ours waits for that.
 */
#ifndef PLIM_AUTOTUNE_EXEC_WORKSPACE_H
#define PLIM_AUTOTUNE_EXEC_WORKSPACE_H

#include "autotune/base/status.h"
#include <limits.h>
#include <sys/types.h>

/* In the workspace's folder: what goes before PYTHONPATH. */
#define PLIM_WORKSPACE_MODULES "python"
/* What goes before PATH: programs that tell of the GPU. */
#define PLIM_WORKSPACE_PROGRAMS "bin"
/* And what the programs' compilers keep, which makes it when they first do. */
#define PLIM_WORKSPACE_COMPILED "compiled"

enum plim_preloaded {
    PLIM_PRELOAD_VIRTUAL_GPU, /* on simulated GPUs */
    PLIM_PRELOAD_OBSERVER,    /* on real ones */
};

struct plim_workspace {
    char library[PATH_MAX]; /* to be preloaded: no blank and no colon in it */
    char folder[64];        /* for the folders of trials; "": none was made */
    const char *logs;       /* for their output: the caller's, or `folder` */
    int keeper;             /* once every copy of it is closed, `folder` is removed; -1: none */
    pid_t keeper_pid;
};

/* Finds the library, which lies beside the executable in a build and under lib when installed, and
 * makes the folder; `logs` and what it is in are made too, if it is not NULL, and stay. PLIM_UNSUPPORTED: there is no
 * such library. The workspace is to be finished in any case. */
enum plim_status plim_workspace_make(struct plim_workspace *workspace,
                                     enum plim_preloaded preloaded, const char *logs,
                                     struct plim_error *err) PLIM_MUST_CHECK;
void plim_workspace_finish(struct plim_workspace *workspace); /* NULL and zeroed are fine */

#endif
