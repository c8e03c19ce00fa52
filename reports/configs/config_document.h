/* A training config as a text and the places of its values, for editing it by splicing bytes.
 *
 * Every format is read into the same tree. Nothing is ever printed from the tree: it says where
 * the bytes of a value are, and how they are written there. A value that is not a literal (a template, an
 * expression, a reference) is kept as text and never evaluated.
 *
 * Offsets count bytes from the start of the text, a byte order mark included. The text is the file, or
 * for a notebook the program in its cells. Lines are those of the file, columns those of the text; both are
 * 1-based, columns count characters.
 *
 * Ownership: nodes and their texts belong to the document's arena. `file` and `text` are the
 * document's own copies.
 */
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
    PLIM_CONFIG_QUOTED, /* one quote on either side */
    PLIM_CONFIG_BLOCK,  /* several lines: YAML's | and >, triple quotes */
    PLIM_CONFIG_EMPTY,  /* no byte at all: a key without a value */
    PLIM_CONFIG_CODE,   /* an expression of the language */
};

/* How the members of a mapping are written, and so how an inserted one is. */
enum plim_config_layout {
    PLIM_CONFIG_LINES, /* one line each, under the indentation of its siblings */
    PLIM_CONFIG_FLOW,  /* between brackets, commas between them */
    PLIM_CONFIG_WORDS, /* arguments of a command */
};

struct plim_config_node {
    enum plim_config_kind kind;
    enum plim_config_style style;
    enum plim_config_layout layout;
    struct plim_config_node *parent, *first, *last, *next; /* members in the order of the text */
    const char *key;           /* in a mapping; NULL in a sequence */
    size_t index;              /* among the members */
    const char *text;          /* scalar: decoded; code: as written */
    size_t begin, end;         /* the value, with quotes and brackets, without anchor and tag */
    size_t key_begin, key_end; /* the key with its quotes; equal where there is none */
    int line, key_line;
    const char *anchor, *tag;        /* YAML; NULL: none */
    struct plim_config_node *target; /* an alias: the node it stands for */
    bool again;                      /* the key is in this mapping before */
    bool renamed;                    /* its key is written elsewhere, as in add_argument("--x", default=4) */
    bool conditional;                /* in a branch or a function, so not always in force */
    size_t branch;                   /* shell: where the branch that sets it begins; 0: none */
    const char *function;            /* Python: the last part of a call's name: "LoraConfig"; NULL: not a call */
    size_t words_end;                /* shell: where the words that follow it end; 0: none follow */
    bool bare;                       /* an option without a value, of no bytes: its text is "true" */
};

struct plim_config_format;

struct plim_config_script {
    size_t begin, end;
};

struct plim_config_document {
    const char *source; /* for messages: the path as given */
    const struct plim_config_format *format;
    char *file; /* the bytes of the file */
    size_t file_length;
    char *text; /* the part of it that is read; mostly `file` itself */
    size_t length;
    size_t *places; /* offsets in the file of every byte of the text, and of its end; NULL: the same offsets */
    size_t bom;                    /* bytes of a byte order mark in front: 0 or 3 */
    const char *newline;           /* "\n" or "\r\n", as most lines end */
    struct plim_config_node *root; /* a mapping; for several YAML documents a sequence */
    struct plim_arena arena;
    size_t nodes, line_count;
    size_t *lines;       /* where each begins in the file */
    PLIM_ARRAY(struct plim_config_script) scripts; /* a notebook's shell commands */
    bool commands; /* texts that are commands were read as mappings of their words (plim_config_read_commands) */
    const char *package; /* Hydra's "# @package" line; NULL: none */
};

/* Reads `length` bytes, which are copied. `format` NULL: it is told by the name and the content.
 * PLIM_SPEC with line and column: not valid in that format. */
enum plim_status plim_config_read(const char *source, const char *text, size_t length,
                                  const struct plim_config_format *format,
                                  struct plim_config_document *out,
                                  struct plim_error *err) PLIM_MUST_CHECK;
void plim_config_finish(struct plim_config_document *document); /* NULL and zeroed are fine */

/* The offset in the file of an offset in the text. */
size_t plim_config_in_file(const struct plim_config_document *document, size_t offset);

/* The line of an offset, by bisection. */
int plim_config_line(const struct plim_config_document *document, size_t offset);

/* "model.layers[2].size" of a node, in the arena; NULL: out of memory. */
const char *plim_config_path(struct plim_config_document *document,
                             const struct plim_config_node *node);

/* The member of a mapping with this key: the last of several, which is the one in force. */
struct plim_config_node *plim_config_get(const struct plim_config_node *mapping, const char *key);

/* Where the line of an offset begins, and where it ends, before its line end. */
size_t plim_config_line_begin(const struct plim_config_document *document, size_t offset);
size_t plim_config_line_end(const struct plim_config_document *document, size_t offset);

/* --- for readers ------------------------------------------------------------------------------ */

/* A new node at the end of `parent` (NULL: a root). PLIM_SPEC when there are too many. */
enum plim_status plim_config_node_add(struct plim_config_document *document,
                                      struct plim_config_node *parent, enum plim_config_kind kind,
                                      size_t begin, struct plim_config_node **out,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Names a member by the bytes of its key; a key that the parent has already is marked `again`. */
enum plim_status plim_config_node_name(struct plim_config_document *document,
                                       struct plim_config_node *node, const char *key,
                                       size_t length, size_t key_begin, size_t key_end,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Gives a scalar its end and its text. */
enum plim_status plim_config_node_text(struct plim_config_document *document,
                                       struct plim_config_node *node, enum plim_config_style style,
                                       size_t end, const char *text, size_t length,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the line numbers of the nodes below a node, and marks keys that occur twice. */
enum plim_status plim_config_finish_nodes(struct plim_config_document *document, struct plim_config_node *node,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* PLIM_SPEC at an offset: "not valid JSON: ..." is the caller's text. */
enum plim_status plim_config_fail(const struct plim_config_document *document, size_t offset,
                                  struct plim_error *err, const char *fmt, ...) PLIM_PRINTF(4, 5);

#endif
