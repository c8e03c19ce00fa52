#include "value_list.h"

#include <string.h>

enum { PIECE_SIZE = 64 };

/* --- axes ------------------------------------------------------------------------------------- */

/* Calls `piece` for every item of a list, or every part between commas of a scalar. */
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

/* "1024" or "512:4096:512" */
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
    axis->values[axis->count++] = index; /* without duplicates it cannot overflow */
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

/* --- the accumulation schedule and LoRA's targets --------------------------------------------- */

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

static enum plim_status push_target(const struct plim_value *value, const struct plim_place *place,
                                    const struct plim_yaml_node *node, void *out)
{
    struct plim_lora *lora = out;
    if (lora->target_count == PLIM_LORA_TARGETS || strlen(node->text) >= sizeof(lora->targets[0]))
        return plim_value_mismatch(value, place, node);
    for (size_t i = 0; i < lora->target_count; i++)
        if (strcmp(lora->targets[i], node->text) == 0)
            return plim_yaml_fail(place->yaml, node, place->err,
                                  "%s%s has %s twice, expected it once", place->prefix, place->key,
                                  node->text);
    memcpy(lora->targets[lora->target_count++], node->text, strlen(node->text) + 1);
    return PLIM_OK;
}

enum plim_status plim_value_read_targets(const struct plim_value *value,
                                         const struct plim_place *place,
                                         const struct plim_yaml_node *node, void *out)
{
    struct plim_lora *lora = out, targets = *lora;
    targets.target_count = 0;
    enum plim_status st = each_piece(value, place, node, "+,", push_target, &targets);
    if (st == PLIM_OK) *lora = targets;
    return st;
}
