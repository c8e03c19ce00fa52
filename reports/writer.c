#include "writer.h"
#include <string.h>
#include <strings.h>

static const struct plim_writer *const writers[] = {&plim_writer_json, &plim_writer_yaml,
                                                    &plim_writer_text, &plim_writer_csv,
                                                    &plim_writer_markdown, &plim_writer_html,
                                                    &plim_writer_svg, &plim_writer_png};

static bool writes_extension(const struct plim_writer *writer, const char *extension)
{
    for (const char *const *e = writer->extensions; *e; e++)
        if (!strcasecmp(*e, extension)) return true;
    return false;
}

enum plim_status plim_writer_for_path(const char *path, const struct plim_writer **out,
                                      struct plim_error *err)
{
    *out = NULL;
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof(writers) / sizeof(writers[0]); i++) {
        if (writes_extension(writers[i], dot + 1)) {
            *out = writers[i];
            return PLIM_OK;
        }
    }
    return plim_fail(err, PLIM_INVALID,
                     "%s: no report format goes with this name (known: .json, .yaml, .yml, .txt, "
                     ".csv, .md, .html, .svg, .png)",
                     path);
}
