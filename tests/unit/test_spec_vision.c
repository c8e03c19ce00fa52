/* Vision towers and images in a spec: what they come to, and what is refused. */
#include "support/spec_files.h"
#include "workloads/spec/lora_modules.h"
#include "workloads/spec/spec_vision.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

TestSuite(spec_vision, .fini = spec_files_remove);

#define RUN_IT " (plimsoll exec runs any training program)"

#define TOWER "model: {family: qwen3_vl, vision_out_hidden_size: 4096}\n"

/* A tower whose images are all of one size; most of whose rows have none */
#define POOLED "model: {family: gemma3, vision_image_size: 896, vision_patch_size: 14}\n"

Test(spec_vision, images_fit_into_rows_beside_what_is_known)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"model: {family: llama}\ndata: {images: 1}\n",
         "s.yaml:2:16: data.images is 1, expected none for llama, which has no vision tower"},
        {"model: {family: qwen3_vl}\n", "s.yaml:1:1: vision_out_hidden_size is 3584 and hidden_size 4096, expected "
                                        "the same: image features replace tokens of the text"},
        {TOWER "data: {seq: 261}\n", "s.yaml:2:7: data.seq is 261, expected at least 262: data.images 1 of 256 tokens "
                                     "each, and the text around them"},
        {TOWER "data: {image_height: 64, image_width: 65}\n",
         "s.yaml:2:7: data.image_height is 64 and data.image_width 65, expected multiples of 32, as the model's "
         "processor resizes images"},
        {TOWER "data: {image_height: 64}\n",
         "s.yaml:2:7: data.image_height or data.image_width is given, expected both or neither"},
        {TOWER "data: {image_pixels: 1023}\n",
         "s.yaml:2:7: data.image_pixels is 1023, expected at least 1024, the size of a token"},
        {TOWER "train: {sharding: zero2, world: 2}\n",
         "s.yaml:1:17: a plain loop with ZeRO or FSDP2 with the vision tower of qwen3_vl is not supported" RUN_IT},
        {TOWER "data: {images: 0}\ntrain: {loop: trl-dpo}\n",
         "s.yaml:1:17: trl-dpo with the vision tower of qwen3_vl is not supported" RUN_IT},
        {"model: {family: llava}\ntrain: {loop: trl-dpo}\n",
         "s.yaml:1:17: trl-dpo with the vision tower of llava is not supported" RUN_IT},
        {TOWER "train: {loop: trainer, fsdp_plan: axolotl, sharding: fsdp, world: 2}\n",
         "s.yaml:1:17: train.fsdp_plan axolotl with the vision tower of qwen3_vl is not supported" RUN_IT},
        {TOWER "train: {loop: trainer, fsdp_wrap: text, sharding: zero3, world: 2}\n",
         "s.yaml:2:35: train.fsdp_wrap is text, expected a model with a vision tower, train.sharding fsdp, and "
         "train.loop trainer or trl-sft"},
        {TOWER "train: {lora: {r: 4, targets: [proj]}}\n",
         "s.yaml:2:31: train.lora.targets has 'proj', expected linear modules of qwen3_vl: q_proj, k_proj, v_proj, "
         "o_proj, gate_proj, up_proj, down_proj, qkv, attn.proj, linear_fc1, linear_fc2"},
        {"model: {family: qwen3_vl, vision_num_heads: 5}\n",
         "s.yaml:1:45: vision_hidden_size is 1152 and vision_num_heads 5, expected heads whose width is a multiple "
         "of 4, for rotary embeddings in two dimensions"},
        {POOLED "data: {images: 1, image_height: 448, image_width: 448}\n",
         "s.yaml:2:16: data.image_height is 448 and data.image_width 448, expected none, or 896, the size to which "
         "the model's processor resizes images"},
        {"model: {family: gemma3, mm_tokens_per_image: 250}\n",
         "s.yaml:1:46: mm_tokens_per_image is 250, expected a square number of tokens whose sides divide the 14 "
         "patches of an image's (vision_image_size 224, vision_patch_size 16)"},
        {"model: {family: gemma3, mm_tokens_per_image: 49, vision_num_attention_heads: 7}\n",
         "s.yaml:1:78: vision_hidden_size is 768 and vision_num_attention_heads 7, expected heads that divide it"},
        {"model: {family: qwen2_5_vl, vision_window_size: 27}\n",
         "s.yaml:1:49: vision_window_size is 27, expected at least 28, the size of a token"},
        {"model: {family: qwen2_vl, num_attention_heads: 128}\n",
         "s.yaml:1:8: mrope_section is [16, 24, 24], expected parts of 32, half of a head"},
        {POOLED "data: {images: 1, packing: one-row}\n",
         "s.yaml:1:17: data.packing with images in rows of gemma3 is not supported, expected data.images 0" RUN_IT},
        {"model: {family: gemma4}\ndata: {images: 1}\n",
         "s.yaml:1:17: data.images with the vision tower of gemma4 is not supported" RUN_IT},
        {"model: {family: gemma4}\ntrain: {loop: trainer, world: 2, sharding: fsdp}\n",
         "s.yaml:1:17: fsdp with the vision tower of gemma4 is not supported" RUN_IT},
        {"model: {family: gemma4, audio_num_hidden_layers: 2}\n"
         "train: {loop: trainer, world: 2, sharding: zero2}\n",
         "s.yaml:1:17: ZeRO 1 and 2 of experts or an audio tower with the vision tower of gemma4 is not "
         "supported" RUN_IT},
        {"model: {family: gemma4_unified_text}\ndata: {packing: one-row}\n",
         "s.yaml:1:17: data.packing with gemma4_unified_text is not supported" RUN_IT},
        {"model: {family: gemma4, vision_head_dim: 10}\n",
         "s.yaml:1:42: vision_head_dim is 10, expected a multiple of 4, for rotary embeddings in two dimensions"},
        {"model: {family: gemma4, audio_num_hidden_layers: 65}\n",
         "s.yaml:1:50: a tower of gemma4 has more than 64 blocks, which is not supported"},
        {"model: {family: qwen3_vl, vision_window_size: 112}\n",
         "s.yaml:1:27: unknown key model.vision_window_size for qwen3_vl, expected the nearest known key "
         "vision_hidden_size"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(str, (char *)spec_refusal("s.yaml", cases[i].text), (char *)cases[i].line), "%s", cases[i].text);
}

