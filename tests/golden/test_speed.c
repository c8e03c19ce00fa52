/* The simulated clock beside training speeds that others published (speed.csv): each within 25 %,
 * the median within 12 %, with the one set of constants of devices/sim/roofline.h. */
#include "devices/sim/sim.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 13, MAX_ROWS = 64, LINE = 1024 };
enum {
    CONFIG,
    DEVICE,
    PRECISION,
    OPTIMIZER,
    CHECKPOINTING,
    LORA,
    SEQ,
    BATCH,
    ACCUMULATION,
    ATTENTION,
    WORLD,
    TOKENS_PER_SECOND
};

static struct plim_spec spec;
static struct plim_replay replay;

/* Splits at commas, empty fields included; returns how many. */
static int split(char *line, char *fields[COLUMNS])
{
    int count = 0;
    for (char *at = line; at && count < COLUMNS;) {
        fields[count++] = at;
        at = strchr(at, ',');
        if (at) *at++ = '\0';
    }
    return count;
}

static void set(const char *key, const char *value)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(plim_spec_set(&spec, key, value, &err), PLIM_OK, "%s", err.text);
}

static void load(char *const fields[COLUMNS], const char *folder)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char path[2 * LINE], lora[LINE];
    snprintf(path, sizeof path, "%s/%s", folder, fields[CONFIG]);
    cr_assert_eq(plim_spec_load(path, &spec, &err), PLIM_OK, "%s", err.text);
    set("train.precision", fields[PRECISION]);
    set("train.optimizer", fields[OPTIMIZER]);
    set("train.checkpointing", fields[CHECKPOINTING]);
    set("train.attention", fields[ATTENTION]);
    set("train.world", fields[WORLD]);
    snprintf(lora, sizeof lora, "%s", fields[LORA]);
    for (char *semicolon; (semicolon = strchr(lora, ';'));) *semicolon = ',';
    if (*lora) set("train.lora", lora);
    cr_assert_eq(plim_spec_resolve(&spec, &err), PLIM_OK, "%s", err.text);
}

static double tokens_per_second(char *const fields[COLUMNS], const char *folder)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    struct plim_replayer *replayer;
    char uri[LINE];
    load(fields, folder);
    struct plim_train_setting setting = {.micro_batch = strtoll(fields[BATCH], NULL, 10),
                                   .seq = strtoll(fields[SEQ], NULL, 10),
                                   .accumulation = strtoll(fields[ACCUMULATION], NULL, 10),
                                   .precision = (enum plim_precision)spec.precision.values[0],
                                   .optimizer = (enum plim_optimizer)spec.optimizer.values[0],
                                   .checkpointing =
                                       (enum plim_checkpointing)spec.checkpointing.values[0],
                                   .attention = (enum plim_attention)spec.attention.values[0],
                                   .sharding = plim_spec_sharding(&spec, spec.sharding.values[0]),
                                   .world = spec.world,
                                   .lora = spec.lora};
    snprintf(uri, sizeof uri, "%s,memory=64TiB", fields[DEVICE]);
    cr_assert_eq(plim_sim_open(uri, &device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    const struct plim_links links = {
        .gpu_bandwidth = plim_gpu_link_bandwidth(plim_sim_gpu(device)),
        .node_bandwidth = spec.node_bandwidth * 1e9,
        .gpus_per_node = spec.gpus_per_node};
    plim_replayer_links(replayer, &links);
    cr_assert_eq(plim_replay_run(replayer, &spec.model, &setting, &replay, &err), PLIM_OK, "%s",
                 err.text);
    cr_assert_eq(replay.verdict, PLIM_OK);
    double seconds =
        replay.step[PLIM_REPLAY_STEPS - 1].seconds + replay.communication_seconds;
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
    double tokens = (double)(setting.micro_batch * setting.seq * setting.accumulation);
    return tokens * (double)setting.world / seconds;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

Test(speed, is_near_what_others_published)
{
    const char *path = getenv("PLIM_SPEED_CSV");
    FILE *file = path ? fopen(path, "r") : NULL;
    cr_assert_not_null(file);
    char line[LINE], folder[LINE], *fields[COLUMNS];
    double off[MAX_ROWS];
    int rows = 0;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    while (rows < MAX_ROWS && fgets(line, sizeof line, file)) {
        if (*line == '#' || split(line, fields) <= TOKENS_PER_SECOND ||
            !strcmp(fields[CONFIG], "config"))
            continue;
        double published = strtod(fields[TOKENS_PER_SECOND], NULL),
               ours = tokens_per_second(fields, folder);
        off[rows] = fabs(ours / published - 1);
        cr_expect_lt(off[rows], 0.25, "%s, sequence %s: %.0f tokens/s, published %.0f",
                     fields[CONFIG], fields[SEQ], ours, published);
        rows++;
    }
    fclose(file);
    cr_assert_gt(rows, 0);
    qsort(off, (size_t)rows, sizeof *off, ascending);
    cr_expect_lt(off[rows / 2], 0.12, "median %.3f", off[rows / 2]);
}
