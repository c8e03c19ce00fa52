/* The memory that libraries and composed kernels need. */
#include "needs.h"
#include <math.h>

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- cuBLAS ----------------------------------------------------------------------------------- */

int64_t plim_cublas_workspace_bytes(const struct plim_device_info *info, bool torch_2_15)
{
    int generation = info->compute_capability / 10;
    bool is_large = torch_2_15 ? generation >= 9 : generation == 9;
    return is_large ? INT64_C(32) << 20 : 2 * (INT64_C(4096) << 10) + 8 * (INT64_C(16) << 10);
}

int64_t plim_cublaslt_workspace_bytes(const struct plim_device_info *info)
{
    (void)info;
    return INT64_C(1) << 20;
}

/* --- temporary storage of CUB ----------------------------------------------------------------- */

enum {
    INDEX_BYTES = 8,        /* the indices are int64, and so are CUB's offsets */
    KEY_4_BYTES = 4,
    CUB_ALIGNMENT = 256,
    RADIX_BITS = 8, RADIX_DIGITS = 1 << RADIX_BITS, /* of a pass */
    KEY_BITS = 64,
    LOOKBACK_BYTES = 4, COUNTER_BYTES = 4,
    TILE_STATE_PADDING = 32,
    SCAN_TILE = 128 * 7, SCAN_TILE_4_BYTES = 128 * 15
};

/* Items per block, by the GPU for which the kernels were compiled: the newest that is not newer than the GPU. */
static const struct cub_tiles {
    int from_compute_capability, sort, sort_4_bytes, unique, unique_2_15, select; /* unique_2_15: of PyTorch 2.15 */
} cub_tiles[] = {
    {100, 384 * 12, 384 * 14, 384 * 10, 448 * 11, 320 * 22}, {90, 384 * 12, 384 * 14, 640 * 7, 448 * 11, 384 * 22},
    {86, 384 * 10, 384 * 8, 64 * 5, 64 * 5, 128 * 10},       {80, 384 * 10, 384 * 8, 256 * 7, 192 * 7, 384 * 12},
    {0, 256 * 11, 256 * 11, 64 * 5, 64 * 5, 128 * 10},
};

static const struct cub_tiles *cub_tiles_of(const struct plim_device_info *info)
{
    const struct cub_tiles *t = cub_tiles;
    while (t->from_compute_capability > info->compute_capability) t++;
    return t;
}

static int64_t cub_aligned(int64_t bytes)
{
    return ceil_div(bytes, CUB_ALIGNMENT) * CUB_ALIGNMENT;
}

/* get_num_bits() */
static int bits_of(int64_t n)
{
    int bits = 1;
    for (; n > 1; n >>= 1) bits++;
    return bits;
}

/* Sorting keys of `key_bytes` bytes (8 or 4) with indices by the lowest `bits` of the key, into other arrays. */
static int64_t sort_bytes(const struct plim_device_info *info, int64_t items, int64_t key_bytes, int bits)
{
    int64_t passes = ceil_div(bits, RADIX_BITS),
            tile = key_bytes == KEY_4_BYTES ? cub_tiles_of(info)->sort_4_bytes : cub_tiles_of(info)->sort;
    int64_t portion = ((1 << 28) - 1) / tile * tile, portions = ceil_div(items, portion);
    int64_t bins = portions * passes * RADIX_DIGITS * INDEX_BYTES;
    int64_t lookback = ceil_div(smaller(items, portion), tile) * RADIX_DIGITS * LOOKBACK_BYTES;
    int64_t counters = portions * passes * COUNTER_BYTES;
    int64_t between = passes > 1 ? cub_aligned(items * key_bytes) + cub_aligned(items * INDEX_BYTES) : 0;
    return cub_aligned(bins) + cub_aligned(lookback) + between + cub_aligned(counters) +
           CUB_ALIGNMENT - 1;
}

/* A scan in one pass over the data: for each tile a state, as wide as two items, and one unused block. */
static int64_t scan_bytes(int64_t items, int64_t tile, enum plim_dtype dtype)
{
    int64_t states = (ceil_div(items, tile) + TILE_STATE_PADDING) * 2 * plim_dtype_size(dtype);
    return cub_aligned(states) + CUB_ALIGNMENT + CUB_ALIGNMENT - 1;
}

int64_t plim_cumsum_temporary_bytes(enum plim_dtype dtype, int64_t rows, int64_t length)
{
    if (rows != 1) return 0;
    return scan_bytes(length, plim_dtype_size(dtype) == 4 ? SCAN_TILE_4_BYTES : SCAN_TILE, dtype);
}

