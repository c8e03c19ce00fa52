/* Which kernel scaled_dot_product_attention runs and which memory it needs; see needs_attention.h. */
#include "needs_attention.h"
#include "autotune/base/round.h"
#include <assert.h>

static int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static bool is_half(enum plim_dtype t)
{
    return t == PLIM_BF16 || t == PLIM_F16;
}
static bool is_grouped(const struct plim_attention_shape *s)
{
    return s->kv_heads != s->heads;
}

/* --- the list of needs --------------------------------------------------------------------- */

struct list {
    struct plim_attention_need *needs;
    int count, released;
};

/* PyTorch allocates nothing for an empty tensor: returns -1, which release() ignores. */
static int allocate(struct list *l, int64_t bytes, enum plim_attention_role role)
{
    if (!bytes) return -1;
    assert(l->count < PLIM_SDPA_MAX_NEEDS);
    l->needs[l->count] = (struct plim_attention_need){.bytes = bytes, .role = role};
    return l->count++;
}

static void release(struct list *l, int index)
{
    if (index < 0) return;
    l->needs[index].before = l->count;
    l->needs[index].release = l->released++;
}

/* Saved for backward; if nothing needs a gradient, released at the end of the call. */
static int allocate_saved(struct list *l, const struct plim_attention_shape *s, int64_t bytes,
                          enum plim_attention_role role)
{
    return allocate(l, bytes, s->training ? role : PLIM_NEED_TEMPORARY);
}

static void release_unsaved(struct list *l, int index)
{
    if (index >= 0 && l->needs[index].role == PLIM_NEED_TEMPORARY) release(l, index);
}

/* --- sizes --------------------------------------------------------------------------------- */

static int64_t q_elements(const struct plim_attention_shape *s)
{
    return s->batch * s->heads * s->q_length * s->head_size;
}

static int64_t value_size(const struct plim_attention_shape *s)
{
    return s->value_size ? s->value_size : s->head_size;
}

static int64_t largest_head(const struct plim_attention_shape *s)
{
    return s->head_size > value_size(s) ? s->head_size : value_size(s);
}

/* The heads of deepseek_v3's attention, which are an exception for cuDNN on Blackwell. */
static bool is_latent(const struct plim_attention_shape *s)
{
    return s->head_size == 192 && value_size(s) == 128;
}

static int64_t out_elements(const struct plim_attention_shape *s)
{
    return s->batch * s->heads * s->q_length * value_size(s);
}

/* Elements of keys or values with heads of this size, before they are expanded to the query heads. */
static int64_t kv_elements(const struct plim_attention_shape *s, int64_t size)
{
    return s->batch * s->kv_heads * s->k_length * size;
}

static int64_t expanded_kv_elements(const struct plim_attention_shape *s)
{
    return s->batch * s->heads * s->k_length * s->head_size;
}

static int64_t rows(const struct plim_attention_shape *s)
{
    return s->batch * s->heads * s->q_length;
}

/* True if the two orders of heads and length are different layouts. */
static bool order_matters(const struct plim_attention_shape *s)
{
    return s->heads > 1 && s->q_length > 1;
}

/* A result or gradient, copied from (b, h, s, d) to (b, s, h, d) order. */
static int allocate_copy(struct list *l, const struct plim_attention_shape *s, bool heads_first)
{
    bool needed = heads_first && order_matters(s);
    return allocate(l, needed ? out_elements(s) * plim_dtype_size(s->dtype) : 0, PLIM_NEED_TEMPORARY);
}

static void allocate_gradients(struct list *l, const struct plim_attention_shape *s)
{
    int64_t size = plim_dtype_size(s->dtype);
    allocate(l, q_elements(s) * size, PLIM_NEED_DQ);
    allocate(l, kv_elements(s, s->head_size) * size, PLIM_NEED_DK);
    allocate(l, kv_elements(s, value_size(s)) * size, PLIM_NEED_DV);
}

/* --- choice of the kernel ------------------------------------------------------------------ */

/* True if cuDNN and flash support the GPU and type: they are written for 16-bit tensor cores of 8.0 and later. */
static bool has_fused_half(int cc, enum plim_dtype t)
{
    return is_half(t) && cc >= 80 && cc <= 121;
}

/* The rules of PyTorch 2.15, as returned by _fused_sdp_choice() for each head size. */
static bool fits_cudnn_2_15(const struct plim_attention_shape *s)
{
    if (s->dropout || s->k_length == 1) return false;
    return s->head_size <= 128 || s->head_size == 256 || (s->head_size < 256 && !s->training);
}

