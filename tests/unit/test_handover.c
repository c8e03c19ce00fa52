/* An answer as variables: formats, quoting, names; and one answer for several GPUs. */
#include "autotune/store/handover.h"
#include "autotune/store/least.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_value(struct plim_result_setting *setting, const char *name, const char *text)
{
    struct plim_result_value *value = &setting->values[setting->value_count++];
    snprintf(value->name, sizeof(value->name), "%s", name);
    snprintf(value->text, sizeof(value->text), "%s", text);
}

static struct plim_result_choice choice_of(int64_t batch, const char *checkpointing, double rate)
{
    struct plim_result_choice c = {
        .present = true,
        .setting = {.micro_batch = batch, .seq = 1024, .accumulation = 64 / batch},
        .world = 1,
        .effective_batch = 64,
        .tokens_per_second = rate};
    add_value(&c.setting, "precision", "bf16-mixed");
    add_value(&c.setting, "checkpointing", checkpointing);
    return c;
}

static char *written(enum plim_handover_format format, const struct plim_result_choice *choice,
                     const char *name)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_handover handover = {.format = format,
                                           .choice = choice,
                                           .measured = true,
                                           .names = &name,
                                           .name_count = name ? 1 : 0};
    char *text = NULL;
    cr_assert(eq(int, plim_handover_write(&handover, &text, &err), PLIM_OK), "%s", err.text);
    return text;
}

static void expect(enum plim_handover_format format, const struct plim_result_choice *choice,
                   const char *name, const char *wanted)
{
    char *text = written(format, choice, name);
    cr_expect(eq(str, text, (char *)wanted));
    free(text);
}

Test(handover, every_format_has_every_value)
{
    struct plim_result_choice c = choice_of(8, "none", 1);
    expect(PLIM_HANDOVER_SH, &c, NULL,
           "export PLIMSOLL_MICRO_BATCH=8\nexport PLIMSOLL_ACCUMULATION=8\n"
           "export PLIMSOLL_GLOBAL_BATCH=64\nexport PLIMSOLL_SEQ=1024\n"
           "export PLIMSOLL_PRECISION=bf16-mixed\nexport PLIMSOLL_CHECKPOINTING=none\n"
           "export PLIMSOLL_SOURCE=measured\nexport PLIMSOLL_STALE=0\n");
    expect(PLIM_HANDOVER_FISH, &c, NULL,
           "set -gx PLIMSOLL_MICRO_BATCH '8'\nset -gx PLIMSOLL_ACCUMULATION '8'\n"
           "set -gx PLIMSOLL_GLOBAL_BATCH '64'\nset -gx PLIMSOLL_SEQ '1024'\n"
           "set -gx PLIMSOLL_PRECISION 'bf16-mixed'\nset -gx PLIMSOLL_CHECKPOINTING 'none'\n"
           "set -gx PLIMSOLL_SOURCE 'measured'\nset -gx PLIMSOLL_STALE '0'\n");
    expect(PLIM_HANDOVER_JSON, &c, NULL,
           "{\n  \"PLIMSOLL_MICRO_BATCH\": 8,\n  \"PLIMSOLL_ACCUMULATION\": 8,\n"
           "  \"PLIMSOLL_GLOBAL_BATCH\": 64,\n  \"PLIMSOLL_SEQ\": 1024,\n"
           "  \"PLIMSOLL_PRECISION\": \"bf16-mixed\",\n  \"PLIMSOLL_CHECKPOINTING\": \"none\",\n"
           "  \"PLIMSOLL_SOURCE\": \"measured\",\n  \"PLIMSOLL_STALE\": 0\n}\n");
    expect(PLIM_HANDOVER_DOTENV, &c, NULL,
           "PLIMSOLL_MICRO_BATCH=8\nPLIMSOLL_ACCUMULATION=8\nPLIMSOLL_GLOBAL_BATCH=64\n"
           "PLIMSOLL_SEQ=1024\nPLIMSOLL_PRECISION=bf16-mixed\nPLIMSOLL_CHECKPOINTING=none\n"
           "PLIMSOLL_SOURCE=measured\nPLIMSOLL_STALE=0\n");
    expect(PLIM_HANDOVER_ARGS, &c, NULL,
           "--micro-batch 8 --accumulation 8 --global-batch 64 --seq 1024 --precision bf16-mixed "
           "--checkpointing none\n");
}

