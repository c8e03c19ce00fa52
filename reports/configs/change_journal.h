/* Writes a plan to its files, all or none, and reverts it.
 *
 * For each changed file two files are written beside it: NAME.plimsoll-backup, its previous contents, and
 * NAME.plimsoll.json, a record of the changes, their time and reason, with the SHA-256 of the file before and after and
 * the names of all files of the change. The records are the journal: they are written as "pending" before the first
 * file is replaced, and become "done" after the last. A change that was interrupted in between is undone by `revert` of
 * any of its files. A second change of a file keeps the first backup: `revert` restores the user's original. */
#ifndef PLIM_REPORTS_CONFIGS_CHANGE_JOURNAL_H
#define PLIM_REPORTS_CONFIGS_CHANGE_JOURNAL_H

#include "patch_plan.h"

/* PLIM_IO: nothing was changed. `source` says where the sizes come from, for the record. */
enum plim_status plim_config_commit(struct plim_config_plan *plan,
                                    const struct plim_config_sizes *sizes, const char *source,
                                    const char *version, struct plim_error *err) PLIM_MUST_CHECK;

/* Restores files byte for byte, removes backups and records, and reports it on `out` (NULL: no report). PLIM_SPEC if a
 * file was changed since, or never by plimsoll; nothing is restored then. With `force`, files that were changed since
 * are restored too. */
enum plim_status plim_config_revert(const char *const *paths, size_t count, bool force, FILE *out,
                                    struct plim_error *err) PLIM_MUST_CHECK;

#endif