/* Of a square the largest multiple of what becomes one token; a size that is given counts more. */
/* Of what was compared of rows of text alone */
Test(spec_vision, rows_of_text_take_what_rows_with_images_do_not)
{
    static const char *const wanted[] = {"{packing: one-row}", "{}\ntrain: {loop: trl-dpo}",
                                         "{prompt: 16}\ntrain: {loop: trl-grpo}"};
    static const char *const models[] = {"{family: gemma3, mm_tokens_per_image: 49}",
                                         "{family: qwen3_5, vision_out_hidden_size: 4096}", "{family: mistral3}"};
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
            struct plim_spec spec;
            char text[256];
            snprintf(text, sizeof(text), "model: %s\ndata: %s\n", models[m], wanted[i]);
            spec_load_text("s.yaml", text, &spec);
        }
}

Test(spec_vision, images_are_squares_where_nothing_is_said)
{
    static const struct {
        const char *text;
        int64_t count, height, width, tokens;
    } cases[] = {
        {TOWER, 1, 512, 512, 256},
        {TOWER "data: {images: 3, image_pixels: 589824}\n", 3, 768, 768, 576},
        {TOWER "data: {image_pixels: 589823}\n", 1, 736, 736, 529},
        {TOWER "data: {image_height: 64, image_width: 96}\n", 1, 64, 96, 6},
        {TOWER "data: {images: 0}\n", 0, 0, 0, 0},
        {POOLED, 0, 0, 0, 0},
        {POOLED "data: {images: 2}\n", 2, 896, 896, 256},
        {"model: {family: llama}\n", 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        spec_load_text("s.yaml", cases[i].text, &s);
        const struct plim_images images = plim_spec_images(&s);
        cr_expect(eq(i64, images.count, cases[i].count), "%s", cases[i].text);
        cr_expect(eq(i64, images.height, cases[i].height), "%s", cases[i].text);
        cr_expect(eq(i64, images.width, cases[i].width), "%s", cases[i].text);
        if (images.count)
            cr_expect(eq(i64, plim_image_tokens(&s.model.vision, &images), cases[i].tokens), "%s", cases[i].text);
    }
}

/* A config.json has the text's keys in text_config, and ties embeddings by its own key alone. */
Test(spec_vision, a_config_json_has_two_parts)
{
    struct plim_spec s;
    spec_load_text("config.json",
                   "{\"model_type\": \"qwen3_vl\", \"architectures\": [\"Qwen3VLForConditionalGeneration\"], "
                   "\"text_config\": {\"hidden_size\": 96, \"tie_word_embeddings\": true, \"dtype\": \"bfloat16\"}, "
                   "\"vision_config\": {\"depth\": 7, \"num_heads\": 8, \"hidden_size\": 64, \"out_hidden_size\": 96, "
                   "\"deepstack_visual_indexes\": [2, 6], \"in_channels\": 3}}",
                   &s);
    cr_expect(eq(i64, s.model.hidden_size, 96));
    cr_expect(eq(i64, s.model.vision.layers, 7));
    cr_expect(eq(i64, s.model.vision.heads, 8));
    cr_expect(eq(i64, s.model.vision.hidden_size, 64));
    cr_expect(eq(i64, s.model.vision.deep_count, 2));
    cr_expect(eq(i64, s.model.vision.deep[1], 6));
    cr_expect(eq(int, s.model.dtype, PLIM_WEIGHTS_BF16));
    cr_expect(not(s.model.tie_word_embeddings));
}

#define GEMMA3(vision) \
    "{\"model_type\": \"gemma3\", \"mm_tokens_per_image\": 16, \"image_token_index\": 99, " \
    "\"text_config\": {\"head_dim\": 8, \"sliding_window\": 512}, " \
    "\"vision_config\": {\"image_size\": 64, \"patch_size\": 8, \"num_hidden_layers\": 2" vision "}}"

/* The tower has the pooling head of its class unless the config says otherwise. */
Test(spec_vision, a_config_json_of_gemma3_has_no_pooling_head)
{
    struct plim_spec s;
    spec_load_text("config.json", GEMMA3(", \"vision_use_head\": false"), &s);
    cr_expect(eq(i64, s.model.head_dim, 8));
    cr_expect(eq(i64, s.model.sliding_window, 512));
    cr_expect(eq(i64, s.model.vision.layers, 2));
    cr_expect(eq(i64, s.model.vision.positions, 64));
    cr_expect(eq(i64, s.model.vision.merge_size, 2));
    cr_expect(eq(i64, s.model.vision.out_hidden_size, 2304));
    cr_expect(s.model.tie_word_embeddings);
    cr_expect(spec_refusal("config.json", GEMMA3("")) != NULL);
    cr_expect(spec_refusal("config.json", GEMMA3(", \"vision_use_head\": true")) != NULL);
}

/* Linears of gemma3's tower are called as those of its text: which are meant, names do not say. */
Test(spec_vision, linears_of_the_text_alone)
{
    struct plim_spec s;
    spec_load_text("s.yaml", POOLED "train: {lora: {r: 4, targets: [text-linears]}}\n", &s);
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.language_model.layers.0.self_attn.q_proj"), 4));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.encoder.layers.0.self_attn.q_proj"), 0));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.encoder.layers.0.mlp.fc1"), 0));
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"));
    spec_load_text("s.yaml", POOLED "train: {lora: {r: 4, targets: [all-linear]}}\n", &s);
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.encoder.layers.0.self_attn.q_proj"), 4));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.encoder.layers.0.mlp.fc1"), 4));
}

