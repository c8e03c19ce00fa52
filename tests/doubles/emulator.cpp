#include "doubles/emulator.h"
#include "doubles/emulator_cuda.h"
#include "doubles/fiber.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#if defined __SANITIZE_ADDRESS__
#define EMULATOR_ASAN 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif
#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace
{

enum { MAX_THREADS = 1024, WARP = 32, GUARD_BYTES = 256, GUARD = 0xa5, UNDEFINED = 0xff };
enum { COPY_BYTES = 16, MAX_COPIES = 256 }; /* asynchronous copies of a thread under way */
enum order { FORWARD, BACKWARD, SHUFFLED };
enum state { UNSTARTED, RUNNABLE, IN_EXCHANGE, AT_BARRIER, ENDED };

struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    unsigned group;
};

struct thread {
    unsigned number; /* in the block */
    enum state state;
    struct fiber *fiber;
    /* what it brought to an exchange or barrier, and what it takes away */
    enum emulated_wait kind;
    unsigned mask;
    int which, width;
    uint64_t given, taken;
    emulated_work *work;
    /* what it copies, oldest first, and the group that is open */
    struct copy copies[MAX_COPIES];
    unsigned copy_count, group;
};

const struct emulated_kernel *kernels;

/* The launch and the block that run. */
const struct emulated_kernel *kernel;
const void *kernel_args;
enum order order;
uint32_t random_state;
unsigned count; /* of threads */
struct thread threads[MAX_THREADS];
unsigned start_order[MAX_THREADS], started, ended;
struct thread *current;
struct thread *runnable[MAX_THREADS]; /* a ring */
unsigned runnable_first, runnable_count;
unsigned exchanging[MAX_THREADS / WARP]; /* lanes that wait, a bit each */
unsigned at_barrier, predicates;

struct fiber *idle[MAX_THREADS], *entered;
unsigned idle_count;

alignas(16) unsigned char shared[EMULATED_SHARED_LIMIT + GUARD_BYTES];
uint32_t shared_bytes;

[[noreturn]] void fail(const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "emulator: kernel %s: block (%u, %u, %u): %s\n", kernel->name, blockIdx.x,
            blockIdx.y, blockIdx.z, text);
    abort();
}

/* --- threads ---------------------------------------------------------------------------------- */

void become(struct thread *t)
{
    current = t;
    unsigned plane = blockDim.x * blockDim.y, rest = t->number % plane;
    threadIdx = {rest % blockDim.x, rest / blockDim.x, t->number / plane};
}

void make_runnable(struct thread *t)
{
    t->state = RUNNABLE;
    runnable[(runnable_first + runnable_count++) % MAX_THREADS] = t;
}

unsigned next_random(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)random_state * below >> 32);
}

/* In turn; backward: the one released last, so that the last warp runs ahead of the others. */
struct thread *next_runnable()
{
    if (runnable_count == 0) return nullptr;
    unsigned which = 0;
    if (order == BACKWARD) which = runnable_count - 1;
    if (order == SHUFFLED) which = next_random(runnable_count);
    struct thread **taken = &runnable[(runnable_first + which) % MAX_THREADS], *t = *taken;
    if (order == BACKWARD) {
        runnable_count--;
        return t;
    }
    *taken = runnable[runnable_first];
    runnable_first = (runnable_first + 1) % MAX_THREADS;
    runnable_count--;
    return t;
}

/* A fiber runs thread after thread as long as none has to wait. */
void fiber_body()
{
    struct fiber *self = entered;
    for (;;) {
        while (started < count) {
            become(&threads[start_order[started++]]);
            current->fiber = self;
            kernel->entry(kernel_args);
            if (current->copy_count) fail("thread %u ends before its copies", current->number);
            current->state = ENDED;
            ended++;
        }
        idle[idle_count++] = self;
        fiber_leave(self);
    }
}

void wait()
{
    struct thread *self = current;
    fiber_leave(self->fiber);
}

void prepare_threads()
{
    for (unsigned i = 0; i < count; i++) {
        threads[i].number = i;
        threads[i].state = UNSTARTED;
        threads[i].copy_count = threads[i].group = 0;
        start_order[i] = order == BACKWARD ? count - 1 - i : i;
    }
    for (unsigned i = count; order == SHUFFLED && i > 1; i--) {
        unsigned other = next_random(i), moved = start_order[i - 1];
        start_order[i - 1] = start_order[other];
        start_order[other] = moved;
    }
    memset(exchanging, 0, sizeof exchanging);
    started = ended = at_barrier = predicates = 0;
}

[[noreturn]] void fail_stuck()
{
    unsigned in_exchange = 0, waiting = 0, example = 0;
    for (unsigned i = 0; i < count; i++) {
        in_exchange += threads[i].state == IN_EXCHANGE;
        waiting += threads[i].state == AT_BARRIER;
        if (threads[i].state == AT_BARRIER || threads[i].state == IN_EXCHANGE) example = i;
    }
    fail("deadlock: of %u threads %u wait at __syncthreads, %u in a warp's exchange, %u have ended "
         "(thread %u waits, mask %08x)",
         count, waiting, in_exchange, ended, example,
         threads[example].state == IN_EXCHANGE ? threads[example].mask : 0xffffffffu);
}

