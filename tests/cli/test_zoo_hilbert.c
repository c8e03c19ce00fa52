/* The recording of 000-hilbert-ssm in workloads/zoo beside what the program was measured to take. */
#include "zoo_cases.h"

#define HILBERT "hilbert-ssm.plim", "000-hilbert-ssm"

/* 000: a share of the vectors is a length here, and what its cases call `store` is no checkpointing. */
#define AS_RECORDED " --axis checkpoint=yes --axis share=bidirectional"
static const struct {
    const char *ratio;
    int length;
} shares[] = {{"0.2", 300000}, {"0.15", 225000}, {"0.1", 150000}};

/* The case of a point of a tune: `kind` of its combination and length. */
static void name_case(json_t *point, const char *kind, char id[128])
{
    const char *precision = json_text_at(point, "sizes.precision"), *width = json_text_at(point, "sizes.d_model");
    bool checkpoints = !strcmp(json_text_at(point, "sizes.checkpoint"), "yes");
    int share = 0;
    while (shares[share].length != json_int_at(point, "seq")) share++;
    if (!strcmp(precision, "fp32")) precision = "32-true";
    if (!strcmp(precision, "fp16-mixed")) precision = "16-mixed";
    snprintf(id, 128, "%s/%s/%s/ratio%s/%s", width, precision, checkpoints ? "checkpoint" : "store",
             shares[share].ratio, kind);
}

/* All that is recorded with one way of sharing weights. Of four samples without checkpointing nothing was measured. */
static const struct {
    const char *kind, *options;
    int samples;
    size_t points;
} batches[] = {
    {"b1", "--batch 1", 1, 42}, {"b2", "--batch 2", 2, 42}, {"b4", "--batch 4 --axis checkpoint=yes", 4, 21}};

/* Looks at every point of every batch on a GPU of so much memory. */
static void look_at_points(const char *memory, void (*look)(size_t b, json_t *point))
{
    for (size_t b = 0; b < sizeof(batches) / sizeof(batches[0]); b++) {
        char line[256];
        snprintf(line, sizeof(line),
                 "--overhead 0 --device sim:RTX-3090,memory=%s,placement=ascending --accumulation 2 %s --axis "
                 "share=bidirectional",
                 memory, batches[b].options);
        struct program p = ask("tune", "hilbert-ssm.plim", line);
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        json_t *root = program_json(&p), *points = json_object_get(root, "points"), *point;
        size_t i;
        cr_expect(eq(sz, json_array_size(points), batches[b].points));
        json_array_foreach(points, i, point) look(b, point);
        json_decref(root);
        program_finish(&p);
    }
}

static void takes_what_was_measured(size_t b, json_t *point)
{
    char id[128];
    name_case(point, batches[b].kind, id);
    const struct measured row = {HILBERT, id, ""};
    cr_expect(eq(i64, json_int_at(point, "peak.reserved_bytes"), measured_bytes(&row)), "%s", id);
}

Test(zoo_hilbert, each_batch_of_samples_one_by_one_takes_what_it_was_measured_to_take)
{
    look_at_points("1TiB", takes_what_was_measured);
}

/* The largest batches that were found on a GPU of 44,900 MiB. */
static void fits_where_it_was_found_to_fit(size_t b, json_t *point)
{
    char id[128];
    name_case(point, "fit", id);
    json_t *c = case_of("000-hilbert-ssm", id);
    bool fits = json_int_at(c, "fit.largest_batch") >= batches[b].samples;
    cr_expect(eq(int, json_object_get(point, "micro_batch") != NULL, fits), "%s of %d", id, batches[b].samples);
    json_decref(c);
}

Test(zoo_hilbert, each_batch_of_samples_fits_where_it_was_found_to_fit)
{
    look_at_points("44900MiB", fits_where_it_was_found_to_fit);
}

