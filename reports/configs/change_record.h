/* The record of a change, stored beside the file: its provenance, and the data that `revert` needs. JSON, schema
 * plimsoll.apply/1. */
#ifndef PLIM_REPORTS_CONFIGS_CHANGE_RECORD_H
#define PLIM_REPORTS_CONFIGS_CHANGE_RECORD_H

#include "autotune/base/sha256.h"
#include "patch_plan.h"
#include <jansson.h>

/* SHA-256 of a file: of the user's original (the backup), just before this change (the same if this is the first
 * change), and after it. */
struct plim_config_hashes {
    char before[PLIM_SHA256_TEXT], from[PLIM_SHA256_TEXT], after[PLIM_SHA256_TEXT];
};

/* A file of the same change. */
struct plim_config_part {
    char *file;
    struct plim_config_hashes hashes;
};

struct plim_config_record {
    char *file, *path, *backup; /* the file with symbolic links resolved; its record and backup beside it */
    struct plim_config_hashes hashes;
    char temporary[96]; /* name of the temporary file with the new text, until it replaces the file */
    bool pending, written;
    size_t count;
    struct plim_config_part parts[PLIM_CONFIG_FILES]; /* all files of the change, including this one */
    json_t *tree; /* the remaining contents: time, host, source, changes */
};

enum plim_status plim_config_record_make(const struct plim_config_file *file,
                                         const struct plim_config_sizes *sizes, const char *source,
                                         const char *version, struct plim_config_record *out,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Adds a file of the same change. */
enum plim_status plim_config_record_join(struct plim_config_record *record,
                                         const struct plim_config_record *part,
                                         struct plim_error *err) PLIM_MUST_CHECK;

enum plim_status plim_config_record_write(struct plim_config_record *record, bool pending,
                                          struct plim_error *err) PLIM_MUST_CHECK;

/* Reads the record beside a file (symbolic links resolved). `found` is false if there is none. PLIM_SPEC if it is
 * damaged. */
enum plim_status plim_config_record_read(const char *path, struct plim_config_record *out,
                                         bool *found, struct plim_error *err) PLIM_MUST_CHECK;

/* Counts the files of the change that now have the contents from just before it, and those that have the contents from
 * after it. */
void plim_config_record_count(const struct plim_config_record *record, size_t *before,
                              size_t *after);

/* PLIM_IO if there is a backup with different contents. */
enum plim_status plim_config_record_check_backup(const struct plim_config_record *record,
                                                 const char *text, size_t length,
                                                 struct plim_error *err) PLIM_MUST_CHECK;

/* Computes the hash of a file. Returns false if it cannot be read. */
bool plim_config_hash_file(const char *path, char out[PLIM_SHA256_TEXT]);

void plim_config_record_finish(struct plim_config_record *record); /* NULL and zeroed records are allowed */

#endif
