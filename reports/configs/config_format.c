#define _GNU_SOURCE /* memmem */
#include "config_format.h"
#include "autotune/base/text.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct plim_config_format formats[] = {
    {"yaml", "YAML", {"yaml", "yml"}, PLIM_CONFIG_DATA, ": ", plim_config_read_yaml, NULL},
    {"json", "JSON", {"json"}, PLIM_CONFIG_DATA, ": ", plim_config_read_json, NULL},
    {"jsonc", "JSON", {"jsonc", "json5", "hjson"}, PLIM_CONFIG_DATA, ": ", plim_config_read_jsonc, NULL},
    {"toml", "TOML", {"toml"}, PLIM_CONFIG_DATA, " = ", plim_config_read_toml, NULL},
    {"ini",
     "INI",
     {"ini", "cfg", "conf", "properties"},
     PLIM_CONFIG_INI,
     " = ",
     plim_config_read_ini, NULL},
    {"shell",
     "shell",
     {"sh", "bash", "zsh", "slurm", "sbatch", "job", "env", "mk"},
     PLIM_CONFIG_SHELL,
     " ",
     plim_config_read_shell, NULL},
    {"python", "Python", {"py"}, PLIM_CONFIG_PYTHON, "=", plim_config_read_python, NULL},
    {"notebook",
     "notebook",
     {"ipynb"},
     PLIM_CONFIG_PYTHON,
     "=",
     plim_config_read_notebook,
     plim_config_write_notebook},
    {"gin", "gin", {"gin"}, PLIM_CONFIG_GIN, " = ", plim_config_read_gin, NULL},
};

enum { FORMAT_COUNT = sizeof(formats) / sizeof(formats[0]) };

enum plim_status plim_config_format_find(const char *name, const struct plim_config_format **out,
                                         struct plim_error *err)
{
    const char *names[FORMAT_COUNT];
    char expected[128];
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        *out = &formats[i];
        names[i] = formats[i].name;
        if (!strcasecmp(name, names[i])) return PLIM_OK;
    }
    plim_join_names(names, FORMAT_COUNT, expected, sizeof(expected));
    return plim_fail(err, PLIM_INVALID, "--format is '%s', expected %s", name, expected);
}

static const struct plim_config_format *named(const char *name)
{
    const struct plim_config_format *found = formats;
    while (strcmp(found->name, name) != 0) found++;
    return found;
}

/* Recognises a file by its contents: scripts start with their interpreter, JSON with a brace. */
static const struct plim_config_format *by_content(const char *text, size_t length)
{
    if (length > 2 && !strncmp(text, "#!", 2))
        return named(memmem(text, strcspn(text, "\n"), "python", 6) ? "python" : "shell");
    size_t blank = strspn(text, " \t\r\n");
    if (text[blank] == '{') return named("json");
    const char *at = text;
    while (*at == '#' || *at == ';' || *at == '\n' || *at == '\r') {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return named(*at == '[' ? "ini" : "yaml");
}

const struct plim_config_format *plim_config_format_of(const char *path, const char *text,
                                                       size_t length)
{
    static const char *const scripts[] = {"Makefile", "GNUmakefile", "Dockerfile", "Containerfile", "justfile"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
        if (!strcasecmp(name, scripts[i])) return named("shell");
    for (size_t i = 0; dot && i < FORMAT_COUNT; i++)
        for (const char *const *ending = formats[i].extensions; *ending; ending++)
            if (!strcasecmp(dot + 1, *ending)) return &formats[i];
    return by_content(text, length);
}
