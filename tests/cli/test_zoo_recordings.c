/* The recordings of workloads/zoo beside what their programs were measured to take
 * (tests/virtual/programs/seeds): without PyTorch, in milliseconds. */
#include "zoo_cases.h"

#define AUTOENCODER "multimodal-autoencoder.plim", "004-multimodal-autoencoder"
#define SPARSE_ATTENTION "gsa-512m.plim", "002-gsa"
#define VIDEO "video-llm.plim", "001-video-llm"
#define FRAMES(count, rest) "qwen3-1.7b/frozen/bfloat16/ckpt/amp-float16/f" #count "/" rest
#define FRAMES_OF(count) " --axis max_frames=" #count
#define EMBEDDER "naics-embedder.plim", "003-naics-embedder"
#define NEGATIVES_24 " --axis negatives=24 --axis positives=1"
#define NEGATIVES_8 " --axis negatives=8 --axis positives=1"
#define ALL_POSITIVES " --axis negatives=24 --axis positives=32"
#define ALL_OF_FEW " --axis negatives=8 --axis positives=16"
#define EMBEDDED(rest) "all-minilm-l6-v2/16-mixed/ckpt/e4r8/" rest

#define EXPANDABLE "--alloc-conf expandable_segments:True"

static const struct measured measured[] = {
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
    {VIDEO, FRAMES(100, "b4/x2/sm86"), "--batch 4 --accumulation 2" FRAMES_OF(100)},
    {VIDEO, FRAMES(100, "b4/x8/sm86"), "--batch 4 --accumulation 8" FRAMES_OF(100)},
    {VIDEO, FRAMES(50, "b16/x2/sm86"), "--batch 16 --accumulation 2" FRAMES_OF(50)},
    {VIDEO, FRAMES(200, "b16/x2/sm86"), "--batch 16 --accumulation 2" FRAMES_OF(200)},
    {VIDEO, FRAMES(100, "b4/x1/sm86"), "--batch 4 --accumulation 1" FRAMES_OF(100)},
    {VIDEO, FRAMES(100, "b8/x2/sm86"), "--batch 8 --accumulation 2" FRAMES_OF(100)},
    {VIDEO, FRAMES(100, "b16/x2/sm86"), "--batch 16 --accumulation 2" FRAMES_OF(100)},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1024/b4", "--batch 4 --seq 1024 --accumulation 2"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1024/b8", "--batch 8 --seq 1024 --accumulation 2"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1536/b4", "--batch 4 --seq 1536 --accumulation 2"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s1536/b8", "--batch 8 --seq 1536 --accumulation 2"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s2048/b4", "--batch 4 --seq 2048 --accumulation 2"},
    {SPARSE_ATTENTION, "518m/mask/checkpoint/s2048/b8", "--batch 8 --seq 2048 --accumulation 2"},
    {EMBEDDER, EMBEDDED("l192/p32n24/b8/x2/sm75"), "--batch 8 --seq 192" NEGATIVES_24},
    {EMBEDDER, EMBEDDED("l192/p32n24/b128/x2/sm75"), "--batch 128 --seq 192" NEGATIVES_24},
    {EMBEDDER, EMBEDDED("l512/p32n24/b128/x2/sm80"), "--batch 128 --seq 512" NEGATIVES_24},
    {EMBEDDER, EMBEDDED("l192/p16n8/b8/x2/sm75"), "--batch 8 --seq 192" NEGATIVES_8},
    {EMBEDDER, EMBEDDED("l128/p16n8/b45/x2/sm75"), "--batch 45 --seq 128" NEGATIVES_8},
    {EMBEDDER, EMBEDDED("l512/p16n8/b128/x2/sm80"), "--batch 128 --seq 512" NEGATIVES_8},
    {EMBEDDER, EMBEDDED("l192/p32n24all/b8/x2/sm75"), "--batch 8 --seq 192" ALL_POSITIVES},
    {EMBEDDER, EMBEDDED("l192/p32n24all/b45/x2/sm75"), "--batch 45 --seq 192" ALL_POSITIVES},
    {EMBEDDER, EMBEDDED("l192/p16n8all/b8/x2/sm75"), "--batch 8 --seq 192" ALL_OF_FEW},
    {EMBEDDER, EMBEDDED("l192/p16n8all/b45/x2/sm75"), "--batch 45 --seq 192" ALL_OF_FEW},
};

