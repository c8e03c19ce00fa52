/* The cost of batch normalization in training, through cuDNN's older interface.
 *
 * The mean and variance of a channel are known only after all its elements have been read, and so are the sums of the
 * backward pass; only then can the first result be written, so everything is read twice (Jung et al., "Restructuring
 * Batch Normalization to Accelerate CNN Training", arXiv 1807.01702). */
#include "devices/cost.h"
#include "dnn.h"

static int64_t bytes_of(const void *descriptor)
{
    struct plim_dnn_tensor tensor;
    return descriptor && plim_dnn_tensor_read(descriptor, &tensor) ? plim_dnn_tensor_bytes(&tensor) : 0;
}

static int launch(const struct plim_handle *handle, const char *what, int64_t bytes)
{
    const struct plim_cost cost = {.kind = PLIM_COST_MOVE, .number = {bytes}};
    return plim_dnn_launch(handle, what, 0, NULL, 0, &cost);
}

ANSWER int cudnnBatchNormalizationForwardTraining(
    const struct plim_handle *handle, int mode, const void *alpha, const void *beta,
    const void *x, const void *x_data, const void *y, void *y_data, const void *parameters,
    const void *scale, const void *bias, double factor, void *mean, void *variance, double epsilon,
    void *saved_mean, void *saved_variance)
{
    (void)mode, (void)alpha, (void)beta, (void)x_data, (void)y_data, (void)parameters, (void)scale;
    (void)bias, (void)factor, (void)mean, (void)variance, (void)epsilon, (void)saved_mean;
    (void)saved_variance;
    return launch(handle, __func__, 2 * bytes_of(x) + bytes_of(y));
}

ANSWER int cudnnBatchNormalizationForwardTrainingEx(
    const struct plim_handle *handle, int mode, int ops, const void *alpha, const void *beta,
    const void *x, const void *x_data, const void *z, const void *z_data, const void *y,
    void *y_data, const void *parameters, const void *scale, const void *bias, double factor,
    void *mean, void *variance, double epsilon, void *saved_mean, void *saved_variance,
    const void *activation, void *workspace, size_t workspace_bytes, void *reserve,
    size_t reserve_bytes)
{
    (void)mode, (void)ops, (void)alpha, (void)beta, (void)x_data, (void)y_data, (void)parameters;
    (void)scale, (void)bias, (void)factor, (void)mean, (void)variance, (void)epsilon;
    (void)saved_mean, (void)saved_variance, (void)activation, (void)workspace;
    (void)workspace_bytes, (void)reserve, (void)reserve_bytes;
    return launch(handle, __func__, 2 * bytes_of(x) + bytes_of(y) + (z_data ? bytes_of(z) : 0));
}

ANSWER int cudnnBatchNormalizationBackward(
    const struct plim_handle *handle, int mode, const void *alpha, const void *beta,
    const void *alpha_of_parameters, const void *beta_of_parameters, const void *x,
    const void *x_data, const void *dy, const void *dy_data, const void *dx, void *dx_data,
    const void *parameters, const void *scale, void *d_scale, void *d_bias, double epsilon,
    const void *saved_mean, const void *saved_variance)
{
    (void)mode, (void)alpha, (void)beta, (void)alpha_of_parameters, (void)beta_of_parameters;
    (void)x_data, (void)dy_data, (void)dx_data, (void)parameters, (void)scale, (void)d_scale;
    (void)d_bias, (void)epsilon, (void)saved_mean, (void)saved_variance;
    return launch(handle, __func__, 2 * (bytes_of(x) + bytes_of(dy)) + bytes_of(dx));
}

ANSWER int cudnnBatchNormalizationBackwardEx(
    const struct plim_handle *handle, int mode, int ops, const void *alpha, const void *beta,
    const void *alpha_of_parameters, const void *beta_of_parameters, const void *x,
    const void *x_data, const void *y, const void *y_data, const void *dy, const void *dy_data,
    const void *dz, void *dz_data, const void *dx, void *dx_data, const void *parameters,
    const void *scale, const void *bias, void *d_scale, void *d_bias, double epsilon,
    const void *saved_mean, const void *saved_variance, const void *activation, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    (void)mode, (void)ops, (void)alpha, (void)beta, (void)alpha_of_parameters;
    (void)beta_of_parameters, (void)x_data, (void)y, (void)y_data, (void)dy_data, (void)dx_data;
    (void)parameters, (void)scale, (void)bias, (void)d_scale, (void)d_bias, (void)epsilon;
    (void)saved_mean, (void)saved_variance, (void)activation, (void)workspace;
    (void)workspace_bytes, (void)reserve, (void)reserve_bytes;
    return launch(handle, __func__, 2 * (bytes_of(x) + bytes_of(dy)) + bytes_of(dx) +
                                        (dz_data ? bytes_of(dz) : 0));
}