/* --- embedding -------------------------------------------------------------------------------- */

enum { UNSORTED_TOKENS = 3072, ROWS_PER_PARTIAL = 10 };

/* True if there are many partial sums but so few segments that their blocks do not fill the GPU: then partial sums are
 * added to the result directly, in fp32, and not stored. */
static bool adds_partials(const struct plim_device_info *info, int64_t segments, int64_t partials, int64_t width)
{
    enum { WARP = 32, MOST_THREADS = 1024, BLOCKS_PER_MULTIPROCESSOR = 4 };
    int64_t threads = ceil_div(width, WARP) * WARP;
    int64_t blocks = ceil_div(segments * threads, smaller(threads, MOST_THREADS));
    return blocks < (int64_t)info->multiprocessors * BLOCKS_PER_MULTIPROCESSOR && partials > 4 * blocks;
}

/* Equal indices form a segment, which is summed in partial sums of ten rows, in fp32. Their number is known only on the
 * device, so memory is allocated for the maximum. */
static int sorted_embedding_needs(const struct plim_device_info *info, enum plim_dtype dtype,
                                  int64_t tokens, int64_t rows, int64_t width, bool torch_2_15,
                                  struct plim_need *needs)
{
    enum { RANGE_END = 4, UNIQUE_END = 9, SCAN_END = 12, END = PLIM_EMBEDDING_MAX_NEEDS };
    const struct cub_tiles *tiles = cub_tiles_of(info);
    int key_bits = torch_2_15 ? bits_of(rows) : KEY_BITS;
    int64_t unique = torch_2_15 ? tiles->unique_2_15 : tiles->unique;
    int64_t index_bytes = tokens * INDEX_BYTES;
    int64_t segments = smaller(tokens, rows), partials = tokens / ROWS_PER_PARTIAL + segments;
    int64_t fp32 = plim_dtype_size(PLIM_F32);
    bool adds = adds_partials(info, segments, partials, width);
    const struct plim_need all[END] = {
        {index_bytes, false, END},                                         /* sorted */
        {index_bytes, false, END},                                         /* their original positions */
        {index_bytes, false, RANGE_END},                                   /* 0 1 2 ... */
        {sort_bytes(info, tokens, INDEX_BYTES, key_bits), false, RANGE_END},
        {rows * width * plim_dtype_size(dtype), true, END},
        {index_bytes, false, END},                                         /* starts of segments */
        {INDEX_BYTES, false, END},                                         /* their number */
        {index_bytes, false, UNIQUE_END},                                  /* their indices */
        {scan_bytes(tokens, unique, PLIM_I64), false, UNIQUE_END},
        {segments * INDEX_BYTES, false, END},                              /* number of partial sums of each */
        {segments * INDEX_BYTES, false, END},                              /* exclusive sums of these */
        {scan_bytes(segments, SCAN_TILE, PLIM_I64), false, SCAN_END},
        {INDEX_BYTES, false, END},                                         /* total number of partial sums */
        {partials * INDEX_BYTES, false, END},                              /* their starts */
        {adds ? partials * INDEX_BYTES : partials * width * fp32, false, END}, /* segments of partials; or their sums */
        {rows * width * fp32, false, END},                                 /* the result in fp32, if it is not fp32 */
    };
    int count = adds && plim_dtype_size(dtype) < fp32 ? END : END - 1;
    for (int i = 0; i < count; i++) {
        needs[i] = all[i];
        if (needs[i].before == END) needs[i].before = count;
    }
    return count;
}

int plim_embedding_backward_needs(const struct plim_device_info *info, enum plim_dtype dtype,
                                  int64_t tokens, int64_t rows, int64_t width, bool torch_2_15,
                                  struct plim_need needs[PLIM_EMBEDDING_MAX_NEEDS])
{
    if (tokens > UNSORTED_TOKENS)
        return sorted_embedding_needs(info, dtype, tokens, rows, width, torch_2_15, needs);
    needs[0] = (struct plim_need){rows * width * plim_dtype_size(dtype), true, 1};
    return 1;
}

/* --- rows by index ---------------------------------------------------------------------------- */

int plim_sort_needs(const struct plim_device_info *info, enum plim_dtype dtype, int64_t items,
                    struct plim_need needs[PLIM_SORT_MAX_NEEDS])
{
    enum { IN_ONE_BLOCK = 4096 };
    int count = items > IN_ONE_BLOCK ? 2 : 1;
    needs[0] = (struct plim_need){items * INDEX_BYTES, false, count};
    int64_t key_bytes = plim_dtype_size(dtype);
    needs[1] = (struct plim_need){sort_bytes(info, items, key_bytes, (int)(8 * key_bytes)), false, count};
    return count;
}

