#include "watch.h"
#include "steps.h"
#include "autotune/base/clock.h"
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    struct plim_steps *steps;
    int64_t refusals; /* that the steps were told of */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void publish(void)
{
    struct plim_steps_state state;
    struct plim_machine_process *process = plim_self_process();
    const struct plim_machine *machine = plim_self_machine();
    if (!process) return;
    plim_steps_look(watch.steps, &state);
    process->steps = state.steps;
    process->step_seconds = state.seconds;
    process->leak_bytes = state.leaks ? state.leak_bytes : 0;
    process->rule = (int32_t)state.rule;
    process->steady = machine->repetitions &&
                      plim_steps_is_steady(&state, machine->repetitions, machine->accumulation);
}

static void publish_at_exit(void)
{
    pthread_mutex_lock(&watch.lock);
    publish();
    pthread_mutex_unlock(&watch.lock);
}

/* Everything below is between begin() and end(). A refusal is seen at what happens next. */
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

static uint64_t mix(uint64_t a, uint64_t b)
{
    a = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    return a ^ a >> 31;
}

void plim_watch_kernel(const struct plim_kernel *kernel, const struct plim_launch *launch,
                       const uintptr_t *written, size_t count)
{
    uint64_t token = kernel ? kernel->token : 0;
    token = mix(token, (uint64_t)launch->grid.x << 32 | launch->grid.y);
    token = mix(token, (uint64_t)launch->grid.z << 32 | launch->block.x);
    token = mix(token, (uint64_t)launch->block.y << 32 | launch->block.z);
    struct plim_steps *steps = begin();
    plim_steps_launch(steps, token,
                      kernel ? (enum plim_steps_class)kernel->steps_class : PLIM_STEPS_PLAIN, written,
                      count);
    end_launch();
}

void plim_watch_work(const struct plim_work *work)
{
    uint64_t operation = mix(plim_kernel_hash(work->what), work->form);
    uint64_t token = mix(operation, work->sizes);
    const uintptr_t *operands = (const uintptr_t *)work->operands;
    struct plim_steps *steps = begin();
    if (work->read + work->written)
        plim_steps_library(steps, token, operation, operands, work->read, operands + work->read,
                           work->written);
    else plim_steps_launch(steps, token, PLIM_STEPS_WORK, NULL, 0);
    end_launch();
}

void plim_watch_graph(const struct plim_graph *graph, const struct plim_graph_sum *sum)
{
    uint64_t token = mix((uint64_t)(uintptr_t)graph, plim_graph_nodes(graph, NULL));
    plim_steps_graph(begin(), token, (enum plim_steps_class)sum->steps_class, sum->calls);
    end_launch();
}

void plim_watch_foreign_graph(uint64_t graph)
{
    plim_steps_launch(begin(), mix(graph, 1), PLIM_STEPS_PLAIN, NULL, 0);
    end_launch();
}

void plim_watch_copy(uintptr_t to)
{
    plim_steps_copy(begin(), to);
    end();
}

void plim_watch_allocation(int64_t bytes, int count)
{
    int64_t held = 0;
    const struct plim_machine_process *process = plim_self_process();
    plim_self_count_allocation(bytes, count);
    for (int i = 0; i < PLIM_MACHINE_CARDS; i++) held += process->held_bytes[i];
    plim_steps_held(begin(), held);
    end();
}
