/* Milliseconds of one four-step replay of zoo models on a simulated A100, the median of many. One
 * line of JSON a model. */
#include "autotune/base/clock.h"
#include "autotune/base/stats.h"
#include "devices/sim/sim.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"

#include <stdio.h>

enum { REPLAYS = 41 };

struct bench_case {
    const char *model;
    int64_t micro_batch, seq;
    enum plim_precision precision;
    enum plim_checkpointing checkpointing;
};

static const struct bench_case cases[] = {
    {"tinyllama-1.1b", 4, 2048, PLIM_PRECISION_BF16, PLIM_CHECKPOINTING_NONE},
    {"tinyllama-1.1b", 4, 2048, PLIM_PRECISION_BF16, PLIM_CHECKPOINTING_FULL},
    {"gpt2-124m", 8, 1024, PLIM_PRECISION_BF16_MIXED, PLIM_CHECKPOINTING_NONE},
    {"llama-3-8b", 2, 4096, PLIM_PRECISION_BF16, PLIM_CHECKPOINTING_FULL},
};

static enum plim_status measure(const struct bench_case *c, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    static struct plim_spec spec;
    struct plim_device *device = NULL;
    struct plim_replayer *replayer = NULL;
    static struct plim_replay replay;
    double ms[REPLAYS];
    struct plim_train_setting setting = {.micro_batch = c->micro_batch,
                                   .seq = c->seq,
                                   .accumulation = 1,
                                   .precision = c->precision,
                                   .checkpointing = c->checkpointing};
    PLIM_TRY(plim_spec_load(c->model, &spec, err));
    PLIM_TRY(plim_sim_open("A100-SXM4-80GB,memory=64TiB", &device, err));
    PLIM_TRY(plim_replayer_create(device, NULL, &replayer, err));
    for (int i = 0; i < REPLAYS; i++) {
        double start = plim_clock_seconds();
        PLIM_TRY(plim_replay_run(replayer, &spec.model, &setting, &replay, err));
        ms[i] = 1e3 * (plim_clock_seconds() - start);
    }
    double first_ms = ms[0];
    struct plim_stats stats;
    plim_stats_compute(ms, REPLAYS, &stats);
    printf("{\"bench\": \"replay\", \"model\": \"%s\", \"checkpointing\": \"%s\", \"median_ms\": "
           "%.3f, \"first_ms\": %.3f}\n",
           c->model, plim_checkpointing_names[c->checkpointing], stats.median, first_ms);
out:
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
    return st;
}

int main(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (measure(&cases[i], &err) != PLIM_OK) {
            fprintf(stderr, "%s: %s\n", cases[i].model, err.text);
            return 1;
        }
    return 0;
}
