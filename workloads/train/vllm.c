#include "vllm.h"
#include "workloads/engine/ops.h"
#include "workloads/engine/storage.h"
#include <math.h>
#include <stdlib.h>

enum direction { MERGE, UNMERGE };

/* weight += get_delta_weight(), in place whatever its type, or weight -= get_delta_weight().to(weight.dtype): peft
 * 0.21, LoraLayer in tuners/lora/layer.py */
static void move_by_product(struct engine *e, const struct lora_adapter *a, enum direction direction)
{
    struct tensor *product = tensor_keep(op_matmul(e, a->b, a->a));
    if (a->conv1d) tensor_set(e, &product, op_transpose(e, product, 0, 1)); /* fan_in_fan_out */
    struct tensor *delta = tensor_keep(op_mul_scalar(e, product, a->scaling)), *cast = NULL;
    tensor_drop(e, product);
    if (direction == UNMERGE && !e->halted) cast = tensor_hold(op_to(e, delta, (enum plim_dtype)a->weight->a.dtype));
    if (!e->halted) op_binary_(e, cast ? PLIM_BINARY_SUB : PLIM_BINARY_ADD, a->weight, cast ? cast : delta);
    tensor_drop_all(e, cast, delta);
}

/* merge_adapter(), or unmerge_adapter() */
static void move_by_adapters(struct engine *e, const struct decoder *m, enum direction direction)
{
    for (size_t i = 0; i < m->adapters.count; i++) move_by_product(e, &m->adapters.list[i], direction);
    for (int64_t layer = 0; layer < m->config->layers; layer++)
        for (size_t i = 0; i < m->layers[layer].adapters.count; i++)
            move_by_product(e, &m->layers[layer].adapters.list[i], direction);
}

static bool is_colocated(const struct plim_train_setting *setting)
{
    return setting->grpo.vllm == PLIM_VLLM_COLOCATE;
}

/* Allocates and frees vLLM's memory for a generation, during which it is awake. The memory is not part of PyTorch's
 * allocator (vllm/device_allocator/cumem.py). */
static void wake_up_and_sleep(struct engine *e, int64_t bytes)
{
    uint64_t address;
    if (!bytes || e->halted) return;
    enum plim_status st = plim_device_segment_get(e->device, bytes, &address);
    if (st) storage_out_of_memory(e, st, bytes, PLIM_MEMORY_TEMPORARIES);
    else plim_device_segment_return(e->device, address, bytes);
}

static void load_colocated(struct engine *e, const struct decoder *m)
{
    if (m->setting->grpo.vllm_sleeps) plim_allocator_empty_cache(e->allocator); /* sync_weights() */
    move_by_adapters(e, m, MERGE);
    move_by_adapters(e, m, UNMERGE);
    wake_up_and_sleep(e, m->setting->vllm_awake_bytes);
}

/* True for the main process. Other processes send nothing, but merge and unmerge their adapters, too. */
static bool is_sender(const struct plim_train_setting *setting)
{
    return setting->sharding < PLIM_SHARDING_DDP || setting->rank <= 0;
}

static int64_t bytes_of(const struct tensor *x)
{
    return tensor_elements(x) * plim_dtype_size((enum plim_dtype)x->a.dtype);
}

/* Returns torch.cat() of `count` weights as bytes, named. */
static struct tensor *packed(struct engine *e, struct tensor *const *weights, size_t count, int64_t bytes)
{
    struct tensor *all = tensor_keep(tensor_empty_bytes(e, bytes));
    struct plim_array *parts = calloc(count, sizeof(*parts));
    const struct plim_array **list = calloc(count, sizeof(*list));
    if (!parts || !list) engine_fail(e, PLIM_NOMEM);
    for (size_t i = 0; i < count && !e->halted; i++) {
        parts[i] = (struct plim_array){
            .data = weights[i]->a.data, .shape = {bytes_of(weights[i])}, .stride = {1}, .ndim = 1, .dtype = PLIM_U8};
        list[i] = &parts[i];
    }
    struct plim_op cat = {
        .kind = PLIM_OP_CAT, .n_out = 1, .n_lists = 1, .out = {&all->a}, .lists = {list}, .list_length = count};
    if (!e->halted) engine_launch(e, &cat);
    free(parts);
    free(list);
    return all;
}

void vllm_sync(struct engine *e, const struct decoder *m, bool is_first)
{
    static const int64_t BUFFER = 1 << 30;
    enum { CHUNKS = 2 };
    const struct parameters *p = &m->parameters;
    if (is_colocated(m->setting)) {
        load_colocated(e, m);
        return;
    }
    bool has_adapters = p->frozen_count > 0;
    struct tensor *const *weights = has_adapters ? p->frozen : p->list, *under_way[CHUNKS] = {NULL};
    size_t count = has_adapters ? p->frozen_count : p->count;
    bool sends = is_sender(m->setting);
    for (int times = (has_adapters && is_first) + (has_adapters && !sends); times > 0; times--) {
        move_by_adapters(e, m, MERGE);
        move_by_adapters(e, m, UNMERGE);
    }
    if (!sends) return;
    int turn = 0;
    bool is_over = false; /* the iterator over the parameters is exhausted, and has unmerged the adapters */
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_COMMUNICATION);
    for (size_t i = 0; i < count && !e->halted; turn = 1 - turn) {
        int64_t bytes = 0;
        tensor_drop(e, under_way[turn]);
        e->stream = 1 + turn;
        if (has_adapters && i == 0) move_by_adapters(e, m, MERGE);
        size_t first = i;
        for (; i < count && bytes <= BUFFER; i++) bytes += bytes_of(weights[i]);
        is_over = bytes <= BUFFER;
        if (has_adapters && is_over) move_by_adapters(e, m, UNMERGE);
        under_way[turn] = packed(e, weights + first, i - first, bytes);
        e->stream = 0;
    }
    e->stream = 1 + turn;
    if (has_adapters && !is_over && !e->halted) move_by_adapters(e, m, UNMERGE);
    e->stream = 0;
    tensor_drop_list(e, under_way, CHUNKS);
    engine_set_class(e, before);
}

