/* The known training frameworks: rows of frameworks.yaml, which describes every field.
 *
 * Sizes: micro M (samples that one GPU processes at once), accumulation A (micro-steps per optimizer step), dp D
 * (data-parallel GPUs). A framework has one or several of
 *     micro M, accumulation A, global M*A*D, step M*A, total M*D, rounds A*D. */
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

/* The sizes to be written. */
struct plim_config_sizes {
    int64_t micro, accumulation;
    int64_t dp, seq; /* 0: unknown, or not to be written */
};

enum { PLIM_CONFIG_LIST = 32, PLIM_CONFIG_NEEDS = 6 };

struct plim_yaml_node;

/* Lists are terminated by NULL. */
struct plim_config_framework {
    const char *name, *title;
    const char *aka[PLIM_CONFIG_LIST];
    const char
        *marks[PLIM_CONFIG_LIST]; /* patterns that must all match; | separates alternatives */
    const char *formats[PLIM_CONFIG_LIST]; /* formats that the file may have; empty: any */
    const char *roles[PLIM_CONFIG_ROLE_COUNT][PLIM_CONFIG_LIST]; /* patterns, best first */
    unsigned needs[PLIM_CONFIG_NEEDS];       /* sets of roles (bit masks) each of which determines all sizes; terminated
                                              * by 0 */
    const char *tokens[PLIM_CONFIG_LIST];    /* keys of sizes in tokens or frames instead of samples */
    const char *by_epoch[PLIM_CONFIG_LIST];  /* keys of an accumulation by epoch */
    const char *schedules[PLIM_CONFIG_LIST]; /* keys that change the sizes during training */
    const char *dp[PLIM_CONFIG_LIST], *devices[PLIM_CONFIG_LIST], *nodes[PLIM_CONFIG_LIST],
        *parallel[PLIM_CONFIG_LIST];
    const char *multiple_of[PLIM_CONFIG_LIST]; /* numbers that must divide M*A*D */
    const char *with_accumulation[PLIM_CONFIG_LIST]; /* multiples of A, scaled with it; replace A in multiple_of */
    const char *rates[PLIM_CONFIG_LIST];       /* learning rates */
    const char *outputs[PLIM_CONFIG_LIST];     /* folders for checkpoints */
    const char *single[PLIM_CONFIG_LIST];      /* if one is set, the trainer refuses accumulation */
    const char *repeats[PLIM_CONFIG_LIST];     /* samples per unit of the global batch */
    const char *checkpointed[PLIM_CONFIG_LIST]; /* if one is true, activations are checkpointed without a switch */
    const char *outside; /* where the sizes belong instead: "the script's arguments"; NULL: here */
    const char *arguments; /* how an override is written: "{path}={value}"; NULL: unknown */
    const char *no_accumulation; /* why it cannot accumulate; NULL: it can */
    const char *warning;         /* warning for its users; NULL: none */
    bool hydra;                  /* its command line is Hydra's */
    bool upper;                  /* its marks are in upper case */
    bool numbers;                /* its parser needs numbers, never "4" in quotes */
    bool lists;                  /* its accumulation is a list with one number per phase */
    bool only;                   /* no keys except its marks may be present */
    bool guess;                  /* only names of keys are known, so none is added */
    const struct plim_yaml_node *terms, *emits; /* for emission.h; NULL: none */
    const struct plim_yaml_node *switches;      /* for write_switches.c; NULL: none */
};

/* Returns all rows, which are read once; the last ones match anything. PLIM_INTERNAL if the table is damaged. */
enum plim_status plim_config_frameworks(const struct plim_config_framework **rows, size_t *count,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Returns patterns that apply to every framework: schedules, output folders, learning rates. */
const struct plim_config_framework *plim_config_common(void);

/* Finds a framework by a name as people write it ("LLaMA Factory"). PLIM_INVALID; the message has the nearest names. */
enum plim_status plim_config_framework_find(const char *name,
                                            const struct plim_config_framework **out,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the value of a role for these sizes; 0 if it needs `dp`, which is unknown. */
int64_t plim_config_role_value(enum plim_config_role role, const struct plim_config_sizes *sizes);

const char *plim_config_role_name(enum plim_config_role role);

struct plim_result_setting;

/* Returns a term by name, from the framework or the common terms; NULL if there is none. */
const struct plim_yaml_node *plim_config_term(const struct plim_config_framework *framework,
                                              const char *name);

/* Returns the word of a term for a setting; NULL if the term has no word for its value, or the setting has no such
 * value. */
const char *plim_config_word(const struct plim_yaml_node *term,
                             const struct plim_result_setting *setting);

/* Reports a damaged field of the table: PLIM_INTERNAL with its line. */
enum plim_status plim_config_framework_damaged(const struct plim_yaml_node *node,
                                               struct plim_error *err, const char *what);

#endif
