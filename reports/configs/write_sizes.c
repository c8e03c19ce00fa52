#include "accumulation_schedule.h"
#include "splice.h"

static enum plim_status write_role(struct plim_config_group *g, enum plim_config_role role)
{
    const struct plim_config_found *found = &g->found[role];
    int64_t number = plim_config_number_of(g, role);
    bool needed = g->needs >> role & 1;
    bool unset = found->value.meaning == PLIM_CONFIG_UNSET;
    bool number_wanted = needed || g->framework->numbers; /* few frameworks accept "auto" beside numbers */
    if (unset && (!number_wanted || (number == 0 && plim_config_uses_dp(role)))) return PLIM_OK;
    if (!number && plim_config_uses_dp(role)) return plim_config_need_dp(g, found->place, role);
    struct plim_config_file *file = plim_config_group_file(g, found->end->document);
    file->sized = true;
    if (found->state == PLIM_CONFIG_MERGED) {
        if (found->number == number) return PLIM_OK;
        plim_config_note(g->plan,
                         "%s:%d: %s comes from a merged mapping, which stays: it is set "
                         "beside it",
                         file->path, found->place->mapping->line, found->place->path);
        return plim_config_insert_number(g, role, file, found->place->mapping, NULL, NULL, found->place->node->key);
    }
    if (found->end->node->conditional && !plim_config_primary(g)->end->node->conditional)
        plim_config_note(g->plan, "%s:%d: %s is set in one branch alone, and %s in all", file->path,
                         found->end->node->line, found->end->path, plim_config_primary(g)->end->path);
    if (found->value.fallback[0])
        plim_config_note(g->plan,
                         "%s:%d: the default of $%s is changed; where the environment "
                         "sets it, that counts",
                         file->path, found->end->node->line, found->value.fallback);
    if (found->given)
        plim_config_note(g->plan, "%s:%d: %s is changed; where an argument of the script sets it, that counts",
                         file->path, found->end->node->line, found->end->path);
    if (found->end->node->renamed && found->end->node->key[0] == '-')
        plim_config_note(g->plan, "%s:%d: the default of %s is changed; where the command line sets it, that counts",
                         file->path, found->end->node->line, found->end->node->key);
    return plim_config_replace(file, found->end->path, plim_config_node_of(found->end),
                               &found->value, number, g->framework->numbers, g->err);
}

/* Changes values that are multiples of the accumulation, so that they remain the same multiple. */
static enum plim_status write_multiples(struct plim_config_group *g)
{
    enum plim_status st = PLIM_OK;
    for (size_t i = 0; g->framework->with_accumulation[i] && !st; i++) {
        const char *const one[2] = {g->framework->with_accumulation[i], NULL};
        struct plim_config_found found;
        st = plim_config_find(g->plan, one, NULL, "", &found, g->err);
        if (st || !plim_config_is_size(&found) || !found.number) continue;
        int64_t number = plim_config_with_accumulation(g, found.number);
        if (!number)
            return plim_config_refuse(g, found.place, "'%s' is a number of micro-steps that %s", found.place->path,
                                      "the new accumulation has no whole multiple for");
        struct plim_config_file *file = plim_config_group_file(g, found.end->document);
        st = plim_config_replace(file, found.end->path, plim_config_node_of(found.end), &found.value, number,
                                 g->framework->numbers, g->err);
    }
    return st;
}

enum plim_status plim_config_write_sizes(struct plim_config_group *g)
{
    enum plim_status st = PLIM_OK;
    for (int role = 0; role < PLIM_CONFIG_ROLE_COUNT && !st; role++) {
        bool needed = g->needs >> role & 1;
        if (role == PLIM_CONFIG_SEQ && !g->sizes.seq) continue;
        if (g->found[role].state == PLIM_CONFIG_BY_EPOCH)
            st = plim_config_schedule_write(g);
        else if (plim_config_is_settable(&g->found[role]))
            st = write_role(g, (enum plim_config_role)role);
        else if (needed && g->found[role].state == PLIM_CONFIG_ABSENT &&
                 !plim_config_is_default(g, (enum plim_config_role)role))
            st = plim_config_add_size(g, (enum plim_config_role)role);
    }
    return st ? st : write_multiples(g);
}
