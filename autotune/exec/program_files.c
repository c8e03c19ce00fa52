#include "program_files.h"
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRIPT_BYTES = 4 << 20 };

static const char marker[] = " sha256 ";

bool plim_program_hash_file(const char *path, char out[PLIM_SHA256_TEXT])
{
    char block[1 << 14];
    struct plim_sha256 hash;
    struct stat info;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    plim_sha256_init(&hash);
    if (fd >= 0 && !fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_size <= SCRIPT_BYTES)
        while ((got = read(fd, block, sizeof(block))) > 0)
            plim_sha256_add(&hash, block, (size_t)got);
    if (fd >= 0) close(fd);
    if (!got) plim_sha256_finish(&hash, out);
    return !got;
}

bool plim_program_has_ending(const char *name, const char *const *endings)
{
    const char *dot = strrchr(name, '.');
    for (; dot && *endings; endings++)
        if (!strcmp(dot, *endings)) return true;
    return false;
}

bool plim_program_is_script(const char *word)
{
    static const char *const endings[] = {".py",   ".sh",   ".bash", ".yaml",  ".yml",
                                          ".json", ".toml", ".cfg",  ".ini",   ".conf",
                                          ".gin",  ".lua",  ".plim", ".ipynb", NULL};
    return plim_program_has_ending(word, endings);
}

bool plim_program_find(const char *command, char out[PATH_MAX])
{
    const char *list = getenv("PATH");
    if (strchr(command, '/')) return snprintf(out, PATH_MAX, "%s", command) < PATH_MAX;
    while (list && *list) {
        size_t length = strcspn(list, ":");
        int used = snprintf(out, PATH_MAX, "%.*s/%s", (int)length, list, command);
        if (length && used < PATH_MAX && !access(out, X_OK)) return true;
        list += length + (list[length] == ':');
    }
    return false;
}

bool plim_program_prefix(const char *path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s", path);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(out, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    return true;
}

const char *plim_program_path(const char *word)
{
    const char *equals = strchr(word, '=');
    return equals ? equals + 1 : word;
}

/* --- packages --------------------------------------------------------------------------------- */

/* Reads the version from the name of the package's folder, NAME-VERSION.dist-info. */
static enum plim_status visit_package(const char *prefix, const char *name, plim_program_visit *visit, void *user)
{
    static const char ending[] = ".dist-info";
    char pattern[PATH_MAX + 128], text[128];
    enum plim_status st = PLIM_OK;
    glob_t found = {0};
    snprintf(pattern, sizeof(pattern), "%s/lib/python3*/*-packages/%s-[0-9]*%s", prefix, name, ending);
    if (!glob(pattern, 0, NULL, &found)) {
        const char *version = strrchr(found.gl_pathv[0], '/') + 1 + strlen(name) + 1;
        snprintf(text, sizeof(text), "%s %.*s", name, (int)(strlen(version) - strlen(ending)), version);
        st = visit(user, text);
    }
    globfree(&found);
    return st;
}

static enum plim_status visit_packages(const char *command, plim_program_visit *visit, void *user)
{
    static const char *const names[] = {
        "torch", "torchvision", "transformers", "accelerate", "peft", "bitsandbytes", "deepspeed", "lightning",
        "pytorch_lightning", "triton", "timm", "diffusers", "flash_attn", "liger_kernel", "mamba_ssm", "xformers",
        "jax", "jaxlib", "tensorflow", "nvidia_cudnn_cu13", "nvidia_cudnn_cu12", "nvidia_cudnn_cu11",
        "nvidia_cublas", "nvidia_cublas_cu12", "nvidia_cublas_cu11"};
    char path[PATH_MAX], prefix[PATH_MAX];
    enum plim_status st = PLIM_OK;
    if (!plim_program_find(command, path) || !plim_program_prefix(path, prefix)) return PLIM_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !st; i++)
        st = visit_package(prefix, names[i], visit, user);
    return st;
}

/* --- scripts ---------------------------------------------------------------------------------- */

enum plim_status plim_program_made_with(char *const *command, plim_program_visit *visit, void *user)
{
    enum plim_status st = visit_packages(command[0], visit, user);
    for (size_t i = 1; command[i] && !st; i++) {
        char hash[PLIM_SHA256_TEXT], text[PATH_MAX + sizeof(marker) + sizeof(hash)];
        const char *path = plim_program_path(command[i]);
        if (strlen(path) >= PATH_MAX || !plim_program_is_script(path) || !plim_program_hash_file(path, hash))
            continue;
        snprintf(text, sizeof(text), "%s%s%s", path, marker, hash);
        st = visit(user, text);
    }
    return st;
}

bool plim_program_changed(const char *text, char path[PATH_MAX])
{
    char hash[PLIM_SHA256_TEXT];
    const char *at = strstr(text, marker), *next;
    while (at && (next = strstr(at + 1, marker))) at = next; /* the last: a path may contain the marker too */
    if (!at || at - text >= PATH_MAX) return false;
    snprintf(path, PATH_MAX, "%.*s", (int)(at - text), text);
    return !plim_program_hash_file(path, hash) || strcmp(hash, at + sizeof(marker) - 1) != 0;
}
