#include "answer_store.h"
#include "autotune/base/outfile.h"
#include "autotune/base/trust.h"
#include "reports/tree.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void plim_store_question_finish(struct plim_store_question *question)
{
    if (!question) return;
    plim_facts_finish(&question->key);
    plim_facts_finish(&question->fits);
    plim_facts_finish(&question->fast);
}

void plim_store_found_finish(struct plim_store_found *found)
{
    if (!found) return;
    plim_result_finish(&found->result);
    *found = (struct plim_store_found){0};
}

/* --- places ----------------------------------------------------------------------------------- */

/* Finds the folder of the user's store; "" if there is none. Base directories that are not absolute paths are ignored,
 * as in the XDG specification. */
static void find_users(char out[PATH_MAX])
{
    const char *given = getenv("PLIMSOLL_STORE"), *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int length = 0;
    out[0] = '\0';
    if (given && *given) {
        length = snprintf(out, PATH_MAX, "%s", given);
    } else if (state && state[0] == '/') {
        length = snprintf(out, PATH_MAX, "%s/plimsoll/store", state);
    } else {
        const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(geteuid());
        if (!home || home[0] != '/') home = user ? user->pw_dir : NULL;
        if (home && home[0] == '/')
            length = snprintf(out, PATH_MAX, "%s/.local/state/plimsoll/store", home);
    }
    if (length >= PATH_MAX) out[0] = '\0';
}

void plim_store_init(struct plim_store *store, const char *site, bool roots_alone,
                     const struct plim_log *log)
{
    *store = (struct plim_store){.roots_alone = roots_alone, .log = log};
    struct plim_store_place *place = store->places;
    if (!site) site = PLIM_STORE_SITE;
    if (!roots_alone) find_users(place->path);
    if (place->path[0]) place++;
    place->is_site = true;
    if (strlen(site) < PATH_MAX) snprintf(place->path, PATH_MAX, "%s", site);
    if (place->path[0]) place++;
    store->count = (size_t)(place - store->places);
}

enum plim_status plim_store_path(const char *folder, bool simulated, const char *name,
                                 char out[PATH_MAX], struct plim_error *err)
{
    int length =
        snprintf(out, PATH_MAX, "%s/%s/%s", folder, simulated ? "simulated" : "measured", name);
    if (length < PATH_MAX) return PLIM_OK;
    return plim_fail(err, PLIM_INVALID, "%.200s...: the path is too long", folder);
}

/* --- finding ---------------------------------------------------------------------------------- */

/* Describes a fact that differs: "libraries (what fits) was a and is b". */
static void describe_difference(const char *kind, const struct plim_facts *kept,
                                const struct plim_facts *now, const char *culprit, char *out,
                                size_t size)
{
    const char *was = plim_facts_get(kept, culprit), *is = plim_facts_get(now, culprit);
    snprintf(out, size, "%s (%s) was %.90s and is %.90s", culprit, kind, *was ? was : "not known",
             *is ? is : "not known");
}

static enum plim_store_state state_of(const struct plim_store_answer *answer,
                                      const struct plim_store_question *question, char why[256])
{
    const char *culprit;
    why[0] = '\0';
    if (plim_facts_compare(&answer->fits, &question->fits, &culprit) != PLIM_FACTS_MATCH) {
        describe_difference("what fits", &answer->fits, &question->fits, culprit, why, 256);
        return PLIM_STORE_MISS;
    }
    if (plim_facts_compare(&answer->fast, &question->fast, &culprit) != PLIM_FACTS_MATCH) {
        describe_difference("what is fast", &answer->fast, &question->fast, culprit, why, 256);
        return PLIM_STORE_STALE;
    }
    if (!answer->interrupted) return PLIM_STORE_HIT;
    snprintf(why, 256, "its search was ended early");
    return PLIM_STORE_STALE;
}

/* Takes the best answer of an entry, if it is better than what was found before. */
static enum plim_status select_best(const struct plim_store_entry *entry,
                                    const struct plim_store_question *question,
                                    struct plim_store_found *found, struct plim_error *err)
{
    for (size_t i = entry->answers.count; i-- > 0;) {
        const struct plim_store_answer *answer = &entry->answers.items[i];
        struct plim_result result = {0};
        char why[256];
        enum plim_store_state state = state_of(answer, question, why);
        if (state == PLIM_STORE_MISS && !found->why[0])
            snprintf(found->why, sizeof(found->why), "%s", why);
        if (state <= found->state) continue;
        enum plim_status st = plim_store_answer_result(answer, &result, err);
        if (st) {
            plim_result_finish(&result);
            return st;
        }
        plim_result_finish(&found->result);
        found->result = result;
        found->state = state;
        snprintf(found->made, sizeof(found->made), "%s", answer->made);
        snprintf(found->host, sizeof(found->host), "%s", answer->host);
        snprintf(found->why, sizeof(found->why), "%s", why);
    }
    return PLIM_OK;
}

static bool may_be_read(const struct plim_store *store, const char *path)
{
    return !store->roots_alone || plim_trust_only_root(path);
}

