/* Specs that are right: every key, the command line's way of setting them, hashing. */
#include "support/spec_files.h"
#include "workloads/spec/family.h"
#include "workloads/spec/key.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GPT2 "model: {family: gpt2}\n"
#define LLAMA "model: {family: llama}\n"
#define SUITE(name) TestSuite(name, .fini = spec_files_remove)

SUITE(spec_read);
SUITE(spec_set);
SUITE(spec_hash);
SUITE(spec_docs);

static void set(struct plim_spec *spec, const char *key, const char *value)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_set(spec, key, value, &err), PLIM_OK), "%s", err.text);
}

static void resolve(struct plim_spec *spec)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_resolve(spec, &err), PLIM_OK), "%s", err.text);
}

/* --- reading ---------------------------------------------------------------------------------- */

Test(spec_read, takes_every_key)
{
    struct plim_spec s;
    spec_load_text("full.yaml",
                   "name: my run\n"
                   "device: sim:24GiB\n"
                   "model: {family: llama, hidden_size: 1024, num_attention_heads: 16}\n"
                   "data: {seq: [512, 1024], vocab_size: 5000, packing: yes}\n"
                   "train:\n"
                   "  precision: [fp32, bf16]\n"
                   "  optimizer: adamw-8bit\n"
                   "  checkpointing: full\n"
                   "  attention: eager\n"
                   "  micro_batch: 2:8:2\n"
                   "  accumulation: 4\n"
                   "  effective_batch: 256\n"
                   "  effective_batch_tolerance: 2%\n"
                   "  world: 8\n"
                   "  gpus_per_node: 4\n"
                   "  node_gb_per_second: 12.5\n"
                   "  host_speed: 1.5\n"
                   "  sharding: [ddp, zero2]\n"
                   "  reduction: each\n"
                   "  ddp: {bucket_cap_mb: 100, gradient_as_bucket_view: true, static_graph: true}\n"
                   "  zero: {rank: 3, reduce_bucket_size: 1000, overlap_comm: yes,\n"
                   "         contiguous_gradients: false}\n"
                   "  reshard_after_forward: no\n"
                   "  reduce_dtype: low\n"
                   "  clip: 1.0\n"
                   "  dropout: 0.25\n"
                   "  lora: {r: 16, targets: [q_proj, up_proj], dropout: 0.05}\n",
                   &s);
    cr_expect(eq(str, s.name, "my run"));
    cr_expect(eq(str, s.device, "sim:24GiB"));
    cr_expect(eq(i64, s.model.vocab_size, 5000));
    cr_expect(eq(i64, s.model.head_dim, 64));
    cr_expect(eq(sz, s.seq.count, 2));
    cr_expect(eq(i64, s.seq.values[1], 1024));
    cr_expect(eq(int, s.packing, PLIM_PACKING_YES));
    cr_expect(eq(int, s.precision.values[1], PLIM_PRECISION_BF16));
    cr_expect(eq(int, s.optimizer.values[0], PLIM_OPTIMIZER_ADAMW_8BIT));
    cr_expect(eq(sz, s.checkpointing.count, 1));
    cr_expect(eq(int, s.attention.values[0], PLIM_ATTENTION_EAGER));
    cr_expect(eq(sz, s.micro_batch.count, 4));
    cr_expect(eq(i64, s.micro_batch.values[3], 8));
    cr_expect(eq(i64, s.accumulation, 4));
    cr_expect(eq(i64, s.effective_batch, 256));
    cr_expect(eq(dbl, s.effective_batch_tolerance, 0.02));
    cr_expect(eq(i64, s.world, 8));
    cr_expect(eq(int, s.sharding.values[0], PLIM_SHARDING_DDP));
    cr_expect(eq(int, s.sharding.values[1], PLIM_SHARDING_ZERO2));
    cr_expect(eq(i64, s.ddp.bucket_mib, 100));
    cr_expect(eq(int, s.ddp.as_view, true));
    cr_expect(eq(int, s.ddp.is_static, true));
    cr_expect(eq(i64, s.rank, 3));
    cr_expect(eq(i64, s.zero.bucket_elements, 1000));
    cr_expect(eq(int, s.zero.overlap, PLIM_OVERLAP_YES));
    cr_expect(eq(int, s.zero.contiguous, false));
    cr_expect(eq(int, s.reduction, PLIM_REDUCTION_EACH));
    cr_expect(eq(i64, s.gpus_per_node, 4));
    cr_expect(eq(dbl, s.host_speed, 1.5));
    cr_expect(eq(dbl, s.node_bandwidth, 12.5));
    cr_expect(eq(int, s.resharding, PLIM_RESHARDING_NO));
    cr_expect(eq(int, s.reduce_type, PLIM_REDUCE_TYPE_LOW));
    cr_expect(eq(dbl, s.clip, 1.0));
    cr_expect(eq(dbl, s.model.dropout_attention, 0.25));
    cr_expect(eq(i64, s.lora.r, 16));
    cr_expect(eq(str, s.lora.targets, "q_proj,up_proj"));
    cr_expect(eq(dbl, s.lora.dropout, 0.05));
}

