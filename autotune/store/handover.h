/* Writes an answer as variables or options for the script that starts the training. */
#ifndef PLIM_AUTOTUNE_STORE_HANDOVER_H
#define PLIM_AUTOTUNE_STORE_HANDOVER_H

#include "reports/result.h"

enum plim_handover_format {
    PLIM_HANDOVER_SH,     /* export NAME=value, for eval in a shell */
    PLIM_HANDOVER_FISH,   /* set -gx NAME value */
    PLIM_HANDOVER_JSON,   /* an object; numbers as numbers */
    PLIM_HANDOVER_DOTENV, /* NAME=value, quoted only if necessary */
    PLIM_HANDOVER_ARGS,   /* --micro-batch 8 ...: options of a command line, quoted for a shell */
    PLIM_HANDOVER_TASK_PROLOG, /* Slurm's protocol: export NAME=value, without quoting */
    PLIM_HANDOVER_FORMATS
};

/* The names of the formats on the command line, indexed by the enum. */
extern const char *const plim_handover_formats[PLIM_HANDOVER_FORMATS];

struct plim_handover {
    enum plim_handover_format format;
    const struct plim_result_choice *choice;
    bool measured; /* otherwise simulated */
    bool stale;
    /* "micro_batch=MICRO_BATCH_SIZE": an additional name for a value. In the format ARGS, if there are any, only these
     * are written. */
    const char *const *names;
    size_t name_count;
};

/* Checks the names. PLIM_INVALID: there is no such value of the choice, or a name is not valid in the format; `err`
 * lists the known values. If `choice` is NULL, before a search, only the syntax is checked. */
enum plim_status plim_handover_check(const struct plim_handover *handover,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Writes the text, which the caller frees. Unknown values are omitted. PLIM_INVALID as above. */
enum plim_status plim_handover_write(const struct plim_handover *handover, char **text,
                                     struct plim_error *err) PLIM_MUST_CHECK;

#endif
