/* Every value of a document by the path under which a program finds it: aliases and merge keys are
 * followed, and paths are below the package that Hydra gives to a file. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_PLACES_H
#define PLIM_REPORTS_CONFIGS_CONFIG_PLACES_H

#include "autotune/base/array.h"
#include "config_document.h"

struct plim_config_place {
    struct plim_config_document *document;
    struct plim_config_node *node;    /* the node at the path; an alias itself, not its target */
    struct plim_config_node *mapping; /* the mapping that it is a member of there; NULL: none */
    const char *path;                 /* as written: "model.train_ds[0].batch-size" */
    const char *name;                 /* for matching: "model.train_ds.batch_size" */
    bool merged;                      /* it comes from a mapping that is merged into `mapping` */
    bool template;                    /* its mapping is merged elsewhere, and not used itself */
    bool hidden;                      /* Hydra: another file in force has this path too */
};

struct plim_config_places {
    PLIM_ARRAY(struct plim_config_place) list;
};

/* Adds the values of a document. `package` ("" or "trainer"): the path of its root. PLIM_NOMEM is
 * the only failure; circular aliases are not followed for ever. */
enum plim_status plim_config_places_add(struct plim_config_places *places,
                                        struct plim_config_document *document,
                                        const char *package,
                                        struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_places_finish(struct plim_config_places *places);

/* Does a path, as in `name`, match a pattern: names joined by dots, * for one, ** for any number
 * of them? Case and dashes before a name are ignored, and - equals _. */
bool plim_config_match(const char *pattern, const char *name);

/* Does a place match a pattern? In a script the names around the path are ignored, as if the
 * pattern began with "**.". `wild`: it begins so. "@NAME.KEY" is an argument of a call of NAME: its keyword KEY (*:
 * any), or 0, its first argument. */
bool plim_config_place_matches(const struct plim_config_place *place, const char *pattern, bool *wild);

/* Is it a Python program, and not a configuration written in Python? It is if it imports something. */
bool plim_config_is_program(const struct plim_config_document *document);

/* Is it an argument of a launcher, before the program: accelerate launch --x 2 train.py --y 4? */
bool plim_config_is_launchers(const struct plim_config_place *place);

/* Is it about something other than training (evaluation, inference, ...)? Judged by the words of its path;
 * in the second function only by those before the part that the pattern names. */
bool plim_config_is_evaluation(const char *name);
bool plim_config_is_elsewhere(const char *name, const char *pattern);

/* Does one of the names of the path begin with "train"? */
bool plim_config_is_training(const char *name);

/* Converts to lower case, - to _, and removes leading dashes. `out` has room for all of `text`. */
void plim_config_normalize(const char *text, char *out);

#endif