Test(spec_read, fills_what_is_left_out)
{
    struct plim_spec s;
    spec_load_text("short.yaml", GPT2, &s);
    cr_expect(eq(str, s.name, "short"));
    cr_expect(eq(sz, s.seq.count, 0));
    cr_expect(eq(sz, s.micro_batch.count, 0));
    cr_expect(eq(sz, s.precision.count, 1));
    cr_expect(eq(int, s.precision.values[0], PLIM_PRECISION_FP32));
    cr_expect(eq(int, s.optimizer.values[0], PLIM_OPTIMIZER_ADAMW_FUSED));
    cr_expect(eq(int, s.checkpointing.values[0], PLIM_CHECKPOINTING_NONE));
    cr_expect(eq(int, s.checkpointing.values[1], PLIM_CHECKPOINTING_FULL));
    cr_expect(eq(int, s.attention.values[0], PLIM_ATTENTION_SDPA));
    cr_expect(eq(int, s.packing, PLIM_PACKING_NO));
    cr_expect(eq(i64, s.world, 1));
    cr_expect(eq(i64, s.lora.r, 0));
    cr_expect(eq(dbl, s.clip, 0.0));
    cr_expect(eq(dbl, s.model.dropout_residual, 0.1));
}

Test(spec_read, bloom_is_eager_where_nothing_is_said)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: bloom}\n", &s);
    cr_assert(eq(sz, s.attention.count, 1));
    cr_expect(eq(int, s.attention.values[0], PLIM_ATTENTION_EAGER));
}

Test(spec_read, empty_sections_are_defaults)
{
    struct plim_spec a, b;
    spec_load_text("a.yaml", GPT2 "data:\ntrain:\n", &a);
    spec_load_text("b.yaml", GPT2, &b);
    cr_expect(spec_equal(&a, &b));
}

Test(spec_read, takes_the_schedule_of_lightning)
{
    struct plim_spec s;
    spec_load_text("s.yaml", GPT2 "train: {accumulation_schedule: {4: 2, 8: 1}}\n", &s);
    cr_assert(eq(sz, s.schedule_count, 3));
    cr_expect(eq(i64, s.schedule[0].epoch, 0));
    cr_expect(eq(i64, s.schedule[0].accumulation, 1));
    cr_expect(eq(i64, s.schedule[2].epoch, 8));
    cr_expect(eq(i64, s.schedule[1].accumulation, 2));
}

Test(spec_read, finds_a_config_beside_the_spec)
{
    struct plim_spec s;
    spec_file("tiny.json",
              "{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 48, \"n_head\": 4}");
    spec_load_text("s.yaml", "model: {hf: tiny.json, n_layer: 5}\n", &s);
    cr_expect(eq(i64, s.model.hidden_size, 48));
    cr_expect(eq(i64, s.model.layers, 5)); /* the section overrides the file */
}

