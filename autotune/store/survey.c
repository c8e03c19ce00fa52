/* Visits all files of a store, and finds those that are near a question. */
#include "answer_store.h"
#include "autotune/base/trust.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- walking ---------------------------------------------------------------------------------- */

/* True for names of 32 hexadecimal digits and ".yaml"; other files do not belong to the store. */
static int is_entry(const struct dirent *file)
{
    return strlen(file->d_name) == PLIM_STORE_NAME - 3 &&
           strspn(file->d_name, "0123456789abcdef") == PLIM_STORE_ID &&
           !strcmp(file->d_name + PLIM_STORE_ID, ".yaml");
}

static enum plim_status visit_file(const char *folder, bool simulated, const char *name,
                                   bool roots_alone, plim_store_visit *visit, void *user)
{
    struct plim_store_entry entry = {0};
    struct plim_error err = PLIM_ERROR_INIT;
    char path[PATH_MAX];
    bool found = true;
    enum plim_status st = plim_store_path(folder, simulated, name, path, &err);
    if (!st && roots_alone && !plim_trust_only_root(path))
        st = plim_fail(&err, PLIM_IO, "%s: others than root may write there", path);
    if (!st) st = plim_store_entry_read(path, roots_alone, &found, &entry, &err);
    bool is_gone = !st && !found; /* another process removed it */
    if (st != PLIM_NOMEM && !is_gone) st = visit(user, path, simulated, st ? NULL : &entry, &err);
    plim_store_entry_finish(&entry);
    return st;
}

/* Handles a failed scandir(). A missing folder has no files; one that cannot be read is reported like an invalid
 * file. */
static enum plim_status walk_fails(const char *path, bool simulated, int problem,
                                   plim_store_visit *visit, void *user)
{
    struct plim_error err = PLIM_ERROR_INIT;
    if (problem == ENOMEM) return PLIM_NOMEM;
    if (problem == ENOENT || problem == ENOTDIR) return PLIM_OK;
    (void)plim_fail(&err, PLIM_IO, "%s: cannot be read: %s", path, strerror(problem));
    return visit(user, path, simulated, NULL, &err);
}

static enum plim_status walk_kind(const char *folder, bool simulated, bool roots_alone,
                                  plim_store_visit *visit, void *user)
{
    struct dirent **files;
    char path[PATH_MAX];
    enum plim_status st = plim_store_path(folder, simulated, "", path, NULL);
    if (st) return PLIM_OK;
    int count = scandir(path, &files, is_entry, alphasort);
    if (count < 0) return walk_fails(path, simulated, errno, visit, user);
    for (int i = 0; i < count; i++) {
        if (!st) st = visit_file(folder, simulated, files[i]->d_name, roots_alone, visit, user);
        free(files[i]);
    }
    free(files);
    return st;
}

enum plim_status plim_store_walk(const char *folder, bool roots_alone, plim_store_visit *visit,
                                 void *user)
{
    enum plim_status st = walk_kind(folder, false, roots_alone, visit, user);
    return st ? st : walk_kind(folder, true, roots_alone, visit, user);
}

/* --- why nothing was found -------------------------------------------------------------------- */

enum { NEAREST = 3 };

/* A kept key, and the number of lines of its facts that differ. */
struct near {
    size_t differences;
    char path[PATH_MAX];
};

struct nearness {
    const struct plim_store_question *question;
    const struct plim_log *log;
    bool exact_seen;
    size_t count;
    struct near nearest[NEAREST]; /* by number of differences */
};

/* Returns the number of lines of `text` that `other` does not have, and stores the first of them, "" if there is
 * none. */
static size_t lines_missing(const char *text, const char *other, char *first, size_t size)
{
    size_t missing = 0;
    first[0] = '\0';
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        const char *line = other;
        while (*line && (strcspn(line, "\n") != length || strncmp(line, text, length) != 0)) {
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
        size_t indent = strspn(text, " ");
        if (!*line && length > indent && !missing++)
            snprintf(first, size, "%.*s", (int)(length - indent), text + indent);
    }
    return missing;
}

/* Returns the number of lines in which two values differ, and stores the first of each side. */
static size_t compare_lines(const char *kept, const char *now, char *was, char *is, size_t size)
{
    size_t only_kept = lines_missing(kept, now, was, size),
           only_now = lines_missing(now, kept, is, size);
    return only_kept > only_now ? only_kept : only_now;
}

static const char *said(const char *value, const char *line)
{
    return !*value ? "not known" : *line ? line : "no such line";
}

