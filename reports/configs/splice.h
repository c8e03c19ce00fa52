/* Edits of bytes: replace a value, add a key, then apply all edits to the text and verify the result. */
#ifndef PLIM_REPORTS_CONFIGS_SPLICE_H
#define PLIM_REPORTS_CONFIGS_SPLICE_H

#include "patch_plan.h"
#include "config_value.h"

/* Replaces the bytes of `value` in `node` by a number in the style of the old one; does nothing if the number is the
 * same. `plain`: without quotes. Can only fail with PLIM_NOMEM. */
enum plim_status plim_config_replace(struct plim_config_file *file, const char *path,
                                     struct plim_config_node *node,
                                     const struct plim_config_value *value, int64_t number,
                                     bool plain, struct plim_error *err) PLIM_MUST_CHECK;

/* Same for a scalar that is a word, within its quotes. */
enum plim_status plim_config_replace_word(struct plim_config_file *file, const char *path,
                                          struct plim_config_node *node, const char *word,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Adds `key` to a mapping in the style of its members, beside `sibling` if that is one of them, otherwise beside any.
 * `under`: a mapping to be created around it; NULL: none. PLIM_SPEC if it cannot be written there. */
enum plim_status plim_config_insert(struct plim_config_file *file, struct plim_config_node *mapping,
                                    struct plim_config_node *sibling, const char *under,
                                    const char *key, const char *value,
                                    struct plim_error *err) PLIM_MUST_CHECK;

/* Applies the edits to make `file->after`, parses that and compares: only edited values may differ. */
enum plim_status plim_config_splice(struct plim_config_file *file,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
