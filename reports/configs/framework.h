/* The known training frameworks: rows of frameworks.yaml, which describes every field.
 *
 * Sizes: micro M (samples of one GPU at once), accumulation A (micro-steps of an optimizer step),
 * dp D (data-parallel GPUs). A framework counts one or several of
 *   micro M, accumulation A, global M*A*D, step M*A, total M*D, rounds A*D.
 */
#ifndef PLIM_REPORTS_CONFIGS_FRAMEWORK_H
#define PLIM_REPORTS_CONFIGS_FRAMEWORK_H

#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLIM_CONFIG_ROLE_MAP(X)                                                                    \
    X(MICRO, micro)                                                                                \
    X(ACCUMULATION, accumulation)                                                                  \
    X(GLOBAL, global)                                                                              \
    X(STEP, step)                                                                                  \
    X(TOTAL, total)                                                                                \
    X(ROUNDS, rounds)                                                                              \
    X(SEQ, seq)

enum plim_config_role {
#define PLIM_CONFIG_ROLE_ENUM(id, name) PLIM_CONFIG_##id,
    PLIM_CONFIG_ROLE_MAP(PLIM_CONFIG_ROLE_ENUM)
#undef PLIM_CONFIG_ROLE_ENUM
        PLIM_CONFIG_ROLE_COUNT
};

/* The sizes that are written. */
struct plim_config_sizes {
    int64_t micro, accumulation;
    int64_t dp, seq; /* 0: not known, not asked */
};

enum { PLIM_CONFIG_LIST = 32, PLIM_CONFIG_NEEDS = 6 };

struct plim_yaml_node;

/* NULL ends a list. */
struct plim_config_framework {
    const char *name, *title;
    const char *aka[PLIM_CONFIG_LIST];
    const char
        *marks[PLIM_CONFIG_LIST]; /* patterns that all have to match, | between alternatives */
    const char *formats[PLIM_CONFIG_LIST]; /* formats that the file may have; none: any */
    const char *roles[PLIM_CONFIG_ROLE_COUNT][PLIM_CONFIG_LIST]; /* patterns, the best first */
    unsigned needs[PLIM_CONFIG_NEEDS];       /* sets of roles (bits) that determine all sizes; 0 ends */
    const char *tokens[PLIM_CONFIG_LIST];    /* sizes in tokens or frames instead of samples */
    const char *by_epoch[PLIM_CONFIG_LIST];  /* an accumulation by epoch */
    const char *schedules[PLIM_CONFIG_LIST]; /* keys that change the sizes while training */
    const char *dp[PLIM_CONFIG_LIST], *devices[PLIM_CONFIG_LIST], *nodes[PLIM_CONFIG_LIST],
        *parallel[PLIM_CONFIG_LIST];
    const char *multiple_of[PLIM_CONFIG_LIST]; /* numbers that have to divide M*A*D */
    const char *with_accumulation[PLIM_CONFIG_LIST]; /* multiples of A, scaled with it; replace A in multiple_of */
    const char *rates[PLIM_CONFIG_LIST];       /* learning rates */
    const char *outputs[PLIM_CONFIG_LIST];     /* folders that checkpoints go to */
    const char *single[PLIM_CONFIG_LIST];      /* where one is set, its trainer refuses an accumulation */
    const char *repeats[PLIM_CONFIG_LIST];     /* samples per unit of the global batch */
    const char *checkpointed[PLIM_CONFIG_LIST]; /* where one is true, activations are checkpointed without a switch */
    const char *outside; /* where the sizes belong instead: "the script's arguments"; NULL: here */
    const char *arguments; /* how an override is written: "{path}={value}"; NULL: not known */
    const char *no_accumulation; /* why it cannot accumulate; NULL: it can */
    const char *warning;         /* a warning for its users; NULL: none */
    bool hydra;                  /* its command line is Hydra's */
    bool upper;                  /* its marks are in capitals */
    bool numbers;                /* its reader needs numbers: never "4" in quotes */
    bool lists;                  /* its accumulation is a list with one number for each phase */
    bool only;                   /* no keys but its marks may be there */
    bool guess;                  /* only names are known, so no key is added */
    const struct plim_yaml_node *terms, *emits; /* for emission.h; NULL: none */
    const struct plim_yaml_node *switches;      /* for write_switches.c; NULL: none */
};

/* All rows, read once; the last ones match anything. PLIM_INTERNAL: the table is damaged. */
enum plim_status plim_config_frameworks(const struct plim_config_framework **rows, size_t *count,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Patterns that hold for every framework: schedules, output folders, learning rates. */
const struct plim_config_framework *plim_config_common(void);

/* By a name as people write it ("LLaMA Factory"); PLIM_INVALID with the nearest names. */
enum plim_status plim_config_framework_find(const char *name,
                                            const struct plim_config_framework **out,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* The value of a role for these sizes; 0: it needs `dp`, which is not known. */
int64_t plim_config_role_value(enum plim_config_role role, const struct plim_config_sizes *sizes);

const char *plim_config_role_name(enum plim_config_role role);

struct plim_result_setting;

/* A term by its name, from the framework or from those of all; NULL: there is none. */
const struct plim_yaml_node *plim_config_term(const struct plim_config_framework *framework,
                                              const char *name);

/* The word of a term for a setting. NULL: the term has no word for its value, or the setting has no such value. */
const char *plim_config_word(const struct plim_yaml_node *term,
                             const struct plim_result_setting *setting);

/* A damaged field of the table: PLIM_INTERNAL with its line. */
enum plim_status plim_config_framework_damaged(const struct plim_yaml_node *node,
                                               struct plim_error *err, const char *what);

#endif
