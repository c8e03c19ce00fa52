/* flash-attention-2's package: what it computes, and which devices it is refused on. What it allocates is
 * in tests/golden/flash2.jsonl. */
#include "devices/host/host.h"
#include "devices/needs/needs_attention.h"
#include "devices/sim/sim.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct plim_train_setting flash2 = {.micro_batch = 2,
                                                 .seq = 48,
                                                 .accumulation = 1,
                                                 .precision = PLIM_PRECISION_BF16_MIXED,
                                                 .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
                                                 .attention = PLIM_ATTENTION_FLASH2};

static struct plim_replay ours, theirs;
static FILE *trace; /* of the next replays; NULL: none */

/* A llama with heads of `head_dim` and `more` keys. */
static void replay(struct plim_device *device, const char *family, int head_dim, const char *more,
                   const struct plim_train_setting *setting, struct plim_replay *out)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    char model[512];
    snprintf(model, sizeof model,
             "model: {family: %s, vocab_size: 100, hidden_size: 64, intermediate_size: 96, "
             "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, head_dim: %d%s}\n",
             family, head_dim, more);
    cr_assert_eq(plim_spec_load_text("model.yaml", model, &spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    if (trace) plim_replayer_trace(replayer, trace);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, setting, out, &err), PLIM_OK, "%s",
                 err.text);
    plim_replayer_destroy(&replayer);
}

static void expect_refusal(struct plim_device *device, const char *family, int head_dim,
                           const char *more, const char *reason)
{
    replay(device, family, head_dim, more, &flash2, &ours);
    cr_expect_eq(ours.verdict, PLIM_UNSUPPORTED);
    cr_expect_not_null(strstr(ours.why, reason), "%s", ours.why);
}

static struct plim_device *open_sim(const char *name)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    cr_assert_eq(plim_sim_open(name, &device, &err), PLIM_OK, "%s", err.text);
    return device;
}

static struct plim_device *open_host(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
    return device;
}

/* Heads of 16 as they are, heads of 12 padded and cut inside the call; four query heads on two keys. */
Test(flash2, computes_what_sdpa_does)
{
    struct plim_device *host = open_host();
    struct plim_train_setting sdpa = flash2;
    sdpa.attention = PLIM_ATTENTION_SDPA;
    for (int head_dim = 12; head_dim <= 16; head_dim += 4) {
        replay(host, "llama", head_dim, "", &flash2, &ours);
        replay(host, "llama", head_dim, "", &sdpa, &theirs);
        cr_assert_eq(ours.verdict, PLIM_OK, "%s", ours.why);
        for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
            cr_expect_float_eq(ours.step[i].loss, theirs.step[i].loss, 1e-3);
        cr_expect_lt(ours.step[3].loss, ours.step[0].loss - 0.01);
    }
    plim_device_close(&host);
}

/* Each of two images in a row attends to itself; their lengths are arguments of the kernel. */
Test(flash2, images_attend_to_themselves)
{
    struct plim_device *host = open_host();
    const char *tower = ", vision_depth: 2, vision_hidden_size: 32, vision_num_heads: 2, vision_intermediate_size: 48, "
                        "vision_out_hidden_size: 64, vision_patch_size: 2, vision_num_position_embeddings: 25, "
                        "vision_deepstack_visual_indexes: [0]";
    struct plim_train_setting by_ends = flash2, sdpa;
    by_ends.images = (struct plim_images){.count = 2, .height = 8, .width = 12};
    sdpa = by_ends;
    sdpa.attention = PLIM_ATTENTION_SDPA;
    replay(host, "qwen3_vl", 16, tower, &by_ends, &ours);
    replay(host, "qwen3_vl", 16, tower, &sdpa, &theirs);
    cr_assert_eq(ours.verdict, PLIM_OK, "%s", ours.why);
    cr_assert_eq(theirs.verdict, PLIM_OK, "%s", theirs.why);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) cr_expect_float_eq(ours.step[i].loss, theirs.step[i].loss, 2e-4);
    plim_device_close(&host);
}

Test(flash2, wants_compute_capability_8)
{
    struct plim_device *t4 = open_sim("T4"), *a10 = open_sim("A10");
    expect_refusal(t4, "llama", 64, "", "compute capability 8.0");
    replay(a10, "llama", 64, "", &flash2, &ours);
    cr_expect_eq(ours.verdict, PLIM_OK, "%s", ours.why);
    plim_device_close(&a10);
    plim_device_close(&t4);
}

