#include "accumulation_schedule.h"
#include "autotune/base/text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_on(const struct plim_config_node *node)
{
    static const char *const off[] = {"",  "0",    "false", "no", "off", "null",
                                      "~", "none", "None",  "-1", "0.0"};
    if (node->kind != PLIM_CONFIG_SCALAR) {
        const struct plim_config_node *enabled = plim_config_get(node, "enabled");
        return enabled ? is_on(enabled) : node->first != NULL;
    }
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        if (!node->text || !strcasecmp(node->text, off[i])) return false;
    return true;
}

static enum plim_status check_schedules(struct plim_config_group *g, const char *const *patterns)
{
    for (; *patterns; patterns++)
        for (size_t i = 0; i < g->plan->places.list.count; i++) {
            const struct plim_config_place *place = &g->plan->places.list.items[i];
            if (place->hidden || !plim_config_match(*patterns, place->name)) continue;
            if (plim_config_schedule_covers(g, place)) continue;
            if (!is_on(plim_config_node_of(place)) || plim_config_is_evaluation(place->name))
                continue;
            return plim_config_refuse(g, place,
                                      "'%s' changes the batch while training: what is written "
                                      "would not hold%s",
                                      place->path, "");
        }
    return PLIM_OK;
}

/* With an accumulation by epoch, a separate number must be 1. */
static enum plim_status check_number_beside(struct plim_config_group *g)
{
    const struct plim_config_found *found = &g->found[PLIM_CONFIG_ACCUMULATION];
    if (found->state != PLIM_CONFIG_BY_EPOCH) return PLIM_OK;
    const char *const *patterns = g->framework->roles[PLIM_CONFIG_ACCUMULATION];
    for (; *patterns; patterns++)
        for (size_t i = 0; i < g->plan->places.list.count; i++) {
            const struct plim_config_place *place = &g->plan->places.list.items[i];
            const struct plim_config_node *node = plim_config_node_of(place);
            if (place->hidden || !plim_config_match(*patterns, place->name)) continue;
            if (plim_config_is_evaluation(place->name) || node->kind != PLIM_CONFIG_SCALAR)
                continue;
            if (!is_on(node) || plim_config_integer(node->text) == 1) continue;
            return plim_config_refuse(g, place,
                                      "'%s' and '%s' both say the accumulation, expected one",
                                      place->path, found->place->path);
        }
    return PLIM_OK;
}

/* Fails if a setting is on with which the trainer refuses accumulation. */
static enum plim_status check_single(struct plim_config_group *g)
{
    const struct plim_config_place *place = plim_config_first(&g->plan->places, g->framework->single);
    if (g->sizes.accumulation < 2 || !place || !is_on(plim_config_node_of(place))) return PLIM_OK;
    return plim_config_refuse(g, place, "'%s' is set, with which %s takes no more than one micro-step", place->path,
                              g->framework->title);
}

/* The number of samples per unit of the global batch must divide it. */
static enum plim_status check_repeats(struct plim_config_group *g)
{
    int64_t all = g->sizes.micro * g->sizes.accumulation * g->sizes.dp;
    const struct plim_config_place *place = NULL;
    char text[64];
    for (size_t i = 0; i < g->plan->places.list.count && g->framework->repeats[0]; i++) {
        const struct plim_config_place *at = &g->plan->places.list.items[i];
        if (!at->hidden && plim_config_match(g->framework->repeats[0], at->name)) place = at;
    }
    if (!place || plim_config_node_of(place)->kind != PLIM_CONFIG_SCALAR) return PLIM_OK;
    struct plim_config_found found;
    enum plim_status st =
        plim_config_find_at(g->plan, place, g->ask->select, "what the global batch counts", &found, g->err);
    if (st) return st;
    if (found.state == PLIM_CONFIG_FOREIGN)
        return plim_config_refuse(g, found.end, "'%s' is %s, and a number of the global batch counts for so many",
                                  found.end->path, "filled in or computed elsewhere");
    g->repeats = found.number > 1 ? found.number : 1;
    if (all % g->repeats == 0) return PLIM_OK;
    snprintf(text, sizeof(text), "%" PRId64 " samples of an optimizer step", all);
    return plim_config_refuse(g, place, "'%s' does not divide the %s, which are counted by it", place->path, text);
}

