/* The record of a change beside a file: its provenance, and the data that `revert` needs. JSON, schema
 * plimsoll.apply/1. */
#ifndef PLIM_REPORTS_CONFIGS_CHANGE_RECORD_H
#define PLIM_REPORTS_CONFIGS_CHANGE_RECORD_H

#include "autotune/base/sha256.h"
#include "patch_plan.h"
#include <jansson.h>

/* SHA-256 of a file: of the user's original (the backup), just before this change (different unless this
 * is the first change), and after it. */
struct plim_config_hashes {
    char before[PLIM_SHA256_TEXT], from[PLIM_SHA256_TEXT], after[PLIM_SHA256_TEXT];
};

/* A file of the same change. */
struct plim_config_part {
    char *file;
    struct plim_config_hashes hashes;
};

struct plim_config_record {
    char *file, *path, *backup; /* the file, symbolic links resolved; its record and backup beside it */
    struct plim_config_hashes hashes;
    char temporary[96]; /* the new text until it takes its place */
    bool pending, written;
    size_t count;
    struct plim_config_part parts[PLIM_CONFIG_FILES]; /* all files of the change, this one too */
    json_t *tree; /* the rest of the record: time, host, source, the changes */
};

enum plim_status plim_config_record_make(const struct plim_config_file *file,
                                         const struct plim_config_sizes *sizes, const char *source,
                                         const char *version, struct plim_config_record *out,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Names a file of the same change. */
enum plim_status plim_config_record_join(struct plim_config_record *record,
                                         const struct plim_config_record *part,
                                         struct plim_error *err) PLIM_MUST_CHECK;

enum plim_status plim_config_record_write(struct plim_config_record *record, bool pending,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* The record beside a file (symbolic links resolved). `found` false: there is none. PLIM_SPEC: it is damaged. */
enum plim_status plim_config_record_read(const char *path, struct plim_config_record *out,
                                         bool *found, struct plim_error *err) PLIM_MUST_CHECK;

/* How many of the change's files now have the content from just before it, and how many that from after it. */
void plim_config_record_count(const struct plim_config_record *record, size_t *before,
                              size_t *after);

/* PLIM_IO if there is a backup with other bytes. */
enum plim_status plim_config_record_check_backup(const struct plim_config_record *record,
                                                 const char *text, size_t length,
                                                 struct plim_error *err) PLIM_MUST_CHECK;

/* The hash of a file; false: it cannot be read. */
bool plim_config_hash_file(const char *path, char out[PLIM_SHA256_TEXT]);

void plim_config_record_finish(struct plim_config_record *record); /* NULL and zeroed are fine */

#endif
