#include "rank_trace.h"
#include "devices/sim/sim.h"
#include "workloads/spec/spec.h"
#include <criterion/criterion.h>
#include <stdio.h>

static const char model[] = "model:\n"
                            "  family: llama\n"
                            "  vocab_size: 32003\n"
                            "  hidden_size: 320\n"
                            "  intermediate_size: 777\n"
                            "  num_hidden_layers: 3\n"
                            "  num_attention_heads: 5\n"
                            "  num_key_value_heads: 1\n"
                            "  max_position_embeddings: 2048\n"
                            "  tie_word_embeddings: true\n";

static const char *other_model; /* NULL: `model` */

struct rank_trace rank_trace;

void rank_take_model(const char *config)
{
    other_model = config;
}

const struct plim_model_config *rank_model(void)
{
    static struct plim_spec spec;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert_eq(other_model ? plim_spec_load_text("config.json", other_model, &spec, &err)
                             : plim_spec_load_text("model.yaml", model, &spec, &err),
                 PLIM_OK, "%s", err.text);
    return &spec.model;
}

void rank_replay(struct plim_device *device, const struct plim_train_setting *setting, const struct plim_links *links)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_replayer *replayer;
    FILE *trace = tmpfile();
    char line[64];
    long long id, size;
    cr_assert_not_null(trace);
    cr_assert_eq(plim_replayer_create(device, NULL, &replayer, &err), PLIM_OK, "%s", err.text);
    plim_replayer_trace(replayer, trace);
    if (links) plim_replayer_links(replayer, links);
    cr_assert_eq(plim_replay_run(replayer, rank_model(), setting, &rank_trace.out, &err), PLIM_OK, "%s", err.text);
    rewind(trace);
    rank_trace.count = 0;
    while (fgets(line, sizeof line, trace))
        if (sscanf(line, "a %lld %lld", &id, &size) == 2 && id < RANK_EVENTS)
            rank_trace.bytes[rank_trace.count = id] = size;
    fclose(trace);
    plim_replayer_destroy(&replayer);
    plim_device_close(&device);
}

struct plim_device *rank_gpu(const char *name)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device;
    cr_assert_eq(plim_sim_open(name, &device, &err), PLIM_OK, "%s", err.text);
    return device;
}

void rank_simulate(const struct plim_train_setting *setting)
{
    rank_replay(rank_gpu("A100-SXM4-80GB"), setting, NULL);
}

int64_t rank_allocations_of(int64_t bytes)
{
    int64_t count = 0;
    for (int64_t i = 1; i <= rank_trace.count; i++) count += rank_trace.bytes[i] == bytes;
    return count;
}

void rank_expect_from(int64_t first, size_t n, const int64_t *expected)
{
    cr_assert_leq(first + (int64_t)n, rank_trace.count);
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(rank_trace.bytes[first + (int64_t)i], expected[i], "allocation %lld: %lld bytes",
                     (long long)first + (long long)i, (long long)rank_trace.bytes[first + (int64_t)i]);
}
