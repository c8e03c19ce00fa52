/* cuSPARSE: its generic interface, products of a sparse matrix with a dense one or a vector, and how coordinates become
 * rows. Buffers are estimated as one number a row of the sparse matrix.
 */
#include "math_library.h"
#include <stdlib.h>
#include <string.h>

/* Parameters that no answer depends on keep their names, so that signatures can be read. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum status { OK, NOT_INITIALIZED, ALLOC_FAILED, INVALID_VALUE, EXECUTION_FAILED = 6, NOT_SUPPORTED = 10 };

/* A matrix, a vector or an old descriptor. */
struct descriptor {
    const void *data[3]; /* places of rows, of columns, values; of a dense one values alone */
    size_t arrays;
    int64_t rows, columns, numbers;
};

static const char *const texts[] = {
    [OK] = "success", [NOT_INITIALIZED] = "initialization error", [ALLOC_FAILED] = "out of memory",
    [INVALID_VALUE] = "invalid argument", [EXECUTION_FAILED] = "execution failed", [NOT_SUPPORTED] = "operation not supported"};

ANSWER const char *cusparseGetErrorString(int status)
{
    bool is_known = status >= 0 && (size_t)status < sizeof(texts) / sizeof(texts[0]) && texts[status];
    return is_known ? texts[status] : "unknown error";
}

ANSWER const char *cusparseGetErrorName(int status)
{
    return status == OK ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_EXECUTION_FAILED";
}

/* --- handles ---------------------------------------------------------------------------------- */

ANSWER int cusparseCreate(void **out)
{
    if (!out) return INVALID_VALUE;
    plim_self_note("cuSPARSE's buffers are estimates");
    int failed = plim_math_handle(sizeof(struct plim_handle), out);
    return failed == GPU_OUT_OF_MEMORY ? ALLOC_FAILED : failed ? NOT_INITIALIZED : OK;
}

ANSWER int cusparseDestroy(struct plim_handle *handle)
{
    free(handle);
    return OK;
}

ANSWER int cusparseSetStream(struct plim_handle *handle, void *stream)
{
    if (!handle) return NOT_INITIALIZED;
    handle->stream = stream;
    return OK;
}

ANSWER int cusparseGetStream(const struct plim_handle *handle, void **stream)
{
    if (!handle) return NOT_INITIALIZED;
    *stream = handle->stream;
    return OK;
}