Test(zoo_recordings, take_what_their_programs_were_measured_to_take)
{
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        char options[512];
        snprintf(options, sizeof(options), "--overhead 0 --device sim:RTX-3090,memory=1TiB,placement=ascending %s",
                 measured[i].options);
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
    static const struct measured largest[] = {
        {VIDEO, FRAMES(100, "fit/RTX-3060-8GB|RTX-3070"), "--accumulation 2" FRAMES_OF(100)},
        {VIDEO, FRAMES(50, "fit/RTX-3090-24GB"), "--accumulation 2" FRAMES_OF(50)},
        {VIDEO, FRAMES(200, "fit/RTX-4080-16GB"), "--accumulation 2" FRAMES_OF(200)},
        {VIDEO, FRAMES(100, "fit/RTX-4080-16GB"), "--accumulation 2" FRAMES_OF(100)},
        {VIDEO, FRAMES(100, "fit/RTX-3090-24GB"), "--accumulation 2" FRAMES_OF(100)},
        {VIDEO, FRAMES(100, "fit/RTX-3060-8GB|RTX-3070/expandable_segments:True"),
         "--accumulation 2 " EXPANDABLE FRAMES_OF(100)},
        {VIDEO, FRAMES(100, "fit/RTX-3090-24GB/expandable_segments:True"),
         "--accumulation 2 " EXPANDABLE FRAMES_OF(100)},
        {SPARSE_ATTENTION, "518m/mask/checkpoint/s1024/fit", "--seq 1024 --accumulation 2"},
        {SPARSE_ATTENTION, "518m/mask/checkpoint/s1536/fit", "--seq 1536 --accumulation 2"},
        {SPARSE_ATTENTION, "518m/mask/checkpoint/s2048/fit", "--seq 2048 --accumulation 2"},
        {SPARSE_ATTENTION, "518m/mask/checkpoint/s1024/expandable/fit", "--seq 1024 --accumulation 2 " EXPANDABLE},
        {SPARSE_ATTENTION, "518m/mask/checkpoint/s1536/expandable/fit", "--seq 1536 --accumulation 2 " EXPANDABLE},
        {SPARSE_ATTENTION, "518m/mask/checkpoint/s2048/expandable/fit", "--seq 2048 --accumulation 2 " EXPANDABLE},
        {EMBEDDER, EMBEDDED("l512/p32n24/fit/Quadro-RTX-6000-24GB"), "--seq 512" NEGATIVES_24},
        {EMBEDDER, EMBEDDED("l512/p32n24/fit/V100-32GB"), "--seq 512" NEGATIVES_24},
        {EMBEDDER, EMBEDDED("l512/p32n24/fit/A100-40GB"), "--seq 512" NEGATIVES_24},
        {EMBEDDER, EMBEDDED("l512/p32n24/fit/A100-80GB"), "--seq 512" NEGATIVES_24},
        {EMBEDDER, EMBEDDED("l192/p32n24/fit/A100-80GB"), "--seq 192" NEGATIVES_24},
        {EMBEDDER, EMBEDDED("l512/p16n8/fit/Quadro-RTX-6000-24GB"), "--seq 512" NEGATIVES_8},
        {EMBEDDER, EMBEDDED("l192/p16n8/fit/A100-40GB"), "--seq 192" NEGATIVES_8},
        {EMBEDDER, EMBEDDED("l192/p32n24all/fit/Quadro-RTX-6000-24GB"), "--seq 192" ALL_POSITIVES},
        {EMBEDDER, EMBEDDED("l192/p32n24all/fit/V100-32GB"), "--seq 192" ALL_POSITIVES},
        {EMBEDDER, EMBEDDED("l192/p32n24all/fit/A100-40GB"), "--seq 192" ALL_POSITIVES},
        {EMBEDDER, EMBEDDED("l192/p32n24all/fit/A100-80GB"), "--seq 192" ALL_POSITIVES},
    };
    for (size_t i = 0; i < sizeof(largest) / sizeof(largest[0]); i++) {
        const struct measured *row = &largest[i];
        char options[256];
        json_t *c = case_of(row->cases, row->id);
        snprintf(options, sizeof(options),
                 "--overhead 0 --objective largest-batch --device sim:RTX-3090,memory=%lld,placement=ascending %s",
                 (long long)json_int_at(c, "fit.capacity_bytes"), row->options);
        struct program p = ask("tune", row->recording, options);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), json_int_at(c, "fit.largest_batch")),
                  "%s", row->id);
        json_decref(root);
        json_decref(c);
        program_finish(&p);
    }
}

