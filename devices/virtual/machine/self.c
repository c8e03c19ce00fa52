#include "self.h"
#include "out_of_memory.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct {
    struct plim_machine *machine;
    struct plim_machine_process *process; /* NULL: not entered yet */
    bool forked;                          /* forked from a process that had entered */
    int count;                            /* number of visible GPUs */
    int visible[PLIM_MACHINE_GPUS];      /* their indices in the machine */
    pthread_mutex_t lock;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t attached = PTHREAD_ONCE_INIT;

static _Thread_local struct {
    int device, error;
    bool bound;
} thread;

void plim_self_lock(void) { pthread_mutex_lock(&self.lock); }
void plim_self_unlock(void) { pthread_mutex_unlock(&self.lock); }

/* --- entering and leaving --------------------------------------------------------------------- */

static void before_fork(void) { plim_self_lock(); }
static void in_parent(void) { plim_self_unlock(); }

static void in_child(void)
{
    self.forked = self.forked || self.process;
    self.process = NULL;
    plim_self_unlock();
}

static void show_all(void)
{
    self.count = self.machine->gpu_count;
    for (int i = 0; i < self.count; i++) self.visible[i] = i;
}

/* Returns the GPU that an entry of CUDA_VISIBLE_DEVICES names, by index or by a sufficiently long prefix of its UUID;
 * -1 if there is none. */
static int find_gpu(const char *entry, size_t length)
{
    char text[64];
    char *end;
    long index = strtol(entry, &end, 10);
    if (end > entry) return index >= 0 && index < self.machine->gpu_count ? (int)index : -1;
    for (int i = 0; i < self.machine->gpu_count; i++) {
        plim_self_uuid_text(self.machine->gpus[i].uuid, text);
        if (length > 4 && !strncasecmp(text, entry, length)) return i;
    }
    return -1;
}

/* Reads CUDA_VISIBLE_DEVICES as CUDA does: the list ends at the first invalid entry, and a duplicate makes it empty. */
static void read_visible(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    if (!text) {
        show_all();
        return;
    }
    while (*text) {
        size_t length = strcspn(text, ",");
        int gpu = find_gpu(text, length);
        if (gpu < 0) return;
        for (int i = 0; i < self.count; i++)
            if (self.visible[i] == gpu) {
                self.count = 0;
                return;
            }
        self.visible[self.count++] = gpu;
        text += length + (text[length] == ',');
    }
}

void plim_self_uuid_text(const uint8_t *uuid, char out[64])
{
    int at = snprintf(out, 64, "GPU-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += snprintf(out + at, 64 - (size_t)at, dash ? "-%02x" : "%02x", uuid[i]);
    }
}

void plim_self_observe(void)
{
    if (plim_self_machine()) show_all();
}

static void leave(void)
{
    if (!self.process) return;
    plim_machine_leave(self.machine, self.process);
}

/* A process that plimsoll started ends with it, even if plimsoll is killed. The path of the machine contains plimsoll's
 * process id. */