static void log_difference(const struct plim_log *log, const char *kind, const char *name, const char *kept,
                           const char *now)
{
    char was[160], is[160];
    size_t lines = compare_lines(kept, now, was, is, sizeof(was));
    plim_log(log, PLIM_LOG_INFO, "  %s (%s): kept for %s, here %s", name, kind, said(kept, was),
             said(now, is));
    if (lines > 1) plim_log(log, PLIM_LOG_INFO, "    and %zu lines more", lines - 1);
}

static void log_facts(const struct plim_log *log, const char *kind, const struct plim_facts *kept,
                      const struct plim_facts *now)
{
    for (size_t i = 0; i < now->list.count; i++) {
        const struct plim_fact *fact = &now->list.items[i];
        const char *was = plim_facts_get(kept, fact->name);
        if (!*was || !*fact->value || strcmp(was, fact->value) != 0)
            log_difference(log, kind, fact->name, was, fact->value);
    }
}

static size_t count_differences(const struct plim_facts *kept, const struct plim_facts *now)
{
    size_t differences = 0;
    char was[2], is[2];
    for (size_t i = 0; i < now->list.count; i++) {
        const struct plim_fact *fact = &now->list.items[i];
        const char *value = plim_facts_get(kept, fact->name);
        if (!strcmp(value, fact->value)) continue;
        size_t lines = compare_lines(value, fact->value, was, is, sizeof(was));
        differences += lines ? lines : 1; /* the same lines in another order */
    }
    return differences;
}

static void log_answers(const struct nearness *n, const char *path,
                        const struct plim_store_entry *entry)
{
    for (size_t i = 0; i < entry->answers.count; i++) {
        const struct plim_store_answer *answer = &entry->answers.items[i];
        plim_log(n->log, PLIM_LOG_INFO, "%s: the answer of %s on %s differs in", path, answer->made,
                 answer->host);
        log_facts(n->log, "what fits", &answer->fits, &n->question->fits);
        log_facts(n->log, "what is fast", &answer->fast, &n->question->fast);
    }
}

static void insert_nearest(struct nearness *n, const char *path, size_t differences)
{
    size_t at = n->count < NEAREST ? n->count++ : NEAREST;
    while (at > 0 && n->nearest[at - 1].differences > differences) {
        if (at < NEAREST) n->nearest[at] = n->nearest[at - 1];
        at--;
    }
    if (at == NEAREST) return;
    n->nearest[at].differences = differences;
    snprintf(n->nearest[at].path, PATH_MAX, "%s", path);
}

static enum plim_status find_near(void *user, const char *path, bool simulated,
                                  struct plim_store_entry *entry, const struct plim_error *err)
{
    struct nearness *n = user;
    if (simulated != n->question->simulated) return PLIM_OK;
    if (!entry) {
        char text[1024];
        plim_error_format(err, text, sizeof(text));
        plim_log(n->log, PLIM_LOG_INFO, "%s", text);
        return PLIM_OK;
    }
    size_t differences = count_differences(&entry->key, &n->question->key);
    if (!differences) {
        n->exact_seen = true;
        log_answers(n, path, entry);
    } else {
        insert_nearest(n, path, differences);
    }
    return PLIM_OK;
}

static enum plim_status log_nearest(const struct nearness *n, bool roots_alone,
                                    struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < n->count && !st; i++) {
        struct plim_store_entry entry = {0};
        bool found;
        if (n->nearest[i].differences > n->nearest[0].differences) break;
        st = plim_store_entry_read(n->nearest[i].path, roots_alone, &found, &entry, err);
        if (!st && found) {
            plim_log(n->log, PLIM_LOG_INFO, "%s: kept for another question, which differs in",
                     n->nearest[i].path);
            log_facts(n->log, "the key", &entry.key, &n->question->key);
        }
        plim_store_entry_finish(&entry);
    }
    return st;
}

enum plim_status plim_store_explain_miss(const struct plim_store *store,
                                         const struct plim_store_question *question,
                                         const struct plim_log *log, struct plim_error *err)
{
    struct nearness *n = calloc(1, sizeof(*n)); /* paths are large */
    if (!n) return plim_no_memory(err);
    *n = (struct nearness){.question = question, .log = log};
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < store->count && !st; i++)
        st = plim_store_walk(store->places[i].path, store->roots_alone, find_near, n);
    if (st)
        st = plim_no_memory(err);
    else if (!n->exact_seen && !n->count)
        plim_log(log, PLIM_LOG_INFO, "no %s answer is kept in any store here",
                 question->simulated ? "simulated" : "measured");
    else if (!n->exact_seen)
        st = log_nearest(n, store->roots_alone, err);
    free(n);
    return st;
}