Test(handover, another_name_stands_beside_the_usual_ones)
{
    struct plim_result_choice c = choice_of(8, "none", 1);
    char *text = written(PLIM_HANDOVER_SH, &c, "micro_batch=MICRO_BATCH_SIZE");
    cr_expect(strstr(text, "export PLIMSOLL_MICRO_BATCH=8\n") != NULL);
    cr_expect(strstr(text, "export MICRO_BATCH_SIZE=8\n") != NULL);
    free(text);
    expect(PLIM_HANDOVER_ARGS, &c, "micro_batch=per_device_train_batch_size",
           "--per_device_train_batch_size 8\n");
}

/* What a user's own axis may be. */
#define HOSTILE "it's $(rm -rf ~) `x` \"q\" \\ $HOME"

static char *run_shell(const char *script)
{
    static char out[4096];
    char path[] = "/tmp/plimsoll-handover-XXXXXX", command[128];
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    cr_assert(file && fputs(script, file) >= 0 && !fclose(file));
    snprintf(command, sizeof(command), "sh %s", path);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    out[fread(out, 1, sizeof(out) - 1, pipe)] = '\0';
    cr_expect(eq(int, pclose(pipe), 0));
    remove(path);
    return out;
}

Test(handover, a_shell_gets_the_value_and_runs_nothing)
{
    char script[4096];
    struct plim_result_choice c = choice_of(8, "none", 1);
    add_value(&c.setting, "data", HOSTILE);
    char *text = written(PLIM_HANDOVER_SH, &c, "data=DATA");
    snprintf(script, sizeof(script), "%sprintf %%s \"$DATA\"\n", text);
    cr_expect(eq(str, run_shell(script), (char *)HOSTILE));
    free(text);
    text = written(PLIM_HANDOVER_ARGS, &c, "data=data");
    snprintf(script, sizeof(script), "set -- %sprintf %%s \"$2\"\n", text);
    cr_expect(eq(str, run_shell(script), (char *)HOSTILE));
    free(text);
    text = written(PLIM_HANDOVER_DOTENV, &c, "data=DATA");
    snprintf(script, sizeof(script), "%sprintf %%s \"$DATA\"\n", text); /* a .env that is sourced */
    cr_expect(eq(str, run_shell(script), (char *)HOSTILE));
    free(text);
}

Test(handover, slurm_gets_values_as_they_are_and_never_a_second_line)
{
    struct plim_result_choice c = choice_of(8, "none", 1);
    add_value(&c.setting, "plain", "a b'c");
    add_value(&c.setting, "broken", "a\nexport LD_PRELOAD=x");
    char *text = written(PLIM_HANDOVER_TASK_PROLOG, &c, "plain=PLAIN");
    cr_expect(strstr(text, "\nexport PLAIN=a b'c\n") != NULL, "%s", text);
    free(text);
    text = written(PLIM_HANDOVER_TASK_PROLOG, &c, "broken=BROKEN");
    cr_expect(strstr(text, "LD_PRELOAD") == NULL, "%s", text);
    free(text);
}

Test(handover, what_is_not_known_is_left_out)
{
    struct plim_result_choice c = {
        .present = true, .setting = {.micro_batch = 4, .accumulation = 2}, .effective_batch = 8};
    char *text = written(PLIM_HANDOVER_SH, &c, NULL);
    cr_expect(strstr(text, "SEQ") == NULL && strstr(text, "PRECISION") == NULL, "%s", text);
    cr_expect(strstr(text, "PLIMSOLL_MICRO_BATCH=4\n") != NULL);
    free(text);
}