/* --- ranks ------------------------------------------------------------------------------------ */

void vllm_connect(struct engine *e, const struct plim_train_setting *setting, struct link *link)
{
    if (setting->loop != PLIM_LOOP_TRL_GRPO || setting->grpo.vllm == PLIM_VLLM_NONE) return;
    if (is_colocated(setting)) {
        plim_allocator_empty_cache(e->allocator); /* Worker.init_device() */
    } else if (is_sender(setting)) { /* PyNcclCommunicator: an all-reduce */
        struct tensor *number = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(1)));
        struct tensor *sum = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(1)));
        tensor_drop_all(e, sum, number);
    }
    if (setting->sharding < PLIM_SHARDING_DDP) return;
    link_barrier(e, link); /* wait_for_everyone() */
    tensor_drop(e, tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(1))));
}

/* pickle's protocol 4 (Lib/pickletools.py): an integer has one, two or four bytes after its opcode; a list is created,
 * memoised and filled a thousand items at a time; a message begins with two opcodes, and has one frame per 64 KiB. */
enum { FLOAT_BYTES = 9 };

static int64_t pickled_number(int64_t number)
{
    return number < 1 << 8 ? 2 : number < 1 << 16 ? 3 : 5;
}

static int64_t pickled_list(int64_t items, int64_t item_bytes)
{
    enum { BATCH = 1000 };
    int64_t rest = items % BATCH, marks = 2 * (items / BATCH) + (rest > 1 ? 2 : rest);
    return 2 + items * item_bytes + marks;
}

static int64_t pickled(int64_t bytes)
{
    enum { FRAME = 1 << 16, ENDS = 3, HEAD = 9 };
    return bytes + ENDS + HEAD * (1 + bytes / FRAME);
}

void vllm_exchange(struct engine *e, const struct decoder *m, int64_t rows)
{
    const struct plim_train_setting *s = m->setting;
    int64_t world = plim_setting_ranks(s), all = rows * world, tokens = s->seq - s->prompt;
    if (world < 2 || is_colocated(s)) return;
    int64_t number = pickled_number(m->config->vocab_size - 1), prompt = pickled_list(s->prompt, number);
    int64_t own = pickled(pickled_list(rows, prompt));
    struct tensor *mine = tensor_keep(tensor_empty_bytes(e, own)); /* all_gather_object() */
    struct tensor *size = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(1)));
    struct tensor *sizes = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(world)));
    struct tensor *theirs = tensor_keep(tensor_empty_bytes(e, own * world));
    struct tensor *flat = tensor_keep(tensor_empty_bytes(e, own * world));
    tensor_drop_all(e, flat, mine, size, theirs, sizes);
    int64_t numbers = pickled_list(tokens, number), each = pickled_list(tokens, pickled_list(1, number));
    int64_t chances = pickled_list(tokens, pickled_list(1, FLOAT_BYTES));
    int64_t completions = pickled_list(all, numbers) + pickled_list(all, each) + pickled_list(all, chances);
    enum { TUPLE = 3 };
    int64_t payload = pickled(pickled_list(all / s->grpo.generations, prompt) + completions + TUPLE);
    tensor_drop(e, tensor_keep(tensor_empty_bytes(e, payload))); /* broadcast_object_list() */
}

/* --- vLLM's completions ----------------------------------------------------------------------- */

static struct tensor *draw_tokens(struct engine *e, const struct decoder *m, int64_t rows, int64_t count,
                                  uint64_t seed)
{
    struct tensor *tokens = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows, count)));
    op_random_(e, tokens, (double)m->config->vocab_size, seed);
    return tokens;
}

/* Masks the last token of each micro-step's last completion. This is done on the host: a simulated device takes no
 * time for it. */
static void hide_padding(struct engine *e, const struct plim_train_setting *s, struct tensor *mask)
{
    if (e->halted || e->device->info.simulated || !decoder_hides_padding(s)) return;
    int64_t tokens = s->micro_batch * (s->seq - s->prompt), chunks = tensor_elements(mask) / tokens;
    struct tensor *last = tensor_keep(tensor_alias(e, mask, 1, &chunks, &tokens, tokens - 1));
    op_fill_(e, last, 0);
    tensor_drop(e, last);
}

struct vllm_completions vllm_complete(struct engine *e, const struct decoder *m, int64_t rows)
{
    int64_t prompt = m->setting->prompt, tokens = m->setting->seq - prompt;
    struct vllm_completions out;
    out.prompts = draw_tokens(e, m, rows, prompt, 1);
    out.prompt_mask = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, prompt), 1));
    out.completions = draw_tokens(e, m, rows, tokens, 2);
    out.completion_mask = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, tokens), 1));
    hide_padding(e, m->setting, out.completion_mask);
    out.log_probs = NULL;
    if (m->setting->grpo.vllm != PLIM_VLLM_NONE)
        out.log_probs =
            tensor_keep(op_full(e, PLIM_F32, SHAPE(rows, tokens), -log((double)m->config->vocab_size)));
    return out;
}
