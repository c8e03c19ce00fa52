#include "kernel_cost.h"
#include "autotune/base/text.h"
#include "devices/virtual/memory/block.h"
#include "devices/virtual/memory/heap.h"
#include "devices/virtual/record/stream.h"
#include "writes.h"
#include <string.h>

/* --- attention -------------------------------------------------------------------------------- */

static int32_t int_at(const void *parameters, size_t offset)
{
    int32_t value;
    memcpy(&value, (const char *)parameters + offset, sizeof(value));
    return value;
}

/* Offsets of the sizes in a kernel's parameter structure, in bytes. */
struct attention_layout {
    const char *name; /* substring of the mangled name */
    enum plim_cost_kind kind;
    size_t batch; /* 0: the z dimension of the grid */
    size_t heads, key_heads, queries, keys, head;
    size_t causal;     /* efficient attention: offset of custom_mask_type; 0: part of the name */
    size_t group;      /* number of heads that share keys and values; 0: given by `key_heads` */
    size_t row_stride; /* row stride of queries, which distinguishes this layout from others; 0: distinguished by its
                        * heads */
};

/* Flash: Flash_fwd_params in flash.h of FlashAttention 2.5 and later; the backward parameters start with them.
 * Efficient: AttentionKernel::Params and AttentionBackwardKernel::Params in PyTorch's
 * mem_eff_attention/kernel_forward.h and kernel_backward.h (2.5 to 2.13, and 2.15 with grouped heads), launched over
 * blocks, heads and batch. */
static const struct attention_layout layouts[] = {
    {"flash_fwd", PLIM_COST_FLASH, 176, 96, 100, 180, 184, 192, 0, 0, 0},
    {"flash_bwd_dq_dk_dv", PLIM_COST_FLASH_BACKWARD, 176, 96, 100, 180, 184, 192, 0, 0, 0},
    {"fmha_cutlassF", PLIM_COST_EFFICIENT, 0, 196, 196, 104, 108, 96, 116, 0, 0},
    {"fmha_cutlassF", PLIM_COST_EFFICIENT, 0, 204, 204, 104, 108, 96, 116, 208, 0},
    {"fmha_cutlassB", PLIM_COST_EFFICIENT_BACKWARD, 0, 160, 160, 152, 156, 144, 164, 0, 168},
    {"fmha_cutlassB", PLIM_COST_EFFICIENT_BACKWARD, 0, 160, 160, 152, 156, 144, 168, 164, 176},
};

static enum plim_cost_type type_of(const char *name)
{
    if (strstr(name, "bf16") || strstr(name, "bfloat16")) return PLIM_COST_BF16;
    return strstr(name, "f16") || strstr(name, "half") ? PLIM_COST_FP16 : PLIM_COST_FP32;
}

/* Reads the mangled template arguments of flash kernels: traits, ending with an element type, followed by dropout and
 * causal. */
static bool flash_is_causal(const char *name)
{
    const char *traits = strstr(name, "kernel_traits"), *at = traits ? strstr(traits, "_tE") : NULL;
    for (int i = 0; at && i < 2; i++) at = strstr(at + 2, "Lb");
    return at && at[2] == '1';
}

/* True if there are six row strides, starting with that of queries, followed by the factor that gives those of the
 * gradients: 1, or 3 if queries, keys and values are packed. */
static bool has_strides(const struct attention_layout *layout, const void *parameters, int64_t head)
{
    enum { STRIDES = 6 };
    int64_t stride[STRIDES];
    memcpy(stride, (const char *)parameters + layout->row_stride, sizeof(stride));
    char times = *((const char *)parameters + layout->row_stride + sizeof(stride));
    return stride[0] >= head && (times == 1 || times == 3);
}

/* Returns false if the sizes are not valid or the number of heads differs from the grid's: it is another layout. */
static bool attention_cost(const struct attention_layout *layout, const char *name,
                           const struct plim_launch_config *launch, struct plim_cost *out)
{
    const void *parameters = launch->arguments[0];
    const size_t offsets[PLIM_COST_NUMBERS] = {layout->batch, layout->heads, layout->key_heads,
                                               layout->queries, layout->keys, layout->head};
    *out = (struct plim_cost){.kind = (uint8_t)layout->kind, .type = (uint8_t)type_of(name)};
    for (int i = 0; i < PLIM_COST_NUMBERS; i++) {
        out->number[i] = offsets[i] ? int_at(parameters, offsets[i]) : (int64_t)launch->grid.z;
        if (out->number[i] < 1) return false;
    }
    if (!layout->batch && out->number[1] != (int64_t)launch->grid.y) return false;
    if (layout->row_stride && !has_strides(layout, parameters, out->number[5])) return false;
    int32_t group = layout->group ? int_at(parameters, layout->group) : 1;
    if (group < 1 || out->number[2] % group) return false;
    out->number[2] /= group;
    out->causal = layout->causal ? *((const char *)parameters + layout->causal) != 0
                                 : flash_is_causal(name);
    return true;
}

