/* What is asked of the store: a spec or a program, on a GPU. Subject first, then the GPU. */
#ifndef PLIM_AUTOTUNE_STORE_STORE_QUESTION_H
#define PLIM_AUTOTUNE_STORE_STORE_QUESTION_H

#include "autotune/exec/user_program.h"
#include "autotune/run/allowance.h"
#include "autotune/run/target.h"
#include "answer_store.h"
#include "workloads/spec/spec.h"

/* The GPU, as far as it decides what an answer holds for. */
struct plim_store_gpu {
    bool simulated;
    char name[96], mig_profile[32], driver[96];
    int compute_capability;
    char processors[96]; /* how many: "6912 cores", "98 multiprocessors" */
    int64_t usable_bytes;                    /* of it, by one program */
    int64_t total_bytes;
    double power_limit_watts; /* 0 or less: not told */
    int max_sm_mhz;           /* 0 or less: not told */
    char mps[208]; /* "on", with the limits of a client; "": CUDA opens the GPU itself */
};

/* Of a GPU of this machine. `counts_others`: what other processes hold now is not usable, but for
 * what small ones take; else it is the GPU itself that is asked about, which every rank of a job
 * sees alike. False: NVML does not tell enough to find an answer by. */
bool plim_store_gpu_of_target(const struct plim_target *target, bool counts_others,
                              struct plim_store_gpu *out);

/* Is an answer for one of them an answer for the other? */
bool plim_store_gpu_equal(const struct plim_store_gpu *a, const struct plim_store_gpu *b);

/* How a question is put, beside its subject. */
struct plim_store_asked {
    const char *version;   /* of plimsoll */
    const char *objective; /* its name */
    const char *waterfall; /* as typed; NULL: none */
    const struct plim_allowance *allowance;
};

/* Adds it to the key; the two below do. */
void plim_store_question_asked(const struct plim_store_asked *asked, struct plim_facts *key);

/* A resolved spec. Failures are remembered in the question, as plim_facts_add() does. */
void plim_store_question_spec(const struct plim_spec *spec, const struct plim_store_asked *asked,
                              struct plim_store_question *question);

/* A program: its command line with the content of its scripts and templates, its variables, and
 * what the options said (`options`, NAME=VALUE each). */
void plim_store_question_program(const struct plim_program *program,
                                 const struct plim_store_asked *asked, const char *const *options,
                                 size_t option_count, struct plim_store_question *question);

void plim_store_question_gpu(const struct plim_store_gpu *gpu,
                             struct plim_store_question *question);

#endif