Test(spec_read, finds_a_directory_beside_the_spec)
{
    struct plim_spec s;
    char path[256];
    snprintf(path, sizeof(path), "%s/model", spec_files_dir());
    cr_assert(eq(int, mkdir(path, 0700), 0));
    spec_file("model/config.json", "{\"model_type\": \"opt\"}");
    spec_load_text("s.yaml", "model: {hf: model}\n", &s);
    cr_expect(eq(int, s.model.family, PLIM_FAMILY_OPT));
}

Test(spec_read, is_named_by_its_directory)
{
    static const struct {
        const char *directory, *slashes, *name;
    } cases[] = {{"llama-x", "/", "llama-x"}, {"gr\xc3\xb6\xc3\x9f""e", "", "gr\xc3\xb6\xc3\x9f""e"},
                 {"a\xff\x01""b", "//", "a__b"}, {"\xc2\x85""c", "", "_c"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        struct plim_error err;
        char path[256], file[64];
        snprintf(path, sizeof(path), "%s/%s", spec_files_dir(), cases[i].directory);
        cr_assert(eq(int, mkdir(path, 0700), 0));
        snprintf(file, sizeof(file), "%s/config.json", cases[i].directory);
        spec_file(file, "{\"model_type\": \"opt\"}");
        strcat(path, cases[i].slashes);
        cr_assert(eq(int, plim_spec_load(path, &s, &err), PLIM_OK));
        cr_expect(eq(str, s.name, (char *)cases[i].name));
    }
}

Test(spec_read, takes_models_of_the_zoo)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {zoo: gemma-2-2b, num_hidden_layers: 3}\ndata: {seq: 777}\n",
                   &s);
    cr_expect(eq(i64, s.model.hidden_size, 2304));
    cr_expect(eq(i64, s.model.layers, 3));
    cr_expect(s.model.layer_is_sliding[2]);
    cr_expect(not(s.model.layer_is_sliding[4]));
    cr_expect(eq(i64, s.seq.values[0], 777));
    cr_expect(eq(str, s.name, "s")); /* the model comes from the zoo, the rest does not */
}

Test(spec_read, a_named_family_accepts_a_model_with_code_of_its_own)
{
    struct plim_spec s;
    spec_file("c.json", "{\"model_type\": \"phi3\", \"auto_map\": {\"AutoConfig\": "
                        "\"configuration_phi3.Phi3Config\"}}");
    spec_load_text("s.yaml", "model: {hf: c.json, family: phi3}\n", &s);
    cr_expect(eq(int, s.model.family, PLIM_FAMILY_PHI3));
}

Test(spec_read, takes_usual_names_for_those_of_a_family)
{
    struct plim_spec a, b;
    spec_load_text("a.yaml",
                   "model: {family: gpt2, n_embd: 96, n_layer: 3, n_head: 3, n_inner: 100}\n", &a);
    spec_load_text(
        "b.yaml",
        "model: {family: gpt2, hidden_size: 96, num_hidden_layers: 3, num_attention_heads: 3, "
        "intermediate_size: 100}\n",
        &b);
    cr_expect(spec_equal(&a, &b));
}

/* --- setting ---------------------------------------------------------------------------------- */

Test(spec_set, derived_dimensions_follow)
{
    struct plim_spec s;
    spec_load_text("s.yaml", GPT2, &s);
    set(&s, "model.n_embd", "1536");
    set(&s, "model.n_head", "16");
    resolve(&s);
    cr_expect(eq(i64, s.model.head_dim, 96));
    cr_expect(eq(i64, s.model.intermediate_size, 6144));
    cr_expect(eq(i64, s.model.kv_heads, 16));
}

