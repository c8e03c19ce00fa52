#include "recognise.h"
#include "config_format.h"
#include "config_roles.h"
#include <string.h>

static bool has_format(const struct plim_config_framework *row,
                       const struct plim_config_places *places)
{
    if (!row->formats[0] || !places->list.count) return true;
    const struct plim_config_format *format = places->list.items[0].document->format;
    bool python = format->language == PLIM_CONFIG_PYTHON; /* a file or a notebook */
    for (size_t i = 0; row->formats[i]; i++)
        if (!strcmp(row->formats[i], python ? "python" : format->name)) return true;
    return false;
}

/* True if every value matches one of the row's marks. */
static bool has_only(const struct plim_config_framework *row,
                     const struct plim_config_places *places)
{
    for (size_t i = 0; i < places->list.count; i++) {
        size_t mark = 0;
        while (row->marks[mark] && !plim_config_match(row->marks[mark], places->list.items[i].name))
            mark++;
        if (!row->marks[mark]) return false;
    }
    return true;
}

static bool has_marks(const struct plim_config_framework *row,
                      const struct plim_config_places *places)
{
    if (!row->marks[0] || !has_format(row, places)) return false;
    for (size_t i = 0; row->marks[i]; i++)
        if (!plim_config_has(places, row->marks[i], row->upper)) return false;
    return !row->only || has_only(row, places);
}

enum plim_status plim_config_recognise(const struct plim_config_places *places, const char *name,
                                       const struct plim_config_framework **out,
                                       struct plim_error *err)
{
    const struct plim_config_framework *rows;
    size_t count;
    enum plim_status st = plim_config_frameworks(&rows, &count, err);
    *out = NULL;
    if (st || name) return st ? st : plim_config_framework_find(name, out, err);
    for (size_t i = 0; i < count && !*out; i++)
        if (has_marks(&rows[i], places)) *out = &rows[i];
    return PLIM_OK;
}
