/* What the programs of tests/virtual/programs/seeds were measured to take, and what plimsoll says of their recordings
 * in workloads/zoo. */
#ifndef PLIM_TESTS_CLI_ZOO_CASES_H
#define PLIM_TESTS_CLI_ZOO_CASES_H

#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

/* A row of a system's cases.jsonl, and the options of plimsoll that ask for the same. */
struct measured {
    const char *recording, *cases, *id, *options;
};

/* The row of this name, which the caller decrefs. The test fails where there is none. */
json_t *case_of(const char *cases, const char *id);

/* What the last of the measured steps reserved. */
json_int_t measured_bytes(const struct measured *row);

/* `verb` of a recording of workloads/zoo, as JSON and without a margin. */
struct program ask(const char *verb, const char *recording, const char *options);

#endif
