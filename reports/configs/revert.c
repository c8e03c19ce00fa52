#define _GNU_SOURCE /* realpath() */
#include "autotune/base/outfile.h"
#include "autotune/base/textfile.h"
#include "change_journal.h"
#include "change_record.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file to restore. */
struct target {
    char *file;
    struct plim_config_record record; /* zeroed if the change was interrupted before it was written */
    bool found, restored;
};

struct revert {
    size_t count;
    struct target targets[PLIM_CONFIG_FILES];
    bool force;
    FILE *out;
    struct plim_error *err;
};

static enum plim_status add_target(struct revert *r, const char *file)
{
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->targets[i].file, file)) return PLIM_OK;
    if (r->count == PLIM_CONFIG_FILES)
        return plim_fail(r->err, PLIM_INVALID, "more than %d files", PLIM_CONFIG_FILES);
    struct target *target = &r->targets[r->count];
    target->file = strdup(file);
    if (!target->file) return plim_no_memory(r->err);
    r->count++;
    return plim_config_record_read(file, &target->record, &target->found, r->err);
}

/* Collects the files to restore. If a change was interrupted, this includes all of its files. */
static enum plim_status collect(struct revert *r, const char *const *paths, size_t count)
{
    enum plim_status st = PLIM_OK;
    bool any = false;
    for (size_t i = 0; i < count && !st; i++) {
        char *real = realpath(paths[i], NULL);
        if (!real) return plim_fail(r->err, PLIM_IO, "%s: %s", paths[i], strerror(errno));
        st = add_target(r, real);
        free(real);
    }
    for (size_t i = 0; i < r->count && !st; i++) {
        const struct plim_config_record *record = &r->targets[i].record;
        any |= r->targets[i].found;
        for (size_t k = 0; record->pending && k < record->count && !st; k++)
            st = add_target(r, record->parts[k].file);
    }
    if (st || any) return st;
    return plim_fail(r->err, PLIM_SPEC,
                     "%s: there is no record of a change beside it (%.180s.plimsoll.json)",
                     paths[0], r->targets[0].file);
}

static enum plim_status check(struct revert *r, struct target *target)
{
    char here[PLIM_SHA256_TEXT], backup[PLIM_SHA256_TEXT];
    const struct plim_config_hashes *hashes = &target->record.hashes;
    if (!target->found) return PLIM_OK;
    if (!plim_config_hash_file(target->file, here))
        return plim_fail(r->err, PLIM_IO, "%s: cannot be read", target->file);
    target->restored = !strcmp(here, hashes->before);
    bool ours = target->restored || !strcmp(here, hashes->after) ||
                (target->record.pending && !strcmp(here, hashes->from));
    if (!ours && !r->force)
        return plim_fail(r->err, PLIM_SPEC,
                         "%s: it was changed since; --force restores it all the same",
                         target->file);
    if (target->restored) return PLIM_OK;
    if (plim_config_hash_file(target->record.backup, backup) && !strcmp(backup, hashes->before))
        return PLIM_OK;
    return plim_fail(r->err, PLIM_SPEC, "%s: this backup is not what the file was before",
                     target->record.backup);
}

static enum plim_status restore(struct revert *r, struct target *target)
{
    struct plim_outfile out = {0};
    char *text = NULL;
    size_t length;
    enum plim_status st;
    if (!target->found || target->restored) return PLIM_OK;
    PLIM_TRY(plim_textfile_read(target->record.backup, 64 << 20, &text, &length, r->err));
    PLIM_TRY(plim_outfile_rewrite(target->file, &out, r->err));
    fwrite(text, 1, length, out.stream);
    PLIM_TRY(plim_outfile_commit(&out, r->err));
out:
    free(text);
    return st;
}

/* Removes the temporary file that an interrupted change left beside the file. */
static void remove_temporary(const struct target *target)
{
    char path[4096];
    const char *slash = strrchr(target->file, '/');
    if (!target->record.temporary[0] || !slash) return;
    int length = snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - target->file), target->file,
                          target->record.temporary);
    if (length > 0 && (size_t)length < sizeof(path)) (void)unlink(path);
}

/* Removes the backups and records. A backup goes before its record: a record alone still tells what happened. */
static void clean_up(struct revert *r)
{
    for (size_t i = 0; i < r->count; i++) {
        struct target *target = &r->targets[i];
        if (!target->found) continue;
        remove_temporary(target);
        (void)unlink(target->record.backup);
        (void)unlink(target->record.path);
        if (r->out)
            fprintf(r->out, "%s: %s\n", target->file,
                    target->restored ? "is as it was" : "restored");
    }
}

enum plim_status plim_config_revert(const char *const *paths, size_t count, bool force, FILE *out,
                                    struct plim_error *err)
{
    struct revert *r = calloc(1, sizeof(*r));
    enum plim_status st = r ? PLIM_OK : plim_no_memory(err);
    if (st) return st;
    *r = (struct revert){.force = force, .out = out, .err = err};
    PLIM_TRY(collect(r, paths, count));
    for (size_t i = 0; i < r->count; i++) PLIM_TRY(check(r, &r->targets[i]));
    for (size_t i = 0; i < r->count; i++) PLIM_TRY(restore(r, &r->targets[i]));
    clean_up(r);
out:
    for (size_t i = 0; i < r->count; i++) {
        free(r->targets[i].file);
        plim_config_record_finish(&r->targets[i].record);
    }
    free(r);
    return st;
}
