/* The store of answers.
 *
 * A store is a folder. Its subfolders measured/ and simulated/ have one file for each key (entry.h). Readers take no
 * lock and need no write permission; writers replace whole files, so any shared file system works.
 *
 * Two stores are searched, in this order: the user's own ($PLIMSOLL_STORE, otherwise plimsoll/store in $XDG_STATE_HOME
 * or ~/.local/state; the home folder is that of the user database if HOME is not set) and the site's, which is only
 * read (--site-store, otherwise /etc/plimsoll/store). An invalid file (damaged, of a newer version, not readable) is a
 * miss with one warning. PLIMSOLL_STORE=off, like --no-store, disables both.
 *
 * The key is the question: the model or program, the settings, and the GPU's compute capability, usable bytes and MIG
 * profile. Each answer has two lists of facts for which it is valid: `fits`, which decide whether the setting fits, and
 * `fast`, which decide how fast it is. Each list is a match, a mismatch or unknown:
 *
 *     fits matches, fast matches     HIT
 *     fits matches, fast does not    STALE: it still fits; another setting may be faster now
 *     anything else                  MISS: a new answer must be found, and is kept
 *
 * Answers whose facts differ are kept side by side; an answer replaces those whose facts do not differ where both are
 * known. */
#ifndef PLIM_AUTOTUNE_STORE_ANSWER_STORE_H
#define PLIM_AUTOTUNE_STORE_ANSWER_STORE_H

#include "autotune/base/log.h"
#include "entry.h"
#include <limits.h>

#define PLIM_STORE_SITE "/etc/plimsoll/store"

struct plim_store_place {
    char path[PATH_MAX];
    bool is_site; /* the site's store, never written */
};

struct plim_store {
    size_t count;
    struct plim_store_place places[2];
    bool roots_alone; /* for hooks that run as root: read only files that only root may write, and not the user's
                       * store */
    const struct plim_log *log;
};

/* The key of an answer, and the facts for which it is valid. Empty when zeroed. */
struct plim_store_question {
    bool simulated;
    struct plim_facts key, fits, fast;
};

void plim_store_question_finish(struct plim_store_question *question); /* NULL is allowed */

/* Finds the folders of the stores, which need not exist. `site`: the folder of the site's store, NULL: the default. */
void plim_store_init(struct plim_store *store, const char *site, bool roots_alone,
                     const struct plim_log *log);

enum plim_store_state { PLIM_STORE_MISS, PLIM_STORE_STALE, PLIM_STORE_HIT };

struct plim_store_found {
    enum plim_store_state state;
    struct plim_result result; /* of a hit or a stale answer */
    char made[24], host[64]; /* when and on which host the answer was found */
    char why[256]; /* the reason why it is stale or a miss, one line; "" for a hit */
};

/* Looks up a question. An invalid file is a miss, with a warning; PLIM_NOMEM is the only error. The caller finishes
 * `found` in any case. */
enum plim_status plim_store_find(const struct plim_store *store,
                                 const struct plim_store_question *question,
                                 struct plim_store_found *found,
                                 struct plim_error *err) PLIM_MUST_CHECK;
void plim_store_found_finish(struct plim_store_found *found); /* NULL or a zeroed one is allowed */

/* Keeps a report, which has one result, in the user's store. PLIM_IO: it cannot be written. */
enum plim_status plim_store_write(const struct plim_store *store,
                                  const struct plim_store_question *question,
                                  const struct plim_report *report,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* --- the files -------------------------------------------------------------------------------- */

/* Called for every entry of a store in the order of names. For an invalid entry `entry` is NULL and `err` has the
 * reason. Any status but PLIM_OK ends the walk. */
typedef enum plim_status plim_store_visit(void *user, const char *path, bool simulated,
                                          struct plim_store_entry *entry,
                                          const struct plim_error *err);
enum plim_status plim_store_walk(const char *folder, bool roots_alone, plim_store_visit *visit,
                                 void *user) PLIM_MUST_CHECK;

/* Merges an entry into the store at `folder`, which is created if missing, by plim_store_entry_merge(). A damaged file
 * is replaced. PLIM_IO: it cannot be written. PLIM_UNSUPPORTED: a newer plimsoll wrote the file, which is left
 * unchanged. */
enum plim_status plim_store_merge(const char *folder, bool simulated,
                                  struct plim_store_entry *entry, bool just_made,
                                  struct plim_error *err) PLIM_MUST_CHECK;

/* Writes the path of a file of the store to `out`: FOLDER/measured/NAME. PLIM_INVALID: the path is too long. */
enum plim_status plim_store_path(const char *folder, bool simulated, const char *name,
                                 char out[PATH_MAX], struct plim_error *err) PLIM_MUST_CHECK;

/* Logs why nothing was found: the facts in which the nearest entries differ, one per line. */
enum plim_status plim_store_explain_miss(const struct plim_store *store,
                                         const struct plim_store_question *question,
                                         const struct plim_log *log,
                                         struct plim_error *err) PLIM_MUST_CHECK;

#endif
