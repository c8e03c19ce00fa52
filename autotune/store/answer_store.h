/* The store of answers: keeps answers and finds them again.
 *
 * A store is a folder. Its subfolders measured/ and simulated/ have one file for each key (entry.h); the two
 * never mix. A reader takes no lock and needs no write permission; a writer replaces a whole
 * file, so that any shared file system works.
 *
 * Looked up are, in this order, the user's own store ($PLIMSOLL_STORE, else plimsoll/store in
 * $XDG_STATE_HOME or ~/.local/state; without HOME according to the user database) and the site's,
 * which is only read (--site-store, else /etc/plimsoll/store). An invalid file (damaged,
 * newer, not readable) is a miss with one warning. PLIMSOLL_STORE=off, like --no-store, disables both.
 *
 * The key says what was asked: the model or program, the settings, and the GPU's capability, usable
 * bytes and MIG profile. With each answer two kinds of facts are kept for which it holds: those that
 * decide whether the setting fits, and those that decide how fast it is. Each is a match, a
 * mismatch or unknown:
 *
 *     fits matches, fast matches     HIT
 *     fits matches, fast does not    STALE: it still fits; something else may be faster by now
 *     anything else                  MISS: a new answer has to be made, and is kept
 *
 * A mismatch is never overwritten: the file keeps both answers. An answer with unknown facts is
 * overwritten by one with known facts.
 */
#ifndef PLIM_AUTOTUNE_STORE_ANSWER_STORE_H
#define PLIM_AUTOTUNE_STORE_ANSWER_STORE_H

#include "autotune/base/log.h"
#include "entry.h"
#include <limits.h>

#define PLIM_STORE_SITE "/etc/plimsoll/store"

struct plim_store_place {
    char path[PATH_MAX];
    bool is_site; /* never written */
};

struct plim_store {
    size_t count;
    struct plim_store_place places[2];
    bool roots_alone; /* for hooks that run as root: reads only files that root alone may write, and not the
                         user's store */
    const struct plim_log *log;
};

/* The key of an answer, and the facts for which it holds. Zeroed is empty. */
struct plim_store_question {
    bool simulated;
    struct plim_facts key, fits, fast;
};

void plim_store_question_finish(struct plim_store_question *question); /* NULL is fine */

/* Finds the places; they need not exist. `site` NULL: the default one. */
void plim_store_init(struct plim_store *store, const char *site, bool roots_alone,
                     const struct plim_log *log);

enum plim_store_state { PLIM_STORE_MISS, PLIM_STORE_STALE, PLIM_STORE_HIT };

struct plim_store_found {
    enum plim_store_state state;
    struct plim_result result; /* of a hit or a stale answer */
    char made[24], host[64];
    char why[256]; /* what is stale, or the reason of the miss, in one line; "" for a hit */
};

/* Looks up a question. An invalid file is a warning and a miss; PLIM_NOMEM is the only
 * failure. Finish `found` in any case. */
enum plim_status plim_store_find(const struct plim_store *store,
                                 const struct plim_store_question *question,
                                 struct plim_store_found *found,
                                 struct plim_error *err) PLIM_MUST_CHECK;
void plim_store_found_finish(struct plim_store_found *found); /* NULL and zeroed are fine */

/* Keeps a report with one result in the user's store. PLIM_IO: it cannot be written there. */
enum plim_status plim_store_keep(const struct plim_store *store,
                                 const struct plim_store_question *question,
                                 const struct plim_report *report,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* --- the files -------------------------------------------------------------------------------- */

/* Called for every entry of a store's folder in the order of names; for an invalid one `entry` is NULL and
 * `err` says what is wrong. Anything but PLIM_OK ends the walk. */
typedef enum plim_status plim_store_visit(void *user, const char *path, bool simulated,
                                          struct plim_store_entry *entry,
                                          const struct plim_error *err);
enum plim_status plim_store_walk(const char *folder, bool roots_alone, plim_store_visit *visit,
                                 void *user) PLIM_MUST_CHECK;

/* Merges an entry into the store at `folder`, which is created if missing, by
 * plim_store_entry_merge(). PLIM_IO: it
 * cannot be written. PLIM_UNSUPPORTED: the file is a newer plimsoll's and is left unchanged. */
enum plim_status plim_store_merge(const char *folder, bool simulated,
                                  struct plim_store_entry *entry, bool just_made,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* "measured/0123...ef.yaml" below a folder. PLIM_INVALID: the path is too long. */
enum plim_status plim_store_path(const char *folder, bool simulated, const char *name,
                                 char out[PATH_MAX], struct plim_error *err) PLIM_MUST_CHECK;

/* Logs why nothing was found: every fact in which the nearest entries differ, one per line. */
enum plim_status plim_store_explain_miss(const struct plim_store *store,
                                         const struct plim_store_question *question,
                                         const struct plim_log *log,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