/* Its owners' batches at 512 tokens: each needs as much as was measured, and that is more than its GPU has. */
Test(zoo_recordings, the_planned_batches_of_the_embedder_do_not_fit)
{
    static const struct {
        const char *gpu, *id;
        int batch;
    } planned[] = {{"Quadro-RTX-6000", EMBEDDED("l512/p32n24/b45/x2/sm75"), 45},
                   {"V100-SXM2-32GB", EMBEDDED("l512/p32n24/b64/x2/sm80"), 64},
                   {"A100-SXM4-40GB", EMBEDDED("l512/p32n24/b82/x2/sm80"), 82},
                   {"A100-SXM4-80GB", EMBEDDED("l512/p32n24/b128/x2/sm80"), 128}};
    for (size_t i = 0; i < sizeof(planned) / sizeof(planned[0]); i++) {
        const struct measured row = {EMBEDDER, planned[i].id, ""};
        char options[256];
        snprintf(options, sizeof(options),
                 "--overhead 512MiB --device sim:%s,placement=ascending --batch %d --seq 512" NEGATIVES_24,
                 planned[i].gpu, planned[i].batch);
        struct program p = ask("explain", row.recording, options);
        json_t *root = program_json(&p);
        const json_int_t needed = json_int_at(root, "peak.reserved_bytes");
        cr_expect(eq(int, p.exit_code, 1), "%s", planned[i].gpu);
        cr_expect(strstr(p.out, "known only at the recorded batches") == NULL, "no block's bytes are");
        cr_expect(eq(i64, needed, measured_bytes(&row)), "%s", planned[i].gpu);
        cr_expect(eq(i64, json_int_at(root, "short_bytes"), needed - json_int_at(root, "limit.budget_bytes")),
                  "%s", planned[i].gpu);
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

/* 4 samples at once: vectors are given up until they fit, and with 1 x 4 none has to be. */
Test(zoo_recordings, vectors_are_given_up_before_a_batch_is)
{
    static const struct {
        const char *options;
        json_int_t batch, accumulation, vectors;
    } asked[] = {{"--batch 4 --accumulation 1", 4, 1, 150000},
                 {"--batch 2 --effective-batch 4", 2, 2, 300000},
                 {"--effective-batch 4 --objective largest-batch", 2, 2, 300000}};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        char options[256];
        snprintf(options, sizeof(options),
                 "--device sim:L40S --precision fp32 --axis d_model=256 --seq 300000,225000,150000 --waterfall seq %s",
                 asked[i].options);
        struct program p = ask("tune", "hilbert-ssm.plim", options);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), asked[i].batch), "%s", p.out);
        cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), asked[i].accumulation));
        cr_expect(eq(i64, json_int_at(root, "choice.seq"), asked[i].vectors));
        json_decref(root);
        program_finish(&p);
    }
    struct program p = ask("explain", "hilbert-ssm.plim", "--device sim:L40S --batch 3");
    cr_expect(eq(int, p.exit_code, 2));
    cr_expect(strstr(p.err, "alone were recorded: 1, 2, 4; exec") != NULL, "%s", p.err);
    program_finish(&p);
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
        cr_expect(lt(dbl, 0, json_number_value(json_at(root, "choice.samples_per_second"))));
        json_decref(root);
        program_finish(&p);
    }
}

/* 518 million parameters in fp32, as many gradients as the buckets of DDP hold, and Adam's states: that is known
 * of the model. The rest is what the recording says. */
