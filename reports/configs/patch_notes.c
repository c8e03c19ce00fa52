#include "patch_notes.h"
#include "config_format.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

void plim_config_note(struct plim_config_plan *plan, const char *fmt, ...)
{
    va_list arguments;
    if (!plan->notes_file) return;
    va_start(arguments, fmt);
    vfprintf(plan->notes_file, fmt, arguments);
    va_end(arguments);
    fputc('\n', plan->notes_file);
}

/* --- values that follow an edited one --------------------------------------------------------- */

static void note_follower(struct plim_config_plan *plan, const struct plim_config_edit *edit,
                          const struct plim_config_place *place)
{
    plim_config_note(plan, "%s:%d: %s follows %s%s", place->document->source, place->node->key_line,
                     place->path, edit->path,
                     plim_config_is_evaluation(place->name) ? ": the evaluation batch changes too"
                                                            : "");
}

/* Notes the aliases of an edited value, and the texts that refer to its path. */
static void note_followers(struct plim_config_plan *plan, const struct plim_config_edit *edit)
{
    const struct plim_config_place *own = NULL;
    for (size_t i = 0; i < plan->places.list.count; i++)
        if (plan->places.list.items[i].node == edit->node) own = &plan->places.list.items[i];
    for (size_t i = 0; own && i < plan->places.list.count; i++) {
        const struct plim_config_place *place = &plan->places.list.items[i];
        const struct plim_config_node *node = place->node;
        if (place->document != own->document || node == edit->node) continue;
        bool text = node->kind == PLIM_CONFIG_SCALAR && !node->target && node->text &&
                    node->style != PLIM_CONFIG_BLOCK && strpbrk(node->text, "$<%{") &&
                    plim_config_mentions(node->text, own->name);
        if (text && !strcmp(place->path, own->path)) continue; /* the variable itself, as in NAME=${NAME:-4} */
        if (node->target == edit->node || text) note_follower(plan, edit, place);
    }
}

/* --- what the edits may have made wrong ------------------------------------------------------- */

/* Notes a comment after an edited value if it contains a digit. */
static void note_comment(struct plim_config_plan *plan, const struct plim_config_file *file,
                         const struct plim_config_edit *edit)
{
    const struct plim_config_document *document = &file->document;
    if (!edit->old) return;
    size_t end = plim_config_line_end(document, edit->end);
    const char *text = document->text + edit->end;
    size_t length = end - edit->end, mark = 0;
    while (mark < length && text[mark] != '#' && text[mark] != ';' &&
           !(text[mark] == '/' && text[mark + 1] == '/'))
        mark++;
    for (size_t i = mark; i < length; i++)
        if (text[i] >= '0' && text[i] <= '9') {
            plim_config_note(plan, "%s:%d: the comment after %s may no longer be true: %.*s",
                             file->path, edit->line, edit->path, (int)(length - mark), text + mark);
            return;
        }
}

static bool is_rate(const struct plim_config_place *place, const char *const *patterns)
{
    for (; *patterns; patterns++)
        if (plim_config_match(*patterns, place->name)) return true;
    return false;
}

static void note_rates(struct plim_config_plan *plan, int64_t before, int64_t after)
{
    if (!before || before == after) return;
    for (size_t i = 0; i < plan->places.list.count; i++) {
        const struct plim_config_place *place = &plan->places.list.items[i];
        if (place->hidden || place->node->kind != PLIM_CONFIG_SCALAR) continue;
        if (!is_rate(place, plim_config_common()->rates)) continue;
        plim_config_note(plan,
                         "%s:%d: %s was chosen for %" PRId64
                         " samples a step and GPU, which are %" PRId64 " now",
                         place->document->source, place->node->key_line, place->path, before,
                         after);
        return;
    }
}

static bool holds_checkpoint(const char *folder)
{
    DIR *directory = opendir(folder);
    bool found = false;
    for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
        const char *name = entry->d_name, *dot = strrchr(name, '.');
        found = strstr(name, "checkpoint") || !strncmp(name, "epoch", 5) ||
                !strcmp(name, "latest") ||
                (dot && (!strcmp(dot, ".ckpt") || !strcmp(dot, ".pt") || !strcmp(dot, ".pth") ||
                         !strcmp(dot, ".distcp")));
    }
    if (directory) closedir(directory);
    return found;
}

/* Notes an output folder that holds checkpoints: a run resumed from them would continue with other sizes. */
static void note_checkpoints(struct plim_config_plan *plan)
{
    char folder[1024];
    for (const char *const *pattern = plim_config_common()->outputs; *pattern; pattern++)
        for (size_t i = 0; i < plan->places.list.count; i++) {
            const struct plim_config_place *place = &plan->places.list.items[i];
            const struct plim_config_node *node = plim_config_node_of(place);
            const char *source = place->document->source, *slash = strrchr(source, '/');
            if (node->kind != PLIM_CONFIG_SCALAR || !node->text || !*node->text ||
                !plim_config_match(*pattern, place->name))
                continue;
            bool found = holds_checkpoint(node->text);
            if (!found && slash && node->text[0] != '/') {
                snprintf(folder, sizeof(folder), "%.*s/%s", (int)(slash - source), source,
                         node->text);
                found = holds_checkpoint(folder);
            }
            if (found)
                plim_config_note(plan,
                                 "%s:%d: %s holds checkpoints: a run that is resumed from them "
                                 "goes on with other sizes",
                                 source, place->node->key_line, node->text);
            if (found) return;
        }
}

/* Notes keys that occur twice. */
static void note_repetitions(struct plim_config_plan *plan)
{
    for (size_t i = 0; i < plan->places.list.count; i++) {
        const struct plim_config_place *place = &plan->places.list.items[i];
        bool script = place->document->format->language == PLIM_CONFIG_SHELL ||
                      place->document->format->language == PLIM_CONFIG_PYTHON;
        if (!place->node->again || place->merged || script || !place->node->key) continue;
        plim_config_note(plan, "%s:%d: %s occurs twice (most readers use the last)",
                         place->document->source, place->node->key_line, place->path);
    }
}

static void note_automatic(struct plim_config_plan *plan)
{
    static const char *const patterns[] = {"**.auto_find_batch_size", "**.auto_scale_batch_size",
                                           NULL};
    const struct plim_config_place *place = plim_config_first(&plan->places, patterns);
    const struct plim_config_node *node = place ? plim_config_node_of(place) : NULL;
    if (!node || !node->text || !*node->text || !strcasecmp(node->text, "false")) return;
    plim_config_note(plan, "%s:%d: %s may change the batch while training", place->document->source,
                     place->node->key_line, place->path);
}

void plim_config_notes(struct plim_config_plan *plan, const struct plim_config_framework *framework,
                       int64_t before, int64_t after)
{
    bool edits = false;
    for (size_t i = 0; i < plan->count; i++)
        for (size_t k = 0; k < plan->files[i].edits.count; k++) {
            const struct plim_config_edit *edit = &plan->files[i].edits.items[k];
            bool here = false;
            for (size_t n = 0; n < plan->places.list.count && !here; n++)
                here = plan->places.list.items[n].document == &plan->files[i].document;
            if (!here) continue;
            edits = true;
            if (edit->node) note_followers(plan, edit);
            note_comment(plan, &plan->files[i], edit);
        }
    if (!edits) return;
    note_rates(plan, before, after);
    note_checkpoints(plan);
    note_repetitions(plan);
    note_automatic(plan);
    if (framework->warning) plim_config_note(plan, "%s: %s", framework->title, framework->warning);
}