static bool fits_cudnn_2_11(int cc, const struct plim_attention_shape *s)
{
    int64_t most = cc == 90 ? 256 : 128;
    if (largest_head(s) > most && !is_latent(s)) return false;
    return s->k_length != 1 && !(s->dropout && s->q_length == 1);
}

/* cuDNN is preferred on Hopper and data-centre Blackwell (check_prefer_cudnn_attention); elsewhere it comes after math,
 * so it is never used. */
static bool fits_cudnn(int cc, const struct plim_attention_shape *s)
{
    if (cc < 90 || cc >= 110 || !has_fused_half(cc, s->dtype) || s->mask_trains) return false;
    if (s->head_size % 8 || value_size(s) % 8) return false;
    return s->torch_2_15 ? fits_cudnn_2_15(s) : fits_cudnn_2_11(cc, s);
}

/* Backward of large heads needs more shared memory than consumer GPUs have. */
static bool fits_flash_backward(int cc, const struct plim_attention_shape *s)
{
    bool small_shared_memory = (cc >= 86 && cc <= 89) || cc >= 120;
    if (!s->training || !small_shared_memory) return true;
    return s->head_size <= 192 || (s->head_size > 224 && !s->dropout);
}

static bool fits_flash(int cc, const struct plim_attention_shape *s)
{
    if (!has_fused_half(cc, s->dtype) || s->has_mask || s->head_size > 256 || value_size(s) != s->head_size)
        return false;
    if (s->causal && s->q_length != s->k_length) return false;
    return fits_flash_backward(cc, s);
}

/* Rows must be aligned to 16 bytes for tensor cores, which support fp32 (as TF32) from 8.0 on. PyTorch 2.11 is not
 * built for GPUs before 7.0. */
static bool fits_efficient(int cc, const struct plim_attention_shape *s)
{
    if (cc < 70 || cc > 121 || (s->dtype == PLIM_BF16 && cc < 80)) return false;
    if (is_grouped(s) && !s->torch_2_15) return false;
    int64_t alignment = is_half(s->dtype) ? 8 : cc >= 80 ? 4 : 1;
    return s->head_size % alignment == 0 && value_size(s) % alignment == 0;
}

bool plim_flash2_fits(const struct plim_device_info *info, const struct plim_attention_shape *s)
{
    int cc = info->compute_capability;
    return has_fused_half(cc, s->dtype) && s->head_size <= 256 && fits_flash_backward(cc, s);
}

enum plim_sdpa plim_sdpa_select(const struct plim_device_info *info,
                                const struct plim_attention_shape *s)
{
    int cc = info->compute_capability;
    if (fits_cudnn(cc, s)) return PLIM_SDPA_CUDNN;
    if (fits_flash(cc, s)) return PLIM_SDPA_FLASH;
    return fits_efficient(cc, s) ? PLIM_SDPA_EFFICIENT : PLIM_SDPA_MATH;
}

int64_t plim_sdpa_head_size(enum plim_sdpa kernel, int64_t head_size)
{
    bool in_eights = kernel == PLIM_SDPA_FLASH || kernel == PLIM_SDPA_FLASH2;
    return in_eights ? plim_round_up(head_size, 8) : head_size;
}

/* --- flash, of PyTorch and of the package flash-attn --------------------------------------- */

static int64_t flash_head_size(int64_t d)
{
    return d <= 128 ? plim_round_up(d, 32) : plim_round_up(d, 64);
}

/* num_splits_heuristic: the smallest number of splits along the keys whose waves of blocks are filled to 85 % of the
 * best filling. `slots` blocks run concurrently. */
static int64_t splits_for(int64_t blocks, int64_t slots, int64_t key_blocks)
{
    if ((float)blocks >= 0.8f * (float)slots) return 1;
    int64_t most = key_blocks < slots ? key_blocks : slots;
    if (most > 128) most = 128;
    float filling[129], best = 0;
    for (int64_t n = 1; n <= most; n++) {
        /* as many key blocks a part as with one part less: nothing gained */
        bool useless = n > 1 && divide_up(key_blocks, n) == divide_up(key_blocks, n - 1);
        float waves = (float)(blocks * n) / (float)slots;
        filling[n] = useless ? 0 : waves / (float)divide_up(blocks * n, slots);
        if (filling[n] > best) best = filling[n];
    }
    for (int64_t n = 1; n <= most; n++)
        if (filling[n] > 0 && filling[n] >= 0.85f * best) return n;
    return 1;
}

