/* What the user asked for on the command line, checked as far as an option can be on its own. */
#ifndef PLIM_AUTOTUNE_CLI_REQUEST_H
#define PLIM_AUTOTUNE_CLI_REQUEST_H

#include "autotune/exec/program.h"
#include "autotune/run/allowance.h"
#include "autotune/search/objective.h"

enum { PLIM_REQUEST_DEVICES = 64, PLIM_REQUEST_SETTINGS = 64, PLIM_REQUEST_FILES = 16, PLIM_REQUEST_AXES = 8 };

/* One `--set KEY=VALUE`, or an option that stands for a key of the spec. */
struct plim_request_setting {
    const char *option;  /* as typed, for messages: "--precision" */
    char key[96];
    const char *value;
};

/* What only exec asks for. Texts and the command belong to argv. */
struct plim_request_program {
    char *const *command; /* ends with NULL; NULL: not given */
    const char *batch, *seq; /* axes as typed; NULL: not given */
    size_t axis_count, variable_count, file_count;
    const char *axes[PLIM_REQUEST_AXES];           /* NAME=LIST */
    const char *variables[PLIM_PROGRAM_VARIABLES]; /* NAME=VALUE */
    const char *files[PLIM_PROGRAM_FILES];         /* TEMPLATE=PATH */
    int64_t gpus, jobs, steps, repetitions;        /* 0: not given */
    double run_seconds, limit_seconds;             /* 0: not given */
    const char *logs; /* a folder that stays; NULL: none */
    bool dry_run, observe;
};

/* Texts belong to argv. */
struct plim_request {
    const char *subject;  /* SPEC or FILE; NULL: not given */
    size_t device_count;
    const char *devices[PLIM_REQUEST_DEVICES];
    size_t setting_count;
    struct plim_request_setting settings[PLIM_REQUEST_SETTINGS];
    size_t file_count;
    const char *files[PLIM_REQUEST_FILES]; /* --out */
    const char *trace; /* --trace; NULL: none */
    struct plim_allowance allowance;
    enum plim_objective objective;
    double budget_seconds; /* 0: none */
    bool json, quiet, no_color, help;
    struct plim_request_program program;
};

#endif
