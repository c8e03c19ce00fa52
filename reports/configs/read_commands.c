/* Reads commands that are values of another file: texts in YAML ("args: train.py --batch-size 4", "run: |"), and the
 * shell commands of a notebook. */
#define _GNU_SOURCE /* memmem() */
#include "config_format.h"
#include "config_value.h"
#include <string.h>

/* True if a variable gives a size of the command, so that its value is unknown. */
static bool has_variable_size(const struct plim_config_node *node)
{
    bool found = node->key && node->text && (plim_config_names_size(node->key) || strstr(node->key, "accum")) &&
                 strpbrk(node->text, "${");
    for (const struct plim_config_node *member = node->first; member && !found; member = member->next)
        found = has_variable_size(member);
    return found;
}

/* True for a text without escapes, anchor and tag that has options which are sizes. */
static bool is_command(const struct plim_config_document *document, const struct plim_config_node *node)
{
    const char *text = node->kind == PLIM_CONFIG_SCALAR ? node->text : NULL;
    size_t length = node->end - node->begin;
    if (!text || !plim_config_names_size(text) || !strpbrk(text, " =")) return false;
    const char *bytes = document->text + node->begin;
    bool escaped = node->style == PLIM_CONFIG_QUOTED &&
                   (memchr(bytes, '\\', length) || memmem(bytes + 1, length - 1, "''", 2));
    return !escaped && !node->anchor && !node->tag;
}

static enum plim_status read_value(struct plim_config_document *document, struct plim_config_node *node)
{
    struct plim_error ignored = PLIM_ERROR_INIT;
    struct plim_config_script inside = {node->begin, node->end};
    char first = document->text[node->begin];
    if (node->style == PLIM_CONFIG_QUOTED) inside.begin++, inside.end--;
    if (node->style == PLIM_CONFIG_BLOCK) inside.begin = plim_config_line_end(document, node->begin);
    if (node->style == PLIM_CONFIG_BLOCK && first == '|')
        return plim_config_read_script(document, node, inside, &ignored);
    return plim_config_read_words(document, node, inside, node->style == PLIM_CONFIG_QUOTED ? first : '\0', &ignored);
}

static bool read_below(struct plim_config_document *document, struct plim_config_node *node)
{
    bool found = false;
    for (struct plim_config_node *member = node->first; member; member = member->next)
        found |= read_below(document, member);
    if (!is_command(document, node)) return found;
    node->kind = PLIM_CONFIG_MAPPING;
    if (!read_value(document, node) && !has_variable_size(node)) return true;
    node->kind = PLIM_CONFIG_SCALAR;
    node->first = node->last = NULL;
    return found;
}

/* Reads a shell command of a notebook as a mapping beside the nodes of its program. False if it has no size. */
static bool read_script(struct plim_config_document *document, struct plim_config_script part)
{
    struct plim_error ignored = PLIM_ERROR_INIT;
    struct plim_config_node *node;
    const char *found = plim_config_names_size(document->text + part.begin);
    if (!found || found >= document->text + part.end) return false;
    if (plim_config_node_add(document, document->root, PLIM_CONFIG_MAPPING, part.begin, &node, &ignored)) return false;
    if (!plim_config_read_script(document, node, part, &ignored) && !has_variable_size(node)) return true;
    node->first = node->last = NULL;
    return false;
}

bool plim_config_read_commands(struct plim_config_document *document)
{
    struct plim_error ignored = PLIM_ERROR_INIT;
    if (document->commands) return false;
    if (!strcmp(document->format->name, "yaml")) document->commands = read_below(document, document->root);
    for (size_t i = 0; i < document->scripts.count; i++)
        document->commands |= read_script(document, document->scripts.items[i]);
    return document->commands && !plim_config_finish_nodes(document, document->root, &ignored);
}