/* qwen2_5_vl's and qwen2_vl's have the text's keys beside vision_config, as they were published, or in text_config,
 * beside which others do not count, and which may tie the embeddings. */
Test(spec_vision, older_ones_may_be_flat)
{
#define SIZES "\"hidden_size\": 96, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"rope_scaling\": " \
              "{\"type\": \"mrope\", \"mrope_section\": [8, 10, 6]}"
#define TOWER_SIZES "\"vision_config\": {\"in_chans\": 3, \"hidden_size\": 64, \"out_hidden_size\": 96, " \
                    "\"fullatt_block_indexes\": [3]}"
    static const char *const texts[] = {
        "{\"model_type\": \"qwen2_5_vl\", \"tie_word_embeddings\": true, " SIZES ", " TOWER_SIZES "}",
        "{\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 7, \"layer_types\": [\"full_attention\"], " TOWER_SIZES
        ", \"text_config\": {" SIZES ", \"tie_word_embeddings\": true}}"};
    for (int i = 0; i < 2; i++) {
        struct plim_spec s;
        spec_load_text("config.json", texts[i], &s);
        cr_expect(eq(i64, s.model.hidden_size, 96));
        cr_expect(eq(i64, s.model.layers, 80));
        cr_expect(eq(i64, s.model.mrope_section[1], 10));
        cr_expect(eq(int, s.model.rope, PLIM_ROPE_DEFAULT));
        cr_expect(s.model.tie_word_embeddings);
        cr_expect(eq(i64, s.model.vision.hidden_size, 64));
        cr_expect(eq(i64, s.model.vision.full_count, 1));
        cr_expect(eq(i64, s.model.vision.full[0], 3));
        cr_expect(eq(i64, s.model.vision.deep_count, 0));
        cr_expect(eq(i64, s.model.vision.channels, 3));
    }
}

