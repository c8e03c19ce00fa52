/* Values that the program asked of its GPU and that only a real one knows: what it was told, where it
 * asked, and what it did with the answer. A part of the virtual machine (machine.h), so that
 * plimsoll can say so.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_QUESTION_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

/* In this order: of two uses the greater one counts. */
enum plim_question_use {
    PLIM_QUESTION_SHOWN,   /* printed, or dropped */
    PLIM_QUESTION_KEPT,    /* put away: what becomes of it is not seen (a loss that is added up) */
    PLIM_QUESTION_CHECKED, /* an exception ends the program if it is not as it should be */
    PLIM_QUESTION_GIVEN,   /* it decides, and the user has said what it is (--assume) */
    PLIM_QUESTION_DECIDES, /* the program goes on as if it were `answer` */
};

/* How often a place is read in one training step before it counts as a loop, one that goes on while a mask selects any,
 * and how often one goes round that did (questions/loops.h). */
enum { PLIM_LOOP_READS = 1000, PLIM_LOOP_READS_OF_MASK = 100, PLIM_LOOP_READS_AGAIN = 10 };

enum { PLIM_QUESTION_TEXT = 120, PLIM_MACHINE_QUESTIONS = 32, PLIM_MACHINE_GIVEN = 16 };

struct plim_machine_question {
    char kernel[PLIM_QUESTION_TEXT]; /* that wrote it; "": none did */
    char place[PLIM_QUESTION_TEXT];  /* "FILE:LINE" of the code that asked; "": not known */
    int32_t use;                     /* enum plim_question_use */
    int32_t divides; /* it was told 1, since 0 would end it: it divides by the value */
    int64_t count, bytes;            /* so often; the most bytes of one */
    int64_t answer; /* what the program was told: 0, or the most that a mask selects; the largest */
    int64_t turned; /* so often it was told otherwise than before, so that it leaves a loop (questions/loops.h) */
};

/* What the user says of the values that are read at a place, in turn and over again. */
enum { PLIM_GIVEN_VALUES = 8 };
struct plim_given_value {
    int64_t times;
    bool is_whole;
    double number;
};
struct plim_machine_given {
    char place[PLIM_QUESTION_TEXT]; /* the end of a path is enough */
    int32_t count;                  /* 1 at least */
    struct plim_given_value values[PLIM_GIVEN_VALUES];
};

/* What an answer rests on besides. All but the last two are bits of what is known of a byte (memory/shadow.h), too. */
enum plim_assumption {
    PLIM_ASSUMPTION_FINITE = 4,   /* learned numbers are finite */
    PLIM_ASSUMPTION_SPREAD = 8,   /* the largest of learned numbers are spread evenly: routing */
    PLIM_ASSUMPTION_SEED = 16,    /* random numbers are those of some seed */
    PLIM_ASSUMPTION_ALL = 32,     /* a mask of learned numbers selects all that it may: no memory is missed */
    PLIM_ASSUMPTION_LONGEST = 64, /* a token that a model picks ends no text: generation goes on to its longest */
    PLIM_ASSUMPTION_CHECKS = 128, /* checks hold */
    PLIM_ASSUMPTION_BELOW = 256,  /* numbers that are counted (bincount) are less than the program says at least */
};

struct plim_machine_questions {
    uint32_t count; /* of rows */
    uint32_t assumed;
    uint32_t given_read; /* bits: of which of the machine's given places values were read */
    int64_t unlisted; /* questions for which there was no row */
    struct plim_machine_question rows[PLIM_MACHINE_QUESTIONS];
};

struct plim_machine;

/* "FILE:LINE=VALUE[*TIMES][,VALUE[*TIMES]...]", VALUE a number or true or false; false: it is none. */
bool plim_machine_given_parse(const char *text, struct plim_machine_given *out);
/* The value that is read there after so many others. */
const struct plim_given_value *plim_machine_given_value(const struct plim_machine_given *given, int64_t reads);

/* The program's side: adds one, with its count of 1; assumptions that an answer rests on. Where all rows
 * are taken, one of a lesser use is given up: what decides is not lost behind what is only shown. */
void plim_machine_ask(struct plim_machine *machine, const struct plim_machine_question *question);
void plim_machine_assume(struct plim_machine *machine, uint32_t assumptions);
/* What the user said of that place, which is read now; NULL: nothing. */
const struct plim_machine_given *plim_machine_find_given(struct plim_machine *machine, const char *place);

/* plimsoll's: a copy whose texts end and whose numbers are in range (machine.h). */
void plim_machine_read_questions(const struct plim_machine *machine,
                                 struct plim_machine_questions *out);

#endif
