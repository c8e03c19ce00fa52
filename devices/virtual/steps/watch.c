#include "watch.h"
#include "steps.h"
#include "token.h"
#include "devices/virtual/machine/self.h"
#include "devices/virtual/record/stream.h"
#include "autotune/base/clock.h"
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    struct plim_steps *steps;
    int64_t refusals; /* already reported to `steps` */
    int64_t epoch_peak; /* memory peak at the end of the last epoch, and for how many epochs it has not grown */
    int still_epochs;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* True if epochs are not cut short, or enough of them have passed without a growing peak. */
static bool are_epochs_still(const struct plim_machine *machine, const struct plim_machine_process *process)
{
    bool has_epochs = process->in_epoch || process->epochs > 0;
    return !machine->epoch_steps || !has_epochs || watch.still_epochs >= machine->repetitions;
}

/* True if every optimizer has stepped (a generator's may step only after several of its discriminator's). Optimizers
 * that never step are waited for at most MOST_STEPS steps. */
static bool have_all_stepped(const struct plim_machine_process *process)
{
    enum { MOST_STEPS = 50 };
    return process->waiting_optimizers <= 0 || process->steps >= MOST_STEPS;
}

static void publish(void)
{
    struct plim_steps_state state;
    struct plim_machine_process *process = plim_self_process();
    const struct plim_machine *machine = plim_self_machine();
    if (!process) return;
    plim_steps_get_state(watch.steps, &state);
    if (state.steps > process->steps) plim_stream_step();
    process->steps = state.steps;
    process->step_seconds = state.seconds;
    process->leak_bytes = state.leaks ? state.leak_bytes : 0;
    process->rule = (int32_t)state.rule;
    bool may_rest =
        machine->repetitions && are_epochs_still(machine, process) && have_all_stepped(process);
    process->steady =
        may_rest && plim_steps_is_steady(&state, machine->repetitions, machine->accumulation);
    state.moves = false;
    process->still =
        may_rest && plim_steps_is_steady(&state, machine->repetitions, machine->accumulation);
}

/* A forked child has no row, and possibly no thread that would release the lock. */
static void publish_at_exit(void)
{
    if (!plim_self_process()) return;
    pthread_mutex_lock(&watch.lock);
    plim_steps_finish(watch.steps);
    publish();
    pthread_mutex_unlock(&watch.lock);
}

/* Every event is reported between begin() and end(). A refused allocation is noticed at the next event. */
static struct plim_steps *begin(void)
{
    const struct plim_machine_process *process = plim_self_process();
    pthread_mutex_lock(&watch.lock);
    if (!watch.steps && process) {
        watch.steps = plim_steps_create(plim_clock_seconds);
        atexit(publish_at_exit);
    }
    if (process && process->refusal.count != watch.refusals) {
        watch.refusals = process->refusal.count;
        plim_steps_refused(watch.steps);
    }
    return watch.steps;
}

static void end(void) { pthread_mutex_unlock(&watch.lock); }

static void end_launch(void)
{
    if (plim_steps_changed(watch.steps)) publish();
    end();
}

void plim_watch_kernel(uint64_t token, enum plim_steps_class class, const struct gpu_dim3 *grid,
                       const struct gpu_dim3 *block, const uintptr_t *written, size_t count)
{
    uint64_t kernel = token;
    token = plim_token_more(token, (uint64_t)grid->x << 32 | grid->y);
    token = plim_token_more(token, (uint64_t)grid->z << 32 | block->x);
    token = plim_token_more(token, (uint64_t)block->y << 32 | block->z);
    plim_steps_launch(begin(), token, class, written, count);
    plim_stream_write(PLIM_STREAM_KERNEL, kernel, 0);
    end_launch();
}

void plim_watch_in_place(uintptr_t at)
{
    plim_steps_in_place(begin(), at);
    end();
}