/* set_params_splitkv: small problems are split along the keys to fill the GPU. */
static int64_t flash_splits(const struct plim_device_info *info,
                            const struct plim_attention_shape *s)
{
    if (s->dropout || s->rows) return 1;
    int64_t heads = s->heads, length = s->q_length;
    if (length == 1 && is_grouped(s)) { /* the heads of a group become the rows of one head */
        length = s->heads / s->kv_heads;
        heads = s->kv_heads;
    }
    int64_t key_block = s->head_size <= 64 ? 256 : s->head_size <= 128 ? 128 : 64;
    int64_t blocks = s->batch * heads * divide_up(length, 64);
    int64_t slots = 2 * (int64_t)info->multiprocessors;
    return splits_for(blocks, slots, divide_up(s->k_length, key_block));
}

static void flash_forward(const struct plim_device_info *info, enum plim_sdpa kernel,
                          const struct plim_attention_shape *s, struct list *l)
{
    bool in_pytorch = kernel == PLIM_SDPA_FLASH;
    enum { STATE_BYTES = 16, UNUSED_BYTES = 8 };
    int64_t splits = flash_splits(info, s);
    int64_t part_bytes = rows(s) * flash_head_size(s->head_size) * 4;
    allocate(l, q_elements(s) * plim_dtype_size(s->dtype), PLIM_NEED_OUT);
    int lse = allocate_saved(l, s, rows(s) * 4, PLIM_NEED_LSE);
    int part_lse = -1, part_out = -1;
    if (splits > 1) {
        part_lse = allocate(l, splits * rows(s) * 4, PLIM_NEED_TEMPORARY);
        part_out = allocate(l, splits * part_bytes, PLIM_NEED_TEMPORARY);
    }
    /* PyTorch: with dropout the random state is allocated again, after the second block */
    int state = allocate_saved(l, s, STATE_BYTES, PLIM_NEED_RNG);
    int unused = allocate_saved(l, s, in_pytorch ? UNUSED_BYTES : 0, PLIM_NEED_RNG);
    if (s->dropout && in_pytorch) {
        int again = allocate_saved(l, s, STATE_BYTES, PLIM_NEED_RNG);
        l->needs[state].role = PLIM_NEED_TEMPORARY;
        release(l, state);
        state = again;
    }
    release(l, part_lse);
    release(l, part_out);
    release_unsaved(l, lse);
    release_unsaved(l, state);
    release_unsaved(l, unused);
}

/* Gradients of grouped keys and values are computed for every head, then summed over each group. Offsets over 2 GiB
 * split that sum into several launches, which accumulate in an fp32 copy of the result. */
static void sum_groups(const struct plim_attention_shape *s, struct list *l)
{
    int64_t size = plim_dtype_size(s->dtype), bytes = expanded_kv_elements(s) * size;
    int dk = allocate(l, bytes, PLIM_NEED_TEMPORARY);
    int dv = allocate(l, bytes, PLIM_NEED_TEMPORARY);
    for (int sum = 0; sum < 2 && bytes - size >= INT32_MAX; sum++)
        release(l, allocate(l, kv_elements(s, s->head_size) * 4, PLIM_NEED_TEMPORARY));
    release(l, dv);
    release(l, dk);
}

static void flash_backward(enum plim_sdpa kernel, const struct plim_attention_shape *s,
                           struct list *l)
{
    bool in_pytorch = kernel == PLIM_SDPA_FLASH;
    enum { BLOCK = 128 };
    int64_t length = s->rows ? s->q_length + BLOCK * s->rows : plim_round_up(s->q_length, BLOCK);
    int64_t rows_bytes = s->batch * s->heads * length * 4;
    int grad = allocate_copy(l, s, in_pytorch && s->grad_heads_first);
    int out = allocate_copy(l, s, in_pytorch && !s->contiguous_heads);
    allocate_gradients(l, s);
    int row_sums = allocate(l, rows_bytes, PLIM_NEED_TEMPORARY);
    int dq = allocate(l, rows_bytes * flash_head_size(s->head_size), PLIM_NEED_TEMPORARY);
    if (is_grouped(s)) sum_groups(s, l);
    release(l, dq);
    release(l, row_sums);
    release(l, out);
    release(l, grad);
}

