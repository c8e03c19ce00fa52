#include "gpu_state.h"

#include "autotune/base/process_stat.h"
#include "autotune/base/text.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLAIN_GPU "A100-SXM4-80GB"

enum { MAX_RULES = 16, SEEN_DEAD = 1 };

struct process {
    int32_t pid; /* 0: a free row */
    int32_t seen_dead;
    uint64_t born; /* start time, because pids come again */
    int64_t held_bytes[GPU_MAX];
    uint32_t events[GPU_FAULT_COUNT];
    uint8_t struck[MAX_RULES];
};

/* The file. All zeros is a good beginning. */
struct shared {
    uint8_t prepared, gone;
    uint8_t spent[MAX_RULES]; /* rules with "!" that have struck somewhere */
    uint32_t most_events[GPU_FAULT_COUNT], all_events[GPU_FAULT_COUNT];
    struct process processes[GPU_MAX_PROCESSES];
};

struct rule {
    enum gpu_fault kind;
    uint32_t at;
    bool once;
};

static struct {
    bool ready;
    int file; /* -1: no file, nothing is shared */
    struct shared *shared;
    int gpus;
    const struct plim_gpu *models[GPU_MAX];
    int64_t total_bytes[GPU_MAX];
    int64_t strangers_bytes;
    struct rule rules[MAX_RULES];
    int rule_count;
} state;

static const struct {
    const char *name;
    bool lasts;
} faults[] = {
#define GPU_FAULT_ROW(name, text, lasts) {text, lasts},
    GPU_FAULT_MAP(GPU_FAULT_ROW)
#undef GPU_FAULT_ROW
};

/* --- the environment -------------------------------------------------------------------------- */

static _Noreturn void mistaken(const char *variable, const char *value, const char *expected)
{
    fprintf(stderr, "stand-in: %s=%s: %s\n", variable, value, expected);
    abort();
}

/* The next of the values between commas; false at the end. */
static bool next_value(const char **text, char *out, size_t size)
{
    size_t length = strcspn(*text, ",");
    if (**text == '\0') return false;
    snprintf(out, size, "%.*s", (int)(length < size ? length : size - 1), *text);
    *text += length + ((*text)[length] == ',');
    return true;
}

static int64_t size_from(const char *variable, int64_t plain)
{
    const char *text = getenv(variable);
    int64_t bytes = plain;
    if (text && plim_parse_bytes(text, &bytes, NULL)) mistaken(variable, text, "expected a size");
    return bytes;
}

static void read_gpus(void)
{
    const char *text = getenv("PLIM_DOUBLE_GPU");
    char name[80];
    if (!text || !*text) text = PLAIN_GPU;
    for (const char *rest = text; next_value(&rest, name, sizeof(name)); state.gpus++) {
        if (state.gpus == GPU_MAX) mistaken("PLIM_DOUBLE_GPU", text, "too many GPUs");
        if (plim_catalogue_find(name, &state.models[state.gpus], NULL))
            mistaken("PLIM_DOUBLE_GPU", name, "no such GPU in the catalogue");
        state.total_bytes[state.gpus] =
            size_from("PLIM_DOUBLE_MEMORY", state.models[state.gpus]->total_bytes);
    }
    state.strangers_bytes = size_from("PLIM_DOUBLE_OTHERS", 0);
}

static struct rule read_rule(const char *text)
{
    struct rule rule = {.kind = GPU_FAULT_COUNT};
    size_t length = strcspn(text, "@");
    for (int i = 0; i < GPU_FAULT_COUNT; i++)
        if (!strncmp(faults[i].name, text, length) && faults[i].name[length] == '\0')
            rule.kind = (enum gpu_fault)i;
    char *end = "?";
    if (text[length] == '@') rule.at = (uint32_t)strtoul(text + length + 1, &end, 10);
    rule.once = *end == '!';
    if (rule.kind == GPU_FAULT_COUNT || !rule.at || end[rule.once])
        mistaken("PLIM_DOUBLE_FAULT", text, "expected KIND@N or KIND@N!");
    return rule;
}

static void read_faults(void)
{
    const char *text = getenv("PLIM_DOUBLE_FAULT");
    char one[64];
    for (const char *rest = text ? text : ""; next_value(&rest, one, sizeof(one));) {
        if (state.rule_count == MAX_RULES) mistaken("PLIM_DOUBLE_FAULT", text, "too many faults");
        state.rules[state.rule_count++] = read_rule(one);
    }
}

/* --- the file --------------------------------------------------------------------------------- */

static void open_file(void)
{
    static struct shared own;
    const char *path = getenv("PLIM_DOUBLE_STATE");
    state.file = -1;
    state.shared = &own;
    if (!path || !*path) return;
    state.file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (state.file < 0 || ftruncate(state.file, sizeof(struct shared)))
        mistaken("PLIM_DOUBLE_STATE", path, strerror(errno));
    void *memory =
        mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, state.file, 0);
    if (memory == MAP_FAILED) mistaken("PLIM_DOUBLE_STATE", path, strerror(errno));
    state.shared = memory;
}

static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER; /* of this process */

/* A lock on a file ends with its holder, however that ends. */
static void lock(void)
{
    while (state.file >= 0 && flock(state.file, LOCK_EX) && errno == EINTR) continue;
}

static void unlock(void)
{
    if (state.file >= 0) flock(state.file, LOCK_UN);
    pthread_mutex_unlock(&threads);
}

/* --- processes -------------------------------------------------------------------------------- */

