/* One training run on a simulated GPU: repeatable, and with a verdict for any memory. */
#include "replay_bench.h"
#include "devices/host/host.h"
#include <math.h>

static const struct plim_train_setting plain = {.micro_batch = 2,
                                          .seq = 128,
                                          .accumulation = 1,
                                          .precision = PLIM_PRECISION_BF16_MIXED,
                                          .checkpointing = PLIM_CHECKPOINTING_FULL};

static struct bench bench;
static struct plim_replay first, again, limited;

Test(replay, repeats_to_the_byte_and_the_second)
{
    open_bench(&bench, "gpt2-124m");
    run(&bench, &plain, &first);
    run(&bench, &plain, &again);
    cr_expect_eq(memcmp(&first, &again, sizeof first), 0);
    close_bench(&bench);
}

Test(replay, steps_after_the_second_are_alike)
{
    open_bench(&bench, "gpt2-124m");
    run(&bench, &plain, &first);
    cr_expect_eq(first.step[2].end_allocated_bytes, first.step[3].end_allocated_bytes);
    cr_expect_eq(first.step[2].peak_reserved_bytes, first.step[3].peak_reserved_bytes);
    close_bench(&bench);
}

Test(replay, classes_add_up_to_the_peak)
{
    open_bench(&bench, "qwen2.5-0.5b");
    run(&bench, &plain, &first);
    int64_t sum = 0;
    for (int i = 0; i < PLIM_MEMORY_CLASS_COUNT; i++) sum += first.class_bytes[i];
    cr_expect_eq(sum, first.peak_allocated_bytes);
    close_bench(&bench);
}

/* gpt2's peak without checkpointing is where the loss goes back: its log-probabilities and two
 * gradients are there in fp32, the bf16 logits no more. */
Test(replay, the_logits_are_a_class_of_their_own)
{
    enum { ROWS = 4 * 128, CLASSES = 50257 };
    struct plim_train_setting setting = plain;
    setting.micro_batch = 4;
    setting.checkpointing = PLIM_CHECKPOINTING_NONE;
    setting.optimizer = PLIM_OPTIMIZER_ADAMW_FUSED; /* the others' temporaries are the peak */
    open_bench(&bench, "gpt2-124m");
    run(&bench, &setting, &first);
    cr_expect_eq(first.class_bytes[PLIM_MEMORY_LOGITS], (int64_t)3 * ROWS * CLASSES * 4);
    close_bench(&bench);
}

Test(replay, running_out_of_memory_anywhere_is_an_answer)
{
    run_out_anywhere(&plain);
}

Test(replay, running_out_of_memory_while_a_model_is_moved_is_an_answer)
{
    struct plim_train_setting setting = plain;
    setting.made_on = PLIM_MADE_ON_HOST;
    run_out_anywhere(&setting);
}

/* An untied head's own bias gets no gradient: DistributedDataParallel waits for it, and PyTorch fails. */
Test(replay, an_unused_parameter_among_several_gpus_is_refused_where_nobody_looks_for_it)
{
    struct plim_train_setting setting = plain;
    setting.micro_batch = 1;
    setting.seq = 64;
    setting.sharding = PLIM_SHARDING_DDP;
    setting.world = 2;
    open_bench(&bench, "bert-base");
    run(&bench, &setting, &first);
    cr_expect_eq(first.verdict, PLIM_OK, "%s", first.why);
    bench.spec.model.tie_word_embeddings = false;
    expect_refused(&bench, setting, "gets no gradient");
    setting.ddp.finds_unused = PLIM_FIND_UNUSED_YES;
    run(&bench, &setting, &first);
    cr_expect_eq(first.verdict, PLIM_OK, "%s", first.why);
    close_bench(&bench);
}

