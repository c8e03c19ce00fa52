/* A user's program as a question to the search: its placeholders are the axes. */
#ifndef PLIM_AUTOTUNE_EXEC_PROGRAM_QUESTION_H
#define PLIM_AUTOTUNE_EXEC_PROGRAM_QUESTION_H

#include "autotune/search/question.h"
#include "axis_values.h"

/* Owns the values that its axes point to; must not be copied or moved once an axis is added. The caller fills in
 * question.batch, except the micro-batches. */
struct plim_program_question {
    struct plim_question question;
    bool uses_batch;        /* {batch} is a placeholder; otherwise every trial has the same batch */
    bool uses_accumulation; /* {accumulation} is a placeholder */
    struct plim_axis_values lists[PLIM_AXES];
    int64_t *values[PLIM_AXES];
    int64_t *batches;
};

void plim_program_question_init(struct plim_program_question *q, enum plim_objective objective);
void plim_program_question_finish(struct plim_program_question *q); /* NULL or a zeroed one is allowed */

/* Adds an axis {name} whose values are strings; `text` lists them in the syntax of axis_values.h. `option` names the
 * option in error messages. PLIM_INVALID: a syntax error, the name is taken, or there are too many axes or values. */
enum plim_status plim_program_question_axis(struct plim_program_question *q, const char *option,
                                            const char *name, const char *text, bool is_users,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* Adds the axis {seq}, whose values are sequence lengths in tokens. */
enum plim_status plim_program_question_seq(struct plim_program_question *q, const char *text,
                                           struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the values of {batch} from --batch. If `text` is NULL: any batch, or one sample if {batch} is not a
 * placeholder. */
enum plim_status plim_program_question_batch(struct plim_program_question *q, const char *text,
                                             struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the number of combinations of all axes' values; 1 without axes. */
size_t plim_program_question_points(const struct plim_program_question *q);

#endif
