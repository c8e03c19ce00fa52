/* store: manages kept answers: list, show, rm, export, import, gc. */
#include "autotune/base/outfile.h"
#include "autotune/base/text.h"
#include "autotune/store/answer_store.h"
#include "common.h"
#include "kept.h"
#include "reports/writer.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The state of a run. */
struct store_run {
    const struct plim_request *request;
    const struct plim_io *io;
    struct plim_log log;
    struct plim_store store;
    const char *const *wanted; /* keys, or beginnings of keys */
    size_t wanted_count, matched;
    const char *target; /* for export: a folder */
    struct plim_json json;
    json_t *list;
    char oldest[24]; /* for gc: answers made before this time are removed; "": none */
    size_t removed;
    struct plim_error *err;
};

/* --- selection of entries --------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* True if a key was given for the entry, or none at all. */
static bool is_wanted(struct store_run *r, const char *path)
{
    const char *name = name_of(path);
    for (size_t i = 0; i < r->wanted_count; i++)
        if (r->wanted[i][0] && !strncmp(r->wanted[i], name, strlen(r->wanted[i]))) return true;
    return !r->wanted_count;
}

static void warn(const struct store_run *r, const struct plim_error *err)
{
    char text[1024];
    plim_error_format(err, text, sizeof(text));
    plim_log(&r->log, PLIM_LOG_WARNING, "%s", text);
}

static enum plim_status walk_places(struct store_run *r, plim_store_visit *visit, bool with_site)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < r->store.count && !st; i++)
        if (with_site || !r->store.places[i].is_site)
            st = plim_store_walk(r->store.places[i].path, false, visit, r);
    return st;
}

/* --- list ------------------------------------------------------------------------------------- */

static void list_json(struct store_run *r, const char *path, bool simulated,
                      const struct plim_store_answer *answer, const struct plim_result *result)
{
    const struct plim_result_choice *choice = &result->choice;
    char key[PLIM_STORE_NAME];
    snprintf(key, sizeof(key), "%.*s", PLIM_STORE_ID, name_of(path));
    json_t *node = plim_json_object(&r->json, r->list, NULL);
    plim_json_text(&r->json, node, "key", key);
    plim_json_text(&r->json, node, "file", path);
    plim_json_bool(&r->json, node, "simulated", simulated);
    plim_json_text(&r->json, node, "made", answer->made);
    plim_json_text(&r->json, node, "host", answer->host);
    plim_json_text(&r->json, node, "spec", result->spec.name);
    plim_json_text(&r->json, node, "device", result->device.name);
    plim_json_int(&r->json, node, "micro_batch",
                  choice->setting.micro_batch ? choice->setting.micro_batch : PLIM_JSON_ABSENT);
    plim_json_int(&r->json, node, "seq",
                  choice->setting.seq ? choice->setting.seq : PLIM_JSON_ABSENT);
    plim_json_int(&r->json, node, "accumulation", choice->setting.accumulation);
    if (answer->interrupted) plim_json_bool(&r->json, node, "interrupted", true);
}

static void list_line(const struct store_run *r, const char *path, bool simulated,
                      const struct plim_store_answer *answer, const struct plim_result *result,
                      const char *apart)
{
    char batch[48];
    snprintf(batch, sizeof(batch), "%lld x %lld", (long long)result->choice.setting.micro_batch,
             (long long)result->choice.setting.accumulation);
    fprintf(r->io->out, "%.12s  %-9s  %.10s  %9s  ", name_of(path),
            simulated ? "simulated" : "measured", answer->made, batch);
    plim_text_write(r->io->out, result->spec.name);
    fprintf(r->io->out, " on ");
    plim_text_write(r->io->out, result->device.name);
    fprintf(r->io->out, "%s\n", apart);
}

/* Writes the fact that distinguishes an answer from the newest of its key: "  (plimsoll 0.1.0)"; "" for the newest, or
 * if no such fact differs. */
