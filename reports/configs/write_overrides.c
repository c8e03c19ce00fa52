#include "config_format.h"
#include "config_group.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if a size is computed from sizes that are written, so that it needs no change. */
static bool is_derived(const struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_node *node = plim_config_node_of(g->found[role].end);
    if (g->needs >> role & 1 || !node->text) return false;
    for (int other = 0; other < PLIM_CONFIG_SEQ; other++)
        if (g->needs >> other & 1 && g->found[other].end &&
            plim_config_mentions(node->text, g->found[other].end->name))
            return true;
    return false;
}

int plim_config_foreign(const struct plim_config_group *g)
{
    for (int role = 0; role < PLIM_CONFIG_SEQ; role++)
        if (g->found[role].state == PLIM_CONFIG_FOREIGN &&
            !is_derived(g, (enum plim_config_role)role))
            return role;
    return -1;
}

/* True if arguments for the file have an effect: a script must pass them on, and a program must parse them. A Python
 * file
 * of assignments is assumed to be read by a program that does. */
static bool takes_arguments(const struct plim_config_group *g,
                            const struct plim_config_document *document)
{
    static const char *const shell[] = {"$@", "${@", "$*", NULL};
    static const char *const python[] = {"argv", "rgumentParser", "rgparse", "click", "fire", "tyro", "typer", "hydra",
                                         "OmegaConf", "from_cli", "absl", "LightningCLI", "draccus", "docopt",
                                         "configurator", "ml_collections", NULL};
    bool is_shell = document->format->language == PLIM_CONFIG_SHELL;
    const char *const *words = is_shell ? shell : plim_config_is_program(document) ? python : NULL;
    bool takes = !words;
    for (; words && *words && !takes; words++) takes = strstr(document->text, *words) != NULL;
    return g->framework->arguments && takes;
}

/* Writes an argument after the framework's template. `list`: the value is a list of this number. */
static void write_argument(const struct plim_config_group *g, const char *path, const char *name,
                           int64_t value, bool list, FILE *out)
{
    for (const char *at = g->framework->arguments; *at; at++) {
        static const char *const marks[] = {"{path}", "{name}", "{value}", "{micro}",
                                            "{accumulation}"};
        size_t mark = 0;
        while (mark < 5 && strncmp(at, marks[mark], strlen(marks[mark])) != 0) mark++;
        if (mark == 5) {
            fputc(*at, out);
            continue;
        }
        if (mark == 0)
            fputs(path, out);
        else if (mark == 1)
            fputs(name + strspn(name, "-"), out);
        else
            fprintf(out, list && mark == 2 ? "[%" PRId64 "]" : "%" PRId64,
                    mark == 2   ? value
                    : mark == 3 ? g->sizes.micro
                                : g->sizes.accumulation);
        at += strlen(marks[mark]) - 1;
    }
}

/* Removes the index in "update_freq[0]": a command line sets the whole list. */
static const char *strip_index(char *path)
{
    char *bracket = strrchr(path, '[');
    if (bracket && path[strlen(path) - 1] == ']') *bracket = '\0';
    return path;
}

static bool write_override(const struct plim_config_group *g, enum plim_config_role role,
                           const struct plim_config_document *document, FILE *out)
{
    const struct plim_config_found *found = &g->found[role];
    int64_t value = plim_config_number_of(g, role);
    bool variable = found->state == PLIM_CONFIG_FOREIGN &&
                    (found->value.meaning == PLIM_CONFIG_ENVIRONMENT ||
                     found->value.meaning == PLIM_CONFIG_TEMPLATE) &&
                    found->value.name[0];
    const char *pattern = g->framework->roles[role][0], *path = pattern;
    const bool list = g->framework->lists && role == PLIM_CONFIG_ACCUMULATION;
    char whole[512];
    if (found->place) path = found->place->path;
    snprintf(whole, sizeof(whole), "%s", path ? path : "");
    if (list && path) path = strip_index(whole);
    if (found->state == PLIM_CONFIG_BY_EPOCH) return false;
    if (!variable && (!path || !takes_arguments(g, document))) return false;
    const char *dot = strrchr(path, '.');
    if (variable)
        fprintf(out, "%s=%" PRId64, found->value.name, value);
    else {
        bool absent = found->state == PLIM_CONFIG_ABSENT && g->framework->arguments[0] == '{';
        if (absent) fputc('+', out);
        write_argument(g, strncmp(path, "**.", 3) ? path : path + 3, dot ? dot + 1 : path, value,
                       list, out);
    }
    fputc('\n', out);
    return true;
}

/* Plans the sizes as environment variables or arguments of the command line. The files are not changed. */
enum plim_status plim_config_override(struct plim_config_group *g, enum plim_config_role foreign)
{
    struct plim_text_stream stream;
    char *text = NULL;
    const struct plim_config_found *found = &g->found[foreign];
    bool complete = true;
    FILE *out = plim_text_stream_open(&stream);
    for (int role = 0; role < PLIM_CONFIG_SEQ && out; role++) {
        if (!(g->needs >> role & 1)) continue;
        if (plim_config_uses_dp((enum plim_config_role)role) && !g->sizes.dp) {
            (void)!plim_text_stream_close(&stream, &text);
            free(text);
            return plim_config_need_dp(g, found->place, (enum plim_config_role)role);
        }
        if (g->found[role].state == PLIM_CONFIG_ABSENT &&
            plim_config_is_default(g, (enum plim_config_role)role))
            continue;
        complete &= write_override(g, (enum plim_config_role)role, found->place->document, out);
    }
    if (plim_text_stream_close(&stream, &text)) return plim_no_memory(g->err);
    const struct plim_config_node *node = plim_config_node_of(found->end);
    if (!complete) {
        free(text);
        return plim_config_refuse(g, found->end,
                                  "'%s' is not a number but '%.80s', which is computed when it is used",
                                  found->end->path, node->text ? node->text : "what a call returns");
    }
    plim_config_note(g->plan,
                     "%s:%d: %s is not a number but %.80s: nothing is written, and this is what would do it",
                     found->end->document->source, found->end->node->line, found->end->path,
                     node->text ? node->text : "what a call returns");
    free(g->plan->overrides);
    g->plan->overrides = text;
    return PLIM_OK;
}
