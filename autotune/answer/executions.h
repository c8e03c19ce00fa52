/* Reads the details of trials of a user's program (exec/execution.h). */
#ifndef PLIM_AUTOTUNE_ANSWER_EXECUTIONS_H
#define PLIM_AUTOTUNE_ANSWER_EXECUTIONS_H

#include "answer.h"

struct plim_execution;

extern const struct plim_details_reader plim_details_execution;

/* Appends the reasons that only programs have: how the reported trial ended, what the program does when memory is
 * refused, the virtual GPU's notes. `uses_batch`: {batch} is a placeholder. */
void plim_reasons_program(const struct plim_answer *answer, const struct plim_decision *decision,
                          bool uses_batch, struct plim_result *result);

/* Appends the reasons about one trial of a program, for the result of a spec: how it ended, and the values that it read
 * from a virtual GPU. */
void plim_reasons_execution(const struct plim_execution *execution, struct plim_result *result);

#endif
