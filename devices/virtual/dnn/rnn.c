/* cuDNN's RNNs from 8.0 on. Descriptors are the library's own and can be queried; the layout of the weights and the
 * memory that the passes need are computed here.
 *
 * Source: the documentation of cudnnGetRNNWeightParams for the set of matrices; their order and the sizes were observed
 * with 9.10 and 9.19, which agree. */
#include "dropout.h"
#include <string.h>

/* cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnRNNInputMode_t, cudnnForwardMode_t */
enum { MODE_LSTM = 2, MODE_GRU = 3, BIAS_NONE = 0, BIAS_DOUBLE = 2, BIAS_RECURRENT = 3,
       INPUT_SKIP = 1, PASS_TRAINING = 1 };

struct rnn {
    int mode, bias, directions, type;
    int64_t input, hidden, output, layers; /* output: hidden, or the size of the projection */
    int64_t gates, element_bytes;
    bool skips_input, projects, drops;
};

static bool read_rnn(const void *descriptor, struct rnn *rnn)
{
    int (*query)(const void *, int *, int *, int *, int *, int *, int *, int *, int *, int32_t *,
                 int32_t *, int32_t *, int32_t *, void **, uint32_t *);
    int algorithm, bidirectional = 0, input_mode = 0, math, math_type;
    int32_t input = 0, hidden = 0, output = 0, layers = 0;
    uint32_t flags;
    void *dropout = NULL;
    if (!descriptor || !DNN_REAL(query, "cudnnGetRNNDescriptor_v8") ||
        query(descriptor, &algorithm, &rnn->mode, &rnn->bias, &bidirectional, &input_mode,
              &rnn->type, &math, &math_type, &input, &hidden, &output, &layers, &dropout, &flags))
        return false;
    rnn->directions = bidirectional ? 2 : 1;
    rnn->input = input;
    rnn->hidden = hidden;
    rnn->output = output;
    rnn->layers = layers;
    rnn->gates = rnn->mode == MODE_LSTM ? 4 : rnn->mode == MODE_GRU ? 3 : 1;
    rnn->element_bytes = plim_dnn_type_bytes(rnn->type);
    rnn->skips_input = input_mode == INPUT_SKIP;
    rnn->projects = output != hidden;
    rnn->drops = dropout && plim_dnn_dropout_of(dropout).probability > 0;
    return true;
}

/* --- weights ---------------------------------------------------------------------------------- */

/* All matrices, one direction of a layer after the other; followed by all biases. */

static int64_t inputs_of(const struct rnn *rnn, int64_t layer)
{
    if (layer) return rnn->output * rnn->directions;
    return rnn->skips_input ? 0 : rnn->input;
}

static int64_t matrix_elements(const struct rnn *rnn, int64_t layer)
{
    return rnn->gates * rnn->hidden * (inputs_of(rnn, layer) + rnn->output) +
           (rnn->projects ? rnn->hidden * rnn->output : 0);
}

static int64_t all_matrix_elements(const struct rnn *rnn)
{
    int64_t elements = 0;
    for (int64_t i = 0; i < rnn->layers; i++)
        elements += rnn->directions * matrix_elements(rnn, i);
    return elements;
}

static int64_t bias_elements(const struct rnn *rnn)
{
    int64_t each = rnn->bias == BIAS_NONE ? 0 : rnn->bias == BIAS_DOUBLE ? 2 : 1;
    return each * rnn->gates * rnn->hidden;
}

ANSWER int cudnnGetRNNWeightSpaceSize(const struct plim_handle *handle, const void *descriptor,
                                      size_t *bytes)
{
    struct rnn rnn;
    if (!handle || !bytes || !read_rnn(descriptor, &rnn))
        return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    int64_t elements =
        all_matrix_elements(&rnn) + rnn.layers * rnn.directions * bias_elements(&rnn);
    *bytes = (size_t)(elements * rnn.element_bytes);
    return 0;
}