static void drop_dead_processes(void)
{
    for (int i = 0; i < GPU_MAX_PROCESSES; i++) {
        struct process *p = &state.shared->processes[i];
        if (p->pid <= 0 || p->pid == getpid() || plim_process_born(p->pid) == p->born) continue;
        if (p->seen_dead)
            *p = (struct process){0};
        else
            p->seen_dead = SEEN_DEAD;
    }
}

static struct process *row_of(int pid)
{
    struct process *unused = NULL;
    uint64_t since = pid > 0 ? plim_process_born(pid) : 0;
    for (int i = 0; i < GPU_MAX_PROCESSES; i++) {
        struct process *p = &state.shared->processes[i];
        if (p->pid == pid && p->born == since) return p;
        if (!p->pid && !unused) unused = p;
    }
    if (!unused) {
        fprintf(stderr, "stand-in: too many processes on one GPU\n");
        abort();
    }
    unused->pid = pid;
    unused->born = since;
    return unused;
}

static struct process *own_row(void)
{
    static struct process *row;
    static int pid;
    if (!row || pid != getpid()) row = row_of(pid = getpid());
    return row;
}

/* Everything that follows happens between start() and unlock(). */
static void start(void)
{
    pthread_mutex_lock(&threads);
    if (!state.ready) {
        read_gpus();
        read_faults();
        open_file();
        state.ready = true;
    }
    lock();
    if (!state.shared->prepared && state.strangers_bytes)
        for (int i = 0; i < state.gpus; i++)
            row_of(GPU_STRANGERS)->held_bytes[i] = state.strangers_bytes;
    state.shared->prepared = true;
}

/* --- memory ----------------------------------------------------------------------------------- */

static int64_t free_of(int gpu)
{
    int64_t left = state.total_bytes[gpu];
    for (int i = 0; i < GPU_MAX_PROCESSES; i++)
        left -= state.shared->processes[i].held_bytes[gpu];
    return left > 0 ? left : 0;
}

int64_t gpu_free_bytes(int gpu)
{
    start();
    drop_dead_processes();
    int64_t bytes = free_of(gpu);
    unlock();
    return bytes;
}

bool gpu_take(int gpu, int64_t bytes)
{
    start();
    drop_dead_processes();
    bool fits = bytes <= free_of(gpu);
    if (fits) own_row()->held_bytes[gpu] += bytes;
    unlock();
    return fits;
}

void gpu_give_back(int gpu, int64_t bytes)
{
    if (gpu_fault(GPU_FAULT_LEAK)) return;
    start();
    own_row()->held_bytes[gpu] -= bytes;
    unlock();
}

void gpu_steal(int gpu, int64_t bytes)
{
    start();
    int64_t left = free_of(gpu);
    row_of(GPU_STRANGERS)->held_bytes[gpu] += bytes < left ? bytes : left;
    unlock();
}

size_t gpu_processes(int gpu, struct gpu_process *out, size_t size)
{
    size_t count = 0;
    start();
    drop_dead_processes();
    for (int i = 0; i < GPU_MAX_PROCESSES; i++) {
        const struct process *p = &state.shared->processes[i];
        if (p->held_bytes[gpu] <= 0) continue;
        if (count < size) out[count] = (struct gpu_process){p->pid, p->held_bytes[gpu]};
        count++;
    }
    unlock();
    return count;
}

/* --- the rest --------------------------------------------------------------------------------- */

int gpu_count(void)
{
    start();
    unlock();
    return state.gpus;
}

const struct plim_gpu *gpu_model(int gpu)
{
    return gpu < gpu_count() ? state.models[gpu] : NULL;
}

int64_t gpu_total_bytes(int gpu)
{
    return gpu < gpu_count() ? state.total_bytes[gpu] : 0;
}

void gpu_uuid(int gpu, uint8_t uuid[16])
{
    static const char made_up[16] = "plimsoll gpu  0";
    memcpy(uuid, made_up, 16);
    uuid[14] = (uint8_t)('0' + gpu);
    uuid[15] = 0;
}

bool gpu_fault(enum gpu_fault kind)
{
    bool strikes = false;
    start();
    struct process *row = own_row();
    uint32_t event = ++row->events[kind];
    state.shared->all_events[kind]++;
    if (event > state.shared->most_events[kind]) state.shared->most_events[kind] = event;
    for (int i = 0; i < state.rule_count; i++) {
        const struct rule *rule = &state.rules[i];
        if (rule->kind != kind) continue;
        if (event == rule->at && !(rule->once && state.shared->spent[i])) {
            row->struck[i] = state.shared->spent[i] = true;
            if (kind == GPU_FAULT_VANISH && !rule->once) state.shared->gone = true;
            strikes = true;
        }
        if (faults[kind].lasts && row->struck[i]) strikes = true;
    }
    unlock();
    return strikes;
}

uint32_t gpu_most_events(enum gpu_fault kind)
{
    start();
    uint32_t events = state.shared->most_events[kind];
    unlock();
    return events;
}

uint32_t gpu_all_events(enum gpu_fault kind)
{
    start();
    uint32_t events = state.shared->all_events[kind];
    unlock();
    return events;
}

const char *gpu_fault_name(enum gpu_fault kind)
{
    return faults[kind].name;
}

void *gpu_driver_symbol(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = driver ? dlsym(driver, name) : NULL;
    if (driver) dlclose(driver); /* others have it open */
    return symbol;
}

void gpu_time_passes(double seconds)
{
    void *symbol = gpu_driver_symbol("double_time_passes");
    void (*passes)(double seconds);
    memcpy(&passes, &symbol, sizeof(passes));
    if (symbol) passes(seconds);
}

bool gpu_gone(void)
{
    start();
    bool gone = state.shared->gone;
    unlock();
    return gone;
}
