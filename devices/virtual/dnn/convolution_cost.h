/* The cost of a convolution that runs through cuDNN's graph interface.
 *
 * The program describes it by tensors, an operation on them and a graph of operations; heuristics turn the graph into
 * engine configurations, and one of these into the plan that runs. The operations of a graph cannot be read back, so
 * descriptions are recorded here when they are set, and passed on from descriptor to descriptor.
 *
 * A convolution is the product of a matrix with a row for each pixel (its neighbours in all channels; never written to
 * memory) and a matrix of the filters: implicit GEMM, see NVIDIA's "Convolutional Layers User's Guide". The engine's
 * numerical notes say whether tensor cores are used and whether Winograd's transform saves multiplications. */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_CONVOLUTION_COST_H
#define PLIM_DEVICES_VIRTUAL_DNN_CONVOLUTION_COST_H

#include "backend.h"
#include "devices/cost.h"

struct plim_dnn_convolution {
    enum plim_dnn_pass pass;
    struct plim_dnn_tensor x, w, y; /* or their gradients */
};

/* To be called when an attribute was set, when results were returned, and when a descriptor was destroyed. */
void plim_dnn_attribute_set(const struct plim_dnn_backend *backend, const void *descriptor,
                            int attribute, int64_t count, const void *values);
void plim_dnn_results_returned(const void *heuristics, int64_t count, const void *values);
void plim_dnn_descriptor_destroyed(const void *descriptor);

/* cudnnBackendNumericalNote_t, as bits. */
enum {
    DNN_NOTE_TENSOR_CORES = 1 << 0,
    DNN_NOTE_WINOGRAD = 1 << 5,
    DNN_NOTE_TILE_4 = 1 << 6,
    DNN_NOTE_TILE_6 = 1 << 7
};

/* Store the cost of an engine configuration, and of a convolution, in `out`. plim_dnn_config_cost() returns false if it
 * is neither a convolution nor attention. */
bool plim_dnn_config_cost(const struct plim_dnn_backend *backend, const void *config,
                          struct plim_cost *out);
bool plim_dnn_convolution_cost(const struct plim_dnn_convolution *convolution, unsigned notes,
                               struct plim_cost *out);

#endif