/* --- efficient ----------------------------------------------------------------------------- */

/* The kernels read the mask in units of 8 elements; other row lengths are padded (pad_bias). */
enum { MASK_ALIGNMENT = 8 };

int64_t plim_mask_padding(int64_t k_length)
{
    return plim_round_up(k_length, MASK_ALIGNMENT) - k_length;
}

static int64_t padded_mask_bytes(const struct plim_attention_shape *s)
{
    if (!s->has_mask || s->mask_trains || !plim_mask_padding(s->k_length)) return 0;
    int64_t row = s->k_length + plim_mask_padding(s->k_length);
    return s->mask_batch * s->mask_heads * s->q_length * row * plim_dtype_size(s->dtype);
}

static void efficient_forward(const struct plim_attention_shape *s, struct list *l)
{
    enum { REGISTER_HEAD = 128, LSE_ALIGNMENT = 32, STATE_BYTES = 8 };
    int64_t state_bytes = s->torch_2_15 && !s->dropout ? STATE_BYTES : 0;
    int mask = allocate(l, padded_mask_bytes(s), PLIM_NEED_MASK); /* the mask from then on, saved or not */
    int seed = allocate_saved(l, s, state_bytes, PLIM_NEED_RNG);
    int offset = allocate_saved(l, s, state_bytes, PLIM_NEED_RNG);
    allocate(l, out_elements(s) * plim_dtype_size(s->dtype), PLIM_NEED_OUT);
    int64_t lse_bytes = s->batch * s->heads * plim_round_up(s->q_length, LSE_ALIGNMENT) * 4;
    allocate(l, s->training ? lse_bytes : 0, PLIM_NEED_LSE);
    /* larger heads accumulate in memory: in the result itself if that is fp32 */
    if (is_half(s->dtype) && largest_head(s) > REGISTER_HEAD)
        release(l, allocate(l, out_elements(s) * 4, PLIM_NEED_TEMPORARY));
    release_unsaved(l, seed);
    release_unsaved(l, offset);
    if (!s->training) release(l, mask);
}

/* A backward kernel: tiles of `rows` queries by `columns` keys. */
struct tile {
    int min_cc, max_cc;
    bool half, with_dropout;
    int64_t max_head;
    int rows, columns;
    int shared_bytes; /* shared memory that it needs; 0: less than any GPU has */
};

enum { ANY_HEAD = 1 << 16 };

/* dispatch_cutlassB's candidates in order, without those that differ in nothing relevant here. Shared memory was
 * measured by giving the virtual GPU more and more of it; 128 x 128 needs 133632 to 162304 depending on type and
 * dropout, and no GPU is in between. */
static const struct tile tiles[] = {
    {70, 79, false, true, ANY_HEAD, 64, 64, 0},
    {70, 79, true, true, 64, 64, 64, 0},
    {70, 79, true, true, 128, 128, 64, 0},
    {70, 79, true, true, ANY_HEAD, 128, 64, 0},
    {80, 121, false, true, 64, 64, 64, 0},
    {80, 121, false, true, ANY_HEAD, 128, 64, 121344},
    {80, 121, false, true, ANY_HEAD, 64, 64, 0},
    {80, 121, true, true, 64, 64, 64, 0},
    {86, 86, true, false, 96, 128, 64, 91648},
    {89, 89, true, false, 96, 128, 64, 91648},
    {80, 121, true, true, 128, 128, 128, 162304},
    {80, 121, true, true, 128, 64, 64, 0},
    {80, 121, true, true, ANY_HEAD, 128, 64, 0},
};

/* cudaDevAttrMaxSharedMemoryPerBlockOptin */
static int shared_bytes(int cc)
{
    if (cc >= 120 || cc == 86 || cc == 89) return 101376;
    if (cc >= 90) return 232448;
    return cc >= 80 ? 166912 : cc >= 75 ? 65536 : 98304;
}

static const struct tile *tile_for(int cc, const struct plim_attention_shape *s)
{
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const struct tile *t = &tiles[i];
        if (cc < t->min_cc || cc > t->max_cc || t->half != is_half(s->dtype)) continue;
        if (s->dropout && !t->with_dropout) continue;
        if (largest_head(s) <= t->max_head && t->shared_bytes <= shared_bytes(cc)) return t;
    }
    return NULL;
}

/* True if dK and dV of a tile stay in registers until they are written; otherwise they are accumulated in memory in
 * fp32. */