static void describe_difference(const struct plim_store_answer *answer,
                                const struct plim_store_answer *newest, char *out, size_t size)
{
    const char *culprit;
    out[0] = '\0';
    if (plim_facts_compare(&newest->fits, &answer->fits, &culprit) != PLIM_FACTS_MISMATCH) return;
    snprintf(out, size, "  (%s %s)", culprit, plim_facts_get(&answer->fits, culprit));
}

static enum plim_status visit_list(void *user, const char *path, bool simulated,
                                   struct plim_store_entry *entry, const struct plim_error *err)
{
    struct store_run *r = user;
    enum plim_status st = PLIM_OK;
    if (!is_wanted(r, path)) return PLIM_OK;
    if (!entry) {
        warn(r, err);
        return PLIM_OK;
    }
    for (size_t i = 0; i < entry->answers.count && !st; i++) {
        struct plim_result result = {0};
        struct plim_error problem = PLIM_ERROR_INIT;
        char apart[160];
        describe_difference(&entry->answers.items[i], &entry->answers.items[entry->answers.count - 1], apart,
                            sizeof(apart));
        st = plim_store_answer_result(&entry->answers.items[i], &result, &problem);
        if (!st && r->request->json)
            list_json(r, path, simulated, &entry->answers.items[i], &result);
        else if (!st)
            list_line(r, path, simulated, &entry->answers.items[i], &result, apart);
        plim_result_finish(&result);
        if (st == PLIM_NOMEM) return st;
        if (st) warn(r, &problem);
        st = PLIM_OK;
        r->matched++;
    }
    return PLIM_OK;
}

static enum plim_status run_list(struct store_run *r)
{
    json_t *root = plim_json_object(&r->json, NULL, NULL);
    char *text = NULL;
    plim_json_text(&r->json, root, "schema", "plimsoll.store_list/1");
    r->list = plim_json_array(&r->json, root, "answers");
    enum plim_status st = walk_places(r, visit_list, true);
    if (!st && r->request->json) st = plim_json_write(&r->json, &text, r->err);
    if (text) fputs(text, r->io->out);
    if (!st && !r->request->json && !r->matched)
        plim_log(&r->log, PLIM_LOG_INFO, "nothing is kept");
    free(text);
    return st;
}

/* --- show ------------------------------------------------------------------------------------- */

static void show_facts(const struct store_run *r, const char *title, const struct plim_facts *facts)
{
    fprintf(r->io->out, "\n%s\n", title);
    for (size_t i = 0; i < facts->list.count; i++) {
        const struct plim_fact *fact = &facts->list.items[i];
        fprintf(r->io->out, "  %s: ", fact->name);
        const char *line = fact->value;
        for (bool many = strchr(line, '\n'); *line; line += strcspn(line, "\n") + 1) {
            char text[256];
            if (many) fprintf(r->io->out, "\n    ");
            snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
            plim_text_write(r->io->out, text);
            if (!line[strcspn(line, "\n")]) break;
        }
        fprintf(r->io->out, "%s\n", *fact->value ? "" : "not known");
    }
}

/* Prints the report of an answer, and the facts for which it is valid. */
static enum plim_status show_answer(struct store_run *r, const struct plim_store_entry *entry,
                                    const struct plim_store_answer *answer)
{
    struct plim_report report = {0};
    struct plim_result result = {0};
    enum plim_status st = plim_store_answer_result(answer, &result, r->err);
    if (!st && PLIM_ARRAY_PUSH(&report.results, result) != PLIM_OK) st = plim_no_memory(r->err);
    if (!st) st = plim_common_emit(r->request, r->io, &report, r->err);
    if (!st && !r->request->json) {
        fprintf(r->io->out, "\nmade %s on %s%s\n", answer->made, answer->host,
                answer->interrupted ? ", ended early" : "");
        show_facts(r, "it fits where these are the same", &answer->fits);
        show_facts(r, "it is fast where these are the same", &answer->fast);
        show_facts(r, "what was asked", &entry->key);
    }
    if (report.results.count)
        plim_report_finish(&report);
    else
        plim_result_finish(&result);
    return st;
}

