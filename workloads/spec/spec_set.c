/* Sets one key of a spec from the command line. */
#include "hf_config.h"
#include "key.h"
#include "spec_internal.h"

#include <string.h>

static enum plim_status set_model_key(const struct plim_yaml *yaml, const char *key,
                                      struct plim_spec *spec, struct plim_error *err)
{
    static const char *const origins[] = {"family", "hf", "zoo"};
    for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
        if (strcmp(key, origins[i]) == 0)
            return plim_fail(err, PLIM_SPEC,
                             "model.%s cannot be changed, expected it in the spec file", key);
    const struct plim_place place = {.yaml = yaml, .prefix = "model.", .key = key, .err = err};
    return plim_model_key_read(&place, yaml->root, spec);
}

/* Line and column of a value on the command line mean nothing to the user: only the text of the error is kept. */
enum plim_status plim_spec_set(struct plim_spec *spec, const char *key, const char *value,
                               struct plim_error *err)
{
    struct plim_yaml yaml = {0};
    struct plim_error inner = PLIM_ERROR_INIT;
    struct plim_spec changed = *spec;
    enum plim_status st = plim_yaml_read_string("", value, strlen(value), &yaml, &inner);
    if (st != PLIM_OK) return plim_fail(err, st, "%.80s: %s", key, inner.text);
    if (!yaml.root) {
        st = plim_fail(err, PLIM_SPEC, "%.80s has no value, expected one", key);
        goto out;
    }
    const struct plim_place place = {.yaml = &yaml, .prefix = "", .key = key, .err = &inner};
    if (strcmp(key, "model") == 0) {
        st = plim_fail(err, PLIM_SPEC,
                       "model is a section, expected one of its keys, such as model.vocab_size");
        goto out;
    }
    st = strncmp(key, "model.", 6) == 0 ? set_model_key(&yaml, key + 6, &changed, &inner)
                                        : plim_spec_path_read(&place, yaml.root, &changed);
    if (st == PLIM_OK)
        *spec = changed;
    else
        plim_fail(err, st, "%s", inner.text);
out:
    plim_yaml_finish(&yaml);
    return st;
}