/* --- kernels that access part of a block ------------------------------------------------------ */

enum { PARAMETERS = 5, ROW_BYTES = 32, INDEX_BYTES = 8 }; /* a row takes at least one memory sector */
enum { ROW_OF_EACH = ROW_BYTES / INDEX_BYTES };

/* How often the block that each parameter points to is counted. */
static const struct exception {
    const char *name; /* substring of the mangled name */
    uint8_t times[PARAMETERS];
} exceptions[] = {
    {"CatArrayBatchedCopy", {2}},                                /* result */
    {"vectorized_gather_kernel", {2, 0, 1}},                     /* result, table, indices */
    {"indexSelect", {2, 0, 1}},                                  /* the same */
    {"embedding_backward_feature_kernel", {1, 2, 0}},            /* indices, gradient, gradient of the table */
    {"nll_loss_forward_reduce_cuda_kernel_2d", {1, 1, 0, ROW_OF_EACH}}, /* loss, total, input, target */
    {"nll_loss_backward_reduce_cuda_kernel_2d", {0, 1, ROW_OF_EACH}},   /* gradient of the input, gradient of the loss,
                                                                         * target */
    {"flash_bwd_dot_do_o", {0}},                                 /* part of the time of the backward kernel */
    {"flash_bwd_convert_dq", {0}},
};

static int64_t block_bytes(const void *argument)
{
    uintptr_t at;
    memcpy(&at, argument, sizeof(at));
    return plim_heap_is_device(at) ? (int64_t)plim_block_find(at).bytes : 0;
}

static int64_t exception_bytes(const struct exception *e, const struct plim_kernel *kernel,
                               void *const *arguments)
{
    int64_t bytes = 0;
    for (int i = 0; i < PARAMETERS && i < kernel->signature.parameters; i++)
        if (e->times[i]) bytes += e->times[i] * block_bytes(arguments[i]);
    return bytes;
}

/* --- all other kernels ------------------------------------------------------------------------ */

/* Returns the total size of the blocks to which the arguments point, each counted once. */
static int64_t all_bytes(const struct plim_kernel *kernel, const struct plim_launch_config *launch)
{
    void *const *arguments = launch->arguments;
    uintptr_t at[PLIM_WRITES + 32];
    size_t count = plim_writes_find(kernel, &launch->grid, arguments, at), blocks = 0;
    int64_t bytes = 0;
    const struct plim_signature *signature = &kernel->signature;
    for (int i = 0; i < signature->parameters && i < 32; i++)
        if (signature->read >> i & 1) memcpy(&at[count++], arguments[i], sizeof(at[0]));
    for (size_t i = 0; i < count; i++) {
        struct plim_block block =
            plim_heap_is_device(at[i]) ? plim_block_find(at[i]) : (struct plim_block){0};
        size_t known = 0;
        while (known < blocks && at[known] != block.at) known++;
        if (!block.bytes || known < blocks) continue;
        at[blocks++] = block.at; /* blocks already counted; overwrites addresses already visited */
        bytes += (int64_t)block.bytes;
    }
    return bytes;
}

/* --- reported by plimsoll's module ------------------------------------------------------------ */

static _Thread_local struct {
    char name[512];
    int64_t bytes; /* 0: none */
} reported;

__attribute__((visibility("default"))) void plimsoll_kernel_moves(const char *name, int64_t bytes)
{
    reported.bytes = name && strlen(name) < sizeof(reported.name) ? bytes : 0;
    if (reported.bytes > 0) strcpy(reported.name, name);
}

__attribute__((visibility("default"))) int plimsoll_is_recording(void)
{
    return plim_stream_is_on();
}

static bool is_reported(const struct plim_kernel *kernel, struct plim_cost *out)
{
    if (reported.bytes <= 0 || reported.bytes > PLIM_MOST_BYTES) return false;
    if (strcmp(reported.name, kernel->name) != 0) return false;
    out->number[0] = reported.bytes;
    return true;
}

bool plim_kernel_cost(const struct plim_kernel *kernel, const struct plim_launch_config *launch,
                      struct plim_cost *out)
{
    *out = (struct plim_cost){.kind = PLIM_COST_MOVE};
    if (!kernel || !launch->arguments || is_reported(kernel, out)) return true;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
        if (strstr(kernel->name, layouts[i].name) &&
            attention_cost(&layouts[i], kernel->name, launch, out))
            return true;
    *out = (struct plim_cost){.kind = PLIM_COST_MOVE};
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
        if (strstr(kernel->name, exceptions[i].name)) {
            out->number[0] = exception_bytes(&exceptions[i], kernel, launch->arguments);
            return out->number[0] > 0;
        }
    if (plim_family_cost(kernel->plan, &launch->grid, launch->arguments, out)) return true;
    *out = (struct plim_cost){.kind = PLIM_COST_MOVE};
    out->number[0] = all_bytes(kernel, launch);
    return true;
}
