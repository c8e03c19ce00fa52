#include "backend.h"
#include "autotune/base/array.h"
#include <stdlib.h>
#include <string.h>

/* --- descriptors ------------------------------------------------------------------------------ */

struct value {
    int attribute, type;
    int64_t count;
    void *data; /* for descriptors: holds a reference to each */
};

struct own {
    int kind, holders;
    PLIM_ARRAY(struct value) values;
};

/* Size of one element, by cudnnBackendAttributeType_t. Types that are not listed are enumerations. */
static size_t element_bytes(int type)
{
    static const uint8_t bytes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8, 4,
                                    4, 4, 4, 4, 4, 4, 4, 1, 4, 16, 4, 4, 4};
    return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 4;
}

static int create(int kind, void **out)
{
    struct own *own = calloc(1, sizeof(*own));
    if (!own) return plim_dnn_status(PLIM_DNN_ALLOC_FAILED);
    own->kind = kind;
    own->holders = 1;
    *out = own;
    return 0;
}

static int destroy(void *descriptor);

static void drop(struct value *value)
{
    void **held = value->data;
    for (int64_t i = 0; value->type == DNN_OF_DESCRIPTOR && i < value->count; i++) destroy(held[i]);
    free(value->data);
    value->data = NULL;
    value->count = 0;
}

static void clear(struct own *own)
{
    for (size_t i = 0; i < own->values.count; i++) drop(&own->values.items[i]);
    free(own->values.items);
    own->values.items = NULL;
    own->values.count = own->values.capacity = 0;
}

static int destroy(void *descriptor)
{
    struct own *own = descriptor;
    if (!own || __atomic_sub_fetch(&own->holders, 1, __ATOMIC_ACQ_REL)) return 0;
    clear(own);
    free(own);
    return 0;
}

static int finalize(void *descriptor)
{
    (void)descriptor;
    return 0;
}

static struct value *find(const struct own *own, int attribute)
{
    for (size_t i = 0; own && i < own->values.count; i++)
        if (own->values.items[i].attribute == attribute) return &own->values.items[i];
    return NULL;
}

static int set(void *descriptor, int attribute, int type, int64_t count, const void *values)
{
    struct own *own = descriptor;
    struct value *value = find(own, attribute);
    if (count < 0 || (count && !values)) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    size_t bytes = (size_t)count * element_bytes(type);
    void *data = malloc(bytes + 1);
    if (!data || (!value && PLIM_ARRAY_PUSH(&own->values, ((struct value){0})) != PLIM_OK)) {
        free(data);
        return plim_dnn_status(PLIM_DNN_ALLOC_FAILED);
    }
    if (bytes) memcpy(data, values, bytes);
    for (int64_t i = 0; type == DNN_OF_DESCRIPTOR && i < count; i++) {
        struct own *held = ((void **)data)[i];
        if (held) __atomic_add_fetch(&held->holders, 1, __ATOMIC_RELAXED);
    }
    if (value) drop(value);
    else value = &own->values.items[own->values.count - 1];
    *value = (struct value){attribute, type, count, data};
    return 0;
}

/* Returns the descriptor with this index in an attribute, or NULL. */
static struct own *held_by(const struct own *own, int attribute, int64_t index)
{
    const struct value *value = find(own, attribute);
    if (!value || value->type != DNN_OF_DESCRIPTOR || index >= value->count) return NULL;
    return ((void **)value->data)[index];
}

/* --- workspace of a configuration ------------------------------------------------------------- */

static bool read_tensor(const struct own *own, struct plim_dnn_tensor *out)
{
    const struct value *type = find(own, DNN_TENSOR_TYPE);
    const struct value *dimensions = find(own, DNN_TENSOR_DIMENSIONS);
    const struct value *strides = find(own, DNN_TENSOR_STRIDES);
    if (!type || !dimensions || !strides || dimensions->count > PLIM_DNN_DIMENSIONS ||
        dimensions->count != strides->count || type->count != 1)
        return false;
    out->count = (int)dimensions->count;
    memcpy(&out->type, type->data, sizeof(out->type));
    memcpy(out->dimension, dimensions->data, (size_t)out->count * sizeof(int64_t));
    memcpy(out->stride, strides->data, (size_t)out->count * sizeof(int64_t));
    return true;
}

