/* Questions: values that the program read from its GPU and that only a real GPU would know. Each records the value that
 * the program got, where it read it, and what it did with it. Part of the virtual machine (machine.h), so that plimsoll
 * can report them. */
#ifndef PLIM_DEVICES_VIRTUAL_MACHINE_QUESTION_H
#define PLIM_DEVICES_VIRTUAL_MACHINE_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

/* What the program does with a value, in increasing order of importance; of several uses the greatest counts. */
enum plim_question_use {
    PLIM_QUESTION_SHOWN,   /* printed or discarded */
    PLIM_QUESTION_KEPT,    /* stored; its further use is not seen (a loss that is summed) */
    PLIM_QUESTION_CHECKED, /* an unexpected value raises an exception that ends the program */
    PLIM_QUESTION_GIVEN,   /* a decision depends on it; the user gave the value (--assume) */
    PLIM_QUESTION_DECIDES, /* a decision depends on it; the program continues as if the value were `answer` */
};

/* How many reads at one place within one training step are taken for a loop; the same for a loop that runs while a mask
 * selects something; and the same after a loop was recognised at that place (questions/loops.h). */
enum { PLIM_LOOP_READS = 1000, PLIM_LOOP_READS_OF_MASK = 100, PLIM_LOOP_READS_AGAIN = 10 };

enum { PLIM_QUESTION_TEXT = 120, PLIM_MACHINE_QUESTIONS = 32, PLIM_MACHINE_GIVEN = 16 };

struct plim_machine_question {
    char kernel[PLIM_QUESTION_TEXT]; /* kernel that wrote the value; "": none */
    char place[PLIM_QUESTION_TEXT];  /* "FILE:LINE" of the code that read it; "": unknown */
    int32_t use;                     /* enum plim_question_use */
    int32_t divides; /* the program divides by the value and got 1, since 0 would end it */
    int64_t count, bytes;            /* number of reads; most bytes of one read */
    int64_t answer; /* largest value returned: 0, or the most that a mask can select */
    int64_t turned; /* how often a different value was returned in order to end a loop (questions/loops.h) */
};

/* Values that the user gives for the reads at a place, used in turn and repeated from the start. */
enum { PLIM_GIVEN_VALUES = 8 };
struct plim_given_value {
    int64_t times;
    bool is_whole;
    double number;
};
struct plim_machine_given {
    char place[PLIM_QUESTION_TEXT]; /* a suffix of the path is enough */
    int32_t count;                  /* at least 1 */
    struct plim_given_value values[PLIM_GIVEN_VALUES];
};

/* Assumptions on which an answer depends. All but the last two are also bits of a byte's state (memory/shadow.h). */
enum plim_assumption {
    PLIM_ASSUMPTION_FINITE = 4,   /* learned values are finite */
    PLIM_ASSUMPTION_SPREAD = 8,   /* the top-k of learned values are spread evenly: routing to experts */
    PLIM_ASSUMPTION_SEED = 16,    /* random numbers are those of one particular seed */
    PLIM_ASSUMPTION_ALL = 32,     /* a mask of learned values selects all elements, which takes the most memory */
    PLIM_ASSUMPTION_LONGEST = 64, /* a generated token never ends the text: generation runs to the maximum length */
    PLIM_ASSUMPTION_CHECKS = 128, /* checks pass */
    PLIM_ASSUMPTION_BELOW = 256,  /* values that are counted (bincount) are below the program's minlength */
};

struct plim_machine_questions {
    uint32_t count; /* number of rows */
    uint32_t assumed;
    uint32_t given_read; /* bit mask of the given places at which values were read */
    int64_t unlisted; /* questions without a row */
    struct plim_machine_question rows[PLIM_MACHINE_QUESTIONS];
};

struct plim_machine;

/* Parses "FILE:LINE=VALUE[*TIMES][,VALUE[*TIMES]...]", where VALUE is a number, true or false. Returns false if it is
 * not valid. */
bool plim_machine_given_parse(const char *text, struct plim_machine_given *out);
/* Returns the value for the next read after `reads` earlier ones. */
const struct plim_given_value *plim_machine_given_value(const struct plim_machine_given *given, int64_t reads);

/* Called by the program: add a question (counted once), and assumptions on which an answer depends. If all rows are
 * used, one of lesser use is replaced, so that no decision is lost to values that are merely shown. */
void plim_machine_add_question(struct plim_machine *machine, const struct plim_machine_question *question);
void plim_machine_assume(struct plim_machine *machine, uint32_t assumptions);
/* Returns the values that the user gave for the place of a read, or NULL. */
const struct plim_machine_given *plim_machine_find_given(struct plim_machine *machine, const char *place);

/* Called by plimsoll: returns a copy with terminated strings and numbers in range (machine.h). */
void plim_machine_read_questions(const struct plim_machine *machine,
                                 struct plim_machine_questions *out);

#endif
