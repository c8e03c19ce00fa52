/* An encoder and a decoder in a spec: what their keys come to, and what is refused. */
#include "support/spec_files.h"
#include "workloads/spec/spec_seq2seq.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

TestSuite(spec_seq2seq, .fini = spec_files_remove);

#define RUN_IT " (plimsoll exec runs any training program)"
#define BESIDE(what) what " with the encoder and the decoder of mt5 is not supported" RUN_IT
#define MT5 "model: {family: mt5}\n"

Test(spec_seq2seq, targets_are_of_decoders_with_an_encoder)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"model: {family: llama}\ndata: {target_seq: 9}\n",
         "s.yaml:2:20: data.target_seq is 9, expected none for llama, which has no encoder and no target"},
        {"model: {family: t5}\n",
         "s.yaml:1:8: decoder_start_token_id is null, with which transformers fails to build or to run t5, expected a "
         "number"},
        {"model: {family: mt5, pad_token_id: null}\n",
         "s.yaml:1:36: pad_token_id is null, with which transformers fails to build or to run mt5, expected a number"},
        {"model: {family: mt5, num_layers: 1000, num_decoder_layers: 25}\n",
         "s.yaml:1:60: 1000 layers of the encoder and 25 of the decoder, expected 1024 at most together"},
        {"model: {family: mt5, task: causal-lm}\n", "s.yaml:1:28: task is causal-lm, expected of mt5: seq2seq-lm"},
        {MT5 "train: {sharding: fsdp, world: 2}\n", "s.yaml:1:17: " BESIDE("fsdp")},
        {MT5 "data: {packing: yes}\n", "s.yaml:1:17: " BESIDE("data.packing")},
        {MT5 "train: {use_reentrant: true}\n", "s.yaml:1:17: " BESIDE("train.use_reentrant")},
        {MT5 "train: {attention: flash_attention_2, precision: bf16}\n",
         "s.yaml:1:17: " BESIDE("train.attention flash_attention_2")},
        {MT5 "train: {precision: fp16}\n",
         "s.yaml:1:17: "
         BESIDE("weights in fp16, beside which transformers keeps some in fp32 (_keep_in_fp32_modules)")},
        {"model: {family: bart}\ntrain: {precision: fp16}\n",
         "s.yaml:1:17: weights in fp16, of which transformers looks at an encoder's values (isfinite) with the "
         "encoder and the decoder of bart is not supported" RUN_IT},
        {"model: {family: bart, max_position_embeddings: 200}\ndata: {target_seq: 201}\n",
         "s.yaml:2:20: data.target_seq is 201, expected at most max_position_embeddings = 200: bart has learned "
         "positions"},
        {MT5 "train: {loop: trl-sft}\n",
         "s.yaml:2:15: train.loop is trl-sft, which is not supported with a model that is not a causal language "
         "model (plimsoll exec runs the training script as it is)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(str, (char *)spec_refusal("s.yaml", cases[i].text), (char *)cases[i].line), "%s", cases[i].text);
}

Test(spec_seq2seq, blocks_of_both_are_counted_together)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: mt5, num_layers: 3, num_decoder_layers: 5, "
                             "feed_forward_proj: gated-gelu}\n", &s);
    cr_expect(eq(i64, s.model.layers, 8));
    cr_expect(eq(i64, s.model.encoder_layers, 3));
    cr_expect(eq(i64, plim_spec_target(&s), 128));
    cr_expect(s.model.gated_mlp);
    cr_expect(eq(int, s.model.activation, PLIM_ACTIVATION_GELU_NEW));
    spec_load_text("s.yaml", "model: {family: llama}\n", &s);
    cr_expect(eq(i64, plim_spec_target(&s), 0));
    spec_load_text("s.yaml", "model: {family: mbart, max_position_embeddings: 60}\n", &s);
    cr_expect(eq(i64, plim_spec_target(&s), 60));
    cr_expect(eq(i64, s.model.layers, 24));
}