/* A_log has a number for each of them, in front of the experts. */
Test(replay, experts_behind_odd_value_heads_are_refused_where_weights_lie_in_one)
{
    struct plim_train_setting setting = plain;
    setting.seq = 64;
    setting.loop = PLIM_LOOP_TRAINER;
    setting.sharding = PLIM_SHARDING_ZERO2;
    setting.world = 2;
    open_bench(&bench, "qwen3.5-35b-a3b");
    struct plim_model_config *model = &bench.spec.model;
    model->layers = 4;
    model->experts = 8;
    model->linear_key_heads = model->linear_value_heads = 4;
    expect_refused(&bench, setting, "multiples of 8 linear_num_value_heads");
    model->linear_value_heads = 8;
    run(&bench, &setting, &first);
    cr_expect_eq(first.verdict, PLIM_OK, "%s", first.why);
    close_bench(&bench);
}

Test(replay, frees_cached_segments_before_it_gives_up)
{
    struct plim_train_setting setting = plain;
    setting.micro_batch = 4;
    setting.seq = 2048;
    setting.precision = PLIM_PRECISION_BF16;
    open_bench(&bench, "tinyllama-1.1b"); /* reserves 14.6 GB without a limit, allocates 11.0 */
    run(&bench, &setting, &first);
    plim_device_limit(bench.device, 12500000000);
    run(&bench, &setting, &limited);
    cr_expect_eq(limited.verdict, PLIM_OK);
    cr_expect_gt(limited.retries, 0);
    cr_expect_leq(limited.peak_reserved_bytes, 12500000000);
    double longer = 0; /* by the memory that was freed and allocated again each time, and the wait for it */
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        longer += limited.step[i].seconds - first.step[i].seconds;
    cr_expect_gt(longer, 2 * (double)limited.retries * PLIM_DRIVER_MEMORY_SECONDS);
    close_bench(&bench);
}

static enum plim_status refuse_attention(struct plim_device *device, const struct plim_op *op)
{
    (void)device;
    return op->kind == PLIM_OP_ATTENTION ? PLIM_UNSUPPORTED : PLIM_OK;
}

Test(replay, an_operation_that_the_device_refuses_is_named)
{
    open_bench(&bench, "gpt2-124m");
    const struct plim_device_ops *ops = bench.device->ops;
    struct plim_device_ops refusing = *ops;
    refusing.launch = refuse_attention;
    bench.device->ops = &refusing;
    run(&bench, &plain, &first);
    bench.device->ops = ops;
    cr_expect_eq(first.verdict, PLIM_UNSUPPORTED);
    cr_expect_not_null(strstr(first.why, plim_op_name(PLIM_OP_ATTENTION)), "%s", first.why);
    run(&bench, &plain, &again); /* and the next run is sound */
    cr_expect_eq(again.verdict, PLIM_OK);
    close_bench(&bench);
}

/* A layer more is as much work for the host, a sample more is not. */
Test(replay, a_step_of_little_work_hangs_on_the_host)
{
    struct plim_train_setting setting = plain;
    open_bench(&bench, "gpt2-124m");
    setting.micro_batch = 1;
    run(&bench, &setting, &first);
    cr_expect(first.host_bound);
    double launching = first.launching_seconds, seconds = first.step[PLIM_REPLAY_STEPS - 1].seconds;
    cr_expect(launching > 0.8 * seconds && launching <= seconds, "%g of %g s", launching, seconds);
    setting.micro_batch = 64;
    run(&bench, &setting, &first);
    cr_expect_not(first.host_bound);
    cr_expect_float_eq(first.launching_seconds, launching, 0.1 * launching);
    close_bench(&bench);
}

Test(replay, a_larger_batch_takes_more_memory_and_time)
{
    struct plim_train_setting setting = plain;
    open_bench(&bench, "gpt2-124m");
    run(&bench, &plain, &first);
    setting.micro_batch = 64;
    run(&bench, &setting, &again);
    cr_expect_gt(again.peak_allocated_bytes, first.peak_allocated_bytes);
    cr_expect_gt(again.step[3].seconds, first.step[3].seconds);
    close_bench(&bench);
}

/* --- step by step ------------------------------------------------------------------------------- */

