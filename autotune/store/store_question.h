/* Makes the store's question about a spec or a program on a GPU. Add the subject first, then the GPU. */
#ifndef PLIM_AUTOTUNE_STORE_STORE_QUESTION_H
#define PLIM_AUTOTUNE_STORE_STORE_QUESTION_H

#include "autotune/exec/user_program.h"
#include "autotune/run/allowance.h"
#include "autotune/run/target.h"
#include "answer_store.h"
#include "workloads/spec/spec.h"

/* The properties of a GPU for which an answer holds. */
struct plim_store_gpu {
    bool simulated;
    char name[96], mig_profile[32], driver[96];
    int compute_capability;
    char processors[96]; /* how many: "6912 cores", "98 multiprocessors" */
    int64_t usable_bytes;                    /* by one program */
    int64_t total_bytes;
    double power_limit_watts; /* 0 or less: not known */
    int max_sm_mhz;           /* 0 or less: not known */
    char mps[208]; /* "on", with the limits of a client; "": CUDA opens the GPU itself */
};

/* For a GPU of this machine. `counts_others`: memory that other processes hold now is not usable, unless it is
 * only a little; else the question is about the GPU itself, which every rank of a job
 * sees alike. False: NVML does not tell enough to look up an answer. */
bool plim_store_gpu_of_target(const struct plim_target *target, bool counts_others,
                              struct plim_store_gpu *out);

/* Is an answer for one of them an answer for the other? */
bool plim_store_gpu_equal(const struct plim_store_gpu *a, const struct plim_store_gpu *b);

/* The parts of a question besides its subject. */
struct plim_store_asked {
    const char *version;   /* of plimsoll */
    const char *objective; /* its name */
    const char *waterfall; /* as typed; NULL: none */
    const struct plim_allowance *allowance;
};

/* Adds them to the key; the two functions below call it. */
void plim_store_question_asked(const struct plim_store_asked *asked, struct plim_facts *key);

/* The subject is a resolved spec. Failures are recorded in the question, as by plim_facts_add(). */
void plim_store_question_spec(const struct plim_spec *spec, const struct plim_store_asked *asked,
                              struct plim_store_question *question);

/* The subject is a program: its command line with the contents of its scripts and templates, its variables, and
 * plimsoll's options (`options`, NAME=VALUE each). */
void plim_store_question_program(const struct plim_program *program,
                                 const struct plim_store_asked *asked, const char *const *options,
                                 size_t option_count, struct plim_store_question *question);

void plim_store_question_gpu(const struct plim_store_gpu *gpu,
                             struct plim_store_question *question);

#endif
