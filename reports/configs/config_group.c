#include "config_group.h"
#include <stdio.h>

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

int64_t plim_config_number_at(const struct plim_config_group *g, const char *const *patterns)
{
    struct plim_config_found found;
    struct plim_error ignored = PLIM_ERROR_INIT;
    if (!patterns[0] || plim_config_find(g->plan, patterns, NULL, "", &found, &ignored)) return 0;
    return plim_config_is_size(&found) ? found.number : 0;
}