/* Backward of large heads needs more shared memory than a GPU of 8.6 has, without dropout up to 224. */
Test(flash2, large_heads_want_shared_memory)
{
    static const struct {
        const char *gpu, *more;
        int head_dim;
        enum plim_status verdict;
    } rows[] = {{"A10", "", 192, PLIM_OK},
                {"A10", "", 200, PLIM_UNSUPPORTED},
                {"A10", "", 256, PLIM_OK},
                {"A10", ", attention_dropout: 0.1", 256, PLIM_UNSUPPORTED},
                {"A100-SXM4-80GB", ", attention_dropout: 0.1", 256, PLIM_OK}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plim_device *gpu = open_sim(rows[i].gpu);
        replay(gpu, "llama", rows[i].head_dim, rows[i].more, &flash2, &ours);
        cr_expect_eq(ours.verdict, rows[i].verdict, "row %zu: %s", i, ours.why);
        plim_device_close(&gpu);
    }
}

/* More documents are shorter ones, and of one row the backward's sums have room for 128 more of each. */
Test(flash2, documents_of_one_row_take_room_and_save_time)
{
    struct plim_device *a100 = open_sim("A100-SXM4-80GB");
    struct plim_train_setting setting = flash2;
    setting.seq = 4096;
    setting.packing = PLIM_PACKING_ONE_ROW;
    setting.documents = 1;
    replay(a100, "llama", 64, "", &setting, &theirs);
    setting.documents = 64;
    replay(a100, "llama", 64, "", &setting, &ours);
    cr_expect_eq(ours.verdict, PLIM_OK, "%s", ours.why);
    cr_expect_gt(ours.step[3].peak_allocated_bytes, theirs.step[3].peak_allocated_bytes);
    cr_expect_lt(ours.running_seconds[PLIM_DEVICE_ATTENTION], theirs.running_seconds[PLIM_DEVICE_ATTENTION] / 2);
    plim_device_close(&a100);
}

/* A job and its twin that differs in what the kernels have to know. */
struct pair {
    const char *family, *more, *other_more;
    struct plim_train_setting setting, other_setting;
};

/* The same steps by the kernels and by what masks and caps say to composed operations; closer to one another than to
 * those of the twin. */
static void expect_same_losses(const struct pair *p, enum plim_attention composed)
{
    enum { LAST = PLIM_REPLAY_STEPS - 1 };
    struct plim_device *host = open_host();
    struct plim_train_setting same = p->setting;
    same.attention = composed;
    replay(host, p->family, 16, p->more, &p->setting, &ours);
    replay(host, p->family, 16, p->more, &same, &theirs);
    cr_assert_eq(ours.verdict, PLIM_OK, "%s", ours.why);
    cr_assert_eq(theirs.verdict, PLIM_OK, "%s", theirs.why);
    for (int i = 0; i <= LAST; i++) cr_expect_float_eq(ours.step[i].loss, theirs.step[i].loss, 1e-3);
    double distance = fabs(ours.step[LAST].loss - theirs.step[LAST].loss);
    replay(host, p->family, 16, p->other_more, &p->other_setting, &theirs);
    cr_expect_gt(fabs(ours.step[LAST].loss - theirs.step[LAST].loss), 2 * distance, "the twins are alike");
    plim_device_close(&host);
}

Test(flash2, windows_and_softcapping)
{
    const struct pair windows = {"mistral", ", sliding_window: 5", ", sliding_window: 32", flash2, flash2},
                      caps = {"gemma2", ", sliding_window: 9, attn_logit_softcapping: 0.02",
                              ", sliding_window: 9, attn_logit_softcapping: null", flash2, flash2};
    expect_same_losses(&windows, PLIM_ATTENTION_SDPA);
    expect_same_losses(&caps, PLIM_ATTENTION_EAGER);
}

/* A batch that is padded to its longest row hides something of two rows, and of one it does not. */
Test(flash2, one_row_is_its_own_longest)
{
    struct plim_device *a100 = open_sim("A100-SXM4-80GB");
    for (int64_t rows = 1; rows <= 2; rows++) {
        struct plim_train_setting longest = flash2, yes;
        longest.micro_batch = rows;
        longest.padding = PLIM_PADDING_LONGEST;
        yes = longest;
        yes.padding = PLIM_PADDING_YES;
        replay(a100, "llama", 16, "", &longest, &ours);
        replay(a100, "llama", 16, "", &yes, &theirs);
        bool is_alike = ours.step[1].peak_requested_bytes == theirs.step[1].peak_requested_bytes;
        cr_expect_eq(is_alike, rows == 2, "%lld rows", (long long)rows);
    }
    plim_device_close(&a100);
}

