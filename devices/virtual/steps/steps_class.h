/* What a kernel's name says about training steps. */
#ifndef PLIM_DEVICES_VIRTUAL_STEPS_STEPS_CLASS_H
#define PLIM_DEVICES_VIRTUAL_STEPS_STEPS_CLASS_H

enum plim_steps_class {
    PLIM_STEPS_PLAIN,
    PLIM_STEPS_WORK,       /* matmul, convolution, attention: no part of an optimizer's burst */
    PLIM_STEPS_BACKWARD,   /* part of a backward pass, nor of a burst */
    PLIM_STEPS_GRADIENT,   /* all gradients are looked at: clipping, unscaling */
    PLIM_STEPS_LIST,       /* one list of tensors is added to another: SGD, but also averages */
    PLIM_STEPS_ONE_UPDATE, /* an optimizer's for one parameter; four of them make a burst */
    PLIM_STEPS_UPDATE,     /* an optimizer's */
    PLIM_STEPS_WHOLE,      /* a graph with an update and the rest of a step */
};

/* By its mangled name. Slow (some microseconds): ask once a kernel. */
enum plim_steps_class plim_steps_classify(const char *name);

/* Of a graph with both; begin with PLIM_STEPS_PLAIN. A library's launch is PLIM_STEPS_WORK. */
enum plim_steps_class plim_steps_join(enum plim_steps_class a, enum plim_steps_class b);

#endif
