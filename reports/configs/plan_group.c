#include "plan_group.h"
#include "accumulation_schedule.h"
#include "config_format.h"
#include "config_group.h"
#include "patch_notes.h"
#include "recognise.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct plim_config_place *first_place(const struct plim_config_group *g)
{
    return g->plan->places.list.count ? &g->plan->places.list.items[0] : NULL;
}

/* --- finding the sizes ------------------------------------------------------------------------ */

static enum plim_status find_role(struct plim_config_group *g, enum plim_config_role role)
{
    const char *given[2] = {NULL, NULL};
    for (size_t i = 0; i < g->ask->set_count; i++)
        if (g->ask->sets[i].role == role) given[0] = g->ask->sets[i].path;
    const char *const *patterns = given[0] ? given : g->framework->roles[role];
    const char *select = given[0] ? NULL : g->ask->select, *text = plim_config_role_text(role);
    struct plim_config_found *found = &g->found[role];
    enum plim_status st = PLIM_OK;
    if (role == PLIM_CONFIG_ACCUMULATION && !given[0]) {
        st = plim_config_find(g->plan, g->framework->by_epoch, select, text, found, g->err);
        if (st || found->state == PLIM_CONFIG_BY_EPOCH) return st;
    }
    st = plim_config_find(g->plan, patterns, select, text, found, g->err);
    if (!st && found->state == PLIM_CONFIG_BY_EPOCH && role != PLIM_CONFIG_ACCUMULATION)
        return plim_config_refuse(g, found->end,
                                  "'%s' is a schedule (several values), expected one number%s",
                                  found->end->path, "");
    return st;
}

static bool is_used(const struct plim_config_group *g, enum plim_config_role role)
{
    bool used = g->framework->roles[role][0] != NULL;
    for (size_t i = 0; i < g->ask->set_count; i++) used |= g->ask->sets[i].role == role;
    return used;
}

/* Chooses the set of sizes to write: the one that the file is most complete in. Numbers weigh more than empty keys. */
static void choose_needs(struct plim_config_group *g)
{
    int best = -1;
    for (size_t i = 0; i < PLIM_CONFIG_NEEDS && g->framework->needs[i]; i++) {
        int score = 0, all = 0;
        for (int role = 0; role < PLIM_CONFIG_ROLE_COUNT; role++) {
            if (!(g->framework->needs[i] >> role & 1)) continue;
            all++;
            score += plim_config_is_size(&g->found[role])       ? 100
                     : plim_config_is_settable(&g->found[role]) ? 10
                                                                : 0;
            score += g->found[role].state == PLIM_CONFIG_BY_EPOCH ? 100 : 0;
            score += g->found[role].state == PLIM_CONFIG_FOREIGN;
        }
        score = score * 4 / all;
        if (score > best) best = score, g->needs = g->framework->needs[i];
    }
    if (!g->ask->set_count) return;
    g->needs = 0;
    for (size_t i = 0; i < g->ask->set_count; i++) g->needs |= 1u << g->ask->sets[i].role;
}

/* True if there is a batch size. Accumulation alone does not count, unless the framework has no other size. */
static bool has_size(const struct plim_config_group *g)
{
    for (int role = 0; role < PLIM_CONFIG_SEQ; role++) {
        bool primary = role != PLIM_CONFIG_ACCUMULATION && role != PLIM_CONFIG_ROUNDS;
        bool alone = g->framework->needs[0] == 1u << role;
        if (g->found[role].state != PLIM_CONFIG_ABSENT && (primary || alone)) return true;
    }
    return false;
}

/* --- number of data-parallel GPUs ------------------------------------------------------------- */

int64_t plim_config_dp(const struct plim_config_group *g, const struct plim_config_framework *row)
{
    int64_t dp = plim_config_number_at(g, row->dp), nodes = plim_config_number_at(g, row->nodes),
            parallel = 1;
    if (dp) return dp;
    dp = plim_config_number_at(g, row->devices);
    for (size_t i = 0; row->parallel[i]; i++) {
        const char *const one[2] = {row->parallel[i], NULL};
        int64_t factor = plim_config_number_at(g, one);
        if (factor) parallel *= factor;
    }
    if (row->nodes[0] && plim_config_first(&g->plan->places, row->nodes) && !nodes) return -1;
    if (nodes) dp *= nodes;
    return dp && dp % parallel == 0 ? dp / parallel : 0;
}

