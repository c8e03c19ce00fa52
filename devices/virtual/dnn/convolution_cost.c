#include "convolution_cost.h"
#include "attention_cost.h"
#include "autotune/base/array.h"
#include <pthread.h>
#include <string.h>

/* --- recorded descriptions -------------------------------------------------------------------- */

struct note {
    const void *descriptor;
    struct plim_dnn_convolution convolution;
    unsigned seen; /* tensors of an operation that are known: X, W, Y; WHOLE: all */
    struct plim_dnn_attention attention;
};

enum { X = 1, W = 2, Y = 4, WHOLE = X | W | Y };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static PLIM_ARRAY(struct note) notes;

static struct note *find(const void *descriptor)
{
    for (size_t i = notes.count; i-- > 0;)
        if (notes.items[i].descriptor == descriptor) return &notes.items[i];
    return NULL;
}

/* Returns NULL if out of memory; the convolution then counts as the bytes that it moves. */
static struct note *find_or_add(const void *descriptor)
{
    struct note *note = find(descriptor);
    if (note) return note;
    if (PLIM_ARRAY_PUSH(&notes, ((struct note){.descriptor = descriptor})) != PLIM_OK) return NULL;
    return &notes.items[notes.count - 1];
}

static void inherit(const void *descriptor, const void *from)
{
    const struct note *source = find(from);
    if (!source) return;
    const struct note copy = *source;
    struct note *note = find_or_add(descriptor);
    if (!note) return;
    if (copy.seen == WHOLE) {
        note->convolution = copy.convolution;
        note->seen = copy.seen;
    }
    note->attention = copy.attention;
}

/* Adds an operation to a graph: a graph of several operations accumulates their attention. */
static void inherit_operation(const void *graph, const void *operation)
{
    const struct note *note = find(graph);
    struct plim_dnn_attention joined = note ? note->attention : (struct plim_dnn_attention){0};
    if (!(note = find(operation))) return;
    plim_dnn_attention_join(&joined, &note->attention);
    inherit(graph, operation);
    struct note *of_graph = find_or_add(graph);
    if (of_graph) of_graph->attention = joined;
}

static bool read_tensor(const struct plim_dnn_backend *backend, const void *descriptor,
                        struct plim_dnn_tensor *out)
{
    int64_t types = 0, dimensions = 0, strides = 0;
    memset(out, 0, sizeof(*out));
    if (backend->get(descriptor, DNN_TENSOR_TYPE, DNN_OF_TYPE, 1, &types, &out->type) ||
        backend->get(descriptor, DNN_TENSOR_DIMENSIONS, DNN_OF_INT64, PLIM_DNN_DIMENSIONS, &dimensions,
                     out->dimension) ||
        backend->get(descriptor, DNN_TENSOR_STRIDES, DNN_OF_INT64, PLIM_DNN_DIMENSIONS, &strides,
                     out->stride))
        return false;
    out->count = (int)dimensions;
    return types == 1 && dimensions == strides && dimensions > 2 && dimensions <= PLIM_DNN_DIMENSIONS;
}

static void note_tensor(const struct plim_dnn_backend *backend, const void *descriptor,
                        int attribute, const void *tensor)
{
    static const struct { int x, w, y; } attributes[] = {
        [PLIM_DNN_FORWARD] = {DNN_FORWARD_X, DNN_FORWARD_W, DNN_FORWARD_Y},
        [PLIM_DNN_BACKWARD_DATA] = {DNN_DATA_DX, DNN_DATA_W, DNN_DATA_DY},
        [PLIM_DNN_BACKWARD_FILTER] = {DNN_FILTER_X, DNN_FILTER_DW, DNN_FILTER_DY},
    };
    for (int pass = 0; pass < (int)(sizeof(attributes) / sizeof(attributes[0])); pass++) {
        unsigned which = attribute == attributes[pass].x   ? X
                         : attribute == attributes[pass].w ? W
                         : attribute == attributes[pass].y ? Y
                                                           : 0;
        struct note *note = which ? find_or_add(descriptor) : NULL;
        if (!note) continue;
        struct plim_dnn_convolution *c = &note->convolution;
        c->pass = (enum plim_dnn_pass)pass;
        if (read_tensor(backend, tensor, which == X ? &c->x : which == W ? &c->w : &c->y))
            note->seen |= which;
    }
}

/* Records operands of the matrix products and masks of attention. */
static void note_product(const struct plim_dnn_backend *backend, const void *descriptor, int attribute,
                         const void *of)
{
    struct plim_dnn_tensor tensor;
    bool is_product = attribute == DNN_MATMUL_A || attribute == DNN_MATMUL_B || attribute == DNN_MATMUL_C;
    if (!is_product && attribute != DNN_POINTWISE_SELECTOR) return;
    struct note *note = read_tensor(backend, of, &tensor) ? find_or_add(descriptor) : NULL;
    if (!note) return;
    struct plim_dnn_attention *attention = &note->attention;
    attention->products = is_product;
    attention->is_masked = !is_product;
    if (attribute == DNN_MATMUL_A) attention->queries = tensor;
    if (attribute == DNN_MATMUL_B) attention->keys = tensor;
    if (attribute == DNN_MATMUL_C) attention->scores = tensor;
}

