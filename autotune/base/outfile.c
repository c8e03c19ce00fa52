#define _GNU_SOURCE /* O_PATH */
#include "outfile.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 16, NEW = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };

static enum plim_status fail(struct plim_error *err, const char *path, int problem)
{
    return plim_fail(err, PLIM_IO, "%s: cannot be written: %s", path, strerror(problem));
}

/* --- files written in place ------------------------------------------------------------------- */

/* Returns the descriptor that a path names, or -1. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (!strcmp(path, "/dev/stdout")) return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr")) return STDERR_FILENO;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        size_t length = strlen(folders[i]);
        char *end;
        if (strncmp(path, folders[i], length) || path[length] < '0' || path[length] > '9') continue;
        long number = strtol(path + length, &end, 10);
        if (!*end && number <= 1 << 20) return (int)number;
    }
    return -1;
}

/* Returns 0 if the file may be written in place, otherwise an errno. */
static int check_special(const struct stat *info)
{
    if (S_ISDIR(info->st_mode)) return EISDIR;
    if (!S_ISFIFO(info->st_mode) && !S_ISCHR(info->st_mode)) return EINVAL;
    return info->st_uid == geteuid() || info->st_uid == 0 ? 0 : EPERM;
}

/* Opens a device or FIFO. A FIFO without a reader is an error (ENXIO); a slow reader is waited for. */
static int open_special(int folder, const char *name)
{
    struct stat info;
    int fd = openat(folder, name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    int problem = fstat(fd, &info) ? errno : check_special(&info);
    if (!problem && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK)) problem = errno;
    if (!problem) return fd;
    close(fd);
    errno = problem;
    return -1;
}

/* --- temporary files -------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int open_folder(const char *path)
{
    size_t length = (size_t)(name_of(path) - path);
    char *folder = length ? strndup(path, length) : strdup(".");
    if (!folder) return -1;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int problem = errno;
    free(folder);
    errno = problem;
    return fd;
}

#define PREFIX ".plimsoll-" /* of all temporary files, followed by the host, the pid and a random number */
enum { PREFIX_BYTES = sizeof(PREFIX) + 32 };

static void prefix_of_host(char prefix[PREFIX_BYTES])
{
    char host[32] = "";
    if (gethostname(host, sizeof(host) - 1)) host[0] = '\0';
    for (char *c = host; *c; c++)
        if (*c == '/') *c = '-';
    snprintf(prefix, PREFIX_BYTES, PREFIX "%s-", host);
}

bool plim_outfile_is_left_over(const char *folder, const char *name)
{
    enum { DAY_SECONDS = 24 * 60 * 60 };
    char path[PATH_MAX], prefix[PREFIX_BYTES];
    struct stat info;
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) return false;
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= PATH_MAX || lstat(path, &info)) return false;
    prefix_of_host(prefix);
    long pid = !strncmp(name, prefix, strlen(prefix)) ? atol(name + strlen(prefix)) : 0;
    if (pid > 0 && kill((pid_t)pid, 0) && errno == ESRCH) return true;
    return time(NULL) - info.st_mtime > DAY_SECONDS;
}

