/* The workspace of a search: the library to preload into trials, and a temporary folder. The folder is removed after
 * the search, even if plimsoll is killed: a child process, the keeper, does that. */
#ifndef PLIM_AUTOTUNE_EXEC_WORKSPACE_H
#define PLIM_AUTOTUNE_EXEC_WORKSPACE_H

#include "autotune/base/status.h"
#include <limits.h>
#include <sys/types.h>

/* Subfolder with Python modules, prepended to PYTHONPATH. */
#define PLIM_WORKSPACE_MODULES "python"
/* Subfolder with programs that report on the GPU (nvidia-smi), prepended to PATH. */
#define PLIM_WORKSPACE_PROGRAMS "bin"
/* Subfolder for the caches of the programs' compilers, which create it when they need it. */
#define PLIM_WORKSPACE_COMPILED "compiled"

enum plim_preloaded {
    PLIM_PRELOAD_VIRTUAL_GPU, /* for simulated GPUs */
    PLIM_PRELOAD_OBSERVER,    /* for real GPUs */
};

struct plim_workspace {
    char library[PATH_MAX]; /* path of the library to preload, without blanks and colons */
    char folder[64];        /* the folders of trials are created in it; "": it was not created */
    const char *logs;       /* the folder for the trials' logs: the caller's string, or `folder` */
    int keeper;             /* a descriptor: once all copies of it are closed, `folder` is removed; -1: none */
    pid_t keeper_pid;
};

/* Finds the library, near the executable in a build and under lib when installed, and creates the folder. Also creates
 * `logs`, if not NULL, with its parent folders; these are kept. PLIM_UNSUPPORTED: the library was not found. The caller
 * finishes the workspace in any case. */
enum plim_status plim_workspace_create(struct plim_workspace *workspace,
                                       enum plim_preloaded preloaded, const char *logs,
                                       struct plim_error *err) PLIM_MUST_CHECK;
void plim_workspace_finish(struct plim_workspace *workspace); /* NULL is allowed */

#endif