Test(replay, steps_go_on_behind_the_four_that_are_kept)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replay_step step[6];
    open_bench(&bench, "gpt2-124m");
    run(&bench, &plain, &first);
    plim_replay_begin(bench.replayer, &bench.spec.model, &plain);
    for (int i = 0; i < 6; i++) cr_assert(plim_replay_next(bench.replayer, &step[i]));
    cr_assert_eq(plim_replay_end(bench.replayer, &again, &err), PLIM_OK, "%s", err.text);
    cr_expect_eq(again.steps_done, 6);
    cr_expect_eq(again.peak_allocated_bytes, first.peak_allocated_bytes);
    cr_expect_eq(again.step[3].end_allocated_bytes, first.step[3].end_allocated_bytes);
    cr_expect_eq(step[5].peak_allocated_bytes, first.step[3].peak_allocated_bytes);
    cr_expect_gt(step[5].seconds, 0);
    close_bench(&bench);
}

Test(replay, a_step_that_finds_no_memory_is_the_last)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replay_step step;
    open_bench(&bench, "gpt2-124m");
    run(&bench, &plain, &first);
    plim_device_limit(bench.device, first.peak_reserved_bytes / 2);
    plim_replay_begin(bench.replayer, &bench.spec.model, &plain);
    int steps = 0;
    while (plim_replay_next(bench.replayer, &step)) steps++;
    cr_expect(!plim_replay_next(bench.replayer, &step));
    cr_assert_eq(plim_replay_end(bench.replayer, &again, &err), PLIM_OK, "%s", err.text);
    cr_expect_eq(again.verdict, PLIM_OOM);
    cr_expect_eq(again.steps_done, steps);
    cr_expect_lt(steps, PLIM_REPLAY_STEPS);
    close_bench(&bench);
}

/* --- what repeats is not run again ---------------------------------------------------------------- */

/* Where the driver is asked among launches that are not run it is asked before them: seconds are
 * nearly the same. */
static bool same_step(const struct plim_replay_step *a, const struct plim_replay_step *b,
                      double seconds_share)
{
    return a->after_forward_bytes == b->after_forward_bytes &&
           a->peak_allocated_bytes == b->peak_allocated_bytes &&
           a->peak_reserved_bytes == b->peak_reserved_bytes &&
           a->peak_requested_bytes == b->peak_requested_bytes &&
           a->end_allocated_bytes == b->end_allocated_bytes &&
           a->end_reserved_bytes == b->end_reserved_bytes &&
           fabs(a->seconds / b->seconds - 1) < seconds_share;
}

static void expect_same_end(void)
{
    cr_expect_eq(first.verdict, again.verdict);
    cr_expect_eq(first.steps_done, again.steps_done);
    cr_expect_eq(first.repeats_after, again.repeats_after);
    cr_expect_eq(first.retries, again.retries);
    cr_expect_eq(first.oom_asked_bytes, again.oom_asked_bytes);
    cr_expect_eq(first.oom_class, again.oom_class);
    cr_expect_str_eq(first.why, again.why);
    cr_expect_arr_eq(first.class_bytes, again.class_bytes, sizeof first.class_bytes);
}

/* Runs a setting as it is, and with every micro-step (a trace is written). Returns how many
 * launches the first needed of those of the second. */
static double compare_with_all(const struct plim_train_setting *setting)
{
    FILE *nowhere = fopen("/dev/null", "w");
    cr_assert_not_null(nowhere);
    run(&bench, setting, &first);
    double launches = (double)bench.device->launches;
    plim_replayer_trace(bench.replayer, nowhere);
    run(&bench, setting, &again);
    plim_replayer_trace(bench.replayer, NULL);
    fclose(nowhere);
    expect_same_end();
    for (int i = 0; i < first.steps_done; i++)
        cr_expect(same_step(&first.step[i], &again.step[i], first.retries ? 0.1 : 1e-9), "step %d of %d micro-steps",
                  i + 1, (int)setting->accumulation);
    return launches / (double)bench.device->launches;
}

