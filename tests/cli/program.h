/* Runs the plimsoll binary as a person would: another process, its two streams, its exit code. */
#ifndef PLIM_TESTS_CLI_PROGRAM_H
#define PLIM_TESTS_CLI_PROGRAM_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct program {
    int exit_code; /* -1: it was ended by a signal */
    char *out, *err;
};

/* Runs `plimsoll` with `arguments`, which are separated by blanks; a blank inside of one is
 * written '~'. The test fails when the program cannot be started. */
struct program program_run(const char *arguments);

/* The same, and sends it `signal_number` so many milliseconds after it handles or ignores it
 * (SIGKILL: after its start). What this process ignores, the program inherits: a test of a signal
 * that it handles says signal(..., SIG_DFL) first, as callers of tests may ignore it (nohup, jobs of
 * shells). */
struct program program_run_and_signal(const char *arguments, int signal_number, int milliseconds);

/* Returns when the process handles or ignores the signal; fails the test when that takes a minute. */
void program_wait_until_ready(pid_t pid, int signal_number);

/* Its stdout as JSON; the test fails when it is none. The caller decrefs it. */
json_t *program_json(const struct program *program);

/* The node at a path such as "results.0.choice.peak"; NULL where there is none. Borrowed. */
json_t *json_at(json_t *root, const char *path);
json_int_t json_int_at(json_t *root, const char *path); /* the test fails unless it is an integer */
const char *json_text_at(json_t *root, const char *path); /* the test fails unless it is a string */

bool json_true_at(json_t *root, const char *path); /* false, too, where there is no such node */
bool json_false_at(json_t *root, const char *path);
bool json_null_at(json_t *root, const char *path);
/* The test goes on, and has failed, where the text is another one or a key is missing. */
void json_expect_text(json_t *root, const char *path, const char *text);
void json_expect_keys(json_t *object, const char *const *keys); /* ended by NULL */

/* A file in a new directory below /tmp, with this text. */
char *program_file(const char *name, const char *text);
void program_file_remove(char *path); /* with its directory; frees the path */

void program_finish(struct program *program);

/* Of a test to which orphans are given (PR_SET_CHILD_SUBREAPER): has every process ended? Those that are just
 * ending, as LeakSanitizer's helper, have two seconds for it. */
bool program_none_is_left(void);

#endif
