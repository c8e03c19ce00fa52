/* One file of the store: a key, and the answers that are kept for it.
 *
 *     schema: plimsoll.store/1          always first
 *     key: {...}                        the complete question (answer_store.h)
 *     answers:                          one for each environment in which it was asked
 *       - made: ..., host: ..., fits: {...}, fast: {...}, report: {schema: plimsoll.result/1, ...}
 *     checksum: sha256:...              always last: of every byte before its line
 *
 * Its name is made from the key's hash. A file is only used if all of this is correct.
 */
#ifndef PLIM_AUTOTUNE_STORE_ENTRY_H
#define PLIM_AUTOTUNE_STORE_ENTRY_H

#include "facts.h"
#include "reports/result.h"

enum { PLIM_STORE_NAME = 40, PLIM_STORE_ID = 32, PLIM_STORE_ANSWERS = 16 };

/* An answer, and the facts for which it holds: `fits` decides whether the setting fits, `fast` how fast it is. */
struct plim_store_answer {
    char made[24]; /* "2026-11-22T11:30:00Z"; answers are ordered by it */
    char host[64];
    bool interrupted; /* proven, but the search ended early: there may be a better one */
    struct plim_facts fits, fast;
    /* In schema plimsoll.result/1: a tree of its own, or, for an answer that was read from a file, a part of
     * its entry's document, which outlives it. */
    json_t *report;
    const struct plim_yaml *document;
    const struct plim_yaml_node *part;
};

/* Zeroed is empty. */
struct plim_store_entry {
    struct plim_yaml document;
    struct plim_facts key;
    PLIM_ARRAY(struct plim_store_answer) answers; /* the newest last */
};

/* The file name of a key, "0123...ef.yaml". */
void plim_store_name(const struct plim_facts *key, char out[PLIM_STORE_NAME]);

/* Reads a file that is not a link; `roots_alone`: only if root owns it and nobody else may write it.
 * `found` is false if there is none. PLIM_UNSUPPORTED: a newer plimsoll wrote it; PLIM_SPEC: it
 * is damaged, or does not match its name; PLIM_IO: it cannot be read. Finish the entry in
 * any case. */
enum plim_status plim_store_entry_read(const char *path, bool roots_alone, bool *found,
                                       struct plim_store_entry *entry,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* The same from the contents of a file, terminated after `length` bytes. */
enum plim_status plim_store_entry_parse(const char *path, const char *text, size_t length,
                                        struct plim_store_entry *entry,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the report of an answer from a file into the zeroed result; finish it in any
 * case. PLIM_SPEC if it is not a valid report. */
enum plim_status plim_store_answer_result(const struct plim_store_answer *answer,
                                          struct plim_result *result,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Adds an answer to the entry, and takes over what it owns. It replaces an answer with the same facts
 * or with unknown ones; an answer with other facts is kept beside it. An
 * interrupted answer does not replace a complete one, nor does an older one replace a newer one, unless it was
 * made just now (clocks of nodes differ). Beyond PLIM_STORE_ANSWERS the oldest is dropped.
 * PLIM_NOMEM is the only failure. */
enum plim_status plim_store_entry_merge(struct plim_store_entry *entry,
                                        struct plim_store_answer *answer,
                                        bool just_made) PLIM_MUST_CHECK;

/* Writes the file completely or not at all. PLIM_IO: it cannot be written there. */
enum plim_status plim_store_entry_write(const struct plim_store_entry *entry, const char *path,
                                        struct plim_error *err) PLIM_MUST_CHECK;

void plim_store_answer_finish(struct plim_store_answer *answer); /* NULL and zeroed are fine */
void plim_store_entry_finish(struct plim_store_entry *entry);    /* NULL and zeroed are fine */

#endif