/* A sum: of one tile in a single block; of more in five times as many blocks as are resident, each with a partial
 * sum. */
static int64_t sum_bytes(const struct plim_device_info *info, int64_t items)
{
    enum { THREADS = 256, TILE = THREADS * 16, SUBSCRIPTION = 5, SUM_BYTES = 4 };
    if (items <= TILE) return 1;
    int64_t blocks = (int64_t)info->multiprocessors * (info->threads_per_multiprocessor / THREADS) * SUBSCRIPTION;
    return cub_aligned(blocks * SUM_BYTES) + CUB_ALIGNMENT - 1;
}

void plim_nonzero_needs(const struct plim_device_info *info, int64_t items, int64_t found, int dims,
                        struct plim_need needs[PLIM_NONZERO_NEEDS])
{
    enum { COUNT_BYTES = 4, STATE_BYTES = 16, SUM = 1, PLACES = PLIM_NONZERO_PLACES, SELECTION, NEVER = -1 };
    int64_t states = ceil_div(items, cub_tiles_of(info)->select) + TILE_STATE_PADDING;
    int64_t selection_bytes = cub_aligned(states * STATE_BYTES) + CUB_ALIGNMENT - 1;
    needs[0] = (struct plim_need){COUNT_BYTES, false, PLIM_NONZERO_NEEDS};
    needs[SUM] = (struct plim_need){sum_bytes(info, items), false, PLACES};
    needs[PLACES] = (struct plim_need){dims * found * INDEX_BYTES, true, NEVER};
    needs[SELECTION] = (struct plim_need){selection_bytes, false, PLIM_NONZERO_NEEDS};
}

void plim_index_add_needs(const struct plim_device_info *info, int64_t items, int64_t rows,
                          struct plim_need needs[PLIM_INDEX_ADD_NEEDS])
{
    enum { IN_ONE_TILE = 256 * 9, END = PLIM_INDEX_ADD_NEEDS };
    for (int i = 0; i < END; i++) needs[i] = (struct plim_need){items * INDEX_BYTES, false, END};
    needs[0].before = 2; /* unsorted */
    needs[END - 1].bytes = items > IN_ONE_TILE ? sort_bytes(info, items, INDEX_BYTES, bits_of(rows - 1)) : 1;
}

void plim_masked_scatter_needs(int64_t items, struct plim_need needs[PLIM_MASKED_SCATTER_NEEDS])
{
    needs[0] = (struct plim_need){items * INDEX_BYTES, false, PLIM_MASKED_SCATTER_NEEDS};
    needs[1] = (struct plim_need){scan_bytes(items, SCAN_TILE, PLIM_I64), false, PLIM_MASKED_SCATTER_NEEDS};
}

int plim_grouped_matmul_needs(const struct plim_device_info *info, enum plim_dtype dtype,
                              int64_t groups, struct plim_need needs[PLIM_GROUPED_MATMUL_NEEDS])
{
    enum { ALIGNMENT = 16, SIZES_BYTES = 3 * 4, STRIDES_BYTES = 3 * 8, WORKSPACE_BYTES = 512 };
    int generation = info->compute_capability / 10;
    if (dtype != PLIM_BF16 || (generation != 9 && generation != 10)) return 0;
    int64_t addresses = ceil_div(groups * 8, ALIGNMENT) * ALIGNMENT;
    needs[0] = (struct plim_need){
        3 * addresses + groups * (SIZES_BYTES + STRIDES_BYTES), false, PLIM_GROUPED_MATMUL_NEEDS};
    needs[1] = (struct plim_need){(int64_t)info->multiprocessors * WORKSPACE_BYTES, false,
                                  PLIM_GROUPED_MATMUL_NEEDS};
    return PLIM_GROUPED_MATMUL_NEEDS;
}

/* --- triangular systems ----------------------------------------------------------------------- */

int64_t plim_triangular_list_bytes(const struct plim_array *a)
{
    enum { FEW = 8, LARGE = 64, ADDRESS_BYTES = 8 };
    int64_t n = a->shape[a->ndim - 1], matrices = n > 0 ? plim_array_elements(a) / (n * n) : 0;
    return matrices <= FEW && n >= LARGE ? 0 : matrices * ADDRESS_BYTES;
}

