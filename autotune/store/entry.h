/* One file of the store: a key, and the answers that are kept for it.
 *
 *     schema: plimsoll.store/1          always first
 *     key: {...}                        all that was asked, in full (answer_store.h)
 *     answers:                          one for each environment that it was asked in
 *       - made: ..., host: ..., fits: {...}, fast: {...}, report: {schema: plimsoll.result/1, ...}
 *     checksum: sha256:...              always last: of every byte before its line
 *
 * Its name is made of the key's hash. A file is only believed when all of that is right.
 */
#ifndef PLIM_AUTOTUNE_STORE_ENTRY_H
#define PLIM_AUTOTUNE_STORE_ENTRY_H

#include "facts.h"
#include "reports/result.h"

enum { PLIM_STORE_NAME = 40, PLIM_STORE_ID = 32, PLIM_STORE_ANSWERS = 16 };

/* What it holds for: `fits` decides whether the setting fits, `fast` how fast it is. */
struct plim_store_answer {
    char made[24]; /* "2026-11-22T11:30:00Z", by which answers are ordered in time */
    char host[64];
    bool interrupted; /* proven, but the search ended early: there may be a better one */
    struct plim_facts fits, fast;
    /* Of schema plimsoll.result/1: a tree of its own, or, of an answer that was read, a part of the
     * document of the entry that read it, which outlives it. */
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

/* "0123...ef.yaml" of a key. */
void plim_store_name(const struct plim_facts *key, char out[PLIM_STORE_NAME]);

/* Reads a file that is no link; `roots_alone`: only if root owns it and nobody else may write it.
 * `found` is false where there is none. PLIM_UNSUPPORTED: a newer plimsoll wrote it; PLIM_SPEC: it
 * is damaged, or not what its name says; PLIM_IO: it cannot be read. The entry is to be finished in
 * any case. */
enum plim_status plim_store_entry_read(const char *path, bool roots_alone, bool *found,
                                       struct plim_store_entry *entry,
                                       struct plim_error *err) PLIM_MUST_CHECK;

/* The same of bytes that were read, terminated behind `length`. */
enum plim_status plim_store_entry_parse(const char *path, const char *text, size_t length,
                                        struct plim_store_entry *entry,
                                        struct plim_error *err) PLIM_MUST_CHECK;

/* The report of an answer that was read, into the zeroed result, which is to be finished in any
 * case. PLIM_SPEC where it is none. */
enum plim_status plim_store_answer_result(const struct plim_store_answer *answer,
                                          struct plim_result *result,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Puts an answer into the entry, and takes over what it owns. It takes the place of one that holds
 * for the same, or of which that is not known; one that holds for something else stays beside it. An
 * interrupted answer does not take the place of a whole one, nor, unless it was made just now (clocks
 * of nodes differ), an older one that of a newer. Of more than PLIM_STORE_ANSWERS the oldest goes.
 * PLIM_NOMEM is the only failure. */
enum plim_status plim_store_entry_merge(struct plim_store_entry *entry,
                                        struct plim_store_answer *answer,
                                        bool just_made) PLIM_MUST_CHECK;

/* Writes the file whole or not at all. PLIM_IO: it cannot be written there. */
enum plim_status plim_store_entry_write(const struct plim_store_entry *entry, const char *path,
                                        struct plim_error *err) PLIM_MUST_CHECK;

void plim_store_answer_finish(struct plim_store_answer *answer); /* NULL and zeroed are fine */
void plim_store_entry_finish(struct plim_store_entry *entry);    /* NULL and zeroed are fine */

#endif
