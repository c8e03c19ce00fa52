/* Every value of a document by the path under which a program finds it: through aliases and merge
 * keys, and below the package that Hydra gives to a file. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_PLACES_H
#define PLIM_REPORTS_CONFIGS_CONFIG_PLACES_H

#include "autotune/base/array.h"
#include "config_document.h"

struct plim_config_place {
    struct plim_config_document *document;
    struct plim_config_node *node;    /* what stands there; an alias itself, not what it means */
    struct plim_config_node *mapping; /* what it is a member of there; NULL: of none */
    const char *path;                 /* as written: "model.train_ds[0].batch-size" */
    const char *name;                 /* for matching: "model.train_ds.batch_size" */
    bool merged;                      /* it comes from a mapping that is merged into `mapping` */
    bool template;                    /* its mapping is merged elsewhere: nothing uses it as it is */
    bool hidden;                      /* Hydra: another file in force has this path too */
};

struct plim_config_places {
    PLIM_ARRAY(struct plim_config_place) list;
};

/* Adds those of a document. `package` ("" or "trainer"): what its root stands below. PLIM_NOMEM is
 * the only failure; aliases are not followed without end. */
enum plim_status plim_config_places_add(struct plim_config_places *places,
                                        struct plim_config_document *document,
                                        const char *package,
                                        struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_places_finish(struct plim_config_places *places);

/* Does a path, as in `name`, match a pattern: names joined by dots, * for one, ** for any number
 * of them. Case does not count, nor do dashes before a name, and - is _. */
bool plim_config_match(const char *pattern, const char *name);

/* Does a place match a pattern? In a script what stands around the path does not count, as if the
 * pattern began with "**.". `wild`: it begins so. "@NAME.KEY" is what a program calls NAME with: its keyword KEY (*:
 * any), or its first argument, 0. */
bool plim_config_place_matches(const struct plim_config_place *place, const char *pattern, bool *wild);

/* A program in Python, and no configuration that is written in it: it imports something. */
bool plim_config_is_program(const struct plim_config_document *document);

/* Is it an argument of a launcher, in front of the program: accelerate launch --x 2 train.py --y 4? */
bool plim_config_is_launchers(const struct plim_config_place *place);

/* Is it about something else than training (evaluation, inference, ...)? By the words of its path;
 * in the second only of what stands in front of the part that the pattern names. */
bool plim_config_is_evaluation(const char *name);
bool plim_config_is_elsewhere(const char *name, const char *pattern);

/* Does one of the names of the path begin with "train"? */
bool plim_config_is_training(const char *name);

/* Lower case, - as _, without dashes in front. `out` has room for all of `text`. */
void plim_config_normalize(const char *text, char *out);

#endif
