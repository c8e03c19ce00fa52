/* What the bytes of a training run are for. */
#ifndef PLIM_ENGINE_MEMORY_CLASS_H
#define PLIM_ENGINE_MEMORY_CLASS_H

/* Activations: what forward saved for backward. Logits: the result of a language model's head, what
 * is made of it element by element up to the loss (the fp32 copy, log-probabilities), and the
 * gradients of these. Temporaries: whatever is none of the others. Workspace: what cuBLAS keeps
 * between calls. Communication: buffers of collectives that stay from step to step. Other: what a
 * recording does not tell; the engine has none. */
#define PLIM_MEMORY_CLASS_MAP(X)                                                                   \
    X(PARAMETERS, "parameters")                                                                    \
    X(GRADIENTS, "gradients")                                                                      \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(ACTIVATIONS, "activations")                                                                  \
    X(LOGITS, "logits")                                                                            \
    X(TEMPORARIES, "temporaries")                                                                  \
    X(WORKSPACE, "workspace")                                                                      \
    X(COMMUNICATION, "communication")                                                              \
    X(OTHER, "other")

enum plim_memory_class {
#define PLIM_MEMORY_CLASS_ENUM(name, text) PLIM_MEMORY_##name,
    PLIM_MEMORY_CLASS_MAP(PLIM_MEMORY_CLASS_ENUM)
#undef PLIM_MEMORY_CLASS_ENUM
        PLIM_MEMORY_CLASS_COUNT
};

/* Lower-case name ("parameters"). Never NULL. */
const char *plim_memory_class_name(enum plim_memory_class memory_class);

#endif