static bool keeps_in_registers(const struct tile *t)
{
    return t->half && t->max_head <= t->rows;
}

/* Returns the number of blocks that share a head's keys. Each has its own dK and dV if those are in memory. */
static int64_t key_splits(const struct tile *t, const struct plim_attention_shape *s)
{
    int64_t heads = s->batch * s->heads, splits = divide_up(s->k_length, t->columns);
    if (heads >= 256 && s->k_length <= 2 * t->columns) splits = 1;
    int64_t affordable = 200 / heads;
    if (splits > affordable) splits = affordable;
    return splits < 1 ? 1 : splits;
}

/* Params::workspace_size: dQ as fp32 tiles, each preceded by a lock and a counter; dK and dV if they are in memory.
 * fp32 kernels write dK and dV in place. */
static int64_t efficient_workspace_bytes(const struct tile *t, const struct plim_attention_shape *s)
{
    enum { LOCK_WORDS = 4, WORD_BYTES = 4 };
    int64_t tiles_of_dq = divide_up(s->q_length, t->rows) * divide_up(s->head_size, t->columns);
    int64_t words = tiles_of_dq * (LOCK_WORDS + (int64_t)t->rows * t->columns);
    if (t->half && !keeps_in_registers(t))
        words += key_splits(t, s) * t->columns *
                 (plim_round_up(s->head_size, t->rows) + plim_round_up(value_size(s), t->rows));
    return s->batch * s->heads * plim_round_up(words, 4) * WORD_BYTES;
}

/* Row sums of gradient times result by ATen's kernels, (b, s, h) transposed to (b, h, s). */
static int composed_row_sums(const struct plim_attention_shape *s, struct list *l)
{
    int64_t product_bytes = out_elements(s) * 4, cast_bytes = is_half(s->dtype) ? product_bytes : 0;
    int cast[2];
    for (int i = 0; i < 2; i++) cast[i] = allocate(l, cast_bytes, PLIM_NEED_TEMPORARY);
    int product = allocate(l, product_bytes, PLIM_NEED_TEMPORARY);
    int sums = allocate(l, rows(s) * 4, PLIM_NEED_TEMPORARY);
    int turned = order_matters(s) ? allocate(l, rows(s) * 4, PLIM_NEED_TEMPORARY) : -1;
    if (turned >= 0) release(l, sums);
    release(l, product);
    release(l, cast[1]);
    release(l, cast[0]);
    return turned >= 0 ? turned : sums;
}

static void efficient_backward(int cc, const struct plim_attention_shape *s, struct list *l)
{
    const struct tile *t = tile_for(cc, s);
    assert(t);
    int grad = allocate_copy(l, s, s->grad_heads_first);
    allocate_gradients(l, s);
    int64_t mask_bytes = rows(s) * plim_round_up(s->k_length, PLIM_DMASK_UNIT) * plim_dtype_size(s->dtype);
    allocate(l, s->mask_trains ? mask_bytes : 0, PLIM_NEED_DMASK);
    /* for every head, if heads share keys: they are summed later */
    int64_t each_bytes = is_grouped(s) ? expanded_kv_elements(s) * plim_dtype_size(s->dtype) : 0;
    int each_dk = allocate(l, each_bytes, PLIM_NEED_TEMPORARY), each_dv = allocate(l, each_bytes, PLIM_NEED_TEMPORARY);
    bool by_kernel = t->half && (keeps_in_registers(t) || cc >= 75);
    int row_sums = by_kernel ? allocate(l, rows(s) * 4, PLIM_NEED_TEMPORARY) : composed_row_sums(s, l);
    int workspace = allocate(l, efficient_workspace_bytes(t, s), PLIM_NEED_TEMPORARY);
    release(l, row_sums);
    release(l, workspace);
    release(l, each_dv);
    release(l, each_dk);
    release(l, grad);
}

/* --- cuDNN --------------------------------------------------------------------------------- */

/* The formulas for the workspaces of cuDNN 9.19 (PyTorch 2.11) and 9.26 (2.15) were fitted to 2600 and 1950 calls, and
 * reproduce all of them exactly. */

/* Blackwell stores one bit per score for dropout, in tiles of 128 x 128. */
static int64_t cudnn_dropout_bytes(const struct plim_attention_shape *s)
{
    return s->batch * s->heads * plim_round_up(s->q_length, 128) * plim_round_up(s->k_length, 128) / 8;
}