Test(spec_set, sliding_layers_follow)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: qwen2, sliding_window: 512}\n", &s);
    cr_expect(eq(i64, s.model.sliding_window, 0));
    set(&s, "model.use_sliding_window", "true");
    set(&s, "model.max_window_layers", "30");
    resolve(&s);
    cr_expect(eq(i64, s.model.sliding_window, 512));
    cr_expect(not(s.model.layer_is_sliding[29]));
    cr_expect(s.model.layer_is_sliding[31]);
}

Test(spec_set, takes_what_the_command_line_writes)
{
    struct plim_spec s;
    spec_load_text("s.yaml", LLAMA, &s);
    set(&s, "data.seq", "512,1024, 2048");
    set(&s, "train.micro_batch", "1:4:1");
    set(&s, "train.precision", "bf16,fp16-mixed");
    set(&s, "train.checkpointing", "full");
    set(&s, "train.effective_batch_tolerance", "2%");
    set(&s, "train.accumulation_schedule", "{0: 4, 4: 2}");
    set(&s, "train.lora", "r=8,targets=q_proj+v_proj,dropout=0.1");
    set(&s, "train.clip", "0.5");
    set(&s, "device", "cuda:0,memory=24GiB");
    resolve(&s);
    cr_expect(eq(sz, s.seq.count, 3));
    cr_expect(eq(sz, s.micro_batch.count, 4));
    cr_expect(eq(int, s.precision.values[1], PLIM_PRECISION_FP16_MIXED));
    cr_expect(eq(sz, s.checkpointing.count, 1));
    cr_expect(eq(i64, s.schedule[1].accumulation, 2));
    cr_expect(eq(i64, s.lora.r, 8));
    cr_expect(eq(str, s.lora.targets, "q_proj,v_proj"));
    cr_expect(eq(dbl, s.lora.dropout, 0.1));
    cr_expect(eq(str, s.device, "cuda:0,memory=24GiB"));
}

Test(spec_set, parts_of_lora_are_taken_in_any_order)
{
    static const char *const orders[] = {"r=8,targets=q_proj+v_proj,dora=true,dropout=0.1",
                                         "dora=true,dropout=0.1,targets=q_proj+v_proj,r=8",
                                         "dropout=0.1,r=8,dora=true,targets=q_proj+v_proj"};
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct plim_spec s;
        spec_load_text("s.yaml", LLAMA, &s);
        set(&s, "train.lora", orders[i]);
        resolve(&s);
        cr_expect(s.lora.r == 8 && s.lora.dora && s.lora.dropout > 0.09, "%s", orders[i]);
        cr_expect(eq(str, s.lora.targets, "q_proj,v_proj"));
    }
}

Test(spec_set, null_takes_a_choice_back)
{
    struct plim_spec s;
    spec_load_text(
        "s.yaml",
        LLAMA "data: {seq: 512}\ntrain: {micro_batch: 4, accumulation: 2, clip: 1, lora: {r: 4}}\n",
        &s);
    set(&s, "data.seq", "null");
    set(&s, "train.micro_batch", "~");
    set(&s, "train.accumulation", "null");
    set(&s, "train.clip", "null");
    set(&s, "train.lora", "null");
    resolve(&s);
    cr_expect(eq(sz, s.seq.count, 0));
    cr_expect(eq(sz, s.micro_batch.count, 0));
    cr_expect(eq(i64, s.accumulation, 0));
    cr_expect(eq(dbl, s.clip, 0.0));
    cr_expect(eq(i64, s.lora.r, 0));
    cr_expect(eq(str, s.lora.targets, ""));
}

Test(spec_set, a_failure_changes_nothing)
{
    struct plim_spec s, before;
    spec_load_text("s.yaml", LLAMA, &s);
    memcpy(&before, &s, sizeof(s));
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_spec_set(&s, "train.lora", "r=8,targets=", &err), PLIM_SPEC));
    cr_expect(eq(int, memcmp(&before, &s, sizeof(s)), 0));
}

