/* Keys of transformers' Trainer: what is read, and what is refused where it cannot be. */
#include "support/spec_files.h"
#include "workloads/spec/spec.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

TestSuite(spec_trainer, .fini = spec_files_remove);

struct asked {
    const char *train, *value, *why; /* NULL: it is taken */
};

static void ask(const char *key, const struct asked *asked)
{
    struct plim_spec s;
    struct plim_error err = PLIM_ERROR_INIT;
    char text[160];
    snprintf(text, sizeof(text), "model: {family: llama}\ntrain: {%s}\n", asked->train);
    spec_load_text("s.yaml", text, &s);
    enum plim_status st = plim_spec_set(&s, key, asked->value, &err);
    if (!st) st = plim_spec_resolve(&s, &err);
    cr_expect(eq(int, st, asked->why ? PLIM_SPEC : PLIM_OK), "%s, %s: %s", asked->train, asked->value, err.text);
    cr_expect(strstr(err.text, asked->why ? asked->why : "") != NULL, "%s", err.text);
}

static void ask_each(const char *key, const struct asked *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) ask(key, &cases[i]);
}

Test(spec_trainer, evaluations_are_read_as_text_and_refused_where_they_cannot_be)
{
    static const struct asked cases[] = {
        {"loop: trainer", "8", NULL},
        {"loop: trainer", "batch=8,keeps=logits,batches=40,accumulation=4,every=100", NULL},
        {"loop: trainer, world: 2, sharding: zero2, precision: bf16-mixed", "8", NULL},
        {"loop: plain", "8", "expected trainer"},
        {"loop: plain", "none", NULL},
        {"loop: trainer, evaluation: {batch: 8, every: 100}", "none", NULL},
        {"loop: trainer, evaluation: {batch: 8, every: 100}", "null", NULL},
        {"loop: trainer", "batch=8,at_start=true", NULL},
        {"loop: trainer", "every=100", "without its batch"},
        {"loop: trainer", "at_start=true", "without its batch"},
        {"loop: trainer, world: 2, sharding: zero3, precision: bf16-mixed", "batch=8,at_start=true", NULL},
        {"loop: trainer", "batch=8,keeps=logits", "keeps is logits, which add up, expected train.evaluation.batches"},
        {"loop: trainer", "batch=8,keeps=argmax", "keeps is argmax, which add up, expected train.evaluation.batches"},
        {"loop: trainer", "batch=8,keeps=argmax,batches=40", NULL},
        {"loop: trainer", "batch=8,keeps=logits,batch_metrics=true", NULL},
        {"loop: trainer", "batch_metrics=true", "without its batch"},
        {"loop: trainer, liger: true", "batch=8,keeps=logits,batches=4", "train.liger"},
        {"loop: trainer, liger: true", "batch=8,keeps=argmax,batches=4", "keeps is argmax and train.liger true"},
        {"loop: trainer, cut_cross_entropy: true", "batch=8,keeps=logits,batches=4", "train.cut_cross_entropy true"},
        {"loop: trainer, cut_cross_entropy: true", "batch=8", NULL},
        {"loop: trainer, world: 2, sharding: zero3, precision: bf16-mixed", "8", NULL},
        {"loop: trainer", "batch=8,batch=9", "each of its keys once"},
    };
    ask_each("train.evaluation", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, the_cache_is_emptied_by_trainer)
{
    static const struct asked cases[] = {
        {"loop: trainer", "1", NULL},
        {"loop: trainer", "null", NULL},
        {"loop: plain", "1", "train.empty_cache_steps is given and train.loop is plain, expected trainer"},
    };
    ask_each("train.empty_cache_steps", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, labels_are_smoothed_by_trainer)
{
    static const struct asked cases[] = {
        {"loop: trainer", "0.1", NULL},
        {"loop: trainer, world: 2, sharding: zero3, precision: bf16-mixed", "0.1", NULL},
        {"loop: plain", "0", NULL},
        {"loop: plain", "0.1", "train.label_smoothing is given and train.loop is plain, expected trainer"},
        {"loop: trainer", "1.5", "expected a number from 0 to 1"},
        {"loop: trainer, liger: true", "0.1", NULL},
        {"loop: trainer, liger: true, evaluation: {batch: 8}", "0.1", "with which Trainer's evaluations fail"},
        {"loop: trainer, world: 2, sharding: fsdp", "0.1", NULL},
    };
    ask_each("train.label_smoothing", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, what_sft_trainer_does_otherwise_is_refused)
{
    static const struct asked cases[] = {
        {"precision: bf16-mixed", "trl-sft", NULL},
        {"loop: trainer, evaluation: {batch: 8}, empty_cache_steps: 2", "trl-sft", NULL},
        {"world: 2, sharding: ddp", "trl-sft", NULL},
        {"world: 2, sharding: zero2, precision: bf16-mixed", "trl-sft", NULL},
        {"world: 2, sharding: zero3, precision: bf16-mixed", "trl-sft", NULL},
        {"world: 2, sharding: fsdp", "trl-sft", NULL},
        {"loop: trainer, label_smoothing: 0.1", "trl-sft", NULL},
        {"loop: trainer, label_smoothing: 0.1, world: 2, sharding: ddp", "trl-sft", NULL},
        {"loop: trainer, evaluation: {batch: 8, keeps: logits, batches: 4}", "trl-sft", NULL},
        {"loop: trainer, label_smoothing: 0.1, evaluation: {batch: 8, keeps: logits, batches: 4}", "trl-sft",
         "three times"},
    };
    ask_each("train.loop", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, what_dpo_trainer_does_otherwise_is_refused)
{
    static const struct asked cases[] = {
        {"precision: bf16-mixed", "trl-dpo", NULL},
        {"loop: trl-sft, evaluation: {batch: 8}, lora: {r: 8}", "trl-dpo", NULL},
        {"world: 2, sharding: ddp", "trl-dpo", NULL},
        {"world: 2, sharding: zero3, precision: bf16-mixed, lora: {r: 8}", "trl-dpo", NULL},
        {"world: 2, sharding: [zero1, zero2], precision: bf16-mixed", "trl-dpo", NULL},
        {"world: 2, sharding: zero3, precision: bf16-mixed", "trl-dpo", "zero3 without adapters"},
        {"loop: trl-dpo, world: 2, precomputed_reference: true", "trl-dpo", NULL},
        {"world: 2, sharding: fsdp, lora: {r: 8}", "trl-dpo", NULL},
        {"world: 2, sharding: fsdp", "trl-dpo", "fsdp without adapters"},
        {"loop: trainer, label_smoothing: 0.1", "trl-dpo",
         "train.loop is trl-dpo, which is not supported with train.label_smoothing"},
    };
    ask_each("train.loop", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, what_kto_trainer_does_otherwise_is_refused)
{
    static const struct asked cases[] = {
        {"loop: trainer, precision: bf16-mixed, evaluation: {batch: 2}", "trl-kto", NULL},
        {"world: 2, sharding: ddp, lora: {r: 8}, quantization: {type: nf4}", "trl-kto", NULL},
        {"loop: trl-kto, precomputed_reference: true", "trl-kto", NULL},
        {"lora: {r: 8}, quantization: {type: fp4}", "trl-kto", "another train.quantization.type than nf4"},
        {"lora: {r: 8}, quantization: {type: int8}", "trl-kto", "another train.quantization.type than nf4"},
        {"world: 2, sharding: zero2, precision: bf16-mixed", "trl-kto", "fsdp or ZeRO"},
        {"world: 2, sharding: fsdp, lora: {r: 8}", "trl-kto", "fsdp or ZeRO"},
        {"liger: true", "trl-kto", "train.liger"},
        {"loop: trainer, evaluation: {batch: 1}", "trl-kto", "train.evaluation.batch 1"},
        {"loop: trainer, evaluation: {batch: 2, keeps: logits, batches: 4}", "trl-kto", "train.evaluation.keeps"},
        {"loop: trainer, label_smoothing: 0.1", "trl-kto", "train.label_smoothing"},
    };
    ask_each("train.loop", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, what_orpo_and_cpo_trainer_do_otherwise_is_refused)
{
    static const struct asked cases[] = {
        {"loop: trainer, precision: bf16-mixed, evaluation: {batch: 2}", "trl-orpo", NULL},
        {"world: 2, sharding: ddp, lora: {r: 8}, precision: fp32", "trl-cpo", NULL},
        {"loop: trl-cpo, preference_loss: simpo, precision: bf16-mixed", "trl-cpo", NULL},
        {"precision: bf16", "trl-orpo", "another train.precision than fp32 and bf16-mixed"},
        {"precision: bf16-mixed, lora: {r: 8}, quantization: {type: nf4}", "trl-orpo", "a quantised base"},
        {"precision: bf16-mixed, world: 2, sharding: zero2", "trl-cpo", "fsdp or ZeRO"},
        {"precision: bf16-mixed, liger: true", "trl-orpo", "train.liger"},
        {"loop: trainer, precision: bf16-mixed, label_smoothing: 0.1", "trl-cpo", "train.label_smoothing"},
        {"loop: trainer, precision: bf16-mixed, evaluation: {batch: 2, keeps: logits, batches: 4}", "trl-orpo",
         "train.evaluation.keeps"},
    };
    ask_each("train.loop", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, what_llamafactorys_trainers_do_otherwise_is_refused)
{
    static const struct asked cases[] = {
        {"loop: llamafactory-rm, evaluation: {batch: 4}, lora: {r: 8}, quantization: nf4", "llamafactory-dpo", NULL},
        {"loop: trainer, evaluation: {batch: 8}, world: 2, sharding: ddp", "llamafactory-kto", NULL},
        {"loop: trainer, evaluation: {batch: 8}, lora: {r: 8}, quantization: nf4", "axolotl-dpo", NULL},
        {"world: 2, sharding: ddp", "axolotl-dpo", "train.loop is axolotl-dpo, which is not supported with ddp"},
        {"world: 2, sharding: zero2, precision: bf16-mixed", "llamafactory-dpo", "with fsdp or ZeRO"},
        {"world: 2, sharding: [ddp, fsdp]", "llamafactory-rm",
         "train.loop is llamafactory-rm, which is not supported with fsdp or ZeRO"},
        {"loop: trainer, label_smoothing: 0.1", "llamafactory-dpo", "with train.label_smoothing"},
        {"loop: trainer, evaluation: {batch: 8, keeps: logits, batches: 4}", "llamafactory-kto",
         "with train.evaluation.keeps"},
    };
    ask_each("train.loop", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, prompts_and_references_are_of_trl)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"model: {family: llama}\ntrain: {loop: trl-dpo, world: 2, sharding: zero1, precision: bf16-mixed, "
         "precomputed_reference: true}\n", "ZeRO and train.precomputed_reference"},
        {"model: {family: llama}\ndata: {prompt: 5}\n", "data.prompt is given and train.loop is plain"},
        {"model: {family: llama}\ndata: {prompt: 5}\ntrain: {loop: trainer}\n",
         "expected trl-sft, trl-dpo, trl-kto, trl-grpo, swift-sft, swift-dpo or swift-kto"},
        {"model: {family: llama}\ndata: {prompt: 5}\ntrain: {loop: trl-reward}\n",
         "data.prompt is given and train.loop is trl-reward"},
        {"model: {family: llama}\ndata: {prompt: 64, seq: [128, 64]}\ntrain: {loop: trl-sft}\n",
         "data.prompt is 64 and data.seq 64"},
        {"model: {family: llama}\ntrain: {loop: trl-sft, precomputed_reference: true}\n",
         "train.precomputed_reference is true and train.loop is trl-sft, expected trl-dpo or trl-kto"},
        {"model: {family: llama}\ntrain: {loop: llamafactory-rm, preference_loss: ipo}\n",
         "train.preference_loss is ipo and train.loop is llamafactory-rm, expected llamafactory-dpo"},
        {"model: {family: llama}\ntrain: {loop: axolotl-dpo, preference_loss: orpo}\n",
         "train.preference_loss is orpo and train.loop is axolotl-dpo"},
        {"model: {family: llama}\ntrain: {loop: axolotl-dpo, precomputed_reference: true}\n",
         "train.precomputed_reference is true and train.loop is axolotl-dpo"},
        {"model: {family: llama}\ndata: {prompt: 5}\ntrain: {loop: llamafactory-dpo}\n",
         "data.prompt is given and train.loop is llamafactory-dpo"},
        {"model: {family: llama}\ndata: {packing: one-row}\ntrain: {loop: llamafactory-kto}\n",
         "train.loop is llamafactory-kto, which is not supported with data.packing"},
        {"model: {family: mixtral}\ntrain: {loop: llamafactory-dpo}\n",
         "llamafactory-dpo, which is not supported with experts"},
        {"model: {family: bert}\ntrain: {loop: llamafactory-rm}\n", "not a causal language model"},
        {"model: {family: llama}\ndata: {prompt: 5}\ntrain: {loop: swift-orpo}\n",
         "data.prompt is given and train.loop is swift-orpo"},
        {"model: {family: llama}\ntrain: {loop: swift-dpo, preference_loss: simpo}\n",
         "train.preference_loss is simpo and train.loop is swift-dpo"},
        {"model: {family: llama}\ntrain: {loop: swift-kto, rpo_alpha: 0.1}\n",
         "train.rpo_alpha is given and train.loop is swift-kto, expected swift-dpo"},
        {"model: {family: llama}\ntrain: {loop: swift-cpo, center_rewards: 0.01}\n",
         "train.loop is swift-cpo, expected trl-reward or swift-rm"},
        {"model: {family: llama}\ntrain: {loop: swift-kto, liger: true}\n",
         "swift-kto, which is not supported with train.liger"},
        {"model: {family: llama}\ntrain: {loop: swift-dpo, precision: bf16}\n",
         "swift-dpo, which is not supported with another train.precision than fp32 and bf16-mixed"},
        {"model: {family: llama}\ntrain: {loop: swift-dpo, precision: bf16-mixed, quantization: {type: int8}, "
         "lora: {r: 8}}\n", "swift-dpo, which is not supported with a base in 8 bits"},
        {"model: {family: llama}\ndata: {packing: one-row}\ntrain: {loop: swift-dpo}\n",
         "swift-dpo, which is not supported with data.packing"},
        {"model: {family: llama}\ntrain: {loop: swift-rm, precision: bf16-mixed, sharding: zero2, world: 2}\n",
         "swift-rm, which is not supported with fsdp or ZeRO"},
        {"model: {family: bert}\ntrain: {loop: swift-rm}\n", "swift-rm, which is not supported with an encoder"},
        {"model: {family: cohere}\ntrain: {loop: swift-rm}\n", "transformers has no classification of cohere"},
        {"model: {family: llama}\ntrain: {loop: swift-sft, liger: true}\n",
         "swift-sft, which is not supported with train.liger"},
        {"model: {family: llama}\ndata: {packing: one-row}\ntrain: {loop: swift-sft}\n",
         "train.attention is sdpa, and train.loop swift-sft with data.packing one-row, expected flash_attention_2"},
        {"model: {family: llama}\ndata: {packing: yes}\ntrain: {loop: swift-sft}\n",
         "data.packing is yes and train.loop is swift-sft, expected one-row"},
        {"model: {family: llama}\ntrain: {loop: swift-sft, label_smoothing: 0.1}\n",
         "swift-sft, which is not supported with train.label_smoothing"},
        {"model: {family: qwen2_5_vl}\ntrain: {loop: swift-sft}\n",
         "swift-sft, which is not supported with a model of images and text"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = spec_refusal("s.yaml", cases[i].text);
        cr_expect(strstr(why, cases[i].why) != NULL, "%s", why);
    }
}

/* RewardTrainer loads AutoModelForSequenceClassification with num_labels=1, whatever is published. */
Test(spec_trainer, rewards_are_of_one_label)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"model: {family: bert}\ntrain: {loop: trl-reward}\n", "with an encoder"},
        {"model: {family: cohere}\ntrain: {loop: trl-reward}\n", "transformers has no classification of cohere"},
        {"model: {family: llama}\ndata: {packing: one-row}\ntrain: {loop: trl-reward}\n",
         "data.packing, which it does not have"},
        {"model: {family: llama}\ntrain: {loop: trl-reward, label_smoothing: 0.1}\n", "has no labels"},
        {"model: {family: llama}\ntrain: {loop: trl-reward, evaluation: {batch: 8, keeps: logits, batches: 4}}\n",
         "which are rewards"},
        {"model: {family: llama}\ntrain: {loop: trl-dpo, center_rewards: 0.01}\n",
         "train.center_rewards is given and train.loop is trl-dpo, expected trl-reward"},
        {"model: {family: llama}\ntrain: {loop: trl-reward, liger: true}\n", "train.liger_kernels.loss none"},
        {"model: {family: llama, task: classification}\ntrain: {loop: trl-sft}\n", "not a causal language model"},
        {"model: {family: llama, task: classification}\ndata: {packing: one-row}\n", "which has one label a row"},
        {"model: {family: llama, task: classification}\ndata: {packing: yes}\n", "which has one label a row"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = spec_refusal("s.yaml", cases[i].text);
        cr_expect(strstr(why, cases[i].why) != NULL, "%s", why);
    }
    struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
#define LLAMA "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"], "
    spec_load_text("config.json", LLAMA "\"id2label\": {\"0\": \"a\"}, \"problem_type\": \"regression\"}", &spec);
    cr_expect(eq(i64, spec.model.labels, 1));
    cr_expect(eq(int, plim_spec_resolve(&spec, &err), PLIM_OK));
    spec.loop = PLIM_LOOP_TRL_REWARD;
    cr_expect(eq(int, plim_spec_resolve(&spec, &err), PLIM_OK));
    spec_load_text("l.yaml", "model: {family: llama}\ntrain: {loop: trl-reward, liger: true, "
                   "liger_kernels: {loss: none}}\n", &spec);
    spec_load_text("r.yaml", "model: {family: gpt2}\ntrain: {loop: trl-reward, evaluation: {batch: 8}, "
                   "quantization: nf4, lora: {r: 8, modules_to_save: [score]}}\n", &spec);
    cr_expect(eq(int, spec.model.task, PLIM_TASK_CLASSIFICATION));
    cr_expect(eq(i64, spec.model.labels, 1));
    cr_expect(eq(dbl, spec.model.dropout_residual, 0));
    cr_expect(eq(i64, plim_loop_rows(spec.loop), 2));
    spec_load_text("config.json", LLAMA "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}", &spec);
    cr_expect(eq(i64, spec.model.labels, 3));
}

/* A job whose model generates its answers itself, without the end of its `train` */
#define OWN(family, more)                                                                                              \
    "model: {family: " family more "}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, grpo: {vllm: none}"

Test(spec_trainer, answers_are_generated_for_whole_prompts)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"model: {family: llama}\ntrain: {loop: trl-grpo}\n", "expected the tokens of a prompt"},
        {"model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, effective_batch: 12}\n",
         "train.grpo.generations is 8, which does not divide the 12 samples"},
        {"model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, effective_batch: 12, "
         "grpo: {generations: 9, updates: 2}}\n", "which does not divide the 24 samples"},
        {"model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, world: 2, sharding: fsdp}\n",
         "whose gathered weights would be sent to vLLM"},
        {"model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, evaluation: {batch: 8}}\n",
         "which generates answers, too"},
        {"model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, label_smoothing: 0.1}\n",
         "which it does not have"},
        {"model: {family: llama}\ndata: {prompt: 9, packing: one-row}\ntrain: {loop: trl-grpo}\n", "data.packing"},
        {"model: {family: bert}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo}\n", "not a causal language model"},
        {"model: {zoo: qwen3-30b-a3b}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo}\n", "experts, which would be sent"},
        {"model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, lora: {r: 8}, quantization: nf4}\n",
         "whose codes would be sent to vLLM"},
        {"model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, lora: {r: 8, dora: true}}\n", "lora.dora"},
        {OWN("opt", "") "}\n", "bloom or opt"},
        {OWN("bloom", "") "}\n", "bloom or opt"},
        {OWN("qwen3_5_text", "") "}\n", "linear attention"},
        {OWN("llama", ", rope_scaling: {rope_type: dynamic, factor: 2.0}") "}\n", "rope_type of dynamic or longrope"},
        {OWN("gpt2", ", reorder_and_upcast_attn: true") ", attention: eager}\n", "reorder_and_upcast_attn"},
        {OWN("llama", "") ", attention: flash_attention_2}\n", "flash_attention_2"},
        {OWN("llama", "") ", torch: 2.15}\n", "another PyTorch or transformers"},
        {OWN("llama", "") ", lora: {r: 8}, quantization: int8}\n", "a base in 8 bits"},
        {OWN("llama", "") ", world: 2, sharding: zero3}\n", "gathers the weights for a generation"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = spec_refusal("s.yaml", cases[i].text);
        cr_expect(strstr(why, cases[i].why) != NULL, "%s", why);
    }
    struct plim_spec spec;
    spec_load_text("g.yaml", "model: {family: llama}\ndata: {prompt: 9}\ntrain: {loop: trl-grpo, effective_batch: 12, "
                   "grpo: {generations: 6, updates: 2, iterations: 3}}\n", &spec);
    cr_expect(eq(i64, spec.grpo.iterations, 3));
    cr_expect(eq(int, spec.grpo.correction, PLIM_GRPO_CORRECTION_SEQUENCE_MASK));
}

Test(spec_trainer, dpo_trainer_drops_nothing)
{
    struct plim_spec sft, dpo;
    spec_load_text("s.yaml", "model: {zoo: gpt2-124m}\ntrain: {loop: trl-sft}\n", &sft);
    spec_load_text("d.yaml", "model: {zoo: gpt2-124m}\ntrain: {loop: trl-dpo}\n", &dpo);
    cr_expect(sft.model.dropout_residual > 0 && sft.model.dropout_embedding > 0 && sft.model.dropout_attention > 0);
    cr_expect(dpo.model.dropout_residual == 0 && dpo.model.dropout_embedding == 0 && dpo.model.dropout_attention == 0);
}

Test(spec_trainer, sft_trainer_trains_causal_models)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"model: {family: bert}\ntrain: {loop: trl-sft}\n", "not a causal language model"},
        {"model: {zoo: qwen3-30b-a3b}\ndata: {packing: one-row}\ntrain: {loop: trl-sft}\n", "without a mask"},
        {"model: {zoo: qwen3-30b-a3b}\ntrain: {loop: trl-dpo}\n", "experts, whose balance"},
        {"model: {zoo: qwen3-30b-a3b}\ntrain: {loop: trl-sft, label_smoothing: 0.1}\n", "experts"},
        {"model: {family: llama}\ndata: {packing: yes}\ntrain: {loop: trl-sft}\n", "data.packing"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = spec_refusal("s.yaml", cases[i].text);
        cr_expect(strstr(why, cases[i].why) != NULL, "%s", why);
    }
}

