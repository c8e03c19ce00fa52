/* Output files. All files that the user names are written through this.
 *
 * The file is written under a random name in the same folder, and renamed when it is complete and on disk, so that
 * other programs never see a part of it. This is safe in folders to which other users may write: no symbolic link is
 * followed and no file of another name is touched; a link or file with the name is replaced. If the replaced file is
 * owned by the caller, its permissions are kept.
 *
 * Standard streams and open descriptors (/dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N), devices (/dev/null) and
 * FIFOs are written in place. A FIFO must have a reader and be owned by the caller or root. */
#ifndef PLIM_BASE_OUTFILE_H
#define PLIM_BASE_OUTFILE_H

#include "status.h"
#include <stdbool.h>
#include <stdio.h>

struct plim_outfile {
    FILE *stream; /* write here */
    const char *path;
    char *owned;        /* the path, if this struct owns it; NULL: the caller does */
    int folder;         /* a descriptor; -1: the file is written in place */
    char temporary[96]; /* its name in the folder until it is complete */
};

/* Opens a file for writing. `path` must outlive it. PLIM_IO: it cannot be written. */
enum plim_status plim_outfile_open(const char *path, struct plim_outfile *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Checks that a file can be written, before long work whose result it will hold. Files that are written in place (a
 * pipe) are not checked. PLIM_IO: it cannot. */
enum plim_status plim_outfile_check(const char *path, struct plim_error *err) PLIM_MUST_CHECK;
/* Opens an existing file for new contents. Follows symbolic links and keeps its mode, owner and extended attributes.
 * PLIM_IO: it is not a regular file, has other hard links, which would keep the old contents, or its attributes cannot
 * be kept. */
enum plim_status plim_outfile_rewrite(const char *path, struct plim_outfile *out,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* True for a temporary file whose writer has ended: a process of this host that no longer exists, or any writer if the
 * file is older than a day. */
bool plim_outfile_is_left_over(const char *folder, const char *name);

/* Writes all data so far to the disk. A commit after this does not fail for lack of space. */
enum plim_status plim_outfile_sync(struct plim_outfile *file,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Closes the file and renames it to its path. PLIM_IO: it is incomplete (a full disk); an existing file at the path is
 * unchanged. */
enum plim_status plim_outfile_commit(struct plim_outfile *file,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Closes the file and deletes it. NULL, a zeroed or a committed file is allowed. */
void plim_outfile_discard(struct plim_outfile *file);

/* Creates the missing parent folders of a path. PLIM_IO. */
enum plim_status plim_outfile_create_folders(const char *path, struct plim_error *err) PLIM_MUST_CHECK;

/* Write a whole file: open, write, commit. */
enum plim_status plim_outfile_save(const char *path, const char *text,
                                   struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_outfile_save_bytes(const char *path, const void *bytes, size_t count,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* Creates a file `name` in `folder` that is written in place. An existing file of the name is removed first; no link is
 * followed. Returns a descriptor for appending (mode 0600, close-on-exec), or -1 and sets `err`. */
int plim_outfile_log(const char *folder, const char *name, struct plim_error *err);

#endif