Test(zoo_recordings, what_blocks_are_for_is_inferred)
{
    char command[512], *path = program_file("inferred.json", "");
    snprintf(command, sizeof(command),
             "explain " PLIM_ZOO_FOLDER "/gsa-512m.plim --device sim:A40 --batch 4 --seq 1024 --out %s --json --quiet",
             path);
    struct program p = program_run(command);
    json_t *root = program_json(&p);
    int64_t parameters = json_int_at(root, "breakdown.parameters_bytes");
    cr_expect(json_true_at(root, "breakdown.inferred"));
    cr_expect(json_at(root, "breakdown.logits_bytes") == NULL, "what is not known is no 0");
    cr_expect(epsilon_eq(dbl, (double)parameters, 4 * 518e6, 4 * 1e6));
    cr_expect(epsilon_eq(dbl, (double)json_int_at(root, "breakdown.optimizer_bytes"), 2.0 * (double)parameters,
                         0.03 * (double)parameters));
    int64_t sum = 0;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(root, "breakdown"), key, value) sum += json_integer_value(value);
    cr_expect(eq(i64, sum, json_int_at(root, "peak.device_bytes")));
    json_decref(root);
    program_finish(&p);
    snprintf(command, sizeof(command), "report %s", path);
    p = program_run(command);
    cr_expect(strstr(p.out, "by how long blocks live") != NULL, "%s", p.out);
    program_finish(&p);
    program_file_remove(path);
}

/* Four answers to one question, as workloads/zoo/README.md has them: the less stays free, the larger the batch. */
Test(zoo_recordings, tiers_are_answered_together)
{
    static const struct {
        const char *name;
        json_int_t batch;
    } tiers[] = {{"safe", 12}, {"medium", 14}, {"aggressive", 15}, {"max", 16}};
    struct program p = program_run(
        "tune " PLIM_ZOO_FOLDER "/gsa-512m.plim --device sim:A40 --tiers --seq 1024 --accumulation 2 --json --quiet");
    json_t *root = program_json(&p), *results = json_at(root, "results");
    cr_assert(eq(sz, json_array_size(results), 4), "%s", p.out);
    for (size_t i = 0; i < 4; i++) {
        json_t *r = json_array_get(results, i);
        json_expect_text(r, "tier", tiers[i].name);
        cr_expect(eq(i64, json_int_at(r, "choice.micro_batch"), tiers[i].batch), "%s", tiers[i].name);
        cr_expect(le(i64, json_int_at(r, "choice.peak.device_bytes"),
                     json_int_at(r, "limit.usable_bytes") - json_int_at(r, "limit.margin_bytes")),
                  "%s", tiers[i].name);
    }
    json_decref(root);
    program_finish(&p);
}

/* 256 samples by four GPUs: 7 x 9 x 4 is what fits at 2048 tokens within 2 %, and the difference is told. */
Test(zoo_recordings, an_effective_batch_of_several_gpus_is_met_or_told)
{
    struct program p = program_run(
        "tune " PLIM_ZOO_FOLDER "/gsa-512m.plim --device sim:A40 --world 4 --effective-batch 256 "
        "--effective-batch-tolerance 2% --seq 2048 --json --quiet");
    json_t *root = program_json(&p);
    cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), 7), "%s", p.out);
    cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), 9));
    cr_expect(eq(i64, json_int_at(root, "choice.effective_batch"), 252));
    cr_expect(strstr(p.out, "252 instead of 256") != NULL, "%s", p.out);
    cr_expect(strstr(p.out, "each GPU does and holds what the recorded one did") != NULL, "%s", p.out);
    json_decref(root);
    program_finish(&p);
}

/* What a profile asks for it gets: no other has a higher rate, or needs less memory. */
static void expect_profiles(const char *asked)
{
    static const char *const profiles[] = {"max-memory", "balanced", "max-speed"};
    double rates[3];
    json_int_t bytes[3];
    for (size_t i = 0; i < 3; i++) {
        char line[512];
        snprintf(line, sizeof(line), "tune " PLIM_ZOO_FOLDER "/%s --profile %s --json --quiet", asked, profiles[i]);
        struct program p = program_run(line);
        json_t *root = program_json(&p);
        rates[i] = json_number_value(json_at(root, "choice.samples_per_second"));
        bytes[i] = json_int_at(root, "choice.peak.device_bytes");
        json_decref(root);
        program_finish(&p);
    }
    cr_expect(lt(i64, bytes[0], bytes[1]), "%s", asked);
    cr_expect(le(i64, bytes[1], bytes[2]), "%s", asked);
    cr_expect(lt(dbl, rates[0], rates[1]), "%s", asked);
    cr_expect(le(dbl, rates[1], rates[2]), "%s", asked);
}

