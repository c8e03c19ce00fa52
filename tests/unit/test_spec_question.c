/* From a spec to the question that is searched: its axes, the batch, and what may be advised. */
#include "autotune/run/spec_question.h"
#include "autotune/search/space.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static struct plim_spec spec;
static struct plim_spec_question question;

static void load(const char *name)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_load(name, &spec, &err), PLIM_OK), "%s", err.text);
}

static void set(const char *key, const char *value)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_set(&spec, key, value, &err), PLIM_OK), "%s", err.text);
}

static void make(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_spec_resolve(&spec, &err), PLIM_OK), "%s", err.text);
    plim_spec_question_make(&spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
}

static const struct plim_axis *axis(const char *name)
{
    int i = plim_axes_find(&question.question.axes, name);
    cr_assert(ge(int, i, 0), "%s", name);
    return &question.question.axes.axis[i];
}

Test(spec_question, an_axis_for_everything_that_may_be_chosen)
{
    load("gpt2-124m");
    set("data.seq", "[256, 64]");
    set("train.precision", "[bf16, fp32]");
    set("train.checkpointing", "full");
    make();
    cr_expect(eq(sz, question.question.axes.count, 11));
    cr_expect(eq(int, question.question.axes.seq, plim_axes_find(&question.question.axes, "seq")));
    cr_assert(eq(sz, axis("seq")->count, 2));
    cr_expect(eq(i64, axis("seq")->values[0], 256));
    cr_expect(eq(i64, axis("seq")->values[1], 64));
    cr_expect(eq(str, (char *)axis("seq")->unit, (char *)"tokens"));
    cr_expect(not(question.question.seq_by_default));
    cr_assert(eq(sz, axis("precision")->count, 2));
    cr_expect(eq(i64, axis("precision")->values[0], PLIM_PRECISION_BF16));
    cr_expect(eq(i64, axis("precision")->values[1], PLIM_PRECISION_FP32));
    cr_expect(eq(str, (char *)axis("precision")->unit, (char *)""));
    cr_assert(eq(sz, axis("checkpointing")->count, 1));
    cr_expect(eq(i64, axis("checkpointing")->values[0], PLIM_CHECKPOINTING_FULL));
    cr_expect(eq(sz, axis("sharding")->count, 1));
    cr_expect(axis("lora")->is_hidden && !axis("seq")->is_hidden);
    cr_expect(eq(i64, axis("lora")->values[0], 0));
}

/* If they are not requested, nothing is reported about them. */
Test(spec_question, ligers_kernels_are_an_axis_once_they_are_asked_for)
{
    load("llama-3.2-1b");
    make();
    cr_expect(axis("liger")->is_hidden);
    set("train.liger", "[false, true]");
    make();
    cr_expect(eq(sz, axis("liger")->count, 2));
    cr_expect(not(axis("liger")->is_hidden));
    set("train.liger", "true");
    make();
    cr_expect(eq(sz, axis("liger")->count, 1));
    cr_expect(not(axis("liger")->is_hidden));
}