void plim_dnn_attribute_set(const struct plim_dnn_backend *backend, const void *descriptor,
                            int attribute, int64_t count, const void *values)
{
    const void *of;
    if (count < 1 || !values) return;
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < count; i++) {
        memcpy(&of, (const char *)values + (size_t)i * sizeof(of), sizeof(of));
        if (attribute == DNN_GRAPH_OPERATIONS)
            inherit_operation(descriptor, of);
        else if (attribute == DNN_HEURISTICS_GRAPH || attribute == DNN_ENGINE_GRAPH ||
                 attribute == DNN_CONFIG_ENGINE)
            inherit(descriptor, of);
        else {
            note_tensor(backend, descriptor, attribute, of);
            note_product(backend, descriptor, attribute, of);
        }
    }
    pthread_mutex_unlock(&lock);
}

void plim_dnn_results_returned(const void *heuristics, int64_t count, const void *values)
{
    const void *config;
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; values && i < count; i++) {
        memcpy(&config, (const char *)values + (size_t)i * sizeof(config), sizeof(config));
        inherit(config, heuristics);
    }
    pthread_mutex_unlock(&lock);
}

void plim_dnn_descriptor_destroyed(const void *descriptor)
{
    pthread_mutex_lock(&lock);
    struct note *note = find(descriptor);
    if (note) *note = notes.items[--notes.count];
    pthread_mutex_unlock(&lock);
}

/* --- cost of the matrix product --------------------------------------------------------------- */

static int64_t product(const struct plim_dnn_tensor *t, int from)
{
    int64_t out = 1;
    for (int i = from; i < t->count; i++) out *= t->dimension[i];
    return out;
}

static enum plim_cost_type type_of(int type, unsigned notes_of_it)
{
    if (type == DNN_HALF) return PLIM_COST_FP16;
    if (type == DNN_BFLOAT16) return PLIM_COST_BF16;
    return notes_of_it & DNN_NOTE_TENSOR_CORES ? PLIM_COST_TF32 : PLIM_COST_FP32;
}

/* Returns the multiplications that remain with Winograd's transforms: 1 / 2.25 and 1 / 4 for 3 x 3 filters over tiles
 * of 4 x 4 and 6 x 6 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks"). */
static int64_t saved(int64_t k, unsigned notes_of_it)
{
    if (!(notes_of_it & DNN_NOTE_WINOGRAD)) return k;
    if (notes_of_it & DNN_NOTE_TILE_4) return (4 * k + 8) / 9;
    return notes_of_it & DNN_NOTE_TILE_6 ? (k + 3) / 4 : k;
}

bool plim_dnn_convolution_cost(const struct plim_dnn_convolution *c, unsigned notes_of_it,
                               struct plim_cost *out)
{
    int64_t bytes = plim_dnn_tensor_bytes(&c->x) + plim_dnn_tensor_bytes(&c->w) +
                    plim_dnn_tensor_bytes(&c->y);
    int64_t filters = c->w.dimension[0], channels = c->w.dimension[1], window = product(&c->w, 2);
    int64_t groups = channels ? c->x.dimension[1] / channels : 0;
    int64_t pixels = c->y.dimension[0] * product(&c->y, 2), inputs = c->x.dimension[0] * product(&c->x, 2);
    if (groups < 1 || pixels < 1 || inputs < 1 || window < 1 || !bytes) return false;
    filters = filters / groups > 1 ? filters / groups : 1;
    int64_t m = pixels, n = filters, k = saved(channels * window, notes_of_it);
    if (c->pass == PLIM_DNN_BACKWARD_DATA) { /* with strides, each input meets fewer taps */
        m = inputs;
        n = channels;
        k = saved((filters * window * pixels + inputs - 1) / inputs, notes_of_it);
    }
    if (c->pass == PLIM_DNN_BACKWARD_FILTER) {
        m = filters;
        n = channels * window;
        k = saved(pixels, notes_of_it);
    }
    int64_t copied = notes_of_it & DNN_NOTE_TENSOR_CORES
                         ? plim_dnn_copied_bytes(c->pass, &c->x, &c->w, &c->y) : 0;
    *out = (struct plim_cost){.kind = PLIM_COST_CONVOLUTION,
                              .type = (uint8_t)type_of(c->x.type, notes_of_it),
                              .number = {m, n, k, groups, bytes, copied > 0 ? 2 * copied : 1}};
    return true;
}

/* --- cost of an engine configuration ---------------------------------------------------------- */

static unsigned notes_of(const struct plim_dnn_backend *backend, const void *config)
{
    enum { NOTES = 32 };
    int each[NOTES];
    int64_t count = 0;
    unsigned out = 0;
    void *engine = NULL;
    if (backend->create(DNN_ENGINE, &engine)) return 0;
    if (!backend->get(config, DNN_CONFIG_ENGINE, DNN_OF_DESCRIPTOR, 1, &count, &engine) &&
        !backend->get(engine, DNN_ENGINE_NOTES, DNN_OF_NOTE, NOTES, &count, each))
        for (int64_t i = 0; i < count && i < NOTES; i++)
            if (each[i] >= 0 && each[i] < NOTES) out |= 1u << each[i];
    backend->destroy(engine);
    return out;
}

bool plim_dnn_config_cost(const struct plim_dnn_backend *backend, const void *config,
                          struct plim_cost *out)
{
    struct note of = {0};
    pthread_mutex_lock(&lock);
    const struct note *note = find(config);
    if (note) of = *note;
    pthread_mutex_unlock(&lock);
    if (of.seen == WHOLE) return plim_dnn_convolution_cost(&of.convolution, notes_of(backend, config), out);
    return plim_dnn_attention_cost(&of.attention, out);
}
