#define _DEFAULT_SOURCE /* realpath */
/* The part of a question that describes a program, by its files. */
#include "autotune/base/text_stream.h"
#include "autotune/exec/program_files.h"
#include "store_question.h"
#include <dirent.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- files ------------------------------------------------------------------------------------ */

/* Describes a file that is too large to hash at every launch by its size and modification time. */
static bool describe_file(const char *path, char *out, size_t size)
{
    struct stat info;
    if (stat(path, &info) || !S_ISREG(info.st_mode)) return false;
    snprintf(out, size, "%jd bytes of %jd.%09ld", (intmax_t)info.st_size,
             (intmax_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    return true;
}

/* --- the command ------------------------------------------------------------------------------ */

/* Writes a word of the command, with the hash of the script that it names, also after "--config=". */
static void write_word(FILE *file, const char *word, bool is_first)
{
    char hash[PLIM_SHA256_TEXT], size[64];
    const char *path = plim_program_path(word);
    bool reads = is_first ? strchr(word, '/') != NULL : plim_program_is_script(path);
    if (reads && plim_program_hash_file(is_first ? word : path, hash))
        fprintf(file, "%s sha256 %s\n", word, hash);
    else if (reads && describe_file(is_first ? word : path, size, sizeof(size)))
        fprintf(file, "%s of %s\n", word, size);
    else
        fprintf(file, "%s\n", word);
}

static void write_command(FILE *file, const struct plim_program *program)
{
    char hash[PLIM_SHA256_TEXT];
    for (size_t i = 0; program->command[i]; i++) write_word(file, program->command[i], !i);
    for (size_t i = 0; i < program->variable_count; i++)
        fprintf(file, "--env %s\n", program->variables[i]);
    for (size_t i = 0; i < program->file_count; i++)
        fprintf(file, "--file %s sha256 %s\n", program->files[i].path,
                plim_program_hash_file(program->files[i].template_path, hash) ? hash : "none");
}

/* --- libraries -------------------------------------------------------------------------------- */

/* Adds the names in a folder that have one of the endings to the hash, in order, with size and time if `with_times`.
 * Returns their number. */
static size_t hash_names(const char *folder, const char *const *endings, bool with_times,
                         struct plim_sha256 *hash)
{
    struct dirent **files;
    size_t counted = 0;
    int count = scandir(folder, &files, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX], size[64] = "";
        if (plim_program_has_ending(files[i]->d_name, endings)) {
            int used = snprintf(path, sizeof(path), "%s/%s", folder, files[i]->d_name);
            if (with_times && used < PATH_MAX) describe_file(path, size, sizeof(size));
            plim_sha256_add(hash, files[i]->d_name, strlen(files[i]->d_name) + 1);
            plim_sha256_add(hash, size, strlen(size) + 1);
            counted++;
        }
        free(files[i]);
    }
    if (count >= 0) free(files);
    return counted;
}

/* Writes a hash of the names of the Python packages of the command, PREFIX/bin/python, in PREFIX/lib/python3*. The
 * names contain the versions. */
static void write_packages(FILE *file, const char *command)
{
    static const char *const endings[] = {".dist-info", ".egg-info", NULL};
    static const char *const places[] = {"site-packages", "dist-packages"};
    char pattern[PATH_MAX + 64], prefix[PATH_MAX], text[PLIM_SHA256_TEXT];
    struct plim_sha256 hash;
    size_t count = 0;
    if (!plim_program_prefix(command, prefix)) return;
    plim_sha256_init(&hash);
    for (size_t p = 0; p < 2; p++) {
        glob_t found = {0};
        snprintf(pattern, sizeof(pattern), "%s/lib/python3*/%s", prefix, places[p]);
        if (!glob(pattern, 0, NULL, &found))
            for (size_t i = 0; i < found.gl_pathc; i++)
                count += hash_names(found.gl_pathv[i], endings, false, &hash);
        globfree(&found);
    }
    if (count) fprintf(file, ", %zu packages %.16s", count, plim_sha256_finish(&hash, text));
}

/* Writes a hash of the modules in the folder of a script, which it may import. */
static void write_modules(FILE *file, const char *script)
{
    static const char *const endings[] = {".py", NULL};
    char folder[PATH_MAX], text[PLIM_SHA256_TEXT];
    struct plim_sha256 hash;
    const char *slash = strrchr(script, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - script) : 1,
             slash ? script : ".");
    plim_sha256_init(&hash);
    size_t count = hash_names(folder[0] ? folder : "/", endings, true, &hash);
    fprintf(file, ", %zu modules %.16s", count, plim_sha256_finish(&hash, text));
}

static void write_libraries(FILE *file, const struct plim_program *program)
{
    static const char *const endings[] = {".py", NULL};
    char path[PATH_MAX], size[64];
    if (!plim_program_find(program->command[0], path)) return;
    char *real = realpath(path, NULL);
    if (real && describe_file(real, size, sizeof(size))) {
        fprintf(file, "%s of %s", real, size);
        write_packages(file, path);
        for (size_t i = 1; program->command[i]; i++) {
            if (!plim_program_has_ending(program->command[i], endings)) continue;
            write_modules(file, program->command[i]);
            break;
        }
    }
    free(real);
}

/* --- the question ----------------------------------------------------------------------------- */

static void add_written(struct plim_facts *facts, const char *name,
                        void (*write)(FILE *, const struct plim_program *),
                        const struct plim_program *program)
{
    struct plim_text_stream stream;
    char *text;
    FILE *file = plim_text_stream_open(&stream);
    if (file) write(file, program);
    if (plim_text_stream_close(&stream, &text) != PLIM_OK) facts->failed = true;
    plim_facts_add(facts, name, text);
    free(text);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the options in alphabetical order, so that their order on the command line does not matter. */
static void add_options(struct plim_facts *key, const char *const *options, size_t count)
{
    const char **sorted = calloc(count + 1, sizeof(*sorted));
    if (!sorted) key->failed = true;
    for (size_t i = 0; sorted && i < count; i++) sorted[i] = options[i];
    if (sorted) qsort(sorted, count, sizeof(*sorted), compare_texts);
    for (size_t i = 0; sorted && i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "option %zu", i + 1);
        plim_facts_add(key, name, sorted[i]);
    }
    free(sorted);
}

void plim_store_question_program(const struct plim_program *program,
                                 const struct plim_store_asked *asked, const char *const *options,
                                 size_t option_count, struct plim_store_question *question)
{
    add_written(&question->key, "program", write_command, program);
    add_options(&question->key, options, option_count);
    plim_store_question_asked(asked, &question->key);
    plim_facts_add(&question->fits, "plimsoll", asked->version);
    add_written(&question->fits, "libraries", write_libraries, program);
}
