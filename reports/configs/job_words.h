/* The meaning of a config's values in the rules of jobs.yaml. */
#ifndef PLIM_REPORTS_CONFIGS_JOB_WORDS_H
#define PLIM_REPORTS_CONFIGS_JOB_WORDS_H

#include "autotune/base/yaml.h"

enum { PLIM_CONFIG_JOB_TEXT = 1024 }; /* size of a value's text, including the terminating null */

/* True if the word stands for no value: "", null, None, []. */
bool plim_config_word_is_null(const char *word);
/* True if the word counts as set. Zero does not. */
bool plim_config_word_is_set(const char *word);
/* True if two words are equal: booleans as for HfArgumentParser ("True", "yes", "on" and 1 are true), and PyTorch's
 * types by name. */
bool plim_config_word_is_same(const char *a, const char *b);
/* For "[a, b]": returns how many items are among `words`, and in *count how many items there are. Anything else is one
 * item. */
size_t plim_config_words_among(const struct plim_yaml_node *words, const char *text, size_t *count);

/* Returns the value that a rule's words give for a word; NULL if it is not among them and there is no "*". */
const char *plim_config_word_value(const struct plim_yaml_node *words, const char *word);

/* Writes a mark followed by a text, quoted as in YAML, to `out`; returns `out`. */
const char *plim_config_word_quote(const char *mark, const char *text, char out[PLIM_CONFIG_JOB_TEXT]);
/* Writes a list of `name` and the items of `list` ("[a, b]"), or of `name` alone if it is no list, to `out`; returns
 * `out`. */
const char *plim_config_word_besides(const char *name, const char *list, char out[PLIM_CONFIG_JOB_TEXT]);

#endif
