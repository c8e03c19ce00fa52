/* The table of commands. */
#include "autotune/base/text.h"
#include "command.h"
#include <string.h>

static const struct plim_command *const commands[PLIM_COMMAND_COUNT] = {
#define ENTRY(id, name) &plim_command_##name,
    PLIM_COMMAND_MAP(ENTRY)
#undef ENTRY
};

const struct plim_command *plim_command_at(size_t index) { return commands[index]; }

enum plim_status plim_command_find(const char *name, const struct plim_command **out,
                                   struct plim_error *err)
{
    const char *names[PLIM_COMMAND_COUNT];
    for (size_t i = 0; i < PLIM_COMMAND_COUNT; i++) {
        *out = commands[i];
        names[i] = commands[i]->name;
        if (!strcmp(names[i], name)) return PLIM_OK;
    }
    int near = plim_nearest(name, names, PLIM_COMMAND_COUNT);
    if (near < 0)
        return plim_fail(err, PLIM_INVALID, "%s: unknown command (plimsoll help lists them)", name);
    return plim_fail(err, PLIM_INVALID, "%s: unknown command, did you mean %s?", name, names[near]);
}

const char plim_help_about[] =
    "SPEC is a plimsoll YAML file, a Hugging Face config.json, a directory with one,\n"
    "or a name such as gpt2-124m (plimsoll models). 'plimsoll help COMMAND' lists\n"
    "the options of a command, 'plimsoll help spec' the keys of a spec.\n";
