#include "config_group.h"
#include "config_format.h"
#include <stdio.h>
#include <string.h>

struct plim_config_file *plim_config_group_file(const struct plim_config_group *g,
                                                const struct plim_config_document *document)
{
    for (size_t i = 0; i < g->plan->count; i++)
        if (&g->plan->files[i].document == document) return &g->plan->files[i];
    return NULL;
}

enum plim_status plim_config_refuse(const struct plim_config_group *g,
                                    const struct plim_config_place *place, const char *fmt,
                                    const char *a, const char *b)
{
    const struct plim_config_node *node = place->node;
    return plim_config_fail(place->document, node->key ? node->key_begin : node->begin, g->err, fmt,
                            a, b);
}

bool plim_config_uses_dp(enum plim_config_role role)
{
    return role == PLIM_CONFIG_GLOBAL || role == PLIM_CONFIG_TOTAL || role == PLIM_CONFIG_ROUNDS;
}

bool plim_config_is_default(const struct plim_config_group *g, enum plim_config_role role)
{
    bool size = role == PLIM_CONFIG_MICRO || role == PLIM_CONFIG_STEP || role == PLIM_CONFIG_TOTAL;
    return !size && g->sizes.accumulation == 1;
}

enum plim_status plim_config_need_dp(const struct plim_config_group *g,
                                     const struct plim_config_place *place,
                                     enum plim_config_role role)
{
    char text[160];
    snprintf(text, sizeof(text),
             "%s counts all data-parallel GPUs, and how many there are is not known",
             plim_config_role_text(role));
    return plim_config_refuse(g, place,
                              "%s: say --dp N (GPUs / (tensor x pipeline x context x sequence "
                              "parallel))%s",
                              text, "");
}

const struct plim_config_found *plim_config_primary(const struct plim_config_group *g)
{
    static const enum plim_config_role order[] = {PLIM_CONFIG_MICRO, PLIM_CONFIG_STEP,
                                                  PLIM_CONFIG_TOTAL, PLIM_CONFIG_GLOBAL,
                                                  PLIM_CONFIG_ACCUMULATION};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        if (g->found[order[i]].state != PLIM_CONFIG_ABSENT) return &g->found[order[i]];
    return NULL;
}

bool plim_config_is_settable(const struct plim_config_found *found)
{
    return found->state == PLIM_CONFIG_SETTABLE || found->state == PLIM_CONFIG_MERGED;
}

bool plim_config_is_size(const struct plim_config_found *found)
{
    return plim_config_is_settable(found) && found->value.meaning == PLIM_CONFIG_NUMBER;
}

const char *plim_config_role_text(enum plim_config_role role)
{
    static const char *const texts[] = {
        [PLIM_CONFIG_MICRO] = "the micro-batch",
        [PLIM_CONFIG_ACCUMULATION] = "the accumulation",
        [PLIM_CONFIG_GLOBAL] = "the global batch",
        [PLIM_CONFIG_STEP] = "the batch of a GPU",
        [PLIM_CONFIG_TOTAL] = "the batch of all GPUs",
        [PLIM_CONFIG_ROUNDS] = "the accumulation of all GPUs",
        [PLIM_CONFIG_SEQ] = "the sequence length",
    };
    return texts[role];
}

int64_t plim_config_number_of(const struct plim_config_group *g, enum plim_config_role role)
{
    int64_t number = plim_config_role_value(role, &g->sizes);
    return role == PLIM_CONFIG_GLOBAL ? number / g->repeats : number;
}

int64_t plim_config_number_at(const struct plim_config_group *g, const char *const *patterns)
{
    int64_t number = 0;
    for (; *patterns && !number; patterns++) { /* e.g. --nnodes $SLURM_NNODES, with #SBATCH --nodes=2 */
        const char *const one[2] = {*patterns, NULL};
        struct plim_config_found found;
        struct plim_error ignored = PLIM_ERROR_INIT;
        if (plim_config_find(g->plan, one, NULL, "", &found, &ignored)) return 0;
        if (plim_config_is_size(&found)) number = found.number;
    }
    return number;
}

int64_t plim_config_with_accumulation(const struct plim_config_group *g, int64_t number)
{
    int64_t before = g->found[PLIM_CONFIG_ACCUMULATION].number;
    if (before < 1) before = 1; /* not set */
    return number * g->sizes.accumulation % before ? 0 : number * g->sizes.accumulation / before;
}

/* Splits a pattern into its parent and last name: "trainer" and "accumulate_grad_batches". */
static void split_pattern(const char *pattern, char *parent, size_t size, const char **name)
{
    const char *dot = strrchr(pattern, '.');
    snprintf(parent, size, "%.*s", dot ? (int)(dot - pattern) : 0, pattern);
    *name = dot ? dot + 1 : pattern;
}

static const struct plim_config_place *mapping_place(const struct plim_config_group *g,
                                                     const char *pattern)
{
    const struct plim_config_place *found = NULL;
    for (size_t i = 0; i < g->plan->places.list.count; i++) {
        const struct plim_config_place *place = &g->plan->places.list.items[i];
        bool wild;
        if (!plim_config_place_matches(place, pattern, &wild) ||
            plim_config_is_elsewhere(place->name, pattern))
            continue;
        if (plim_config_node_of(place)->kind == PLIM_CONFIG_MAPPING && !place->merged)
            found = place; /* the last of several: Hydra's last file applies */
    }
    return found;
}

struct plim_config_node *plim_config_root_of(const struct plim_config_place *place)
{
    struct plim_config_node *root = place->document->root, *node = place->node;
    if (root->kind == PLIM_CONFIG_MAPPING) return root;
    while (node->parent && node->parent != root) node = node->parent;
    return node;
}

struct plim_config_node *plim_config_section(const struct plim_config_group *g, const char *pattern,
                                             struct plim_config_file **file, const char **name)
{
    const struct plim_config_place *beside = plim_config_primary(g)->place;
    char parent[256];
    split_pattern(pattern, parent, sizeof(parent), name);
    /* Variables of a program are not the arguments of its calls. */
    enum plim_config_language language = beside->document->format->language;
    bool is_script = language == PLIM_CONFIG_SHELL || language == PLIM_CONFIG_PYTHON;
    bool is_beside = !strcmp(parent, "**") || (!parent[0] && is_script && beside->mapping);
    if (strchr(*name, '*')) return NULL;
    const struct plim_config_place *at = parent[0] && !is_beside ? mapping_place(g, parent) : NULL;
    *file = plim_config_group_file(g, at ? at->document : beside->document);
    if (at) return plim_config_node_of(at);
    return is_beside ? beside->mapping : parent[0] ? NULL : plim_config_root_of(beside);
}