enum { CUDNN_HEADER_BYTES = 128 }; /* scalars of the graph; Hopper has two such blocks */

static int64_t cudnn_forward_workspace_bytes(int cc, const struct plim_attention_shape *s)
{
    if (s->q_length == 1) return 0; /* a decoding kernel */
    if (cc == 90) return 2 * CUDNN_HEADER_BYTES;
    return s->dropout ? cudnn_dropout_bytes(s) + CUDNN_HEADER_BYTES : 0;
}

/* 9.26 on Blackwell: heads of 256 need no dQ; if heads share keys, dK and dV for every head are also stored in fp32. */
static int64_t cudnn_large_backward_bytes(const struct plim_attention_shape *s)
{
    int64_t elements = expanded_kv_elements(s);
    if (!is_grouped(s)) return rows(s) * 4;
    return rows(s) * 4 + 2 * elements * (plim_dtype_size(s->dtype) + 4) + CUDNN_HEADER_BYTES;
}

/* dQ in fp32, the row sums, and dK and dV for every head if heads share keys. */
static int64_t cudnn_backward_workspace_bytes(int cc, const struct plim_attention_shape *s)
{
    int64_t bytes = (q_elements(s) + rows(s)) * 4;
    int64_t expanded_bytes = expanded_kv_elements(s) * plim_dtype_size(s->dtype);
    if (cc != 90 && s->head_size > 128 && !is_latent(s)) return cudnn_large_backward_bytes(s);
    if (is_grouped(s)) bytes += 2 * plim_round_up(expanded_bytes, 128);
    if (cc == 90) return bytes + 2 * CUDNN_HEADER_BYTES;
    bool by_queries = s->q_length <= 128 && (s->has_mask || !s->torch_2_15);
    bool is_short = s->q_length > 1 && !is_latent(s) && (by_queries || s->k_length <= 128);
    if (s->dropout)
        bytes += cudnn_dropout_bytes(s);
    else if (is_short)
        bytes += s->batch * s->heads * plim_round_up(s->q_length, 8) * s->head_size * 4;
    return s->dropout || is_short || is_grouped(s) ? bytes + CUDNN_HEADER_BYTES : bytes;
}

static void cudnn_forward(int cc, const struct plim_attention_shape *s, struct list *l)
{
    enum { STATE_BYTES = 8 };
    int seed = allocate_saved(l, s, STATE_BYTES, PLIM_NEED_RNG);
    int offset = allocate_saved(l, s, STATE_BYTES, PLIM_NEED_RNG);
    allocate(l, out_elements(s) * plim_dtype_size(s->dtype), PLIM_NEED_OUT);
    allocate(l, s->training ? rows(s) * 4 : 0, PLIM_NEED_LSE);
    release(l, allocate(l, cudnn_forward_workspace_bytes(cc, s), PLIM_NEED_TEMPORARY));
    release_unsaved(l, seed);
    release_unsaved(l, offset);
}

static void cudnn_backward(int cc, const struct plim_attention_shape *s, struct list *l)
{
    allocate_gradients(l, s);
    release(l, allocate(l, cudnn_backward_workspace_bytes(cc, s), PLIM_NEED_TEMPORARY));
}

/* --- entries ------------------------------------------------------------------------------- */

int plim_attention_forward_needs(const struct plim_device_info *info, enum plim_sdpa kernel,
                                 const struct plim_attention_shape *s,
                                 struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS])
{
    struct list l = {needs, 0, 0};
    if (kernel == PLIM_SDPA_FLASH || kernel == PLIM_SDPA_FLASH2)
        flash_forward(info, kernel, s, &l);
    if (kernel == PLIM_SDPA_EFFICIENT) efficient_forward(s, &l);
    if (kernel == PLIM_SDPA_CUDNN) cudnn_forward(info->compute_capability, s, &l);
    return l.count;
}

int plim_attention_backward_needs(const struct plim_device_info *info, enum plim_sdpa kernel,
                                  const struct plim_attention_shape *s,
                                  struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS])
{
    struct list l = {needs, 0, 0};
    if (kernel == PLIM_SDPA_FLASH || kernel == PLIM_SDPA_FLASH2) flash_backward(kernel, s, &l);
    if (kernel == PLIM_SDPA_EFFICIENT) efficient_backward(info->compute_capability, s, &l);
    if (kernel == PLIM_SDPA_CUDNN) cudnn_backward(info->compute_capability, s, &l);
    return l.count;
}