Test(spec_set, dropout_reaches_what_the_family_has)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: opt, layerdrop: 0.5}\n", &s);
    plim_spec_set_dropout(&s, 0.3);
    cr_expect(eq(dbl, s.model.dropout_residual, 0.3));
    cr_expect(eq(dbl, s.model.dropout_embedding, 0.0)); /* OPT has none */
    cr_expect(eq(dbl, s.model.layerdrop, 0.5));
    plim_spec_set_dropout(&s, 0);
    resolve(&s);
    cr_expect(eq(dbl, s.model.dropout_residual, 0.0));
    cr_expect(eq(dbl, s.model.layerdrop, 0.0));
}

Test(spec_set, quantization_is_a_text_whose_first_part_is_the_type)
{
    struct plim_spec s;
    struct plim_error err = PLIM_ERROR_INIT;
    spec_load_text("s.yaml", "model: {family: phi}\ntrain: {lora: {r: 4}}\n", &s);
    set(&s, "train.quantization", "nf4,double=true,compute=bf16,storage=bf16,prepare=false");
    resolve(&s);
    cr_expect(eq(int, (int)s.quantization.storage, PLIM_STORAGE_BF16));
    cr_expect(eq(int, (int)s.quantization.type, PLIM_QUANTIZATION_NF4));
    cr_expect(eq(int, (int)s.quantization.compute, PLIM_WEIGHTS_BF16));
    cr_expect(s.quantization.nested && !s.quantization.prepared);
    set(&s, "train.quantization", "type=fp4");
    cr_expect(eq(int, (int)s.quantization.type, PLIM_QUANTIZATION_FP4));
    static const char *const wrong[] = {"nf4,bf16", "nf4,double", "nf5", "double=", "nf4,bits=4", "nf4,storage=int8"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        cr_expect(eq(int, plim_spec_set(&s, "train.quantization", wrong[i], &err), PLIM_SPEC), "%s",
                  wrong[i]);
    set(&s, "train.quantization", "null");
    resolve(&s);
    cr_expect(eq(int, (int)s.quantization.type, PLIM_QUANTIZATION_NONE));
    cr_expect(s.quantization.prepared && !s.quantization.nested);
}

Test(spec_set, lora_without_targets_takes_those_of_peft)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: phi}\ntrain: {lora: {r: 4}}\n", &s);
    cr_expect(eq(str, s.lora.targets, "q_proj,v_proj,fc1,fc2"));
}

Test(spec_set, all_linear_is_every_linear_module_of_a_block)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: opt}\ntrain: {lora: {r: 4, targets: all-linear}}\n",
                   &s);
    /* no project_in: the embedding is as wide as the rest */
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,out_proj,fc1,fc2"));
}

/* peft knows it for the output only with task_type SEQ_CLS. */
Test(spec_set, all_linear_has_the_linear_of_a_classification)
{
    struct plim_spec s;
    spec_load_text("s.yaml",
                   "model: {family: roberta, task: classification}\ntrain: {lora: {r: 4, targets: all-linear}}\n", &s);
    cr_expect(eq(str, s.lora.targets, "query,key,value,dense,out_proj"));
    spec_load_text("s.yaml", "model: {family: roberta}\ntrain: {lora: {r: 4, targets: all-linear}}\n", &s);
    cr_expect(eq(str, s.lora.targets, "query,key,value,dense"));
}

Test(spec_set, all_linear_has_the_score_of_a_decoder)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: opt, task: classification}\ntrain: {lora: {r: 4, targets: all-linear}}\n",
                   &s);
    cr_expect(eq(str, s.lora.targets, "q_proj,k_proj,v_proj,out_proj,fc1,fc2,score"));
    spec_load_text("s.yaml", "model: {family: opt, task: classification}\ntrain: {lora: {r: 4, targets: [score]}}\n",
                   &s);
    cr_expect(eq(str, s.lora.targets, "score"));
}

/* --- heads ------------------------------------------------------------------------------------ */

