#include "value_list.h"
#include "autotune/base/regex.h"
#include "lora_modules.h"

#include <string.h>

enum { PIECE_SIZE = 64 };

/* --- axes ------------------------------------------------------------------------------------- */

/* Calls `piece` for every item of a list, or for every comma-separated part of a scalar. */
typedef enum plim_status piece_fn(const struct plim_value *value, const struct plim_place *place,
                                  const struct plim_yaml_node *node, void *out);

static enum plim_status each_piece(const struct plim_value *value, const struct plim_place *place,
                                   const struct plim_yaml_node *node, const char *separators,
                                   piece_fn *piece, void *out)
{
    enum plim_status st = PLIM_OK;
    if (node->kind == PLIM_YAML_MAPPING) return plim_value_mismatch(value, place, node);
    if (node->kind == PLIM_YAML_SEQUENCE) {
        if (node->count == 0) return plim_value_mismatch(value, place, node);
        for (size_t i = 0; i < node->count && st == PLIM_OK; i++)
            st = node->items[i]->kind == PLIM_YAML_SCALAR
                     ? each_piece(value, place, node->items[i], separators, piece, out)
                     : plim_value_mismatch(value, place, node);
        return st;
    }
    const char *at = node->text;
    do {
        size_t length = strcspn(at, separators), begin = strspn(at, " "), end = length;
        while (end > begin && at[end - 1] == ' ') end--;
        char text[PIECE_SIZE];
        if (begin >= end || end - begin >= sizeof(text))
            return plim_value_mismatch(value, place, node);
        memcpy(text, at + begin, end - begin);
        text[end - begin] = '\0';
        struct plim_yaml_node part = *node;
        part.text = text;
        part.quoted = false;
        st = piece(value, place, &part, out);
        at += length;
    } while (st == PLIM_OK && *at++);
    return st;
}

static enum plim_status push_int(const struct plim_place *place, const struct plim_yaml_node *node,
                                 struct plim_int_axis *axis, int64_t number)
{
    for (size_t i = 0; i < axis->count; i++)
        if (axis->values[i] == number)
            return plim_yaml_fail(place->yaml, node, place->err,
                                  "%s%s has %lld twice, expected it once", place->prefix,
                                  place->key, (long long)number);
    if (axis->count == PLIM_MAX_CHOICES)
        return plim_yaml_fail(place->yaml, node, place->err,
                              "%s%s has too many values, expected at most %d", place->prefix,
                              place->key, PLIM_MAX_CHOICES);
    axis->values[axis->count++] = number;
    return PLIM_OK;
}

/* Reads "1024" or "512:4096:512". */
static enum plim_status push_range(const struct plim_value *value, const struct plim_place *place,
                                   const struct plim_yaml_node *node, void *out)
{
    int64_t parts[3];
    size_t count = 0;
    char text[PIECE_SIZE];
    memcpy(text, node->text, strlen(node->text) + 1);
    for (char *at = text; at && count < 3; count++) {
        char *colon = strchr(at, ':');
        if (colon) *colon = '\0';
        struct plim_yaml_node part = *node;
        part.text = at;
        if (plim_value_read_int(value,
                                &(struct plim_place){.yaml = place->yaml, .prefix = "", .key = ""},
                                &part, &parts[count]) != PLIM_OK)
            return plim_value_mismatch(value, place, node);
        at = colon ? colon + 1 : NULL;
        if (at && count == 2) return plim_value_mismatch(value, place, node);
    }
    if (count == 1) return push_int(place, node, out, parts[0]);
    if (count != 3 || parts[1] < parts[0]) return plim_value_mismatch(value, place, node);

    enum plim_status st = PLIM_OK;
    for (int64_t at = parts[0]; at <= parts[1] && st == PLIM_OK; at += parts[2])
        st = push_int(place, node, out, at);
    return st;
}

enum plim_status plim_value_read_int_axis(const struct plim_value *value,
                                          const struct plim_place *place,
                                          const struct plim_yaml_node *node, void *out)
{
    struct plim_int_axis axis = {0};
    enum plim_status st = each_piece(value, place, node, ",", push_range, &axis);
    if (st == PLIM_OK) *(struct plim_int_axis *)out = axis;
    return st;
}

static enum plim_status push_name(const struct plim_value *value, const struct plim_place *place,
                                  const struct plim_yaml_node *node, void *out)
{
    struct plim_enum_axis *axis = out;
    int index = plim_value_name_index(value, node->text);
    if (index < 0) return plim_value_mismatch(value, place, node);
    for (size_t i = 0; i < axis->count; i++)
        if (axis->values[i] == index)
            return plim_yaml_fail(place->yaml, node, place->err,
                                  "%s%s has %s twice, expected it once", place->prefix, place->key,
                                  node->text);
    axis->values[axis->count++] = index; /* cannot overflow, as there are no duplicates */
    return PLIM_OK;
}

enum plim_status plim_value_read_enum_axis(const struct plim_value *value,
                                           const struct plim_place *place,
                                           const struct plim_yaml_node *node, void *out)
{
    struct plim_enum_axis axis = {0};
    enum plim_status st = each_piece(value, place, node, ",", push_name, &axis);
    if (st == PLIM_OK) *(struct plim_enum_axis *)out = axis;
    return st;
}

