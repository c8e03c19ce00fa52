/* Classifies kernels by what their names say about training steps. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_CLASS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_CLASS_H

enum plim_steps_class {
    PLIM_STEPS_PLAIN,
    PLIM_STEPS_WORK,       /* matmul, convolution, attention: not part of an optimizer's burst */
    PLIM_STEPS_BACKWARD,   /* part of a backward pass, not of a burst */
    PLIM_STEPS_GRADIENT,   /* reads all gradients: clipping, unscaling */
    PLIM_STEPS_LIST,       /* adds one list of tensors to another: SGD, but also averages */
    PLIM_STEPS_ONE_UPDATE, /* an optimizer kernel for one parameter; four of them make a burst */
    PLIM_STEPS_UPDATE,     /* an optimizer kernel */
    PLIM_STEPS_WHOLE,      /* a graph with an update and the rest of a step */
};

/* Returns the class of a kernel, given its mangled name. Takes some microseconds: call it once per kernel. */
enum plim_steps_class plim_steps_classify(const char *name);

/* Returns the class of a graph with launches of both classes. Start with PLIM_STEPS_PLAIN; a launch by a library is
 * PLIM_STEPS_WORK. */
enum plim_steps_class plim_steps_join(enum plim_steps_class a, enum plim_steps_class b);

#endif
