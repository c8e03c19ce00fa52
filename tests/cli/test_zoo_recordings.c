/* The recordings of workloads/zoo beside what their programs were measured to take
 * (tests/virtual/programs/seeds): without PyTorch, in milliseconds. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTOENCODER "multimodal-autoencoder.plim", "004-multimodal-autoencoder"

/* Rows of a system's cases.jsonl, and the options of plimsoll that ask for the same. */
static const struct measured {
    const char *recording, *cases, *id, *options;
} measured[] = {
    {AUTOENCODER, "one GPU/--precision fp32", "--batch 64 --precision fp32 --axis optimizer=adam"},
    {AUTOENCODER, "one GPU/--precision fp32 --optimizer adam-fused",
     "--batch 64 --precision fp32 --axis optimizer=adam-fused"},
    {AUTOENCODER, "one GPU/--precision bf16-mixed",
     "--batch 64 --precision bf16-mixed --axis optimizer=adam"},
    {AUTOENCODER, "one GPU/--precision bf16", "--batch 64 --precision bf16 --axis optimizer=adam"},
    {AUTOENCODER, "one GPU/--precision bf16 --optimizer adam-fp32-states",
     "--batch 64 --precision bf16 --axis optimizer=adam-fp32-states"},
    {AUTOENCODER, "one GPU/--precision bf16 --optimizer adam-fused",
     "--batch 64 --precision bf16 --axis optimizer=adam-fused"},
    {AUTOENCODER, "batch/--precision fp32 --batch 32", "--batch 32 --precision fp32 --axis optimizer=adam"},
    {AUTOENCODER, "batch/--precision bf16 --batch 16", "--batch 16 --precision bf16 --axis optimizer=adam"},
};

/* What the last of the measured steps reserved. The test fails where there is no such row. */
static json_int_t measured_bytes(const struct measured *row)
{
    char path[512], *line = NULL;
    size_t room = 0;
    json_int_t bytes = 0;
    snprintf(path, sizeof(path), "%s/%s/cases.jsonl", PLIM_SEEDS_FOLDER, row->cases);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s", path);
    while (!bytes && getline(&line, &room, file) > 0) {
        json_t *c = json_loads(line, 0, NULL), *steps = json_object_get(c, "steps");
        const char *id = json_string_value(json_object_get(c, "id"));
        if (id && !strcmp(id, row->id))
            bytes = json_int_at(json_array_get(steps, json_array_size(steps) - 1), "peak_reserved");
        json_decref(c);
    }
    free(line);
    fclose(file);
    cr_assert(bytes > 0, "%s: no %s", path, row->id);
    return bytes;
}

static struct program ask(const char *verb, const char *recording, const char *options)
{
    char line[1024];
    snprintf(line, sizeof(line), "%s %s/%s --margin 0 --json --quiet %s", verb, PLIM_ZOO_FOLDER,
             recording, options);
    return program_run(line);
}

Test(zoo_recordings, take_what_their_programs_were_measured_to_take)
{
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        char options[512];
        snprintf(options, sizeof(options), "--overhead 0 --device sim:RTX-3090,memory=1TiB %s", measured[i].options);
        struct program p = ask("explain", measured[i].recording, options);
        cr_assert(eq(int, p.exit_code, 0), "%s: %s", measured[i].id, p.err);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), measured_bytes(&measured[i])), "%s",
                  measured[i].id);
        json_decref(root);
        program_finish(&p);
    }
}

/* 47.4 GiB: of each setting the cases say that no batch fits. */
Test(zoo_recordings, what_fitted_at_no_batch_fits_at_none)
{
    static const char *const settings[] = {
        "--precision fp32 --axis optimizer=adam-fused", "--precision bf16 --axis optimizer=adam",
        "--precision bf16 --axis optimizer=adam-fused",
        "--precision bf16 --axis optimizer=adam-fp32-states"};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        char options[256];
        snprintf(options, sizeof(options), "--overhead 0 --device sim:RTX-3090,memory=50895362457 %s",
                 settings[i]);
        struct program p = ask("tune", "multimodal-autoencoder.plim", options);
        json_t *root = program_json(&p);
        cr_expect(json_null_at(root, "choice"), "%s", settings[i]);
        json_decref(root);
        program_finish(&p);
    }
}

/* The precision is given up in its order until it fits; with more memory nothing has to be. */
Test(zoo_recordings, a_waterfall_stops_at_the_first_that_fits)
{
    static const char *const cases[][2] = {{"128GiB", "bf16"}, {"1TiB", "fp32"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char options[256];
        snprintf(options, sizeof(options),
                 "--device sim:H200-SXM-141GB,memory=%s --batch 64 --axis optimizer=adam "
                 "--precision fp32,bf16-mixed,bf16 --waterfall precision",
                 cases[i][0]);
        struct program p = ask("tune", "multimodal-autoencoder.plim", options);
        json_t *root = program_json(&p);
        json_expect_text(root, "choice.sizes.precision", cases[i][1]);
        json_decref(root);
        program_finish(&p);
    }
}
