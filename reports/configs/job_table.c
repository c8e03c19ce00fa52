#include "job_table.h"
#include "autotune/base/embed.h"
#include "config_roles.h"
#include <pthread.h>
#include <string.h>

extern const struct plim_embedded_file plim_jobs_data[];

static struct {
    pthread_once_t once;
    struct plim_yaml yaml; /* kept for the life of the process */
    struct plim_error err;
} table = {.once = PTHREAD_ONCE_INIT};

static void read_table(void)
{
    const struct plim_embedded_file *file = &plim_jobs_data[0];
    if (plim_yaml_read_string(file->name, file->text, file->size, &table.yaml, &table.err)) return;
}

enum plim_status plim_config_job_damaged(const struct plim_yaml_node *node, const char *what,
                                         struct plim_error *err)
{
    return plim_fail_at(err, PLIM_INTERNAL, plim_jobs_data[0].name, node->line, node->column, "%s",
                        what);
}

size_t plim_config_job_texts(const struct plim_yaml_node *node)
{
    if (!node || node->kind == PLIM_YAML_MAPPING) return 0;
    return node->kind == PLIM_YAML_SCALAR ? 1 : node->count;
}

const char *plim_config_job_text(const struct plim_yaml_node *node, size_t index)
{
    return node->kind == PLIM_YAML_SCALAR ? node->text : node->items[index]->text;
}

struct plim_config_program plim_config_job_program(const struct plim_yaml_node *names,
                                                   const struct plim_config_document *document)
{
    struct plim_config_program found = {0};
    for (size_t i = 0; i < plim_config_job_texts(names) && !found.length; i++)
        found = plim_config_program_named(document, plim_config_job_text(names, i));
    return found;
}

static bool is_row(const struct plim_yaml_node *row, const struct plim_config_framework *framework,
                   const struct plim_config_document *document, const struct plim_config_places *places)
{
    const struct plim_yaml_node *frameworks = plim_yaml_get(row, "frameworks"), *marks = plim_yaml_get(row, "marks"),
                                *names = plim_yaml_get(row, "names");
    bool is_marked = !marks || plim_config_has(places, marks->text, false) ||
                     plim_config_job_program(names, document).length;
    for (size_t k = 0; is_marked && k < plim_config_job_texts(frameworks); k++)
        if (!strcmp(plim_config_job_text(frameworks, k), framework->name)) return true;
    return false;
}

enum plim_status plim_config_job_row(const struct plim_config_framework *framework,
                                     const struct plim_config_document *document,
                                     const struct plim_config_places *places, const struct plim_yaml_node **row,
                                     struct plim_error *err)
{
    (void)pthread_once(&table.once, read_table);
    *row = NULL;
    if (table.err.status)
        return plim_fail_at(err, PLIM_INTERNAL, table.err.file, table.err.line, table.err.column, "%s", table.err.text);
    const struct plim_yaml_node *rows = plim_yaml_get(table.yaml.root, "jobs");
    for (size_t i = 0; rows && i < rows->count && !*row; i++)
        if (is_row(rows->items[i], framework, document, places)) *row = rows->items[i];
    return PLIM_OK;
}

const struct plim_yaml_node *plim_config_job_list(const struct plim_yaml_node *rule)
{
    const struct plim_yaml_node *use = plim_yaml_get(rule, "use"),
                                *lists = plim_yaml_get(table.yaml.root, "lists");
    return use && lists ? plim_yaml_get(lists, use->text) : NULL;
}
