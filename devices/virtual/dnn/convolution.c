/* cuDNN's older convolution interface: the choice of algorithms and their workspaces. Two algorithms of each kind are
 * offered: a fast one, whose workspace is an estimate (estimate.c), and one without a workspace. */
#include "dnn.h"
#include <string.h>

/* cudnnConvolution{Fwd,BwdData,BwdFilter}AlgoPerf_t; all have the same layout. */
struct performance {
    int algorithm, status;
    float milliseconds;
    size_t bytes;
    int determinism, math_type, reserved[3];
};

/* The two algorithms, and how many cuDNN has. Source: cudnn_cnn.h. In the backward passes, the algorithms without a
 * workspace are not deterministic. */
enum { ALGORITHMS = 2, FAST = 1, FRUGAL = 0, DETERMINISTIC = 1 };
static const int algorithm_counts[] = {[PLIM_DNN_FORWARD] = 8,
                                       [PLIM_DNN_BACKWARD_DATA] = 6,
                                       [PLIM_DNN_BACKWARD_FILTER] = 7};

struct problem {
    enum plim_dnn_pass pass;
    const void *x, *w, *y, *convolution; /* descriptors */
};

static bool read_filter(const void *descriptor, struct plim_dnn_tensor *out)
{
    int (*query)(const void *, int, int *, int *, int *, int *);
    int dimensions[PLIM_DNN_DIMENSIONS] = {0}, format;
    memset(out, 0, sizeof(*out));
    if (!descriptor || !DNN_REAL(query, "cudnnGetFilterNdDescriptor") ||
        query(descriptor, PLIM_DNN_DIMENSIONS, &out->type, &format, &out->count, dimensions) ||
        out->count > PLIM_DNN_DIMENSIONS)
        return false;
    for (int i = 0; i < out->count; i++) out->dimension[i] = dimensions[i];
    return true;
}

static int estimate(const struct plim_handle *handle, const struct problem *problem, int64_t *bytes)
{
    struct plim_dnn_tensor x, w, y;
    if (!handle || !plim_dnn_tensor_read(problem->x, &x) || !read_filter(problem->w, &w) ||
        !plim_dnn_tensor_read(problem->y, &y))
        return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    plim_self_note("cuDNN's workspaces for the older convolution functions are estimates");
    *bytes = plim_dnn_convolution_bytes(problem->pass, &x, &w, &y);
    return 0;
}

static int return_algorithms(const struct plim_handle *handle, const struct problem *problem,
                             int asked, int *given, struct performance *out)
{
    int (*query)(const void *, int *);
    int math_type = 0;
    int64_t bytes = 0;
    if (!given || (asked > 0 && !out)) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    *given = 0;
    int failed = estimate(handle, problem, &bytes);
    if (failed) return failed;
    if (DNN_REAL(query, "cudnnGetConvolutionMathType")) query(problem->convolution, &math_type);
    for (int i = 0; i < ALGORITHMS && i < asked; i++) {
        bool is_fast = i == 0;
        out[i] = (struct performance){
            .algorithm = is_fast ? FAST : FRUGAL,
            .milliseconds = (float)(i + 1),
            .bytes = is_fast ? (size_t)bytes : 0,
            .determinism = is_fast || problem->pass == PLIM_DNN_FORWARD ? DETERMINISTIC : 0,
            .math_type = math_type,
        };
        ++*given;
    }
    return 0;
}

static int return_bytes(const struct plim_handle *handle, const struct problem *problem,
                        int algorithm, size_t *out)
{
    int64_t bytes = 0;
    int failed = estimate(handle, problem, &bytes);
    if (!failed) *out = algorithm == FRUGAL ? 0 : (size_t)bytes;
    return failed;
}

static int return_count(const struct plim_handle *handle, enum plim_dnn_pass pass, int *count)
{
    if (!handle || !count) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    *count = algorithm_counts[pass];
    return 0;
}

/* --- forward ---------------------------------------------------------------------------------- */

#define FORWARD (&(struct problem){PLIM_DNN_FORWARD, x, w, y, convolution})

ANSWER int cudnnGetConvolutionForwardAlgorithmMaxCount(const struct plim_handle *handle, int *count)
{
    return return_count(handle, PLIM_DNN_FORWARD, count);
}

ANSWER int cudnnGetConvolutionForwardAlgorithm_v7(const struct plim_handle *handle, const void *x,
                                                  const void *w, const void *convolution,
                                                  const void *y, int asked, int *given,
                                                  struct performance *out)
{
    return return_algorithms(handle, FORWARD, asked, given, out);
}

ANSWER int cudnnFindConvolutionForwardAlgorithm(const struct plim_handle *handle, const void *x,
                                                const void *w, const void *convolution,
                                                const void *y, int asked, int *given,
                                                struct performance *out)
{
    return return_algorithms(handle, FORWARD, asked, given, out);
}

