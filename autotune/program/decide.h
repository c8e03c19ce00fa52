/* The decision about a user's program: the search, the choice and the reasons of tune
 * (autotune/tune.h), asked of trials of the program.
 *
 * Virtual cards know bytes and not time, so the largest micro-batch is chosen there, and nothing is
 * said of how fast it is. On a real card the time from step to step is taken where steps are
 * recognised, and the fastest setting wins.
 */
#ifndef PLIM_AUTOTUNE_PROGRAM_DECIDE_H
#define PLIM_AUTOTUNE_PROGRAM_DECIDE_H

#include "autotune/card.h"
#include "autotune/choose.h"
#include "runner.h"

struct plim_program_question {
    const struct plim_program *program;
    const struct plim_spec *spec;  /* its batch, sequence and the like; no model */
    const struct plim_card *card;  /* open, with its limit: simulated, or real for a program */
    const struct plim_stop *stop;
    const struct plim_log *log;    /* of what went wrong in a trial */
    struct plim_trial_order order; /* cards and stop are filled in here */
    int64_t cards, jobs;
    bool uses_batch, uses_seq, uses_precision, uses_accumulation; /* which of them are placeholders of the program */
    void (*on_run)(void *user);    /* told before each trial; may be NULL */
    void *user;
};

/* Fills the zeroed result. PLIM_INVALID: the program cannot be started, or does not use its batch;
 * that nothing fits, or that it fails, is a result. */
enum plim_status plim_program_decide(const struct plim_program_question *question,
                                     struct plim_result *result,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* The cards of a machine like this card, with its margin withheld. */
void plim_program_cards(const struct plim_card *card, int64_t count,
                        struct plim_machine_card *out);

#endif
