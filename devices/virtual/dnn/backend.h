/* cuDNN's graph ("backend") interface: the constants shared by backend.c and own.c, and our own descriptors, which are
 * used if the program's cuDNN cannot plan without a GPU.
 *
 * From 9.8 on the library accepts the description of a GPU and plans for it: graphs, heuristics, engine configurations
 * and their workspaces come from cuDNN itself (backend.c). Older versions query a real GPU, so all descriptors are
 * ours: they store the attributes that are set, the heuristics return one engine that runs everything, and its
 * workspace is an estimate (own.c). */
#ifndef PLIM_DEVICES_VIRTUAL_DNN_BACKEND_H
#define PLIM_DEVICES_VIRTUAL_DNN_BACKEND_H

#include "dnn.h"

/* cudnnBackendDescriptorType_t */
enum {
    DNN_ENGINE = 2, DNN_ENGINE_CONFIG = 3, DNN_HEURISTICS = 4, DNN_PLAN = 5,
    DNN_CONVOLUTION_FORWARD = 10, DNN_CONVOLUTION_BACKWARD_FILTER = 11,
    DNN_CONVOLUTION_BACKWARD_DATA = 12, DNN_GRAPH = 15, DNN_VARIANT_PACK = 16, DNN_TENSOR = 17,
    DNN_DEVICE_PROPERTIES = 38,
};

/* cudnnBackendAttributeName_t */
enum {
    DNN_HEURISTICS_GRAPH = 201, DNN_HEURISTICS_RESULTS = 202, DNN_HEURISTICS_DEVICE = 204,
    DNN_CONFIG_ENGINE = 300, DNN_CONFIG_WORKSPACE = 303, DNN_CONFIG_SHARED_MEMORY = 304,
    DNN_PLAN_CONFIG = 401, DNN_PLAN_WORKSPACE = 402, DNN_PLAN_COMPUTED_UIDS = 403,
    DNN_PLAN_RUN_ONLY_UIDS = 404, DNN_PLAN_JSON = 405,
    DNN_FORWARD_W = 703, DNN_FORWARD_X = 704, DNN_FORWARD_Y = 705,
    DNN_DATA_W = 709, DNN_DATA_DX = 710, DNN_DATA_DY = 711,
    DNN_FILTER_DW = 715, DNN_FILTER_X = 716, DNN_FILTER_DY = 717,
    DNN_POINTWISE_SELECTOR = 758, /* the mask of an operation that selects one of two inputs */
    DNN_GRAPH_OPERATIONS = 801, DNN_GRAPH_ENGINE_COUNT = 802,
    DNN_TENSOR_TYPE = 901, DNN_TENSOR_DIMENSIONS = 902, DNN_TENSOR_STRIDES = 903,
    DNN_PACK_POINTERS = 1001,
    DNN_MATMUL_A = 1520, DNN_MATMUL_B = 1521, DNN_MATMUL_C = 1522,
    DNN_ENGINE_GRAPH = 1300, DNN_ENGINE_INDEX = 1301, DNN_ENGINE_NOTES = 1303, DNN_ENGINE_DEVICE = 1307,
    DNN_DEVICE_ID = 2700, DNN_DEVICE_HANDLE = 2701, DNN_DEVICE_JSON = 2702,
};

/* cudnnBackendAttributeType_t */
enum { DNN_OF_HANDLE = 0, DNN_OF_TYPE = 1, DNN_OF_INT64 = 3, DNN_OF_POINTER = 6, DNN_OF_NOTE = 11,
       DNN_OF_DESCRIPTOR = 15,
       DNN_OF_CHAR = 24 };

/* The graph interface of the library, or our own. All functions return cudnnStatus_t. */
struct plim_dnn_backend {
    int (*create)(int type, void **out);
    int (*destroy)(void *descriptor);
    int (*finalize)(void *descriptor);
    int (*set)(void *descriptor, int attribute, int type, int64_t count, const void *values);
    int (*get)(const void *descriptor, int attribute, int type, int64_t asked, int64_t *count,
               void *values);
};

/* Our own descriptors. As in cuDNN, a descriptor that was set as an attribute of another may be destroyed before it;
 * reading an attribute into a descriptor makes a copy. */
extern const struct plim_dnn_backend plim_dnn_own;

#endif
