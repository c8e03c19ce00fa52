#include "architecture.h"
#include <stddef.h>

static const struct plim_architecture architectures[] = {
    {60, 2048, 32, 64, 48},    {61, 2048, 32, 96, 48},   {70, 2048, 32, 96, 96},
    {75, 1024, 16, 64, 64},    {80, 2048, 32, 164, 163}, {86, 1536, 16, 100, 99},
    {87, 1536, 16, 164, 163},  {89, 1536, 24, 100, 99},  {90, 2048, 32, 228, 227},
    {110, 1536, 24, 228, 227}, {120, 1536, 24, 100, 99},
};

const struct plim_architecture *plim_architecture_of(int compute_capability)
{
    const struct plim_architecture *found = &architectures[0];
    for (size_t i = 1; i < sizeof(architectures) / sizeof(architectures[0]); i++)
        if (architectures[i].compute_capability <= compute_capability) found = &architectures[i];
    return found;
}