/* As a caller may make a spec by hand. */
Test(spec_question, an_axis_without_values_has_the_first_name)
{
    load("gpt2-124m");
    make();
    spec.precision.count = 0;
    spec.precision.values[0] = PLIM_PRECISION_FP16;
    plim_spec_question_make(&spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
    cr_assert(eq(sz, axis("precision")->count, 1));
    cr_expect(eq(i64, axis("precision")->values[0], 0));
}

Test(spec_question, without_a_sequence_it_is_the_models_or_4096)
{
    load("gpt2-124m");
    spec.seq.count = 0;
    make();
    cr_expect(question.question.seq_by_default);
    cr_expect(eq(i64, question.question.seq_most, 1024));
    cr_assert(eq(sz, axis("seq")->count, 1));
    cr_expect(eq(i64, axis("seq")->values[0], 1024));
    load("llama-3-8b");
    spec.seq.count = 0;
    make();
    cr_expect(eq(i64, question.question.seq_most, 8192));
    cr_expect(eq(i64, axis("seq")->values[0], PLIM_DEFAULT_SEQ_MAX));
    spec.model.positions = 0;
    plim_spec_question_make(&spec, PLIM_OBJECTIVE_THROUGHPUT, &question);
    cr_expect(eq(i64, question.question.seq_most, PLIM_SEQ_MAX));
    cr_expect(eq(i64, axis("seq")->values[0], PLIM_DEFAULT_SEQ_MAX));
}

Test(spec_question, the_batch_is_the_specs)
{
    load("gpt2-124m");
    set("train.accumulation_schedule", "{0: 4, 3: 2}");
    set("train.effective_batch_tolerance", "0.1");
    make();
    spec.world = 3;
    spec.effective_batch = 96;
    spec.accumulation = 5;
    spec.micro_batch.count = 1;
    spec.micro_batch.values[0] = 7;
    struct plim_batch_request batch;
    plim_spec_question_batch(&spec, &batch);
    cr_expect(eq(i64, batch.world, 3));
    cr_expect(eq(i64, batch.effective_batch, 96));
    cr_expect(eq(dbl, batch.effective_batch_tolerance, 0.1));
    cr_expect(eq(i64, batch.accumulation, 5));
    cr_assert(eq(sz, batch.listed_count, 1));
    cr_expect(eq(i64, batch.listed[0], 7));
    cr_assert(eq(sz, batch.phase_count, 2));
    cr_expect(eq(i64, batch.phases[0].epoch, 0));
    cr_expect(eq(i64, batch.phases[0].accumulation, 4));
    cr_expect(eq(i64, batch.phases[1].epoch, 3));
    cr_expect(eq(i64, batch.phases[1].accumulation, 2));
    cr_expect(eq(i64, batch.first, 0));
    spec.loop = PLIM_LOOP_TRL_KTO; /* refuses one row */
    plim_spec_question_batch(&spec, &batch);
    cr_expect(eq(i64, batch.first, 2));
}

/* All that may be advised, in its order: what it is, from which values, and whether it is combined. */
Test(spec_question, what_is_advised_and_from_where)
{
    static const struct {
        const char *text, *axis;
        uint64_t from;
        int64_t to;
        bool combines;
    } changes[] = {
        {"attention sdpa", "attention", 1 << PLIM_ATTENTION_EAGER, PLIM_ATTENTION_SDPA, true},
        {"optimizer adamw-fused", "optimizer", 1 << PLIM_OPTIMIZER_ADAMW,
         PLIM_OPTIMIZER_ADAMW_FUSED, false},
        {"checkpointing full", "checkpointing", ~(UINT64_C(1) << PLIM_CHECKPOINTING_FULL),
         PLIM_CHECKPOINTING_FULL, true},
        {"precision bf16-mixed", "precision", 1 << PLIM_PRECISION_FP32 | 1 << PLIM_PRECISION_TF32,
         PLIM_PRECISION_BF16_MIXED, true},
        {"optimizer adamw-8bit", "optimizer",
         1 << PLIM_OPTIMIZER_ADAMW | 1 << PLIM_OPTIMIZER_ADAMW_FUSED, PLIM_OPTIMIZER_ADAMW_8BIT,
         true},
        {"precision bf16", "precision",
         1 << PLIM_PRECISION_FP32 | 1 << PLIM_PRECISION_TF32 | 1 << PLIM_PRECISION_BF16_MIXED |
             1 << PLIM_PRECISION_FP16_MIXED,
         PLIM_PRECISION_BF16, true},
        {"LoRA r=16 on q_proj v_proj", "lora", 1, 16, true},
    };
    load("llama-3-8b");
    make();
    const struct plim_question *q = &question.question;
    cr_expect(q->can_advise);
    cr_assert(eq(sz, q->change_count, sizeof(changes) / sizeof(changes[0])));
    for (size_t i = 0; i < q->change_count; i++) {
        const struct plim_change *c = &q->changes[i];
        cr_expect(eq(str, (char *)c->text, (char *)changes[i].text));
        cr_expect(eq(int, (int)c->axis, plim_axes_find(&q->axes, changes[i].axis)), "%s", c->text);
        cr_expect(eq(u64, c->from, changes[i].from), "%s", c->text);
        cr_expect(eq(i64, c->to, changes[i].to), "%s", c->text);
        cr_expect(eq(int, c->combines, changes[i].combines), "%s", c->text);
    }
    cr_expect(eq(int, (int)q->spread.sharding, plim_axes_find(&q->axes, "sharding")));
    cr_expect(eq(int, (int)q->spread.world, plim_axes_find(&q->axes, "world")));
    cr_expect(eq(i64, q->spread.shardings[0], PLIM_SHARDING_FSDP));
    cr_expect(eq(i64, q->spread.reserve_bytes, INT64_C(512) << 20));
}

/* Of FSDP2 only as many GPUs as there are experts have some. */
Test(spec_question, what_one_gpu_cannot_run)
{
    static const struct {
        const char *sharding, *world;
        bool is_sharded;
    } cases[] = {{"auto", "1", false}, {"auto", "4", false},         {"ddp", "4", false},
                 {"zero1", "4", true}, {"fsdp", "4", true},          {"[ddp, zero3]", "4", false},
                 {"[fsdp, ddp]", "4", false}, {"[zero1, fsdp]", "4", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        load("gpt2-124m");
        set("train.world", cases[i].world);
        set("train.sharding", cases[i].sharding);
        make();
        cr_expect(eq(int, plim_run_is_sharded(&spec), cases[i].is_sharded), "%s", cases[i].sharding);
    }
    cr_expect(not(plim_run_is_sharded(&(struct plim_spec){.world = 1})), "nothing says how");
}

Test(spec_question, experts_are_shared_by_zero3_first)
{
    load("mixtral-8x7b");
    make();
    const struct plim_spread *spread = &question.question.spread;
    cr_assert(eq(sz, spread->count, 3));
    cr_expect(eq(i64, spread->shardings[0], PLIM_SHARDING_ZERO3));
    cr_expect(eq(i64, spread->shardings[1], PLIM_SHARDING_FSDP));
    cr_expect(eq(i64, spread->shardings[2], PLIM_SHARDING_ZERO2));
}

Test(spec_question, lora_is_advised_on_the_one_default_target_of_a_family)
{
    load("gpt2-124m");
    make();
    const struct plim_change *last = &question.question.changes[question.question.change_count - 1];
    cr_expect(eq(str, (char *)last->text, (char *)"LoRA r=16 on c_attn"));
}

Test(spec_question, a_setting_becomes_the_engines)
{
    struct plim_train_setting training;
    struct plim_error err = PLIM_ERROR_INIT;
    load("llama-3-8b");
    spec.packing = PLIM_PACKING_ONE_ROW;
    spec.documents = 5;
    spec.clip = 0.5;
    spec.linear_attention = (struct plim_linear_attention){PLIM_DELTA_RULE_FLA, .causal_conv1d = true};
    spec.cut_cross_entropy = true;
    spec.upcast = PLIM_UPCAST_UNDONE;
    spec.liger_kernels = (struct plim_liger_kernels){.rope = PLIM_LIGER_KERNEL_LEFT,
                                                     .loss = PLIM_LIGER_CHOICE_OF_LOGITS};
    make();
    const struct plim_axes *axes = &question.question.axes;
    struct plim_setting setting = plim_space_first(axes);
    setting.micro_batch = 3;
    setting.accumulation = 2;
    setting.value[plim_axes_find(axes, "seq")] = 640;
    setting.value[plim_axes_find(axes, "precision")] = PLIM_PRECISION_FP16;
    setting.value[plim_axes_find(axes, "checkpointing")] = PLIM_CHECKPOINTING_FULL;
    setting.value[plim_axes_find(axes, "lora")] = 8;
    cr_assert(eq(int, plim_spec_question_setting(&question, &setting, &training, &err), PLIM_OK));
    cr_expect(eq(i64, training.micro_batch, 3));
    cr_expect(eq(i64, training.accumulation, 2));
    cr_expect(eq(i64, training.seq, 640));
    cr_expect(eq(int, training.packing, PLIM_PACKING_ONE_ROW));
    cr_expect(eq(i64, training.documents, 5));
    cr_expect(eq(dbl, training.clip, 0.5));
    cr_expect(eq(int, training.linear_attention.rule, PLIM_DELTA_RULE_FLA));
    cr_expect(eq(int, training.linear_attention.causal_conv1d, true));
    cr_expect(training.cut_cross_entropy);
    cr_expect(eq(int, training.upcast, PLIM_UPCAST_UNDONE));
    cr_expect(eq(int, training.liger_kernels.rope, PLIM_LIGER_KERNEL_LEFT));
    cr_expect(eq(int, training.liger_kernels.loss, PLIM_LIGER_CHOICE_OF_LOGITS));
    cr_expect(eq(int, training.precision, PLIM_PRECISION_FP16));
    cr_expect(eq(int, training.checkpointing, PLIM_CHECKPOINTING_FULL));
    cr_expect(eq(i64, training.lora.r, 8));
    cr_expect(eq(str, training.lora.targets, (char *)"q_proj,v_proj")); /* peft's for this family */
    setting.value[plim_axes_find(axes, "lora")] = 0;
    cr_assert(eq(int, plim_spec_question_setting(&question, &setting, &training, &err), PLIM_OK));
    cr_expect(eq(str, training.lora.targets, (char *)""));
}

Test(spec_question, what_is_no_value_is_refused)
{
    struct plim_train_setting training;
    load("gpt2-124m");
    make();
    const struct plim_axes *axes = &question.question.axes;
    struct plim_setting good = plim_space_first(axes), bad;
    const int64_t refused[][3] = {
        {plim_axes_find(axes, "seq"), 0, 1},
        {plim_axes_find(axes, "precision"), -1, PLIM_PRECISION_COUNT},
        {plim_axes_find(axes, "optimizer"), -1, PLIM_OPTIMIZER_COUNT},
        {plim_axes_find(axes, "checkpointing"), -1, PLIM_CHECKPOINTING_COUNT}};
    good.micro_batch = good.accumulation = 1;
    cr_expect(eq(int, plim_spec_question_setting(&question, &good, &training, NULL), PLIM_OK));
    for (size_t i = 0; i < 4; i++) {
        struct plim_error err = PLIM_ERROR_INIT;
        bad = good;
        bad.value[refused[i][0]] = refused[i][1];
        cr_expect(
            eq(int, plim_spec_question_setting(&question, &bad, &training, &err), PLIM_INVALID));
        cr_expect(strstr(err.text, axes->axis[refused[i][0]].name) != NULL, "%s", err.text);
        bad.value[refused[i][0]] = refused[i][2] - (i > 0);
        cr_expect(eq(int, plim_spec_question_setting(&question, &bad, &training, NULL), PLIM_OK));
        bad.value[refused[i][0]] = refused[i][2];
        cr_expect(eq(int, plim_spec_question_setting(&question, &bad, &training, NULL),
                     i ? PLIM_INVALID : PLIM_OK));
    }
    bad = good;
    bad.micro_batch = 0;
    cr_expect(eq(int, plim_spec_question_setting(&question, &bad, &training, NULL), PLIM_INVALID));
    bad = good;
    bad.accumulation = 0;
    cr_expect(eq(int, plim_spec_question_setting(&question, &bad, &training, NULL), PLIM_INVALID));
}
