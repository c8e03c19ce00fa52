/* What a program can ask of the virtual GPU itself; tests do. */
#include "devices/virtual/memory/shadow.h"

/* The states of that memory: bits of enum plim_known, and 0x80 if some of it is not known. */
ANSWER unsigned plimsoll_known(uintptr_t at, size_t bytes)
{
    return plim_shadow_survey(at, bytes);
}