static int64_t dp_of_files(const struct plim_config_group *g)
{
    int64_t dp = plim_config_dp(g, g->framework);
    if (dp) return dp > 0 ? dp : 0;
    /* Derive it from the sizes in the file: global = micro x accumulation x dp. */
    int64_t micro = g->found[PLIM_CONFIG_MICRO].number,
            accumulation = g->found[PLIM_CONFIG_ACCUMULATION].number,
            global = g->found[PLIM_CONFIG_GLOBAL].number;
    bool known = micro && accumulation && global && global / micro / accumulation > 0;
    return known && global % (micro * accumulation) == 0 ? global / micro / accumulation : 0;
}

/* Notes a launcher's process count that differs from the number of data-parallel GPUs of the sizes. */
static void note_launch(const struct plim_config_group *g)
{
    int64_t launched = plim_config_dp(g, plim_config_common()), step = g->sizes.micro * g->sizes.accumulation;
    if (launched < 2 || launched == g->sizes.dp) return;
    if (g->needs >> PLIM_CONFIG_GLOBAL & 1) {
        plim_config_note(g->plan,
                         "%s: %" PRId64 " processes are launched here, and the sizes are for %" PRId64
                         " data-parallel GPUs, which share the %" PRId64 " samples of an optimizer step",
                         first_place(g)->document->source, launched, g->sizes.dp, step * g->sizes.dp);
        return;
    }
    plim_config_note(g->plan,
                     "%s: %" PRId64 " processes are launched here, and the sizes are for %" PRId64
                     ": an optimizer step makes %" PRId64 " samples instead of %" PRId64,
                     first_place(g)->document->source, launched, g->sizes.dp, step * launched, step * g->sizes.dp);
}

static void find_dp(struct plim_config_group *g)
{
    int64_t here = dp_of_files(g);
    if (!g->sizes.dp)
        g->sizes.dp = here;
    else if (here && here != g->sizes.dp)
        plim_config_note(g->plan,
                         "%s: the file itself makes %" PRId64 " data-parallel GPUs, and the sizes are for %" PRId64,
                         first_place(g)->document->source, here, g->sizes.dp);
    else if (!here)
        note_launch(g);
}

static enum plim_status check_multiples(struct plim_config_group *g)
{
    int64_t steps = plim_config_with_accumulation(g, plim_config_number_at(g, g->framework->with_accumulation));
    int64_t all = g->sizes.micro * (steps ? steps : g->sizes.accumulation) * (g->sizes.dp ? g->sizes.dp : 1);
    for (size_t i = 0; g->framework->multiple_of[i]; i++) {
        const char *const one[2] = {g->framework->multiple_of[i], NULL};
        int64_t number = plim_config_number_at(g, one);
        const struct plim_config_place *place = plim_config_first(&g->plan->places, one);
        if (number < 2 || all % number == 0 || !place) continue;
        if (g->sizes.dp) {
            char text[64];
            snprintf(text, sizeof(text), "%" PRId64 " samples of an optimizer step", all);
            return plim_config_refuse(
                g, place, "'%s' does not divide the %s, so it would not start", place->path, text);
        }
        plim_config_note(g->plan,
                         "%s:%d: %s is %" PRId64 ", which does not divide %" PRId64
                         " samples of an optimizer step and GPU",
                         place->document->source, place->node->key_line, place->path, number, all);
    }
    return PLIM_OK;
}

/* --- planning one group of files -------------------------------------------------------------- */

/* Returns a text of several words, such as a command, that names a batch size; NULL if there is none. */
static const struct plim_config_place *find_in_text(const struct plim_config_group *g)
{
    for (size_t i = 0; i < g->plan->places.list.count; i++) {
        const struct plim_config_place *place = &g->plan->places.list.items[i];
        const char *text = place->node->kind == PLIM_CONFIG_SCALAR ? place->node->text : NULL;
        if (text && plim_config_names_size(text) && strpbrk(text, " =") && place->node->style != PLIM_CONFIG_CODE)
            return place;
    }
    return NULL;
}

/* Refuses a notebook that names a batch size in a command or comment. */
static enum plim_status refuse_command(struct plim_config_group *g, const struct plim_config_document *document)
{
    const char *found = document->places ? plim_config_names_size(document->text) : NULL;
    if (found)
        return plim_config_fail(document, (size_t)(found - document->text), g->err,
                                "a batch size is in a command or a comment of the notebook, which is not changed");
    return PLIM_OK;
}

