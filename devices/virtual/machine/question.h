/* Questions: values that the program read from its GPU and that only a real GPU would know. Each records
 * which value the program got, where it read it, and what it did with it. A part of the virtual machine
 * (machine.h), so that plimsoll can report them.
 */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_QUESTION_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

/* In increasing order: of two uses the greater one counts. */
enum plim_question_use {
    PLIM_QUESTION_SHOWN,   /* printed, or dropped */
    PLIM_QUESTION_KEPT,    /* stored: its further use is not seen (a loss that is summed) */
    PLIM_QUESTION_CHECKED, /* an unexpected value raises an exception that ends the program */
    PLIM_QUESTION_GIVEN,   /* a decision depends on it, and the user gave the value (--assume) */
    PLIM_QUESTION_DECIDES, /* a decision depends on it: the program continues as if it were `answer` */
};

/* How many reads at one place in one training step make a loop; the same for a loop that runs while a mask selects
 * something; the same once a loop was recognised there (questions/loops.h). */
enum { PLIM_LOOP_READS = 1000, PLIM_LOOP_READS_OF_MASK = 100, PLIM_LOOP_READS_AGAIN = 10 };

enum { PLIM_QUESTION_TEXT = 120, PLIM_MACHINE_QUESTIONS = 32, PLIM_MACHINE_GIVEN = 16 };

struct plim_machine_question {
    char kernel[PLIM_QUESTION_TEXT]; /* the kernel that wrote the value; "": none did */
    char place[PLIM_QUESTION_TEXT];  /* "FILE:LINE" of the code that read it; "": not known */
    int32_t use;                     /* enum plim_question_use */
    int32_t divides; /* the program divides by the value and was given 1, since 0 would end it */
    int64_t count, bytes;            /* how often it was read; the most bytes of one read */
    int64_t answer; /* the largest value given: 0, or the most that a mask can select */
    int64_t turned; /* how often another value than before was given, to end a loop (questions/loops.h) */
};

/* The values that the user gives for the reads at a place, in turn and repeating from the start. */
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

/* Assumptions behind an answer. All but the last two are also bits of the state of a byte (memory/shadow.h). */
enum plim_assumption {
    PLIM_ASSUMPTION_FINITE = 4,   /* learned numbers are finite */
    PLIM_ASSUMPTION_SPREAD = 8,   /* the top-k of learned numbers are spread evenly: routing to experts */
    PLIM_ASSUMPTION_SEED = 16,    /* random numbers are those of one particular seed */
    PLIM_ASSUMPTION_ALL = 32,     /* a mask of learned numbers selects all elements: the most memory */
    PLIM_ASSUMPTION_LONGEST = 64, /* a generated token never ends the text: generation runs to the longest length */
    PLIM_ASSUMPTION_CHECKS = 128, /* checks pass */
    PLIM_ASSUMPTION_BELOW = 256,  /* numbers that are counted (bincount) are below the program's minlength */
};

struct plim_machine_questions {
    uint32_t count; /* of rows */
    uint32_t assumed;
    uint32_t given_read; /* a bit for each of the machine's given places: were values read there? */
    int64_t unlisted; /* questions for which there was no row */
    struct plim_machine_question rows[PLIM_MACHINE_QUESTIONS];
};

struct plim_machine;

/* Parses "FILE:LINE=VALUE[*TIMES][,VALUE[*TIMES]...]", VALUE a number or true or false; false: not valid. */
bool plim_machine_given_parse(const char *text, struct plim_machine_given *out);
/* The value for the next read after `reads` earlier ones. */
const struct plim_given_value *plim_machine_given_value(const struct plim_machine_given *given, int64_t reads);

/* Called by the program: adds a question (its count is 1), and assumptions behind an answer. Where all rows
 * are taken, one of a lesser use is replaced, so that no decision is lost for values that are only shown. */
void plim_machine_ask(struct plim_machine *machine, const struct plim_machine_question *question);
void plim_machine_assume(struct plim_machine *machine, uint32_t assumptions);
/* The values that the user gave for a place where the program now reads; NULL: none. */
const struct plim_machine_given *plim_machine_find_given(struct plim_machine *machine, const char *place);

/* Called by plimsoll: a copy with terminated texts and numbers in range (machine.h). */
void plim_machine_read_questions(const struct plim_machine *machine,
                                 struct plim_machine_questions *out);

#endif