void run_threads()
{
    prepare_threads();
    for (;;) {
        if (struct thread *t = next_runnable()) {
            become(t);
            fiber_enter(t->fiber);
        } else if (started < count) {
            entered = idle_count > 0 ? idle[--idle_count] : fiber_create(fiber_body);
            fiber_enter(entered);
        } else if (ended == count) {
            return;
        } else {
            fail_stuck();
        }
    }
}

/* --- exchanges -------------------------------------------------------------------------------- */

struct thread *lane_of_warp(unsigned warp, unsigned lane)
{
    return &threads[warp * WARP + lane];
}

/* The lane whose value `t` takes; its own where the source is beyond its segment. */
unsigned source_lane(const struct thread *t)
{
    int lane = (int)(t->number % WARP), first = lane / t->width * t->width, source = lane;
    switch (t->kind) {
    case EMULATED_SHUFFLE:
        return (unsigned)(first + (t->which & (t->width - 1)));
    case EMULATED_SHUFFLE_UP:
        source = lane - t->which;
        break;
    case EMULATED_SHUFFLE_DOWN:
        source = lane + t->which;
        break;
    case EMULATED_SHUFFLE_XOR:
        source = lane ^ t->which;
        break;
    default:
        return (unsigned)lane;
    }
    return (unsigned)(source < first || source >= first + t->width ? lane : source);
}

void work_together(unsigned warp, unsigned lanes)
{
    void *operands[WARP];
    if (~lanes) fail("an instruction of the whole warp meets lanes %08x only", lanes);
    for (unsigned lane = 0; lane < WARP; lane++) {
        const struct thread *t = lane_of_warp(warp, lane);
        if (t->work != current->work) fail("lanes of a warp meet in different instructions");
        operands[lane] = (void *)(uintptr_t)t->given;
    }
    current->work(operands);
}

void complete_exchange(unsigned warp, unsigned lanes)
{
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < WARP; lane++) {
        if (!(lanes >> lane & 1)) continue;
        const struct thread *t = lane_of_warp(warp, lane);
        if (t->mask != current->mask || t->kind != current->kind)
            fail("threads %u and %u of a warp meet in different exchanges (masks %08x, %08x)",
                 t->number, current->number, t->mask, current->mask);
        if (t->given != 0) ballot |= 1u << lane;
    }
    if (current->kind == EMULATED_TOGETHER) work_together(warp, lanes);
    unsigned first = order == SHUFFLED ? next_random(WARP) : 0;
    for (unsigned i = 0; i < WARP; i++) {
        unsigned lane = (i + first) % WARP;
        if (!(lanes >> lane & 1)) continue;
        struct thread *t = lane_of_warp(warp, lane);
        unsigned source = source_lane(t);
        if (!(lanes >> source & 1))
            fail("thread %u shuffles with lane %u, which takes no part (mask %08x)", t->number,
                 source, t->mask);
        t->taken = t->kind == EMULATED_BALLOT ? ballot : lane_of_warp(warp, source)->given;
        if (t != current) make_runnable(t);
    }
    exchanging[warp] &= ~lanes;
    current->state = RUNNABLE;
}

/* --- blocks ----------------------------------------------------------------------------------- */

void prepare_shared_memory()
{
#ifdef EMULATOR_ASAN
    __asan_unpoison_memory_region(shared, sizeof shared);
#endif
    memset(shared, UNDEFINED, shared_bytes);
    memset(shared + shared_bytes, GUARD, GUARD_BYTES);
#ifdef EMULATOR_ASAN
    __asan_poison_memory_region(shared + shared_bytes, sizeof shared - shared_bytes);
#endif
}

void check_shared_memory()
{
#ifdef EMULATOR_ASAN
    __asan_unpoison_memory_region(shared, sizeof shared);
#endif
    for (unsigned i = 0; i < GUARD_BYTES; i++)
        if (shared[shared_bytes + i] != GUARD)
            fail("wrote byte %u of %u bytes of dynamic shared memory", shared_bytes + i,
                 shared_bytes);
}

enum order order_from_environment()
{
    const char *text = getenv("PLIM_EMULATOR_ORDER");
    if (!text || strcmp(text, "forward") == 0) return FORWARD;
    if (strcmp(text, "backward") == 0) return BACKWARD;
    if (strcmp(text, "shuffled") == 0) return SHUFFLED;
    fail("PLIM_EMULATOR_ORDER is '%s', expected forward, backward or shuffled", text);
}

