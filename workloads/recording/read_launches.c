/* Reads the launches of a stream, which are untrusted. */
#include "reader.h"

static bool takes(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length)) return false;
    *at += length;
    return true;
}

/* Reads a name that ends before a "." or ":". Returns its index, or -1 if it is none of the `count` names. */
static int read_name(const char **at, const char *const *names, int count)
{
    size_t length = strcspn(*at, ".:");
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && !strncmp(*at, names[i], length)) {
            *at += length;
            return i;
        }
    return -1;
}

static int read_kind(const char **at)
{
    const char *names[PLIM_COST_KINDS];
    for (int i = 0; i < PLIM_COST_KINDS; i++) names[i] = plim_cost_rows[i].name;
    return read_name(at, names, PLIM_COST_KINDS);
}

static bool read_launch(const char *at, size_t sizes, struct plim_cost *out)
{
    int kind = read_kind(&at), type = 0;
    if (kind < 0) return false;
    const struct plim_cost_row *row = &plim_cost_rows[kind];
    if (row->is_typed) type = takes(&at, ".") ? read_name(&at, plim_cost_types, PLIM_COST_TYPES) : -1;
    if (type < 0) return false;
    *out = (struct plim_cost){.kind = (uint8_t)kind, .type = (uint8_t)type};
    for (int i = 0; i < row->numbers; i++)
        if (!takes(&at, i ? "," : ":") || !plim_reader_number(&at, &out->number[i]) ||
            (uint64_t)out->number[i] >= sizes)
            return false;
    out->causal = takes(&at, " causal");
    out->in_autograd = takes(&at, " autograd");
    out->in_graph = takes(&at, " graph");
    return !*at;
}

static enum plim_status read_launch_list(const struct plim_reader *r,
                                         const struct plim_yaml_node *list,
                                         struct plim_recorded_stream *stream)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct plim_yaml_node *item = list->items[i];
        struct plim_cost cost;
        if (item->kind != PLIM_YAML_SCALAR || !read_launch(item->text, stream->sizes.count, &cost))
            return plim_yaml_fail(&r->yaml, item, r->err,
                                  "expected a launch such as matmul.bf16:0,1,2,3,4,5 or "
                                  "\"move:0 autograd\", with numbers in range");
        if (PLIM_ARRAY_PUSH(&stream->launches, cost) != PLIM_OK) return plim_reader_no_memory(r);
    }
    return PLIM_OK;
}

static enum plim_status read_work(const struct plim_reader *r, const struct plim_yaml_node *node,
                                  struct plim_recorded_stream *stream)
{
    struct plim_recorded_work work = {.first = stream->launched.count};
    const char *at = node->kind == PLIM_YAML_SCALAR ? node->text : "";
    do {
        int64_t launch;
        if (!plim_reader_number(&at, &launch) || (uint64_t)launch >= stream->launches.count)
            return plim_yaml_fail(&r->yaml, node, r->err,
                                  "expected numbers of launches, at \"%.12s\"", at);
        if (PLIM_ARRAY_PUSH(&stream->launched, (uint32_t)launch) != PLIM_OK)
            return plim_reader_no_memory(r);
        work.count++;
    } while (takes(&at, " "));
    if (*at)
        return plim_yaml_fail(&r->yaml, node, r->err, "expected numbers of launches, at \"%.12s\"",
                              at);
    return PLIM_ARRAY_PUSH(&stream->works, work) == PLIM_OK ? PLIM_OK : plim_reader_no_memory(r);
}

/* Versions before 3 had neither launches nor work. */
enum plim_status plim_reader_launches(const struct plim_reader *r,
                                      const struct plim_yaml_node *mapping,
                                      struct plim_recorded_stream *stream)
{
    const struct plim_yaml_node *launches, *works;
    if (!plim_yaml_get(mapping, "launches") && !plim_yaml_get(mapping, "work")) return PLIM_OK;
    enum plim_status st = plim_reader_get(r, mapping, "launches", PLIM_YAML_SEQUENCE, &launches);
    if (!st) st = plim_reader_get(r, mapping, "work", PLIM_YAML_SEQUENCE, &works);
    if (!st) st = read_launch_list(r, launches, stream);
    for (size_t i = 0; !st && i < works->count; i++) st = read_work(r, works->items[i], stream);
    return st;
}