/* The names of the text's linears are those of the tower's MLP, too. */
Test(spec_vision, text_linears_are_those_of_the_text)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: qwen2_5_vl, vision_out_hidden_size: 8192}\n"
                             "train: {lora: {r: 4, targets: [text-linears]}}\n", &s);
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.language_model.layers.3.mlp.gate_proj"), 4));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.visual.blocks.3.mlp.gate_proj"), 0));
    spec_load_text("s.yaml", "model: {family: qwen2_vl, vision_hidden_size: 8192}\n"
                             "train: {lora: {r: 4, targets: [text-linears]}}\n", &s);
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.language_model.layers.3.mlp.gate_proj"), 4));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.visual.blocks.3.mlp.fc1"), 0));
}

#define MISTRAL3(text) \
    "{\"model_type\": \"mistral3\", \"image_token_index\": 10, \"spatial_merge_size\": 3, " \
    "\"vision_feature_layer\": -1, " \
    "\"text_config\": {\"hidden_size\": 256" text "}, \"vision_config\": {\"model_type\": \"pixtral\", " \
    "\"image_size\": 1540, \"num_hidden_layers\": 2, \"hidden_act\": \"silu\"}}"
#define NEWER ", \"model_type\": \"ministral3\", \"rope_parameters\": {\"rope_type\": \"yarn\""
#define SCALED ", \"llama_4_scaling_beta\": 0.1, \"original_max_position_embeddings\": 64}"

/* mistral3's text is of a family that its configuration names, whose defaults those are; what ties embeddings is said
 * in either. */
Test(spec_vision, the_text_of_mistral3_is_of_two_families)
{
    struct plim_spec s;
    spec_load_text("config.json", MISTRAL3(""), &s);
    cr_expect(eq(i64, s.model.vocab_size, 32000));
    cr_expect(eq(i64, s.model.sliding_window, 4096));
    cr_expect(not(s.model.scales_queries));
    cr_expect(not(s.model.tie_word_embeddings));
    cr_expect(eq(i64, s.model.vision.merge_size, 3));
    cr_expect(eq(i64, s.model.vision.patch_size, 16));
    cr_expect(eq(i64, s.model.vision.image_size, 0));
    cr_expect(eq(i64, s.model.vision.out_hidden_size, 256));
    cr_expect(eq(i64, plim_spec_images(&s).count, 0));
    spec_load_text("config.json", MISTRAL3(NEWER SCALED ", \"tie_word_embeddings\": true"), &s);
    cr_expect(eq(i64, s.model.vocab_size, 131072));
    cr_expect(eq(i64, s.model.layers, 34));
    cr_expect(eq(i64, s.model.head_dim, 128));
    cr_expect(eq(i64, s.model.rope_original_positions, 64));
    cr_expect(s.model.scales_queries);
    cr_expect(s.model.tie_word_embeddings);
    cr_expect(eq(str, (char *)spec_refusal("config.json", MISTRAL3(", \"model_type\": \"qwen3\"")),
                 "config.json:1:156: text_config.model_type: expected mistral or ministral3" RUN_IT));
    cr_expect(spec_refusal("config.json", MISTRAL3(NEWER "}")) != NULL);
    spec_load_text("s.yaml",
                   "model: {family: mistral3, rope_parameters: {rope_type: yarn, llama_4_scaling_beta: 0.1}}\n", &s);
    cr_expect(s.model.scales_queries);
    cr_expect(eq(i64, s.model.rope_original_positions, 131072));
    spec_load_text("s.yaml", "model: {family: mistral3}\n", &s);
    cr_expect(not(s.model.scales_queries));
    cr_expect(eq(i64, s.model.vision.patch_size, 14));
}

