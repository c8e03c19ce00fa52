/* The moment of launch: a store of its own, a folder, and pretended GPUs (A100-SXM4-80GB) with libraries
 * that are only names. */
#ifndef PLIM_TESTS_CLI_LAUNCH_H
#define PLIM_TESTS_CLI_LAUNCH_H

#include "program.h"
#include <stdbool.h>

#define ASK "env gpt2-124m --effective-batch 64 "
#define TRAINER "-- " PLIM_TRAINER " {batch} states=0"
#define EXEC                                                                                       \
    "--device sim:T4,memory=2GiB --margin 0 --overhead 0 --batch 1:64 --effective-batch 64 "

void launch_set_up(void);
void launch_tear_down(void);

void launch_set(const char *name, const char *value); /* a variable of the environment */
const char *launch_path(const char *name);            /* below the folder; four of them stay */
struct program launch_run(const char *arguments, int exit_code);
bool launch_has(const char *text, const char *part);

/* What an answer that was measured would leave: "SPEC EFFECTIVE_BATCH MICRO_BATCH [fits|fast]". */
void launch_keep(const char *arguments);

/* Runs it; `out` and `err` are parts of what it prints, "" of nothing on stderr. */
void launch_expect_env(const char *arguments, const char *out, const char *err);

#endif