Test(replay, micro_steps_that_repeat_are_left_out_and_change_nothing)
{
    static const int64_t accumulations[] = {1, 2, 3, 4, 5, 6, 7, 8, 19, 200};
    struct plim_train_setting setting = plain;
    open_bench(&bench, "tiny-gpt2");
    for (size_t i = 0; i < sizeof accumulations / sizeof *accumulations; i++) {
        setting.accumulation = accumulations[i];
        setting.precision = i % 2 ? PLIM_PRECISION_FP16_MIXED : PLIM_PRECISION_BF16_MIXED;
        setting.micro_batch = i % 3 ? 1 : 64; /* the host is the slower, or the device is */
        double share = compare_with_all(&setting);
        if (setting.accumulation == 200) cr_expect_lt(share, 0.05);
    }
    close_bench(&bench);
}

Test(replay, any_number_of_micro_steps_takes_its_time)
{
    struct plim_train_setting setting = plain;
    open_bench(&bench, "tiny-gpt2");
    setting.accumulation = 1000;
    run(&bench, &setting, &first);
    setting.accumulation = INT64_C(1000000000000);
    run(&bench, &setting, &again);
    cr_expect_eq(again.peak_allocated_bytes, first.peak_allocated_bytes);
    cr_expect_float_eq(again.step[3].seconds / first.step[3].seconds / 1e9, 1, 0.01);
    close_bench(&bench);
}

Test(replay, a_run_without_limit_repeats_at_once)
{
    open_bench(&bench, "gpt2-124m");
    run(&bench, &plain, &first);
    cr_expect_eq(first.repeats_after, 3);
    close_bench(&bench);
}

/* A small llama on a GPU on which its thirteenth step is the last one that finds memory. */
static const struct plim_train_setting late = {.micro_batch = 24,
                                               .seq = 320,
                                               .accumulation = 4,
                                               .precision = PLIM_PRECISION_FP16,
                                               .optimizer = PLIM_OPTIMIZER_ADAMW_FUSED,
                                               .checkpointing = PLIM_CHECKPOINTING_NONE,
                                               .packing = PLIM_PACKING_YES};
enum { LATE_STEPS = 13 };

static void open_late(struct bench *b, const char *device)
{
    static const char *const keys[][2] = {{"model.num_hidden_layers", "3"},
                                          {"model.num_attention_heads", "4"},
                                          {"model.num_key_value_heads", "2"},
                                          {"model.hidden_size", "256"},
                                          {"model.vocab_size", "20966"}};
    struct plim_allocator_config config;
    struct plim_error err = PLIM_ERROR_INIT;
    enum plim_status st = plim_spec_load("tinyllama-1.1b", &b->spec, &err);
    for (size_t i = 0; !st && i < sizeof keys / sizeof *keys; i++)
        st = plim_spec_set(&b->spec, keys[i][0], keys[i][1], &err);
    if (!st) st = plim_spec_resolve(&b->spec, &err);
    if (!st)
        st = plim_allocator_config_parse("expandable_segments:True,max_split_size_mb:100", &config,
                                         &err);
    if (!st) st = plim_sim_open(device, &b->device, &err);
    if (!st) st = plim_replayer_create(b->device, &config, &b->replayer, &err);
    cr_assert_eq(st, PLIM_OK, "%s", err.text);
}

/* Under the limit some micro-steps give cached memory back, others all of them. */
Test(replay, micro_steps_that_need_retries_are_left_out_and_change_nothing)
{
    struct plim_train_setting setting = late;
    int64_t retried = 0;
    setting.micro_batch = 5;
    setting.accumulation = 23;
    open_late(&bench, "RTX-3090");
    run(&bench, &setting, &first);
    int64_t most = first.peak_reserved_bytes, least = first.peak_allocated_bytes;
    for (int64_t bytes = least; bytes < most; bytes += (most - least) / 24 + 1) {
        plim_device_limit(bench.device, bytes);
        compare_with_all(&setting);
        retried += first.retries > first.steps_done * setting.accumulation / 2;
    }
    cr_expect_gt(retried, 0);
    close_bench(&bench);
}

static void prove(struct bench *b, struct plim_replay *out)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_replay_prove(b->replayer, &b->spec.model, &late, out, &err), PLIM_OK, "%s",
                 err.text);
}

