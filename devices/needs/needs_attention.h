/* Attention: which kernel scaled_dot_product_attention chooses, and what memory each kernel needs.
 *
 * Shapes are (batch, heads, length, head size). The rules are PyTorch 2.11's (native/transformers/cuda/sdp_utils.cpp,
 * attention.cu, attention_backward.cu, flash_attn/flash_api.cpp, mem_eff_attention/kernel_backward.h,
 * native/cudnn/MHA.cpp). FLASH2 is the package flash-attn 2.8 (flash_attn_interface.py, csrc/flash_attn/flash_api.cpp:
 * mha_fwd, mha_bwd, and varlen); its rules were taken from the source, not checked by running it.
 *
 * Checked event by event against PyTorch on the virtual GPU (tests/unit/data/attention_needs.txt) for compute
 * capability 7.5, 8.0, 8.6, 8.9 and 9.0, and for 7.0, 10.0 and 12.0 with their numbers (multiprocessors, shared memory)
 * added to the virtual GPU; others use the rules of their neighbours, unchecked. Values whose head size differs from
 * the keys' are checked for 2.11 only (tests/unit/data/attention_needs_values.txt). A mask that needs a gradient is
 * checked in t5's runs (tests/golden/seq2seq.jsonl). Not covered, because models do not use them: batches over 65535,
 * deterministic mode. */
#ifndef PLIM_DEVICES_NEEDS_ATTENTION_H
#define PLIM_DEVICES_NEEDS_ATTENTION_H

#include "devices/device.h"

struct plim_attention_shape {
    int64_t batch, heads, kv_heads, q_length, k_length, head_size;
    int64_t value_size; /* head size of the values; 0: head_size. FLASH2 requires head_size */
    enum plim_dtype dtype;
    bool has_mask;       /* an additive mask of (batch or 1, heads or 1, q, k), in dtype */
    int64_t mask_batch, mask_heads; /* its leading extents */
    bool mask_trains;    /* the mask needs a gradient; the caller has padded it for the efficient kernel */
    int64_t rows; /* FLASH2: the number of sequences of different lengths, concatenated in a batch of one
                     (flash_attn_varlen_func); 0: not concatenated */
    bool causal, dropout;
    bool training;       /* an operand needs a gradient */
    /* PyTorch 2.15: the efficient kernel supports heads that share keys, and without dropout its random state is on the
     * GPU. */
    bool torch_2_15;
    /* q is in (batch, length, heads, size) order in memory, like views of projections. False: in (batch, heads, length,
     * size) order, as after torch.cat or padding. Flash and cuDNN return their result in the order of q, the efficient
     * kernel always in the first order. */
    bool contiguous_heads;
    /* backward: the gradient of the result is in (batch, heads, length, size) order */
    bool grad_heads_first;
};

/* Returns the kernel that runs. */
enum plim_sdpa plim_sdpa_select(const struct plim_device_info *info,
                                const struct plim_attention_shape *shape);

/* True if the package flash-attn can train this shape on such a GPU. */
bool plim_flash2_fits(const struct plim_device_info *info,
                      const struct plim_attention_shape *shape);

/* Returns the head size on which the kernel works: flash needs a multiple of 8; for other sizes PyTorch pads q, k and v
 * (three operations, in this order), calls the kernel on the padded tensors, and slices the result; the package does
 * the same inside its call. The engine issues these operations; the shape passed to the functions below is the padded
 * one, with contiguous_heads false and grad_heads_first true. */
int64_t plim_sdpa_head_size(enum plim_sdpa kernel, int64_t head_size);

enum plim_attention_role {
    PLIM_NEED_OUT,        /* the result (forward) */
    PLIM_NEED_LSE,        /* log-sum-exp, saved for backward */
    PLIM_NEED_RNG,        /* random state, saved for backward */
    PLIM_NEED_MASK,       /* the mask with padded rows, which is used instead of the given one from then on */
    PLIM_NEED_DQ, PLIM_NEED_DK, PLIM_NEED_DV,
    PLIM_NEED_DMASK,      /* for every head and row, with rows padded to multiples of PLIM_DMASK_UNIT elements */
    PLIM_NEED_TEMPORARY   /* released at the end of the call or earlier; see `release` and `before` */
};

enum { PLIM_DMASK_UNIT = 16 };

/* Returns the number of elements that pad_bias() appends to a row of a mask. */
int64_t plim_mask_padding(int64_t k_length);

/* A block that a kernel allocates, in order. A block that is not saved because nothing needs a gradient becomes a
 * temporary, except the mask, which is released nevertheless. */
struct plim_attention_need {
    int64_t bytes;
    enum plim_attention_role role;
    int release; /* temporaries: order of release within the call, 0 first */
    int before;  /* temporaries: released just before the need with this index is allocated; the
                    number of needs: at the end of the call */
};
enum { PLIM_SDPA_MAX_NEEDS = 16 };

/* List the needs of one call of a fused kernel (not PLIM_SDPA_MATH). Return their number. */
int plim_attention_forward_needs(const struct plim_device_info *info, enum plim_sdpa kernel,
                                 const struct plim_attention_shape *shape,
                                 struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS]);
int plim_attention_backward_needs(const struct plim_device_info *info, enum plim_sdpa kernel,
                                  const struct plim_attention_shape *shape,
                                  struct plim_attention_need needs[PLIM_SDPA_MAX_NEEDS]);

#endif