__attribute__((constructor)) static void end_with_plimsoll(void)
{
    const char *path = getenv(PLIM_MACHINE_VARIABLE);
    int parent;
    if (path && sscanf(path, "/proc/%d/", &parent) == 1 && getppid() == parent)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void attach(void)
{
    const char *path = getenv(PLIM_MACHINE_VARIABLE);
    self.machine = path ? plim_machine_attach(path) : NULL;
    if (!self.machine) {
        fprintf(stderr, "plimsoll: there is no virtual machine at %s=%s\n", PLIM_MACHINE_VARIABLE,
                path ? path : "");
        return;
    }
    read_visible();
    pthread_atfork(before_fork, in_parent, in_child);
    atexit(leave);
}

struct plim_machine *plim_self_machine(void)
{
    pthread_once(&attached, attach);
    return self.machine;
}

struct plim_machine_process *plim_self_process(void) { return self.process; }

int plim_self_count(int *count)
{
    *count = 0;
    if (!plim_self_machine() || !self.count) return GPU_NO_DEVICE;
    if (self.forked) return GPU_NOT_INITIALIZED;
    *count = self.count;
    return GPU_OK;
}

/* --- GPUs ------------------------------------------------------------------------------------ */

static bool is_visible(int device)
{
    return plim_self_machine() && device >= 0 && device < self.count;
}

int plim_self_machine_index(int device) { return self.visible[device]; }

const struct plim_machine_gpu *plim_self_gpu(int device)
{
    return is_visible(device) ? &self.machine->gpus[self.visible[device]] : NULL;
}

int plim_self_device(void) { return thread.device; }

int plim_self_set_device(int device)
{
    int count, failed = plim_self_count(&count);
    if (failed) return failed;
    if (device < 0 || device >= count) return GPU_INVALID_DEVICE;
    thread.device = device;
    return GPU_OK;
}

static int enter(void)
{
    if (self.process) return GPU_OK;
    plim_self_lock();
    if (!self.process) self.process = plim_machine_enter(self.machine);
    plim_self_unlock();
    if (self.process) return GPU_OK;
    plim_self_note("more than %d processes use the virtual machine", PLIM_MACHINE_PROCESSES);
    return GPU_NO_DEVICE;
}

bool plim_self_has_context(int device)
{
    return is_visible(device) && self.process && self.process->contexts >> device & 1;
}

int plim_self_use(int device)
{
    int count, failed = plim_self_count(&count);
    if (!failed && (device < 0 || device >= count)) failed = GPU_INVALID_DEVICE;
    if (!failed) failed = enter();
    if (failed || plim_self_has_context(device)) return failed;
    int64_t bytes = plim_self_gpu(device)->context_bytes;
    plim_self_lock();
    if (!plim_self_has_context(device)) {
        failed = plim_self_allocate(device, bytes) ? GPU_OK : GPU_OUT_OF_MEMORY;
        if (!failed) self.process->contexts |= 1u << device;
    }
    plim_self_unlock();
    return failed;
}

int plim_self_use_current(void)
{
    int failed = plim_self_use(thread.device);
    if (!failed) thread.bound = true;
    return failed;
}

bool plim_self_is_bound(void) { return thread.bound; }
void plim_self_unbind(void) { thread.bound = false; }

void plim_self_drop_context(int device)
{
    if (!plim_self_has_context(device)) return;
    self.process->contexts &= ~(1u << device);
    plim_self_free(device, plim_self_gpu(device)->context_bytes);
}

/* --- memory ----------------------------------------------------------------------------------- */

void plim_self_launches(void) { plim_out_of_memory_launches(&self.process->refusal); }

void plim_self_plans(void)
{
    if (self.process) plim_out_of_memory_plans(&self.process->refusal);
}

void plim_self_request_failed(int device, int64_t asked_bytes, int64_t free_bytes)
{
    if (self.process && plim_self_has_context(device))
        plim_out_of_memory_failed(&self.process->refusal, self.visible[device], asked_bytes, free_bytes);
}

bool plim_self_allocate(int device, int64_t bytes)
{
    int gpu = self.visible[device];
    struct plim_machine_refusal *refusal = &self.process->refusal;
    bool fits = plim_machine_allocate(self.machine, self.process, gpu, bytes);
    if (fits) plim_out_of_memory_met(refusal, bytes);
    else
        plim_out_of_memory_refused(refusal, gpu, bytes,
                                   plim_machine_free_bytes(self.machine, gpu));
    return fits;
}

void plim_self_free(int device, int64_t bytes)
{
    plim_machine_free(self.machine, self.process, self.visible[device], bytes);
}

void plim_self_count_allocation(int device, int64_t bytes, int count)
{
    if (count > 0) self.process->allocations++;
    else self.process->frees++;
    plim_machine_count(self.machine, self.process, self.visible[device], bytes, count);
}

/* --- errors, notes, identifiers --------------------------------------------------------------- */

int plim_self_error(int error)
{
    if (error) thread.error = error;
    return error;
}

int plim_self_get_error(void)
{
    int error = thread.error;
    thread.error = GPU_OK;
    return error;
}

int plim_self_peek_error(void) { return thread.error; }

void plim_self_note(const char *fmt, ...)
{
    char text[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (plim_self_machine() && !plim_machine_note(self.machine, text)) return;
    fprintf(stderr, "plimsoll: %s\n", text);
}

uint64_t plim_self_new_id(void)
{
    static uint64_t last = 0x1000;
    return __atomic_add_fetch(&last, 16, __ATOMIC_RELAXED);
}
