/* Descriptors of the pretended cuDNN: a type and the attributes that were set. */
#ifndef PLIM_TESTS_DOUBLES_CUDNN_DESCRIPTOR_H
#define PLIM_TESTS_DOUBLES_CUDNN_DESCRIPTOR_H

#include <cudnn_graph.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAX_ATTRIBUTES = 12 };

struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    void *values;
};

/* Counted: a descriptor that was set as an attribute outlives its maker's interest. */
struct descriptor {
    cudnnBackendDescriptorType_t type;
    int references;
    bool finalized;
    int attributes;
    struct attribute attribute[MAX_ATTRIBUTES];
    /* of an engine configuration and what stands on it */
    int64_t engine, workspace_bytes;
    struct descriptor *graph;
};

struct descriptor *descriptor_create(cudnnBackendDescriptorType_t type);
void descriptor_retain(struct descriptor *d);
void descriptor_release(struct descriptor *d); /* NULL is fine */

/* NULL when it was not set. */
const struct attribute *descriptor_find(const struct descriptor *d,
                                        cudnnBackendAttributeName_t name);
/* The descriptor behind an attribute, NULL when it was not set. */
struct descriptor *descriptor_link(const struct descriptor *d, cudnnBackendAttributeName_t name);
/* The first number of an attribute of ints or enums, `plain` when it was not set. */
int64_t descriptor_number(const struct descriptor *d, cudnnBackendAttributeName_t name,
                          int64_t plain);

/* Bytes of one value of this type; 0: a type that is not known here. */
size_t attribute_size(cudnnBackendAttributeType_t type);

/* Runs a finalized operation graph: matrix products, pointwise operations, reductions, reshapes, by
 * their definition in fp32; tensors between operations are rounded to their type. `pack` is a
 * VARIANT_PACK. CUDNN_STATUS_BAD_PARAM: an address that is missing or not aligned as it was said, a
 * tensor that is read before it is written. */
cudnnStatus_t graph_run(const struct descriptor *graph, const struct descriptor *pack);

#endif
