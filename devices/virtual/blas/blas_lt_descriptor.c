/* The descriptors of cuBLASLt, which store attributes and return them. */
#include "blas_lt.h"
#include "autotune/base/array.h"
#include "blas.h"
#include <stdlib.h>
#include <string.h>

enum { VALUE_BYTES = 64 };

struct attribute {
    int id;
    size_t bytes;
    unsigned char value[VALUE_BYTES];
};

struct table {
    PLIM_ARRAY(struct attribute) attributes;
};

struct lt_descriptor {
    enum lt_kind kind;
    struct table *table; /* never freed for a descriptor in the program's own memory: no call tells when it ends */
};

/* Attributes that are used here. */
enum { LAYOUT_TYPE = 0, LAYOUT_ROWS = 2, LAYOUT_COLUMNS = 3, LAYOUT_LEADING = 4 };

/* Default values of attributes, where they are not 0. */
static const struct {
    enum lt_kind kind;
    int id;
    uint64_t value;
} defaults[] = {
    {LT_LAYOUT, 5, 1}, /* batch */
    {LT_MATMUL, 7, 1}, /* epilogue: none */
    {LT_MATMUL, 22, (uint64_t)-1}, /* types: that of the result */
    {LT_MATMUL, 26, (uint64_t)-1},
    {LT_PREFERENCE, 3, 0xffffffff}, /* reduction schemes: all */
    {LT_PREFERENCE, 5, 256},        /* alignments */
    {LT_PREFERENCE, 6, 256},
    {LT_PREFERENCE, 7, 256},
    {LT_PREFERENCE, 8, 256},
    {LT_PREFERENCE, 12, (uint64_t)-1}, /* implementations: all */
};

static struct attribute *find(const struct lt_descriptor *descriptor, int id)
{
    struct attribute *items = descriptor->table->attributes.items;
    for (size_t i = 0; i < descriptor->table->attributes.count; i++)
        if (items[i].id == id) return &items[i];
    return NULL;
}

uint64_t plim_lt_number(const struct lt_descriptor *descriptor, int id)
{
    uint64_t number = 0;
    const struct attribute *attribute = descriptor ? find(descriptor, id) : NULL;
    if (attribute && attribute->bytes <= sizeof(number))
        memcpy(&number, attribute->value, attribute->bytes);
    return number;
}

static int set(struct lt_descriptor *descriptor, enum lt_kind kind, int id, const void *value,
               size_t bytes)
{
    struct attribute new = {.id = id, .bytes = bytes};
    if (!descriptor || descriptor->kind != kind || !value || !bytes || bytes > VALUE_BYTES)
        return BLAS_INVALID_VALUE;
    memcpy(new.value, value, bytes);
    struct attribute *old = find(descriptor, id);
    if (old) *old = new;
    else if (PLIM_ARRAY_PUSH(&descriptor->table->attributes, new) != PLIM_OK)
        return BLAS_ALLOC_FAILED;
    return BLAS_OK;
}

static uint64_t default_of(enum lt_kind kind, int id)
{
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (defaults[i].kind == kind && defaults[i].id == id) return defaults[i].value;
    return 0;
}

/* The size of an attribute that was never set is not known: as many bytes as requested. */
static int get(const struct lt_descriptor *descriptor, enum lt_kind kind, int id, void *value,
               size_t bytes, size_t *written)
{
    if (!descriptor || descriptor->kind != kind) return BLAS_INVALID_VALUE;
    const struct attribute *found = find(descriptor, id);
    uint64_t plain = default_of(kind, id);
    size_t needed = found ? found->bytes : bytes ? bytes : sizeof(plain);
    if (written) *written = needed;
    if (!bytes) return written ? BLAS_OK : BLAS_INVALID_VALUE;
    if (!value || bytes < needed) return BLAS_INVALID_VALUE;
    memset(value, 0, bytes);
    if (found) memcpy(value, found->value, needed);
    else memcpy(value, &plain, bytes < sizeof(plain) ? bytes : sizeof(plain));
    return BLAS_OK;
}

static int make(struct lt_descriptor *descriptor, enum lt_kind kind)
{
    descriptor->kind = kind;
    descriptor->table = calloc(1, sizeof(*descriptor->table));
    return descriptor->table ? BLAS_OK : BLAS_ALLOC_FAILED;
}

static int create(struct lt_descriptor **out, enum lt_kind kind)
{
    if (!out) return BLAS_INVALID_VALUE;
    *out = calloc(1, sizeof(**out));
    if (!*out) return BLAS_ALLOC_FAILED;
    int status = make(*out, kind);
    if (!status) return BLAS_OK;
    free(*out);
    *out = NULL;
    return status;
}

static int init(struct lt_descriptor *descriptor, size_t bytes, enum lt_kind kind)
{
    if (!descriptor || bytes < sizeof(*descriptor)) return BLAS_INVALID_VALUE;
    memset(descriptor, 0, bytes);
    return make(descriptor, kind);
}

