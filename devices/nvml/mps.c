#include "mps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PIPE_DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"
#define ACTIVE_THREADS "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define MEMORY_LIMIT "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

static const char PLAIN_DIRECTORY[] = "/tmp/nvidia-mps";

struct plim_mps_variables plim_mps_variables_here(void)
{
    return (struct plim_mps_variables){.pipe_directory = getenv(PIPE_DIRECTORY),
                                       .active_thread_percentage = getenv(ACTIVE_THREADS),
                                       .memory_limit = getenv(MEMORY_LIMIT)};
}

static void add_limit(const char *name, const char *value, char *out, size_t size)
{
    size_t used = strlen(out);
    if (value && *value)
        snprintf(out + used, size - used, "%s%s=%.48s", used ? ", " : "", name, value);
}

void plim_mps_read(const char *root, const struct plim_mps_variables *variables,
                   struct plim_mps *out)
{
    char path[512];
    struct stat info;
    const char *folder = variables->pipe_directory;
    *out = (struct plim_mps){0};
    if (!folder || !*folder) folder = PLAIN_DIRECTORY;
    int length = snprintf(path, sizeof(path), "%s%s/control", root, folder);
    if (length < 0 || (size_t)length >= sizeof(path) || stat(path, &info)) return;
    out->active = S_ISSOCK(info.st_mode) || S_ISFIFO(info.st_mode);
    if (!out->active) return;
    add_limit(ACTIVE_THREADS, variables->active_thread_percentage, out->limits, sizeof(out->limits));
    add_limit(MEMORY_LIMIT, variables->memory_limit, out->limits, sizeof(out->limits));
}
