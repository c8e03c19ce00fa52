/* cuDNN's older interface: functions that take a handle and return something to the host. Functions that only compute
 * are launches (names/cudnn.txt); convolutions and RNNs have files of their own. */
#include "dnn.h"

static int answer_bytes(const struct plim_handle *handle, int64_t bytes, size_t *out)
{
    if (!handle || !out) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    *out = (size_t)bytes;
    return 0;
}

/* --- batch normalization ---------------------------------------------------------------------- */

/* cudnnBatchNormMode_t and cudnnBatchNormOps_t; the "normalization" functions use the same numbers. */
enum { MODE_PERSISTENT = 2, OPS_PLAIN = 0 };
enum { MEASURED_VERSION = 91000 };

/* Kernels that are not persistent need no workspace (observed with 9.19). */
static int answer_norm_workspace(const struct plim_handle *handle, int mode, enum plim_dnn_pass pass,
                                 const void *x, size_t *out)
{
    struct plim_dnn_tensor tensor;
    if (mode < MODE_PERSISTENT) return answer_bytes(handle, 0, out);
    if (!plim_dnn_tensor_read(x, &tensor)) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    if (plim_dnn_version() < MEASURED_VERSION)
        plim_self_note("cuDNN %d's workspace for batch normalization with channels last is not known: "
                       "counted as that of 9.10", plim_dnn_version());
    return answer_bytes(handle, plim_dnn_batch_norm_bytes(pass, &tensor), out);
}

/* A fused activation stores a mask of the elements that passed, one bit each. */
static int answer_norm_reserve(const struct plim_handle *handle, int mode, int ops, const void *x,
                               size_t *out)
{
    struct plim_dnn_tensor tensor;
    if (mode < MODE_PERSISTENT || ops == OPS_PLAIN) return answer_bytes(handle, 0, out);
    if (!plim_dnn_tensor_read(x, &tensor) || !plim_dnn_type_bytes(tensor.type))
        return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    int64_t elements = plim_dnn_tensor_bytes(&tensor) / plim_dnn_type_bytes(tensor.type);
    return answer_bytes(handle, (elements + 7) / 8, out);
}

ANSWER int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    const struct plim_handle *handle, int mode, int ops, const void *x, const void *z,
    const void *y, const void *parameters, const void *activation, size_t *bytes)
{
    (void)ops, (void)z, (void)y, (void)parameters, (void)activation;
    return answer_norm_workspace(handle, mode, PLIM_DNN_FORWARD, x, bytes);
}

ANSWER int cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    const struct plim_handle *handle, int mode, int ops, const void *x, const void *y,
    const void *dy, const void *dz, const void *dx, const void *parameters, const void *activation,
    size_t *bytes)
{
    (void)ops, (void)y, (void)dy, (void)dz, (void)dx, (void)parameters, (void)activation;
    return answer_norm_workspace(handle, mode, PLIM_DNN_BACKWARD_DATA, x, bytes);
}

ANSWER int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(const struct plim_handle *handle,
                                                                int mode, int ops,
                                                                const void *activation,
                                                                const void *x, size_t *bytes)
{
    (void)activation;
    return answer_norm_reserve(handle, mode, ops, x, bytes);
}

/* The same functions under newer names. Their mode is per activation or per channel; their algorithm tells whether it
 * is the persistent one. */
static int mode_of(int algorithm) { return algorithm ? MODE_PERSISTENT : 0; }

ANSWER int cudnnGetNormalizationForwardTrainingWorkspaceSize(
    const struct plim_handle *handle, int mode, int ops, int algorithm, const void *x,
    const void *z, const void *y, const void *scale, const void *activation, const void *mean,
    size_t *bytes, int groups)
{
    (void)mode, (void)ops, (void)z, (void)y, (void)scale, (void)activation, (void)mean;
    (void)groups;
    return answer_norm_workspace(handle, mode_of(algorithm), PLIM_DNN_FORWARD, x, bytes);
}

ANSWER int cudnnGetNormalizationBackwardWorkspaceSize(
    const struct plim_handle *handle, int mode, int ops, int algorithm, const void *x,
    const void *y, const void *dy, const void *dz, const void *dx, const void *scale,
    const void *activation, const void *mean, size_t *bytes, int groups)
{
    (void)mode, (void)ops, (void)y, (void)dy, (void)dz, (void)dx, (void)scale;
    (void)activation, (void)mean, (void)groups;
    return answer_norm_workspace(handle, mode_of(algorithm), PLIM_DNN_BACKWARD_DATA, x, bytes);
}