static int64_t operation_bytes(const struct own *operation)
{
    static const struct { int kind, x, w, y; enum plim_dnn_pass pass; } convolutions[] = {
        {DNN_CONVOLUTION_FORWARD, DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y, PLIM_DNN_FORWARD},
        {DNN_CONVOLUTION_BACKWARD_DATA, DNN_DATA_DX, DNN_DATA_W, DNN_DATA_DY,
         PLIM_DNN_BACKWARD_DATA},
        {DNN_CONVOLUTION_BACKWARD_FILTER, DNN_FILTER_X, DNN_FILTER_DW, DNN_FILTER_DY,
         PLIM_DNN_BACKWARD_FILTER},
    };
    struct plim_dnn_tensor x, w, y;
    for (size_t i = 0; i < sizeof(convolutions) / sizeof(convolutions[0]); i++)
        if (convolutions[i].kind == operation->kind &&
            read_tensor(held_by(operation, convolutions[i].x, 0), &x) &&
            read_tensor(held_by(operation, convolutions[i].w, 0), &w) &&
            read_tensor(held_by(operation, convolutions[i].y, 0), &y))
            return plim_dnn_convolution_bytes(convolutions[i].pass, &x, &w, &y);
    return 0;
}

static int64_t config_bytes(const struct own *config)
{
    const struct own *engine = held_by(config, DNN_CONFIG_ENGINE, 0), *operation;
    const struct own *graph = held_by(engine, DNN_ENGINE_GRAPH, 0);
    int64_t bytes = 0;
    for (int64_t i = 0; (operation = held_by(graph, DNN_GRAPH_OPERATIONS, i)); i++)
        bytes += operation_bytes(operation);
    return bytes;
}

/* --- reading attributes ----------------------------------------------------------------------- */

static int return_number(int64_t number, int64_t asked, int64_t *count, void *values)
{
    if (count) *count = 1;
    if (values && asked > 0) memcpy(values, &number, sizeof(number));
    return 0;
}

static int return_shared_memory(int64_t asked, int64_t *count, void *values)
{
    if (count) *count = 1;
    if (values && asked > 0) memset(values, 0, sizeof(int32_t));
    return 0;
}

/* Returns the single configuration, of the single engine. */
static int return_results(const struct own *heuristics, int64_t asked, int64_t *count, void *values)
{
    void *graph = held_by(heuristics, DNN_HEURISTICS_GRAPH, 0), *engine = NULL, *config;
    if (!graph) return plim_dnn_status(PLIM_DNN_BAD_PARAM);
    if (count) *count = 1;
    if (!values || asked < 1) return 0;
    memcpy(&config, values, sizeof(config));
    int failed = create(DNN_ENGINE, &engine);
    if (!failed) failed = set(engine, DNN_ENGINE_GRAPH, DNN_OF_DESCRIPTOR, 1, &graph);
    if (!failed) failed = set(config, DNN_CONFIG_ENGINE, DNN_OF_DESCRIPTOR, 1, &engine);
    destroy(engine);
    return failed;
}

/* Returns an attribute that was set. Descriptors are copied into those that the caller has created. */
static int return_value(const struct value *value, int64_t asked, int64_t *count, void *values)
{
    int64_t given = asked < value->count ? asked : value->count;
    if (count) *count = value->count;
    if (!values || given <= 0) return 0;
    if (value->type != DNN_OF_DESCRIPTOR) {
        memcpy(values, value->data, (size_t)given * element_bytes(value->type));
        return 0;
    }
    int failed = 0;
    for (int64_t i = 0; i < given && !failed; i++) {
        const struct own *from = ((void **)value->data)[i];
        struct own *to = ((void **)values)[i];
        if (!from || !to || from == to) continue;
        clear(to);
        for (size_t k = 0; k < from->values.count && !failed; k++) {
            const struct value *each = &from->values.items[k];
            failed = set(to, each->attribute, each->type, each->count, each->data);
        }
    }
    return failed;
}

static int get(const void *descriptor, int attribute, int type, int64_t asked, int64_t *count,
               void *values)
{
    (void)type;
    const struct own *own = descriptor;
    const struct value *value = find(own, attribute);
    if (value) return return_value(value, asked, count, values);
    if (attribute == DNN_HEURISTICS_RESULTS) return return_results(own, asked, count, values);
    if (attribute == DNN_CONFIG_WORKSPACE)
        return return_number(config_bytes(own), asked, count, values);
    if (attribute == DNN_CONFIG_SHARED_MEMORY) return return_shared_memory(asked, count, values);
    if (attribute == DNN_GRAPH_ENGINE_COUNT) return return_number(1, asked, count, values);
    if (attribute == DNN_ENGINE_INDEX) return return_number(0, asked, count, values);
    if (count) *count = 0; /* no knobs, no notes */
    return 0;
}

const struct plim_dnn_backend plim_dnn_own = {create, destroy, finalize, set, get};