void plim_watch_library(const char *what, uint64_t form, uint64_t sizes, const uintptr_t *operands,
                        size_t read, size_t written)
{
    uint64_t operation = plim_token_more(plim_token_of(what), form);
    uint64_t token = plim_token_more(operation, sizes);
    struct plim_steps *steps = begin();
    if (read + written)
        plim_steps_library(steps, token, operation, operands, read, operands + read, written);
    else plim_steps_launch(steps, token, PLIM_STEPS_WORK, NULL, 0);
    plim_stream_write(PLIM_STREAM_LIBRARY, operation, 0);
    end_launch();
}

void plim_watch_graph(uint64_t token, enum plim_steps_class class, size_t library_calls)
{
    plim_steps_graph(begin(), token, class, (int64_t)library_calls);
    plim_stream_write(PLIM_STREAM_GRAPH, 0, 0);
    end_launch();
}

void plim_watch_copy(uintptr_t to)
{
    plim_steps_copy(begin(), to);
    plim_stream_write(PLIM_STREAM_COPY, 0, 0);
    end();
}

void plim_watch_block(uintptr_t at, int64_t bytes, int64_t reserved_bytes, int gpu, int cuda_stream)
{
    struct plim_steps *steps = begin();
    if (bytes > 0) plim_steps_block(steps, at, bytes);
    plim_stream_block(at, bytes, reserved_bytes, gpu, cuda_stream);
    end();
}

void plim_watch_cost(const struct plim_cost *cost)
{
    begin();
    plim_stream_cost(cost);
    end();
}

void plim_watch_reduce(const struct plim_reduce_launch *launch, bool shares, int cuda_stream)
{
    begin();
    plim_stream_reduce(launch, shares, cuda_stream);
    end();
}

__attribute__((visibility("default"))) void plimsoll_optimizer_stepped(int in_epoch, int epochs,
                                                                        int waiting_optimizers, uint64_t optimizer)
{
    struct plim_steps *steps = begin();
    struct plim_machine_process *process = plim_self_process();
    if (process) {
        if (epochs > process->epochs) {
            bool grew = process->peak_all_bytes > watch.epoch_peak;
            watch.still_epochs = grew ? 0 : watch.still_epochs + 1;
            watch.epoch_peak = process->peak_all_bytes;
        }
        process->in_epoch = in_epoch;
        process->epochs = epochs;
        process->waiting_optimizers = waiting_optimizers;
    }
    plim_steps_optimizer_stepped(steps, optimizer);
    end_launch();
}

__attribute__((visibility("default"))) void plimsoll_optimizer_made(void)
{
    plim_steps_expect_optimizer(begin());
    end();
}

__attribute__((visibility("default"))) int plimsoll_epoch_steps(void)
{
    const struct plim_machine *machine = plim_self_machine();
    return machine ? machine->epoch_steps : 0;
}

__attribute__((visibility("default"))) void plimsoll_out_of_memory(int device, int64_t asked_bytes,
                                                                    int64_t free_bytes)
{
    plim_self_request_failed(device, asked_bytes, free_bytes);
}

__attribute__((visibility("default"))) void plimsoll_cache_emptied(void)
{
    begin();
    plim_stream_write(PLIM_STREAM_EMPTY_CACHE, 0, 0);
    end();
}

/* `count`: 1 for an allocation, -1 for a free. */
static void watch_memory(int device, uint64_t at, int64_t bytes, int count, int cuda_stream)
{
    int64_t held = 0;
    const struct plim_machine_process *process = plim_self_process();
    plim_self_count_allocation(device, bytes, count);
    for (int i = 0; i < PLIM_MACHINE_GPUS; i++) held += process->held_bytes[i];
    plim_steps_set_held(begin(), held);
    if (count > 0)
        plim_stream_allocation(at, bytes, cuda_stream);
    else
        plim_stream_write(PLIM_STREAM_FREE, at, bytes);
    end();
}

void plim_watch_allocation(int device, uint64_t at, int64_t bytes, int cuda_stream)
{
    watch_memory(device, at, bytes, 1, cuda_stream);
}

void plim_watch_free(int device, uint64_t at, int64_t bytes)
{
    watch_memory(device, at, bytes, -1, 0);
}