/* A matrix or bias; rows 0: there is none. */
struct part {
    int64_t offset, rows, columns;
};

/* `index` counts the input matrices of the gates, their recurrent matrices, and the projection. */
static struct part matrix_part(const struct rnn *rnn, int64_t pseudo_layer, int64_t index)
{
    int64_t layer = pseudo_layer / rnn->directions, inputs = inputs_of(rnn, layer), offset = 0;
    for (int64_t i = 0; i < pseudo_layer; i++) offset += matrix_elements(rnn, i / rnn->directions);
    if (index < rnn->gates) {
        if (!inputs) return (struct part){0, 0, 0};
        return (struct part){offset + index * rnn->hidden * inputs, rnn->hidden, inputs};
    }
    offset += rnn->gates * rnn->hidden * inputs;
    int64_t recurrent = index - rnn->gates;
    if (recurrent < rnn->gates)
        return (struct part){offset + recurrent * rnn->hidden * rnn->output, rnn->hidden,
                             rnn->output};
    offset += rnn->gates * rnn->hidden * rnn->output;
    if (recurrent > rnn->gates || !rnn->projects) return (struct part){0, 0, 0};
    return (struct part){offset, rnn->output, rnn->hidden};
}

static struct part bias_part(const struct rnn *rnn, int64_t pseudo_layer, int64_t index)
{
    bool is_recurrent = index >= rnn->gates;
    if (index >= 2 * rnn->gates || rnn->bias == BIAS_NONE ||
        (rnn->bias != BIAS_DOUBLE && is_recurrent != (rnn->bias == BIAS_RECURRENT)))
        return (struct part){0, 0, 0};
    if (rnn->bias == BIAS_RECURRENT) index -= rnn->gates;
    int64_t offset = all_matrix_elements(rnn) + pseudo_layer * bias_elements(rnn);
    return (struct part){offset + index * rnn->hidden, rnn->hidden, 1};
}

static int return_part(const struct rnn *rnn, const struct part *part, void *descriptor, char *space,
                       void **at)
{
    int (*set)(void *, int, int, const int *, const int *);
    if (at) *at = NULL;
    if (!part->rows) return 0;
    if (!DNN_REAL(set, "cudnnSetTensorNdDescriptor"))
        return plim_dnn_status(PLIM_DNN_NOT_INITIALIZED);
    int rows = (int)part->rows, columns = (int)part->columns;
    if (at) *at = space + part->offset * rnn->element_bytes;
    if (!descriptor) return 0;
    return set(descriptor, rnn->type, 3, (int[]){1, rows, columns},
               (int[]){rows * columns, columns, 1});
}

/* The caller may request only the matrix or only the bias. */
ANSWER int cudnnGetRNNWeightParams(const struct plim_handle *handle, const void *descriptor,
                                   int32_t pseudo_layer, size_t bytes, char *space, int32_t index,
                                   void *matrix, void **matrix_at, void *bias, void **bias_at)
{
    (void)bytes;
    struct rnn rnn;
    if (!handle || !read_rnn(descriptor, &rnn) || pseudo_layer < 0 || index < 0 ||
        pseudo_layer >= rnn.layers * rnn.directions || index > 2 * rnn.gates)
        return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    struct part of_matrix = matrix_part(&rnn, pseudo_layer, index);
    struct part of_bias = bias_part(&rnn, pseudo_layer, index);
    int failed = return_part(&rnn, &of_matrix, matrix, space, matrix_at);
    return failed ? failed : return_part(&rnn, &of_bias, bias, space, bias_at);
}

/* --- workspace and reserve space -------------------------------------------------------------- */

/* The size of a batch of sequences, which may differ in length. */
struct data {
    int64_t batch, tokens;
};

