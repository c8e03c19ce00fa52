#include "hydra.h"
#include "autotune/base/text.h"
#include "config_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256, MAX_CHOICES = 256 };

/* A choice of a defaults list: file `name` of config group `group`. */
struct choice {
    char group[NAME], name[NAME];
};

struct composition {
    struct plim_config_plan *plan;
    size_t count; /* length of `order`: the files in the order of composition */
    size_t order[PLIM_CONFIG_FILES];
    char packages[PLIM_CONFIG_FILES][NAME];
    bool placed[PLIM_CONFIG_FILES];
    size_t override_count;
    struct choice overrides[MAX_CHOICES];
    bool selected; /* the caller's --select matched a file */
};

static const struct plim_config_node *defaults_of(const struct plim_config_file *file)
{
    const struct plim_config_node *root = file->document.root;
    const struct plim_config_node *list =
        !strcmp(file->document.format->name, "yaml") ? plim_config_get(root, "defaults") : NULL;
    return list && list->kind == PLIM_CONFIG_SEQUENCE ? list : NULL;
}

/* Splits "experiment/example.yaml" into its folders and its stem. */
static void split(const char *path, char *folders, char *stem)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(folders, NAME, "%.*s", slash ? (int)(slash - path) : 0, path);
    snprintf(stem, NAME, "%.*s", (int)strcspn(name, "."), name);
}

static bool ends_with_group(const char *folders, const char *group)
{
    size_t length = strlen(folders), size = strlen(group);
    return plim_text_ends_with(folders, group) &&
           (length == size || folders[length - size - 1] == '/');
}

/* Returns the index of the file that a choice names, or -1. If `strict`, the file must lie in the folder of the group;
 * otherwise the name alone decides, for files that were copied into one folder. */
static int file_of(const struct composition *c, const struct choice *choice, bool strict)
{
    char folders[NAME], stem[NAME], wanted[NAME];
    const char *slash = strrchr(choice->name, '/');
    snprintf(wanted, sizeof(wanted), "%s", slash ? slash + 1 : choice->name);
    wanted[strcspn(wanted, ".")] = '\0';
    for (size_t i = 0; i < c->plan->count; i++) {
        if (strcmp(c->plan->files[i].document.format->name, "yaml") != 0) continue;
        split(c->plan->files[i].path, folders, stem);
        if (strcmp(stem, wanted) || c->placed[i]) continue;
        if (ends_with_group(folders, choice->group) || !strict) return (int)i;
    }
    return -1;
}

/* Reads the group and the name of a choice. Removes "override" and "optional" before the group, and "@package" after
 * it. */
static bool read_choice(const struct plim_config_node *item, struct choice *out, bool *is_override)
{
    const struct plim_config_node *value = item;
    const char *key = "";
    *is_override = false;
    if (item->kind == PLIM_CONFIG_MAPPING) value = item->first, key = value ? value->key : "";
    if (!value || !key || value->kind != PLIM_CONFIG_SCALAR || !value->text) return false;
    for (const char *blank; (blank = strchr(key, ' ')); key = blank + 1)
        *is_override |= !strncmp(key, "override ", 9);
    key += *key == '/';
    snprintf(out->group, NAME, "%.*s", (int)strcspn(key, "@"), key);
    snprintf(out->name, NAME, "%s", value->text);
    return true;
}

static void collect_overrides(struct composition *c, const char *select)
{
    for (size_t i = 0; i < c->plan->count; i++) {
        const struct plim_config_node *list = defaults_of(&c->plan->files[i]);
        for (const struct plim_config_node *item = list ? list->first : NULL; item;
             item = item->next) {
            struct choice choice;
            bool is_override;
            if (read_choice(item, &choice, &is_override) && is_override &&
                c->override_count < MAX_CHOICES)
                c->overrides[c->override_count++] = choice;
        }
    }
    if (!select || !strchr(select, '=') || c->override_count == MAX_CHOICES) return;
    struct choice *chosen = &c->overrides[c->override_count++];
    snprintf(chosen->group, NAME, "%.*s", (int)strcspn(select, "="), select);
    snprintf(chosen->name, NAME, "%s", strchr(select, '=') + 1);
}

/* --- order of composition --------------------------------------------------------------------- */

/* Writes the package of a file: every folder of the group is a level, so data/loader becomes data.loader. */
static void package_of(const struct plim_config_file *file, const char *group, char *out)
{
    const char *given = file->document.package;
    if (given && !strcmp(given, "_global_")) given = "";
    if (given && (!strcmp(given, "_group_") || strchr(given, '$'))) given = NULL;
    snprintf(out, NAME, "%s", given ? given : group);
    for (char *at = out; *at; at++)
        if (*at == '/') *at = '.';
}

static void place(struct composition *c, size_t file, const char *group, int depth);

