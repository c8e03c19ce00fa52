/* The recordings of workloads/zoo beside what their programs were measured to take
 * (tests/virtual/programs/seeds): without PyTorch, in milliseconds. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTOENCODER "multimodal-autoencoder.plim", "004-multimodal-autoencoder"
#define SPARSE_ATTENTION "gsa-512m.plim", "002-gsa"

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
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1024/b4", "--batch 4 --seq 1024"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1024/b8", "--batch 8 --seq 1024"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1536/b4", "--batch 4 --seq 1536"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1536/b8", "--batch 8 --seq 1536"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s2048/b4", "--batch 4 --seq 2048"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s2048/b8", "--batch 8 --seq 2048"},
};

/* The row of this name, which the caller decrefs. The test fails where there is none. */
static json_t *case_of(const char *cases, const char *id)
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
static json_int_t measured_bytes(const struct measured *row)
{
    json_t *c = case_of(row->cases, row->id), *steps = json_object_get(c, "steps");
    json_int_t bytes = json_int_at(json_array_get(steps, json_array_size(steps) - 1), "peak_reserved");
    json_decref(c);
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

/* Of batches that were not recorded the largest that fits, with either kind of segments. */
Test(zoo_recordings, the_largest_batch_is_the_measured_one)
{
    static const char *const cases[][2] = {
        {"518m/mask/checkpoint/s1024/fit", "--seq 1024"},
        {"518m/mask/checkpoint/s1536/fit", "--seq 1536"},
        {"518m/mask/checkpoint/s2048/fit", "--seq 2048"},
        {"518m/mask/checkpoint/s1024/expandable/fit", "--seq 1024 --alloc-conf expandable_segments:True"},
        {"518m/mask/checkpoint/s1536/expandable/fit", "--seq 1536 --alloc-conf expandable_segments:True"},
        {"518m/mask/checkpoint/s2048/expandable/fit", "--seq 2048 --alloc-conf expandable_segments:True"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char options[256];
        json_t *c = case_of("002-gsa", cases[i][0]);
        snprintf(options, sizeof(options),
                 "--overhead 0 --objective largest-batch --device sim:RTX-3090,memory=%lld %s",
                 (long long)json_int_at(c, "fit.capacity_bytes"), cases[i][1]);
        struct program p = ask("tune", "gsa-512m.plim", options);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), json_int_at(c, "fit.largest_batch")),
                  "%s", cases[i][0]);
        json_decref(root);
        json_decref(c);
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
        cr_expect(json_at(root, "choice.tokens_per_second") == NULL, "of samples without a length");
        cr_expect(gt(dbl, json_number_value(json_at(root, "choice.samples_per_second")), 0));
        json_decref(root);
        program_finish(&p);
    }
}
