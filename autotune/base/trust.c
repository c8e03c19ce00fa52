#define _DEFAULT_SOURCE /* S_ISVTX */
#include "trust.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool plim_trust_only_root(const char *path)
{
    char part[PATH_MAX];
    struct stat info;
    if (path[0] != '/' || strlen(path) >= sizeof(part)) return false;
    for (size_t length = 1; length <= strlen(path); length++) {
        bool whole = length == strlen(path);
        if (length > 1 && !whole && path[length] != '/') continue;
        snprintf(part, sizeof(part), "%.*s", (int)length, path);
        if (lstat(part, &info) || info.st_uid != 0 || S_ISLNK(info.st_mode)) return false;
        bool is_sticky = !whole && S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX);
        if ((info.st_mode & (S_IWGRP | S_IWOTH)) && !is_sticky) return false;
    }
    return true;
}
