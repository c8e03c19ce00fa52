#include "allocator_options.h"
#include "autotune/base/environment.h"

const char *plim_allocator_options(char *const *entries, const char **variable)
{
    static const char *const variables[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *options = plim_environment_value(entries, variables[i]);
        *variable = variables[i];
        if (options && *options) return options;
    }
    return NULL;
}
