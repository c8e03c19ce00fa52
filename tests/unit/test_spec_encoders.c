/* Encoders that came later (esm, albert, mpnet) and gptj in a spec: what is refused, and how long rows may be. */
#include "support/spec_files.h"
#include "workloads/spec/family.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

TestSuite(spec_encoders, .fini = spec_files_remove);

#define RUN_IT " (plimsoll exec runs any training program)"
#define BESIDE(what, family) what " with " family " is not supported" RUN_IT
#define ESM "model: {family: esm, vocab_size: 33, pad_token_id: 1}\n"

struct refusal {
    const char *text, *line;
};

static void check_all(const char *name, const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cr_expect(eq(str, (char *)spec_refusal(name, cases[i].text), (char *)cases[i].line), "%s", cases[i].text);
}

#define CHECK_ALL(name, cases) check_all(name, cases, sizeof(cases) / sizeof((cases)[0]))

Test(spec_encoders, esm_has_limits_of_its_own)
{
    static const struct refusal cases[] = {
        {"model: {family: esm, vocab_size: 33}\n",
         "s.yaml:1:8: pad_token_id is null, with which transformers fails to build or to run esm, expected a number"},
        {"model: {family: esm, vocab_size: 33, pad_token_id: 1, token_dropout: true}\n",
         "s.yaml:1:8: mask_token_id is null beside token_dropout, with which transformers fails to run esm, expected a "
         "token"},
        {"model: {family: esm, vocab_size: 33, pad_token_id: 1, hidden_size: 60, position_embedding_type: rotary}\n",
         "s.yaml:1:8: a head has 5 elements, expected an even number: halves of heads turn"},
        {ESM "data: {seq: 1025}\n",
         "s.yaml:2:13: data.seq is 1025, expected at most max_position_embeddings - pad_token_id - 1 = 1024: esm has "
         "learned positions"},
        {"model: {family: esm, vocab_size: 33, pad_token_id: 1, task: question-answering}\n",
         "s.yaml:1:61: task is question-answering, expected of esm: masked-lm, classification, token-classification"},
        {ESM "train: {attention: flash_attention_2, precision: bf16}\n",
         "s.yaml:1:17: " BESIDE("train.attention flash_attention_2", "esm")},
        {ESM "train: {sharding: zero2, world: 2}\n", "s.yaml:1:17: " BESIDE("zero2", "esm")},
        {ESM "train: {use_reentrant: true, checkpointing: full}\n",
         "s.yaml:1:17: " BESIDE("train.use_reentrant", "esm")},
    };
    CHECK_ALL("s.yaml", cases);
    static const struct refusal files[] = {
        {"{\"model_type\": \"esm\", \"is_folding_model\": true}",
         "config.json:1:43: is_folding_model: ESMFold is not supported, expected false" RUN_IT},
        {"{\"model_type\": \"esm\", \"is_decoder\": true}",
         "config.json:1:37: is_decoder: an encoder's causal attention is not supported, expected false" RUN_IT},
    };
    CHECK_ALL("config.json", files);
}

Test(spec_encoders, albert_and_mpnet_are_not_checkpointed)
{
    static const struct refusal cases[] = {
        {"model: {family: albert}\ntrain: {checkpointing: [none, full]}\n",
         "s.yaml:2:24: train.checkpointing is full, expected none: transformers does not checkpoint albert "
         "(gradient_checkpointing_enable() fails)"},
        {"model: {family: mpnet}\ntrain: {checkpointing: full}\n",
         "s.yaml:2:24: train.checkpointing is full, expected none: transformers does not checkpoint mpnet "
         "(gradient_checkpointing_enable() fails)"},
        {"model: {family: albert, num_hidden_groups: 13}\n",
         "s.yaml:1:44: num_hidden_groups is 13, expected at most num_hidden_layers = 12"},
        {"model: {family: albert}\ntrain: {liger: true}\n", "s.yaml:1:17: " BESIDE("train.liger", "albert")},
        {"model: {family: mpnet}\ntrain: {attention: sdpa}\n",
         "s.yaml:2:20: train.attention is sdpa, expected eager, transformers' own for mpnet"},
        {"model: {family: mpnet, relative_attention_num_buckets: 16}\n",
         "s.yaml:1:56: relative_attention_num_buckets is 16, expected 32 or more: transformers looks up so many "
         "whatever is said"},
        {"model: {family: mpnet}\ndata: {seq: 511}\n",
         "s.yaml:2:13: data.seq is 511, expected at most max_position_embeddings - pad_token_id - 1 = 510: mpnet has "
         "learned positions"},
    };
    CHECK_ALL("s.yaml", cases);
    static const struct refusal files[] = {
        {"{\"model_type\": \"albert\", \"inner_group_num\": 2}",
         "config.json:1:45: inner_group_num: groups of several layers are not supported, expected 1" RUN_IT},
        {"{\"model_type\": \"albert\", \"architectures\": [\"AlbertForMultipleChoice\"]}",
         "config.json:1:44: architectures names AlbertForMultipleChoice, expected a masked language model, a "
         "classification of sequences or of tokens, or question answering (to plan it as one, write a spec with "
         "model: {hf: FILE, family: NAME, task: TASK}; plimsoll exec runs any training program)"},
    };
    CHECK_ALL("config.json", files);
}

