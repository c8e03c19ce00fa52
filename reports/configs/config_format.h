/* The formats of training configs: how each is recognised and parsed, and how it writes references. A new format is a
 * parser and a row of the table in config_format.c. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_FORMAT_H
#define PLIM_REPORTS_CONFIGS_CONFIG_FORMAT_H

#include "config_document.h"
#include <stdio.h>

/* The kinds of references and templates in scalars (config_value.h). */
enum plim_config_language {
    PLIM_CONFIG_DATA,   /* ${a.b}, {{ x }}, $NAME, <NAME>: YAML, JSON, TOML */
    PLIM_CONFIG_INI,    /* as DATA, and %(name)s, ${section:key} */
    PLIM_CONFIG_SHELL,  /* $NAME, ${NAME:-4}, $((...)), $(...) */
    PLIM_CONFIG_PYTHON, /* names, expressions */
    PLIM_CONFIG_GIN,    /* %NAME, @function() */
};

struct plim_config_format {
    const char *name;           /* "yaml" */
    const char *title;          /* "YAML" */
    const char *extensions[9];  /* without the dot; terminated by NULL */
    enum plim_config_language language;
    const char *separator;      /* between key and value of an inserted member: ": ", " = " */
    enum plim_status (*read)(struct plim_config_document *document, struct plim_error *err);
    /* Writes a text encoded as required at a place in the file; NULL: unchanged. */
    void (*write)(const struct plim_config_document *document, size_t place, const char *text, FILE *out);
};

/* Finds a format by name. PLIM_INVALID if there is none; the message lists the names. */
enum plim_status plim_config_format_find(const char *name, const struct plim_config_format **out,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Returns the format of a file by its extension, otherwise by its first bytes. */
const struct plim_config_format *plim_config_format_of(const char *path, const char *text,
                                                       size_t length);

enum plim_status plim_config_read_yaml(struct plim_config_document *document,
                                       struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_config_read_json(struct plim_config_document *document,
                                       struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_config_read_jsonc(struct plim_config_document *document,
                                        struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_config_read_toml(struct plim_config_document *document,
                                       struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_config_read_ini(struct plim_config_document *document,
                                      struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_config_read_shell(struct plim_config_document *document,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* For a YAML file in which no value is a size: turns its strings that are commands ("args: train.py --batch-size 4")
 * into mappings of their words; in a notebook, its !commands. Returns true if there are any and they had not been
 * parsed before. */
bool plim_config_read_commands(struct plim_config_document *document);

/* Parse a part of a document into a mapping: as a script, or as the words of one command (inside `quote`; '\0': no
 * quotes). */
enum plim_status plim_config_read_script(struct plim_config_document *document, struct plim_config_node *mapping,
                                         struct plim_config_script part, struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_config_read_words(struct plim_config_document *document, struct plim_config_node *mapping,
                                        struct plim_config_script part, char quote,
                                        struct plim_error *err) PLIM_MUST_CHECK;

enum plim_status plim_config_read_python(struct plim_config_document *document,
                                         struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_config_read_notebook(struct plim_config_document *document,
                                           struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_write_notebook(const struct plim_config_document *document, size_t place, const char *text,
                                FILE *out);
enum plim_status plim_config_read_gin(struct plim_config_document *document,
                                      struct plim_error *err) PLIM_MUST_CHECK;

#endif