Test(zoo_recordings, profiles_are_best_at_what_they_are_for)
{
    expect_profiles("gsa-512m.plim --device sim:A40 --seq 1024 --accumulation 2");
    expect_profiles("video-llm.plim --device sim:RTX-3090 --effective-batch 32" FRAMES_OF(100));
}

/* 4 x 8 = 32 clips, as its owners have them: on 8 GB too, and on larger GPUs larger batches make the same. */
Test(zoo_recordings, thirty_two_clips_a_step_are_kept)
{
    static const struct {
        const char *options;
        json_int_t batch, accumulation;
    } asked[] = {{"--device sim:RTX-3070 --batch 4", 4, 8},
                 {"--device sim:RTX-3070 --objective largest-batch", 4, 8},
                 {"--device sim:RTX-4080 --objective largest-batch", 16, 2}};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        char options[256];
        snprintf(options, sizeof(options), "--overhead 320MiB --effective-batch 32" FRAMES_OF(100) " %s",
                 asked[i].options);
        struct program p = ask("tune", "video-llm.plim", options);
        json_t *root = program_json(&p);
        cr_expect(eq(i64, json_int_at(root, "choice.micro_batch"), asked[i].batch), "%s", p.out);
        cr_expect(eq(i64, json_int_at(root, "choice.accumulation"), asked[i].accumulation));
        cr_expect(eq(i64, json_int_at(root, "choice.effective_batch"), 32));
        json_decref(root);
        program_finish(&p);
    }
}

/* Many GPUs share what is played of a recording, and each has the answer that it has alone: of other speed
 * and compute capability, and where what was reserved on another does not fit, but what was needed does. */
static void expect_same_alone(const char *asked, const char *const *devices, size_t count)
{
    char options[512];
    int length = snprintf(options, sizeof(options), "%s", asked);
    for (size_t i = 0; i < count; i++)
        length += snprintf(options + length, sizeof(options) - (size_t)length, " --device %s", devices[i]);
    struct program all = ask("plan", "gsa-512m.plim", options);
    json_t *together = program_json(&all);
    for (size_t i = 0; i < count; i++) {
        char path[64];
        snprintf(options, sizeof(options), "%s --device %s", asked, devices[i]);
        snprintf(path, sizeof(path), "results.%zu.choice", i);
        struct program one = ask("plan", "gsa-512m.plim", options);
        json_t *alone = program_json(&one);
        cr_expect(json_equal(json_at(alone, "choice"), json_at(together, path)), "%s, %s: %s", asked,
                  devices[i], all.out);
        json_decref(alone);
        program_finish(&one);
    }
    json_decref(together);
    program_finish(&all);
}

Test(zoo_recordings, gpus_together_have_the_answers_that_each_has_alone)
{
    static const char *const devices[] = {"sim:A100-SXM4-80GB", "sim:H100-SXM5-80GB", "sim:RTX-4090",
                                          "sim:A100-SXM4-80GB,memory=18GiB"};
    expect_same_alone("--seq 1024 --accumulation 2 --batch 4", devices, 4);
    expect_same_alone("--seq 1024 --accumulation 2", devices, 3);
}

/* Of a class of GPUs one plays and the others take over what it played, each for itself between runs of its own. */
Test(zoo_recordings, every_gpu_of_the_catalogue_answers)
{
    static const char *const recordings[] = {"gsa-512m.plim", "video-llm.plim", "multimodal-autoencoder.plim"};
    for (size_t i = 0; i < sizeof(recordings) / sizeof(recordings[0]); i++) {
        struct program p = ask("plan", recordings[i], "--device all");
        json_t *root = program_json(&p);
        cr_expect(json_array_size(json_at(root, "results")) > 30, "%s: %s", recordings[i], p.err);
        json_decref(root);
        program_finish(&p);
    }
}
