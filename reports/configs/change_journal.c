#define _GNU_SOURCE /* realpath, gethostname */
#include "change_journal.h"
#include "autotune/base/outfile.h"
#include "autotune/base/textfile.h"
#include "change_record.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file of a change. */
struct member {
    const struct plim_config_file *file;
    struct plim_config_record record;
    struct plim_outfile staged;
    bool has_backup; /* from an earlier change; it is kept */
    bool backed_up;  /* backed up by this change */
};

struct change {
    struct plim_config_plan *plan;
    size_t count;
    struct member members[PLIM_CONFIG_FILES];
    struct plim_error *err;
};

static enum plim_status fail(struct plim_error *err, const char *path, const char *what)
{
    return plim_fail(err, PLIM_IO, "%s: %s", path, what);
}

/* --- preparation ------------------------------------------------------------------------------ */

/* Checks the record of an earlier change: it must be done, or interrupted before the first or after the last rename. */
static enum plim_status check_earlier(struct change *c, struct member *m)
{
    struct plim_config_record old;
    bool found;
    enum plim_status st = plim_config_record_read(m->record.file, &old, &found, c->err);
    if (st || !found) return st;
    size_t before = 0, after = 0;
    plim_config_record_count(&old, &before, &after);
    if (old.pending && before < old.count && after < old.count)
        st = fail(c->err, m->file->path,
                  "a change of several files was cut short; 'plimsoll revert' of it comes first");
    const char *here = m->record.hashes.from;
    bool ours = !strcmp(old.hashes.after, here) || (old.pending && !strcmp(old.hashes.from, here));
    char backup[PLIM_SHA256_TEXT];
    if (!st && ours && plim_config_hash_file(old.backup, backup) &&
        !strcmp(backup, old.hashes.before)) {
        m->has_backup = true;
        memcpy(m->record.hashes.before, old.hashes.before, sizeof(old.hashes.before));
    }
    plim_config_record_finish(&old);
    return st;
}

/* Fails if a file is given under two names, since it would be changed twice. */
static enum plim_status check_names(struct change *c, const struct member *m)
{
    for (size_t i = 0; &c->members[i] != m; i++)
        if (!strcmp(c->members[i].record.file, m->record.file))
            return plim_fail(c->err, PLIM_INVALID, "%s is the same file as %s", m->file->path,
                             c->members[i].file->path);
    return PLIM_OK;
}

static enum plim_status prepare(struct change *c, const struct plim_config_sizes *sizes,
                                const char *source, const char *version)
{
    for (size_t i = 0; i < c->plan->count; i++) {
        const struct plim_config_file *file = &c->plan->files[i];
        if (!file->edits.count) continue;
        struct member *m = &c->members[c->count++];
        m->file = file;
        enum plim_status st =
            plim_config_record_make(file, sizes, source, version, &m->record, c->err);
        if (!st) st = check_names(c, m);
        if (!st) st = check_earlier(c, m);
        if (st) return st;
    }
    return PLIM_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

static enum plim_status stage(struct change *c, struct member *m)
{
    enum plim_status st = plim_outfile_rewrite(m->file->path, &m->staged, c->err);
    if (st) return st;
    fwrite(m->file->after, 1, m->file->after_length, m->staged.stream);
    snprintf(m->record.temporary, sizeof(m->record.temporary), "%s", m->staged.temporary);
    return plim_outfile_sync(&m->staged, c->err);
}

/* A backup gets the permissions of its file. */
static enum plim_status write_backup(struct change *c, struct member *m)
{
    struct plim_outfile out = {0};
    struct stat info;
    const struct plim_config_document *document = &m->file->document;
    if (m->has_backup) return PLIM_OK;
    enum plim_status st =
        plim_config_record_check_backup(&m->record, document->file, document->file_length, c->err);
    if (!st) st = plim_outfile_open(m->record.backup, &out, c->err);
    if (st) return st;
    if (!stat(m->record.file, &info)) (void)fchmod(fileno(out.stream), info.st_mode & 0777);
    fwrite(document->file, 1, document->file_length, out.stream);
    m->backed_up = true;
    return plim_outfile_commit(&out, c->err);
}

/* The file must still be as it was read. */
static enum plim_status check_unchanged(struct change *c, const struct member *m)
{
    char *text = NULL;
    size_t length = 0;
    const struct plim_config_document *document = &m->file->document;
    enum plim_status st = plim_textfile_read(m->record.file, SIZE_MAX / 4, &text, &length, c->err);
    bool same = !st && length == document->file_length && !memcmp(text, document->file, length);
    free(text);
    if (st || same) return st;
    return fail(c->err, m->file->path, "it was changed by another program just now");
}

/* Restores the old text after a later rename of the change failed. */
static void restore_text(struct member *m)
{
    struct plim_outfile out = {0};
    struct plim_error ignored = PLIM_ERROR_INIT;
    if (plim_outfile_rewrite(m->record.file, &out, &ignored)) return;
    fwrite(m->file->document.file, 1, m->file->document.file_length, out.stream);
    (void)!plim_outfile_commit(&out, &ignored);
}

static void undo(struct change *c, size_t renamed)
{
    for (size_t i = 0; i < c->count; i++) {
        struct member *m = &c->members[i];
        if (i < renamed) restore_text(m);
        plim_outfile_discard(&m->staged);
        if (m->backed_up) (void)unlink(m->record.backup);
        if (m->record.written && !m->has_backup) (void)unlink(m->record.path);
    }
}

static enum plim_status write_all(struct change *c, size_t *renamed)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; i < c->count; i++) PLIM_TRY(stage(c, &c->members[i]));
    for (size_t i = 0; i < c->count; i++) PLIM_TRY(write_backup(c, &c->members[i]));
    for (size_t i = 0; i < c->count; i++)
        PLIM_TRY(plim_config_record_write(&c->members[i].record, true, c->err));
    for (size_t i = 0; i < c->count; i++) {
        PLIM_TRY(check_unchanged(c, &c->members[i]));
        PLIM_TRY(plim_outfile_commit(&c->members[i].staged, c->err));
        ++*renamed;
    }
out:
    return st;
}

enum plim_status plim_config_commit(struct plim_config_plan *plan,
                                    const struct plim_config_sizes *sizes, const char *source,
                                    const char *version, struct plim_error *err)
{
    struct change *c = calloc(1, sizeof(*c));
    enum plim_status st = c ? PLIM_OK : plim_no_memory(err);
    size_t renamed = 0;
    if (st) return st;
    c->plan = plan;
    c->err = err;
    PLIM_TRY(prepare(c, sizes, source, version));
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->count; k++)
            PLIM_TRY(plim_config_record_join(&c->members[i].record, &c->members[k].record, err));
    st = write_all(c, &renamed);
    if (st) undo(c, renamed);
    /* The files have their final contents; a record that stays pending does no harm. */
    struct plim_error ignored = PLIM_ERROR_INIT;
    for (size_t i = 0; i < c->count && !st; i++)
        (void)!plim_config_record_write(&c->members[i].record, false, &ignored);
out:
    for (size_t i = 0; i < c->count; i++) plim_config_record_finish(&c->members[i].record);
    free(c);
    return st;
}
