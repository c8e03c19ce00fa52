/* cuDNN on the virtual GPU: what its files share.
 *
 * The program's own cuDNN stays loaded. Descriptors, versions and texts are host objects and stay
 * the library's own; nothing here is named like the functions that make them, so programs reach
 * the real ones, and names/cudnn.txt lists none of them. What takes a handle is answered by the
 * virtual GPU, all of it: the library cannot make handles without a GPU, and must never be given
 * one of ours.
 *
 * Facts are those of NVIDIA's headers cudnn_graph.h, cudnn_ops.h, cudnn_cnn.h and cudnn_adv.h (9.x)
 * and of the files of 8.x that had the same contents.
 */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_DNN_H
#define PLIM_DEVICES_VIRTUAL_DNN_DNN_H

#include "devices/virtual/process/unsupported.h"

/* What our answers can be; cudnnStatus_t has other numbers from 9.0 on. */
enum plim_dnn_result {
    PLIM_DNN_OK,
    PLIM_DNN_NOT_INITIALIZED,
    PLIM_DNN_ALLOC_FAILED,
    PLIM_DNN_BAD_PARAM,
    PLIM_DNN_NOT_SUPPORTED,
    PLIM_DNN_EXECUTION_FAILED,
};
/* As the loaded version numbers it. */
int plim_dnn_status(enum plim_dnn_result result);

/* DNN_REAL(pointer, "cudnnFoo"): sets a pointer to a function of the program's cuDNN; false: it has
 * none of this name. */
#define DNN_REAL(pointer, name) plim_dnn_real_into(&(pointer), sizeof(pointer), name)
bool plim_dnn_real_into(void *pointer, size_t size, const char *name);

/* 91900 for 9.19.0, 8700 for 8.7.0; 0: there is none. */
int plim_dnn_version(void);

/* A launch on the handle's stream. `form` tells uses of the function apart: the plan. Of the operands
 * only addresses of a GPU count. `cost`: NULL for that of moving the operands. */
struct plim_cost;
int plim_dnn_launch(const struct plim_handle *handle, const char *what, uint64_t form,
                    const void *const *operands, size_t count, const struct plim_cost *cost);

/* cudnnDataType_t */
enum plim_dnn_type {
    DNN_FLOAT = 0, DNN_DOUBLE = 1, DNN_HALF = 2, DNN_INT8 = 3, DNN_INT32 = 4, DNN_INT8X4 = 5,
    DNN_UINT8 = 6, DNN_UINT8X4 = 7, DNN_INT8X32 = 8, DNN_BFLOAT16 = 9, DNN_INT64 = 10,
    DNN_BOOLEAN = 11,
};
int64_t plim_dnn_type_bytes(int type); /* 0: not known */

enum { PLIM_DNN_DIMENSIONS = 8 };

/* A tensor as cudnnSetTensorNdDescriptor or the graph's tensors have it. */
struct plim_dnn_tensor {
    int type, count;
    int64_t dimension[PLIM_DNN_DIMENSIONS], stride[PLIM_DNN_DIMENSIONS];
};
/* What a cudnnTensorDescriptor_t was set to. */
bool plim_dnn_tensor_read(const void *descriptor, struct plim_dnn_tensor *out);
int64_t plim_dnn_tensor_bytes(const struct plim_dnn_tensor *tensor); /* without gaps */

/* Is the tensor's second dimension, the channels, the one whose elements are neighbours? */
bool plim_dnn_channels_last(const struct plim_dnn_tensor *tensor);

/* What a convolution asks for where the library cannot be asked: an estimate, estimate.c. */
enum plim_dnn_pass { PLIM_DNN_FORWARD, PLIM_DNN_BACKWARD_DATA, PLIM_DNN_BACKWARD_FILTER };
int64_t plim_dnn_convolution_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x,
                                   const struct plim_dnn_tensor *w,
                                   const struct plim_dnn_tensor *y);

/* Of these, copies of operands in another layout. */
int64_t plim_dnn_copied_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x,
                              const struct plim_dnn_tensor *w, const struct plim_dnn_tensor *y);

/* What persistent batch normalization asks for, batch_norm.c. */
int64_t plim_dnn_batch_norm_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x);

#endif
