#include "measured.h"
#include "autotune/base/outfile.h"
#include "autotune/base/textfile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool plim_measured_path(const struct plim_store *store, const char *folder,
                        const struct plim_facts *facts, char path[PATH_MAX])
{
    char hash[PLIM_SHA256_TEXT];
    if (!store->count || store->places[0].is_site || facts->failed) return false;
    plim_facts_hash(facts, hash);
    return snprintf(path, PATH_MAX, "%s/%s/%.*s", store->places[0].path, folder, PLIM_STORE_ID,
                    hash) < PATH_MAX;
}

bool plim_measured_read(const char *path, char line[PLIM_MEASURED_TEXT])
{
    char *text = NULL;
    size_t length;
    if (plim_textfile_read(path, PLIM_MEASURED_TEXT, &text, &length, NULL) != PLIM_OK) return false;
    bool is_line = length > 1 && length == strcspn(text, "\n") + 1 && length <= PLIM_MEASURED_TEXT;
    if (is_line) snprintf(line, PLIM_MEASURED_TEXT, "%.*s", (int)length - 1, text);
    free(text);
    return is_line;
}

enum plim_status plim_measured_write(const char *path, const char *line, struct plim_error *err)
{
    char text[PLIM_MEASURED_TEXT + 1];
    enum plim_status st = plim_outfile_create_folders(path, err);
    snprintf(text, sizeof(text), "%s\n", line);
    return st ? st : plim_outfile_save(path, text, err);
}
