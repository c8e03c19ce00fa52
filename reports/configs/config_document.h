/* A training config as text with the positions of its values, to be edited by replacing bytes.
 *
 * Every format is parsed into the same tree. The tree is never printed: it says where the bytes of a value are and how
 * they are written. A value that is not a literal (a template, an expression, a reference) is kept as text and never
 * evaluated.
 *
 * Offsets count bytes from the start of the text, including a byte order mark. The text is the file, or for a notebook
 * the program in its cells. Lines are those of the file, columns those of the text; both are 1-based, columns count
 * characters.
 *
 * Ownership: nodes and their texts belong to the document's arena. `file` and `text` are the document's own copies. */
#ifndef PLIM_REPORTS_CONFIGS_CONFIG_DOCUMENT_H
#define PLIM_REPORTS_CONFIGS_CONFIG_DOCUMENT_H

#include "autotune/base/arena.h"
#include "autotune/base/array.h"
#include "autotune/base/status.h"
#include <stdbool.h>
#include <stddef.h>

enum plim_config_kind { PLIM_CONFIG_SCALAR, PLIM_CONFIG_MAPPING, PLIM_CONFIG_SEQUENCE };

/* How a scalar is written. */
enum plim_config_style {
    PLIM_CONFIG_PLAIN,
    PLIM_CONFIG_QUOTED, /* one quote character on either side */
    PLIM_CONFIG_BLOCK,  /* several lines: YAML's | and >, triple quotes */
    PLIM_CONFIG_EMPTY,  /* no bytes: a key without a value */
    PLIM_CONFIG_CODE,   /* an expression of the language */
};

/* How the members of a mapping are written, and so how a member is inserted. */
enum plim_config_layout {
    PLIM_CONFIG_LINES, /* one per line, with the indentation of its siblings */
    PLIM_CONFIG_FLOW,  /* in brackets, separated by commas */
    PLIM_CONFIG_WORDS, /* arguments of a command */
};

struct plim_config_node {
    enum plim_config_kind kind;
    enum plim_config_style style;
    enum plim_config_layout layout;
    struct plim_config_node *parent, *first, *last, *next; /* members in textual order */
    const char *key;           /* in a mapping; NULL in a sequence */
    size_t index;              /* among the members */
    const char *text;          /* scalar: decoded; code: as written */
    size_t begin, end;         /* the value with quotes and brackets, without anchor and tag */
    size_t key_begin, key_end; /* the key with its quotes; equal if there is none */
    int line, key_line;
    const char *anchor, *tag;        /* YAML; NULL: none */
    struct plim_config_node *target; /* of an alias: the node it stands for */
    bool again;                      /* the key occurs earlier in this mapping */
    bool renamed;                    /* the key is written elsewhere, as in add_argument("--x", default=4) */
    bool conditional;                /* in a branch or a function, so not always in effect */
    size_t branch;                   /* shell: offset of the branch that sets it; 0: none */
    const char *function;            /* Python: last component of a call's name, such as "LoraConfig"; NULL: not a
                                      * call */
    size_t words_end;                /* shell: end of the words that follow it; 0: none follow */
    bool bare;                       /* an option without a value; its text is "true", without bytes */
};

struct plim_config_format;

struct plim_config_script {
    size_t begin, end;
};

struct plim_config_document {
    const char *source; /* path as given, for messages */
    const struct plim_config_format *format;
    char *file; /* contents of the file */
    size_t file_length;
    char *text; /* the part of it that is parsed; usually `file` itself */
    size_t length;
    size_t *places; /* for every byte of the text and its end, the offset in the file; NULL: the same offsets */
    size_t bom;                    /* bytes of a byte order mark at the start: 0 or 3 */
    const char *newline;           /* "
                                    * " or "\r
                                    * ", whichever most lines have */
    struct plim_config_node *root; /* a mapping; a sequence for several YAML documents */
    struct plim_arena arena;
    size_t nodes, line_count;
    size_t *lines;       /* offset in the file of each line */
    PLIM_ARRAY(struct plim_config_script) scripts; /* shell commands of a notebook */
    bool commands; /* values that are commands were parsed as mappings of their words (plim_config_read_commands) */
    const char *package; /* Hydra's "# @package" line; NULL: none */
};

/* Reads `length` bytes, which are copied. If `format` is NULL, it is determined by name and contents. PLIM_SPEC with
 * line and column if the text is not valid in that format. */
enum plim_status plim_config_read(const char *source, const char *text, size_t length,
                                  const struct plim_config_format *format,
                                  struct plim_config_document *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_finish(struct plim_config_document *document); /* NULL and zeroed documents are allowed */

/* Returns the offset in the file of an offset in the text. */
size_t plim_config_in_file(const struct plim_config_document *document, size_t offset);

/* Returns the line of an offset, by bisection. */
int plim_config_line(const struct plim_config_document *document, size_t offset);

/* Returns the path of a node, such as "model.layers[2].size", in the arena; NULL if out of memory. */
const char *plim_config_path(struct plim_config_document *document,
                             const struct plim_config_node *node);

/* Returns the member of a mapping with this key; of several the last, which is the one in effect. */
struct plim_config_node *plim_config_get(const struct plim_config_node *mapping, const char *key);

/* Return the start of the line of an offset, and its end before the line terminator. */
size_t plim_config_line_begin(const struct plim_config_document *document, size_t offset);
size_t plim_config_line_end(const struct plim_config_document *document, size_t offset);

/* --- for parsers ------------------------------------------------------------------------------ */

/* Appends a new node to `parent` (NULL: a root). PLIM_SPEC if there are too many. */
enum plim_status plim_config_node_add(struct plim_config_document *document,
                                      struct plim_config_node *parent, enum plim_config_kind kind,
                                      size_t begin, struct plim_config_node **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the key of a member, given the bytes of the key. */
enum plim_status plim_config_node_name(struct plim_config_document *document,
                                       struct plim_config_node *node, const char *key,
                                       size_t length, size_t key_begin, size_t key_end,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the end and text of a scalar. */
enum plim_status plim_config_node_text(struct plim_config_document *document,
                                       struct plim_config_node *node, enum plim_config_style style,
                                       size_t end, const char *text, size_t length,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the line numbers of a node and all nodes below it, and marks keys that occur twice. */
enum plim_status plim_config_finish_nodes(struct plim_config_document *document, struct plim_config_node *node,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Fails with PLIM_SPEC at an offset; the caller's text is like "not valid JSON: ...". */
enum plim_status plim_config_fail(const struct plim_config_document *document, size_t offset,
                                  struct plim_error *err, const char *fmt, ...) PLIM_PRINTF(4, 5);

#endif
