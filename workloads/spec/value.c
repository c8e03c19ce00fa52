#include "value.h"
#include "autotune/base/text.h"
#include "value_list.h"

#include <string.h>

enum { EXPECTED_SIZE = 2400 };

/* --- messages --------------------------------------------------------------------------------- */

/* Writes the document's text at `node`, short enough for a message. */
static void describe_node(const struct plim_yaml_node *node, char *out, size_t size)
{
    static const char *const kinds[] = {
        [PLIM_YAML_SEQUENCE] = "a list", [PLIM_YAML_MAPPING] = "a mapping"};
    if (node->kind != PLIM_YAML_SCALAR)
        snprintf(out, size, "%s", kinds[node->kind]);
    else if (plim_yaml_is_null(node))
        snprintf(out, size, "null");
    else
        snprintf(out, size, "'%.40s'%s", node->text, strlen(node->text) > 40 ? "..." : "");
}

enum plim_status plim_value_refuse(const struct plim_place *place,
                                   const struct plim_yaml_node *node, const char *expected)
{
    char got[64];
    describe_node(node, got, sizeof(got));
    return plim_yaml_fail(place->yaml, node, place->err, "%s%s is %s, expected %s", place->prefix,
                          place->key, got, expected);
}

enum plim_status plim_value_mismatch(const struct plim_value *value, const struct plim_place *place,
                                     const struct plim_yaml_node *node)
{
    char expected[EXPECTED_SIZE];
    plim_value_describe(value, expected, sizeof(expected));
    return plim_value_refuse(place, node, expected);
}

void plim_value_describe(const struct plim_value *value, char *out, size_t size)
{
    char or_null[32] = "";
    if (value->nullable) snprintf(or_null, sizeof(or_null), ", or %.20s", value->null_word ? value->null_word : "null");
    char names[EXPECTED_SIZE / 2] = "";
    plim_join_names(value->names, value->name_count, names, sizeof(names));
    switch (value->type) {
    case PLIM_VALUE_INT:
        snprintf(out, size, "an integer from %.0f to %.0f%s", value->minimum, value->maximum,
                 or_null);
        break;
    case PLIM_VALUE_NUMBER:
        snprintf(out, size, "a number from %g to %g%s", value->minimum, value->maximum, or_null);
        break;
    case PLIM_VALUE_SHARE:
        snprintf(out, size, "a share such as 2%% or 0.02, from %g to %g%s", value->minimum,
                 value->maximum, or_null);
        break;
    case PLIM_VALUE_BOOL:
        snprintf(out, size, "true or false%s", or_null);
        break;
    case PLIM_VALUE_ENUM:
        snprintf(out, size, "%s%s", names, or_null);
        break;
    case PLIM_VALUE_TEXT:
        snprintf(out, size, "a text of at most %.0f characters%s", value->maximum, or_null);
        break;
    case PLIM_VALUE_INT_AXIS:
        snprintf(out, size,
                 "integers from %.0f to %.0f: one, a list, or a range such as 512:4096:512%s",
                 value->minimum, value->maximum, or_null);
        break;
    case PLIM_VALUE_ENUM_AXIS:
        snprintf(out, size, "%s, or a list of them%s", names, or_null);
        break;
    case PLIM_VALUE_SCHEDULE:
        snprintf(out, size, "a mapping from epoch to accumulation such as {0: 4, 4: 2, 8: 1}%s",
                 or_null);
        break;
    case PLIM_VALUE_MODULES:
        snprintf(out, size, "module names such as [q_proj, v_proj], or a regular expression such as 're:.*_proj'%s",
                 or_null);
        break;
    case PLIM_VALUE_RANKS:
        snprintf(out, size, "a mapping from the end of names, or a regular expression for it, to a rank such as "
                            "{v_proj: 32}%s", or_null);
        break;
    case PLIM_VALUE_TYPE_COUNT:
        break;
    }
}

/* --- scalars ---------------------------------------------------------------------------------- */

enum plim_status plim_value_read_int(const struct plim_value *value, const struct plim_place *place,
                                     const struct plim_yaml_node *node, void *out)
{
    int64_t number;
    if (plim_yaml_int(place->yaml, node, &number, NULL) != PLIM_OK ||
        number < (int64_t)value->minimum || number > (int64_t)value->maximum)
        return plim_value_mismatch(value, place, node);
    *(int64_t *)out = number;
    return PLIM_OK;
}

static enum plim_status read_number(const struct plim_value *value, const struct plim_place *place,
                                    const struct plim_yaml_node *node, void *out)
{
    double number;
    if (plim_yaml_number(place->yaml, node, &number, NULL) != PLIM_OK ||
        !(number >= value->minimum && number <= value->maximum))
        return plim_value_mismatch(value, place, node);
    *(double *)out = number == 0 ? 0 : number; /* a negative zero would change the hash */
    return PLIM_OK;
}

