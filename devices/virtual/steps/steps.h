/* Training steps, recognised from a program's sequence of launches, in order to tell when its memory has reached its
 * final level.
 *
 * A GPU is not told where the steps of a program begin. The available signs, and how they are used:
 *
 * - Weights are updated once per step. PyTorch's optimizers report it; their kernels are known by name; or many
 * addresses that libraries read in the forward and backward pass are written in a row (few suffice if tensors beside
 * them are written in place, as by a loop over all parameters). Such a *burst* of launches ends a step.
 * - A burst within a backward pass, such as the update of one layer, is told from the end of a step by how much runs
 * after it before the next launch that is known to belong to a backward pass: a whole forward pass after a step, little
 * otherwise. A forward pass is measured in distinct *keys*: a library call's function and transposes, with the address
 * of one operand. Each weight and saved activation has its own key, whether or not it lies where it did in the previous
 * step.
 * - Micro-steps of gradient accumulation differ from steps in that nothing is updated. Signs that some programs give in
 * every micro-step (clipping, averages) need many more repetitions, as does a sequence that merely repeats.
 * - Steps may differ: batch lengths vary, some steps are followed by an evaluation. Each step has a kind, the hash of
 * its launches and their grids. A kind not seen before means that the next step may be larger; then ten times as many
 * steps are required.
 * - A caching allocator may rearrange memory over many steps, until it lacks a block that all earlier steps found. It
 * has settled when the large blocks of a step lie where those of an earlier step lay: from then on the steps repeat.
 * Until then, too, ten times as many steps are required.
 *
 * A verdict that comes too early is wrong; one that comes late costs time. So in unclear cases several steps are merged
 * rather than one split. What cannot be predicted is what a program does for the first time later on (its first
 * evaluation, a longer batch, the first step of a second optimizer other than PyTorch's, which are announced: watch.c).
 *
 * This code depends only on the calls below; it uses no CUDA and no locks (the caller holds one), and reads the clock
 * once per burst. It takes about 12 MB of address space, touched as needed, and 10 to 40 ns per launch. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_H

#include "steps_class.h"
#include "steps_verdict.h"
#include <stddef.h>

struct plim_steps; /* of one process */

/* `clock` returns seconds, as plim_clock_seconds(). Returns NULL if out of memory; all functions below accept NULL. */
struct plim_steps *plim_steps_create(double (*clock)(void));
void plim_steps_destroy(struct plim_steps *steps);

/* --- events, in order ------------------------------------------------------------------------- */

/* A kernel launch that runs now (is not being captured). `token` depends on the kernel, grid and block, not on the
 * operands. `written`: device addresses that it is known to write. */
void plim_steps_launch(struct plim_steps *steps, uint64_t token, enum plim_steps_class class,
                       const uintptr_t *written, size_t count);

/* The next kernel works in place: it also reads what it writes at `at`. */
void plim_steps_in_place(struct plim_steps *steps, uintptr_t at);

/* A launch by a library that runs now. `operation`: hash of the function and its transposes, without sizes; for cuDNN,
 * of the plan. `token`: hash with sizes. `read`: the addresses of the operands in order, without workspaces; all
 * operands if inputs and outputs cannot be told apart. NULLs are skipped. */
void plim_steps_library(struct plim_steps *steps, uint64_t token, uint64_t operation,
                        const uintptr_t *read, size_t read_count, const uintptr_t *written,
                        size_t written_count);

/* A launch of a CUDA graph. `library_calls`: number of library launches captured in it. */
void plim_steps_graph(struct plim_steps *steps, uint64_t graph, enum plim_steps_class class,
                      int64_t library_calls);

/* The program has an optimizer that will report its steps. Until it does, launches that repeat only in shape do not
 * count as steps; they may be layers. */
void plim_steps_expect_optimizer(struct plim_steps *steps);

/* An optimizer reports that it has stepped: the strongest sign, and the end of its burst. Several in a row (Muon and
 * AdamW) are one step, and so are those of single layers within a backward pass. `optimizer` identifies it and is the
 * same in every step; 0: unknown. If the same optimizer reports again after other work, that ends a step however little
 * the work: before training, a program may have run an evaluation or tried cuDNN's algorithms. */
void plim_steps_optimizer_stepped(struct plim_steps *steps, uint64_t optimizer);

/* The program ends: the last report of its optimizer ended a step, although no backward pass follows. */
void plim_steps_finish(struct plim_steps *steps);

/* The framework's allocator hands out a block. (Blocks of up to 1 MiB are ignored: they come from segments of 2 MiB,
 * never stop moving, and take little memory.) */
void plim_steps_block(struct plim_steps *steps, uintptr_t at, int64_t bytes);

/* A copy or memset to device memory. */
void plim_steps_copy(struct plim_steps *steps, uintptr_t to);

/* The device memory that the process now holds on all GPUs; called at each change. */
void plim_steps_set_held(struct plim_steps *steps, int64_t bytes);

/* An allocation was refused. The step counts as one in which the peak grew, even if the program got the memory by
 * releasing its cache: free memory is then divided differently, and a later step may not find its memory. */
void plim_steps_refused(struct plim_steps *steps);

/* --- results ---------------------------------------------------------------------------------- */

/* True if the state changed since the last call. Cheap enough for every launch. */
bool plim_steps_changed(struct plim_steps *steps);

/* Fills in the state; zeroes it if `steps` is NULL. Sorts up to 64 numbers, so do not call it at every launch. */
void plim_steps_get_state(const struct plim_steps *steps, struct plim_steps_state *out);

#endif
