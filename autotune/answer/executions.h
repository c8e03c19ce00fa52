/* Reads executions of a user's program (exec/execution.h) for an answer. */
#ifndef PLIM_AUTOTUNE_ANSWER_EXECUTIONS_H
#define PLIM_AUTOTUNE_ANSWER_EXECUTIONS_H

#include "answer.h"

struct plim_execution;

extern const struct plim_details_reader plim_details_execution;

/* Appends what is particular to programs: how the reported execution ended, what the program does
 * when memory is refused, what the virtual GPU noted. `uses_batch`: {batch} is a placeholder. */
void plim_reasons_program(const struct plim_answer *answer, const struct plim_decision *decision,
                          bool uses_batch, struct plim_result *result);

/* The same of one trial, for a result that tells of more than programs: how it ended, and the values
 * that it asked a virtual GPU for. */
void plim_reasons_execution(const struct plim_execution *execution, struct plim_result *result);

#endif