/* num_hidden_layers are blocks that run, of which layers are those that there are. */
Test(spec_encoders, layers_of_albert_run_many_times)
{
    struct plim_spec s;
    spec_load_text("config.json",
                   "{\"model_type\": \"albert\", \"num_hidden_layers\": 24, \"inner_group_num\": 1}", &s);
    cr_expect(eq(i64, s.model.layers, 1));
    cr_expect(eq(i64, s.model.passes, 24));
    cr_expect(eq(sz, s.checkpointing.count, 1));
    cr_expect(eq(int, s.checkpointing.values[0], (int)PLIM_CHECKPOINTING_NONE));
    cr_expect(eq(int, plim_spec_resolve(&s, &(struct plim_error)PLIM_ERROR_INIT), PLIM_OK)); /* again */
    cr_expect(eq(i64, s.model.passes, 24));
    spec_load_text("s.yaml", "model: {family: albert, num_hidden_layers: 7, num_hidden_groups: 3}\n", &s);
    cr_expect(eq(i64, s.model.layers, 3));
    cr_expect(eq(i64, s.model.passes, 7));
}

/* Whatever its configuration, mpnet's embeddings use token 1 as padding. */
Test(spec_encoders, mpnet_pads_with_token_1)
{
    struct plim_spec s;
    spec_load_text("config.json", "{\"model_type\": \"mpnet\", \"pad_token_id\": 7}", &s);
    cr_expect(eq(i64, s.model.pad_token_id, 1));
    cr_expect(s.model.has_padding_idx);
}

Test(spec_encoders, gptj_has_limits_of_its_own)
{
    static const struct refusal cases[] = {
        {"model: {family: gptj, rotary_dim: 258}\n",
         "s.yaml:1:35: rotary_dim is 258, expected an even number up to 256, the elements of a head"},
        {"model: {family: gptj, rotary_dim: 63}\n",
         "s.yaml:1:35: rotary_dim is 63, expected an even number up to 256, the elements of a head"},
        {"model: {family: gptj}\ntrain: {attention: sdpa}\n",
         "s.yaml:2:20: train.attention is sdpa, expected eager, transformers' own for gptj"},
        {"model: {family: gptj}\ndata: {packing: yes}\n", "s.yaml:1:17: " BESIDE("data.packing", "gptj")},
        {"model: {family: gptj}\ntrain: {quantization: nf4, lora: {r: 8}}\n",
         "s.yaml:1:17: " BESIDE("train.quantization of this type", "gptj")},
        {"model: {family: gptj}\ndata: {seq: 2049}\n",
         "s.yaml:2:13: data.seq is 2049, expected at most n_positions = 2048: gptj has learned positions"},
    };
    CHECK_ALL("s.yaml", cases);
}

/* Where queries and keys turn a row may be longer than the model was made for. */
Test(spec_encoders, rotary_esm_reads_rows_of_any_length)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: esm, vocab_size: 33, pad_token_id: 1, position_embedding_type: rotary}\n"
                             "data: {seq: 3000}\n", &s);
    cr_expect(eq(i64, s.seq.values[0], 3000));
    spec_load_text("config.json", "{\"model_type\": \"esm\", \"vocab_size\": 33, \"pad_token_id\": 1, \"hidden_act\": "
                                  "\"relu\", \"position_embedding_type\": \"rotary\"}", &s);
    cr_expect(eq(int, (int)s.model.activation, (int)PLIM_ACTIVATION_GELU_PYTHON)); /* whatever hidden_act is */
    cr_expect(eq(int, (int)s.model.position_kind, (int)PLIM_POSITIONS_ROTARY));
}