ANSWER int cudnnGetNormalizationTrainingReserveSpaceSize(const struct plim_handle *handle, int mode,
                                                         int ops, int algorithm,
                                                         const void *activation, const void *x,
                                                         size_t *bytes, int groups)
{
    (void)mode, (void)activation, (void)groups;
    return answer_norm_reserve(handle, mode_of(algorithm), ops, x, bytes);
}

/* --- reductions ------------------------------------------------------------------------------- */

/* The partial sums of a full reduction fit in the size of the operand; nothing more precise is known. */
ANSWER int cudnnGetReductionWorkspaceSize(const struct plim_handle *handle, const void *reduction,
                                          const void *a, const void *c, size_t *bytes)
{
    (void)reduction, (void)c;
    struct plim_dnn_tensor tensor;
    if (!plim_dnn_tensor_read(a, &tensor)) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    plim_self_note("cuDNN's workspace for a reduction is not known without a GPU: counted as large "
                   "as its operand");
    return answer_bytes(handle, plim_dnn_tensor_bytes(&tensor), bytes);
}

/* One 32-bit index per result. */
ANSWER int cudnnGetReductionIndicesSize(const struct plim_handle *handle, const void *reduction,
                                        const void *a, const void *c, size_t *bytes)
{
    (void)reduction, (void)a;
    struct plim_dnn_tensor tensor;
    if (!plim_dnn_tensor_read(c, &tensor)) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    int64_t each = plim_dnn_type_bytes(tensor.type);
    return answer_bytes(handle, each ? plim_dnn_tensor_bytes(&tensor) / each * 4 : 0, bytes);
}

/* --- CTC loss --------------------------------------------------------------------------------- */

/* Two tables of all steps by all states (blanks between and around the labels) and the normalized probabilities, in
 * fp32; exact for 9.19's deterministic algorithm. The other algorithm is assumed to need as much. `extra`: what the
 * older function copies, the labels and two lengths. */
static int64_t ctc_bytes(const struct plim_dnn_tensor *probabilities, int64_t labels, int64_t extra)
{
    int64_t steps = probabilities->dimension[0], batch = probabilities->dimension[1];
    int64_t states = 2 * labels + 1, classes = probabilities->dimension[2];
    return 4 * batch * (steps * (classes + 2 * states) + states + 2 + extra);
}

enum { CTC_DIMENSIONS = 3, CTC_MAX_LABELS = 256 };

ANSWER int cudnnGetCTCLossWorkspaceSize(const struct plim_handle *handle, const void *probabilities,
                                        const void *gradients, const int *labels,
                                        const int *label_lengths, const int *input_lengths,
                                        int algorithm, const void *loss, size_t *bytes)
{
    (void)gradients, (void)labels, (void)input_lengths, (void)algorithm, (void)loss;
    struct plim_dnn_tensor tensor;
    int longest = 0;
    if (!label_lengths || !plim_dnn_tensor_read(probabilities, &tensor) ||
        tensor.count != CTC_DIMENSIONS)
        return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    for (int64_t i = 0; i < tensor.dimension[1]; i++)
        if (label_lengths[i] > longest) longest = label_lengths[i];
    if (longest > CTC_MAX_LABELS) return plim_dnn_status(PLIM_DNN_NOT_SUPPORTED);
    return answer_bytes(handle, ctc_bytes(&tensor, longest, longest + 2), bytes);
}

ANSWER int cudnnGetCTCLossWorkspaceSize_v8(const struct plim_handle *handle, int algorithm,
                                           const void *loss, const void *probabilities,
                                           const void *gradients, size_t *bytes)
{
    (void)gradients, (void)algorithm;
    int (*query)(const void *, int *, int *, int *, int *);
    int type, mode, propagation, longest = 0;
    struct plim_dnn_tensor tensor;
    if (!plim_dnn_tensor_read(probabilities, &tensor) || tensor.count != CTC_DIMENSIONS ||
        !DNN_REAL(query, "cudnnGetCTCLossDescriptor_v8") ||
        query(loss, &type, &mode, &propagation, &longest))
        return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    return answer_bytes(handle, ctc_bytes(&tensor, longest, 0), bytes);
}
