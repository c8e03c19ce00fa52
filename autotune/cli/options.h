/* The options, as one table: the parser, the help of every verb and the suggestions come from
 * it. */
#ifndef PLIM_AUTOTUNE_CLI_OPTIONS_H
#define PLIM_AUTOTUNE_CLI_OPTIONS_H

#include "request.h"
#include <stdio.h>

/* Which verbs take an option. */
enum plim_verb {
    PLIM_VERB_TUNE = 1,
    PLIM_VERB_PLAN = 2,
    PLIM_VERB_EXPLAIN = 4,
    PLIM_VERB_DEVICES = 8,
    PLIM_VERB_IMPORT = 16,
    PLIM_VERB_EXEC = 32
};

/* Reads argv[0..argc) of a verb, without the program and the verb, into `request`.
 * PLIM_INVALID, with what was expected, for what cannot be understood. Both `--option value`
 * and `--option=value` are taken; "--" ends the options, and for exec the rest is a command. */
enum plim_status plim_options_parse(int argc, char **argv, enum plim_verb verb,
                                    struct plim_request *request,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* The options of a verb, one or two lines each, within 80 columns. */
void plim_options_help(enum plim_verb verb, FILE *out);

#endif