Test(replay, four_steps_prove_little)
{
    struct plim_error err = PLIM_ERROR_INIT;
    open_late(&bench, "RTX-3090,memory=3488706416B,placement=ascending");
    cr_assert_eq(plim_replay_run(bench.replayer, &bench.spec.model, &late, &first, &err), PLIM_OK);
    cr_expect_eq(first.verdict, PLIM_OK);
    cr_expect_eq(first.repeats_after, 0);
    prove(&bench, &again);
    cr_expect_eq(again.verdict, PLIM_OOM);
    cr_expect_eq(again.steps_done, LATE_STEPS);
    cr_expect_eq(again.repeats_after, 0);
    cr_expect_str_eq(strrchr(again.oom_where, ' ') + 1, "14");
    cr_expect(same_step(&again.step[3], &first.step[3], 1e-9));
    close_bench(&bench);
}

/* The thirteenth and the fourteenth step are played from the tape. */
Test(replay, a_step_that_is_played_fails_where_one_that_runs_does)
{
    FILE *nowhere = fopen("/dev/null", "w");
    cr_assert_not_null(nowhere);
    open_late(&bench, "RTX-3090,memory=3488706416B,placement=ascending");
    prove(&bench, &first);
    plim_replayer_trace(bench.replayer, nowhere);
    prove(&bench, &again);
    expect_same_end();
    fclose(nowhere);
    close_bench(&bench);
}

/* Whatever trains: else every step of a proof is run. */
Test(replay, nothing_is_run_from_the_third_step_on)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_train_setting setting = plain;
    struct plim_replay_step step;
    open_bench(&bench, "tiny-gpt2");
    setting.accumulation = 3;
    setting.clip = 1;
    for (int i = 0; i < PLIM_OPTIMIZER_COUNT * PLIM_CHECKPOINTING_COUNT; i++) {
        setting.optimizer = (enum plim_optimizer)(i % PLIM_OPTIMIZER_COUNT);
        setting.checkpointing = (enum plim_checkpointing)(i / PLIM_OPTIMIZER_COUNT);
        setting.precision = i % 2 ? PLIM_PRECISION_FP16_MIXED : PLIM_PRECISION_FP32;
        plim_replay_begin(bench.replayer, &bench.spec.model, &setting);
        for (int n = 0; n < 2; n++) cr_assert(plim_replay_next(bench.replayer, &step));
        int64_t launches = bench.device->launches;
        for (int n = 0; n < 2; n++) cr_assert(plim_replay_next(bench.replayer, &step));
        cr_expect_eq(bench.device->launches, launches, "%s",
                     plim_optimizer_names[setting.optimizer]);
        cr_assert_eq(plim_replay_end(bench.replayer, &first, &err), PLIM_OK, "%s", err.text);
    }
    close_bench(&bench);
}

/* A loss and a norm are kept from step to step: a played step frees the old ones and leaves new ones. */
Test(replay, what_trainer_keeps_is_carried_by_steps_that_are_played)
{
    struct plim_train_setting setting = by_trainer;
    struct plim_replay_step step;
    struct plim_error err = PLIM_ERROR_INIT;
    open_bench(&bench, "tiny-gpt2");
    setting.seq = 32;
    for (int i = 0; i < 2 * PLIM_OPTIMIZER_COUNT; i++) {
        setting.accumulation = 1 + i % 6;
        setting.optimizer = (enum plim_optimizer)(i % PLIM_OPTIMIZER_COUNT);
        setting.precision = i % 2 ? PLIM_PRECISION_FP16_MIXED : PLIM_PRECISION_FP32;
        compare_with_all(&setting);
        plim_replay_begin(bench.replayer, &bench.spec.model, &setting);
        for (int n = 0; n < 2; n++) cr_assert(plim_replay_next(bench.replayer, &step));
        int64_t launches = bench.device->launches;
        cr_assert(plim_replay_next(bench.replayer, &step));
        if (setting.optimizer != PLIM_OPTIMIZER_ADAFACTOR) /* which keeps a number of each parameter */
            cr_expect_leq(bench.device->launches - launches, 10 * setting.accumulation, "%s",
                          plim_optimizer_names[setting.optimizer]);
        cr_assert_eq(plim_replay_end(bench.replayer, &first, &err), PLIM_OK, "%s", err.text);
    }
    close_bench(&bench);
}