ANSWER int cusparseSetPointerMode(struct plim_handle *handle, int mode)
{
    return handle ? OK : NOT_INITIALIZED;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static int describe(struct descriptor **out, struct descriptor descriptor)
{
    if (!out) return INVALID_VALUE;
    *out = malloc(sizeof(**out));
    if (!*out) return ALLOC_FAILED;
    **out = descriptor;
    return OK;
}

#define SPARSE(name)                                                                               \
    ANSWER int name(struct descriptor **out, int64_t rows, int64_t columns, int64_t numbers,       \
                    const void *row_places, const void *column_places, const void *values,         \
                    int first_type, int second_type, int base, int type)                           \
    {                                                                                              \
        return describe(out, (struct descriptor){{row_places, column_places, values}, 3, rows,     \
                                                 columns, numbers});                               \
    }
#define COORDINATES(name)                                                                          \
    ANSWER int name(struct descriptor **out, int64_t rows, int64_t columns, int64_t numbers,       \
                    const void *row_places, const void *column_places, const void *values,         \
                    int index_type, int base, int type)                                            \
    {                                                                                              \
        return describe(out, (struct descriptor){{row_places, column_places, values}, 3, rows,     \
                                                 columns, numbers});                               \
    }
#define MATRIX(name)                                                                               \
    ANSWER int name(struct descriptor **out, int64_t rows, int64_t columns, int64_t leading,       \
                    const void *values, int type, int order)                                       \
    {                                                                                              \
        return describe(out, (struct descriptor){{values}, 1, rows, columns, rows * columns});     \
    }
#define VECTOR(name)                                                                               \
    ANSWER int name(struct descriptor **out, int64_t size, const void *values, int type)           \
    {                                                                                              \
        return describe(out, (struct descriptor){{values}, 1, size, 1, size});                     \
    }
#define GONE(name)                                                                                 \
    ANSWER int name(struct descriptor *descriptor)                                                 \
    {                                                                                              \
        free(descriptor);                                                                          \
        return OK;                                                                                 \
    }
#define SET(name, parameters)                                                                      \
    ANSWER int name parameters { return descriptor ? OK : INVALID_VALUE; }

SPARSE(cusparseCreateCsr)
SPARSE(cusparseCreateConstCsr)
SPARSE(cusparseCreateCsc)
SPARSE(cusparseCreateConstCsc)
COORDINATES(cusparseCreateCoo)
COORDINATES(cusparseCreateConstCoo)
MATRIX(cusparseCreateDnMat)
MATRIX(cusparseCreateConstDnMat)
VECTOR(cusparseCreateDnVec)
VECTOR(cusparseCreateConstDnVec)
GONE(cusparseDestroySpMat)
GONE(cusparseDestroyDnMat)
GONE(cusparseDestroyDnVec)
GONE(cusparseDestroyMatDescr)
SET(cusparseSetMatType, (struct descriptor * descriptor, int type))
SET(cusparseSetMatFillMode, (struct descriptor * descriptor, int mode))
SET(cusparseSetMatDiagType, (struct descriptor * descriptor, int type))
SET(cusparseSetMatIndexBase, (struct descriptor * descriptor, int base))
SET(cusparseCsrSetStridedBatch, (struct descriptor * descriptor, int count, int64_t of_rows, int64_t of_values))
SET(cusparseCooSetStridedBatch, (struct descriptor * descriptor, int count, int64_t stride))
SET(cusparseDnMatSetStridedBatch, (struct descriptor * descriptor, int count, int64_t stride))
SET(cusparseSpMatSetAttribute, (struct descriptor * descriptor, int attribute, const void *data, size_t bytes))

ANSWER int cusparseCreateMatDescr(struct descriptor **out) { return describe(out, (struct descriptor){0}); }

ANSWER int cusparseCsrSetPointers(struct descriptor *descriptor, void *rows, void *columns, void *values)
{
    if (!descriptor) return INVALID_VALUE;
    descriptor->data[0] = rows;
    descriptor->data[1] = columns;
    descriptor->data[2] = values;
    return OK;
}

/* --- products --------------------------------------------------------------------------------- */

static int product(const char *name, const struct plim_handle *handle, const struct descriptor *a,
                   const struct descriptor *b, const struct descriptor *c)
{
    const void *operands[9];
    size_t count = 0;
    if (!handle) return NOT_INITIALIZED;
    if (!a || !b || !c) return INVALID_VALUE;
    const struct descriptor *all[] = {a, b, c};
    for (size_t d = 0; d < 3; d++)
        for (size_t i = 0; i < all[d]->arrays; i++) operands[count++] = all[d]->data[i];
    return plim_math_launch(handle->stream, name, operands, count, 1) ? EXECUTION_FAILED : OK;
}

static int room(const struct descriptor *sparse, size_t *bytes)
{
    if (!sparse || !bytes) return INVALID_VALUE;
    *bytes = (size_t)sparse->rows * sizeof(int32_t);
    return OK;
}

/* C = A B, where one of the three is sparse. */
#define PRODUCT(name, sparse)                                                                      \
    ANSWER int name##_bufferSize(const struct plim_handle *handle, int a_form, int b_form,         \
                                 const void *alpha, const struct descriptor *a,                    \
                                 const struct descriptor *b, const void *beta,                     \
                                 struct descriptor *c, int type, int algorithm, size_t *bytes)     \
    {                                                                                              \
        return room(sparse, bytes);                                                                \
    }                                                                                              \
    ANSWER int name##_preprocess(const struct plim_handle *handle, int a_form, int b_form,         \
                                 const void *alpha, const struct descriptor *a,                    \
                                 const struct descriptor *b, const void *beta,                     \
                                 struct descriptor *c, int type, int algorithm, void *buffer)      \
    {                                                                                              \
        return handle ? OK : NOT_INITIALIZED;                                                      \
    }                                                                                              \
    ANSWER int name(const struct plim_handle *handle, int a_form, int b_form, const void *alpha,   \
                    const struct descriptor *a, const struct descriptor *b, const void *beta,      \
                    struct descriptor *c, int type, int algorithm, void *buffer)                   \
    {                                                                                              \
        return product(#name, handle, a, b, c);                                                    \
    }

PRODUCT(cusparseSpMM, a)
PRODUCT(cusparseSDDMM, c)

ANSWER int cusparseSpMV_bufferSize(const struct plim_handle *handle, int form, const void *alpha,
                                   const struct descriptor *a, const struct descriptor *x, const void *beta,
                                   struct descriptor *y, int type, int algorithm, size_t *bytes)
{
    return room(a, bytes);
}

ANSWER int cusparseSpMV(const struct plim_handle *handle, int form, const void *alpha, const struct descriptor *a,
                        const struct descriptor *x, const void *beta, struct descriptor *y, int type, int algorithm,
                        void *buffer)
{
    return product("cusparseSpMV", handle, a, x, y);
}

/* --- coordinates ------------------------------------------------------------------------------ */

ANSWER int cusparseXcoo2csr(const struct plim_handle *handle, const int *places, int numbers, int rows, int *row_begins,
                            int base)
{
    if (!handle) return NOT_INITIALIZED;
    const void *operands[] = {places, row_begins};
    return plim_math_launch(handle->stream, "cusparseXcoo2csr", operands, 2, 1) ? EXECUTION_FAILED : OK;
}
