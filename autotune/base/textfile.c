#include "textfile.h"
#include "utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum plim_status fail(struct plim_error *err, enum plim_status status, const char *path,
                             const char *text)
{
    return plim_fail_at(err, status, path, 0, 0, "%s", text);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

static enum plim_status check_file(const char *path, const struct stat *info, size_t max_bytes,
                                   struct plim_error *err)
{
    if (!S_ISREG(info->st_mode))
        return plim_fail_at(err, PLIM_SPEC, path, 0, 0, "this is %s, expected a text file",
                            kind_of(info->st_mode));
    if ((uintmax_t)info->st_size > max_bytes)
        return plim_fail_at(err, PLIM_SPEC, path, 0, 0,
                            "the file has %jd bytes, expected at most %zu",
                            (intmax_t)info->st_size, max_bytes);
    return PLIM_OK;
}

/* Reads at most `size` bytes into `text`. Returns their number, or -1 with errno. */
static ssize_t read_all(int file, char *text, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, text + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* O_NONBLOCK, since opening a pipe, which is then refused, would wait for its writer. */
static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

enum plim_status plim_textfile_read(const char *path, size_t max_bytes, char **text, size_t *length,
                                    struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    struct stat info;
    char *buffer = NULL;
    *text = NULL;
    *length = 0;

    int file = open_file(path);
    if (file < 0 || fstat(file, &info) != 0) {
        st = fail(err, PLIM_IO, path, strerror(errno));
        goto out;
    }
    PLIM_TRY(check_file(path, &info, max_bytes, err));
    size_t size = (size_t)info.st_size;
    buffer = malloc(size + 1);
    if (!buffer) {
        st = fail(err, PLIM_NOMEM, path, "no memory to read the file");
        goto out;
    }
    ssize_t got = read_all(file, buffer, size + 1); /* one byte more shows that the file ends there */
    if (got < 0 || (size_t)got > size) {
        const char *why = got < 0 ? strerror(errno) : "the file grew while it was read";
        st = fail(err, PLIM_IO, path, why);
        goto out;
    }
    buffer[got] = '\0';
    *text = buffer;
    *length = (size_t)got;
    buffer = NULL;
out:
    free(buffer);
    if (file >= 0) close(file);
    return st;
}

size_t plim_textfile_begin(const char *path, char *bytes, size_t size)
{
    struct stat info;
    int file = open_file(path);
    if (file < 0) return 0;
    ssize_t got = fstat(file, &info) == 0 && S_ISREG(info.st_mode) ? read_all(file, bytes, size) : 0;
    close(file);
    return got > 0 ? (size_t)got : 0;
}

/* --- checking that it is text ----------------------------------------------------------------- */

/* The characters that YAML forbids; the others can be shown on a terminal. */
static bool is_control(uint32_t code)
{
    if (code == '\t' || code == '\n' || code == '\r' || code == 0x85) return false;
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffe || code == 0xffff;
}

/* Returns what is wrong with the character at `at`, or NULL, and stores its length. */
static const char *character_fault(const unsigned char *at, size_t left, size_t *length)
{
    uint32_t code = 0;
    *length = plim_utf8_decode(at, left, &code);
    if (*length == 0) return "this byte is not UTF-8, expected a text file (YAML or JSON)";
    if (code == 0) return "a NUL byte, expected a text file (YAML or JSON)";
    return is_control(code) ? "a control character, expected a text file (YAML or JSON)" : NULL;
}

enum plim_status plim_textfile_check(const char *source_name, const char *text, size_t length,
                                     struct plim_error *err)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    int line = 1, column = 1;
    while (at < end) {
        size_t bytes;
        const char *fault = character_fault(at, (size_t)(end - at), &bytes);
        if (fault) return plim_fail_at(err, PLIM_SPEC, source_name, line, column, "%s", fault);
        bool crlf = *at == '\r' && at + 1 < end && at[1] == '\n';
        if (*at == '\n' || (*at == '\r' && !crlf)) {
            line++;
            column = 1;
        } else {
            column++;
        }
        at += bytes;
    }
    return PLIM_OK;
}
