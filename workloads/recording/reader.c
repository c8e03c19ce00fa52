#include "reader.h"

enum plim_status plim_reader_no_memory(const struct plim_reader *r)
{
    return plim_no_memory(r->err);
}

enum plim_status plim_reader_get(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                            const char *key, enum plim_yaml_kind kind,
                            const struct plim_yaml_node **out)
{
    static const char *const kinds[] = {"a value", "a list", "a mapping"};
    *out = plim_yaml_get(mapping, key);
    if (!*out)
        return plim_yaml_fail(&r->yaml, mapping, r->err, "%s is missing: not a whole recording",
                              key);
    if ((*out)->kind != kind)
        return plim_yaml_fail(&r->yaml, *out, r->err, "%s: expected %s", key, kinds[kind]);
    return PLIM_OK;
}

enum plim_status plim_reader_int(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                const char *key, int64_t least, int64_t most, int64_t *out)
{
    const struct plim_yaml_node *node;
    enum plim_status st = plim_reader_get(r, mapping, key, PLIM_YAML_SCALAR, &node);
    if (!st) st = plim_yaml_int(&r->yaml, node, out, r->err);
    if (st || (*out >= least && *out <= most)) return st;
    return plim_yaml_fail(&r->yaml, node, r->err, "%s: expected %lld to %lld", key,
                          (long long)least, (long long)most);
}

enum plim_status plim_reader_refuse_others(const struct plim_reader *r, const struct plim_yaml_node *mapping,
                                      const char *const *known)
{
    for (size_t i = 0; i < mapping->count; i++) {
        size_t k = 0;
        while (known[k] && strcmp(known[k], mapping->keys[i]->text)) k++;
        if (!known[k])
            return plim_yaml_fail(&r->yaml, mapping->keys[i], r->err,
                                  "%.40s is not known in version %d of recordings",
                                  mapping->keys[i]->text, PLIM_RECORDING_VERSION);
    }
    return PLIM_OK;
}

bool plim_reader_number(const char **at, int64_t *out)
{
    int64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        int digit = **at - '0';
        if (value > (PLIM_MOST_BYTES - digit) / 10) return false;
        value = 10 * value + digit;
    }
    *out = value;
    return *at > start;
}

bool plim_reader_is(const struct plim_yaml_node *node, const char *text)
{
    return node->kind == PLIM_YAML_SCALAR && !strcmp(node->text, text);
}
