/* What the programs of tests/virtual/programs/seeds were measured to take, and what plimsoll says of their recordings
 * in workloads/zoo. */
#ifndef PLIM_TESTS_CLI_ZOO_CASES_H
#define PLIM_TESTS_CLI_ZOO_CASES_H

#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row of a system's cases.jsonl, and the options of plimsoll that ask for the same. */
struct measured {
    const char *recording, *cases, *id, *options;
};

/* The row of this name, which the caller decrefs. The test fails where there is none. */
static inline json_t *case_of(const char *cases, const char *id)
{
    char path[512], *line = NULL;
    size_t room = 0;
    json_t *found = NULL;
    snprintf(path, sizeof(path), "%s/%s/cases.jsonl", PLIM_SEEDS_FOLDER, cases);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    while (!found && getline(&line, &room, file) > 0) {
        json_t *c = json_loads(line, 0, NULL);
        const char *name = json_string_value(json_object_get(c, "id"));
        if (name && !strcmp(name, id)) found = c;
        else json_decref(c);
    }
    free(line);
    fclose(file);
    cr_assert(found != NULL, "%s: no %s", path, id);
    return found;
}

/* What the last of the measured steps reserved. */
static inline json_int_t measured_bytes(const struct measured *row)
{
    json_t *c = case_of(row->cases, row->id), *steps = json_object_get(c, "steps");
    json_int_t bytes = json_int_at(json_array_get(steps, json_array_size(steps) - 1), "peak_reserved");
    json_decref(c);
    return bytes;
}

static inline struct program ask(const char *verb, const char *recording, const char *options)
{
    char line[1024];
    snprintf(line, sizeof(line), "%s %s/%s --margin 0 --json --quiet %s", verb, PLIM_ZOO_FOLDER,
             recording, options);
    return program_run(line);
}

#endif
