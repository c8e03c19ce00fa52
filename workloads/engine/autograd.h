/* The backward pass.
 *
 * It runs nodes (node.h) as PyTorch's engine does (torch/csrc/autograd/engine.cpp): of the ready nodes the one with the
 * highest sequence number, AccumulateGrad before all others; a node's saved tensors are released when it has run;
 * gradients whose shape or type differs from the forward tensor's are summed or cast (validate_outputs); contributions
 * from several uses are added, in place if nothing else holds the buffer (InputBuffer). */
#ifndef PLIM_ENGINE_AUTOGRAD_H
#define PLIM_ENGINE_AUTOGRAD_H

#include "engine.h"

/* Returns `x` (lent) like an autograd.Function that does nothing: the same memory with a node of its own, whose hook
 * runs when the gradient of the result is complete. Floating; `x` itself if it needs no gradient. */
struct tensor *autograd_mark(struct engine *e, struct tensor *x, const struct node_hook *hook);

/* The same, with a node that divides the gradient by `divisor`, into a copy. */
struct tensor *autograd_divided(struct engine *e, struct tensor *x, double divisor);

/* loss.backward() of a scalar; the gradients are accumulated in the .grad of the leaves. */
void autograd_backward(struct engine *e, struct tensor *loss);

/* torch.autograd.backward(y, grad) within a node's backward (a reentrant backward): runs all nodes from which `y` was
 * computed before it returns. Both tensors are lent. No node may belong to both passes. */
void autograd_backward_within(struct engine *e, struct tensor *y, struct tensor *grad);

#endif
