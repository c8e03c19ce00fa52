/* Training steps, recognised from the stream of a program's launches: when has its memory reached
 * what it will stay at?
 *
 * The steps of a program are not told to a GPU. What is there to be seen, and what is made of it:
 *
 * - Weights are updated once a step. PyTorch's optimizers say when; their kernels are known by name;
 *   or many addresses that libraries read forward and backward are written in a row: few will do
 *   where tensors beside them are written in place, as by a loop over all parameters. Such a
 *   *burst* of launches ends a step.
 * - Layers are told from steps by what follows a burst until something runs that is known to belong
 *   to a backward pass: after a step it is a whole forward pass, after the update of one parameter
 *   within a backward pass it is little. A forward pass is measured in distinct *keys*: a library
 *   call's function and transposes with the address of one operand. Weights and saved activations
 *   each have their own, and it does not matter whether they are where they were a step ago.
 * - Micro-steps of gradient accumulation are told from steps because nothing is updated. Signs that
 *   some programs show in each micro-step (clipping, averages) need many more repetitions, as does
 *   a stream that is only seen to repeat.
 * - Steps need not be alike: lengths of batches vary, some are followed by an evaluation. Each has
 *   a kind, the hash of its launches with their grids. Kinds that were never seen before mean that
 *   the next one can be larger: then ten times as many steps have to pass.
 * - An allocator that keeps what was given back may lay memory out anew for many steps, until a piece is
 *   missing that all steps before had. It is done when the large blocks of a step lie where those of an
 *   earlier one lay: from there on the steps repeat. Until then ten times as many steps have to pass, too.
 *
 * A verdict that comes too early is wrong; one that comes late costs time. So what is unclear
 * merges steps into one rather than splitting one. What cannot be known: what a program does for
 * the first time later on (its first evaluation, a longer batch, a second optimizer's first turn but for
 * PyTorch's, which tell: watch.c).
 *
 * It works on what it is told; no CUDA, no locks (the caller has one), no calls of the clock but
 * one a burst. Memory is about 12 MB of address space, touched as needed; 10 to 40 ns a launch.
 */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_H

#include "steps_class.h"
#include "steps_verdict.h"
#include <stddef.h>

struct plim_steps; /* of one process */

/* `clock`: seconds, as plim_clock_seconds(). NULL: no memory; all calls below take that. */
struct plim_steps *plim_steps_create(double (*clock)(void));
void plim_steps_destroy(struct plim_steps *steps);

/* --- what happens, in order ------------------------------------------------------------------- */

/* A kernel that runs now (not: is captured). `token` is the same for the same kernel, grid
 * and block, whatever the operands. `written`: device addresses that it is known to write to. */
void plim_steps_launch(struct plim_steps *steps, uint64_t token, enum plim_steps_class class,
                       const uintptr_t *written, size_t count);

/* The kernel that is launched next works in place: what it writes there it reads, too. */
void plim_steps_in_place(struct plim_steps *steps, uintptr_t at);

/* A library's launch that runs now. `operation`: hash of the function and its transposes, without
 * sizes; for cuDNN the plan. `token`: with sizes. `read` are the operands' addresses in their
 * order, workspaces left out; where inputs and outputs are not told apart, all of them. NULLs are
 * skipped. */
void plim_steps_library(struct plim_steps *steps, uint64_t token, uint64_t operation,
                        const uintptr_t *read, size_t read_count, const uintptr_t *written,
                        size_t written_count);

/* A launch of a graph. `library_calls`: launches of libraries that were captured into it. */
void plim_steps_graph(struct plim_steps *steps, uint64_t graph, enum plim_steps_class class,
                      int64_t library_calls);

/* The program has an optimizer that will say when it steps. Until then launches of the same shapes alone, which may be
 * those of layers, are no steps. */
void plim_steps_will_be_told(struct plim_steps *steps);

/* An optimizer of the program says that it has stepped: the strongest sign of all, and the end of its
 * burst. Several in a row (Muon beside AdamW) are one step, and so are those of single layers within
 * a backward pass. `optimizer`: which it is, the same in each step; 0: not known. One that speaks again, with work
 * between, ends a step however little that was: before it trains a program may evaluate, or try cuDNN's algorithms. */
void plim_steps_told(struct plim_steps *steps, uint64_t optimizer);

/* The program ends: what its optimizer said last has ended a step, though no backward pass follows. */
void plim_steps_finish(struct plim_steps *steps);

/* The framework's allocator hands out a block. (Those of up to 1 MiB come from segments of 2 MiB; they move
 * about without end, and cost little.) */
void plim_steps_block(struct plim_steps *steps, uintptr_t at, int64_t bytes);

/* A copy or a memset to device memory. */
void plim_steps_copy(struct plim_steps *steps, uintptr_t to);

/* The device memory that the process now holds, all GPUs together; at each change. */
void plim_steps_held(struct plim_steps *steps, int64_t bytes);

/* Memory was refused. Its step counts as one in which the peak grew, even if the program got the
 * memory by giving back what it cached: what is free then lies in other pieces than before, and a
 * later step may not find its memory. */
void plim_steps_refused(struct plim_steps *steps);

/* --- what is known ---------------------------------------------------------------------------- */

/* Is there something new to look at since this was asked last? Cheap: for every launch. */
bool plim_steps_changed(struct plim_steps *steps);

/* Sorts 64 numbers: not for every launch. Zeroed for NULL. */
void plim_steps_look(const struct plim_steps *steps, struct plim_steps_state *out);

#endif