static enum plim_status visit_show(void *user, const char *path, bool simulated,
                                   struct plim_store_entry *entry, const struct plim_error *err)
{
    struct store_run *r = user;
    (void)simulated;
    if (!is_wanted(r, path)) return PLIM_OK;
    if (!entry) {
        *r->err = *err;
        return err->status;
    }
    enum plim_status st = PLIM_OK;
    /* Only the newest answer of the first entry, so that JSON is one document. */
    if (!r->matched++) st = show_answer(r, entry, &entry->answers.items[entry->answers.count - 1]);
    return st;
}

/* --- rm, export, import ------------------------------------------------------------------------ */

static enum plim_status remove_file(struct store_run *r, const char *path)
{
    if (unlink(path) && errno != ENOENT)
        return plim_fail(r->err, PLIM_IO, "%s: cannot be removed: %s", path, strerror(errno));
    r->removed++;
    return PLIM_OK;
}

static enum plim_status visit_rm(void *user, const char *path, bool simulated,
                                 struct plim_store_entry *entry, const struct plim_error *err)
{
    struct store_run *r = user;
    (void)simulated;
    (void)entry;
    (void)err;
    if (!is_wanted(r, path)) return PLIM_OK;
    r->matched++;
    return remove_file(r, path);
}

static enum plim_status visit_export(void *user, const char *path, bool simulated,
                                     struct plim_store_entry *entry, const struct plim_error *err)
{
    struct store_run *r = user;
    if (!is_wanted(r, path)) return PLIM_OK;
    if (!entry) {
        warn(r, err);
        return PLIM_OK;
    }
    r->matched++;
    return plim_store_merge(r->target, simulated, entry, false, r->err);
}

/* --- gc --------------------------------------------------------------------------------------- */

static enum plim_status sweep(struct store_run *r, const char *store, bool simulated)
{
    char folder[PATH_MAX], path[PATH_MAX];
    struct dirent *file;
    enum plim_status st = plim_store_path(store, simulated, "", folder, r->err);
    DIR *dir = st ? NULL : opendir(folder);
    while (dir && !st && (file = readdir(dir)))
        if (plim_outfile_is_left_over(folder, file->d_name)) {
            st = plim_store_path(store, simulated, file->d_name, path, r->err);
            if (!st) st = remove_file(r, path);
        }
    if (dir) closedir(dir);
    return st;
}

/* Removes entries that can never be an answer again, or are older than requested. */
static enum plim_status visit_gc(void *user, const char *path, bool simulated,
                                 struct plim_store_entry *entry, const struct plim_error *err)
{
    struct store_run *r = user;
    if (!entry) return err->status == PLIM_SPEC ? remove_file(r, path) : PLIM_OK;
    const struct plim_store_answer *newest = &entry->answers.items[entry->answers.count - 1];
    bool other_version = strcmp(plim_facts_get(&newest->fits, "plimsoll"), r->io->version) != 0;
    bool old = isdigit((unsigned char)newest->made[0]) && strcmp(newest->made, r->oldest) < 0;
    return old || (simulated && other_version) ? remove_file(r, path) : PLIM_OK;
}

static enum plim_status run_gc(struct store_run *r)
{
    enum plim_status st = PLIM_OK;
    time_t oldest = time(NULL) - (time_t)r->request->store.oldest_seconds;
    struct tm when;
    if (r->request->store.oldest_seconds > 0 && gmtime_r(&oldest, &when))
        strftime(r->oldest, sizeof(r->oldest), "%Y-%m-%dT%H:%M:%SZ", &when);
    st = walk_places(r, visit_gc, false);
    for (size_t i = 0; i < r->store.count && !st; i++) {
        if (r->store.places[i].is_site) continue;
        st = sweep(r, r->store.places[i].path, false);
        if (!st) st = sweep(r, r->store.places[i].path, true);
    }
    if (!st) plim_log(&r->log, PLIM_LOG_INFO, "%zu files removed", r->removed);
    return st;
}

/* --- subcommands ------------------------------------------------------------------------------ */

static enum plim_status none_matched(const struct store_run *r)
{
    if (r->matched || !r->wanted_count) return PLIM_OK;
    return plim_fail(r->err, PLIM_INVALID, "%s: no such key (plimsoll store list)", r->wanted[0]);
}

