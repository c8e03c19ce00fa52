#define _GNU_SOURCE /* memmem() */
#include "python_names.h"
#include <ctype.h>
#include <string.h>

enum { OUTSIDE = -1 }; /* depth of a command-line default: any assignment counts before it */

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool begins_block(const struct plim_config_place *from, const struct plim_config_node *node, const char *word)
{
    return !strncmp(from->document->text + node->begin, word, strlen(word));
}

/* Returns the scope that contains the path `name` ending at `node`: its parts are compared from last to first. NULL if
 * the path differs. */
static const struct plim_config_node *scope_of(const struct plim_config_node *node, const char *name)
{
    for (size_t end = strlen(name); node; node = node->parent) {
        size_t begin = end;
        while (begin && name[begin - 1] != '.') begin--;
        if (!node->key || strlen(node->key) != end - begin || strncmp(node->key, name + begin, end - begin) != 0)
            return NULL;
        if (!begin) return node->parent;
        end = begin - 1;
    }
    return NULL;
}

static int depth_of(const struct plim_config_node *scope)
{
    int depth = 0;
    while ((scope = scope->parent)) depth++;
    return depth;
}

static bool is_around(const struct plim_config_node *scope, const struct plim_config_node *node)
{
    while (node && node != scope) node = node->parent;
    return node != NULL;
}

/* True if a line assigns the name from a parser: "args = parser.parse_args()", "opt, rest = get_args(...)". */
static bool is_parsed(const struct plim_config_document *document, const char *name, size_t length)
{
    const char *text = document->text, *end = text + document->length;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), name, length)); at += length) {
        if ((at > text && (is_letter(at[-1]) || at[-1] == '.')) || is_letter(at[length]) || at[length] == '.') continue;
        const char *stop = at + strcspn(at, "\n"), *equal = memchr(at, '=', (size_t)(stop - at));
        if (!equal || equal[1] == '=' || memchr(at, '(', (size_t)(equal - at))) continue;
        if (memmem(equal, (size_t)(stop - equal), "pars", 4) || memmem(equal, (size_t)(stop - equal), "args(", 5))
            return true;
    }
    return false;
}

static bool is_same_option(const char *key, const char *name)
{
    while (*key == '-') key++;
    while (*key && *name && (*key == *name || (*key == '-' && *name == '_'))) key++, name++;
    return !*key && !*name;
}

/* The default of add_argument("--name", default=4), or of a field of a class. */
static bool is_of_command_line(const struct plim_config_place *from, const struct plim_config_node *node)
{
    const struct plim_config_node *parent = node->parent;
    if (!parent) return false;
    if (node->renamed && node->key[0] == '-') return true;
    while (node->renamed && parent->parent && parent->layout == PLIM_CONFIG_FLOW) parent = parent->parent;
    return parent->parent && begins_block(from, parent, "class ");
}

bool plim_config_python_names(const struct plim_config_place *from, const char *name,
                              const struct plim_config_place *place, int *depth)
{
    const struct plim_config_node *node = place->node, *scope = scope_of(node, name);
    const char *dot = strchr(name, '.');
    bool variable = node->parent && node->parent->layout == PLIM_CONFIG_LINES;
    if (scope && variable && (!scope->parent || (place->document == from->document && is_around(scope, from->node)))) {
        *depth = depth_of(scope);
        return true;
    }
    *depth = OUTSIDE;
    return dot && !strchr(dot + 1, '.') && node->key && place->document == from->document &&
           is_same_option(node->key, dot + 1) && is_of_command_line(from, node) &&
           is_parsed(from->document, name, (size_t)(dot - name));
}
