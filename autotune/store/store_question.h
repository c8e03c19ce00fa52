/* Makes the store's question about a spec or a program on a GPU. The subject is added first, then the GPU. */
#ifndef PLIM_AUTOTUNE_STORE_STORE_QUESTION_H
#define PLIM_AUTOTUNE_STORE_STORE_QUESTION_H

#include "autotune/exec/user_program.h"
#include "autotune/run/allowance.h"
#include "autotune/run/target.h"
#include "answer_store.h"
#include "workloads/spec/spec.h"

/* The properties of a GPU for which an answer is valid. */
struct plim_store_gpu {
    bool simulated;
    char name[96], mig_profile[32], driver[96];
    int compute_capability;
    char processors[96]; /* their number: "6912 cores", "98 multiprocessors" */
    int64_t usable_bytes;                    /* for one program */
    int64_t total_bytes;
    double power_limit_watts; /* 0 or less: not known */
    int max_sm_mhz;           /* 0 or less: not known */
    char mps[208]; /* "on", with the limits of a client; "": CUDA opens the GPU itself */
};

/* Fills in `out` for a GPU of this machine. With `counts_others`, memory that other processes hold is not usable,
 * except for small amounts; otherwise the GPU counts as empty, so that all ranks of a job have the same question.
 * Returns false if NVML does not report enough to look up an answer. */
bool plim_store_gpu_of_target(const struct plim_target *target, bool counts_others,
                              struct plim_store_gpu *out);

/* True if an answer for one GPU is valid for the other. */
bool plim_store_gpu_equal(const struct plim_store_gpu *a, const struct plim_store_gpu *b);

/* The parts of a question besides its subject and GPU. */
struct plim_store_asked {
    const char *version;   /* of plimsoll */
    const char *objective; /* its name: "throughput" */
    const char *waterfall; /* as on the command line; NULL: none */
    const struct plim_allowance *allowance;
};

/* Adds these parts to the key. Called by the two functions below. */
void plim_store_question_asked(const struct plim_store_asked *asked, struct plim_facts *key);

/* Adds a resolved spec as the subject. Lack of memory is recorded in the question, as by plim_facts_add(). */
void plim_store_question_spec(const struct plim_spec *spec, const struct plim_store_asked *asked,
                              struct plim_store_question *question);

/* Adds a program as the subject: its command line with hashes of its scripts and templates, its variables, and
 * plimsoll's options (`options`, NAME=VALUE each). */
void plim_store_question_program(const struct plim_program *program,
                                 const struct plim_store_asked *asked, const char *const *options,
                                 size_t option_count, struct plim_store_question *question);

/* Adds the GPU. */
void plim_store_question_gpu(const struct plim_store_gpu *gpu,
                             struct plim_store_question *question);

#endif
