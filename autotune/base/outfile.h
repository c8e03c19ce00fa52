/* The one way to write a file that a user named.
 *
 * It is written under a random name in the same folder and takes its place when it is whole and on
 * the disk, so that no other program reads half of it. No link in that folder is followed and no file
 * of another name is touched, also where others may write to the folder: a link or a file at the name
 * is replaced.
 * The permissions of a file of the caller's that is replaced are kept.
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
    char *owned;        /* the path where it is the file's own; NULL: it is the caller's */
    int folder;         /* -1: it is written in place */
    char temporary[96]; /* its name in the folder until it is whole */
};

/* PLIM_IO: it cannot be written there. `path` outlives the file. */
enum plim_status plim_outfile_open(const char *path, struct plim_outfile *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Could a file be written there? Before long work whose result it is to hold. What is written in place (a pipe) is not
 * looked at. PLIM_IO: no. */
enum plim_status plim_outfile_check(const char *path, struct plim_error *err) PLIM_MUST_CHECK;
/* The same for a new text of a file that is there and stays what it is: behind symbolic links,
 * with its mode, owner and extended attributes. PLIM_IO: it is no regular file, has other names
 * (hard links), which would keep the old text, or cannot be kept as it is. */
enum plim_status plim_outfile_rewrite(const char *path, struct plim_outfile *out,
                                      struct plim_error *err) PLIM_MUST_CHECK;

/* Is the file of this name in a folder one that was never whole, and is its writer gone: of this host a process that is
 * no more, or else a day ago? */
bool plim_outfile_is_left_over(const char *folder, const char *name);

/* Is all that was written until now on the disk? A commit after it fails for no lack of room. */
enum plim_status plim_outfile_sync(struct plim_outfile *file,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Closes the file and puts it in its place. PLIM_IO: it is not all there (a full disk), and what
 * was there before is as it was. */
enum plim_status plim_outfile_commit(struct plim_outfile *file,
                                     struct plim_error *err) PLIM_MUST_CHECK;

/* Closes the file without putting it in its place. NULL, zeroed and committed are fine. */
void plim_outfile_discard(struct plim_outfile *file);

/* Makes the folders of a file's path that are not there. PLIM_IO. */
enum plim_status plim_outfile_make_folders(const char *path, struct plim_error *err) PLIM_MUST_CHECK;

/* Open, write a text or bytes, commit. */
enum plim_status plim_outfile_save(const char *path, const char *text,
                                   struct plim_error *err) PLIM_MUST_CHECK;
enum plim_status plim_outfile_save_bytes(const char *path, const void *bytes, size_t count,
                                         struct plim_error *err) PLIM_MUST_CHECK;

/* A descriptor for appending to a new file `name` in `folder`, in place from the start; what had
 * the name is removed first, and no link is followed. Mode 0600, closed by exec. -1: `err` says
 * why. */
int plim_outfile_log(const char *folder, const char *name, struct plim_error *err);

#endif
