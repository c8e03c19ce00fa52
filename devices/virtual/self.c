#include "self.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct plim_machine *machine;
    struct plim_machine_process *process; /* NULL: not entered yet */
    bool forked;                          /* from a process that had entered */
    int count;                            /* visible cards */
    int visible[PLIM_MACHINE_CARDS];      /* their numbers in the machine */
    pthread_mutex_t lock;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t attached = PTHREAD_ONCE_INIT;

static _Thread_local struct {
    int device, error;
    int64_t pending_bytes; /* asked for and refused; 0: none */
    bool counted;          /* as unmet */
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

/* CUDA_VISIBLE_DEVICES by number or UUID, as CUDA reads it: it ends at the first that is none. */
static void read_visible(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    struct plim_machine *machine = self.machine;
    if (!text) {
        for (int i = 0; i < machine->card_count; i++) self.visible[self.count++] = i;
        return;
    }
    while (*text && self.count < machine->card_count) {
        char *end;
        long index = strtol(text, &end, 10);
        if (end == text || index < 0 || index >= machine->card_count) return;
        for (int i = 0; i < self.count; i++)
            if (self.visible[i] == index) {
                self.count = 0; /* the same twice: CUDA shows none */
                return;
            }
        self.visible[self.count++] = (int)index;
        if (*end != ',') return;
        text = end + 1;
    }
}

static void leave(void)
{
    if (!self.process) return;
    plim_machine_leave(self.machine, self.process);
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

/* --- cards ------------------------------------------------------------------------------------ */

static bool is_visible(int device)
{
    return plim_self_machine() && device >= 0 && device < self.count;
}

int plim_self_machine_index(int device) { return self.visible[device]; }

const struct plim_machine_card *plim_self_card(int device)
{
    return is_visible(device) ? &self.machine->cards[self.visible[device]] : NULL;
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
    int64_t bytes = plim_self_card(device)->context_bytes;
    plim_self_lock();
    if (!plim_self_has_context(device)) {
        failed = plim_self_take(device, bytes) ? GPU_OK : GPU_OUT_OF_MEMORY;
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
    plim_self_give(device, plim_self_card(device)->context_bytes);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void settle_refusal(void)
{
    if (thread.pending_bytes && !thread.counted) {
        self.process->refusal.unmet++;
        thread.counted = true;
    }
}

static void set_pending(int64_t bytes)
{
    self.process->refusal.pending += (bytes != 0) - (thread.pending_bytes != 0);
    thread.pending_bytes = bytes;
}

void plim_self_goes_on(void)
{
    if (!thread.pending_bytes) return;
    settle_refusal();
    set_pending(0);
}

static void refused(int card, int64_t bytes)
{
    struct plim_machine_refusal *refusal = &self.process->refusal;
    if (thread.pending_bytes == bytes) settle_refusal();
    else thread.counted = false;
    set_pending(bytes);
    refusal->count++;
    refusal->asked_bytes = bytes;
    refusal->free_bytes = plim_machine_free_bytes(self.machine, card);
    refusal->card = card;
}

bool plim_self_take(int device, int64_t bytes)
{
    int card = self.visible[device];
    bool fits = plim_machine_take(self.machine, self.process, card, bytes);
    if (!fits) refused(card, bytes);
    else if (thread.pending_bytes && bytes >= thread.pending_bytes) set_pending(0);
    return fits;
}

void plim_self_give(int device, int64_t bytes)
{
    plim_machine_give(self.machine, self.process, self.visible[device], bytes);
}

void plim_self_count_allocation(int64_t bytes, int count)
{
    if (count > 0) self.process->allocations++;
    else self.process->frees++;
    plim_machine_count(self.machine, self.process, bytes, count);
}

/* --- errors, notes, numbers ------------------------------------------------------------------- */

int plim_self_error(int error)
{
    if (error) thread.error = error;
    return error;
}

int plim_self_take_error(void)
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
