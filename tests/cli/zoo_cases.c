#include "zoo_cases.h"
#include <stdlib.h>

json_t *case_of(const char *cases, const char *id)
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

json_int_t measured_bytes(const struct measured *row)
{
    json_t *c = case_of(row->cases, row->id), *steps = json_object_get(c, "steps");
    json_int_t bytes = json_int_at(json_array_get(steps, json_array_size(steps) - 1), "peak_reserved");
    json_decref(c);
    return bytes;
}

struct program ask(const char *verb, const char *recording, const char *options)
{
    char line[1024];
    snprintf(line, sizeof(line), "%s %s/%s --margin 0 --json --quiet %s", verb, PLIM_ZOO_FOLDER,
             recording, options);
    return program_run(line);
}