ANSWER int cudnnFindConvolutionForwardAlgorithmEx(const struct plim_handle *handle, const void *x,
                                                  const void *x_data, const void *w,
                                                  const void *w_data, const void *convolution,
                                                  const void *y, void *y_data, int asked,
                                                  int *given, struct performance *out,
                                                  void *workspace, size_t workspace_bytes)
{
    (void)x_data, (void)w_data, (void)y_data, (void)workspace, (void)workspace_bytes;
    return return_algorithms(handle, FORWARD, asked, given, out);
}

ANSWER int cudnnGetConvolutionForwardWorkspaceSize(const struct plim_handle *handle, const void *x,
                                                   const void *w, const void *convolution,
                                                   const void *y, int algorithm, size_t *bytes)
{
    return return_bytes(handle, FORWARD, algorithm, bytes);
}

/* --- gradient of the data --------------------------------------------------------------------- */

#define BACKWARD_DATA (&(struct problem){PLIM_DNN_BACKWARD_DATA, dx, w, dy, convolution})

ANSWER int cudnnGetConvolutionBackwardDataAlgorithmMaxCount(const struct plim_handle *handle,
                                                            int *count)
{
    return return_count(handle, PLIM_DNN_BACKWARD_DATA, count);
}

ANSWER int cudnnGetConvolutionBackwardDataAlgorithm_v7(const struct plim_handle *handle,
                                                       const void *w, const void *dy,
                                                       const void *convolution, const void *dx,
                                                       int asked, int *given,
                                                       struct performance *out)
{
    return return_algorithms(handle, BACKWARD_DATA, asked, given, out);
}

ANSWER int cudnnFindConvolutionBackwardDataAlgorithm(const struct plim_handle *handle,
                                                     const void *w, const void *dy,
                                                     const void *convolution, const void *dx,
                                                     int asked, int *given, struct performance *out)
{
    return return_algorithms(handle, BACKWARD_DATA, asked, given, out);
}

ANSWER int cudnnFindConvolutionBackwardDataAlgorithmEx(
    const struct plim_handle *handle, const void *w, const void *w_data, const void *dy,
    const void *dy_data, const void *convolution, const void *dx, void *dx_data, int asked,
    int *given, struct performance *out, void *workspace, size_t workspace_bytes)
{
    (void)w_data, (void)dy_data, (void)dx_data, (void)workspace, (void)workspace_bytes;
    return return_algorithms(handle, BACKWARD_DATA, asked, given, out);
}

ANSWER int cudnnGetConvolutionBackwardDataWorkspaceSize(const struct plim_handle *handle,
                                                        const void *w, const void *dy,
                                                        const void *convolution, const void *dx,
                                                        int algorithm, size_t *bytes)
{
    return return_bytes(handle, BACKWARD_DATA, algorithm, bytes);
}

/* --- gradient of the filter ------------------------------------------------------------------- */

#define BACKWARD_FILTER (&(struct problem){PLIM_DNN_BACKWARD_FILTER, x, dw, dy, convolution})

ANSWER int cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(const struct plim_handle *handle,
                                                              int *count)
{
    return return_count(handle, PLIM_DNN_BACKWARD_FILTER, count);
}

ANSWER int cudnnGetConvolutionBackwardFilterAlgorithm_v7(const struct plim_handle *handle,
                                                         const void *x, const void *dy,
                                                         const void *convolution, const void *dw,
                                                         int asked, int *given,
                                                         struct performance *out)
{
    return return_algorithms(handle, BACKWARD_FILTER, asked, given, out);
}

ANSWER int cudnnFindConvolutionBackwardFilterAlgorithm(const struct plim_handle *handle,
                                                       const void *x, const void *dy,
                                                       const void *convolution, const void *dw,
                                                       int asked, int *given,
                                                       struct performance *out)
{
    return return_algorithms(handle, BACKWARD_FILTER, asked, given, out);
}

ANSWER int cudnnFindConvolutionBackwardFilterAlgorithmEx(
    const struct plim_handle *handle, const void *x, const void *x_data, const void *dy,
    const void *dy_data, const void *convolution, const void *dw, void *dw_data, int asked,
    int *given, struct performance *out, void *workspace, size_t workspace_bytes)
{
    (void)x_data, (void)dy_data, (void)dw_data, (void)workspace, (void)workspace_bytes;
    return return_algorithms(handle, BACKWARD_FILTER, asked, given, out);
}

ANSWER int cudnnGetConvolutionBackwardFilterWorkspaceSize(const struct plim_handle *handle,
                                                          const void *x, const void *dy,
                                                          const void *convolution, const void *dw,
                                                          int algorithm, size_t *bytes)
{
    return return_bytes(handle, BACKWARD_FILTER, algorithm, bytes);
}
