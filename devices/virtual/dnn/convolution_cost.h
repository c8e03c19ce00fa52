/* What a convolution costs that runs through cuDNN's graph interface.
 *
 * The program describes it by tensors, an operation on them and a graph of operations; heuristics make
 * engine configurations of the graph, and of one of these comes the plan that runs. Graphs do not tell
 * their operations again, so what they describe is noted here while it is set, and follows the
 * descriptors that take one another.
 *
 * A convolution is the product of a matrix that has a row for each pixel (its neighbours in all
 * channels, which nothing writes to memory) and one of the filters: implicit GEMM, as NVIDIA's
 * "Convolutional Layers User's Guide" has it. The engine's numerical notes say whether tensor cores do
 * it, and whether Winograd's transform saves multiplications.
 */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_CONVOLUTION_COST_H
#define PLIM_DEVICES_VIRTUAL_DNN_CONVOLUTION_COST_H

#include "backend.h"
#include "devices/cost.h"

struct plim_dnn_convolution {
    enum plim_dnn_pass pass;
    struct plim_dnn_tensor x, w, y; /* or their gradients */
};

/* An attribute was set, results were given, a descriptor is gone. */
void plim_dnn_note_set(const struct plim_dnn_backend *backend, const void *descriptor,
                       int attribute, int64_t count, const void *values);
void plim_dnn_note_results(const void *heuristics, int64_t count, const void *values);
void plim_dnn_note_gone(const void *descriptor);

/* cudnnBackendNumericalNote_t, a bit for each. */
enum {
    DNN_NOTE_TENSOR_CORES = 1 << 0,
    DNN_NOTE_WINOGRAD = 1 << 5,
    DNN_NOTE_TILE_4 = 1 << 6,
    DNN_NOTE_TILE_6 = 1 << 7
};

/* Of a configuration. False: it is none of a convolution or of attention. */
bool plim_dnn_config_cost(const struct plim_dnn_backend *backend, const void *config,
                          struct plim_cost *out);
bool plim_dnn_convolution_cost(const struct plim_dnn_convolution *convolution, unsigned notes,
                               struct plim_cost *out);

#endif
