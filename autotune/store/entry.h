/* A file of the store: a key and the answers that are kept for it.
 *
 *     schema: plimsoll.store/1          always first
 *     key: {...}                        the complete question (answer_store.h)
 *     answers:                          one for each environment
 *       - made: ..., host: ..., fits: {...}, fast: {...}, report: {schema: plimsoll.result/1, ...}
 *     checksum: sha256:...              always last: of all bytes before this line
 *
 * The file's name is made from the key's hash. A file is only used if all of this is correct. */
#ifndef PLIM_AUTOTUNE_STORE_ENTRY_H
#define PLIM_AUTOTUNE_STORE_ENTRY_H

#include "facts.h"
#include "reports/result.h"

enum { PLIM_STORE_NAME = 40, PLIM_STORE_ID = 32, PLIM_STORE_ANSWERS = 16 };

/* An answer, and the facts for which it is valid: `fits` decide whether the setting fits, `fast` how fast it is. */
struct plim_store_answer {
    char made[24]; /* when it was found: "2026-11-22T11:30:00Z" */
    char host[64];
    bool interrupted; /* it is proven, but the search ended early: there may be a better one */
    struct plim_facts fits, fast;
    /* The report, in schema plimsoll.result/1: an owned tree, or, for an answer read from a file, a part of the
     * document of its entry, which must outlive it. */
    json_t *report;
    const struct plim_yaml *document;
    const struct plim_yaml_node *part;
};

/* Empty when zeroed. */
struct plim_store_entry {
    struct plim_yaml document;
    struct plim_facts key;
    PLIM_ARRAY(struct plim_store_answer) answers; /* by time, the newest last */
};

/* Writes the file name of a key to `out`: "0123...ef.yaml". */
void plim_store_name(const struct plim_facts *key, char out[PLIM_STORE_NAME]);

/* Reads a file, without following symbolic links. With `roots_alone`, only if root owns it and no other user may write
 * it. *found is false if it does not exist. PLIM_UNSUPPORTED: a newer plimsoll wrote it; PLIM_SPEC: it is damaged, or
 * does not match its name; PLIM_IO: it cannot be read. The caller finishes the entry in any case. */
enum plim_status plim_store_entry_read(const char *path, bool roots_alone, bool *found,
                                       struct plim_store_entry *entry,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* Same from the contents of a file, `length` bytes and a terminating zero. */
enum plim_status plim_store_entry_parse(const char *path, const char *text, size_t length,
                                        struct plim_store_entry *entry,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the report of an answer of a file into the zeroed result, which the caller finishes in any case. PLIM_SPEC: it
 * is not a valid report. */
enum plim_status plim_store_answer_result(const struct plim_store_answer *answer,
                                          struct plim_result *result,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Adds an answer to the entry and takes ownership of its contents. It replaces answers whose facts are the same, or
 * unknown on one side; answers with other facts are kept. An interrupted answer does not replace a complete one, nor an
 * older one a newer one, except with `just_made` (clocks of nodes differ). Beyond PLIM_STORE_ANSWERS the oldest is
 * dropped. PLIM_NOMEM is the only error. */
enum plim_status plim_store_entry_merge(struct plim_store_entry *entry,
                                        struct plim_store_answer *answer,
                                        bool just_made) PLIM_MUST_CHECK;

/* Writes the file atomically. PLIM_IO: it cannot be written. */
enum plim_status plim_store_entry_write(const struct plim_store_entry *entry, const char *path,
                                        struct plim_error *err) PLIM_MUST_CHECK;

void plim_store_answer_finish(struct plim_store_answer *answer); /* NULL or a zeroed one is allowed */
void plim_store_entry_finish(struct plim_store_entry *entry);    /* NULL or a zeroed one is allowed */

#endif
