#include "hub.h"
#include "autotune/base/textfile.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 3072, REVISION_BYTES = 80 };

bool plim_hub_is_id(const char *text)
{
    size_t slashes = 0, length = 0;
    for (; text[length]; length++) {
        unsigned char c = (unsigned char)text[length];
        slashes += c == '/';
        if (!isalnum(c) && !strchr("-_./", c)) return false;
    }
    return length && slashes < 2 && text[0] != '.' && text[0] != '/' && text[length - 1] != '/' &&
           length < 200;
}

/* Writes the folder of the Hub's cache; false if no environment variable gives it. */
static bool find_cache(char out[PATH_BYTES])
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *value = getenv(places[i].variable);
        if (value && *value)
            return snprintf(out, PATH_BYTES, "%s%s", value, places[i].below) < PATH_BYTES;
    }
    return false;
}

static bool has_config(const char *model, const char *revision, char *path, size_t size)
{
    int length = snprintf(path, size, "%s/snapshots/%s/config.json", model, revision);
    return length > 0 && (size_t)length < size && !access(path, R_OK);
}

bool plim_hub_find(const char *id, char *path, size_t size)
{
    char model[PATH_BYTES + 256], cache[PATH_BYTES], file[sizeof(model) + 16],
        revision[REVISION_BYTES];
    if (!plim_hub_is_id(id) || !find_cache(cache)) return false;
    size_t used = (size_t)snprintf(model, sizeof(model), "%s/models--", cache);
    for (; *id; id++)
        used += (size_t)snprintf(model + used, sizeof(model) - used, *id == '/' ? "--" : "%c", *id);
    snprintf(file, sizeof(file), "%s/refs/main", model);
    size_t length = plim_textfile_begin(file, revision, sizeof(revision) - 1);
    revision[length] = '\0';
    revision[strcspn(revision, " \r\n")] = '\0';
    if (*revision && has_config(model, revision, path, size)) return true;
    snprintf(file, sizeof(file), "%s/snapshots", model);
    DIR *folder = opendir(file);
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = entry->d_name[0] != '.' && has_config(model, entry->d_name, path, size);
    if (folder) closedir(folder);
    return found;
}
