#include "lora_modules.h"
#include "autotune/base/regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- lists ------------------------------------------------------------------------------------ */

bool plim_modules_is_regex(const char *modules)
{
    return !strncmp(modules, PLIM_MODULES_REGEX, strlen(PLIM_MODULES_REGEX));
}

bool plim_modules_next(const char **at, char name[PLIM_MODULE_NAME])
{
    size_t length = strcspn(*at, ",");
    if (!**at || plim_modules_is_regex(*at)) return false;
    snprintf(name, PLIM_MODULE_NAME, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] != '\0');
    return true;
}

bool plim_modules_add(char modules[PLIM_MODULES_TEXT], const char *name)
{
    size_t used = strlen(modules), length = strlen(name);
    if (length >= PLIM_MODULE_NAME || used + 1 + length >= PLIM_MODULES_TEXT) return false;
    if (used) modules[used++] = ',';
    memcpy(modules + used, name, length + 1);
    return true;
}

bool plim_modules_has(const char *modules, const char *name)
{
    char other[PLIM_MODULE_NAME];
    while (plim_modules_next(&modules, other))
        if (!strcmp(other, name)) return true;
    return false;
}

const char *plim_module_leaf(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* --- one module ------------------------------------------------------------------------------- */

/* True if `end` is the module's name or its last parts */
static bool ends_with(const char *module, const char *end)
{
    size_t length = strlen(module), n = strlen(end);
    bool is_longer = length > n && module[length - n - 1] == '.';
    return (length == n || is_longer) && !strcmp(module + length - n, end);
}

/* `*is_whole`: the list has its full name */
static bool is_listed(const char *modules, const char *module, bool *is_whole)
{
    char name[PLIM_MODULE_NAME];
    bool found = false;
    *is_whole = false;
    if (plim_modules_is_regex(modules)) return plim_regex_matches(modules + strlen(PLIM_MODULES_REGEX), module);
    while (plim_modules_next(&modules, name)) {
        found |= ends_with(module, name);
        *is_whole |= !strcmp(module, name);
    }
    return found;
}

/* True if a name, cut off before a layer's index, ends with `pattern` ("": with any two parts) */
static bool is_layer_list(const char *begin, const char *pattern)
{
    return *pattern ? ends_with(begin, pattern) : strchr(begin, '.') != NULL;
}

/* Returns the index of a module's layer: the first part of its name that is a number, follows `pattern` and is not the
 * last; -1 if there is none. */
static int64_t number_behind(const char *module, const char *pattern)
{
    char begin[256];
    for (const char *dot = strchr(module, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t digits = strspn(dot + 1, "0123456789");
        if (!digits || dot[1 + digits] != '.') continue;
        snprintf(begin, sizeof(begin), "%.*s", (int)(dot - module), module);
        if (is_layer_list(begin, pattern)) return strtoll(dot + 1, NULL, 10);
    }
    return -1;
}

static int64_t layer_of(const char *module, const char *patterns)
{
    char pattern[PLIM_MODULE_NAME];
    int64_t layer = -1;
    if (!*patterns) return number_behind(module, "");
    while (layer < 0 && plim_modules_next(&patterns, pattern)) layer = number_behind(module, pattern);
    return layer;
}

static bool is_in_layers(const struct plim_lora *lora, const char *module)
{
    int64_t layer = layer_of(module, lora->layers_pattern);
    for (size_t i = 0; i < lora->layers.count; i++)
        if (lora->layers.values[i] == layer) return true;
    return lora->layers.count == 0;
}

/* True for a module of modules_to_save and for its parts */
static bool is_within_saved(const struct plim_lora *lora, const char *module)
{
    char name[PLIM_MODULE_NAME], regex[PLIM_MODULE_NAME + 32];
    for (const char *at = lora->saved; plim_modules_next(&at, name);) {
        snprintf(regex, sizeof(regex), "(^|.*\\.)%s($|\\..*)", name);
        if (plim_regex_matches(regex, module)) return true;
    }
    return false;
}

bool plim_lora_saves(const struct plim_lora *lora, const char *module)
{
    char name[PLIM_MODULE_NAME];
    for (const char *at = lora->saved; plim_modules_next(&at, name);) {
        size_t length = strlen(module), n = strlen(name);
        if (length >= n && !strcmp(module + length - n, name)) return true;
    }
    return false;
}

static bool is_target(const struct plim_lora *lora, const char *module)
{
    bool is_whole;
    if (is_listed(lora->exclude, module, &is_whole) || is_within_saved(lora, module)) return false;
    return is_listed(lora->targets, module, &is_whole) && (is_whole || is_in_layers(lora, module));
}

/* Returns the rank of a module's adapter */
static int64_t rank_of(const struct plim_lora *lora, const char *module)
{
    char regex[sizeof(lora->ranks[0].regex) + 16];
    for (size_t i = 0; i < lora->rank_count; i++) {
        snprintf(regex, sizeof(regex), "(.*\\.)?(%s)", lora->ranks[i].regex);
        if (plim_regex_matches(regex, module)) return lora->ranks[i].r;
    }
    return lora->r;
}

int64_t plim_lora_rank(const struct plim_lora *lora, const char *module)
{
    return is_target(lora, module) ? rank_of(lora, module) : 0;
}

int64_t plim_lora_parameter_rank(const struct plim_lora *lora, const char *parameter)
{
    bool is_whole;
    return is_listed(lora->parameters, parameter, &is_whole) ? rank_of(lora, parameter) : 0;
}
