/* An encoder and a decoder in a spec: what their keys come to, and what is refused. */
#include "support/spec_files.h"
#include "workloads/spec/spec_seq2seq.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

TestSuite(spec_seq2seq, .fini = spec_files_remove);

#define RUN_IT " (plimsoll exec runs any training program)"
#define BESIDE(what) what " beside the encoder and the decoder of mt5: this is not in this version" RUN_IT
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
        {MT5 "train: {loop: trl-sft}\n",
         "s.yaml:2:15: train.loop is trl-sft beside a model that is no causal language model: this is not in this "
         "version (plimsoll exec runs the training script as it is)"},
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
