/* What the program does, told to the recogniser of its steps (steps.h) and from there to plimsoll, in
 * the machine's row of this process.
 */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H
#define PLIM_DEVICES_VIRTUAL_STEPS_WATCH_H

#include "devices/virtual/work/kernel.h"

/* A kernel that was launched and not captured, and where it is known to have written. */
void plim_watch_kernel(const struct plim_kernel *kernel, const struct plim_launch *launch,
                       const uintptr_t *written, size_t count);
void plim_watch_work(const struct plim_work *work);
void plim_watch_graph(const struct plim_graph *graph, const struct plim_graph_sum *sum);
void plim_watch_copy(uintptr_t to);

/* A graph that is only known by a number. */
void plim_watch_foreign_graph(uint64_t graph);

/* Memory of a card was taken, or given back (count -1), by an allocation of so many bytes. */
void plim_watch_allocation(int64_t bytes, int count);

#endif
