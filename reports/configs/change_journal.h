/* Puts a plan into its files, all or none, and takes it back.
 *
 * Beside each file that changes go NAME.plimsoll-backup, its bytes before, and NAME.plimsoll.json,
 * what was changed, when and why, with the SHA-256 of the file before and after and the names of
 * all files of the change. The records are the journal: they are written, as "pending", before the
 * first file is replaced, and become "done" after the last. A change that was cut short in between
 * is taken back by `revert` of any of its files. A second change of a file keeps the first backup:
 * `revert` restores what the user had.
 */
#ifndef PLIM_REPORTS_CONFIGS_CHANGE_JOURNAL_H
#define PLIM_REPORTS_CONFIGS_CHANGE_JOURNAL_H

#include "patch_plan.h"

/* PLIM_IO: nothing was changed. `source` is where the sizes come from, for the record. */
enum plim_status plim_config_commit(struct plim_config_plan *plan,
                                    const struct plim_config_sizes *sizes, const char *source,
                                    const char *version, struct plim_error *err) PLIM_MUST_CHECK;

/* Restores files byte for byte and removes backups and records; says so on `out` (NULL: nowhere).
 * PLIM_SPEC: one was changed since, or was never changed; nothing was restored. `force` restores
 * it all the same. */
enum plim_status plim_config_revert(const char *const *paths, size_t count, bool force, FILE *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