/* With a little more memory it comes to repeat, and ends there. */
Test(replay, a_proof_ends_with_the_step_that_repeats)
{
    open_late(&bench, "RTX-3090,memory=3588706416B");
    prove(&bench, &first);
    cr_expect_eq(first.verdict, PLIM_OK);
    cr_expect_gt(first.repeats_after, 0);
    cr_expect_eq(first.steps_done, fmax(first.repeats_after, PLIM_REPLAY_STEPS));
    close_bench(&bench);
}

/* On the host the same step computes: losses fall, and the bytes are those of the simulated GPU. */
Test(replay, a_device_that_computes_takes_the_same_bytes)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_train_setting setting = plain;
    open_bench(&bench, "tiny-gpt2");
    setting.seq = 64;
    run(&bench, &setting, &first);
    cr_expect(isnan(first.step[0].loss));
    close_bench(&bench);
    cr_assert_eq(plim_host_open("", &bench.device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(bench.device, NULL, &bench.replayer, &err), PLIM_OK);
    run(&bench, &setting, &again);
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++) {
        cr_expect_eq(again.step[i].peak_allocated_bytes, first.step[i].peak_allocated_bytes);
        cr_expect_eq(again.step[i].peak_reserved_bytes, first.step[i].peak_reserved_bytes);
        if (i > 0) cr_expect_lt(again.step[i].loss, again.step[i - 1].loss);
    }
    cr_expect_float_eq(again.step[0].loss, log(512), 0.05); /* nothing is known of 512 tokens yet */
    close_bench(&bench);
}

/* What is checkpointed is computed twice, with the same that is dropped: losses are those of blocks that keep
 * everything, to the last bit, and weights with them. */
Test(replay, what_is_computed_again_is_the_same)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_train_setting setting = plain;
    open_bench(&bench, "tiny-gpt2");
    close_bench(&bench);
    cr_assert_eq(plim_host_open("", &bench.device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(bench.device, NULL, &bench.replayer, &err), PLIM_OK);
    bench.spec.model.dropout_residual = bench.spec.model.dropout_attention = 0.1;
    setting.seq = 64;
    setting.accumulation = 2;
    setting.checkpointing = PLIM_CHECKPOINTING_NONE;
    run(&bench, &setting, &first);
    setting.checkpointing = PLIM_CHECKPOINTING_FULL;
    for (int i = 0; i < 2; i++) {
        setting.use_reentrant = i;
        run(&bench, &setting, &again);
        for (int n = 0; n < PLIM_REPLAY_STEPS; n++)
            cr_expect_eq(again.step[n].loss, first.step[n].loss, "%d, %d", i, n);
        cr_expect_lt(again.peak_allocated_bytes, first.peak_allocated_bytes);
    }
    close_bench(&bench);
}

static int asked;

static bool stop_at_the_second(const void *user)
{
    return ++asked == *(const int *)user;
}

Test(replay, a_stop_is_heard_within_a_micro_step)
{
    static const int second = 2, never = 0;
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_train_setting long_step = plain;
    long_step.accumulation = 1 << 20;
    open_bench(&bench, "gpt2-124m");
    plim_replayer_stop(bench.replayer, stop_at_the_second, &second);
    enum plim_status st =
        plim_replay_run(bench.replayer, &bench.spec.model, &long_step, &again, &err);
    cr_expect_eq(st, PLIM_CANCELLED);
    cr_expect_eq(asked, 2);
    cr_expect_eq(err.text[0], '\0');
    plim_replayer_stop(bench.replayer, stop_at_the_second, &never);
    run(&bench, &plain, &again); /* and the replayer is as good as before */
    plim_replayer_stop(bench.replayer, NULL, NULL);
    run(&bench, &plain, &first);
    cr_expect_eq(memcmp(&first, &again, sizeof first), 0);
    close_bench(&bench);
}
