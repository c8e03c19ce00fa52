#define _GNU_SOURCE /* asprintf */
#include "environment.h"
#include <stdio.h>
#include <unistd.h>

extern char **environ;

/* Returns the value of an entry "NAME=VALUE"; NULL if it is another variable. `name` may be followed by "=". */
static const char *value_of(const char *entry, const char *name)
{
    size_t length = strcspn(name, "=");
    return !strncmp(entry, name, length) && entry[length] == '=' ? entry + length + 1 : NULL;
}

static enum plim_status append(struct plim_environment *e, char *entry)
{
    size_t count = e->entries.count;
    if (!entry || PLIM_ARRAY_RESERVE(&e->entries, count + 2) != PLIM_OK) {
        free(entry);
        return PLIM_NOMEM;
    }
    e->entries.items[count] = entry;
    e->entries.items[count + 1] = NULL;
    e->entries.count++;
    return PLIM_OK;
}

enum plim_status plim_environment_copy(struct plim_environment *out)
{
    enum plim_status st = PLIM_ARRAY_RESERVE(&out->entries, 1);
    if (!st) out->entries.items[0] = NULL;
    for (char **entry = environ; *entry && !st; entry++) st = append(out, strdup(*entry));
    return st;
}

void plim_environment_finish(struct plim_environment *e)
{
    for (size_t i = 0; i < e->entries.count; i++) free(e->entries.items[i]);
    PLIM_ARRAY_FINISH(&e->entries);
}

const char *plim_environment_value(char *const *entries, const char *name)
{
    const char *value = NULL;
    while (*entries && !value) value = value_of(*entries++, name);
    return value;
}

void plim_environment_unset(struct plim_environment *e, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->entries.count; i++) {
        if (value_of(e->entries.items[i], name)) free(e->entries.items[i]);
        else e->entries.items[kept++] = e->entries.items[i];
    }
    e->entries.count = kept;
    if (e->entries.items) e->entries.items[kept] = NULL;
}

enum plim_status plim_environment_set_entry(struct plim_environment *e, char *entry)
{
    if (entry) plim_environment_unset(e, entry);
    return append(e, entry);
}

enum plim_status plim_environment_set(struct plim_environment *e, const char *name, const char *value)
{
    char *entry;
    return plim_environment_set_entry(e, asprintf(&entry, "%s=%s", name, value) < 0 ? NULL : entry);
}

enum plim_status plim_environment_prepend(struct plim_environment *e, const char *name, const char *value)
{
    const char *list = e->entries.items ? plim_environment_value(e->entries.items, name) : NULL;
    char *entry;
    if (!list || !*list) return plim_environment_set(e, name, value);
    return plim_environment_set_entry(e, asprintf(&entry, "%s=%s:%s", name, value, list) < 0 ? NULL : entry);
}