/* whisper's source is a sound, as long as its encoder. */
Test(spec_seq2seq, data_seq_is_the_target_of_what_hears)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"model: {family: whisper}\ndata: {target_seq: 9}\n",
         "s.yaml:2:20: data.target_seq is 9, expected none for whisper, whose targets are of data.seq tokens: all "
         "sounds are as long as its encoder"},
        {"model: {family: whisper}\ndata: {seq: 449}\n",
         "s.yaml:2:13: data.seq is 449, expected at most max_target_positions = 448: whisper has learned positions"},
        {"model: {family: whisper, d_model: 390, decoder_attention_heads: 4}\n",
         "s.yaml:1:65: d_model is 390 and decoder_attention_heads is 4, expected heads that divide it"},
        {"model: {family: whisper, d_model: 99, encoder_attention_heads: 3, decoder_attention_heads: 3}\n",
         "s.yaml:1:35: d_model is 99, expected an even number from 4 on: half of a position are sines"},
        {"model: {family: whisper}\ntrain: {loop: trainer, label_smoothing: 0.1}\n",
         "s.yaml:1:1: train.label_smoothing: Trainer takes the labels away, from which the model derives its "
         "decoder's input: Trainer fails with whisper so, expected another"},
        {"model: {family: whisper}\ntrain: {loop: trainer, precision: [fp32, bf16]}\n",
         "s.yaml:1:1: weights in 16 bits without autocast: features are fp32 (Input type (float) and bias type should "
         "be the same): Trainer fails with whisper so, expected another"},
        {"model: {family: mt5}\ntrain: {freeze_encoder: true}\n",
         "s.yaml:2:25: train.freeze_encoder is true, expected false for mt5, whose encoder cannot be frozen"},
    };
    struct plim_spec s;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(str, (char *)spec_refusal("s.yaml", cases[i].text), (char *)cases[i].line), "%s", cases[i].text);
    spec_load_text("s.yaml", "model: {family: whisper}\ndata: {seq: 448}\n", &s);
    cr_expect(eq(i64, plim_spec_target(&s), 0));
    cr_expect(eq(i64, s.model.layers, 8));
}

/* openai/whisper-small's config.json, without its lists of tokens */
Test(spec_seq2seq, whisper_is_read_as_it_is_published)
{
    struct plim_spec s;
    const char *const config =
        "{\"model_type\": \"whisper\", \"architectures\": [\"WhisperForConditionalGeneration\"], "
        "\"dropout\": 0.0, \"activation_dropout\": 0.0, \"activation_function\": \"gelu\", "
        "\"attention_dropout\": 0.0, \"begin_suppress_tokens\": [220, 50257], \"bos_token_id\": 50257, "
        "\"d_model\": 768, \"decoder_attention_heads\": 12, \"decoder_ffn_dim\": 3072, "
        "\"decoder_layerdrop\": 0.0, \"decoder_layers\": 12, \"decoder_start_token_id\": 50258, "
        "\"encoder_attention_heads\": 12, \"encoder_ffn_dim\": 3072, \"encoder_layerdrop\": 0.0, "
        "\"encoder_layers\": 12, \"eos_token_id\": 50257, \"forced_decoder_ids\": [[1, 50259], [2, 50359], "
        "[3, 50363]], \"init_std\": 0.02, \"is_encoder_decoder\": true, \"max_length\": 448, "
        "\"max_source_positions\": 1500, \"max_target_positions\": 448, \"num_hidden_layers\": 12, "
        "\"num_mel_bins\": 80, \"pad_token_id\": 50257, \"scale_embedding\": false, \"torch_dtype\": "
        "\"float32\", \"transformers_version\": \"4.27.0.dev0\", \"use_cache\": true, \"vocab_size\": 51865}";
    spec_load_text("config.json", config, &s);
    cr_expect(eq(i64, s.model.encoder_layers, 12));
    cr_expect(eq(i64, s.model.layers, 24));
    cr_expect(eq(i64, s.model.positions, 448));
    cr_expect(eq(i64, s.model.source_positions, 1500));
    cr_expect(eq(i64, s.model.decoder_intermediate, 3072));
    char refused[2048], *drop;
    snprintf(refused, sizeof(refused), "%s", config);
    drop = strstr(refused, "\"encoder_layerdrop\": 0.0");
    memcpy(drop, "\"encoder_layerdrop\": 0.1", 24);
    const char *line = spec_refusal("config.json", refused);
    cr_expect(line && strstr(line, "encoder_layerdrop: layerdrop is not supported"),
              "%s", line);
}

/* t5 v1.1 has a head of its own, and does not scale what it reads. */
Test(spec_seq2seq, tied_weights_scale_what_the_head_reads)
{
    struct plim_spec s;
    const char *const config = "{\"model_type\": \"t5\", \"architectures\": [\"T5ForConditionalGeneration\"], "
                               "\"is_encoder_decoder\": true, \"decoder_start_token_id\": 0, \"d_model\": 32}";
    spec_load_text("config.json", config, &s);
    cr_expect(s.model.tie_word_embeddings && s.model.scales_outputs);
    spec_load_text("config.json", "{\"model_type\": \"t5\", \"decoder_start_token_id\": 0, "
                                  "\"tie_word_embeddings\": false}", &s);
    cr_expect(not(s.model.tie_word_embeddings || s.model.scales_outputs));
}