static enum plim_status read_share(const struct plim_value *value, const struct plim_place *place,
                                   const struct plim_yaml_node *node, void *out)
{
    char text[64];
    size_t length = node->kind == PLIM_YAML_SCALAR ? strlen(node->text) : 0;
    if (length == 0 || length >= sizeof(text) || node->text[length - 1] != '%')
        return read_number(value, place, node, out);

    memcpy(text, node->text, length - 1);
    text[length - 1] = '\0';
    struct plim_yaml_node percents = *node;
    percents.text = text;
    percents.quoted = false;
    double number;
    if (plim_yaml_number(place->yaml, &percents, &number, NULL) != PLIM_OK ||
        !(number / 100 >= value->minimum && number / 100 <= value->maximum))
        return plim_value_mismatch(value, place, node);
    *(double *)out = number == 0 ? 0 : number / 100;
    return PLIM_OK;
}

static enum plim_status read_bool(const struct plim_value *value, const struct plim_place *place,
                                  const struct plim_yaml_node *node, void *out)
{
    bool flag;
    if (plim_yaml_bool(place->yaml, node, &flag, NULL) != PLIM_OK)
        return plim_value_mismatch(value, place, node);
    *(bool *)out = flag;
    return PLIM_OK;
}

int plim_value_name_index(const struct plim_value *value, const char *text)
{
    for (size_t i = 0; i < value->name_count; i++)
        if (strcmp(value->names[i], text) == 0) return (int)i;
    return -1;
}

static enum plim_status read_enum(const struct plim_value *value, const struct plim_place *place,
                                  const struct plim_yaml_node *node, void *out)
{
    int index = node->kind == PLIM_YAML_SCALAR ? plim_value_name_index(value, node->text) : -1;
    if (index < 0) return plim_value_mismatch(value, place, node);
    memcpy(out, &index, sizeof(index)); /* an enum type is not aliased by int everywhere */
    return PLIM_OK;
}

static enum plim_status read_text(const struct plim_value *value, const struct plim_place *place,
                                  const struct plim_yaml_node *node, void *out)
{
    if (node->kind != PLIM_YAML_SCALAR || strlen(node->text) > (size_t)value->maximum)
        return plim_value_mismatch(value, place, node);
    for (const char *at = node->text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return plim_value_mismatch(value, place, node);
    memcpy(out, node->text, strlen(node->text) + 1);
    return PLIM_OK;
}

/* --- null ------------------------------------------------------------------------------------- */

bool plim_value_is_null(const struct plim_value *value, const void *in)
{
    if (!value->nullable) return false;
    switch (value->type) {
    case PLIM_VALUE_INT: return *(const int64_t *)in == value->null_value;
    case PLIM_VALUE_NUMBER:
    case PLIM_VALUE_SHARE: return *(const double *)in == (double)value->null_value;
    case PLIM_VALUE_TEXT:
    case PLIM_VALUE_MODULES: return *(const char *)in == '\0';
    case PLIM_VALUE_INT_AXIS: return ((const struct plim_int_axis *)in)->count == 0;
    case PLIM_VALUE_ENUM_AXIS: return ((const struct plim_enum_axis *)in)->count == 0;
    case PLIM_VALUE_SCHEDULE: return ((const struct plim_spec *)in)->schedule_count == 0;
    case PLIM_VALUE_RANKS: return ((const struct plim_lora *)in)->rank_count == 0;
    default: return false;
    }
}

static void set_null(const struct plim_value *value, void *out)
{
    switch (value->type) {
    case PLIM_VALUE_INT: *(int64_t *)out = value->null_value; break;
    case PLIM_VALUE_NUMBER:
    case PLIM_VALUE_SHARE: *(double *)out = (double)value->null_value; break;
    case PLIM_VALUE_TEXT:
    case PLIM_VALUE_MODULES: *(char *)out = '\0'; break;
    case PLIM_VALUE_INT_AXIS: *(struct plim_int_axis *)out = (struct plim_int_axis){0}; break;
    case PLIM_VALUE_ENUM_AXIS: *(struct plim_enum_axis *)out = (struct plim_enum_axis){0}; break;
    case PLIM_VALUE_SCHEDULE: ((struct plim_spec *)out)->schedule_count = 0; break;
    case PLIM_VALUE_RANKS: ((struct plim_lora *)out)->rank_count = 0; break;
    default: break;
    }
}

enum plim_status plim_value_read(const struct plim_value *value, const struct plim_place *place,
                                 const struct plim_yaml_node *node, void *out)
{
    static plim_value_read_fn *const readers[PLIM_VALUE_TYPE_COUNT] = {
        [PLIM_VALUE_INT] = plim_value_read_int,
        [PLIM_VALUE_NUMBER] = read_number,
        [PLIM_VALUE_SHARE] = read_share,
        [PLIM_VALUE_BOOL] = read_bool,
        [PLIM_VALUE_ENUM] = read_enum,
        [PLIM_VALUE_TEXT] = read_text,
        [PLIM_VALUE_INT_AXIS] = plim_value_read_int_axis,
        [PLIM_VALUE_ENUM_AXIS] = plim_value_read_enum_axis,
        [PLIM_VALUE_SCHEDULE] = plim_value_read_schedule,
        [PLIM_VALUE_MODULES] = plim_value_read_modules,
        [PLIM_VALUE_RANKS] = plim_value_read_ranks,
    };
    bool is_word = value->null_word && node->kind == PLIM_YAML_SCALAR && !strcmp(node->text, value->null_word);
    if (plim_yaml_is_null(node) || is_word) {
        if (!value->nullable) return plim_value_mismatch(value, place, node);
        set_null(value, out);
        return PLIM_OK;
    }
    return readers[value->type](value, place, node, out);
}
