/* Helpers of the spec's tests: documents in files of their own, loaded or refused. */
#ifndef PLIM_TESTS_SPEC_FILES_H
#define PLIM_TESTS_SPEC_FILES_H

#include "workloads/spec/spec.h"

/* A directory for this test alone, made once; its files go with spec_files_remove(). */
const char *spec_files_dir(void);
void spec_files_remove(void);

/* Writes DIR/name. Returns its path, valid until the next call. */
const char *spec_file(const char *name, const char *text);

/* Loads `text` as DIR/name; the test fails with the message if that is refused. */
void spec_load_text(const char *name, const char *text, struct plim_spec *spec);

/* The one line that loading gives, without DIR/ in front. The test fails unless the status is
 * PLIM_SPEC and `spec` was left zeroed. Valid until the next call. */
const char *spec_refusal_of(const char *source);
const char *spec_refusal(const char *name, const char *text);

/* Do both say the same: every field but name, source and what was given only? */
bool spec_equal(const struct plim_spec *a, const struct plim_spec *b);

/* The exact number of parameters of the model in transformers, from its dimensions. */
int64_t spec_parameters(const struct plim_model_config *model);

#endif
