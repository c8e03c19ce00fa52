#define _GNU_SOURCE /* mkdtemp */
#include "target.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_expect(text != NULL);
    if (size) memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static char folder[64], path[256];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t size)
{
    if (!folder[0]) {
        strcpy(folder, "/dev/shm/plimsoll-fuzz-XXXXXX");
        fuzz_expect(mkdtemp(folder) != NULL);
        atexit(remove_folder);
    }
    if (path[0]) unlink(path);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    fuzz_expect(file != NULL);
    fuzz_expect(fwrite(data, 1, size, file) == size);
    fuzz_expect(fclose(file) == 0);
    return path;
}
