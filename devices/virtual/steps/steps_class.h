/* What a kernel's name says about training steps. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_CLASS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_CLASS_H

enum plim_steps_class {
    PLIM_STEPS_PLAIN,
    PLIM_STEPS_WORK,       /* matmul, convolution, attention: no part of an optimizer's burst */
    PLIM_STEPS_BACKWARD,   /* part of a backward pass, and no part of a burst */
    PLIM_STEPS_GRADIENT,   /* reads all gradients: clipping, unscaling */
    PLIM_STEPS_LIST,       /* adds one list of tensors to another: SGD, but also averages */
    PLIM_STEPS_ONE_UPDATE, /* an optimizer's kernel for one parameter; four of them make a burst */
    PLIM_STEPS_UPDATE,     /* an optimizer's kernel */
    PLIM_STEPS_WHOLE,      /* a graph with an update and the rest of a step */
};

/* The class of a kernel by its mangled name. Slow (some microseconds): call it once for each kernel. */
enum plim_steps_class plim_steps_classify(const char *name);

/* The class of a graph with launches of both classes; start with PLIM_STEPS_PLAIN. A library's launch is
 * PLIM_STEPS_WORK. */
enum plim_steps_class plim_steps_join(enum plim_steps_class a, enum plim_steps_class b);

#endif
