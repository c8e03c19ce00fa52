#include "program.h"
#include "autotune/base/clock.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MAX_ARGUMENTS = 64 };

static char *slurp(FILE *file)
{
    char *text = NULL;
    size_t size = 0, used = 0;
    rewind(file);
    do {
        text = realloc(text, size += 1 << 16);
        cr_assert(text);
        used += fread(text + used, 1, size - used - 1, file);
    } while (used == size - 1);
    text[used] = '\0';
    fclose(file);
    return text;
}

static void split(char *text, char *argv[MAX_ARGUMENTS])
{
    size_t count = 0;
    argv[count++] = (char *)"plimsoll";
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        cr_assert(count < MAX_ARGUMENTS - 1);
        for (char *c = word; *c; c++)
            if (*c == '~') *c = ' ';
        argv[count++] = word;
    }
    argv[count] = NULL;
}

static bool is_ready(pid_t pid, int signal_number)
{
    char path[64], line[128];
    unsigned long long ignored = 0, caught = 0;
    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "re");
    cr_assert(file, "%s", path);
    while (fgets(line, sizeof(line), file)) {
        sscanf(line, "SigIgn: %llx", &ignored);
        sscanf(line, "SigCgt: %llx", &caught);
    }
    fclose(file);
    return (ignored | caught) >> (signal_number - 1) & 1;
}

void program_wait_until_ready(pid_t pid, int signal_number)
{
    double start = plim_clock_seconds();
    while (!is_ready(pid, signal_number)) {
        cr_assert(plim_clock_seconds() - start < 60, "signal %d is not handled", signal_number);
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

struct program program_run_and_signal(const char *arguments, int signal_number, int milliseconds)
{
    char text[4096], *argv[MAX_ARGUMENTS];
    FILE *out = tmpfile(), *err = tmpfile(); /* files, so that neither side waits for a full pipe */
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    cr_assert(out && err && strlen(arguments) < sizeof(text));
    strcpy(text, arguments);
    split(text, argv);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(err), STDERR_FILENO);
    cr_assert(!posix_spawn(&child, PLIM_BINARY, &actions, NULL, argv, environ),
              "cannot start " PLIM_BINARY);
    posix_spawn_file_actions_destroy(&actions);
    if (signal_number) {
        if (signal_number != SIGKILL) program_wait_until_ready(child, signal_number);
        nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L}, NULL);
        kill(child, signal_number);
    }
    while (waitpid(child, &status, 0) < 0) cr_assert(errno == EINTR);
    return (struct program){.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                            .out = slurp(out),
                            .err = slurp(err)};
}

struct program program_run(const char *arguments)
{
    return program_run_and_signal(arguments, 0, 0);
}

json_t *program_json(const struct program *program)
{
    json_error_t error;
    json_t *root = json_loads(program->out, 0, &error);
    cr_assert(root, "stdout is no JSON: %s\nstderr: %s", error.text, program->err);
    return root;
}

json_t *json_at(json_t *root, const char *path)
{
    char text[256];
    snprintf(text, sizeof(text), "%s", path);
    for (char *word = strtok(text, "."); word && root; word = strtok(NULL, "."))
        root = json_is_array(root) ? json_array_get(root, strtoul(word, NULL, 10))
                                   : json_object_get(root, word);
    return root;
}

json_int_t json_int_at(json_t *root, const char *path)
{
    json_t *node = json_at(root, path);
    cr_assert(json_is_integer(node), "%s is no integer", path);
    return json_integer_value(node);
}

const char *json_text_at(json_t *root, const char *path)
{
    json_t *node = json_at(root, path);
    cr_assert(json_is_string(node), "%s is no string", path);
    return json_string_value(node);
}

bool json_true_at(json_t *root, const char *path)
{
    return json_is_true(json_at(root, path));
}

bool json_false_at(json_t *root, const char *path)
{
    return json_is_false(json_at(root, path));
}

bool json_null_at(json_t *root, const char *path)
{
    return json_is_null(json_at(root, path));
}

void json_expect_text(json_t *root, const char *path, const char *text)
{
    cr_expect_str_eq(json_text_at(root, path), text, "%s", path);
}

void json_expect_keys(json_t *object, const char *const *keys)
{
    cr_assert(json_object_size(object) != 0);
    for (; *keys; keys++) cr_expect(json_object_get(object, *keys) != NULL, "%s is missing", *keys);
}

char *program_file(const char *name, const char *text)
{
    char folder[] = "/tmp/plimsoll-test-XXXXXX";
    cr_assert(mkdtemp(folder));
    char *path = malloc(sizeof(folder) + strlen(name) + 1);
    cr_assert(path);
    sprintf(path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert(file);
    fputs(text, file);
    fclose(file);
    return path;
}

void program_file_remove(char *path)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    free(path);
}

void program_finish(struct program *program)
{
    free(program->out);
    free(program->err);
}

bool program_none_is_left(void)
{
    for (int i = 0; i < 200 && waitpid(-1, NULL, WNOHANG) >= 0; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}
