/* The passes of cuDNN's RNNs from 8.0 on: launches, distinguished by the weights and their operands. */
#include "dnn.h"

static int run(const struct plim_handle *handle, const char *what, const void *weights,
               const void *input, const void *output)
{
    const void *operands[] = {weights, input, output};
    return plim_dnn_launch(handle, what, 0, operands, 3, NULL);
}

ANSWER int cudnnRNNForward(const struct plim_handle *handle, const void *rnn, int mode,
                           const int32_t *lengths, const void *x_descriptor, const void *x,
                           const void *y_descriptor, void *y, const void *h_descriptor,
                           const void *hx, void *hy, const void *c_descriptor, const void *cx,
                           void *cy, size_t weight_bytes, const void *weights,
                           size_t workspace_bytes, void *workspace, size_t reserve_bytes,
                           void *reserve)
{
    (void)rnn, (void)mode, (void)lengths, (void)x_descriptor, (void)y_descriptor;
    (void)h_descriptor, (void)hx, (void)hy, (void)c_descriptor, (void)cx, (void)cy;
    (void)weight_bytes, (void)workspace_bytes, (void)workspace, (void)reserve_bytes, (void)reserve;
    return run(handle, "cudnnRNNForward", weights, x, y);
}

ANSWER int cudnnRNNBackwardData_v8(const struct plim_handle *handle, const void *rnn,
                                   const int32_t *lengths, const void *y_descriptor, const void *y,
                                   const void *dy, const void *x_descriptor, void *dx,
                                   const void *h_descriptor, const void *hx, const void *dhy,
                                   void *dhx, const void *c_descriptor, const void *cx,
                                   const void *dcy, void *dcx, size_t weight_bytes,
                                   const void *weights, size_t workspace_bytes, void *workspace,
                                   size_t reserve_bytes, void *reserve)
{
    (void)rnn, (void)lengths, (void)y_descriptor, (void)dy, (void)x_descriptor, (void)h_descriptor;
    (void)hx, (void)dhy, (void)dhx, (void)c_descriptor, (void)cx, (void)dcy, (void)dcx;
    (void)weight_bytes, (void)workspace_bytes, (void)workspace, (void)reserve_bytes, (void)reserve;
    return run(handle, "cudnnRNNBackwardData_v8", weights, y, dx);
}

/* The results are gradients, which may be accumulated in the same memory. */
ANSWER int cudnnRNNBackwardWeights_v8(const struct plim_handle *handle, const void *rnn, int adds,
                                      const int32_t *lengths, const void *x_descriptor,
                                      const void *x, const void *h_descriptor, const void *hx,
                                      const void *y_descriptor, const void *y, size_t weight_bytes,
                                      void *gradients, size_t workspace_bytes, void *workspace,
                                      size_t reserve_bytes, void *reserve)
{
    (void)rnn, (void)adds, (void)lengths, (void)x_descriptor, (void)h_descriptor, (void)hx;
    (void)y_descriptor, (void)weight_bytes, (void)gradients, (void)workspace_bytes, (void)workspace;
    (void)reserve_bytes, (void)reserve;
    return run(handle, "cudnnRNNBackwardWeights_v8", NULL, x, y);
}
