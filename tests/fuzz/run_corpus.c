/* A corpus as a test: each file of the folders goes once through the target.
 *
 * What libFuzzer found once is not found again. A file that ends the process is named last.
 */
#include "target.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 20 };

static uint8_t buffer[MOST_BYTES];

static void run_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(1);
    }
    size_t size = fread(buffer, 1, sizeof(buffer), file);
    fclose(file);
    /* Of its own size, so that a sanitizer sees what is read behind it. */
    uint8_t *data = malloc(size ? size : 1);
    fuzz_expect(data != NULL);
    memcpy(data, buffer, size);
    printf("# %s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int run_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    int count = 0;
    if (!dir) {
        perror(folder);
        exit(1);
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[1024];
        struct stat info;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (stat(path, &info) || !S_ISREG(info.st_mode)) continue;
        run_file(path);
        count++;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) count += run_folder(argv[i]);
    printf("%s 1 - %d inputs\n1..1\n", count ? "ok" : "not ok", count);
    return !count;
}
