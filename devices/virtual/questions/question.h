/* What the host asks of the GPU's values and only a real GPU knows: such a question is answered as
 * 0, or as all that a mask may select, or as the user says (--assume), or so that a check holds, and it is written
 * down with its place in the program (machine/question.h). */
#ifndef PLIM_DEVICES_VIRTUAL_QUESTIONS_QUESTION_H
#define PLIM_DEVICES_VIRTUAL_QUESTIONS_QUESTION_H

#include "devices/virtual/machine/question.h"
#include <stddef.h>
#include <stdint.h>

/* For plim_transfer_asked (work/transfer.h): the host has read `bytes` bytes, of which `known` tells. */
void plim_question_asked(uintptr_t from, void *to, size_t bytes, unsigned known);

/* Who asks, and what for, as far as the program's language tells. */
struct plim_question_asker {
    char place[PLIM_QUESTION_TEXT]; /* "FILE:LINE"; "": not known */
    enum plim_question_use use;
    /* CHECKED: the truth value with which the program goes on where the other one ends it; else 1 where 0 would, as it
     * divides by the value; or -1 */
    int answer;
    enum plim_assumption assumes; /* where it is checked: what holds then; else 0 */
};

/* Fills it in; NULL: it is not known. `is_floating`: what is read is known to be floating-point numbers.
 * Called without the lock. */
extern void (*plim_question_find_asker)(size_t bytes, bool is_floating,
                                        struct plim_question_asker *asker);

#endif