static int create_temporary(struct plim_outfile *file, mode_t mode)
{
    char prefix[PREFIX_BYTES];
    prefix_of_host(prefix);
    for (int i = 0; i < TRIES; i++) {
        unsigned long long number;
        if (getrandom(&number, sizeof(number), 0) != sizeof(number)) return -1;
        snprintf(file->temporary, sizeof(file->temporary), "%s%ld-%016llx", prefix, (long)getpid(), number);
        int fd = openat(file->folder, file->temporary, NEW, mode);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

/* Creates the temporary file, with the permissions of the file that it will replace if the caller owns that. */
static int open_new(struct plim_outfile *file, const struct stat *old)
{
    bool keeps = S_ISREG(old->st_mode) && old->st_uid == geteuid();
    int fd = create_temporary(file, 0666);
    if (fd >= 0 && keeps && fchmod(fd, old->st_mode & 0777)) {
        int problem = errno;
        close(fd);
        unlinkat(file->folder, file->temporary, 0);
        errno = problem;
        return -1;
    }
    return fd;
}

/* Creates the temporary file if a link is to be replaced. Links to devices or folders are refused. */
static int open_for_link(struct plim_outfile *file, const char *name, const struct stat *link)
{
    struct stat end;
    if (fstatat(file->folder, name, &end, 0) || S_ISREG(end.st_mode)) return open_new(file, link);
    errno = ELOOP;
    return -1;
}

static int open_at(struct plim_outfile *file)
{
    struct stat old = {0};
    const char *name = name_of(file->path);
    int number = descriptor_of(file->path);
    if (number >= 0) return fcntl(number, F_DUPFD_CLOEXEC, 3);
    file->folder = open_folder(file->path);
    if (file->folder < 0) return -1;
    if (fstatat(file->folder, name, &old, AT_SYMLINK_NOFOLLOW) && errno != ENOENT) return -1;
    if (!old.st_mode || S_ISREG(old.st_mode)) return open_new(file, &old);
    if (S_ISLNK(old.st_mode)) return open_for_link(file, name, &old);
    int fd = open_special(file->folder, name);
    int problem = errno;
    close(file->folder);
    file->folder = -1;
    errno = problem;
    return fd;
}

enum plim_status plim_outfile_open(const char *path, struct plim_outfile *out,
                                   struct plim_error *err)
{
    *out = (struct plim_outfile){.path = path, .folder = -1};
    int fd = open_at(out);
    if (fd >= 0 && (out->stream = fdopen(fd, "w"))) return PLIM_OK;
    int problem = errno;
    if (fd >= 0) close(fd);
    if (fd >= 0 && out->folder >= 0) unlinkat(out->folder, out->temporary, 0);
    if (out->folder >= 0) close(out->folder);
    *out = (struct plim_outfile){0};
    if (problem == ENXIO)
        return plim_fail(err, PLIM_IO, "%s: no program reads from this pipe", path);
    if (problem == EPERM)
        return plim_fail(err, PLIM_IO, "%s: this pipe or device belongs to another user", path);
    return fail(err, path, problem);
}

enum plim_status plim_outfile_check(const char *path, struct plim_error *err)
{
    struct plim_outfile file;
    struct stat info;
    if (!stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return PLIM_OK;
    enum plim_status st = plim_outfile_open(path, &file, err);
    if (!st) plim_outfile_discard(&file);
    return st;
}

/* --- rewriting a file ------------------------------------------------------------------------- */

/* Copies extended attributes (access lists, labels); a file system without any is no failure. */
static int copy_attributes(int from, int to)
{
    char names[4096], value[4096];
    ssize_t length = flistxattr(from, names, sizeof(names));
    if (length < 0) return errno == ENOTSUP ? 0 : errno;
    for (char *name = names; name < names + length; name += strlen(name) + 1) {
        ssize_t size = fgetxattr(from, name, value, sizeof(value));
        bool kept = size >= 0 && !fsetxattr(to, name, value, (size_t)size, 0);
        if (!kept && strncmp(name, "security.", 9) != 0) return errno;
    }
    return 0;
}

/* Copies owner, mode and attributes. Returns 0 or an errno. */
static int copy_identity(int from, int to)
{
    struct stat old, new;
    if (fstat(from, &old) || fstat(to, &new)) return errno;
    bool same_owner = old.st_uid == new.st_uid && old.st_gid == new.st_gid;
    if (!same_owner && fchown(to, old.st_uid, old.st_gid)) return errno;
    if (fchmod(to, old.st_mode & 07777)) return errno;
    return copy_attributes(from, to);
}

static const char *not_rewritten(const struct stat *info)
{
    if (!S_ISREG(info->st_mode)) return "this is no regular file";
    return info->st_nlink > 1 ? "it has other names (hard links), which would keep the old text"
                              : NULL;
}

enum plim_status plim_outfile_rewrite(const char *path, struct plim_outfile *out,
                                      struct plim_error *err)
{
    struct stat info;
    char real[PATH_MAX];
    int old = -1, fd = -1, problem;
    *out = (struct plim_outfile){.path = path, .folder = -1};
    if (!realpath(path, real) || stat(real, &info)) return fail(err, path, errno);
    if (not_rewritten(&info))
        return plim_fail(err, PLIM_IO, "%s: cannot be written: %s", path, not_rewritten(&info));
    old = open(real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    out->owned = strdup(real);
    out->path = out->owned;
    if (old >= 0 && out->owned && access(real, W_OK) == 0 && (out->folder = open_folder(real)) >= 0)
        fd = create_temporary(out, 0600);
    problem = fd < 0 ? errno : copy_identity(old, fd);
    if (!problem && !(out->stream = fdopen(fd, "w"))) problem = errno;
    if (old >= 0) close(old);
    if (!problem) return PLIM_OK;
    if (fd >= 0) close(fd);
    if (fd >= 0) unlinkat(out->folder, out->temporary, 0);
    if (out->folder >= 0) close(out->folder);
    free(out->owned);
    *out = (struct plim_outfile){0};
    return fail(err, path, problem);
}

/* Flushes the stream. Returns 0 or an errno; EIO if an earlier write failed. A full disk may be noticed only here. */
static int flush(FILE *stream)
{
    int problem = ferror(stream) ? EIO : 0;
    return fflush(stream) ? errno : problem;
}

enum plim_status plim_outfile_sync(struct plim_outfile *file, struct plim_error *err)
{
    int problem = flush(file->stream);
    if (!problem && fsync(fileno(file->stream)) && errno != EINVAL) problem = errno;
    return problem ? fail(err, file->path, problem) : PLIM_OK;
}

/* Makes sure that the new name is on the disk. */
static void sync_folder(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) (void)fsync(fd);
    if (fd >= 0) close(fd);
}

enum plim_status plim_outfile_commit(struct plim_outfile *file, struct plim_error *err)
{
    bool placed = file->folder >= 0;
    int problem = flush(file->stream);
    bool kept = problem || !placed || !fsync(fileno(file->stream)) || errno == EINVAL;
    if (!kept) problem = errno;
    if (fclose(file->stream) && !problem) problem = errno;
    file->stream = NULL;
    if (!problem && placed &&
        renameat(file->folder, file->temporary, file->folder, name_of(file->path)))
        problem = errno;
    if (problem && placed) unlinkat(file->folder, file->temporary, 0);
    if (!problem && file->owned) sync_folder(file->folder);
    if (placed) close(file->folder);
    enum plim_status st = problem ? fail(err, file->path, problem) : PLIM_OK;
    free(file->owned);
    file->owned = NULL;
    return st;
}

void plim_outfile_discard(struct plim_outfile *file)
{
    if (!file || !file->stream) return;
    fclose(file->stream);
    if (file->folder >= 0) {
        unlinkat(file->folder, file->temporary, 0);
        close(file->folder);
    }
    free(file->owned);
    *file = (struct plim_outfile){0};
}

enum plim_status plim_outfile_save_bytes(const char *path, const void *bytes, size_t count,
                                         struct plim_error *err)
{
    struct plim_outfile file;
    enum plim_status st = plim_outfile_open(path, &file, err);
    if (st) return st;
    (void)fwrite(bytes, 1, count, file.stream); /* the stream records a failure */
    return plim_outfile_commit(&file, err);
}

enum plim_status plim_outfile_save(const char *path, const char *text, struct plim_error *err)
{
    return plim_outfile_save_bytes(path, text, strlen(text), err);
}

int plim_outfile_log(const char *folder, const char *name, struct plim_error *err)
{
    int place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;
    if (place >= 0 && (!unlinkat(place, name, 0) || errno == ENOENT))
        fd = openat(place, name, NEW | O_APPEND, 0600);
    int problem = errno;
    if (place >= 0) close(place);
    if (fd < 0)
        (void)plim_fail(err, PLIM_IO, "%s/%s: cannot be written: %s", folder, name,
                        strerror(problem));
    return fd;
}

enum plim_status plim_outfile_create_folders(const char *path, struct plim_error *err)
{
    char part[PATH_MAX];
    struct stat info;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        if (snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path) >= PATH_MAX)
            return plim_fail(err, PLIM_IO, "%.64s...: the path is too long", path);
        if (!mkdir(part, 0777)) continue;
        int problem = errno;
        if (!stat(part, &info) && S_ISDIR(info.st_mode)) continue;
        return plim_fail(err, PLIM_IO, "%s: cannot be made: %s", part, strerror(problem));
    }
    return PLIM_OK;
}
