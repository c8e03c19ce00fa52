/* Preloaded into a program, lets one of its allocations fail.
 *
 *   PLIM_FAIL_AT      the allocation that fails, counted from 1; 0: none
 *   PLIM_FAIL_ON      set: all that follow fail too, as when memory is used up
 *   PLIM_FAIL_COUNT   a file that gets the number of allocations at the end
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* The C library's own functions, whose names are replaced here. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);

static atomic_long allocations;
static long fail_at;
static bool fail_on;

__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("PLIM_FAIL_AT");
    fail_at = at ? strtol(at, NULL, 10) : 0;
    fail_on = getenv("PLIM_FAIL_ON") != NULL;
    atomic_store(&allocations, 0);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("PLIM_FAIL_COUNT");
    long count = atomic_load(&allocations);
    fail_at = 0;
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld\n", count);
    fclose(file);
}

static bool fails(void)
{
    long number = atomic_fetch_add(&allocations, 1) + 1;
    if (!fail_at || number < fail_at || (number > fail_at && !fail_on)) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails() ? NULL : __libc_realloc(memory, size);
}
