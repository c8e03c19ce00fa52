/* The only way to write a file that a user named.
 *
 * The file is written under a random name in the same folder and renamed when it is complete and on
 * disk, so that no other program reads half of it. No link in that folder is followed and no file
 * of another name is touched, even where others may write to the folder: a link or a file with the name
 * is replaced.
 * If the replaced file belongs to the caller, its permissions are kept.
 *
 * Standard streams and open descriptors (/dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N),
 * devices (/dev/null) and FIFOs are written in place. A FIFO has to have a reader, and to be the
 * caller's own or the superuser's.
 */
#ifndef PLIM_BASE_OUTFILE_H
#define PLIM_BASE_OUTFILE_H

#include "status.h"
#include <stdbool.h>
#include <stdio.h>

struct plim_outfile {
    FILE *stream; /* write here */
    const char *path;
    char *owned;        /* the path if this struct owns it; NULL: the caller does */
    int folder;         /* -1: the file is written in place */
    char temporary[96]; /* its name in the folder until it is complete */
};

/* PLIM_IO: the file cannot be written there. `path` outlives the file. */
enum plim_status plim_outfile_open(const char *path, struct plim_outfile *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Could a file be written there? To be called before long work whose result it will hold. Files that are written in
 * place (a pipe) are not checked. PLIM_IO: no. */
enum plim_status plim_outfile_check(const char *path, struct plim_error *err) PLIM_MUST_CHECK;
/* Opens an existing file for new contents: follows symbolic links and keeps its mode, owner and
 * extended attributes. PLIM_IO: it is not a regular file, has other names (hard links), which would keep
 * the old contents, or its attributes cannot be kept. */
enum plim_status plim_outfile_rewrite(const char *path, struct plim_outfile *out,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Is this a temporary file whose writer is gone: a process of this host that has ended, or else a file older than a
 * day? */
bool plim_outfile_is_left_over(const char *folder, const char *name);

/* Writes everything so far to the disk. A commit after this does not fail for lack of space. */
enum plim_status plim_outfile_sync(struct plim_outfile *file,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Closes the file and renames it to its path. PLIM_IO: it is incomplete (a full disk); an earlier file
 * at the path is unchanged. */
enum plim_status plim_outfile_commit(struct plim_outfile *file,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Closes the file and drops it. NULL, zeroed and committed are fine. */
void plim_outfile_discard(struct plim_outfile *file);

/* Creates the missing folders of a file's path. PLIM_IO. */
enum plim_status plim_outfile_make_folders(const char *path, struct plim_error *err) PLIM_MUST_CHECK;

/* Open, write a text or bytes, commit. */
enum plim_status plim_outfile_save(const char *path, const char *text,
                                   struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_outfile_save_bytes(const char *path, const void *bytes, size_t count,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* A descriptor for appending to a new file `name` in `folder`, written in place; a file with the
 * name is removed first, and no link is followed. Mode 0600, closed by exec. -1: `err` says
 * why. */
int plim_outfile_log(const char *folder, const char *name, struct plim_error *err);

#endif
