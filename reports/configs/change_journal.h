/* Writes a plan to its files, all or none, and reverts it.
 *
 * Beside each changed file are written NAME.plimsoll-backup, its bytes before, and NAME.plimsoll.json,
 * a record of the changes, their time and reason, with the SHA-256 of the file before and after and the
 * names of all files of the change. The records are the journal: they are written, as "pending", before the
 * first file is replaced, and become "done" after the last. A change that was interrupted in between
 * is reverted by `revert` of any of its files. A second change of a file keeps the first backup:
 * `revert` restores the user's original.
 */
#ifndef PLIM_REPORTS_CONFIGS_CHANGE_JOURNAL_H
#define PLIM_REPORTS_CONFIGS_CHANGE_JOURNAL_H

#include "patch_plan.h"

/* PLIM_IO: nothing was changed. `source` says where the sizes come from, for the record. */
enum plim_status plim_config_commit(struct plim_config_plan *plan,
                                    const struct plim_config_sizes *sizes, const char *source,
                                    const char *version, struct plim_error *err) PLIM_MUST_CHECK;

/* Restores files byte for byte and removes backups and records; reports it on `out` (NULL: nowhere).
 * PLIM_SPEC: a file was changed since, or was never changed by plimsoll; nothing was restored. With `force`
 * a file that was changed since is restored, too. */
enum plim_status plim_config_revert(const char *const *paths, size_t count, bool force, FILE *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
