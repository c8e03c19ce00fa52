/* An answer as variables for those who start the training. */
#ifndef PLIM_AUTOTUNE_STORE_HANDOVER_H
#define PLIM_AUTOTUNE_STORE_HANDOVER_H

#include "reports/result.h"

enum plim_handover_format {
    PLIM_HANDOVER_SH,     /* export NAME=value: for eval in a shell */
    PLIM_HANDOVER_FISH,   /* set -gx NAME value */
    PLIM_HANDOVER_JSON,   /* one object; numbers as numbers */
    PLIM_HANDOVER_DOTENV, /* NAME=value; quoted only where it has to be */
    PLIM_HANDOVER_ARGS,   /* --micro-batch 8 ...: words of a command line, quoted for a shell */
    PLIM_HANDOVER_TASK_PROLOG, /* Slurm's protocol: export NAME=value, the value as it is */
    PLIM_HANDOVER_FORMATS
};

/* The names on the command line, in the order of the enum. */
extern const char *const plim_handover_formats[PLIM_HANDOVER_FORMATS];

struct plim_handover {
    enum plim_handover_format format;
    const struct plim_result_choice *choice;
    bool measured; /* else simulated */
    bool stale;
    /* "micro_batch=MICRO_BATCH_SIZE": another name for a value, beside the usual one; as arguments
     * only what is named here is written. */
    const char *const *names;
    size_t name_count;
};

/* PLIM_INVALID: a name is none of a value of the choice, or none that the format takes; the known
 * ones are in `err`. Asked before anything is searched, with a NULL choice, only the form is
 * checked. */
enum plim_status plim_handover_check(const struct plim_handover *handover,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* The whole text, malloc'd. What is not known is left out. PLIM_INVALID as above. */
enum plim_status plim_handover_write(const struct plim_handover *handover, char **text,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
