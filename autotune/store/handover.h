/* An answer as variables for the script that starts the training. */
#ifndef PLIM_AUTOTUNE_STORE_HANDOVER_H
#define PLIM_AUTOTUNE_STORE_HANDOVER_H

#include "reports/result.h"

enum plim_handover_format {
    PLIM_HANDOVER_SH,     /* export NAME=value: for eval in a shell */
    PLIM_HANDOVER_FISH,   /* set -gx NAME value */
    PLIM_HANDOVER_JSON,   /* one object; numbers as numbers */
    PLIM_HANDOVER_DOTENV, /* NAME=value; quoted only where it has to be */
    PLIM_HANDOVER_ARGS,   /* --micro-batch 8 ...: words of a command line, quoted for a shell */
    PLIM_HANDOVER_TASK_PROLOG, /* Slurm's protocol: export NAME=value, without quoting */
    PLIM_HANDOVER_FORMATS
};

/* The names on the command line, in the order of the enum. */
extern const char *const plim_handover_formats[PLIM_HANDOVER_FORMATS];

struct plim_handover {
    enum plim_handover_format format;
    const struct plim_result_choice *choice;
    bool measured; /* else simulated */
    bool stale;
    /* "micro_batch=MICRO_BATCH_SIZE": another name for a value, besides the usual one; in the format ARGS
     * only values named here are written. */
    const char *const *names;
    size_t name_count;
};

/* PLIM_INVALID: a name does not match a value of the choice, or is not valid in the format; `err` has the known
 * ones. With a NULL choice, before a search, only the syntax is
 * checked. */
enum plim_status plim_handover_check(const struct plim_handover *handover,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* The whole text, malloc'd. Unknown values are left out. PLIM_INVALID as above. */
enum plim_status plim_handover_write(const struct plim_handover *handover, char **text,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
