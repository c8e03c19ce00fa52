/* Files embedded in the executable.
 *
 * `scripts/embed.py SYMBOL OUTPUT.c FILE...` writes OUTPUT.c, which defines
 *
 *     const struct plim_embedded_file SYMBOL[];   in the order of the FILEs
 *     const size_t SYMBOL_count;
 *
 * In meson.build (`embed` comes from the root):
 *
 *     data = custom_target('data', input: ['a.yaml', 'b.yaml'], output: 'data.c',
 *       command: [embed, 'plim_data', '@OUTPUT@', '@INPUT@'])
 *
 * and where it is used:
 *
 *     extern const struct plim_embedded_file plim_data[];
 *     extern const size_t plim_data_count;
 */
#ifndef PLIM_BASE_EMBED_H
#define PLIM_BASE_EMBED_H

#include <stddef.h>

struct plim_embedded_file {
    const char *name; /* without folders: "gpt2-124m.yaml" */
    const char *text; /* the unchanged bytes, followed by a NUL */
    size_t size;      /* bytes, without that NUL */
};

#endif