static enum plim_status nothing_here(struct plim_config_group *g)
{
    const struct plim_config_place *place = find_in_text(g);
    if (place && !(g->framework && g->framework->outside))
        return plim_config_refuse(g, place,
                                  "a batch size is inside of the text '%.200s', which is a command or a template and "
                                  "is not changed%s",
                                  place->path, "");
    place = first_place(g);
    enum plim_status st = place ? refuse_command(g, place->document) : PLIM_OK;
    if (st) return st;
    const char *source = place ? place->document->source : "";
    if (g->framework && g->framework->outside)
        return plim_fail_at(
            g->err, PLIM_SPEC, source, 0, 0,
            "no batch or accumulation belongs into a file of %s; give it to %s: "
            "--per_device_train_batch_size %" PRId64 " --gradient_accumulation_steps %" PRId64,
            g->framework->title, g->framework->outside, g->sizes.micro, g->sizes.accumulation);
    return plim_fail_at(g->err, PLIM_SPEC, source, 0, 0,
                        "no key of a batch size was found here%s%s; --set PATH=micro_batch says "
                        "where it is",
                        g->framework ? " for " : "", g->framework ? g->framework->title : "");
}

static int64_t samples_before(const struct plim_config_group *g)
{
    const struct plim_config_found *found = g->found;
    if (found[PLIM_CONFIG_STEP].number) return found[PLIM_CONFIG_STEP].number;
    if (found[PLIM_CONFIG_GLOBAL].number && g->sizes.dp)
        return found[PLIM_CONFIG_GLOBAL].number * g->repeats / g->sizes.dp;
    if (found[PLIM_CONFIG_TOTAL].number && g->sizes.dp)
        return found[PLIM_CONFIG_TOTAL].number / g->sizes.dp;
    int64_t accumulation = found[PLIM_CONFIG_ACCUMULATION].number;
    return found[PLIM_CONFIG_MICRO].number * (accumulation ? accumulation : 1);
}

/* Returns the number of divisors in an expression that only divides: "$((GLOBAL / MICRO / GPUS))",
 * "global // devices // micro", "${floordiv:${global},${micro}}". 0 for any other expression. */
static size_t divisors_of(const char *text)
{
    const char *call = strstr(text, "div:");
    size_t divisors = 0;
    for (const char *at = call ? call + 4 : text; *at; at++) {
        if (strchr("*+%?<>", *at) || (*at == '-' && at[1] == ' ') || (*at == ',' && !call)) return 0;
        divisors += (*at == '/' && at[1] != '/') || *at == ',';
    }
    return divisors;
}

void plim_config_find_divided(struct plim_config_group *g)
{
    const struct plim_config_found *accumulation = &g->found[PLIM_CONFIG_ACCUMULATION],
                                   *micro = &g->found[PLIM_CONFIG_MICRO];
    const struct plim_config_place *global = NULL;
    if (accumulation->state != PLIM_CONFIG_FOREIGN || !plim_config_is_size(micro)) return;
    const char *text = plim_config_node_of(accumulation->end)->text;
    size_t divisors = text && plim_config_mentions(text, micro->end->name) ? divisors_of(text) : 0;
    struct plim_config_found *found = &g->found[PLIM_CONFIG_GLOBAL];
    /* A number divided by the micro-batch alone is a batch per GPU and step, whatever its name says. */
    enum plim_config_role role = divisors == 1 ? PLIM_CONFIG_STEP : PLIM_CONFIG_GLOBAL;
    if (!divisors || (found->state != PLIM_CONFIG_ABSENT && role == PLIM_CONFIG_GLOBAL)) return;
    if (plim_config_is_size(found) && plim_config_mentions(text, found->end->name)) {
        g->found[PLIM_CONFIG_STEP] = *found;
        *found = (struct plim_config_found){0};
        g->needs = 1u << PLIM_CONFIG_MICRO | 1u << PLIM_CONFIG_STEP;
        return;
    }
    if (found->state != PLIM_CONFIG_ABSENT) return;
    for (size_t i = 0; i < g->plan->places.list.count; i++) {
        const struct plim_config_place *place = &g->plan->places.list.items[i];
        const struct plim_config_node *node = plim_config_node_of(place);
        bool other = node != plim_config_node_of(micro->end) && node->kind == PLIM_CONFIG_SCALAR &&
                     place->document == accumulation->end->document && strstr(place->name, "batch");
        if (!other || !plim_config_mentions(text, place->name)) continue;
        if (plim_config_value_of(place->document, node).meaning != PLIM_CONFIG_NUMBER) continue;
        if (global) return; /* ambiguous */
        global = place;
    }
    if (!global) return;
    struct plim_config_value value =
        plim_config_value_of(global->document, plim_config_node_of(global));
    g->found[role] = (struct plim_config_found){.state = PLIM_CONFIG_SETTABLE,
                                                .place = global,
                                                .end = global,
                                                .value = value,
                                                .number = plim_config_integer(plim_config_node_of(global)->text)};
    g->needs = 1u << PLIM_CONFIG_MICRO | 1u << role;
}