static enum plim_status run_show(struct store_run *r)
{
    if (!r->wanted_count)
        return plim_fail(r->err, PLIM_INVALID, "no key was given, expected one of store list");
    enum plim_status st = walk_places(r, visit_show, true);
    return st ? st : none_matched(r);
}

static enum plim_status run_rm(struct store_run *r)
{
    if (!r->wanted_count)
        return plim_fail(r->err, PLIM_INVALID, "no key was given, expected one of store list");
    enum plim_status st = walk_places(r, visit_rm, false);
    return st ? st : none_matched(r);
}

static enum plim_status run_export(struct store_run *r)
{
    if (!r->wanted_count)
        return plim_fail(r->err, PLIM_INVALID,
                         "no folder was given, expected store export DIR [KEY...]");
    r->target = r->wanted[0];
    r->wanted++;
    r->wanted_count--;
    enum plim_status st = walk_places(r, visit_export, true);
    return st ? st : none_matched(r);
}

static enum plim_status run_import(struct store_run *r)
{
    const char *const *folders = r->wanted;
    size_t count = r->wanted_count;
    struct stat info;
    enum plim_status st = PLIM_OK;
    if (!count)
        return plim_fail(r->err, PLIM_INVALID, "no folder was given, expected store import DIR...");
    if (!r->store.count || r->store.places[0].is_site)
        return plim_fail(r->err, PLIM_IO,
                         "there is no home directory for it, expected PLIMSOLL_STORE");
    r->target = r->store.places[0].path;
    r->wanted_count = 0;
    for (size_t i = 0; i < count && !st; i++) {
        if (stat(folders[i], &info) || !S_ISDIR(info.st_mode))
            return plim_fail(r->err, PLIM_INVALID, "%s: this is not the folder of an export",
                             folders[i]);
        st = plim_store_walk(folders[i], false, visit_export, r);
    }
    if (!st) plim_log(&r->log, PLIM_LOG_INFO, "%zu keys taken", r->matched);
    return st;
}

static const struct {
    const char *name;
    enum plim_status (*run)(struct store_run *r);
} verbs[] = {{"list", run_list},     {"show", run_show},     {"rm", run_rm},
             {"export", run_export}, {"import", run_import}, {"gc", run_gc}};
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };

static enum plim_status run_store(const struct plim_request *request, const struct plim_io *io,
                                  struct plim_error *err)
{
    const char *names[VERBS], *verb = request->subject ? request->subject : "list";
    char expected[96];
    struct store_run r = {.request = request,
                          .io = io,
                          .log = plim_common_log(request, io),
                          .wanted = request->arguments.items,
                          .wanted_count = request->arguments.count,
                          .err = err};
    plim_store_init(&r.store, request->store.site, false, &r.log);
    for (size_t i = 0; i < VERBS; i++) {
        names[i] = verbs[i].name;
        if (strcmp(verb, verbs[i].name) != 0) continue;
        enum plim_status st = verbs[i].run(&r);
        plim_json_finish(&r.json);
        return st == PLIM_NOMEM ? plim_no_memory(err) : st;
    }
    plim_join_names(names, VERBS, expected, sizeof(expected));
    return plim_fail(err, PLIM_INVALID, "store %s: expected %s", verb, expected);
}

const struct plim_command plim_command_store = {
    .name = "store",
    .argument = "VERB",
    .id = PLIM_COMMAND_STORE,
    .run = run_store,
    .summary = "answers that are kept: list, show, rm, export, import, gc",
    .about =
        "Answers of tune, plan and exec are kept, a file each, in $PLIMSOLL_STORE or in\n"
        "plimsoll/store of $XDG_STATE_HOME (~/.local/state); a site's store is read as well.\n\n"
        "  store list                 what is kept\n"
        "  store show KEY             an answer, and what it holds for\n"
        "  store rm KEY...            forgets answers of the user's store\n"
        "  store export DIR [KEY...]  into a folder, which is a store itself\n"
        "  store import DIR...        from such folders; what is there already is kept\n"
        "  store gc                   removes what can be no answer any more\n\n"
        "Of a key its beginning is enough.\n"};
