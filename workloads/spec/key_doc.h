/* What there is to say about every key of a spec, one row each: for `plimsoll help`, the manual page plimsoll-spec and
 * the tables of README.md in this folder. */
#ifndef PLIM_WORKLOADS_SPEC_KEY_DOC_H
#define PLIM_WORKLOADS_SPEC_KEY_DOC_H

#include "family.h"

enum { PLIM_KEY_DOC_VALUE = 768 }; /* room for plim_key_doc_describe() */

/* Texts are constants, but for `expected`. */
struct plim_key_doc {
    const char *name;     /* "train.clip"; of a model's key as in config.json: "hidden_size" */
    const char *unit;     /* "" or NULL: none */
    const char *fallback; /* the default as YAML; NULL: none, or `help` says */
    const char *example;  /* NULL: none */
    const char *help;
    char expected[512];   /* "an integer from 1 to 1024, or null" */
};

/* Writes what a value has to be, its unit, default and example: "an integer from 1 to 8, or null; GPUs; default: 1". */
void plim_key_doc_describe(const struct plim_key_doc *doc, char *out, size_t size);

/* The keys outside `model`, in the order of their table, then the shorthands. */
size_t plim_key_doc_count(void);
void plim_key_doc_at(size_t index, struct plim_key_doc *doc);

/* A field of models by its usual name, without a default; `index` is an enum plim_field. */
void plim_key_doc_of_field(enum plim_field field, struct plim_key_doc *doc);

/* The keys of `model` for one family, with its class's defaults, a key that sets several fields once.
 * false: `index` is behind the last. */
bool plim_key_doc_of_family(enum plim_family family, size_t index, struct plim_key_doc *doc);

#endif
