/* Queries about the virtual GPU itself, for tests. */
#include "devices/virtual/memory/shadow.h"

/* Returns the states of a range of memory: bits of enum plim_known, with 0x80 if part of it is not known. */
ANSWER unsigned plimsoll_known(uintptr_t at, size_t bytes)
{
    return plim_shadow_survey(at, bytes);
}