static bool read_data(const void *descriptor, struct data *data)
{
    enum { LENGTHS = 65536 };
    static _Thread_local int lengths[LENGTHS];
    int (*query)(const void *, int *, int *, int *, int *, int *, int, int *, void *);
    int type, layout, longest = 0, batch = 0, size;
    double fill;
    if (!descriptor || !DNN_REAL(query, "cudnnGetRNNDataDescriptor") ||
        query(descriptor, &type, &layout, &longest, &batch, &size, LENGTHS, lengths, &fill))
        return false;
    data->batch = batch;
    data->tokens = batch > LENGTHS ? (int64_t)longest * batch : 0;
    for (int i = 0; i < batch && batch <= LENGTHS; i++) data->tokens += lengths[i];
    return true;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* What the forward pass leaves for the backward pass. Per token: the gates; for LSTM also cells and unprojected
 * outputs, for GRU intermediate sums; between layers also the inputs and the dropout mask. */
static int64_t reserve_bytes(const struct rnn *rnn, const struct data *data)
{
    int64_t of_gates = rnn->mode == MODE_LSTM ? 5 : rnn->mode == MODE_GRU ? 6 : 1;
    int64_t of_layer = of_gates * rnn->hidden + (rnn->projects ? rnn->hidden + rnn->output : 0);
    int64_t elements = rnn->layers * of_layer + (rnn->layers - 1) * rnn->hidden;
    int64_t dropped_bits = rnn->drops ? (rnn->layers - 1) * rnn->output * rnn->directions : 0;
    return 256 + data->tokens * rnn->directions * elements * rnn->element_bytes +
           data->tokens * rnn->directions * dropped_bits / 8;
}

/* cuBLAS's 8 MiB, a copy of the matrices, and the states, for each direction of each layer; and the operands of the
 * larger pass. Compared with an H200 (tests/gpu/measured/h200-libraries.jsonl): within 3 % for LSTM and GRU, except for
 * one layer in both directions (a quarter too small); RNNs with one gate within 40 %. */
static int64_t workspace_bytes(const struct rnn *rnn, const struct data *data, bool is_training)
{
    static const int64_t states[4][2] = {{3, 10}, {3, 10}, {10, 24}, {5, 14}};
    int64_t directions = rnn->directions, hidden = rnn->hidden, input = rnn->input;
    bool is_double = directions == 2;
    int64_t forward = input + directions * (rnn->gates + 1) * hidden + (is_double ? 4 * hidden : 0);
    int64_t backward = is_double ? (rnn->layers > 1 ? 8 : 6) * hidden + 4 * larger(input, hidden)
                                 : (rnn->layers > 1 ? 2 : 3) * hidden + larger(input, hidden);
    int64_t tokens = is_training ? larger(forward, backward + 2 * input) : forward;
    if (rnn->drops && !is_double) tokens += rnn->output;
    int64_t elements = all_matrix_elements(rnn) + data->tokens * tokens +
                       data->batch * hidden * rnn->layers * states[rnn->mode & 3][is_double];
    return rnn->layers * directions * ((int64_t)8 << 20) + elements * rnn->element_bytes;
}

ANSWER int cudnnGetRNNTempSpaceSizes(const struct plim_handle *handle, const void *descriptor,
                                     int pass, const void *x, size_t *workspace, size_t *reserve)
{
    struct rnn rnn;
    struct data data;
    if (!handle || !read_rnn(descriptor, &rnn) || !read_data(x, &data))
        return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    bool is_training = pass == PASS_TRAINING;
    plim_self_note("cuDNN's workspace for RNNs is an estimate");
    if (workspace) *workspace = (size_t)workspace_bytes(&rnn, &data, is_training);
    if (reserve) *reserve = is_training ? (size_t)reserve_bytes(&rnn, &data) : 0;
    return 0;
}

/* Prepares the dynamic persistent kernels for one batch size. */
ANSWER int cudnnBuildRNNDynamic(const struct plim_handle *handle, const void *descriptor, int batch)
{
    (void)batch;
    return plim_dnn_status(handle && descriptor ? PLIM_DNN_OK : PLIM_DNN_BAD_PARAM);
}