/* --- the accumulation schedule and LoRA's modules --------------------------------------------- */

enum plim_status plim_value_read_schedule(const struct plim_value *value,
                                          const struct plim_place *place,
                                          const struct plim_yaml_node *node, void *out)
{
    struct plim_spec *spec = out;
    struct plim_phase phases[PLIM_MAX_PHASES];
    size_t count = 0;
    const struct plim_value epochs = {
        .type = PLIM_VALUE_INT, .minimum = 0, .maximum = value->maximum};
    const struct plim_value factors = {
        .type = PLIM_VALUE_INT, .minimum = 1, .maximum = value->maximum};
    enum plim_status st = PLIM_OK;

    if (node->kind != PLIM_YAML_MAPPING || node->count == 0)
        return plim_value_mismatch(value, place, node);
    for (size_t i = 0; i < node->count && st == PLIM_OK; i++) {
        struct plim_phase phase;
        st = plim_value_read_int(&epochs, place, node->keys[i], &phase.epoch);
        if (st == PLIM_OK)
            st = plim_value_read_int(&factors, place, node->items[i], &phase.accumulation);
        if (st != PLIM_OK) return st;
        /* As Lightning's GradientAccumulationScheduler: until the first epoch named, 1. */
        if (i == 0 && phase.epoch > 0)
            phases[count++] = (struct plim_phase){.epoch = 0, .accumulation = 1};
        if (count == PLIM_MAX_PHASES)
            return plim_yaml_fail(place->yaml, node, place->err,
                                  "%s%s has too many phases, expected at most %d", place->prefix,
                                  place->key, PLIM_MAX_PHASES);
        if (count > 0 && phase.epoch <= phases[count - 1].epoch)
            return plim_yaml_fail(
                place->yaml, node->keys[i], place->err,
                "%s%s has epoch %lld behind epoch %lld, expected increasing epochs", place->prefix,
                place->key, (long long)phase.epoch, (long long)phases[count - 1].epoch);
        phases[count++] = phase;
    }
    memcpy(spec->schedule, phases, count * sizeof(phases[0]));
    spec->schedule_count = count;
    return PLIM_OK;
}

static bool is_module_name(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] == '\0';
}

static enum plim_status push_module(const struct plim_value *value, const struct plim_place *place,
                                    const struct plim_yaml_node *node, void *out)
{
    char *modules = out;
    if (!is_module_name(node->text)) return plim_value_mismatch(value, place, node);
    if (plim_modules_has(modules, node->text))
        return plim_yaml_fail(place->yaml, node, place->err, "%s%s has %s twice, expected it once", place->prefix,
                              place->key, node->text);
    return plim_modules_add(modules, node->text) ? PLIM_OK : plim_value_mismatch(value, place, node);
}

static enum plim_status check_regex(const struct plim_place *place, const struct plim_yaml_node *node,
                                    const char *regex)
{
    const char *why = plim_regex_refuses(regex);
    if (!why) return PLIM_OK;
    return plim_yaml_fail(place->yaml, node, place->err, "%s%s has '%.200s', which is not read here: %s, expected a "
                          "regular expression without it", place->prefix, place->key, regex, why);
}

enum plim_status plim_value_read_modules(const struct plim_value *value, const struct plim_place *place,
                                         const struct plim_yaml_node *node, void *out)
{
    char modules[PLIM_MODULES_TEXT] = "";
    bool is_regex = node->kind == PLIM_YAML_SCALAR && plim_modules_is_regex(node->text);
    enum plim_status st;
    if (is_regex && strlen(node->text) >= sizeof(modules)) return plim_value_mismatch(value, place, node);
    if (is_regex) {
        st = check_regex(place, node, node->text + strlen(PLIM_MODULES_REGEX));
        snprintf(modules, sizeof(modules), "%s", node->text);
    } else {
        st = each_piece(value, place, node, "+,", push_module, modules);
    }
    if (st == PLIM_OK) memcpy(out, modules, sizeof(modules));
    return st;
}

enum plim_status plim_value_read_ranks(const struct plim_value *value, const struct plim_place *place,
                                       const struct plim_yaml_node *node, void *out)
{
    struct plim_lora *lora = out;
    struct plim_lora_rank ranks[PLIM_LORA_RANKS];
    const struct plim_value rank = {.type = PLIM_VALUE_INT, .minimum = 1, .maximum = 1 << 16};
    enum plim_status st = PLIM_OK;
    if (node->kind != PLIM_YAML_MAPPING || node->count == 0 || node->count > PLIM_LORA_RANKS)
        return plim_value_mismatch(value, place, node);
    for (size_t i = 0; i < node->count && !st; i++) {
        const char *regex = node->keys[i]->text;
        if (strlen(regex) >= sizeof(ranks[i].regex)) return plim_value_mismatch(value, place, node);
        snprintf(ranks[i].regex, sizeof(ranks[i].regex), "%s", regex);
        st = check_regex(place, node->keys[i], regex);
        if (!st) st = plim_value_read_int(&rank, place, node->items[i], &ranks[i].r);
    }
    if (st) return st;
    memcpy(lora->ranks, ranks, node->count * sizeof(ranks[0]));
    lora->rank_count = node->count;
    return PLIM_OK;
}
