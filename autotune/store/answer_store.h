/* Answers that are kept: found again, and handed over.
 *
 * A store is a folder. Below it, measured/ and simulated/ have one file a key (entry.h); the two
 * never mix. A reader takes no lock and needs no right to write; a writer puts a whole file in the
 * place of the old one, so that any shared file system will do.
 *
 * Asked are, in this order, the user's own store ($PLIMSOLL_STORE, else plimsoll/store in
 * $XDG_STATE_HOME or ~/.local/state; without HOME as the user database has it) and the site's,
 * which is only read (--site-store, else /etc/plimsoll/store). What cannot be believed (damaged,
 * newer, not readable) is a miss and one warning. PLIMSOLL_STORE=off, as --no-store, asks none.
 *
 * The key says what was asked: the model or program, the settings, and the GPU's capability, usable
 * bytes and MIG profile. Beside an answer stand two kinds of facts that it holds for: those that
 * decide whether the setting fits, and those that decide how fast it is. Each is a match, a
 * mismatch or unknown:
 *
 *     fits matches, fast matches     HIT
 *     fits matches, fast does not    STALE: it still fits; something else may be faster by now
 *     anything else                  MISS: another answer is to be made, and is kept
 *
 * A mismatch is never overwritten: the file keeps an answer for each. An unknown one is, so it
 * heals.
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
    bool roots_alone; /* for hooks that run as root: only what root alone may write, and not the
                         user's store */
    const struct plim_log *log;
};

/* What an answer is kept under, and what it holds for. Zeroed is empty. */
struct plim_store_question {
    bool simulated;
    struct plim_facts key, fits, fast;
};

void plim_store_question_finish(struct plim_store_question *question); /* NULL is fine */

/* Finds the places; none may be there. `site` NULL: the usual one. */
void plim_store_init(struct plim_store *store, const char *site, bool roots_alone,
                     const struct plim_log *log);

enum plim_store_state { PLIM_STORE_MISS, PLIM_STORE_STALE, PLIM_STORE_HIT };

struct plim_store_found {
    enum plim_store_state state;
    struct plim_result result; /* of a hit or a stale answer */
    char made[24], host[64];
    char why[256]; /* "" for a hit: what is stale, or what the miss is for, in one line */
};

/* Looks it up. That a file cannot be believed is a warning and a miss; PLIM_NOMEM is the only
 * failure. `found` is to be finished in any case. */
enum plim_status plim_store_find(const struct plim_store *store,
                                 const struct plim_store_question *question,
                                 struct plim_store_found *found,
                                 struct plim_error *err) PLIM_MUST_CHECK;
void plim_store_found_finish(struct plim_store_found *found); /* NULL and zeroed are fine */

/* Keeps a report of one result in the user's store. PLIM_IO: it cannot be written there. */
enum plim_status plim_store_keep(const struct plim_store *store,
                                 const struct plim_store_question *question,
                                 const struct plim_report *report,
                                 struct plim_error *err) PLIM_MUST_CHECK;

/* --- the files -------------------------------------------------------------------------------- */

/* Told of every entry of a folder of the store in the order of names; `err` is what is wrong with
 * one that cannot be believed, and `entry` is NULL then. Anything but PLIM_OK ends the walk. */
typedef enum plim_status plim_store_visit(void *user, const char *path, bool simulated,
                                          struct plim_store_entry *entry,
                                          const struct plim_error *err);
enum plim_status plim_store_walk(const char *folder, bool roots_alone, plim_store_visit *visit,
                                 void *user) PLIM_MUST_CHECK;

/* Merges an entry into the store at `folder`, which is made where it is not there, by
 * plim_store_entry_merge(). PLIM_IO: it
 * cannot be written. PLIM_UNSUPPORTED: a newer plimsoll's file stands there, which stays. */
enum plim_status plim_store_merge(const char *folder, bool simulated,
                                  struct plim_store_entry *entry, bool just_made,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* "measured/0123...ef.yaml" below a folder. PLIM_INVALID: the path is too long. */
enum plim_status plim_store_path(const char *folder, bool simulated, const char *name,
                                 char out[PATH_MAX], struct plim_error *err) PLIM_MUST_CHECK;

/* Why nothing was found: every fact in which the nearest entries differ, as lines of a log. */
enum plim_status plim_store_explain_miss(const struct plim_store *store,
                                         const struct plim_store_question *question,
                                         const struct plim_log *log,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
