/* Training steps, recognised from the sequence of a program's launches: when has its memory reached
 * its final level?
 *
 * A GPU is not told where a program's steps begin. The signs that can be seen, and their use:
 *
 * - Weights are updated once per step. PyTorch's optimizers report it; their kernels are known by name;
 *   or many addresses that libraries read forward and backward are written in a row (a few are enough
 *   where tensors beside them are written in place, as by a loop over all parameters). Such a
 *   *burst* of launches ends a step.
 * - Steps are distinguished from layers by what runs after a burst until something is known to belong
 *   to a backward pass: after a step it is a whole forward pass, after the update of one parameter
 *   within a backward pass it is little. A forward pass is measured in distinct *keys*: a library
 *   call's function and transposes with the address of one operand. Weights and saved activations
 *   each have their own, and it does not matter whether they lie where they did a step ago.
 * - Micro-steps of gradient accumulation are distinguished from steps because nothing is updated. Signs
 *   that some programs show in each micro-step (clipping, averages) need many more repetitions, as does
 *   a sequence that is only seen to repeat.
 * - Steps may differ: lengths of batches vary, some are followed by an evaluation. Each has
 *   a kind, the hash of its launches with their grids. A kind that was never seen before means that
 *   the next step may be larger: then ten times as many steps have to pass.
 * - A caching allocator may rearrange memory over many steps, until a block is missing that all earlier
 *   steps found. It has settled when the large blocks of a step lie where those of an
 *   earlier step lay: from then on the steps repeat. Until then ten times as many steps have to pass, too.
 *
 * A verdict that comes too early is wrong; one that comes late costs time. So in unclear cases
 * several steps are merged rather than one split. What cannot be predicted: what a program does for
 * the first time later on (its first evaluation, a longer batch, a second optimizer's first step, except
 * PyTorch's optimizers, which are announced: watch.c).
 *
 * It works only on the calls below; no CUDA, no locks (the caller has one), one reading of the clock for
 * each burst. Memory is about 12 MB of address space, touched as needed; 10 to 40 ns per launch.
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

/* A kernel that runs now (one that is not captured). `token` is the same for the same kernel, grid
 * and block, whatever the operands. `written`: device addresses that it is known to write to. */
void plim_steps_launch(struct plim_steps *steps, uint64_t token, enum plim_steps_class class,
                       const uintptr_t *written, size_t count);

/* The next kernel works in place: it also reads what it writes at `at`. */
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

/* The program has an optimizer that will report its steps. Until it does, repeated launches of the same shapes alone,
 * which may be those of layers, do not count as steps. */
void plim_steps_will_be_told(struct plim_steps *steps);

/* An optimizer of the program reports that it has stepped: the strongest sign of all, and the end of its
 * burst. Several in a row (Muon beside AdamW) are one step, and so are those of single layers within
 * a backward pass. `optimizer` identifies it, the same in each step; 0: not known. If it reports again with work in
 * between, that ends a step however little work it was: before training a program may evaluate, or try cuDNN's
 * algorithms. */
void plim_steps_told(struct plim_steps *steps, uint64_t optimizer);

/* The program ends: its optimizer's last report has ended a step, although no backward pass follows. */
void plim_steps_finish(struct plim_steps *steps);

/* The framework's allocator hands out a block. (Blocks of up to 1 MiB come from segments of 2 MiB; they never
 * stop moving, and take little memory.) */
void plim_steps_block(struct plim_steps *steps, uintptr_t at, int64_t bytes);

/* A copy or a memset to device memory. */
void plim_steps_copy(struct plim_steps *steps, uintptr_t to);

/* The device memory that the process now holds, all GPUs together; at each change. */
void plim_steps_held(struct plim_steps *steps, int64_t bytes);

/* Memory was refused. The step counts as one in which the peak grew, even if the program got the
 * memory by releasing its cache: free memory is then divided into other pieces than before, and a
 * later step may not find its memory. */
void plim_steps_refused(struct plim_steps *steps);

/* --- what is known ---------------------------------------------------------------------------- */

/* Has the state changed since the last call? Cheap enough for every launch. */
bool plim_steps_changed(struct plim_steps *steps);

/* Fills in the state; zeroed for NULL. Sorts 64 numbers, so do not call it for every launch. */
void plim_steps_look(const struct plim_steps *steps, struct plim_steps_state *out);

#endif