/* Several micro-steps are recorded as one that comes first and one that comes again. */
Test(zoo_hilbert, more_micro_steps_take_what_was_measured)
{
    static const char *const cases[][2] = {{"knob/accumulation-4", "--batch 1 --accumulation 4"},
                                           {"knob/accumulation-8", "--batch 1 --accumulation 8"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[256];
        const struct measured row = {HILBERT, cases[i][0], ""};
        snprintf(line, sizeof(line),
                 "--overhead 0 --device sim:RTX-3090,memory=1TiB,placement=ascending %s --seq 300000 --precision fp32 "
                 "--axis d_model=256" AS_RECORDED,
                 cases[i][1]);
        struct program p = ask("explain", "hilbert-ssm.plim", line);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), measured_bytes(&row)), "%s: %s", row.id, p.err);
        json_decref(root);
        program_finish(&p);
    }
}

/* What is shared of the weights changes next to nothing, as was measured. */
Test(zoo_hilbert, weights_that_are_shared_take_what_was_measured)
{
    static const char *const ids[][2] = {{"knob/share-true", "all"}, {"knob/share-none", "none"}};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        char line[256];
        const struct measured row = {HILBERT, ids[i][0], ""};
        snprintf(line, sizeof(line),
                 "--overhead 0 --device sim:RTX-3090,memory=1TiB,placement=ascending --batch 2 --accumulation 2 --seq "
                 "225000 "
                 "--precision bf16-mixed --axis d_model=192 --axis share=%s",
                 ids[i][1]);
        struct program p = ask("explain", "hilbert-ssm.plim", line);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), measured_bytes(&row)), "%s: %s", ids[i][0], p.err);
        json_decref(root);
        program_finish(&p);
    }
}

/* Its owners' waterfall, on an L40S: two samples at once need none of it; for four the precision, then the length, then
 * the width. */
Test(zoo_hilbert, the_waterfall_stops_at_the_first_that_fits)
{
    static const struct {
        const char *options, *precision, *width;
        int length;
    } falls[] = {{"--batch 2 --seq 300000,225000,150000", "fp32", "256", 300000},
                 {"--batch 4 --seq 300000,225000,150000", "bf16-mixed", "256", 150000},
                 {"--batch 4 --seq 300000,225000", "bf16-mixed", "192", 225000}};
    for (size_t i = 0; i < sizeof(falls) / sizeof(falls[0]); i++) {
        char line[512];
        snprintf(line, sizeof(line),
                 "--device sim:L40S --accumulation 1 --precision fp32,bf16-mixed --axis d_model=256,192 "
                 "--waterfall precision,seq,d_model" AS_RECORDED " %s", falls[i].options);
        struct program p = ask("tune", "hilbert-ssm.plim", line);
        cr_assert(eq(int, p.exit_code, 0), "%s", p.err);
        json_t *root = program_json(&p);
        cr_expect(eq(str, (char *)json_text_at(root, "choice.sizes.precision"), (char *)falls[i].precision), "%s",
                  falls[i].options);
        cr_expect(eq(str, (char *)json_text_at(root, "choice.sizes.d_model"), (char *)falls[i].width), "%s",
                  falls[i].options);
        cr_expect(eq(i64, json_int_at(root, "choice.seq"), falls[i].length), "%s", falls[i].options);
        json_decref(root);
        program_finish(&p);
    }
}

/* 187,500 vectors were never recorded. What steps.py took there under exec, with 2 samples and 2 micro-steps. */
Test(zoo_hilbert, between_recorded_lengths_it_takes_what_a_trial_takes)
{
    static const json_int_t tried = 25945964544;
    struct program p = ask(
        "explain", "hilbert-ssm.plim",
        "--overhead 0 --device sim:RTX-3090,memory=1TiB,placement=ascending --batch 2 --accumulation 2 --seq 187500 "
        "--precision fp32 --axis d_model=256" AS_RECORDED);
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "peak.reserved_bytes"), tried), "%s", p.err);
    json_decref(root);
    program_finish(&p);
}