Test(spec_heads, architectures_name_the_head)
{
    static const struct {
        const char *text;
        enum plim_task task;
    } cases[] = {
        {"{\"model_type\": \"bert\"}", PLIM_TASK_MASKED_LM},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"]}", PLIM_TASK_MASKED_LM},
        {"{\"model_type\": \"roberta\", \"architectures\": [\"RobertaForSequenceClassification\"]}",
         PLIM_TASK_CLASSIFICATION},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"]}",
         PLIM_TASK_CAUSAL_LM},
        {"{\"model_type\": \"llama\"}", PLIM_TASK_CAUSAL_LM},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"]}",
         PLIM_TASK_CLASSIFICATION},
        {"{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2ForSequenceClassification\"]}",
         PLIM_TASK_CLASSIFICATION},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        spec_load_text("config.json", cases[i].text, &s);
        cr_expect(eq(int, s.model.task, cases[i].task), "%s", cases[i].text);
    }
}

Test(spec_heads, labels_are_counted)
{
    static const struct {
        const char *text;
        int64_t labels;
    } cases[] = {
        {"{\"model_type\": \"bert\"}", 2},
        {"{\"model_type\": \"bert\", \"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}", 3},
        {"{\"model_type\": \"bert\", \"num_labels\": 7, \"id2label\": {\"0\": \"a\", \"1\": \"b\"}}", 7},
        {"{\"model_type\": \"bert\", \"id2label\": null}", 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec s;
        spec_load_text("config.json", cases[i].text, &s);
        cr_expect(eq(i64, s.model.labels, cases[i].labels), "%s", cases[i].text);
    }
}

Test(spec_heads, a_classifiers_dropout_is_the_models_where_it_has_none)
{
    struct plim_spec s;
    spec_load_text("s.yaml", "model: {family: bert, hidden_dropout_prob: 0.3}\n", &s);
    cr_expect(eq(dbl, s.model.dropout_classifier, 0.3));
    spec_load_text("s.yaml", "model: {family: bert, classifier_dropout: 0}\n", &s);
    cr_expect(eq(dbl, s.model.dropout_classifier, 0));
}

/* --- hash ------------------------------------------------------------------------------------- */

Test(spec_hash, layout_and_origin_do_not_count)
{
    struct plim_spec a, b, c;
    spec_load_text("a.yaml", "model: {family: gpt2, n_layer: 3}\ntrain: {clip: 1, world: 2}\n", &a);
    spec_load_text(
        "b.yaml",
        "# another\nname: other\ntrain:\n  world: 2\n  clip: 1.0\n  optimizer: [adamw-fused]\n"
        "model:\n  num_hidden_layers: 3\n  family: gpt2\n  n_inner: 3072\n",
        &b);
    spec_load_text("c.json", "{\"n_layer\": 3, \"model_type\": \"gpt2\"}", &c);
    set(&c, "train.clip", "1");
    set(&c, "train.world", "2");
    resolve(&c);
    cr_expect(eq(u64, a.hash, b.hash));
    cr_expect(eq(u64, a.hash, c.hash));
}

/* A model that has the key. */
static const char *model_with(const char *path)
{
    if (strncmp(path, "train.evaluation.", 17) == 0)
        return "model: {family: llama}\ntrain: {loop: trainer, evaluation: {batch: 3, batches: 5}}\n";
    if (strcmp(path, "train.label_smoothing") == 0 || strcmp(path, "train.empty_cache_steps") == 0)
        return "model: {family: llama}\ntrain: {loop: trainer}\n";
    if (strcmp(path, "data.prompt") == 0 || strcmp(path, "train.precomputed_reference") == 0)
        return "model: {family: llama}\ntrain: {loop: trl-dpo}\n";
    if (strcmp(path, "train.preference_loss") == 0)
        return "model: {family: llama}\ntrain: {loop: llamafactory-dpo}\n";
    if (strcmp(path, "train.rpo_alpha") == 0) return "model: {family: llama}\ntrain: {loop: swift-dpo}\n";
    if (strcmp(path, "train.center_rewards") == 0) return "model: {family: llama}\ntrain: {loop: trl-reward}\n";
    if (strncmp(path, "train.grpo.", 11) == 0)
        return "model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo}\n";
    if (strcmp(path, "train.fsdp_plan") == 0)
        return "model: {family: llama}\ntrain: {loop: trainer, world: 2, sharding: fsdp}\n";
    if (strcmp(path, "train.fsdp_wrap") == 0)
        return "model: {family: qwen3_vl, vision_out_hidden_size: 4096}\n"
               "train: {loop: trainer, world: 2, sharding: fsdp}\n";
    if (strcmp(path, "train.linear_attention") == 0 || strcmp(path, "train.causal_conv1d") == 0)
        return "model: {family: qwen3_5_text}\n";
    if (strcmp(path, "train.auto_class") == 0) return "model: {family: qwen3_5, vision_out_hidden_size: 4096}\n";
    if (strcmp(path, "train.freeze_encoder") == 0) return "model: {family: whisper}\n";
    if (strcmp(path, "train.freeze_vision") == 0) return "model: {family: qwen3_vl}\ndata: {images: 0}\n";
    if (strncmp(path, "data.image", 10) == 0)
        return "model: {family: qwen3_vl, vision_out_hidden_size: 4096}\n"
               "data: {images: 2, image_height: 64, image_width: 64}\n";
    if (strcmp(path, "data.target_seq") == 0) return "model: {family: mt5}\n";
    if (strcmp(path, "data.documents") == 0) return "model: {family: llama}\ndata: {packing: one-row}\n";
    if (strcmp(path, "data.padding") == 0)
        return "model: {family: bert}\ntrain: {lora: {r: 3, targets: [key], dropout: 0.3}}\n";
    return "model: {family: llama}\ntrain: {lora: {r: 3, targets: [k_proj], dropout: 0.3}}\n";
}

Test(spec_hash, every_key_of_training_counts)
{
    for (size_t i = 0; i < plim_spec_key_count(); i++) {
        const struct plim_spec_key *key = plim_spec_key_at(i);
        struct plim_spec a, b;
        if (!strchr(key->path, '.')) continue;
        spec_load_text("a.yaml", model_with(key->path), &a);
        spec_load_text("b.yaml", model_with(key->path), &b);
        if (strncmp(key->path, "train.quantization.", 19) == 0) {
            set(&a, "train.quantization", "fp4");
            set(&b, "train.quantization", "fp4");
            resolve(&a);
        }
        if (strncmp(key->path, "train.zero.", 11) == 0) {
            set(&a, "train.sharding", "zero2");
            set(&b, "train.sharding", "zero2");
            resolve(&a);
        }
        set(&b, key->path, key->example);
        resolve(&b);
        cr_expect(ne(u64, a.hash, b.hash), "%s", key->path);
    }
}

Test(spec_set, a_rank_is_one_of_the_job)
{
    struct plim_spec s;
    struct plim_error err = PLIM_ERROR_INIT;
    spec_load_text("s.yaml", "model: {family: llama}\ntrain: {world: 4, sharding: fsdp}\n", &s);
    set(&s, "train.zero.rank", "3");
    cr_assert(eq(int, plim_spec_resolve(&s, &err), PLIM_OK), "%s", err.text);
    set(&s, "train.zero.rank", "4");
    cr_assert(eq(int, plim_spec_resolve(&s, &err), PLIM_SPEC));
    cr_expect(eq(str, err.text, (char *)"train.zero.rank is 4, expected one of 4: 0 to 3"));
}

Test(spec_keys, examples_are_accepted)
{
    for (size_t i = 0; i < plim_spec_key_count(); i++) {
        struct plim_spec s;
        spec_load_text("s.yaml", model_with(plim_spec_key_at(i)->path), &s);
        set(&s, plim_spec_key_at(i)->path, plim_spec_key_at(i)->example);
        resolve(&s);
    }
}
