/* What words of a config mean in the rules of jobs.yaml. */
#ifndef PLIM_REPORTS_CONFIGS_JOB_WORDS_H
#define PLIM_REPORTS_CONFIGS_JOB_WORDS_H

#include "autotune/base/yaml.h"

enum { PLIM_CONFIG_JOB_TEXT = 1024 }; /* of a value, with its end */

/* "", null, None, []: is it no value? */
bool plim_config_word_is_null(const char *word);
/* Is something set? A number of zero is nothing. */
bool plim_config_word_is_set(const char *word);
/* Are they one, as for HfArgumentParser ("True", "yes", "on" and 1 are true), a type of PyTorch's by its name? */
bool plim_config_word_is_same(const char *a, const char *b);
/* Of "[a, b]": how many items are among the words, and how many there are. Anything else is one item. */
size_t plim_config_words_among(const struct plim_yaml_node *words, const char *text, size_t *count);

/* What a rule's words say for one; NULL: it is none of them, nor do they have "*". */
const char *plim_config_word_value(const struct plim_yaml_node *words, const char *word);

/* A mark and a text, in YAML's quotes; returns `out`. */
const char *plim_config_word_quote(const char *mark, const char *text, char out[PLIM_CONFIG_JOB_TEXT]);
/* A name in front of those of a list ("[a, b]"), or alone in front of anything else; returns `out`. */
const char *plim_config_word_besides(const char *name, const char *list, char out[PLIM_CONFIG_JOB_TEXT]);

#endif
