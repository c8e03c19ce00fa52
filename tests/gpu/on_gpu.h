/* on_gpu: what scripts/gpu-suite runs on a device, in one process; a JSON object a line on stdout.
 *
 *     on_gpu VERB URI [--name VALUE]...
 *
 * URI: "cuda:0", "host", "sim:H100-SXM5-80GB", with ",memory=24GiB" if wanted. Nothing but this
 * program and the files that are named is needed.
 */
#ifndef PLIM_TESTS_GPU_ON_GPU_H
#define PLIM_TESTS_GPU_ON_GPU_H

#include "devices/open.h"
#include "workloads/spec/spec.h"
#include "workloads/train/replay.h"
#include <jansson.h>

struct on_gpu {
    const char *uri;
    enum plim_device_scheme scheme;
    struct plim_device *device;
    const char *cases; /* --cases: a file, a case a line, fields as in tests/golden */
    const char *only;  /* --only: what names begin with; "" */
    double seconds;    /* --seconds: begin nothing after so many; 0: no end */
    double timing_seconds; /* --timing: how long steps are timed */
    long times;        /* --times: how often */
    double started;
};

/* Prints a line, and drops it. */
void on_gpu_say(json_t *line);
bool on_gpu_is_late(const struct on_gpu *gpu);
/* Ends the program with a message. */
void on_gpu_give_up(const char *fmt, ...) PLIM_PRINTF(1, 2);

/* Opens `gpu->uri`, or ends the program. */
void on_gpu_open(struct on_gpu *gpu);
/* The same GPU as the catalogue has it; simulated: to compare with. */
struct plim_gpu on_gpu_model(const struct on_gpu *gpu);
struct plim_device *on_gpu_twin(const struct on_gpu *gpu);

/* Verbs. They return how much went wrong. */
int on_gpu_info(struct on_gpu *gpu);    /* the GPU, and what a context takes of it */
int on_gpu_start(struct on_gpu *gpu);   /* a case: context, first product, first steps */
int on_gpu_kernels(struct on_gpu *gpu); /* every operation against the reference */
int on_gpu_golden(struct on_gpu *gpu);  /* cases: bytes of each step, here and simulated */
int on_gpu_losses(struct on_gpu *gpu);  /* cases with losses of PyTorch */
int on_gpu_time(struct on_gpu *gpu);    /* cases: seconds of a step, measured and by the clock */
int on_gpu_ops(struct on_gpu *gpu);     /* cases: seconds of each operation of a step */
int on_gpu_fill(struct on_gpu *gpu);    /* a case, all memory of the GPU, and on */
int on_gpu_oom(struct on_gpu *gpu);     /* a case: out of memory, and on, `times` times */
int on_gpu_break(struct on_gpu *gpu);   /* a case, then an illegal address */

/* Calls `run` for each case of `gpu->cases` until it is late. Returns the sum of the results. */
int on_gpu_each(struct on_gpu *gpu,
                 int (*run)(struct on_gpu *gpu, const json_t *c, json_t *line));
/* The model and the setting of a case: "config", "spec" (a name of the zoo), or "hf". */
bool on_gpu_read_case(const struct on_gpu *gpu, const json_t *c, struct plim_spec *spec,
                       struct plim_train_setting *setting, struct plim_error *err);
/* One replay, and everything given back. */
enum plim_status on_gpu_replay(struct plim_device *device, const struct plim_spec *spec,
                               const struct plim_train_setting *setting, struct plim_replay *out,
                               struct plim_error *err);
/* "error" of a case that cannot be run; 1. */
int on_gpu_refuse(json_t *line, const struct plim_error *err);
/* "taken_bytes": what the process takes of a real GPU beside its segments. */
void on_gpu_add_overhead(const struct on_gpu *gpu, json_t *line);

#endif
