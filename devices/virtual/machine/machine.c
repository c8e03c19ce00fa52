#define _GNU_SOURCE /* memfd_create */
#include "machine.h"
#include "autotune/base/process_stat.h"
#include "devices/catalogue/architecture.h"
#include "devices/catalogue/catalogue.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- called by plimsoll ----------------------------------------------------------------------- */

/* Derives memory clock and bus width from the data-sheet bandwidth, which is bus width times data rate; programs only
 * multiply them again. HBM is assumed to have the bus of five stacks (the driver reports 6016 bits on an H200, which
 * has six), other memory one of 384 bits. The clock that CUDA reports is half the data rate. */
static void fill_memory_clock(struct plim_machine_gpu *gpu, const struct plim_gpu *model)
{
    enum { FIVE_STACKS = 5120, SIX_STACKS = 6016, OTHERS = 384 };
    static const int with_hbm[] = {60, 70, 80, 90, 100, 103};
    bool has_hbm = false, is_large = model->total_bytes > (int64_t)85 << 30; /* H200 rather than H100 */
    for (size_t i = 0; i < sizeof(with_hbm) / sizeof(with_hbm[0]); i++)
        has_hbm |= model->compute_capability == with_hbm[i];
    gpu->memory_bus_bits = !has_hbm ? OTHERS : model->compute_capability == 90 && is_large ? SIX_STACKS : FIVE_STACKS;
    gpu->memory_clock_khz =
        (int32_t)(model->bandwidth * 8 / gpu->memory_bus_bits / 2 / 1000);
}

void plim_machine_gpu_fill(struct plim_machine_gpu *gpu, const struct plim_gpu *model, int index)
{
    const struct plim_architecture *of = plim_architecture_of(model->compute_capability);
    *gpu = (struct plim_machine_gpu){
        .compute_capability = model->compute_capability,
        .multiprocessors = model->multiprocessors,
        .threads_per_multiprocessor = of->threads,
        .blocks_per_multiprocessor = of->blocks,
        .shared_per_multiprocessor = of->shared_kib << 10,
        .shared_per_block_optin = of->shared_block_kib << 10,
        .l2_bytes = (int32_t)model->l2_bytes,
        .clock_khz = model->boost_mhz * 1000,
        .ascending = model->ascending,
        .half_flops = model->bf16 > 0 ? model->bf16 : model->fp16,
        .tf32_flops = model->tf32,
        .total_bytes = model->total_bytes,
    };
    snprintf(gpu->name, sizeof(gpu->name), "%s", model->match);
    fill_memory_clock(gpu, model);
    memcpy(gpu->uuid, "plimsoll-virtual", sizeof(gpu->uuid));
    gpu->uuid[15] = (uint8_t)index;
}

static bool init_lock(struct plim_machine *machine)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes)) return false;
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    int failed = pthread_mutex_init(&machine->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return !failed;
}