/* Each row of an image's tokens is followed by a text token. */
Test(spec_vision, images_of_mistral3_are_of_any_size)
{
    static const char tower[] =
        "model: {family: mistral3}\ndata: {images: 2, image_height: 56, image_width: 84, seq: %d}\n";
    char text[200];
    struct plim_spec s;
    snprintf(text, sizeof(text), tower, 24);
    spec_load_text("s.yaml", text, &s);
    const struct plim_images images = plim_spec_images(&s);
    cr_expect(eq(i64, plim_image_tokens(&s.model.vision, &images), 6));
    cr_expect(eq(i64, plim_image_extent(&s.model.vision, &images), 8));
    snprintf(text, sizeof(text), tower, 23);
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", text),
                 "s.yaml:2:16: data.seq is 23, expected at least 24: data.images 2 of 8 tokens each, and the text "
                 "around them"));
    spec_load_text("s.yaml", "model: {family: mistral3}\ntrain: {lora: {r: 4, targets: [text-linears]}}\n", &s);
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.language_model.layers.0.mlp.gate_proj"), 4));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.transformer.layers.0.feed_forward.gate_proj"), 0));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.multi_modal_projector.linear_1"), 0));
    spec_load_text("s.yaml", "model: {family: mistral3}\ntrain: {lora: {r: 4, targets: [all-linear]}}\n", &s);
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.multi_modal_projector.linear_1"), 4));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.transformer.layers.0.attention.k_proj"), 4));
}

#define LLAVA(text, own) \
    "{\"model_type\": \"llava\", \"pad_token_id\": 32001, \"vocab_size\": 32064, " own "\"text_config\": " \
    "{\"vocab_size\": 320" text "}, " \
    "\"vision_config\": {\"model_type\": \"clip_vision_model\", \"image_size\": 64, \"vocab_size\": 9}}"

/* CLIP's defaults are those of its own class; embeddings are tied if the model's or the text's config says so. */
Test(spec_vision, a_config_json_of_llava_has_a_text_and_clips_tower)
{
    static const char *const refused[] = {
        LLAVA("", "\"vision_feature_layer\": -1, "), LLAVA("", "\"vision_feature_layer\": [-2, -5], "),
        LLAVA("", "\"vision_feature_select_strategy\": \"full\", "), LLAVA("", "\"projector_hidden_act\": \"relu\", "),
        LLAVA("", "\"multimodal_projector_bias\": false, ")};
    struct plim_spec s;
    spec_load_text("config.json", LLAVA("", "\"vision_feature_layer\": -2, "), &s);
    cr_expect(eq(i64, s.model.vocab_size, 320));
    cr_expect(eq(i64, s.model.pad_token_id, PLIM_NO_TOKEN));
    cr_expect(eq(i64, s.model.vision.layers, 12));
    cr_expect(eq(i64, s.model.vision.hidden_size, 768));
    cr_expect(eq(i64, s.model.vision.positions, 4)); /* of patches of 32 */
    cr_expect(eq(i64, s.model.vision.out_hidden_size, 4096));
    cr_expect(not(s.model.tie_word_embeddings));
    const struct plim_images images = plim_spec_images(&s);
    cr_expect(eq(i64, images.count, 1));
    cr_expect(eq(i64, plim_image_tokens(&s.model.vision, &images), 4));
    spec_load_text("config.json", LLAVA(", \"tie_word_embeddings\": true", "\"tie_word_embeddings\": false, "), &s);
    cr_expect(s.model.tie_word_embeddings);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        cr_expect(spec_refusal("config.json", refused[i]) != NULL, "%s", refused[i]);
    cr_expect(eq(str, (char *)spec_refusal("config.json", LLAVA(", \"model_type\": \"mistral\"", "")),
                 "config.json:1:118: text_config.model_type: expected llama" RUN_IT));
    spec_load_text("s.yaml", "model: {family: llava}\n", &s);
    cr_expect(eq(i64, s.model.vision.positions, 576));
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "model: {family: llava, vision_image_size: 340}\n"),
                 "s.yaml:1:43: vision_image_size is 340, expected a multiple of 14, the size of a token"));
    spec_load_text("s.yaml", "model: {family: llava}\ntrain: {lora: {r: 4, targets: [text-linears]}}\n", &s);
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.language_model.layers.0.self_attn.q_proj"), 4));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.encoder.layers.0.self_attn.q_proj"), 0));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.vision_tower.encoder.layers.0.self_attn.out_proj"), 0));
    cr_expect(eq(i64, plim_lora_rank(&s.lora, "model.multi_modal_projector.linear_1"), 0));
}