/* True if every size is "auto" or null, so that another file of the job may set it. */
static bool is_open(const struct plim_config_group *g)
{
    for (int role = 0; role < PLIM_CONFIG_SEQ; role++) {
        const struct plim_config_found *found = &g->found[role];
        if (found->state != PLIM_CONFIG_ABSENT && found->value.meaning != PLIM_CONFIG_UNSET)
            return false;
    }
    return true;
}

/* Notes a micro-batch that may mean something else, or that belongs to another file. */
static void note_micro(const struct plim_config_group *g)
{
    const struct plim_config_place *micro = g->found[PLIM_CONFIG_MICRO].place;
    if (g->framework->guess && !g->ask->set_count && g->sizes.dp > 1 && micro)
        plim_config_note(g->plan, "%s:%d: %s was taken for the samples of one GPU, as whose file this is was not found",
                         micro->document->source, micro->node->key_line, micro->path);
    if (g->framework->outside && !micro)
        plim_config_note(g->plan, "%s: the micro-batch belongs to %s: --per_device_train_batch_size %" PRId64,
                         first_place(g)->document->source, g->framework->outside, g->sizes.micro);
}

static enum plim_status plan_found(struct plim_config_group *g, enum plim_config_outcome *outcome)
{
    enum plim_status st;
    PLIM_TRY(plim_config_check(g));
    PLIM_TRY(plim_config_schedule_check(g));
    if (g->framework->no_accumulation && g->sizes.accumulation > 1)
        return plim_config_refuse(g, plim_config_primary(g)->place,
                                  "an accumulation above 1 cannot be written: %s%s",
                                  g->framework->no_accumulation, "");
    choose_needs(g);
    find_dp(g);
    if (g->plan->leave_open && is_open(g)) {
        *outcome = PLIM_CONFIG_OPEN;
        return PLIM_OK;
    }
    plim_config_find_divided(g);
    int foreign = plim_config_foreign(g);
    if (foreign >= 0) {
        *outcome = PLIM_CONFIG_OVERRIDDEN;
        return plim_config_override(g, (enum plim_config_role)foreign);
    }
    PLIM_TRY(check_multiples(g));
    PLIM_TRY(plim_config_write_sizes(g));
    note_micro(g);
    PLIM_TRY(plim_config_write_switches(g));
    *outcome = PLIM_CONFIG_SIZED;
    plim_config_notes(g->plan, g->framework, samples_before(g),
                      g->sizes.micro * g->sizes.accumulation);
out:
    return st;
}

enum plim_status plim_config_group_plan(struct plim_config_plan *plan,
                                        const struct plim_config_ask *ask,
                                        enum plim_config_outcome *outcome, struct plim_error *err)
{
    struct plim_config_group g = {.plan = plan, .ask = ask, .sizes = ask->sizes, .repeats = 1, .err = err};
    enum plim_status st;
    *outcome = PLIM_CONFIG_NOTHING;
    PLIM_TRY(plim_config_recognise(&plan->places, ask->framework, &g.framework, err));
    if (!g.framework && ask->set_count) {
        static const struct plim_config_framework any = {
            .name = "set", .title = "any", .guess = true};
        g.framework = &any;
    }
    if (!g.framework) return nothing_here(&g);
    for (int role = 0; role < PLIM_CONFIG_ROLE_COUNT; role++)
        if (is_used(&g, (enum plim_config_role)role) && (role != PLIM_CONFIG_SEQ || g.sizes.seq)) {
            st = find_role(&g, (enum plim_config_role)role);
            bool secondary = role == PLIM_CONFIG_ACCUMULATION || role == PLIM_CONFIG_ROUNDS;
            if (st && secondary && !has_size(&g)) return st; /* the file has no batch size */
            if (st) *outcome = PLIM_CONFIG_SIZED;
            if (st) return st;
        }
    if (!has_size(&g)) {
        st = plim_config_check_units(&g);
        if (!st && ask->tokens) st = plim_config_use_tokens(&g);
        if (st) *outcome = PLIM_CONFIG_SIZED;
        if (st) return st;
        if (!has_size(&g)) return nothing_here(&g);
    }
    *outcome = PLIM_CONFIG_SIZED;
    for (size_t i = 0; i < plan->count; i++)
        for (size_t k = 0; k < plan->places.list.count; k++)
            if (plan->places.list.items[k].document == &plan->files[i].document) {
                plan->files[i].framework = g.framework;
                break;
            }
    st = plan_found(&g, outcome);
out:
    return st;
}
