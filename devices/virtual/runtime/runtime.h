/* Shared by the files of the runtime. */
#ifndef PLIM_DEVICES_VIRTUAL_RUNTIME_RUNTIME_H
#define PLIM_DEVICES_VIRTUAL_RUNTIME_RUNTIME_H

#include "devices/virtual/work/launches.h"

/* Defines an alias of a function. */
#define ALSO(function, name)                                                                       \
    ANSWER extern __typeof__(function) name __attribute__((alias(#function)));
/* Defines the alias for programs compiled with per-thread default streams. */
#define PER_THREAD(function, suffix) ALSO(function, function##suffix)

const char *plim_error_text(int error);
const char *plim_error_driver_name(int error);

/* cudaGraphNodeParams and CUgraphNodeParams. The bodies of a conditional node are written into it. */
struct plim_node_parameters {
    int type; /* enum plim_node_type */
    int reserved[3];
    unsigned char of_type[29 * 8];
};

/* Add a node that depends on `count` others; also used by the driver. GPU_INVALID_DEVICE_FUNCTION if `kernel` is
 * NULL. */
int plim_runtime_add_kernel(struct plim_node **out, struct plim_graph *graph,
                            struct plim_node *const *after, size_t count,
                            struct plim_kernel *kernel);
int plim_runtime_add_node(struct plim_node **out, struct plim_graph *graph,
                          struct plim_node *const *after, size_t count,
                          struct plim_node_parameters *parameters);

#endif
