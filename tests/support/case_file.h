/* Files of cases, a JSON object a line, whose fields are those of the golden runs. */
#ifndef PLIM_TESTS_CASE_FILE_H
#define PLIM_TESTS_CASE_FILE_H

#include "workloads/spec/spec.h"
#include <jansson.h>

enum { CASE_LINE = 1 << 16 };

/* A parameter of a Criterion test. */
struct case_line {
    char line[CASE_LINE];
    char folder[512]; /* of the file */
};

/* The lines of a file, in Criterion's memory; none where `path` is NULL or not there. With
 * PLIM_CASES_EVERY=N in the environment the first and then every Nth. */
struct case_line *case_lines(const char *path, size_t *count);

int64_t case_integer(const json_t *object, const char *key, int64_t absent);
const char *case_text(const json_t *object, const char *key, const char *absent);
/* LoraConfig's fields, as they are; none where `lora` is NULL */
void case_lora(const json_t *lora, struct plim_lora *out);
/* Names of targets that mean experts are those of their stacked weights in a spec that is resolved. */
void case_resolve_lora(struct plim_spec *spec, struct plim_train_setting *setting);
/* How the case is trained; the test fails on a name that is not known. */
void case_setting(const json_t *c, struct plim_train_setting *setting);

#endif
