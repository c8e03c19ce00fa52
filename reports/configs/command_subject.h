/* What a command is about, by the script that it runs ("eval.py", "trl/scripts/dpo.py") or by the first argument of the
 * program trl ("trl dpo"). */
#ifndef PLIM_REPORTS_COMMAND_SUBJECT_H
#define PLIM_REPORTS_COMMAND_SUBJECT_H

#include <stddef.h>

/* Of the word of `text` from `begin` to `end`: "eval", or one of the ways to train that are not the usual one ("dpo",
 * "grpo", ...); NULL: the word says nothing of the kind. */
const char *plim_config_subject(const char *text, size_t begin, size_t end);

#endif
