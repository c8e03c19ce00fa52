/* deberta-v2 in a spec: what its keys come to, and what is refused. */
#include "support/spec_files.h"
#include "workloads/spec/family.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

TestSuite(spec_deberta, .fini = spec_files_remove);

#define RUN_IT " (plimsoll exec runs any training program)"
#define OF(what) what " with deberta-v2 is not supported" RUN_IT
#define DEBERTA "model: {family: deberta-v2}\n"
#define RELATIVE "\"relative_attention\": true, \"pos_att_type\": \"c2p\""
#define CONFIG(keys) "{\"model_type\": \"deberta-v2\", " keys "}"

Test(spec_deberta, what_was_not_compared_is_refused)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {DEBERTA "train: {attention: sdpa}\n",
         "s.yaml:2:20: train.attention is sdpa, expected eager, transformers' own for deberta-v2"},
        {DEBERTA "train: {use_reentrant: true}\n", "s.yaml:1:17: " OF("train.use_reentrant")},
        {DEBERTA "train: {sharding: fsdp, world: 2}\n", "s.yaml:1:17: " OF("fsdp")},
        {"model: {family: deberta-v2, task: classification, num_labels: 1}\n",
         "s.yaml:1:17: " OF("model.num_labels 1")},
        {DEBERTA "train: {liger: true}\n", "s.yaml:1:17: " OF("train.liger")},
        {DEBERTA "train: {torch: 2.15}\n", "s.yaml:1:17: " OF("train.torch 2.15")},
        {DEBERTA "data: {packing: yes}\n", "s.yaml:1:17: " OF("data.packing")},
        {"model: {family: deberta-v2, relative_attention: true}\n",
         "s.yaml:1:8: pos_att_type is none beside relative_attention, expected c2p, p2c or both"},
        {"model: {family: deberta-v2, relative_attention: true, pos_att_type: c2p, position_buckets: 2}\n",
         "s.yaml:1:92: position_buckets is 2, expected 4 or more, and half of them less than the farthest distance = "
         "511"},
        {"model: {family: deberta-v2, relative_attention: true, pos_att_type: c2p, position_buckets: 98, "
         "max_relative_positions: 50}\n",
         "s.yaml:1:92: position_buckets is 98, expected 4 or more, and half of them less than the farthest distance = "
         "49"},
        {"model: {family: deberta-v2, attention_head_size: 32}\n",
         "s.yaml:1:50: head_dim is 32, expected hidden_size / num_attention_heads = 64"},
        {DEBERTA "data: {seq: 513}\n",
         "s.yaml:2:13: data.seq is 513, expected at most max_position_embeddings = 512: deberta-v2 has learned "
         "positions"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(str, (char *)spec_refusal("s.yaml", cases[i].text), (char *)cases[i].line), "%s", cases[i].text);
}

Test(spec_deberta, parts_that_are_not_known_are_refused)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {CONFIG("\"conv_kernel_size\": 3"),
         "config.json:1:50: conv_kernel_size: a convolution beside the first block (deberta-v2-xlarge, -xxlarge) is "
         "not supported, expected 0" RUN_IT},
        {CONFIG("\"legacy\": false"),
         "config.json:1:40: legacy: the head of legacy: false is not supported, expected true" RUN_IT},
        {CONFIG("\"embedding_size\": 128"),
         "config.json:1:48: embedding_size: embeddings of another width than hidden_size are not supported, expected "
         "a config.json without it" RUN_IT},
        {CONFIG("\"pos_att_type\": [\"p2p\"]"),
         "config.json:1:46: pos_att_type is 'p2p', expected none, c2p, p2c, p2c|c2p or c2p|p2c, or null"},
        {CONFIG("\"architectures\": [\"DebertaV2ForMultipleChoice\"]"),
         "config.json:1:48: architectures names DebertaV2ForMultipleChoice, expected a masked language model, a "
         "classification of sequences or of tokens, or question answering (to plan it as one, write a spec with "
         "model: {hf: FILE, family: NAME, task: TASK}; plimsoll exec runs any training program)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(str, (char *)spec_refusal("config.json", cases[i].text), (char *)cases[i].line), "%s",
                  cases[i].text);
}

/* Published files have words separated by |; files written by save_pretrained() have lists. */
Test(spec_deberta, kinds_of_scores_are_words_or_a_list)
{
    static const struct {
        const char *text;
        enum plim_position_scores scores;
    } cases[] = {
        {CONFIG("\"pos_att_type\": \"p2c|c2p\""), PLIM_SCORES_BOTH},
        {CONFIG("\"pos_att_type\": \"c2p|p2c\""), PLIM_SCORES_BOTH},
        {CONFIG("\"pos_att_type\": [\"p2c\", \"c2p\"]"), PLIM_SCORES_BOTH},
        {CONFIG("\"pos_att_type\": [\"c2p\"]"), PLIM_SCORES_C2P},
        {CONFIG("\"pos_att_type\": \"p2c\""), PLIM_SCORES_P2C},
        {CONFIG("\"pos_att_type\": []"), PLIM_SCORES_NONE},
        {CONFIG("\"pos_att_type\": null"), PLIM_SCORES_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        spec_load_text("config.json", cases[i].text, &s);
        cr_expect(eq(int, (int)s.model.position_scores, (int)cases[i].scores), "%s", cases[i].text);
    }
}

Test(spec_deberta, distances_are_buckets_or_all)
{
    struct plim_spec s;
    spec_load_text("config.json", CONFIG(RELATIVE ", \"position_biased_input\": false"), &s);
    cr_expect(eq(i64, plim_model_distances(&s.model), 512));
    spec_load_text("config.json", CONFIG(RELATIVE ", \"max_relative_positions\": 40"), &s);
    cr_expect(eq(i64, plim_model_distances(&s.model), 40));
    spec_load_text("config.json", CONFIG(RELATIVE ", \"position_buckets\": 256"), &s);
    cr_expect(eq(i64, plim_model_distances(&s.model), 256));
    cr_expect(eq(i64, plim_model_farthest(&s.model), 512));
}

/* Without learned positions a row may be longer than the model was made for. */
Test(spec_deberta, rows_end_where_positions_are_learned)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: deberta-v2, position_biased_input: false}\ndata: {seq: 2000}\n", &s);
    cr_expect(eq(i64, s.seq.values[0], 2000));
    cr_expect(eq(int, (int)s.attention.values[0], (int)PLIM_ATTENTION_EAGER));
}
