/* Classes of memory: what the memory of a training run is used for. */
#ifndef PLIM_ENGINE_MEMORY_CLASS_H
#define PLIM_ENGINE_MEMORY_CLASS_H

/* Activations: saved by forward for backward. Logits: the result of a language model's head, tensors computed from it
 * element by element up to the loss (the fp32 copy, log-probabilities), and the gradients of these. Temporaries:
 * everything that is in no other class. Workspace: kept by cuBLAS between calls. Communication: buffers of collectives.
 * Other: memory of a recording whose use is unknown; not used by the engine. */
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