#define INTERNVL(text, tower, own) \
    "{\"model_type\": \"internvl\", \"downsample_ratio\": 0.5, " own "\"text_config\": {\"hidden_size\": 256" text \
    "}, \"vision_config\": {\"model_type\": \"internvl_vision\", \"image_size\": [56, 56], \"patch_size\": [14, 14], " \
    "\"attention_bias\": true" tower "}}"

/* internvl's text is of a family that its configuration names, and its tower's sides are two equal numbers. */
Test(spec_vision, the_text_of_internvl_is_of_two_families)
{
    static const char *const refused[] = {
        INTERNVL("", "", "\"vision_feature_layer\": -2, "), INTERNVL("", ", \"use_qk_norm\": true", ""),
        INTERNVL("", ", \"norm_type\": \"rms_norm\"", ""), INTERNVL("", ", \"use_mean_pooling\": false", ""),
        INTERNVL("", ", \"image_size\": [56, 28]", ""), INTERNVL(", \"model_type\": \"llama\"", "", "")};
    struct plim_spec s;
    spec_load_text("config.json", INTERNVL(", \"tie_word_embeddings\": false", "", ""), &s);
    cr_expect(eq(int, (int)s.model.text, PLIM_FAMILY_QWEN2));
    cr_expect(eq(i64, s.model.head_dim, 8));
    cr_expect(eq(i64, s.model.vision.image_size, 56));
    cr_expect(eq(i64, s.model.vision.positions, 16));
    cr_expect(s.model.vision.attention_bias);
    cr_expect(not(s.model.attention_bias));
    cr_expect(not(s.model.tie_word_embeddings));
    spec_load_text("config.json", INTERNVL(", \"model_type\": \"qwen3\"", "", "\"tie_word_embeddings\": true, "), &s);
    cr_expect(eq(int, (int)s.model.text, PLIM_FAMILY_QWEN3));
    cr_expect(eq(i64, s.model.head_dim, 128));
    cr_expect(s.model.tie_word_embeddings);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        cr_expect(spec_refusal("config.json", refused[i]) != NULL, "%s", refused[i]);
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "model: {family: internvl, text_model_type: llama}\n"),
                 "s.yaml:1:44: text_model_type is llama, expected qwen2 or qwen3"));
}

/* An image is a tile, or tiles in rows and columns and one of all of it. */
Test(spec_vision, images_of_internvl_are_tiles)
{
    static const struct {
        const char *size;
        int64_t tiles;
    } cases[] = {{"", 1}, {", image_height: 448, image_width: 448", 1}, {", image_height: 448, image_width: 896", 3},
                 {", image_height: 896, image_width: 1344", 7}};
    struct plim_spec s;
    char text[200];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), "model: {family: internvl}\ndata: {seq: 4096, images: 2%s}\n", cases[i].size);
        spec_load_text("s.yaml", text, &s);
        const struct plim_images images = plim_spec_images(&s);
        cr_expect(eq(i64, plim_image_tiles(&s.model.vision, &images), cases[i].tiles), "%s", text);
        cr_expect(eq(i64, plim_image_tokens(&s.model.vision, &images), 256 * cases[i].tiles), "%s", text);
    }
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", "model: {family: internvl}\n"
                                                     "data: {image_height: 448, image_width: 500}\n"),
                 "s.yaml:2:7: data.image_height is 448 and data.image_width 500, expected multiples of 448, as the "
                 "model's processor resizes images"));
}

