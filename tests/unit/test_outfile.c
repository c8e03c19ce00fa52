/* Writing files: what is at the name, and what others may have put there. */
#include "autotune/base/outfile.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/plimsoll-outfile-XXXXXX";
static char path[64], other[64];

static void set_up(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/report.json", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
}

static void tear_down(void)
{
    unlink(path);
    unlink(other);
    int removed = rmdir(folder);
    cr_expect(eq(int, removed, 0), "a file is left in %s", folder);
}

TestSuite(outfile, .init = set_up, .fini = tear_down);

static void put(const char *file, const char *text)
{
    FILE *to = fopen(file, "w");
    cr_assert(to && fputs(text, to) >= 0 && !fclose(to));
}

static const char *content(const char *file)
{
    static char text[64];
    FILE *from = fopen(file, "r");
    cr_assert(from != NULL, "%s", file);
    text[fread(text, 1, sizeof(text) - 1, from)] = '\0';
    fclose(from);
    return text;
}

static mode_t mode_of(const char *file)
{
    struct stat info;
    cr_assert(not(lstat(file, &info)));
    return info.st_mode;
}

static void save(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_outfile_save(path, "new", &err), PLIM_OK), "%s", err.text);
}

static void expect_refused(const char *why)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_outfile_save(path, "new", &err), PLIM_IO));
    cr_expect(strstr(err.text, why) != NULL, "%s", err.text);
}

Test(outfile, a_new_file_has_the_permissions_of_the_umask)
{
    umask(027);
    save();
    cr_expect(eq(str, (char *)content(path), "new"));
    cr_expect(eq(int, (int)mode_of(path), S_IFREG | 0640));
}

Test(outfile, a_file_that_is_replaced_keeps_its_permissions)
{
    put(path, "what was there before");
    cr_assert(not(chmod(path, 0604)));
    save();
    cr_expect(eq(str, (char *)content(path), "new"));
    cr_expect(eq(int, (int)mode_of(path), S_IFREG | 0604));
}

Test(outfile, a_link_is_replaced_and_not_followed)
{
    put(other, "not ours");
    cr_assert(not(symlink(other, path)));
    save();
    cr_expect(eq(str, (char *)content(other), "not ours"));
    cr_expect(eq(str, (char *)content(path), "new"));
    cr_expect(eq(int, S_ISREG(mode_of(path)) != 0, 1));
}

Test(outfile, a_hard_link_loses_the_name_and_keeps_its_content)
{
    put(other, "not ours");
    cr_assert(not(link(other, path)));
    save();
    cr_expect(eq(str, (char *)content(other), "not ours"));
    cr_expect(eq(str, (char *)content(path), "new"));
}

Test(outfile, a_link_to_a_device_is_refused)
{
    cr_assert(not(symlink("/dev/stdout", path)));
    expect_refused("cannot be written");
    cr_expect(eq(int, S_ISLNK(mode_of(path)) != 0, 1));
}

/* Temporary names of earlier versions, with the number of the process: existing files are kept. */
Test(outfile, no_name_that_can_be_guessed_is_written_to)
{
    char guess[96];
    put(other, "not ours");
    snprintf(guess, sizeof(guess), "%s.%ld.tmp", path, (long)getpid());
    cr_assert(not(symlink(other, guess)));
    save();
    cr_expect(eq(str, (char *)content(other), "not ours"));
    cr_expect(eq(int, S_ISLNK(mode_of(guess)) != 0, 1));
    unlink(guess);
}

Test(outfile, a_pipe_without_a_reader_is_an_error_and_no_wait)
{
    cr_assert(not(mkfifo(path, 0600)));
    expect_refused("no program reads from this pipe");
}

Test(outfile, a_pipe_with_a_reader_is_written)
{
    char text[8] = "";
    cr_assert(not(mkfifo(path, 0600)));
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    save();
    cr_expect(eq(i64, read(fd, text, sizeof(text)), 3));
    cr_expect(eq(str, text, "new"));
    cr_expect(eq(int, S_ISFIFO(mode_of(path)) != 0, 1));
    close(fd);
}

Test(outfile, a_folder_is_refused)
{
    cr_assert(not(mkdir(path, 0700)));
    expect_refused("irectory");
    rmdir(path);
}

Test(outfile, open_descriptors_are_written_in_place)
{
    char name[32];
    int fd = open(other, O_RDWR | O_CREAT, 0600);
    cr_assert(eq(i64, write(fd, "old ", 4), 4));
    snprintf(name, sizeof(name), "/dev/fd/%d", fd);
    cr_expect(eq(int, plim_outfile_save(name, "new", NULL), PLIM_OK));
    cr_expect(eq(str, (char *)content(other), "old new"));
    close(fd);
}

Test(outfile, a_full_disk_is_told)
{
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_outfile_save("/dev/full", "new", &err), PLIM_IO));
    cr_expect(strstr(err.text, "No space left") != NULL, "%s", err.text);
}

Test(outfile, what_is_discarded_was_never_there)
{
    struct plim_outfile file;
    put(path, "old");
    cr_assert(eq(int, plim_outfile_open(path, &file, NULL), PLIM_OK));
    fputs("new", file.stream);
    plim_outfile_discard(&file);
    cr_expect(eq(str, (char *)content(path), "old"));
}

Test(outfile, a_log_replaces_what_has_its_name)
{
    put(other, "not ours");
    cr_assert(not(symlink(other, path)));
    int fd = plim_outfile_log(folder, "report.json", NULL);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(i64, write(fd, "log", 3), 3));
    close(fd);
    cr_expect(eq(str, (char *)content(other), "not ours"));
    cr_expect(eq(str, (char *)content(path), "log"));
    cr_expect(eq(int, (int)mode_of(path), S_IFREG | 0600));
}
