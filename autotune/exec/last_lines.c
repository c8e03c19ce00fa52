#include "last_lines.h"
#include "autotune/base/text.h"
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES = 12, BYTES = 16384 };

/* Reads the last bytes of a file as a string and returns its length. Does not follow symbolic links or wait for
 * pipes. */
static size_t read_tail(const char *folder, const char *name, char *out, size_t size)
{
    struct stat info;
    ssize_t length = 0;
    int place = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode)) {
        off_t whole = (off_t)size - 1, from = info.st_size > whole ? info.st_size - whole : 0;
        length = pread(fd, out, size - 1, from);
    }
    if (fd >= 0) close(fd);
    if (place >= 0) close(place);
    for (ssize_t i = 0; i < length; i++)
        if (!out[i]) out[i] = ' ';
    out[length > 0 ? length : 0] = '\0';
    return strlen(out);
}

static const char *last_state(char *line)
{
    size_t length = strlen(line);
    if (length && line[length - 1] == '\r') line[length - 1] = '\0';
    for (char *c = line; *c; c++)
        if (*c == '\t') *c = ' ';
    const char *again = strrchr(line, '\r');
    return again ? again + 1 : line;
}

static void read_lines(const char *folder, const char *name, int most, void (*show)(void *user, const char *line),
                       void *user)
{
    char text[BYTES + 1], *rest;
    size_t at = read_tail(folder, name, text, sizeof(text));
    for (int lines = 0; at > 0 && lines <= most; lines += text[at] == '\n') at--;
    if (at > 0) at++;
    for (char *line = strtok_r(text + at, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        show(user, last_state(line));
}

void plim_last_lines(const char *folder, const char *name, void (*show)(void *user, const char *line), void *user)
{
    read_lines(folder, name, LINES, show, user);
}

struct error_line {
    char *out;
    size_t size;
    bool is_exception;
    bool goes_on; /* the line ended with a colon: the text follows in the next line */
};

/* True for "torch.cuda.OutOfMemoryError: CUDA out of memory", possibly after a prefix such as "[rank0]: ". False for an
 * exception without text, such as torchrun's "ChildFailedError: ". */
static bool is_exception(const char *line)
{
    static const char *const kinds[] = {"Error: ", "Exception: "};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const char *at = strstr(line, kinds[i]);
        const char *said = at ? at + strlen(kinds[i]) : "";
        if (!said[strspn(said, " ")]) continue;
        while (at > line && (isalnum((unsigned char)at[-1]) || at[-1] == '.' || at[-1] == '_')) at--;
        if (at == line || (at > line + 1 && !strncmp(at - 2, ": ", 2))) return true;
    }
    return false;
}

static void take(void *user, const char *line)
{
    struct error_line *error = user;
    bool names_one = is_exception(line), has_letter = false;
    size_t used = strlen(error->out);
    for (const char *c = line; *c; c++) has_letter |= isalpha((unsigned char)*c) != 0;
    if (!has_letter || (error->is_exception && !names_one && !error->goes_on)) return;
    if (error->goes_on && !names_one && used + 1 < error->size) {
        error->out[used++] = ' ';
        plim_text_show(line + strspn(line, " "), error->out + used, error->size - used);
    } else {
        plim_text_show(line, error->out, error->size);
    }
    error->is_exception |= names_one;
    used = strlen(error->out);
    error->goes_on = names_one && used && error->out[used - 1] == ':';
}

void plim_last_error(const char *folder, const char *name, char *out, size_t size)
{
    char line[BYTES + 1] = "";
    read_lines(folder, name, BYTES, take, &(struct error_line){.out = line, .size = sizeof(line)});
    size_t length = strlen(line), cut = size - sizeof("...");
    if (length && strchr(".:", line[length - 1])) line[--length] = '\0';
    if (length >= size) {
        while (cut && ((unsigned char)line[cut] & 0xc0) == 0x80) cut--; /* to the start of a UTF-8 character */
        strcpy(line + cut, "...");
    }
    strcpy(out, line);
}
