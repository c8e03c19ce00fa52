/* Rows with images: what is trained of the tower, and that memory may end at any request. What they allocate is in
 * tests/golden/vision.jsonl. */
#include "devices/sim/sim.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

static const char small[] = "model: {family: qwen3_vl, vocab_size: 999, hidden_size: 64, intermediate_size: 96,\n"
                            "        num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 1,\n"
                            "        head_dim: 32,\n"
                            "        vision_depth: 2, vision_hidden_size: 64, vision_num_heads: 2,\n"
                            "        vision_intermediate_size: 96, vision_out_hidden_size: 64,\n"
                            "        vision_deepstack_visual_indexes: [0]}\n"
                            "data: {seq: 800}\n";
static const char windows[] = "model: {family: qwen2_5_vl, vocab_size: 999, hidden_size: 64, intermediate_size: 96,\n"
                              "        num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 1,\n"
                              "        rope_parameters: {rope_type: default, mrope_section: [4, 6, 6]},\n"
                              "        vision_depth: 2, vision_hidden_size: 64, vision_num_heads: 2,\n"
                              "        vision_patch_size: 16, vision_intermediate_size: 96,\n"
                              "        vision_out_hidden_size: 64,\n"
                              "        vision_fullatt_block_indexes: [0]}\n"
                              "data: {seq: 800}\n";
static const char towers[] = "model: {family: gemma4, vocab_size: 999, hidden_size: 64, intermediate_size: 96,\n"
                             "        num_hidden_layers: 4, num_attention_heads: 2, num_key_value_heads: 1,\n"
                             "        head_dim: 32, global_head_dim: 64, num_kv_shared_layers: 1,\n"
                             "        sliding_window: 64,\n"
                             "        layer_types: [sliding_attention, full_attention, full_attention,\n"
                             "                      full_attention],\n"
                             "        hidden_size_per_layer_input: 16, vocab_size_per_layer_input: 999,\n"
                             "        vision_hidden_size: 64, vision_num_hidden_layers: 2,\n"
                             "        vision_intermediate_size: 96,\n"
                             "        vision_num_attention_heads: 2, vision_num_key_value_heads: 1,\n"
                             "        vision_use_clipped_linears: true, vision_standardize: true,\n"
                             "        audio_num_hidden_layers: 2, audio_hidden_size: 64, audio_output_proj_dims: 64}\n"
                             "data: {seq: 800}\n";
#define WHOLE_IMAGES(family) \
    "model: {family: " family ", vocab_size: 999, hidden_size: 64, intermediate_size: 96,\n" \
    "        num_hidden_layers: 2, num_attention_heads: 2, num_key_value_heads: 1,\n" \
    "        vision_hidden_size: 64, vision_num_hidden_layers: 2, vision_num_attention_heads: 2,\n" \
    "        vision_intermediate_size: 96, vision_image_size: 256, vision_patch_size: 16}\n" \
    "data: {seq: 800}\n"
static const char *model = small;
static const struct plim_train_setting plain = {.micro_batch = 3,
                                                .seq = 800,
                                                .accumulation = 1,
                                                .precision = PLIM_PRECISION_BF16_MIXED,
                                                .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
                                                .images = {.count = 2, .height = 512, .width = 512}};

static struct plim_replay result;

static void replay(const char *gpu, const struct plim_train_setting *setting)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_spec spec;
    struct plim_device *device;
    struct plim_replayer *replayer;
    cr_assert(eq(int, plim_spec_load_text("small.yaml", model, &spec, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_sim_open(gpu, &device, &err), PLIM_OK), "%s", err.text);
    cr_assert(eq(int, plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK), "%s", err.text);
    enum plim_status st = plim_replay_run(replayer, &spec.model, setting, &result, &err);
    cr_assert(eq(int, st, PLIM_OK), "%s: %s", gpu, err.text);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

/* GPUs of `step` MiB, of twice that and so on */
static void end_memory_anywhere(int step)
{
    int failed = 0, fitted = 0;
    for (int mebibytes = step; mebibytes < 128 * step; mebibytes += step) {
        char gpu[64];
        snprintf(gpu, sizeof(gpu), "A100-SXM4-80GB,memory=%dMiB", mebibytes);
        replay(gpu, &plain);
        cr_expect(result.verdict == PLIM_OK || result.verdict == PLIM_OOM, "%s: %s", gpu, result.why);
        *(result.verdict == PLIM_OK ? &fitted : &failed) += 1;
    }
    cr_expect(failed > 20 && fitted > 1, "%d fail, %d fit", failed, fitted);
}

Test(vision, memory_may_end_anywhere)
{
    end_memory_anywhere(8);
}

Test(vision, memory_may_end_anywhere_among_windows)
{
    model = windows;
    end_memory_anywhere(8);
}

/* llava's images are of one size, internvl's four tiles of it and one more. */
Test(vision, memory_may_end_anywhere_among_whole_images)
{
    static const char *const models[] = {WHOLE_IMAGES("llava"), WHOLE_IMAGES("internvl")};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        model = models[i];
        end_memory_anywhere(2);
    }
}

