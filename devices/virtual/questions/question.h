/* Reads by the host of values that only a real GPU knows. The program gets 0, or the most that a mask can select, or
 * the value given by the user (--assume), or one with which a check passes; the question is recorded with its place in
 * the program (machine/question.h). */
#ifndef PLIM_DEVICES_VIRTUAL_QUESTIONS_QUESTION_H
#define PLIM_DEVICES_VIRTUAL_QUESTIONS_QUESTION_H

#include "devices/virtual/machine/question.h"
#include <stddef.h>
#include <stdint.h>

/* For plim_transfer_asked (work/transfer.h): the host has read `bytes` bytes whose states are `known`. */
void plim_question_asked(uintptr_t from, void *to, size_t bytes, unsigned known);

/* The code that reads a value, and what for, as far as the program's language can tell. */
struct plim_question_asker {
    char place[PLIM_QUESTION_TEXT]; /* "FILE:LINE"; "": unknown */
    enum plim_question_use use;
    /* CHECKED: the truth value with which the program continues, if the other one ends it. Otherwise 1 if the program
     * divides by the value, so that 0 would end it. Otherwise -1. */
    int answer;
    enum plim_assumption assumes; /* CHECKED: the assumption that follows; otherwise 0 */
};

/* Fills in the asker; NULL: not available. `is_floating`: the values are known to be floating-point numbers. Called
 * without the lock. */
extern void (*plim_question_find_asker)(size_t bytes, bool is_floating,
                                        struct plim_question_asker *asker);

#endif