static void expect_refused(enum plim_handover_format format, const char *name, const char *part)
{
    struct plim_result_choice c = choice_of(8, "none", 1);
    struct plim_error err = PLIM_ERROR_INIT;
    char *text = NULL;
    const struct plim_handover h = {
        .format = format, .choice = &c, .names = &name, .name_count = 1};
    cr_expect(eq(int, plim_handover_write(&h, &text, &err), PLIM_INVALID), "%s", name);
    cr_expect(text == NULL);
    cr_expect(strstr(err.text, part) != NULL, "%s: %s", name, err.text);
}

Test(handover, names_that_are_none_are_refused)
{
    expect_refused(PLIM_HANDOVER_SH, "micro_batch", "expected micro_batch=");
    expect_refused(PLIM_HANDOVER_SH, "micro_batch=", "expected micro_batch=");
    expect_refused(PLIM_HANDOVER_SH, "micro_batch=1X", "expected micro_batch=");
    expect_refused(PLIM_HANDOVER_SH, "micro_batch=A B", "expected micro_batch=");
    expect_refused(PLIM_HANDOVER_SH, "micro_batch=X;id", "expected micro_batch=");
    expect_refused(PLIM_HANDOVER_ARGS, "micro_batch=$(id)", "expected micro_batch=");
    expect_refused(PLIM_HANDOVER_SH, "batch=X", "no such value, expected micro_batch");
}

/* --- several GPUs ----------------------------------------------------------------------------- */

/* A result with a choice and what the other setting reaches; a batch of 0: it does not fit. */
static struct plim_result result_of(int64_t none, double none_rate, int64_t full, double full_rate)
{
    struct plim_result r = {0};
    struct plim_result_point points[2] = {{.verdict = "ok"}, {.verdict = "ok"}};
    points[0].best = choice_of(none ? none : 1, "none", none_rate);
    points[0].best.present = none > 0;
    points[1].best = choice_of(full ? full : 1, "full", full_rate);
    points[1].best.present = full > 0;
    for (int i = 0; i < 2; i++) cr_assert(eq(int, PLIM_ARRAY_PUSH(&r.points, points[i]), PLIM_OK));
    r.choice = points[none > 0 && (!full || none_rate >= full_rate) ? 0 : 1].best;
    return r;
}

static void expect_least(struct plim_result a, struct plim_result b, int64_t batch,
                         const char *checkpointing, size_t from)
{
    const struct plim_result *list[] = {&a, &b};
    struct plim_result_choice choice = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    size_t index = 9;
    enum plim_status st = plim_store_least(list, 2, &choice, &index, &err);
    if (batch) {
        cr_assert(eq(int, st, PLIM_OK), "%s", err.text);
        cr_expect(eq(i64, choice.setting.micro_batch, batch));
        cr_expect(eq(i64, choice.setting.accumulation, 64 / batch));
        cr_expect(eq(str, (char *)plim_result_value(&choice.setting, "checkpointing"),
                     (char *)checkpointing));
        cr_expect(eq(sz, index, from));
    } else {
        cr_expect(eq(int, st, PLIM_NOFIT));
    }
    plim_result_finish(&a);
    plim_result_finish(&b);
}

Test(least, of_the_same_setting_the_smaller_batch)
{
    expect_least(result_of(16, 100, 0, 0), result_of(4, 50, 0, 0), 4, "none", 1);
    expect_least(result_of(4, 50, 0, 0), result_of(16, 100, 0, 0), 4, "none", 0);
}

/* 16 without checkpointing do not fit where 16 with it were chosen. */
Test(least, a_setting_has_to_fit_on_every_gpu)
{
    expect_least(result_of(8, 100, 32, 80), result_of(0, 0, 16, 40), 16, "full", 1);
}

Test(least, the_setting_whose_slowest_gpu_is_fastest_wins)
{
    expect_least(result_of(8, 100, 32, 80), result_of(2, 20, 16, 40), 16, "full", 1);
    expect_least(result_of(8, 100, 32, 80), result_of(2, 60, 16, 70), 16, "full", 1);
    expect_least(result_of(8, 100, 32, 50), result_of(2, 60, 16, 70), 2, "none", 1);
}

Test(least, nothing_in_common_is_said)
{
    expect_least(result_of(8, 100, 0, 0), result_of(0, 0, 16, 40), 0, "", 0);
}
