#include "accumulation_schedule.h"
#include "splice.h"
#include <inttypes.h>
#include <stdio.h>

static struct plim_config_node *behind_alias(struct plim_config_node *member)
{
    return member->target ? member->target : member;
}

bool plim_config_schedule_covers(const struct plim_config_group *g,
                                 const struct plim_config_place *place)
{
    const struct plim_config_found *found = &g->found[PLIM_CONFIG_ACCUMULATION];
    if (found->state != PLIM_CONFIG_BY_EPOCH) return false;
    const struct plim_config_node *node = plim_config_node_of(found->end);
    if (plim_config_node_of(place) == node) return true;
    for (node = node->parent; node && node->kind == PLIM_CONFIG_MAPPING; node = node->parent)
        if (node == place->node->parent) return true;
    return false;
}

enum plim_status plim_config_schedule_check(const struct plim_config_group *g)
{
    const struct plim_config_found *found = &g->found[PLIM_CONFIG_ACCUMULATION];
    const struct plim_config_ask *ask = g->ask;
    if (ask->phase_count < 2 || found->state == PLIM_CONFIG_BY_EPOCH) return PLIM_OK;
    char text[96];
    snprintf(text, sizeof(text), "%" PRId64 " micro-steps, from epoch %" PRId64 " on %" PRId64,
             ask->phases[0].accumulation, ask->phases[1].epoch, ask->phases[1].accumulation);
    const struct plim_config_place *place =
        found->place ? found->place : plim_config_primary(g)->place;
    return plim_config_refuse(g, place,
                              "the accumulation of the answer follows epochs (%s), and '%s' has no "
                              "schedule",
                              text, found->place ? place->path : place->document->source);
}

/* The limit of --accumulation. */
static const int64_t LARGEST = 1000000000;

/* --- numbers per epoch ------------------------------------------------------------------------ */

static enum plim_status refuse_epoch(const struct plim_config_group *g,
                                     const struct plim_config_node *member, const char *what)
{
    const struct plim_config_place *place = g->found[PLIM_CONFIG_ACCUMULATION].end;
    char text[200];
    if (!member) return plim_config_refuse(g, place, "'%s' %s", place->path, what);
    snprintf(text, sizeof(text), "at epoch %.20s %s", member->key, what);
    return plim_config_fail(place->document, member->key_begin, g->err, "'%s' %s", place->path,
                            text);
}

/* Stores the answer's number for an epoch that the file lists. */
static enum plim_status answer_of(const struct plim_config_group *g,
                                  const struct plim_config_node *member, int64_t *number)
{
    const struct plim_config_ask *ask = g->ask;
    for (size_t i = 0; i < ask->phase_count; i++)
        if (ask->phases[i].epoch == plim_config_epoch(member)) {
            *number = ask->phases[i].accumulation;
            return PLIM_OK;
        }
    return refuse_epoch(g, member, "has a number, and the answer's schedule has none");
}

static enum plim_status in_proportion(const struct plim_config_group *g,
                                      struct plim_config_node *member, int64_t first,
                                      int64_t *number)
{
    char text[160];
    int64_t old = plim_config_steps(member), product;
    bool holds = !__builtin_mul_overflow(old, g->sizes.accumulation, &product);
    *number = holds ? product / first : 0;
    if (holds && product % first == 0 && *number <= LARGEST) return PLIM_OK;
    snprintf(text, sizeof(text),
             "would make %" PRId64 " x %" PRId64 " / %" PRId64 " micro-steps, which is not a whole number up to "
                                                               "%" PRId64,
             old, g->sizes.accumulation, first, LARGEST);
    return refuse_epoch(g, member, text);
}

static bool names(const struct plim_config_node *schedule, int64_t epoch)
{
    for (const struct plim_config_node *member = schedule->first; member; member = member->next)
        if (plim_config_epoch(member) == epoch) return true;
    return false;
}

/* Checks for parts of the answer's schedule that no number of the file can express. */
static enum plim_status check_epochs(const struct plim_config_group *g,
                                     const struct plim_config_node *schedule)
{
    const struct plim_config_ask *ask = g->ask;
    char text[160];
    const int64_t first = ask->phase_count ? ask->phases[0].accumulation : g->sizes.accumulation;
    if (!names(schedule, 0) && first != 1) {
        snprintf(text, sizeof(text),
                 "names no epoch 0, which would get %" PRId64
                 "; write '0: 1' there, and apply again",
                 first);
        return refuse_epoch(g, NULL, text);
    }
    for (size_t i = 1; i < ask->phase_count; i++) {
        if (names(schedule, ask->phases[i].epoch)) continue;
        snprintf(text, sizeof(text), "names no epoch %" PRId64 ", which the answer's schedule has",
                 ask->phases[i].epoch);
        return refuse_epoch(g, NULL, text);
    }
    return PLIM_OK;
}

static enum plim_status check_member(const struct plim_config_group *g,
                                     struct plim_config_node *member)
{
    if (member->again) return refuse_epoch(g, member, "occurs twice; expected it once");
    return plim_config_steps(member) ? PLIM_OK
                                     : refuse_epoch(g, member, "is not a whole number above 0");
}

enum plim_status plim_config_schedule_write(struct plim_config_group *g)
{
    const struct plim_config_found *found = &g->found[PLIM_CONFIG_ACCUMULATION];
    struct plim_config_document *document = found->end->document;
    struct plim_config_node *schedule = plim_config_node_of(found->end);
    struct plim_config_file *file = plim_config_group_file(g, document);
    enum plim_status st = check_epochs(g, schedule);
    file->sized = true;
    for (struct plim_config_node *member = schedule->first; member && !st; member = member->next)
        st = check_member(g, member);
    for (struct plim_config_node *member = schedule->first; member && !st; member = member->next) {
        struct plim_config_node *node = behind_alias(member);
        struct plim_config_value value = plim_config_value_of(document, node);
        const char *path = plim_config_path(document, member);
        int64_t number = 0;
        if (!path) return plim_no_memory(g->err);
        st = g->ask->phase_count ? answer_of(g, member, &number)
                                 : in_proportion(g, member, found->number, &number);
        if (!st)
            st = plim_config_replace(file, path, node, &value, number, g->framework->numbers,
                                     g->err);
    }
    return st;
}
