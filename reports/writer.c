#include "writer.h"
#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct plim_writer *const writers[] = {&plim_writer_json, &plim_writer_yaml,
                                                    &plim_writer_text, &plim_writer_csv,
                                                    &plim_writer_markdown};

static bool writes_extension(const struct plim_writer *writer, const char *extension)
{
    for (const char *const *e = writer->extensions; *e; e++)
        if (!strcasecmp(*e, extension)) return true;
    return false;
}

enum plim_status plim_writer_for_path(const char *path, const struct plim_writer **out,
                                      struct plim_error *err)
{
    *out = NULL;
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof(writers) / sizeof(writers[0]); i++) {
        if (writes_extension(writers[i], dot + 1)) {
            *out = writers[i];
            return PLIM_OK;
        }
    }
    return plim_fail(err, PLIM_INVALID,
                     "%s: no report format goes with this name (known: .json, .yaml, .yml, .txt, "
                     ".csv, .md)",
                     path);
}

static enum plim_status write_file(const char *path, const char *text, struct plim_error *err)
{
    FILE *file = fopen(path, "w");
    if (!file) return plim_fail(err, PLIM_IO, "%s: cannot be written: %s", path, strerror(errno));
    bool written = fputs(text, file) >= 0;
    int problem = written ? 0 : errno;
    if (fclose(file)) problem = problem ? problem : errno; /* a full disk may show only here */
    if (problem)
        return plim_fail(err, PLIM_IO, "%s: cannot be written: %s", path, strerror(problem));
    return PLIM_OK;
}

enum plim_status plim_writer_save(const char *path, const char *text, struct plim_error *err)
{
    struct stat info;
    if (!stat(path, &info) && !S_ISREG(info.st_mode)) return write_file(path, text, err);
    size_t size = strlen(path) + 32;
    char *temporary = malloc(size);
    if (!temporary) return plim_fail(err, PLIM_NOMEM, "out of host memory");
    snprintf(temporary, size, "%s.%ld.tmp", path, (long)getpid());
    enum plim_status st = write_file(temporary, text, err);
    if (!st && rename(temporary, path))
        st = plim_fail(err, PLIM_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (st) unlink(temporary);
    free(temporary);
    return st;
}
