/* Counts the entry points that a program calls: compiled by scripts/virtual-entry-points alone,
 * into a virtual GPU whose functions are instrumented (-finstrument-functions).
 *
 * Each process writes into a file of its own, PLIM_ENTRY_POINTS/PID, that it maps, so that nothing
 * is lost when it is killed: pairs of 64-bit numbers, a function's offset in the library and how
 * often it was called from outside of it. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

enum { SLOTS = 8192 };

struct slot {
    uint64_t offset, calls;
};

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* of the library, by ld */
extern const char _end[] __attribute__((visibility("hidden")));

static struct slot *slots; /* NULL: not opened; a forked child opens its own */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

PLAIN static void forget(void)
{
    slots = NULL;
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) PLAIN static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget);
}

PLAIN static struct slot *map_file(void)
{
    char path[4096];
    const char *folder = getenv("PLIM_ENTRY_POINTS");
    if (!folder) abort();
    snprintf(path, sizeof(path), "%s/%ld", folder, (long)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, SLOTS * sizeof(struct slot))) abort();
    void *at = mmap(NULL, SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) abort();
    return at;
}

PLAIN static struct slot *slot_of(uint64_t offset)
{
    size_t i = offset / 16 % SLOTS;
    while (slots[i].offset && slots[i].offset != offset) i = (i + 1) % SLOTS;
    return &slots[i];
}

PLAIN void __cyg_profile_func_enter(void *function, void *caller);
PLAIN void __cyg_profile_func_enter(void *function, void *caller)
{
    uintptr_t base = (uintptr_t)__ehdr_start, from = (uintptr_t)caller;
    if (from >= base && from < (uintptr_t)_end) return;
    pthread_mutex_lock(&lock);
    if (!slots) slots = map_file();
    struct slot *slot = slot_of((uintptr_t)function - base);
    slot->offset = (uintptr_t)function - base;
    slot->calls++;
    pthread_mutex_unlock(&lock);
}

PLAIN void __cyg_profile_func_exit(void *function, void *caller);
PLAIN void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}