static void choose(struct composition *c, struct choice choice, const char *parent, int depth)
{
    char full[2 * NAME];
    size_t used = c->override_count;
    for (size_t i = 0; i < c->override_count; i++)
        if (!strcmp(c->overrides[i].group, choice.group)) choice = c->overrides[used = i];
    snprintf(full, sizeof(full), "%s%s%s", parent, *parent && *choice.group ? "/" : "",
             choice.group);
    int file = file_of(c, &choice, true);
    if (file < 0) {
        /* The files may have been copied without their folders: match by name alone, unless another group chooses that
         * name too. */
        size_t users = 0;
        for (size_t i = 0; i < c->plan->count; i++) {
            const struct plim_config_node *list = defaults_of(&c->plan->files[i]);
            for (const struct plim_config_node *n = list ? list->first : NULL; n; n = n->next) {
                struct choice other;
                bool is_override;
                users += read_choice(n, &other, &is_override) && !is_override &&
                         !strcmp(other.name, choice.name) && strcmp(other.group, choice.group) != 0;
            }
        }
        file = users ? -1 : file_of(c, &choice, false);
    }
    c->selected |= file >= 0 && used + 1 == c->override_count; /* the last override is the caller's */
    if (file >= 0) place(c, (size_t)file, choice.group, depth + 1);
}

static void add_self(struct composition *c, size_t file, const char *group)
{
    package_of(&c->plan->files[file], group, c->packages[file]);
    c->order[c->count++] = file;
}

static void place(struct composition *c, size_t file, const char *group, int depth)
{
    const struct plim_config_node *list = defaults_of(&c->plan->files[file]);
    bool done = false;
    c->placed[file] = true;
    for (const struct plim_config_node *item = list ? list->first : NULL; item && depth < 32;
         item = item->next) {
        struct choice choice;
        bool is_override;
        if (!read_choice(item, &choice, &is_override) || is_override) continue;
        if (!strcmp(choice.name, "_self_")) {
            if (!done) add_self(c, file, group);
            done = true;
        } else {
            choose(c, choice, choice.group[0] ? "" : group, depth);
        }
    }
    if (!done) add_self(c, file, group);
}

static bool is_evaluation_file(const struct plim_config_file *file)
{
    char folders[NAME], stem[NAME];
    split(file->path, folders, stem);
    return plim_config_is_evaluation(stem);
}

/* Returns the primary config, or -1: a file with a defaults list, preferably with _self_ and without overrides.
 * `evaluates`: looks among the evaluation files only (eval.yaml beside train.yaml), otherwise among the others. */
static int primary_among(const struct composition *c, bool evaluates)
{
    int best = -1;
    for (size_t i = 0; i < c->plan->count; i++) {
        if (is_evaluation_file(&c->plan->files[i]) != evaluates) continue;
        const struct plim_config_node *list = defaults_of(&c->plan->files[i]);
        bool self = false, overrides = false;
        for (const struct plim_config_node *item = list ? list->first : NULL; item;
             item = item->next) {
            struct choice choice;
            bool is_override;
            self |= item->text && !strcmp(item->text, "_self_");
            overrides |= read_choice(item, &choice, &is_override) && is_override;
        }
        if (list && (best < 0 || (self && !overrides))) best = (int)i;
        if (list && self && !overrides) return best;
    }
    return best;
}

static int primary_of(const struct composition *c)
{
    int training = primary_among(c, false);
    return training >= 0 ? training : primary_among(c, true);
}

static void hide_overridden(struct plim_config_plan *plan)
{
    struct plim_config_place *items = plan->places.list.items;
    for (size_t i = 0; i < plan->places.list.count; i++)
        for (size_t k = i + 1; k < plan->places.list.count && !items[i].hidden; k++)
            items[i].hidden = items[i].node->kind == PLIM_CONFIG_SCALAR &&
                              items[i].document != items[k].document &&
                              !strcmp(items[i].name, items[k].name);
}

enum plim_status plim_config_compose(struct plim_config_plan *plan, const char *select,
                                     bool *composed, struct plim_error *err)
{
    enum plim_status st = PLIM_OK;
    struct composition *c = calloc(1, sizeof(*c));
    *composed = false;
    if (!c) return plim_no_memory(err);
    c->plan = plan;
    int primary = plan->count > 1 ? primary_of(c) : -1;
    if (primary >= 0) {
        collect_overrides(c, select);
        place(c, (size_t)primary, "", 0);
    }
    if (select && strchr(select, '=') && !c->selected) {
        st = plim_fail(err, PLIM_SPEC,
                       "--select %.200s leads to none of these files, expected a group and a name of one", select);
        goto out;
    }
    if (c->count < 2) goto out;
    *composed = true;
    for (size_t i = 0; i < c->count; i++)
        PLIM_TRY(plim_config_places_add(&plan->places, &plan->files[c->order[i]].document,
                                        c->packages[c->order[i]], err));
    if (plan->places.list.count <= 20000) hide_overridden(plan);
out:
    free(c);
    return st;
}