void check_launch(const uint32_t grid[3], const uint32_t block[3])
{
    uint64_t block_threads = (uint64_t)block[0] * block[1] * block[2];
    if (block_threads == 0 || block_threads > kernel->max_threads || block[2] > 64)
        fail("blocks of %u x %u x %u threads, expected 1 to %u", block[0], block[1], block[2],
             kernel->max_threads);
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > INT32_MAX || grid[1] > 65535 ||
        grid[2] > 65535)
        fail("a grid of %u x %u x %u, expected 1 to 2^31 - 1 x 65535 x 65535", grid[0], grid[1],
             grid[2]);
    if (shared_bytes > EMULATED_SHARED_LIMIT)
        fail("%u bytes of shared memory, expected at most %d", shared_bytes, EMULATED_SHARED_LIMIT);
}

} // namespace

/* --- for kernels ------------------------------------------------------------------------------ */

uint64_t emulated_exchange(enum emulated_wait kind, unsigned mask, uint64_t value, int which,
                           int width)
{
    struct thread *self = current;
    unsigned warp = self->number / WARP, lane = self->number % WARP;
    if (!(mask >> lane & 1)) fail("thread %u is not in its mask %08x", self->number, mask);
    self->kind = kind, self->mask = mask, self->given = value;
    self->which = which, self->width = width;
    self->state = IN_EXCHANGE;
    exchanging[warp] |= 1u << lane;
    unsigned lanes_here = count - warp * WARP;
    unsigned needed = lanes_here < WARP ? mask & ((1u << lanes_here) - 1) : mask;
    if ((exchanging[warp] & needed) == needed)
        complete_exchange(warp, needed);
    else
        wait();
    return self->taken;
}

void emulated_together(emulated_work *work, void *operands)
{
    current->work = work;
    emulated_exchange(EMULATED_TOGETHER, 0xffffffffu, (uint64_t)(uintptr_t)operands, 0, WARP);
}

void emulated_fail(const char *mistake)
{
    fail("%s", mistake);
}

void emulated_copy_async(void *to, const void *from, bool there)
{
    struct thread *self = current;
    if (self->copy_count == MAX_COPIES) fail("thread %u: too many copies", self->number);
    if ((uintptr_t)to % COPY_BYTES || (there && (uintptr_t)from % COPY_BYTES))
        fail("thread %u copies to or from a place that is not aligned", self->number);
    self->copies[self->copy_count++] = {to, there ? from : nullptr, self->group};
}

void emulated_copy_commit(void)
{
    current->group++;
}

void emulated_copy_wait(unsigned groups)
{
    struct thread *self = current;
    unsigned done = 0;
    for (; done < self->copy_count; done++) {
        const struct copy *c = &self->copies[done];
        if (c->group + groups >= self->group) break;
        if (c->from)
            memcpy(c->to, c->from, COPY_BYTES);
        else
            memset(c->to, 0, COPY_BYTES);
    }
    self->copy_count -= done;
    memmove(self->copies, self->copies + done, self->copy_count * sizeof *self->copies);
}

int emulated_barrier(bool predicate)
{
    struct thread *self = current;
    self->state = AT_BARRIER;
    predicates += predicate;
    if (++at_barrier < count) {
        wait();
        return (int)self->taken;
    }
    for (unsigned i = 0; i < count; i++) {
        struct thread *t = &threads[order == SHUFFLED ? start_order[i] : i];
        t->taken = predicates;
        if (t != self) make_runnable(t);
    }
    self->state = RUNNABLE;
    at_barrier = predicates = 0;
    return (int)self->taken;
}

void *emulated_shared_memory(void)
{
    return shared;
}

emulated_registration::emulated_registration(const char *name, size_t args_bytes,
                                             void (*entry)(const void *args), uint32_t max_threads,
                                             uint32_t)
    : kernel{name, args_bytes, max_threads, entry, kernels}
{
    if (emulated_kernel_find(name) || args_bytes > EMULATED_ARGS_LIMIT ||
        max_threads > MAX_THREADS) {
        fprintf(stderr, "emulator: kernel %s: two of this name, or beyond what CUDA allows\n",
                name);
        abort();
    }
    kernels = &kernel;
}

/* --- for tests -------------------------------------------------------------------------------- */

const struct emulated_kernel *emulated_kernel_first(void)
{
    return kernels;
}

const struct emulated_kernel *emulated_kernel_find(const char *name)
{
    for (const struct emulated_kernel *k = kernels; k; k = k->next)
        if (strcmp(k->name, name) == 0) return k;
    return nullptr;
}

void emulated_kernel_run(const struct emulated_kernel *k, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t bytes, const void *args)
{
    kernel = k;
    kernel_args = args;
    order = order_from_environment();
    random_state = 1;
    shared_bytes = bytes;
    blockIdx = {0, 0, 0};
    check_launch(grid, block);
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    count = block[0] * block[1] * block[2];
    for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++) {
                prepare_shared_memory();
                run_threads();
                check_shared_memory();
            }
}