/* The same by ZeRO 3, with Liger and adapters beside a projector that is trained in full, and by flash-attention-2 */
Test(vision, memory_may_end_anywhere_among_whole_images_by_other_ways)
{
    struct plim_train_setting ways[3] = {plain, plain, plain};
    static const char *const models[] = {WHOLE_IMAGES("llava"), WHOLE_IMAGES("internvl")};
    ways[0].sharding = PLIM_SHARDING_ZERO3, ways[0].loop = PLIM_LOOP_TRAINER, ways[0].world = 2;
    ways[1].liger = true, ways[1].lora = (struct plim_lora){.r = 4, .targets = "q_proj",
                                                            .saved = "multi_modal_projector"};
    ways[2].attention = PLIM_ATTENTION_FLASH2, ways[2].weights = PLIM_WEIGHTS_BF16;
    for (size_t i = 0; i < 6; i++) {
        int failed = 0, fitted = 0;
        model = models[i / 3];
        for (int mebibytes = 4; mebibytes < 8192; mebibytes += mebibytes / 12 + 4) {
            char gpu[64];
            snprintf(gpu, sizeof(gpu), "A100-SXM4-80GB,memory=%dMiB", mebibytes);
            replay(gpu, &ways[i % 3]);
            cr_expect(result.verdict == PLIM_OK || result.verdict == PLIM_OOM, "%zu, %s: %s", i, gpu, result.why);
            *(result.verdict == PLIM_OK ? &fitted : &failed) += 1;
        }
        cr_expect(failed > 5 && fitted > 1, "%zu: %d fail, %d fit", i, failed, fitted);
    }
}

/* The same of what is quantised, of flash-attention-2, of Liger, and of what is sharded. */
Test(vision, memory_may_end_anywhere_by_other_ways)
{
    struct plim_train_setting ways[4] = {plain, plain, plain, plain};
    ways[0].quantization = (struct plim_quantization){.type = PLIM_QUANTIZATION_NF4, .prepared = true};
    ways[0].attention = PLIM_ATTENTION_FLASH2;
    ways[0].weights = PLIM_WEIGHTS_BF16;
    ways[1].liger = true;
    ways[2].sharding = PLIM_SHARDING_ZERO3;
    ways[3].sharding = PLIM_SHARDING_FSDP;
    for (int i = 0; i < 4; i++) {
        int failed = 0, fitted = 0;
        if (i > 1) ways[i].loop = PLIM_LOOP_TRAINER, ways[i].world = 2;
        for (int mebibytes = 8; mebibytes < 8192; mebibytes += mebibytes / 16 + 8) {
            char gpu[64];
            snprintf(gpu, sizeof(gpu), "A100-SXM4-80GB,memory=%dMiB", mebibytes);
            replay(gpu, &ways[i]);
            cr_expect(result.verdict == PLIM_OK || result.verdict == PLIM_OOM, "%d, %s: %s", i, gpu, result.why);
            *(result.verdict == PLIM_OK ? &fitted : &failed) += 1;
        }
        cr_expect(failed > 5 && fitted > 1, "%d: %d fail, %d fit", i, failed, fitted);
    }
}

/* Towers around the text, beside rows of text: made there, moved, loaded in 4 bits with all linears adapted. */
Test(vision, memory_may_end_anywhere_among_towers)
{
    struct plim_train_setting ways[3] = {plain, plain, plain};
    model = towers;
    ways[1].made_on = PLIM_MADE_ON_HOST;
    ways[2].quantization = (struct plim_quantization){.type = PLIM_QUANTIZATION_NF4, .prepared = true};
    ways[2].weights = PLIM_WEIGHTS_BF16;
    ways[2].lora = (struct plim_lora){.r = 4, .targets = "q_proj,linear,input_proj,output_proj",
                                      .exclude = "re:.*_tower\\..*\\.(q|k|v|o|gate|up|down)_proj"};
    for (int i = 0; i < 3; i++) {
        int failed = 0, fitted = 0;
        ways[i].images = (struct plim_images){0};
        for (int mebibytes = 2; mebibytes < 300; mebibytes += 2) {
            char gpu[64];
            snprintf(gpu, sizeof(gpu), "A100-SXM4-80GB,memory=%dMiB", mebibytes);
            replay(gpu, &ways[i]);
            cr_expect(result.verdict == PLIM_OK || result.verdict == PLIM_OOM, "%d, %s: %s", i, gpu, result.why);
            *(result.verdict == PLIM_OK ? &fitted : &failed) += 1;
        }
        cr_expect(failed > 20 && fitted > 1, "%d: %d fail, %d fit", i, failed, fitted);
    }
}

Test(vision, a_frozen_tower_keeps_nothing)
{
    struct plim_train_setting setting = plain;
    replay("A100-SXM4-80GB", &setting);
    struct plim_replay trained = result;
    setting.freeze_vision = true;
    replay("A100-SXM4-80GB", &setting);
    cr_expect(eq(i64, result.parameters, trained.parameters));
    cr_expect(lt(i64, result.trainable_parameters, trained.trainable_parameters));
    cr_expect(lt(i64, result.step[3].after_forward_bytes, trained.step[3].after_forward_bytes));
    cr_expect(lt(dbl, result.step[3].seconds, trained.step[3].seconds));
}

Test(vision, a_row_has_room_for_its_images)
{
    struct plim_train_setting setting = plain;
    setting.seq = 518; /* two of 256 tokens, four before them and two between them, and two behind them are 520 */
    replay("A100-SXM4-80GB", &setting);
    cr_expect(eq(int, result.verdict, PLIM_UNSUPPORTED));
    setting.seq = 520;
    replay("A100-SXM4-80GB", &setting);
    cr_expect(eq(int, result.verdict, PLIM_OK), "%s", result.why);
}