Test(spec_trainer, axolotl_shards_its_own_way)
{
    static const struct asked cases[] = {
        {"loop: trainer, world: 2, sharding: fsdp, precision: bf16-mixed, weights: bf16", "axolotl", NULL},
        {"loop: trainer, world: 2, sharding: fsdp, lora: {r: 8}", "axolotl", NULL},
        {"loop: trainer, world: 2, sharding: fsdp, lora: {r: 8, dora: true}", "axolotl", "whose magnitudes are units"},
        {"loop: trainer, world: 2, sharding: fsdp, lora: {r: 8}, quantization: nf4", "axolotl", "codes in uint8"},
        {"loop: trainer, world: 2, sharding: fsdp, lora: {r: 8}, quantization: {type: nf4, storage: bf16}", "axolotl",
         NULL},
        {"loop: trl-sft, world: 2, sharding: fsdp", "axolotl", "expected train.loop trainer and train.sharding fsdp"},
        {"loop: trainer, world: 2, sharding: zero2, precision: bf16-mixed", "axolotl", "expected train.loop trainer"},
    };
    ask_each("train.fsdp_plan", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, casts_behind_loading_are_of_whole_models_under_autocast)
{
    static const struct asked cases[] = {
        {"loop: trainer, precision: bf16-mixed, weights: bf16", "kept", NULL},
        {"loop: trainer, precision: bf16", "undone", NULL},
        {"loop: trainer, precision: bf16", "kept", "train.precision bf16, whose layers fail on what is in fp32"},
        {"loop: trainer, world: 2, sharding: zero2, precision: bf16-mixed", "kept", NULL},
        {"loop: trainer, world: 2, sharding: zero3, precision: bf16-mixed", "undone", "beside fsdp or zero3"},
        {"loop: trainer, world: 2, sharding: [ddp, fsdp]", "undone", "beside fsdp or zero3"},
    };
    ask_each("train.upcast", cases, sizeof(cases) / sizeof(cases[0]));
}

Test(spec_trainer, what_is_loaded_onto_the_gpu_is_whole_there)
{
    static const struct asked cases[] = {
        {"loop: trainer", "loaded", NULL},
        {"loop: trainer, world: 2, sharding: ddp", "loaded", NULL},
        {"loop: trl-sft", "loaded", NULL},
        {"loop: trainer, precision: bf16-mixed, weights: fp32", "cast", NULL},
        {"loop: trainer, precision: bf16-mixed, weights: bf16", "cast", "expected loaded"},
        {"loop: trainer, precision: bf16-mixed, weights: fp32, lora: {r: 8}", "cast", "expected loaded"},
        {"loop: trl-sft, world: 2, sharding: ddp", "loaded", "load on the host"},
        {"loop: trainer, world: 2, sharding: zero2, precision: bf16-mixed", "loaded", NULL},
        {"loop: trainer, world: 2, sharding: zero3, precision: bf16-mixed", "loaded", "partitions it"},
        {"loop: trainer, world: 2, sharding: fsdp", "loaded", "load on the host"},
    };
    ask_each("train.made_on", cases, sizeof(cases) / sizeof(cases[0]));
}
