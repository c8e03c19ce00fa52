/* cuDNN on the virtual GPU: shared by the files of this folder.
 *
 * The program's own cuDNN stays loaded. Descriptors, versions and strings are host objects and remain the library's
 * own: no function here has the name of one that creates them, so programs reach the real ones, and names/cudnn.txt
 * lists none of them. Every function that takes a handle is implemented by the virtual GPU: the library cannot create
 * handles without a GPU, and must never be given one of ours.
 *
 * Sources: NVIDIA's headers cudnn_graph.h, cudnn_ops.h, cudnn_cnn.h and cudnn_adv.h (9.x) and the corresponding files
 * of 8.x. */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_DNN_H
#define PLIM_DEVICES_VIRTUAL_DNN_DNN_H

#include "devices/virtual/process/unsupported.h"

/* The status codes that are returned; cudnnStatus_t was renumbered in 9.0. */
enum plim_dnn_result {
    PLIM_DNN_OK,
    PLIM_DNN_NOT_INITIALIZED,
    PLIM_DNN_ALLOC_FAILED,
    PLIM_DNN_BAD_PARAM,
    PLIM_DNN_NOT_SUPPORTED,
    PLIM_DNN_EXECUTION_FAILED,
};
/* Returns the cudnnStatus_t of the loaded version. */
int plim_dnn_status(enum plim_dnn_result result);

/* DNN_REAL(pointer, "cudnnFoo") sets a pointer to a function of the program's cuDNN. Returns false if there is no such
 * function. */
#define DNN_REAL(pointer, name) plim_dnn_real_into(&(pointer), sizeof(pointer), name)
bool plim_dnn_real_into(void *pointer, size_t size, const char *name);

/* Returns 91900 for 9.19.0, 8700 for 8.7.0; 0 if cuDNN is not loaded. */
int plim_dnn_version(void);

/* A launch on the handle's stream. `form` distinguishes uses of the function, for example by plan. Operands that are
 * not GPU addresses are ignored. `cost` NULL: the cost of moving the operands. */
struct plim_cost;
int plim_dnn_launch(const struct plim_handle *handle, const char *what, uint64_t form,
                    const void *const *operands, size_t count, const struct plim_cost *cost);

/* cudnnDataType_t */
enum plim_dnn_type {
    DNN_FLOAT = 0, DNN_DOUBLE = 1, DNN_HALF = 2, DNN_INT8 = 3, DNN_INT32 = 4, DNN_INT8X4 = 5,
    DNN_UINT8 = 6, DNN_UINT8X4 = 7, DNN_INT8X32 = 8, DNN_BFLOAT16 = 9, DNN_INT64 = 10,
    DNN_BOOLEAN = 11,
};
int64_t plim_dnn_type_bytes(int type); /* 0: unknown */

enum { PLIM_DNN_DIMENSIONS = 8 };

/* A tensor as described to cudnnSetTensorNdDescriptor or in a graph. */
struct plim_dnn_tensor {
    int type, count;
    int64_t dimension[PLIM_DNN_DIMENSIONS], stride[PLIM_DNN_DIMENSIONS];
};
/* Reads a cudnnTensorDescriptor_t. Returns false if that fails. */
bool plim_dnn_tensor_read(const void *descriptor, struct plim_dnn_tensor *out);
int64_t plim_dnn_tensor_bytes(const struct plim_dnn_tensor *tensor); /* of a dense tensor */

/* True if the second dimension, the channels, is the contiguous one. */
bool plim_dnn_channels_last(const struct plim_dnn_tensor *tensor);

/* Returns an estimate of a convolution's workspace in bytes, for use when the library cannot be asked (estimate.c). */
enum plim_dnn_pass { PLIM_DNN_FORWARD, PLIM_DNN_BACKWARD_DATA, PLIM_DNN_BACKWARD_FILTER };
int64_t plim_dnn_convolution_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x,
                                   const struct plim_dnn_tensor *w,
                                   const struct plim_dnn_tensor *y);

/* Returns the part of it that holds copies of operands in another layout. */
int64_t plim_dnn_copied_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x,
                              const struct plim_dnn_tensor *w, const struct plim_dnn_tensor *y);

/* Returns the workspace of persistent batch normalization in bytes (batch_norm.c). */
int64_t plim_dnn_batch_norm_bytes(enum plim_dnn_pass pass, const struct plim_dnn_tensor *x);

#endif