/* --- patches of images ------------------------------------------------------------------------ */

int64_t plim_patches_workspace_bytes(const struct plim_device_info *info,
                                     const struct plim_array *images,
                                     const struct plim_array *weight,
                                     const struct plim_array *result)
{
    enum { CHANNEL_BYTES = 16, OTHERWISE = 1280 };
    int cc = info->compute_capability;
    bool converts = cc == 80 || (images->dtype == PLIM_BF16 && cc >= 80) ||
                    (images->dtype == PLIM_F16 && cc >= 90);
    int64_t size = plim_dtype_size((enum plim_dtype)images->dtype),
            padded = ceil_div(images->shape[1] * size, CHANNEL_BYTES) * CHANNEL_BYTES;
    if (images->ndim == 5 && images->dtype == PLIM_F32) padded = images->shape[1] * size;
    if (!converts) return images->dtype == PLIM_F32 ? 0 : OTHERWISE;
    int64_t pixels = (plim_array_elements(images) + plim_array_elements(weight)) / images->shape[1];
    bool is_turned = plim_array_elements(result) > result->shape[0] * result->shape[1]; /* one pixel: same layout */
    return pixels * padded + (is_turned ? plim_array_elements(result) * size : 0) + CHANNEL_BYTES;
}

/* --- convolutions along rows ------------------------------------------------------------------ */

int64_t plim_conv1d_workspace_bytes(const struct plim_device_info *info, bool is_forward, const struct plim_array *x,
                                    const struct plim_array *weight, const struct plim_array *result)
{
    enum { TENSOR_CORES = 75, TF32 = 80, ALIGNMENT = 16 };
    bool is_wide = x->dtype == PLIM_F32;
    if (info->compute_capability < (is_wide ? TF32 : TENSOR_CORES)) return 0;
    int64_t elements = plim_array_elements(x) + plim_array_elements(weight);
    if (!is_wide || !is_forward) elements += plim_array_elements(result); /* TF32's kernels keep its layout */
    return elements * plim_dtype_size((enum plim_dtype)x->dtype) + ALIGNMENT;
}

/* --- layer norm ------------------------------------------------------------------------------- */

int64_t plim_layer_norm_partial_rows(const struct plim_device_info *info, int64_t rows,
                                     int64_t width)
{
    enum { MANY_ROWS = 64 << 10, BLOCK_ROWS = 32, BLOCK_COLUMNS = 32, MAX_BLOCKS = 32 << 10 };
    if (rows <= MANY_ROWS || width / BLOCK_COLUMNS >= info->multiprocessors / 2) return 0;
    return smaller(ceil_div(rows, BLOCK_ROWS), MAX_BLOCKS / ceil_div(width, BLOCK_COLUMNS));
}

/* --- packing and unpacking of many tensors ------------------------------------------------------ */

enum { PACK_BLOCK_THREADS = 128, PACK_TILE_BYTES = 16 * PACK_BLOCK_THREADS };

static int64_t tiles(size_t count, const int64_t *chunks, int64_t tile_bytes)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += (chunks[i] + tile_bytes - 1) / tile_bytes;
    return sum;
}

int64_t plim_split_copy_table_bytes(const struct plim_device_info *info, size_t count,
                                    const int64_t *chunks, int64_t ranks)
{
    int64_t most = (int64_t)info->multiprocessors * info->threads_per_multiprocessor /
                   PACK_BLOCK_THREADS * 2;
    int64_t blocks = tiles(count, chunks, PACK_TILE_BYTES) * ranks;
    int64_t factor = most > 0 ? (blocks + most - 1) / most : 1;
    int64_t chunks_a_block = (int64_t)ceil(sqrt((double)factor));
    if (chunks_a_block > ranks) chunks_a_block = ranks;
    if (chunks_a_block < 1) chunks_a_block = 1;
    int64_t rounds = (factor + chunks_a_block - 1) / chunks_a_block;
    if (rounds < 1) rounds = 1;
    int64_t entries = tiles(count, chunks, PACK_TILE_BYTES * rounds);
    /* targets, sources, sizes; the tensor of each block; sums of blocks, from 0 on */
    return 8 * (4 * (int64_t)count + 1 + entries);
}

int64_t plim_chunk_cat_table_bytes(size_t count, const int64_t *chunks)
{
    /* sources, sizes, padded sizes, blocks; sums of bytes and of blocks; the tensor of each block */
    return 8 * (6 * (int64_t)count + 2 + tiles(count, chunks, PACK_TILE_BYTES));
}
