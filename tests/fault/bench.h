/* A remote on a scripted worker (tests/support/fake_worker.c), and what it must leave
 * behind: nothing. */
#ifndef PLIM_TESTS_FAULT_BENCH_H
#define PLIM_TESTS_FAULT_BENCH_H

#include "autotune/run/worker/remote.h"

struct bench {
    struct plim_remote_config config;
    struct plim_remote *remote;
    struct plim_spec spec;
    char count_path[64];
    int fds; /* that were open before */
    struct plim_error err;
};

/* Makes a configuration with short deadlines; the test may change it before bench_start(). */
void bench_init(struct bench *b, const char *script);
/* The budget is 64 MiB: the scripted worker fits 64 samples. */
void bench_start(struct bench *b);
/* Ends the worker; the test fails when a process, a zombie or a descriptor is left. */
void bench_finish(struct bench *b);

/* One run under the budget. */
enum plim_status bench_run(struct bench *b, int64_t micro_batch, struct plim_replay *out);

/* Counts the messages of a log that has bench_listen() as its function and this as its user. */
struct bench_ear {
    enum plim_log_level level;
    const char *text; /* a part of what is listened for */
    int times;
};
void bench_listen(void *ear, enum plim_log_level level, const char *text);

/* How many of our children there are, reaping none. */
int bench_children(void);

#endif