static struct plim_machine *map(int fd)
{
    void *memory =
        mmap(NULL, sizeof(struct plim_machine), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

struct plim_machine *plim_machine_create(const struct plim_machine_gpu *gpus, int count, int *fd,
                                         char *path)
{
    struct plim_machine *machine = NULL;
    *fd = memfd_create("plimsoll-machine", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* Sealed, because a program that truncated it would kill plimsoll with SIGBUS. */
    if (*fd >= 0 && !ftruncate(*fd, sizeof(*machine)) &&
        !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        machine = map(*fd);
    if (!machine || !init_lock(machine)) {
        plim_machine_destroy(machine, *fd);
        return NULL;
    }
    machine->gpu_count = count;
    for (int i = 0; i < count; i++) {
        machine->gpus[i] = gpus[i];
        machine->gpus[i].held_bytes = machine->gpus[i].peak_bytes = 0;
    }
    machine->version = PLIM_MACHINE_VERSION;
    snprintf(path, 64, "/proc/%ld/fd/%d", (long)getpid(), *fd);
    return machine;
}

void plim_machine_destroy(struct plim_machine *machine, int fd)
{
    if (machine) munmap(machine, sizeof(*machine));
    if (fd >= 0) close(fd);
}

/* --- the lock --------------------------------------------------------------------------------- */

/* Every change under the lock is consistent after each of its stores, so the state left by a holder that died can be
 * used. */
void plim_machine_lock(struct plim_machine *machine)
{
    if (pthread_mutex_lock(&machine->lock) == EOWNERDEAD) pthread_mutex_consistent(&machine->lock);
}

void plim_machine_unlock(struct plim_machine *machine) { pthread_mutex_unlock(&machine->lock); }

/* --- processes -------------------------------------------------------------------------------- */

struct plim_machine *plim_machine_attach(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return NULL;
    struct plim_machine *machine = NULL;
    if (!fstat(fd, &st) && st.st_size == (off_t)sizeof(*machine)) machine = map(fd);
    close(fd);
    if (machine && machine->version != PLIM_MACHINE_VERSION) {
        munmap(machine, sizeof(*machine));
        machine = NULL;
    }
    return machine;
}

static void reap(struct plim_machine *machine, struct plim_machine_process *process)
{
    for (int i = 0; i < machine->gpu_count; i++) {
        machine->gpus[i].held_bytes -= process->held_bytes[i];
        process->held_bytes[i] = 0;
    }
    process->ended = true;
}

static void drop_dead_processes(struct plim_machine *machine)
{
    for (int i = 0; i < PLIM_MACHINE_PROCESSES; i++) {
        struct plim_machine_process *process = &machine->processes[i];
        if (process->pid && !process->ended && plim_process_born(process->pid) != process->born)
            reap(machine, process);
    }
}

/* Returns the row of an ended process that matters least: no request of it was refused, and it held less than the
 * others. */
static struct plim_machine_process *least_ended(struct plim_machine *machine)
{
    struct plim_machine_process *least = NULL;
    for (int i = 0; i < PLIM_MACHINE_PROCESSES; i++) {
        struct plim_machine_process *process = &machine->processes[i];
        if (!process->ended || process->refusal.count) continue;
        if (!least || process->peak_all_bytes < least->peak_all_bytes) least = process;
    }
    return least;
}

/* Returns the process's own row, or a free one; NULL if all belong to others. */
static struct plim_machine_process *find_row(struct plim_machine *machine, int pid, uint64_t since)
{
    struct plim_machine_process *row = NULL;
    for (int i = 0; i < PLIM_MACHINE_PROCESSES && (!row || !row->pid); i++) {
        struct plim_machine_process *process = &machine->processes[i];
        bool is_ours = process->pid == pid && process->born == since && !process->ended;
        if (is_ours || (!process->pid && !row)) row = process;
    }
    return row;
}

struct plim_machine_process *plim_machine_enter(struct plim_machine *machine)
{
    int pid = getpid();
    uint64_t since = plim_process_born(pid);
    plim_machine_lock(machine);
    struct plim_machine_process *row = find_row(machine, pid, since);
    bool is_new = !row || !row->pid;
    if (is_new) drop_dead_processes(machine);
    if (!row) row = least_ended(machine);
    if (row && is_new) *row = (struct plim_machine_process){.pid = pid, .born = since};
    plim_machine_unlock(machine);
    return row;
}

void plim_machine_leave(struct plim_machine *machine, struct plim_machine_process *process)
{
    plim_machine_lock(machine);
    if (!process->ended) reap(machine, process);
    plim_machine_unlock(machine);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int64_t free_of(const struct plim_machine_gpu *gpu)
{
    int64_t left = gpu->total_bytes - gpu->withheld_bytes - gpu->held_bytes;
    return left > 0 ? left : 0;
}

/* Returns how many processes hold memory of a GPU; each has a context there. */
static int32_t holders(const struct plim_machine *machine, int gpu)
{
    int32_t count = 0;
    for (int i = 0; i < PLIM_MACHINE_PROCESSES && machine->processes[i].pid; i++)
        count += !machine->processes[i].ended && machine->processes[i].held_bytes[gpu] > 0;
    return count;
}

bool plim_machine_allocate(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                           int64_t bytes)
{
    struct plim_machine_gpu *c = &machine->gpus[gpu];
    plim_machine_lock(machine);
    if (bytes > free_of(c)) drop_dead_processes(machine);
    bool fits = bytes <= free_of(c);
    if (fits) {
        process->held_bytes[gpu] += bytes;
        c->held_bytes += bytes;
        if (process->held_bytes[gpu] > process->peak_bytes[gpu])
            process->peak_bytes[gpu] = process->held_bytes[gpu];
        if (c->held_bytes > c->peak_bytes) {
            c->peak_bytes = c->held_bytes;
            c->peak_contexts = holders(machine, gpu);
        }
    }
    plim_machine_unlock(machine);
    return fits;
}

void plim_machine_free(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                       int64_t bytes)
{
    plim_machine_lock(machine);
    process->held_bytes[gpu] -= bytes;
    machine->gpus[gpu].held_bytes -= bytes;
    plim_machine_unlock(machine);
}

static int order_of(int64_t bytes)
{
    int order = 0;
    while (order < PLIM_MACHINE_SIZES - 1 && bytes >> 21 >> order) order++;
    return order;
}

void plim_machine_count(struct plim_machine *machine, struct plim_machine_process *process, int gpu,
                        int64_t bytes, int count)
{
    int64_t held = 0;
    struct plim_machine_size *row = &process->live[gpu][order_of(bytes)];
    plim_machine_lock(machine);
    row->count += count;
    row->bytes += count * bytes;
    for (int i = 0; i < machine->gpu_count; i++) held += process->held_bytes[i];
    if (held > process->peak_all_bytes) process->peak_all_bytes = held;
    if (count > 0 && process->held_bytes[gpu] >= process->peak_bytes[gpu])
        memcpy(process->at_peak[gpu], process->live[gpu], sizeof(process->live[gpu]));
    plim_machine_unlock(machine);
}

int64_t plim_machine_free_bytes(struct plim_machine *machine, int gpu)
{
    plim_machine_lock(machine);
    drop_dead_processes(machine);
    int64_t bytes = free_of(&machine->gpus[gpu]);
    plim_machine_unlock(machine);
    return bytes;
}

bool plim_machine_note(struct plim_machine *machine, const char *text)
{
    uint32_t i = 0;
    plim_machine_lock(machine);
    while (i < machine->note_count &&
           strncmp(machine->notes[i], text, sizeof(machine->notes[i]) - 1))
        i++;
    bool is_new = i == machine->note_count && i < PLIM_MACHINE_NOTES;
    if (is_new) {
        snprintf(machine->notes[i], sizeof(machine->notes[i]), "%s", text);
        machine->note_count++;
    }
    plim_machine_unlock(machine);
    return is_new;
}
