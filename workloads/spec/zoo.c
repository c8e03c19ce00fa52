#include "zoo.h"

#include "autotune/base/text.h"

#include <stdio.h>
#include <string.h>

const struct plim_zoo_model *plim_zoo_find(const char *name)
{
    for (size_t i = 0; i < plim_zoo_count; i++)
        if (strcmp(plim_zoo_models[i].name, name) == 0) return &plim_zoo_models[i];
    return NULL;
}

const struct plim_zoo_model *plim_zoo_of_hub(const char *id)
{
    for (size_t i = 0; i < plim_zoo_count; i++)
        for (const char *const *hub = plim_zoo_models[i].hub; *hub; hub++)
            if (strcmp(*hub, id) == 0) return &plim_zoo_models[i];
    return NULL;
}

enum plim_status plim_zoo_read(const char *name, struct plim_yaml *yaml, struct plim_error *err)
{
    const struct plim_zoo_model *model = plim_zoo_find(name);
    if (model) {
        char source[80];
        snprintf(source, sizeof(source), "zoo:%s.yaml", model->name);
        return plim_yaml_read_string(source, model->spec, strlen(model->spec), yaml, err);
    }
    int near = plim_nearest(name, plim_zoo_names, plim_zoo_count);
    return plim_fail(err, PLIM_SPEC, "the zoo has no '%.60s', expected %s%s", name,
                     near < 0 ? "one of its names, such as " : "the nearest name ",
                     plim_zoo_names[near < 0 ? 0 : near]);
}
