/* The values of a document, each with the path under which a program finds it: aliases and merge keys are followed, and
 * paths include the package that Hydra assigns to a file. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_PLACES_H
#define PLIM_REPORTS_CONFIGS_CONFIG_PLACES_H

#include "autotune/base/array.h"
#include "config_document.h"

struct plim_config_place {
    struct plim_config_document *document;
    struct plim_config_node *node;    /* the node at the path; an alias itself, not its target */
    struct plim_config_node *mapping; /* the mapping that has it as a member there; NULL: none */
    const char *path;                 /* as written: "model.train_ds[0].batch-size" */
    const char *name;                 /* for matching: "model.train_ds.batch_size" */
    bool merged;                      /* it comes from a mapping that is merged into `mapping` */
    bool template;                    /* its mapping is merged elsewhere and not used itself */
    bool hidden;                      /* Hydra: another file overrides this path */
};

struct plim_config_places {
    PLIM_ARRAY(struct plim_config_place) list;
};

/* Adds the values of a document. `package` ("" or "trainer"): the path of its root. Circular aliases are not followed
 * endlessly. PLIM_NOMEM, or PLIM_SPEC if there are too many values or levels. */
enum plim_status plim_config_places_add(struct plim_config_places *places,
                                        struct plim_config_document *document,
                                        const char *package,
                                        struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_places_finish(struct plim_config_places *places);

/* True if a path, in the form of `name`, matches a pattern: names separated by dots, where * stands for one name and **
 * for any number. Ignores case and leading dashes; - equals _. */
bool plim_config_match(const char *pattern, const char *name);

/* True if a place matches a pattern. In a script the outer names of the path are ignored, as if the pattern started
 * with "**."; `wild` is set if it does. "@NAME.KEY" is an argument of a call of NAME: its keyword KEY (*: any), or,
 * with 0, its first argument. */
bool plim_config_place_matches(const struct plim_config_place *place, const char *pattern, bool *wild);

/* True if it is a Python program rather than a configuration written in Python: if it imports something. */
bool plim_config_is_program(const struct plim_config_document *document);

/* True if it is an argument of a launcher, before the program: accelerate launch --x 2 train.py --y 4. */
bool plim_config_is_launchers(const struct plim_config_place *place);

/* True if the path concerns something other than training (evaluation, inference, ...), judged by its words; the second
 * function considers only those before the part that the pattern names. */
bool plim_config_is_evaluation(const char *name);
bool plim_config_is_elsewhere(const char *name, const char *pattern);

/* True if one of the names of the path starts with "train". */
bool plim_config_is_training(const char *name);

/* Converts to lower case, replaces - by _, and removes leading dashes. `out` must have room for all of `text`. */
void plim_config_normalize(const char *text, char *out);

#endif
