#include "key_doc.h"

#include "autotune/base/text.h"
#include "hf_config.h"
#include "key.h"
#include <string.h>

void plim_key_doc_describe(const struct plim_key_doc *doc, char *out, size_t size)
{
    bool has_unit = doc->unit && doc->unit[0];
    snprintf(out, size, "%s%s%s%s%s%s%s", doc->expected, has_unit ? "; " : "", has_unit ? doc->unit : "",
             doc->fallback ? "; default: " : "", doc->fallback ? doc->fallback : "",
             doc->example ? "; example: " : "", doc->example ? doc->example : "");
}

size_t plim_key_doc_count(void) { return plim_spec_key_count() + PLIM_SPEC_SHORTHANDS; }

void plim_key_doc_at(size_t index, struct plim_key_doc *doc)
{
    if (index >= plim_spec_key_count()) {
        const struct plim_spec_shorthand *s = &plim_spec_shorthands[index - plim_spec_key_count()];
        *doc = (struct plim_key_doc){s->path, "", s->fallback, s->example, s->help, ""};
        snprintf(doc->expected, sizeof(doc->expected), "%s", s->expected);
        return;
    }
    const struct plim_spec_key *key = plim_spec_key_at(index);
    *doc = (struct plim_key_doc){key->path, key->unit, key->fallback, key->example, key->help, ""};
    plim_value_describe(&key->value, doc->expected, sizeof(doc->expected));
}

void plim_key_doc_of_field(enum plim_field field, struct plim_key_doc *doc)
{
    const struct plim_field_info *info = plim_field_info(field);
    *doc = (struct plim_key_doc){info->name, info->unit, NULL, NULL, info->help, ""};
    plim_value_describe(&info->value, doc->expected, sizeof(doc->expected));
}

/* Of the names of an enumeration, those that the family has. */
static void describe_names(enum plim_family family, enum plim_field field, struct plim_key_doc *doc)
{
    const struct plim_family_info *info = plim_family_info(family);
    const char *names[PLIM_TASK_COUNT + PLIM_FAMILY_MAX_TEXTS];
    size_t count = 0;
    for (int t = 0; t < PLIM_TASK_COUNT && field == PLIM_FIELD_TASK; t++)
        if (plim_family_has_task(family, (enum plim_task)t)) names[count++] = plim_task_names[t];
    for (int t = 0; t < PLIM_FAMILY_MAX_TEXTS && field == PLIM_FIELD_TEXT; t++)
        if (info->texts[t]) names[count++] = plim_family_names[info->texts[t]];
    plim_join_names(names, count, doc->expected, sizeof(doc->expected));
}

static bool is_first_of_its_name(const struct plim_family_info *info, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(info->keys[i].name, info->keys[row].name) == 0) return false;
    return true;
}

bool plim_key_doc_of_family(enum plim_family family, size_t index, struct plim_key_doc *doc)
{
    const struct plim_family_info *info = plim_family_info(family);
    for (size_t i = 0; i < info->key_count; i++) {
        const struct plim_family_key *key = &info->keys[i];
        if (!is_first_of_its_name(info, i) || index--) continue;
        const struct plim_value value = plim_family_key_value(key);
        plim_key_doc_of_field(key->field, doc);
        doc->name = key->name;
        doc->fallback = key->fallback;
        plim_value_describe(&value, doc->expected, sizeof(doc->expected));
        if (key->field == PLIM_FIELD_TASK || key->field == PLIM_FIELD_TEXT) describe_names(family, key->field, doc);
        return true;
    }
    *doc = (struct plim_key_doc){.unit = ""};
    const char *expected = plim_model_special_key(family, index, &doc->name, &doc->help);
    snprintf(doc->expected, sizeof(doc->expected), "%s", expected ? expected : "");
    return expected != NULL;
}