#define GEMMA4(parts) \
    "{\"model_type\": \"gemma4\", \"architectures\": [\"Gemma4ForConditionalGeneration\"], \"dtype\": \"bfloat16\", " \
    "\"text_config\": {\"hidden_size\": 96, \"num_hidden_layers\": 6, \"num_kv_shared_layers\": 2, " \
    "\"use_bidirectional_attention\": \"vision\", \"layer_types\": [\"sliding_attention\", \"full_attention\", " \
    "\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\"]}" parts "}"
#define SEES \
    ", \"vision_config\": {\"num_hidden_layers\": 3, \"pooling_kernel_size\": 2, \"use_clipped_linears\": true}"
#define HEARS ", \"audio_config\": {\"subsampling_conv_channels\": [16, 8]}"

/* A config with an audio section has an audio tower, with the class's defaults; only the text if that is requested. */
Test(spec_vision, a_config_json_of_gemma4_has_towers)
{
    struct plim_spec s;
    spec_load_text("config.json", GEMMA4(SEES HEARS), &s);
    cr_expect(eq(int, s.model.family, PLIM_FAMILY_GEMMA4));
    cr_expect(eq(int, s.model.dtype, PLIM_WEIGHTS_BF16));
    cr_expect(eq(i64, s.model.hidden_size, 96));
    cr_expect(eq(i64, s.model.shared_kv_layers, 2));
    cr_expect(eq(int, s.model.seeing, PLIM_SEEING_VISION));
    cr_expect(eq(i64, s.model.vision.layers, 3));
    cr_expect(eq(i64, s.model.vision.merge_size, 2));
    cr_expect(eq(i64, s.model.vision.out_hidden_size, 96));
    cr_expect(s.model.vision.clips && s.model.audio.clips && s.model.tie_word_embeddings);
    cr_expect(eq(i64, s.model.audio.layers, 12));
    cr_expect(eq(i64, s.model.audio.channels[0], 16));
    cr_expect(eq(i64, s.model.audio.channels[1], 8));
    spec_load_text("config.json", GEMMA4(SEES ", \"audio_config\": null"), &s);
    cr_expect(eq(i64, s.model.audio.layers, 0));
    cr_expect(spec_refusal("config.json", GEMMA4(HEARS)) != NULL);
    cr_expect(spec_refusal("config.json", GEMMA4(SEES ", \"audio_config\": {\"subsampling_conv_channels\": [16]}")) !=
              NULL);
}

/* peft takes the linears inside of modules that clip, but not these, and by default those of the text. */
Test(spec_vision, linears_of_gemma4_stand_inside_of_modules)
{
    static const char *const text = "model.language_model.layers.3.self_attn.q_proj",
                             *const around = "model.vision_tower.encoder.layers.3.self_attn.q_proj",
                             *const inside = "model.vision_tower.encoder.layers.3.self_attn.q_proj.linear",
                             *const sound = "model.audio_tower.layers.3.self_attn.relative_k_proj";
    static const struct {
        const char *targets;
        int64_t text, around, inside, sound;
    } cases[] = {{"", 4, 0, 0, 0},
                 {", targets: [text-linears]", 4, 0, 0, 0},
                 {", targets: [all-linear]", 4, 0, 4, 4},
                 {", targets: [q_proj]", 4, 4, 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        char spec[160];
        snprintf(spec, sizeof(spec), "model: {family: gemma4}\ntrain: {lora: {r: 4%s}}\n", cases[i].targets);
        spec_load_text("s.yaml", spec, &s);
        cr_expect(eq(i64, plim_lora_rank(&s.lora, text), cases[i].text), "%s", spec);
        cr_expect(eq(i64, plim_lora_rank(&s.lora, around), cases[i].around), "%s", spec);
        cr_expect(eq(i64, plim_lora_rank(&s.lora, inside), cases[i].inside), "%s", spec);
        cr_expect(eq(i64, plim_lora_rank(&s.lora, sound), cases[i].sound), "%s", spec);
    }
}
