/* cuDNN's operation graphs, through its C backend API, loaded at run time.
 *
 * A graph consists of four-dimensional tensors and operations on them; heuristics propose engines that can run it (an
 * engine configuration, with the workspace it needs); a plan is a compiled configuration, run on the addresses of one
 * call. Errors are sticky: after the first failure the building functions do nothing, and plim_dnn_graph_seal() returns
 * that failure.
 *
 * Compiling takes 0.07 to 1.4 s per graph; querying the heuristics takes 5 to 30 ms and already gives the size of the
 * workspace. */
#ifndef PLIM_DEVICES_CUDA_DNN_GRAPH_H
#define PLIM_DEVICES_CUDA_DNN_GRAPH_H

#include "library.h"
#include <cudnn_graph.h>
#include <stdbool.h>
#include <stdint.h>

#define PLIM_DNN_MAP(X)                                                                            \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

struct plim_dnn {
    struct plim_cuda_library library;
#define PLIM_DNN_FIELD(name) __typeof__(&name) name;
    PLIM_DNN_MAP(PLIM_DNN_FIELD)
#undef PLIM_DNN_FIELD
};

enum plim_status plim_dnn_load(struct plim_dnn *out, struct plim_error *err) PLIM_MUST_CHECK;
void plim_dnn_unload(struct plim_dnn *dnn); /* NULL and zeroed are allowed */

/* --- graphs ----------------------------------------------------------------------------------- */

enum { PLIM_DNN_DIMS = 4, PLIM_DNN_MAX_TENSORS = 48, PLIM_DNN_MAX_OPERATIONS = 32 };

struct plim_dnn_shape {
    int64_t extent[PLIM_DNN_DIMS], stride[PLIM_DNN_DIMS];
};

struct plim_dnn_shape plim_dnn_packed(int64_t n0, int64_t n1, int64_t n2, int64_t n3);
struct plim_dnn_shape plim_dnn_transposed(struct plim_dnn_shape shape); /* swaps the last two dimensions */

struct plim_dnn_graph {
    const struct plim_dnn *dnn;
    cudnnHandle_t handle; /* of its GPU; NULL: the GPU is only described (DEVICEPROP) */
    cudnnStatus_t status; /* of the first failure */
    int tensors, operations;
    cudnnBackendDescriptor_t tensor[PLIM_DNN_MAX_TENSORS];
    struct plim_dnn_shape shape[PLIM_DNN_MAX_TENSORS];
    cudnnBackendDescriptor_t operation[PLIM_DNN_MAX_OPERATIONS];
    cudnnBackendDescriptor_t detail[PLIM_DNN_MAX_OPERATIONS]; /* the operation's parameters */
    cudnnBackendDescriptor_t graph;
};

void plim_dnn_graph_init(struct plim_dnn_graph *g, const struct plim_dnn *dnn,
                         cudnnHandle_t handle);

/* Adds a tensor and returns its number; number + 1 is the unique id that identifies it in a call. */
int plim_dnn_tensor(struct plim_dnn_graph *g, cudnnDataType_t type, struct plim_dnn_shape shape);
/* Adds a virtual tensor: passed between operations, never stored. */
int plim_dnn_virtual(struct plim_dnn_graph *g, cudnnDataType_t type, struct plim_dnn_shape shape);
/* Adds a scalar that a call passes by a host pointer. */
int plim_dnn_scalar(struct plim_dnn_graph *g, cudnnDataType_t type);

/* y = f(x), f(x, b), or t ? x : b (selection), computed in `precision`. -1: the operand is not used. */
void plim_dnn_pointwise(struct plim_dnn_graph *g, cudnnPointwiseMode_t mode,
                        cudnnDataType_t precision, int x, int b, int t, int y);
/* y = the index along `axis`, int32, in the shape of x. */
void plim_dnn_index(struct plim_dnn_graph *g, int64_t axis, int x, int y);
/* y = a b over the last two dimensions; if one operand has fewer heads, each serves a group of the other's. */
void plim_dnn_matmul(struct plim_dnn_graph *g, int a, int b, int y);
/* Reduces x over the dimensions in which y is smaller; into groups if y's size is not 1. */
void plim_dnn_reduce(struct plim_dnn_graph *g, cudnnReduceTensorOp_t fold, int x, int y);
/* y is the same memory as x in another shape. */
void plim_dnn_reshape(struct plim_dnn_graph *g, int x, int y);
/* y = 1 with probability `kept`, otherwise 0: by Philox from two int64 numbers, reproducibly. */
void plim_dnn_bernoulli(struct plim_dnn_graph *g, double kept, int seed, int offset, int y);

/* Seals the graph; returns the first failure. */
cudnnStatus_t plim_dnn_graph_seal(struct plim_dnn_graph *g);
void plim_dnn_graph_close(struct plim_dnn_graph *g);

/* --- engines and plans ------------------------------------------------------------------------ */

enum { PLIM_DNN_MAX_CONFIGS = 8 };

/* Engines that can run a sealed graph, the best first. `device`: a finalised DEVICEPROP descriptor of a GPU that need
 * not be present; NULL: the current GPU. */
struct plim_dnn_configs {
    const struct plim_dnn *dnn;
    cudnnHandle_t handle; /* the graph's */
    cudnnBackendDescriptor_t heuristic;
    int count;
    cudnnBackendDescriptor_t config[PLIM_DNN_MAX_CONFIGS];
    int64_t workspace_bytes[PLIM_DNN_MAX_CONFIGS];
};

cudnnStatus_t plim_dnn_configs_open(const struct plim_dnn_graph *g, cudnnBackendDescriptor_t device,
                                    struct plim_dnn_configs *out);
void plim_dnn_configs_close(struct plim_dnn_configs *configs);
/* Returns cuDNN's number of the engine; -1 if it does not report it. */
int64_t plim_dnn_config_engine(const struct plim_dnn_configs *configs, int i);

/* Compiles a configuration for the current GPU. */
cudnnStatus_t plim_dnn_plan_open(const struct plim_dnn_configs *configs, int i,
                                 cudnnBackendDescriptor_t *plan, int64_t *workspace_bytes);

/* Serialise a compiled plan to text (75 to 220 KB), and read one back, in milliseconds; only for the same GPU and the
 * same cuDNN. The caller frees the text, which has `bytes` bytes, followed by a zero; NULL: this cuDNN cannot write it.
 * `handle` NULL: for the GPU that `device` describes, as above. */
char *plim_dnn_plan_write(const struct plim_dnn *dnn, cudnnBackendDescriptor_t plan, size_t *bytes);
cudnnStatus_t plim_dnn_plan_read(const struct plim_dnn *dnn, cudnnHandle_t handle,
                                 cudnnBackendDescriptor_t device, const char *text, size_t bytes,
                                 cudnnBackendDescriptor_t *plan, int64_t *workspace_bytes);

/* Enqueues a plan. `id` are tensor numbers, `address` their addresses (scalars: on the host). */
cudnnStatus_t plim_dnn_execute(const struct plim_dnn *dnn, cudnnHandle_t handle,
                               cudnnBackendDescriptor_t plan, int count, const int *id,
                               void *const *address, void *workspace);

#endif
