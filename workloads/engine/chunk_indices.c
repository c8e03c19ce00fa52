/* prepare_lens(), prepare_chunk_indices() and prepare_chunk_offsets(), with the same allocations. Not all of their
 * values are computed, because kernels here find their chunks from the ends of the documents. */
#include "chunk_indices.h"
#include "ops.h"

/* Returns a new reference to the cached result for `argument`, or NULL. */
static struct tensor *recall(const struct memo *m, const struct tensor *argument)
{
    for (int i = 0; i < m->count; i++)
        if (m->entry[i].argument == argument) return tensor_ref(m->entry[i].result);
    return NULL;
}

/* Caches `result` (named), replacing the oldest entry; returns it. */
static struct tensor *keep(struct engine *e, struct memo *m, struct tensor *argument, struct tensor *result)
{
    enum { ENTRIES = sizeof(m->entry) / sizeof(m->entry[0]) };
    if (e->halted) return result;
    if (m->count == ENTRIES) {
        tensor_drop_all(e, m->entry[0].argument, m->entry[0].result);
        for (int i = 1; i < ENTRIES; i++) m->entry[i - 1] = m->entry[i];
        m->count--;
    }
    m->entry[m->count].argument = tensor_ref(argument);
    m->entry[m->count++].result = tensor_ref(result);
    return result;
}

static struct tensor *empty(struct engine *e, enum plim_dtype dtype, int64_t count)
{
    return tensor_keep(tensor_empty(e, dtype, 1, &count));
}

/* torch.diff(cu_seqlens); named */
static struct tensor *lengths_of(struct engine *e, struct tensor *ends)
{
    struct memo *m = &e->chunks.lengths;
    struct tensor *kept = recall(m, ends);
    if (kept || e->halted) return kept ? kept : e->poison;
    int64_t documents = tensor_elements(ends) - 1;
    struct tensor *behind = op_slice(e, ends, 0, 1, documents), *before = op_slice(e, ends, 0, 0, documents);
    return keep(e, m, ends, tensor_keep(op_sub(e, behind, before)));
}

/* x.cumsum(0), in int64, after a leading zero; named */
static struct tensor *sums_before(struct engine *e, struct tensor *x)
{
    struct tensor *sums = tensor_keep(op_cumsum_last(e, x, PLIM_I64));
    struct tensor *y = tensor_keep(op_pad(e, sums, 0, 1));
    tensor_drop(e, sums);
    return y;
}

/* torch.repeat_interleave(torch.arange(documents), counts): the host reads the total; named. */
static struct tensor *repeat(struct engine *e, struct tensor *counts, int64_t chunks)
{
    int64_t documents = tensor_elements(counts);
    struct tensor *numbers = tensor_keep(op_arange(e, PLIM_I32, documents, 0, 1));
    struct tensor *sums = tensor_keep(op_cumsum_last(e, counts, PLIM_I64));
    struct tensor *is_count = op_compare_scalar(e, PLIM_BINARY_GE, counts, 0);
    struct tensor *are_counts = tensor_keep(op_reduce(e, is_count, 1, false, PLIM_BINARY_AND, 1, PLIM_BOOL));
    engine_item(e, are_counts);
    tensor_drop(e, are_counts);
    engine_item(e, sums);
    struct tensor *indices = empty(e, PLIM_I32, chunks);
    tensor_drop(e, sums);
    struct tensor *y = empty(e, PLIM_I32, chunks);
    tensor_drop_all(e, indices, numbers);
    return y;
}

/* torch.arange(chunks) - starts[documents], which is indexed with int64; named. */
static struct tensor *places_within(struct engine *e, int64_t chunks)
{
    struct tensor *numbers = tensor_keep(op_arange(e, PLIM_I32, chunks, 0, 1)), *index = empty(e, PLIM_I64, chunks),
                  *found = empty(e, PLIM_I64, chunks);
    tensor_drop(e, index);
    struct tensor *y = empty(e, PLIM_I64, chunks);
    tensor_drop_all(e, numbers, found);
    return y;
}

struct tensor *chunk_indices(struct engine *e, struct tensor *ends, int64_t chunks)
{
    struct memo *m = &e->chunks.indices;
    struct tensor *kept = recall(m, ends);
    if (kept || e->halted) return kept ? kept : e->poison;
    struct tensor *lengths = lengths_of(e, ends);
    struct tensor *counts = tensor_keep(op_div_scalar(e, op_add_scalar(e, lengths, CHUNK_TOKENS - 1), CHUNK_TOKENS));
    tensor_drop(e, lengths);
    struct tensor *documents = repeat(e, counts, chunks), *starts = sums_before(e, counts);
    struct tensor *within = places_within(e, chunks);
    tensor_drop(e, starts);
    struct tensor *both = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(chunks, 2)));
    struct tensor *y = tensor_keep(tensor_empty(e, PLIM_I32, SHAPE(chunks, 2)));
    tensor_drop_all(e, both, counts, documents, within);
    return keep(e, m, ends, y);
}

struct tensor *chunk_offsets(struct engine *e, struct tensor *ends)
{
    struct memo *m = &e->chunks.offsets;
    struct tensor *kept = recall(m, ends);
    if (kept || e->halted) return kept ? kept : e->poison;
    struct tensor *lengths = lengths_of(e, ends);
    struct tensor *counts = op_add_scalar(e, op_add_scalar(e, lengths, CHUNK_TOKENS), -1); /* triton.cdiv */
    counts = op_div_scalar(e, counts, CHUNK_TOKENS);
    tensor_drop(e, lengths);
    struct tensor *padded = op_pad(e, counts, 0, 1);
    return keep(e, m, ends, tensor_keep(op_cumsum_last(e, padded, PLIM_I64)));
}
