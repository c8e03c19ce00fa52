#include "exit_code.h"
#include <stddef.h>

const char *plim_exit_text(enum plim_exit code)
{
    static const char *const texts[] = {
#define TEXT(name, text) [PLIM_EXIT_##name] = text,
        PLIM_EXIT_MAP(TEXT)
#undef TEXT
    };
    return texts[code];
}

enum plim_exit plim_exit_of(enum plim_status status)
{
    static const struct {
        enum plim_status status;
        enum plim_exit code;
    } codes[] = {{PLIM_OK, PLIM_EXIT_ANSWER},      {PLIM_NOFIT, PLIM_EXIT_NOFIT},
                 {PLIM_INVALID, PLIM_EXIT_USAGE},  {PLIM_SPEC, PLIM_EXIT_USAGE},
                 {PLIM_IO, PLIM_EXIT_USAGE},       {PLIM_NODEVICE, PLIM_EXIT_NODEVICE},
                 {PLIM_TIMEOUT, PLIM_EXIT_EARLY},  {PLIM_UNSUPPORTED, PLIM_EXIT_NOT_BUILT},
                 {PLIM_CANCELLED, PLIM_EXIT_EARLY}, {PLIM_BUSY, PLIM_EXIT_NODEVICE},
                 {PLIM_DIFFERS, PLIM_EXIT_WOULD_CHANGE}};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].status == status) return codes[i].code;
    return PLIM_EXIT_INTERNAL;
}