/* With rows of different lengths it is another function, on tokens that were picked out. */
Test(flash2, padded_rows)
{
    struct pair padded = {"llama", "", "", flash2, flash2};
    padded.setting.padding = PLIM_PADDING_YES;
    expect_same_losses(&padded, PLIM_ATTENTION_SDPA);
}

/* Five of 17 tokens and one of 15; documents of 3, of 2 and of 1; of 1 alone: Trainer's labels leave the first of each
 * out. TRL's collator says where they end, positions say it to the others. */
Test(flash2, documents_of_one_row)
{
    static const enum plim_loop loops[] = {PLIM_LOOP_PLAIN, PLIM_LOOP_TRAINER, PLIM_LOOP_TRL_SFT};
    static const int lengths[][2] = {{50, 3}, {9, 4}, {7, 7}};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            struct pair packed = {"llama", "", "", flash2, flash2};
            if (n == 2 && loops[i] != PLIM_LOOP_PLAIN) continue; /* nothing is a label */
            packed.setting.loop = loops[i];
            packed.setting.seq = lengths[n][0];
            packed.setting.packing = PLIM_PACKING_ONE_ROW;
            packed.setting.documents = lengths[n][1];
            packed.other_setting = packed.setting;
            packed.other_setting.documents = 2;
            expect_same_losses(&packed, PLIM_ATTENTION_SDPA);
        }
}

/* Packed rows do not attend to each other: by the simulated clock attention takes no longer. */
Test(flash2, rows_behind_one_another_are_timed_apart)
{
    struct plim_device *a100 = open_sim("A100-SXM4-80GB");
    struct plim_train_setting padded = flash2;
    padded.micro_batch = 8;
    padded.seq = 1024;
    replay(a100, "llama", 64, "", &padded, &theirs);
    padded.padding = PLIM_PADDING_YES;
    replay(a100, "llama", 64, "", &padded, &ours);
    cr_expect_float_eq(ours.running_seconds[PLIM_DEVICE_ATTENTION] / theirs.running_seconds[PLIM_DEVICE_ATTENTION], 1,
                       0.01);
    plim_device_close(&a100);
}

/* No random state in addition to its own, and no copies of a gradient or result whose heads come first. */
Test(flash2, asks_for_less_than_pytorchs_call)
{
    static const struct plim_attention_shape shape = {.batch = 2,
                                                      .heads = 4,
                                                      .kv_heads = 2,
                                                      .q_length = 128,
                                                      .k_length = 128,
                                                      .head_size = 64,
                                                      .dtype = PLIM_BF16,
                                                      .causal = true,
                                                      .dropout = true,
                                                      .training = true,
                                                      .grad_heads_first = true};
    static const enum plim_attention_role forward[] = {PLIM_NEED_OUT, PLIM_NEED_LSE, PLIM_NEED_RNG},
                                          backward[] = {PLIM_NEED_DQ, PLIM_NEED_DK, PLIM_NEED_DV};
    struct plim_device *a100 = open_sim("A100-SXM4-80GB");
    struct plim_attention_need need[PLIM_SDPA_MAX_NEEDS];
    cr_assert_eq(plim_attention_forward_needs(&a100->info, PLIM_SDPA_FLASH2, &shape, need), 3);
    for (int i = 0; i < 3; i++) cr_expect_eq(need[i].role, forward[i]);
    cr_assert_eq(plim_attention_backward_needs(&a100->info, PLIM_SDPA_FLASH2, &shape, need), 7);
    for (int i = 0; i < 3; i++) cr_expect_eq(need[i].role, backward[i]);
    plim_device_close(&a100);
}

static int allocations_at(struct plim_device *device, int64_t batch)
{
    struct plim_train_setting setting = flash2;
    char line[64];
    int count = 0;
    setting.micro_batch = batch;
    trace = tmpfile();
    cr_assert_not_null(trace);
    replay(device, "llama", 64, "", &setting, &ours);
    rewind(trace);
    while (fgets(line, sizeof line, trace)) count += line[0] == 'a';
    fclose(trace);
    return count;
}

/* transformers asks whether a single row holds several documents: a difference, its absolute value, their
 * sum and the answer, in each of 2 layers and 4 steps. */
Test(flash2, one_row_alone_is_asked_about)
{
    struct plim_device *a100 = open_sim("A100-SXM4-80GB");
    cr_expect_eq(allocations_at(a100, 1) - allocations_at(a100, 2), 4 * 2 * 4);
    plim_device_close(&a100);
}
