/* Edits of bytes: a value replaced, a key added, all of them put into the text and proven. */
#ifndef PLIM_REPORTS_CONFIGS_SPLICE_H
#define PLIM_REPORTS_CONFIGS_SPLICE_H

#include "patch_plan.h"
#include "config_value.h"

/* Replaces what `value` says of `node` by a number in the style of the old one; nothing when it is
 * the same already. `plain`: never in quotes. PLIM_NOMEM is the only failure. */
enum plim_status plim_config_replace(struct plim_config_file *file, const char *path,
                                     struct plim_config_node *node,
                                     const struct plim_config_value *value, int64_t number,
                                     bool plain, struct plim_error *err) PLIM_MUST_CHECK;

/* The same of a scalar that is a word, within its quotes. */
enum plim_status plim_config_replace_word(struct plim_config_file *file, const char *path,
                                          struct plim_config_node *node, const char *word,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Adds `key` to a mapping, beside `sibling` where that is a member of it (else beside any),
 * dressed as that one is. `under` is a mapping to be made around it; NULL: none. PLIM_SPEC: there
 * is no way to write it there. */
enum plim_status plim_config_insert(struct plim_config_file *file, struct plim_config_node *mapping,
                                    struct plim_config_node *sibling, const char *under,
                                    const char *key, const char *value,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Makes `file->after` of the edits, reads it again and compares: only what the edits say may
 * differ. */
enum plim_status plim_config_splice(struct plim_config_file *file,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
