/* A user's program as a question to the search: its placeholders are the axes.
 */
#ifndef PLIM_AUTOTUNE_EXEC_PROGRAM_QUESTION_H
#define PLIM_AUTOTUNE_EXEC_PROGRAM_QUESTION_H

#include "autotune/search/question.h"
#include "axis_values.h"

/* Contains the values that its axes point to: do not copy or move it once an axis is added. Zeroed is
 * empty. The caller fills in question.batch, except the list of micro-batches. */
struct plim_program_question {
    struct plim_question question;
    bool uses_batch;        /* {batch} is a placeholder; else every trial runs the program unchanged */
    bool uses_accumulation; /* {accumulation} is one */
    struct plim_axis_values lists[PLIM_AXES];
    int64_t *values[PLIM_AXES];
    int64_t *batches;
};

void plim_program_question_init(struct plim_program_question *q, enum plim_objective objective);
void plim_program_question_finish(struct plim_program_question *q); /* NULL and zeroed are fine */

/* Adds an axis {name} whose values are texts, `text` in the syntax of axis_values.h. `option` names the
 * option in messages. PLIM_INVALID: not understood, the name is taken, or there are too many. */
enum plim_status plim_program_question_axis(struct plim_program_question *q, const char *option,
                                            const char *name, const char *text, bool is_users,
                                            struct plim_error *err) PLIM_MUST_CHECK;

/* Adds the axis {seq}, whose values are numbers of tokens. */
enum plim_status plim_program_question_seq(struct plim_program_question *q, const char *text,
                                           struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the values of {batch}. NULL: it is not a placeholder, and a trial counts as one sample. */
enum plim_status plim_program_question_batch(struct plim_program_question *q, const char *text,
                                             struct plim_error *err) PLIM_MUST_CHECK;

/* How many combinations there are of all axes; 1 without any. */
size_t plim_program_question_points(const struct plim_program_question *q);

#endif
