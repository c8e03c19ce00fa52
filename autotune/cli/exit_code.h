/* Exit codes, part of the interface (README, "Exit codes"). */
#ifndef PLIM_AUTOTUNE_CLI_EXIT_CODE_H
#define PLIM_AUTOTUNE_CLI_EXIT_CODE_H

#include "autotune/base/status.h"

#define PLIM_EXIT_MAP(X)                                                                           \
    X(ANSWER, "an answer was found")                                                               \
    X(NOFIT, "nothing fits (the report says why and what would)")                                  \
    X(USAGE, "usage, spec or configuration error")                                                 \
    X(NODEVICE, "no such device, or it cannot be used")                                            \
    X(NOT_BUILT, "built without what was asked for, or it is not in this version")                 \
    X(EARLY, "interrupted or out of time: partial report written")                                 \
    X(INTERNAL, "device lost, or an internal error")                                               \
    X(WOULD_CHANGE, "apply --check: a file would change")

enum plim_exit {
#define PLIM_EXIT_ENUM(name, text) PLIM_EXIT_##name,
    PLIM_EXIT_MAP(PLIM_EXIT_ENUM)
#undef PLIM_EXIT_ENUM
        PLIM_EXIT_COUNT
};

const char *plim_exit_text(enum plim_exit code);
enum plim_exit plim_exit_of(enum plim_status status);

#endif