/* Lightning's callback, which overrides the Trainer's argument. */
static enum plim_status check_callbacks(struct plim_config_group *g)
{
    for (size_t i = 0; i < g->plan->places.list.count; i++) {
        const struct plim_config_place *place = &g->plan->places.list.items[i];
        const char *text = place->node->kind == PLIM_CONFIG_SCALAR ? place->node->text : NULL;
        if (!text || place->node->style == PLIM_CONFIG_BLOCK) continue;
        if (plim_text_ends_with(text, "GradientAccumulationScheduler") &&
            !plim_config_schedule_covers(g, place))
            return plim_config_refuse(g, place,
                                      "%s changes the accumulation while training: what is "
                                      "written would not hold%s",
                                      "GradientAccumulationScheduler", "");
    }
    return PLIM_OK;
}

static bool is_token_unit(const char *text)
{
    static const char *const units[] = {"token",  "frame",    "numel", "bin",  "length", "dynamic",
                                        "second", "duration", "char",  "word", "patch"};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (!strncasecmp(text, units[i], strlen(units[i]))) return true;
    return false;
}

/* Returns a key beside the size that gives its unit, such as "batch_type: token", if that is not samples; NULL if there
 * is none. */
static const struct plim_config_node *unit_beside(const struct plim_config_found *found)
{
    static const char *const keys[] = {"batch_type",   "batch_size_type", "batch_unit",
                                       "batch_by",     "batching",        "batch_size_unit",
                                       "batch_method", "batch_mode"};
    const struct plim_config_node *mapping = found->place ? found->place->mapping : NULL;
    for (size_t i = 0; mapping && i < sizeof(keys) / sizeof(keys[0]); i++)
        for (const struct plim_config_node *node = mapping->first; node; node = node->next) {
            char name[128];
            if (!node->key || strlen(node->key) >= sizeof(name)) continue;
            plim_config_normalize(node->key, name);
            if (!strcmp(name, keys[i]) && node->text && is_token_unit(node->text)) return node;
        }
    return NULL;
}

enum plim_status plim_config_check_units(struct plim_config_group *g)
{
    const enum plim_config_role primary[] = {PLIM_CONFIG_MICRO, PLIM_CONFIG_TOTAL,
                                             PLIM_CONFIG_STEP};
    bool in_samples = false;
    for (size_t i = 0; i < 3; i++) {
        const struct plim_config_found *found = &g->found[primary[i]];
        const struct plim_config_node *unit = unit_beside(found);
        in_samples |= plim_config_is_size(found) && !unit;
        const char *text =
            found->state == PLIM_CONFIG_FOREIGN ? plim_config_node_of(found->end)->text : NULL;
        if (text && strstr(text, "tokens_per_batch"))
            return plim_config_refuse(g, found->place,
                                      "'%s' counts tokens (%s): samples cannot be written as these "
                                      "without a length",
                                      found->place->path, text);
        if (!unit || g->ask->tokens) continue;
        return plim_config_refuse(
            g, found->place,
            "'%s' counts no samples (%s): samples cannot be written as these without "
            "a length; --tokens N gives the number itself",
            found->place->path, unit->text);
    }
    const struct plim_config_place *tokens =
        plim_config_first(&g->plan->places, g->framework->tokens);
    if (!tokens || in_samples || g->ask->tokens || !is_on(plim_config_node_of(tokens)))
        return PLIM_OK;
    return plim_config_refuse(
        g, tokens,
        "'%s' counts tokens or frames: samples cannot be written as these without a "
        "length; --tokens N gives the number itself%s",
        tokens->path, "");
}

/* --tokens: writes the number where the unit is tokens. */
enum plim_status plim_config_use_tokens(struct plim_config_group *g)
{
    if (!g->ask->tokens) return PLIM_OK;
    g->sizes.micro = g->ask->tokens;
    if (unit_beside(&g->found[PLIM_CONFIG_MICRO]) || !g->framework->tokens[0]) return PLIM_OK;
    return plim_config_find(g->plan, g->framework->tokens, g->ask->select, "the tokens of a batch",
                            &g->found[PLIM_CONFIG_MICRO], g->err);
}

enum plim_status plim_config_check(struct plim_config_group *g)
{
    enum plim_status st;
    PLIM_TRY(plim_config_check_units(g));
    PLIM_TRY(plim_config_use_tokens(g));
    PLIM_TRY(check_schedules(g, plim_config_common()->schedules));
    PLIM_TRY(check_schedules(g, g->framework->schedules));
    PLIM_TRY(check_number_beside(g));
    PLIM_TRY(check_single(g));
    PLIM_TRY(check_repeats(g));
    PLIM_TRY(check_callbacks(g));
out:
    return st;
}
