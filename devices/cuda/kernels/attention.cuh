/* What all attention kernels share: where the rows of a head lie, which scores there are, which of
 * them dropout keeps, and which tile is the block's. */
#ifndef PLIM_DEVICES_CUDA_KERNELS_ATTENTION_CUH
#define PLIM_DEVICES_CUDA_KERNELS_ATTENTION_CUH

#include "args_attention.h"
#include "vector.cuh"

/* --- rows of one head ------------------------------------------------------------------------- */

struct head_view {
    uint64_t data;
    int64_t step, column_step;
    int64_t rows;
    int size;
    uint32_t dtype;
    bool vectors;
};

__device__ inline head_view view_of(const plim_cuda_heads &a, int64_t batch, int head, int64_t rows,
                                    int size)
{
    int64_t offset = batch * a.step[0] + head * a.step[1];
    return {a.data + (uint64_t)offset * bytes_of(a.dtype),
            a.step[2],
            a.step[3],
            rows,
            size,
            a.dtype,
            a.vectors != 0};
}

__device__ inline float element(const head_view &x, int64_t row, int column)
{
    if (row >= x.rows || column >= x.size) return 0;
    return load_float(x.data, x.dtype, row * x.step + column * x.column_step);
}

/* --- scores ----------------------------------------------------------------------------------- */

/* One head of one batch: where the rows of its scores begin. */
struct score_view {
    head_view mask;
    int64_t head; /* counted over batch and heads */
};

__device__ inline score_view scores_of(const plim_attention_args &args, int64_t batch, int head)
{
    return {view_of(args.mask, batch, head, args.q_length, (int)args.k_length),
            batch * args.heads + head};
}

/* Which of a word's bytes are up to the limit: a bit each. Two bytes at a time: what is above carries into the byte
 * that was left free above it. */
__device__ inline uint32_t kept_of_word(uint32_t word, int limit)
{
    const uint32_t apart = 0x00ff00ffu, above = (uint32_t)(255 - limit) * 0x00010001u;
    uint32_t even = (word & apart) + above, odd = (word >> 8 & apart) + above;
    uint32_t dropped = (even >> 8 & 0x00010001u) | (odd >> 7 & 0x00020002u);
    return ~(dropped | dropped >> 14) & 15;
}

/* Which of PLIM_DROPOUT_KEYS keys of a row, from the multiple `key` of so many on, dropout keeps: a bit each. */
__device__ inline uint32_t kept_of_keys(const plim_attention_args &args, int64_t row, int64_t key)
{
    uint32_t words[4], kept = 0;
    plim_philox(args.seed, plim_dropout_block(row, args.k_length, key), words);
    PLIM_UNROLL
    for (int i = 0; i < 4; i++) kept |= kept_of_word(words[i], args.dropout_limit) << 4 * i;
    return kept;
}

/* --- what sees what --------------------------------------------------------------------------- */

/* Rows from `first` on, before `end`. Those that neighbours see begin and end no earlier than their own. */
struct span {
    int first, end;
};

/* The document that has this row, by bisection. */
__device__ inline span document_of(const plim_attention_args &args, int row)
{
    const int *ends = (const int *)args.ends;
    int low = 0, high = args.documents;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (ends[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return {ends[low], ends[low + 1]};
}

/* Of so many rows those of this one's document, and within the window on either side of it */
__device__ inline span around(const plim_attention_args &args, int row, int64_t length)
{
    span s = {0, (int)length};
    if (args.ends) s = document_of(args, row);
    if (args.window && row - args.window >= s.first) s.first = row - args.window + 1;
    if (args.window && s.end - row > args.window) s.end = row + args.window;
    return s;
}

/* The keys that a query sees; none behind the last query. */
__device__ inline span keys_of(const plim_attention_args &args, int64_t query)
{
    if (query >= args.q_length) return {INT32_MAX, 0};
    span s = around(args, (int)query, args.k_length);
    if (args.causal && s.end > (int)query) s.end = (int)query + 1;
    return s;
}

/* The queries that see a key; none behind the last key. */
__device__ inline span queries_of(const plim_attention_args &args, int64_t key)
{
    if (key >= args.k_length) return {INT32_MAX, 0};
    span s = around(args, (int)key, args.q_length);
    if (args.causal && s.first < (int)key) s.first = (int)key;
    return s;
}

/* What the rows of a tile see, whose first and last rows see `first` and `last`, from a multiple of `step` on. */
__device__ inline span joined(const span &first, const span &last, int step)
{
    return {first.first / step * step, last.end};
}

/* --- tiles ------------------------------------------------------------------------------------ */

/* The block's tile of so many rows of a head. */
struct block_place {
    int64_t batch, row;
    int head;
};

/* blockIdx.x counts tiles within heads within batches. The last tiles of a head come first: with a causal mask those of
 * the queries are the longest. */
__device__ inline block_place place_of_block(int64_t length, int heads, int rows)
{
    int64_t tiles = (length + rows - 1) / rows, head = blockIdx.x / tiles;
    return {head / heads, (tiles - 1 - blockIdx.x % tiles) * rows, (int)(head % heads)};
}

/* blockIdx.x counts all heads of all batches within tiles: of keys the first are the longest with a causal mask, and
 * heads that share them make few and long blocks, of which none should begin last. */
__device__ inline block_place longest_keys_first(int64_t length, int heads, int rows)
{
    uint32_t all = gridDim.x / (uint32_t)((length + rows - 1) / rows), head = blockIdx.x % all;
    return {head / (uint32_t)heads, (int64_t)(blockIdx.x / all) * rows, (int)(head % (uint32_t)heads)};
}

/* What `rows` queries from `row` on see of the keys, in whole tiles of `step` but the last. */
__device__ inline span keys_of_tile(const plim_attention_args &args, int64_t row, int rows, int step)
{
    int64_t last = row + rows < args.q_length ? row + rows : args.q_length;
    return joined(keys_of(args, row), keys_of(args, last - 1), step);
}

/* The same of keys and the queries that see them. */
__device__ inline span queries_of_tile(const plim_attention_args &args, int64_t row, int rows, int step)
{
    int64_t last = row + rows < args.k_length ? row + rows : args.k_length;
    return joined(queries_of(args, row), queries_of(args, last - 1), step);
}

#endif
