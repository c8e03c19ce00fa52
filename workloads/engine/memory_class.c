#include "memory_class.h"

const char *plim_memory_class_name(enum plim_memory_class memory_class)
{
    static const char *const names[] = {
#define NAME(name, text) [PLIM_MEMORY_##name] = text,
        PLIM_MEMORY_CLASS_MAP(NAME)
#undef NAME
    };
    return names[memory_class];
}