static int destroy(struct lt_descriptor *descriptor, enum lt_kind kind)
{
    if (!descriptor) return BLAS_OK;
    if (descriptor->kind != kind) return BLAS_INVALID_VALUE;
    PLIM_ARRAY_FINISH(&descriptor->table->attributes);
    free(descriptor->table);
    descriptor->kind = 0;
    free(descriptor);
    return BLAS_OK;
}

#define DESCRIPTOR(name, kind)                                                                     \
    ANSWER int name##Destroy(struct lt_descriptor *descriptor)                                     \
    {                                                                                              \
        return destroy(descriptor, kind);                                                          \
    }                                                                                              \
    ANSWER int name##SetAttribute(struct lt_descriptor *descriptor, int id, const void *value,     \
                                  size_t bytes)                                                    \
    {                                                                                              \
        return set(descriptor, kind, id, value, bytes);                                            \
    }                                                                                              \
    ANSWER int name##GetAttribute(const struct lt_descriptor *descriptor, int id, void *value,     \
                                  size_t bytes, size_t *written)                                   \
    {                                                                                              \
        return get(descriptor, kind, id, value, bytes, written);                                   \
    }

DESCRIPTOR(cublasLtMatrixLayout, LT_LAYOUT)
DESCRIPTOR(cublasLtMatmulDesc, LT_MATMUL)
DESCRIPTOR(cublasLtMatmulPreference, LT_PREFERENCE)
DESCRIPTOR(cublasLtMatrixTransformDesc, LT_TRANSFORM)
DESCRIPTOR(cublasLtEmulationDesc, LT_EMULATION)

static int fill_layout(struct lt_descriptor *layout, int type, uint64_t rows, uint64_t columns,
                       int64_t leading)
{
    int status = set(layout, LT_LAYOUT, LAYOUT_TYPE, &type, sizeof(type));
    if (!status) status = set(layout, LT_LAYOUT, LAYOUT_ROWS, &rows, sizeof(rows));
    if (!status) status = set(layout, LT_LAYOUT, LAYOUT_COLUMNS, &columns, sizeof(columns));
    if (!status) status = set(layout, LT_LAYOUT, LAYOUT_LEADING, &leading, sizeof(leading));
    return status;
}

ANSWER int cublasLtMatrixLayoutCreate(struct lt_descriptor **out, int type, uint64_t rows,
                                      uint64_t columns, int64_t leading)
{
    int status = create(out, LT_LAYOUT);
    return status ? status : fill_layout(*out, type, rows, columns, leading);
}

ANSWER int cublasLtMatrixLayoutInit_internal(struct lt_descriptor *layout, size_t bytes, int type,
                                             uint64_t rows, uint64_t columns, int64_t leading)
{
    int status = init(layout, bytes, LT_LAYOUT);
    return status ? status : fill_layout(layout, type, rows, columns, leading);
}

/* Attributes 0 and 1 of a product are the compute type and the type of alpha and beta. */
static int fill_matmul(struct lt_descriptor *matmul, int compute, int scale_type)
{
    int status = set(matmul, LT_MATMUL, 0, &compute, sizeof(compute));
    return status ? status : set(matmul, LT_MATMUL, 1, &scale_type, sizeof(scale_type));
}

ANSWER int cublasLtMatmulDescCreate(struct lt_descriptor **out, int compute, int scale_type)
{
    int status = create(out, LT_MATMUL);
    return status ? status : fill_matmul(*out, compute, scale_type);
}

ANSWER int cublasLtMatmulDescInit_internal(struct lt_descriptor *matmul, size_t bytes, int compute,
                                           int scale_type)
{
    int status = init(matmul, bytes, LT_MATMUL);
    return status ? status : fill_matmul(matmul, compute, scale_type);
}

ANSWER int cublasLtMatrixTransformDescCreate(struct lt_descriptor **out, int scale_type)
{
    int status = create(out, LT_TRANSFORM);
    return status ? status : set(*out, LT_TRANSFORM, 0, &scale_type, sizeof(scale_type));
}

ANSWER int cublasLtMatrixTransformDescInit_internal(struct lt_descriptor *transform, size_t bytes,
                                                    int scale_type)
{
    int status = init(transform, bytes, LT_TRANSFORM);
    return status ? status : set(transform, LT_TRANSFORM, 0, &scale_type, sizeof(scale_type));
}

ANSWER int cublasLtMatmulPreferenceCreate(struct lt_descriptor **out)
{
    return create(out, LT_PREFERENCE);
}

ANSWER int cublasLtMatmulPreferenceInit_internal(struct lt_descriptor *preference, size_t bytes)
{
    return init(preference, bytes, LT_PREFERENCE);
}

ANSWER int cublasLtEmulationDescCreate(struct lt_descriptor **out)
{
    return create(out, LT_EMULATION);
}

ANSWER int cublasLtEmulationDescInit_internal(struct lt_descriptor *emulation, size_t bytes)
{
    return init(emulation, bytes, LT_EMULATION);
}

bool plim_lt_is(const struct lt_descriptor *descriptor, enum lt_kind kind)
{
    return descriptor && descriptor->kind == kind;
}

int plim_lt_layout_type(const struct lt_descriptor *layout, int *type)
{
    return get(layout, LT_LAYOUT, LAYOUT_TYPE, type, sizeof(*type), NULL);
}
