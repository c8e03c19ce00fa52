/* A rank's run of the small llama of tests/golden/configs/x-llama-odd.json, allocation by allocation, for Criterion
 * tests of what several GPUs add to it. */
#ifndef PLIM_TESTS_RANK_TRACE_H
#define PLIM_TESTS_RANK_TRACE_H

#include "devices/device.h"
#include "workloads/train/replay.h"

const struct plim_model_config *rank_model(void);
/* Another one for this test: a model's config.json, as text. */
void rank_take_model(const char *config);
/* Its weights, of which so many are the embedding, which the head is tied to. */
enum { RANK_WEIGHTS = 13218240, RANK_EMBEDDING = 10240960 };

/* Of the last run: the bytes of the n-th allocation, counted from 1, of as many as fit; how many; what came of it. */
enum { RANK_EVENTS = 8192 };
struct rank_trace {
    int64_t bytes[RANK_EVENTS], count;
    struct plim_replay out;
};
extern struct rank_trace rank_trace;

/* Runs `setting` and closes the device. `links`: NULL: not known. Asserts that it can be run, whatever its verdict. */
void rank_replay(struct plim_device *device, const struct plim_train_setting *setting, const struct plim_links *links);
/* A simulated GPU: a name of the catalogue. */
struct plim_device *rank_gpu(const char *name);
/* On an A100 with 80 GB, without links. */
void rank_simulate(const struct plim_train_setting *setting);
/* How many allocations were of `bytes`. */
int64_t rank_allocations_of(int64_t bytes);

void rank_expect_from(int64_t first, size_t n, const int64_t *expected);
#define EXPECT_FROM(first, ...)                                                                    \
    rank_expect_from(first, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

#endif
