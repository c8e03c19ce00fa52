/* cuSPARSE: its generic interface, products of a sparse matrix with a dense matrix or vector, and the conversion of
 * coordinates to rows. Buffer sizes are those that cuSPARSE 12.6 reported on an H200 for four matrices of 300 to
 * 200,000 numbers in fp32 with 32-bit indices (tests/gpu/measured/h200-libraries.jsonl); for others they are
 * estimates. */
#include "math_library.h"
#include <stdlib.h>
#include <string.h>

/* Unused parameters keep their names so that signatures are readable. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* A matrix, a vector or a legacy descriptor. */
struct descriptor {
    const void *data[3]; /* row indices, column indices, values; of a dense one only values */
    size_t arrays;
    int64_t rows, columns, numbers;
};

static const struct {
    const char *name, *text;
} statuses[] = {{"CUSPARSE_STATUS_SUCCESS", "success"},
                {"CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"},
                {"CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
                {"CUSPARSE_STATUS_INVALID_VALUE", "invalid argument"},
                {"CUSPARSE_STATUS_ARCH_MISMATCH", "not possible on this GPU"},
                {"CUSPARSE_STATUS_MAPPING_ERROR", "device memory cannot be used"},
                {"CUSPARSE_STATUS_EXECUTION_FAILED", "execution failed"},
                {"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
                {"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "type of matrix not supported"},
                {"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
                {"CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"},
                {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "too few resources"},
                {"unrecognized error code", "unknown error"}};
enum { UNKNOWN_STATUS = sizeof(statuses) / sizeof(statuses[0]) - 1 };

static int known_status(int status) { return status >= 0 && status < UNKNOWN_STATUS ? status : UNKNOWN_STATUS; }

ANSWER const char *cusparseGetErrorString(int status) { return statuses[known_status(status)].text; }
ANSWER const char *cusparseGetErrorName(int status) { return statuses[known_status(status)].name; }

/* --- handles ---------------------------------------------------------------------------------- */

PLIM_MATH_HANDLE(cusparse, "cuSPARSE's buffers are estimates")
PLIM_MATH_PROPERTY(cusparse)
ANSWER int cusparseGetVersion(struct plim_handle *handle, int *version) { return cusparse_version(version); }

ANSWER int cusparseSetPointerMode(struct plim_handle *handle, int mode)
{
    return handle ? MATH_OK : MATH_NOT_INITIALIZED;
}

/* --- descriptors ------------------------------------------------------------------------------ */

static int describe(struct descriptor **out, struct descriptor descriptor)
{
    if (!out) return MATH_INVALID_VALUE;
    *out = malloc(sizeof(**out));
    if (!*out) return MATH_ALLOC_FAILED;
    **out = descriptor;
    return MATH_OK;
}

/* `types`: index types, one each for rows and columns, or a single one for coordinates. */
#define SPARSE(name, types)                                                                        \
    ANSWER int name(struct descriptor **out, int64_t rows, int64_t columns, int64_t numbers,       \
                    const void *row_places, const void *column_places, const void *values, types,  \
                    int base, int type)                                                            \
    {                                                                                              \
        return describe(out, (struct descriptor){{row_places, column_places, values}, 3, rows,     \
                                                 columns, numbers});                               \
    }
#define OF_ROWS int row_type, int column_type
#define OF_COORDINATES int index_type
#define MATRIX(name)                                                                               \
    ANSWER int name(struct descriptor **out, int64_t rows, int64_t columns, int64_t leading,       \
                    const void *values, int type, int order)                                       \
    {                                                                                              \
        return describe(out, (struct descriptor){                                                  \
                                 .data = {values}, .arrays = 1, .rows = rows, .columns = columns,  \
                                 .numbers = rows * columns});                                      \
    }
#define VECTOR(name)                                                                               \
    ANSWER int name(struct descriptor **out, int64_t size, const void *values, int type)           \
    {                                                                                              \
        return describe(out, (struct descriptor){                                                  \
                                 .data = {values}, .arrays = 1, .rows = size, .columns = 1,        \
                                 .numbers = size});                                                \
    }
#define GONE(name)                                                                                 \
    ANSWER int name(struct descriptor *descriptor)                                                 \
    {                                                                                              \
        free(descriptor);                                                                          \
        return MATH_OK;                                                                                 \
    }
#define SET(name, parameters)                                                                      \
    ANSWER int name parameters { return descriptor ? MATH_OK : MATH_INVALID_VALUE; }

SPARSE(cusparseCreateCsr, OF_ROWS)
SPARSE(cusparseCreateConstCsr, OF_ROWS)
SPARSE(cusparseCreateCsc, OF_ROWS)
SPARSE(cusparseCreateConstCsc, OF_ROWS)
SPARSE(cusparseCreateCoo, OF_COORDINATES)
SPARSE(cusparseCreateConstCoo, OF_COORDINATES)
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
    if (!descriptor) return MATH_INVALID_VALUE;
    descriptor->data[0] = rows;
    descriptor->data[1] = columns;
    descriptor->data[2] = values;
    return MATH_OK;
}

/* --- sparse products -------------------------------------------------------------------------- */

static int product(const char *name, const struct plim_handle *handle, const struct descriptor *a,
                   const struct descriptor *b, const struct descriptor *c)
{
    const void *operands[9];
    size_t count = 0;
    if (!handle) return MATH_NOT_INITIALIZED;
    if (!a || !b || !c) return MATH_INVALID_VALUE;
    const struct descriptor *all[] = {a, b, c};
    for (size_t d = 0; d < 3; d++)
        for (size_t i = 0; i < all[d]->arrays; i++) operands[count++] = all[d]->data[i];
    return plim_math_launch(handle->stream, name, operands, count, 1) ? MATH_EXECUTION_FAILED : MATH_OK;
}

enum buffer { FOR_MATRIX, FOR_VECTOR, FOR_SAMPLES };

static size_t parts(int64_t numbers, int64_t of) { return (size_t)((numbers + of - 1) / of); }

/* CUSPARSE_SPMM_CSR_ALG2, which PyTorch uses for CSR matrices; for coordinates it converts them to CSR and uses
 * ALG1. */
enum { BY_PARTS = 6 };

static int room(const struct descriptor *sparse, enum buffer buffer, int algorithm, size_t *bytes)
{
    enum { ALIGNMENT = 15, OF_VECTOR = 3072, OF_MATRIX = 256, OF_PART = 24 };
    if (!sparse || !bytes) return MATH_INVALID_VALUE;
    int64_t numbers = sparse->numbers;
    if (buffer == FOR_SAMPLES || numbers <= 0) *bytes = 1;
    else if (buffer == FOR_VECTOR) *bytes = ALIGNMENT + 8 * parts(numbers, OF_VECTOR);
    else if (algorithm == BY_PARTS) *bytes = ALIGNMENT + 8 * (parts(numbers, OF_PART) - 1);
    else *bytes = ALIGNMENT + (numbers > 2 * OF_MATRIX ? 4 * (parts(numbers, OF_MATRIX) - 2) : 0);
    return MATH_OK;
}

/* C = A B, where one of the three is sparse. */
#define PRODUCT(name, sparse, buffer_for)                                                          \
    ANSWER int name##_bufferSize(const struct plim_handle *handle, int a_form, int b_form,         \
                                 const void *alpha, const struct descriptor *a,                    \
                                 const struct descriptor *b, const void *beta,                     \
                                 struct descriptor *c, int type, int algorithm, size_t *bytes)     \
    {                                                                                              \
        return room(sparse, buffer_for, algorithm, bytes);                                         \
    }                                                                                              \
    ANSWER int name##_preprocess(const struct plim_handle *handle, int a_form, int b_form,         \
                                 const void *alpha, const struct descriptor *a,                    \
                                 const struct descriptor *b, const void *beta,                     \
                                 struct descriptor *c, int type, int algorithm, void *buffer)      \
    {                                                                                              \
        return handle ? MATH_OK : MATH_NOT_INITIALIZED;                                                      \
    }                                                                                              \
    ANSWER int name(const struct plim_handle *handle, int a_form, int b_form, const void *alpha,   \
                    const struct descriptor *a, const struct descriptor *b, const void *beta,      \
                    struct descriptor *c, int type, int algorithm, void *buffer)                   \
    {                                                                                              \
        return product(#name, handle, a, b, c);                                                    \
    }

PRODUCT(cusparseSpMM, a, FOR_MATRIX)
PRODUCT(cusparseSDDMM, c, FOR_SAMPLES)

ANSWER int cusparseSpMV_bufferSize(const struct plim_handle *handle, int form, const void *alpha,
                                   const struct descriptor *a, const struct descriptor *x, const void *beta,
                                   struct descriptor *y, int type, int algorithm, size_t *bytes)
{
    return room(a, FOR_VECTOR, algorithm, bytes);
}

ANSWER int cusparseSpMV(const struct plim_handle *handle, int form, const void *alpha, const struct descriptor *a,
                        const struct descriptor *x, const void *beta, struct descriptor *y, int type, int algorithm,
                        void *buffer)
{
    return product("cusparseSpMV", handle, a, x, y);
}

/* --- conversion of coordinates ---------------------------------------------------------------- */

ANSWER int cusparseXcoo2csr(const struct plim_handle *handle, const int *places, int numbers, int rows, int *row_begins,
                            int base)
{
    if (!handle) return MATH_NOT_INITIALIZED;
    const void *operands[] = {places, row_begins};
    return plim_math_launch(handle->stream, "cusparseXcoo2csr", operands, 2, 1) ? MATH_EXECUTION_FAILED : MATH_OK;
}
