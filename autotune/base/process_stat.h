/* The state of a process according to the kernel, /proc/PID/stat (proc_pid_stat(5)). */
#ifndef PLIM_BASE_PROCESS_STAT_H
#define PLIM_BASE_PROCESS_STAT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Times are in ticks, sysconf(_SC_CLK_TCK) per second. `began` counts from the start of the machine (CLOCK_BOOTTIME):
 * together with the pid it identifies a process. */
struct plim_process_stat {
    char state; /* 'Z', 'X': it is dead, although its parent may not have reaped it yet */
    int parent;
    uint64_t used; /* CPU time, without its children */
    uint64_t began;
};

/* False: there is no such process, or its state cannot be read. */
static inline bool plim_process_stat(int pid, struct plim_process_stat *out)
{
    enum { STATE = 3, PARENT, USER = 14, SYSTEM, BEGAN = 22 }; /* fields, as the manual numbers them */
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    if (length < 0) return false;
    text[length] = '\0';
    /* The second field is the name, in parentheses; it may contain any character. */
    const char *field = strrchr(text, ')');
    *out = (struct plim_process_stat){0};
    for (int i = STATE; field && i <= BEGAN; i++) {
        field = strchr(field + 1, ' ');
        if (field && i == STATE) out->state = field[1];
        if (field && i == PARENT) out->parent = atoi(field);
        if (field && (i == USER || i == SYSTEM)) out->used += strtoull(field, NULL, 10);
        if (field && i == BEGAN) out->began = strtoull(field, NULL, 10);
    }
    return field != NULL;
}

/* When it began; 0 when it is dead, even if its parent has not reaped it yet. */
static inline uint64_t plim_process_born(int pid)
{
    struct plim_process_stat stat;
    bool lives = plim_process_stat(pid, &stat) && stat.state != 'Z' && stat.state != 'X';
    return lives ? stat.began : 0;
}

#endif
