/* The meaning of a config's words in the rules of jobs.yaml. */
#ifndef PLIM_REPORTS_CONFIGS_JOB_WORDS_H
#define PLIM_REPORTS_CONFIGS_JOB_WORDS_H

#include "autotune/base/yaml.h"

enum { PLIM_CONFIG_JOB_TEXT = 1024 }; /* bytes of a value, with the terminating zero */

/* Does the word stand for no value: "", null, None, []? */
bool plim_config_word_is_null(const char *word);
/* Is the word a value that counts as set? Zero does not. */
bool plim_config_word_is_set(const char *word);
/* Are two words equal, as for HfArgumentParser ("True", "yes", "on" and 1 are true), and PyTorch's types by name? */
bool plim_config_word_is_same(const char *a, const char *b);
/* For "[a, b]": how many items are among `words`; *count: how many items there are. Anything else is one item. */
size_t plim_config_words_among(const struct plim_yaml_node *words, const char *text, size_t *count);

/* The value that a rule's words give for a word; NULL: it is none of them, and they have no "*". */
const char *plim_config_word_value(const struct plim_yaml_node *words, const char *word);

/* A mark followed by a text, in YAML's quotes; returns `out`. */
const char *plim_config_word_quote(const char *mark, const char *text, char out[PLIM_CONFIG_JOB_TEXT]);
/* A list of `name` and the items of `list` ("[a, b]"), or of `name` alone for anything else; returns `out`. */
const char *plim_config_word_besides(const char *name, const char *list, char out[PLIM_CONFIG_JOB_TEXT]);

#endif