static enum plim_status search_folder(const struct plim_store *store, const char *folder,
                                      const struct plim_store_question *question, const char *name,
                                      struct plim_store_found *found, struct plim_error *err)
{
    struct plim_store_entry entry = {0};
    struct plim_error inner = PLIM_ERROR_INIT;
    char path[PATH_MAX], text[1024];
    struct stat info;
    bool there = false;
    enum plim_status st = plim_store_path(folder, question->simulated, name, path, &inner);
    if (!st && lstat(path, &info) && errno == ENOENT) return PLIM_OK;
    if (!st && !may_be_read(store, path))
        st = plim_fail(&inner, PLIM_IO, "%s: others than root may write there, so it is not read",
                       path);
    if (!st) st = plim_store_entry_read(path, store->roots_alone, &there, &entry, &inner);
    if (!st && there && !plim_facts_equal(&entry.key, &question->key))
        st = plim_fail(&inner, PLIM_SPEC, "%s: it holds another key than its name says", path);
    if (!st && there) st = select_best(&entry, question, found, &inner);
    plim_store_entry_finish(&entry);
    if (st == PLIM_NOMEM) return plim_no_memory(err);
    plim_error_format(&inner, text, sizeof(text));
    if (st) plim_log(store->log, PLIM_LOG_WARNING, "%s", text);
    return PLIM_OK;
}

enum plim_status plim_store_find(const struct plim_store *store,
                                 const struct plim_store_question *question,
                                 struct plim_store_found *found, struct plim_error *err)
{
    char name[PLIM_STORE_NAME];
    enum plim_status st = PLIM_OK;
    *found = (struct plim_store_found){0};
    if (question->key.failed || question->fits.failed || question->fast.failed)
        return plim_no_memory(err);
    plim_store_name(&question->key, name);
    for (size_t i = 0; i < store->count && found->state != PLIM_STORE_HIT && !st; i++)
        st = search_folder(store, store->places[i].path, question, name, found, err);
    if (!st && found->state == PLIM_STORE_MISS && !found->why[0])
        snprintf(found->why, sizeof(found->why), "no %s answer is kept for this",
                 question->simulated ? "simulated" : "measured");
    return st;
}

/* --- keeping ---------------------------------------------------------------------------------- */

enum plim_status plim_store_merge(const char *folder, bool simulated,
                                  struct plim_store_entry *entry, bool just_made,
                                  struct plim_error *err)
{
    struct plim_store_entry old = {0};
    struct plim_error inner = PLIM_ERROR_INIT;
    char name[PLIM_STORE_NAME], path[PATH_MAX];
    bool there = false;
    plim_store_name(&entry->key, name);
    enum plim_status st = plim_store_path(folder, simulated, name, path, err);
    if (!st) st = plim_outfile_create_folders(path, err);
    if (st) return st;
    st = plim_store_entry_read(path, false, &there, &old, &inner);
    if (st == PLIM_UNSUPPORTED || st == PLIM_NOMEM) {
        plim_store_entry_finish(&old);
        return plim_fail(err, st, "%s", inner.text);
    }
    /* A damaged file is replaced. */
    bool believed = !st && there && plim_facts_equal(&old.key, &entry->key);
    struct plim_store_entry *target = believed ? &old : entry;
    st = PLIM_OK;
    for (size_t i = 0; believed && i < entry->answers.count && !st; i++)
        st = plim_store_entry_merge(&old, &entry->answers.items[i], just_made);
    if (st)
        st = plim_no_memory(err);
    else
        st = plim_store_entry_write(target, path, err);
    plim_store_entry_finish(&old);
    return st;
}

static enum plim_status copy_facts(const struct plim_facts *from, struct plim_facts *to)
{
    for (size_t i = 0; i < from->list.count; i++)
        plim_facts_add(to, from->list.items[i].name, from->list.items[i].value);
    return to->failed || from->failed ? PLIM_NOMEM : PLIM_OK;
}

static enum plim_status make_answer(const struct plim_store_question *question,
                                    const struct plim_report *report,
                                    struct plim_store_answer *answer)
{
    struct plim_json json = {0};
    struct tm when;
    time_t now = time(NULL);
    const struct plim_report one = {.version = report->version, .results = report->results};
    if (gmtime_r(&now, &when))
        strftime(answer->made, sizeof(answer->made), "%Y-%m-%dT%H:%M:%SZ", &when);
    if (gethostname(answer->host, sizeof(answer->host) - 1)) answer->host[0] = '\0';
    answer->interrupted = report->results.items[0].interrupted;
    plim_report_tree(&one, &json);
    answer->report = json.failed ? NULL : json_incref(json.root);
    plim_json_finish(&json);
    if (!answer->report || copy_facts(&question->fits, &answer->fits)) return PLIM_NOMEM;
    return copy_facts(&question->fast, &answer->fast);
}

enum plim_status plim_store_write(const struct plim_store *store,
                                  const struct plim_store_question *question,
                                  const struct plim_report *report, struct plim_error *err)
{
    struct plim_store_entry entry = {0};
    struct plim_store_answer answer = {0};
    if (!store->count || store->places[0].is_site)
        return plim_fail(err, PLIM_IO, "there is no home directory for it, expected PLIMSOLL_STORE");
    enum plim_status st = make_answer(question, report, &answer);
    if (!st) st = copy_facts(&question->key, &entry.key);
    if (!st) st = plim_store_entry_merge(&entry, &answer, true);
    if (st)
        st = plim_no_memory(err);
    else
        st = plim_store_merge(store->places[0].path, question->simulated, &entry, true, err);
    plim_store_answer_finish(&answer);
    plim_store_entry_finish(&entry);
    return st;
}
