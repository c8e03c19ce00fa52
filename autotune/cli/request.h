/* The user's request on the command line. Each option was checked by itself. */
#ifndef PLIM_AUTOTUNE_CLI_REQUEST_H
#define PLIM_AUTOTUNE_CLI_REQUEST_H

#include "autotune/exec/user_program.h"
#include "autotune/run/allowance.h"
#include "autotune/run/profile.h"
#include "autotune/search/objective.h"
#include "reports/writer.h"

enum { PLIM_REQUEST_LIST = 64, PLIM_REQUEST_SETTINGS = 64, PLIM_REQUEST_TEXTS = 4096 };

/* The values of an option that may be repeated. */
struct plim_request_list {
    size_t count;
    const char *items[PLIM_REQUEST_LIST];
};

/* A `--set KEY=VALUE`, or an option that stands for a key of the spec. */
struct plim_request_setting {
    const char *option;  /* as typed, for messages: "--precision" */
    char key[96];
    const char *value;
};

/* Options of exec and record. Strings and the command point into argv. */
struct plim_request_program {
    char *const *command; /* ends with NULL; NULL: not given */
    const char *batch, *seq; /* values as typed; NULL: not given */
    struct plim_request_list axes;          /* NAME=LIST */
    struct plim_request_list variables;     /* NAME=VALUE */
    struct plim_request_list files;         /* TEMPLATE=PATH */
    struct plim_request_list assumes;       /* FILE:LINE=VALUE */
    struct plim_request_list merged;        /* recordings to merge into one */
    int64_t gpus, jobs, steps, repetitions, epoch_steps; /* 0: not given */
    double run_seconds, limit_seconds;      /* 0: not given */
    const char *logs; /* folder for logs; NULL: not given */
    bool dry_run, observe, each_batch;
};

/* Options of the store and of env. */
struct plim_request_store {
    const char *site;                    /* NULL: the default */
    double wait_seconds, oldest_seconds; /* 0: not given */
    bool off, fresh;
    const char *format, *on_miss; /* as typed; NULL: not given */
    struct plim_request_list names; /* VALUE=NAME */
    bool strict, per_rank, explain_miss, task_prolog, root_owned;
};

/* Options of apply and revert. */
struct plim_request_apply {
    struct plim_request_list sets;  /* PATH=NAME */
    int64_t micro_batch, accumulation, seq, dp, tokens; /* 0: not given */
    const char *framework, *select, *format, *tier;     /* NULL: not given */
    bool check, force;
};

/* Options of emit and --emit. */
struct plim_request_emit {
    const char *name; /* --emit; NULL: not given */
    int64_t gpus_per_node; /* 0: not given */
    bool list;
};

/* The request. Strings point into argv or into the request itself, which must not be copied or moved. */
struct plim_request {
    const char *subject; /* SPEC, FILE, COMMAND; NULL: not given */
    const char *model;   /* --model, of a trainer's config; NULL: not given */
    const char *config, *unplanned; /* as in struct plim_result_spec; NULL: the subject is not a trainer's config */
    struct plim_request_list arguments; /* further arguments, for commands that take more than one */
    struct plim_request_list devices;
    size_t setting_count;
    struct plim_request_setting settings[PLIM_REQUEST_SETTINGS];
    struct plim_request_list files; /* --out */
    const char *trace; /* --trace; NULL: none */
    int64_t steps; /* of explain; 0: not given */
    struct plim_allowance allowance;
    enum plim_objective objective;
    bool objective_given;
    const char *waterfall; /* names of axes, as typed; NULL: none */
    const struct plim_profile *profile; /* NULL: none; applied to objective and allowance */
    enum plim_result_order order;
    double budget_seconds; /* time limit; 0: none */
    bool json, quiet, no_color, help, man;
    bool tiers;    /* find an answer for each of plim_tiers, with its margin */
    bool prove;    /* for a recording: prove the plan with its program */
    const char *prove_with; /* for a spec: the command that proves its plan; NULL: none */
    const char *framework_python; /* the Python that measures train.host_speed; NULL: none */
    bool timeline; /* record the allocations of a step */
    bool compare;  /* of report: show each result relative to the first */
    size_t price_count;
    struct plim_price prices[PLIM_REQUEST_LIST]; /* of report: the price of a GPU hour */
    struct plim_request_program program;
    struct plim_request_store store;
    struct plim_request_apply apply;
    struct plim_request_emit emit;
    char texts[PLIM_REQUEST_TEXTS]; /* strings made from parts of arguments */
    size_t texts_used;
};

#endif
