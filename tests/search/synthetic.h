/* A GPU and a model made of formulas, so that the right answer of a search is known.
 *
 * Memory of a setting: requested = fixed + batch x per_sample (scaled by the sequence), more
 * with a second micro-step, less with checkpointing; the allocator reserves `slack` more when
 * nothing limits it, and makes do with `squeeze` more when it must; `bumps` lifts it for some
 * batches, so that it is not monotone. Time: a fixed part, and tiles of `tile` samples that
 * take equally long full or not.
 */
#ifndef PLIM_TESTS_SYNTHETIC_H
#define PLIM_TESTS_SYNTHETIC_H

#include "autotune/answer/answer.h"
#include "autotune/search/search.h"

/* The axes of a synthetic question. */
enum { SYNTHETIC_SEQ, SYNTHETIC_PRECISION, SYNTHETIC_CHECKPOINTING, SYNTHETIC_AXES };
enum { SYNTHETIC_FP32, SYNTHETIC_MIXED, SYNTHETIC_BF16 };
enum { SYNTHETIC_NONE, SYNTHETIC_FULL };

struct synthetic {
    struct plim_runner runner; /* its user is this struct: do not move it after synthetic_init() */
    int64_t fixed_bytes, per_sample_bytes, gradient_bytes;
    size_t world;                   /* the axis of the GPUs that share fixed_bytes; 0: none do */
    double slack, squeeze;          /* shares of requested */
    int64_t bump_bytes, bump_every; /* every n-th batch needs so much more; 0: none */
    double step_seconds, tile_seconds;
    int64_t tile;
    double full_slower; /* a micro-step takes so many times as long with full checkpointing */
    /* These micro-batches end with a verdict of their own, whatever the memory; 0: none does. */
    int64_t fault_from, fault_to;
    enum plim_status fault;
    bool fault_limited_only;
    /* Proofs (with runner.proves): micro-batches from here to there run out of memory in a later
     * step, or do not come to repeat; others repeat. `late_retries`: needed by those. */
    int64_t late_from, late_to;
    enum { SYNTHETIC_FAILS_LATE, SYNTHETIC_NEVER_REPEATS } late;
    int64_t late_retries;
    struct synthetic_details {
        bool noisy;
        int64_t allocated_bytes;
        double flops_per_token;
    } details;         /* of every trial */
    size_t lose_after; /* the device is lost after so many runs; 0: never */
    size_t limited_runs, unlimited_runs, proof_runs, fault_runs;
};

/* A small and plain one: 1 GiB fixed, 100 MiB a sample of 1024 tokens, full checkpointing a
 * quarter of it. */
void synthetic_init(struct synthetic *s, int64_t budget_bytes);

/* Random numbers that are the same in every run. */
uint64_t synthetic_random(uint64_t *state);
int64_t synthetic_between(uint64_t *state, int64_t low, int64_t high);

/* A random one of sane proportions. */
void synthetic_randomize(struct synthetic *s, uint64_t *state);

/* What is true of a setting. */
bool synthetic_faults(const struct synthetic *s, const struct plim_setting *setting);
bool synthetic_fits(const struct synthetic *s, const struct plim_setting *setting);
double synthetic_seconds(const struct synthetic *s, const struct plim_setting *setting);

/* A question with one point: sequence 1024, mixed precision, no checkpointing. */
struct plim_question synthetic_question(void);

/* Other values of an axis, which outlive the question. */
void synthetic_axis(struct plim_question *question, int axis, size_t count, const int64_t *values);

/* That point, with a micro-batch. */
struct plim_setting synthetic_setting(int64_t micro_batch);

/* A whole decision; the caller finishes both. */
struct synthetic_run {
    struct plim_cache cache;
    struct plim_prober prober;
    struct plim_decision decision;
    struct plim_error err;
    enum plim_status status;
};
void synthetic_tune(struct synthetic_run *run, struct synthetic *s, struct plim_question *question,
                    enum plim_objective objective);
void synthetic_finish(struct synthetic_run *run);

/* What the report says of it: on a simulated GPU of 1 PFLOP/s at mixed precision, 2 at any other,
 * with 1 GiB of overhead. The caller finishes the result, which starts zeroed. */
void synthetic_answer(const struct synthetic_run *run, struct plim_result *result);
void synthetic_explain(const struct synthetic_run *run, const struct plim_inspection *inspection,
                       struct plim_result *result);

/* Is this text in a sentence of the report? */
bool synthetic_says(const struct plim_result *result, const char *text);

/* The edge of the only point. `cache` NULL: a cache of its own. `known` may be NULL. */
struct plim_edge synthetic_edge(struct synthetic *s, const struct plim_question *question,
                                struct plim_cache *cache, const struct plim_edge *known);

#endif
