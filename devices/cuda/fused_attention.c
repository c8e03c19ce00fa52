/* Attention by cuDNN; see fused_attention.h. */
#include "fused_attention.h"
#include "fused_graph.h"
#include "placement.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Everything that a plan depends on. Compared as bytes: padding is zero. */
struct key {
    struct plim_fused_problem problem;
    int64_t scratch_bytes[PLIM_OP_MAX_SCRATCH];
};

/* Reasons why no engine runs a key. */
enum refusal { NO_ENGINE, NO_ROOM, REFUSALS };
static const char *const refusal_texts[REFUSALS] = {
    [NO_ENGINE] = "no engine for it", [NO_ROOM] = "too little scratch memory for its engines"};

struct entry {
    struct key key;
    cudnnBackendDescriptor_t plan; /* NULL: no engine runs it, see `refusal` */
    enum refusal refusal;
    int64_t workspace_bytes;
    int id[PLIM_FUSED_TENSORS];
};

enum { ENTRIES = 128 };

struct plim_fused {
    const struct plim_lib_host *host;
    struct plim_dnn dnn;
    cudnnHandle_t handle;
    int count, oldest; /* when it is full, the oldest entry is replaced */
    struct entry entries[ENTRIES];
};

/* --- statuses --------------------------------------------------------------------------------- */

/* Codes are 1000 times a category plus a detail. */
static enum plim_status classify(const struct plim_fused *f, cudnnStatus_t status)
{
    enum { BAD_PARAM = 2000, NOT_SUPPORTED = 3000 };
    if (status == CUDNN_STATUS_SUCCESS) return PLIM_OK;
    if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
        status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
        return PLIM_OOM;
    if (CUDNN_STATUS_CATEGORY(status) == BAD_PARAM) return PLIM_INTERNAL;
    if (CUDNN_STATUS_CATEGORY(status) == NOT_SUPPORTED) return PLIM_UNSUPPORTED;
    enum plim_status view = f->host->driver_view(f->host->user);
    return view ? view : PLIM_INTERNAL;
}

static enum plim_status failed(const struct plim_fused *f, cudnnStatus_t status, const char *doing,
                               struct plim_error *err)
{
    enum plim_status st = classify(f, status);
    return st ? plim_fail(err, st, "cuDNN: %s: %s", doing, f->dnn.cudnnGetErrorString(status)) : st;
}

/* --- open, close ------------------------------------------------------------------------------ */

enum plim_status plim_fused_open(const struct plim_lib_host *host, struct plim_fused **out,
                                 struct plim_error *err)
{
    enum plim_status st;
    struct plim_fused *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) return plim_fail(err, PLIM_NOMEM, "no memory for cuDNN's plans");
    f->host = host;
    PLIM_TRY(plim_dnn_load(&f->dnn, err));
    PLIM_TRY(failed(f, f->dnn.cudnnCreate(&f->handle), "create", err));
    PLIM_TRY(failed(f, f->dnn.cudnnSetStream(f->handle, host->stream), "stream", err));
    *out = f;
    return PLIM_OK;
out:
    plim_fused_close(f);
    return st;
}

static void entry_finish(const struct plim_fused *f, struct entry *e)
{
    if (e->plan) f->dnn.cudnnBackendDestroyDescriptor(e->plan);
    e->plan = NULL;
}

void plim_fused_close(struct plim_fused *f)
{
    if (!f) return;
    for (int i = 0; i < f->count; i++) entry_finish(f, &f->entries[i]);
    if (f->handle)
        f->dnn.cudnnDestroy(f->handle);
    else
        plim_dnn_unload(&f->dnn);
    free(f);
}

/* --- the operation's tensors ------------------------------------------------------------------ */

/* A tensor and its index among an operation's outputs or inputs. */
struct place {
    enum plim_fused_tensor tensor;
    bool is_output;
    int index;
};

static const struct place forward_places[] = {
    {PLIM_FUSED_Q, false, 0},
    {PLIM_FUSED_K, false, 1},
    {PLIM_FUSED_V, false, 2},
    {PLIM_FUSED_O, true, 0},
};
static const struct place backward_places[] = {
    {PLIM_FUSED_DO, false, 0}, {PLIM_FUSED_Q, false, 1}, {PLIM_FUSED_K, false, 2},
    {PLIM_FUSED_V, false, 3},  {PLIM_FUSED_O, false, 4}, {PLIM_FUSED_DQ, true, 0},
    {PLIM_FUSED_DK, true, 1},  {PLIM_FUSED_DV, true, 2},
};
enum { FORWARD_MASK = 3, BACKWARD_MASK = 6, BACKWARD_LOGSUMEXP = 5, FORWARD_LOGSUMEXP = 1 };

/* An operation and its tensors. */
struct call {
    const struct plim_op *op;
    struct key key;
    uint64_t address[PLIM_FUSED_TENSORS];
};

/* The stride of a dimension of extent 1 is irrelevant, but engines check it nevertheless. */
static void set_unit_strides(struct plim_dnn_shape *s)
{
    int64_t span = 1;
    for (int i = 0; i < PLIM_DNN_DIMS; i++)
        if (s->extent[i] != 1 && s->extent[i] * s->stride[i] > span)
            span = s->extent[i] * s->stride[i];
    for (int i = 0; i < PLIM_DNN_DIMS - 1; i++)
        if (s->extent[i] == 1) s->stride[i] = span;
}

enum { ALIGNMENT = 16 }; /* alignment that the graph promises for every address */

static const char *read_tensor(struct call *c, enum plim_fused_tensor which,
                               const struct plim_array *a, uint8_t dtype)
{
    struct plim_dnn_shape *s = &c->key.problem.shape[which];
    if (a->ndim != PLIM_DNN_DIMS) return "operands of other than 4 dimensions";
    if (a->dtype != dtype) return "operands of several types";
    if (a->stride[3] != 1 || a->data % ALIGNMENT) return "rows that are strided or not aligned";
    for (int i = 0; i < PLIM_DNN_DIMS; i++) {
        s->extent[i] = a->shape[i];
        s->stride[i] = a->stride[i];
        if (a->shape[i] < 1) return "empty operands";
        if (a->shape[i] > 1 && a->stride[i] < 1) return "operands that repeat themselves";
    }
    set_unit_strides(s);
    c->address[which] = a->data;
    return NULL;
}

/* The mask's dimensions are aligned at the last one; if it is broadcast, its extent becomes 1. */
static const char *read_mask(struct call *c, const struct plim_array *a, uint8_t dtype)
{
    struct plim_dnn_shape *s = &c->key.problem.shape[PLIM_FUSED_BIAS];
    if (a->dtype != dtype) return "a mask of another type";
    if (a->ndim > PLIM_DNN_DIMS || a->data % ALIGNMENT) return "a mask that is not aligned";
    for (int i = 0; i < PLIM_DNN_DIMS; i++) {
        int from = i - (PLIM_DNN_DIMS - a->ndim);
        bool repeats = from < 0 || a->shape[from] == 1 || a->stride[from] == 0;
        s->extent[i] = repeats ? 1 : a->shape[from];
        s->stride[i] = repeats ? 1 : a->stride[from];
    }
    if (s->extent[3] == 1 || s->stride[3] != 1) return "a mask without rows";
    set_unit_strides(s);
    c->key.problem.has_bias = 1;
    c->address[PLIM_FUSED_BIAS] = a->data;
    return NULL;
}

static const char *check_heads(const struct plim_fused_problem *p)
{
    enum { MULTIPLE = 8, LARGEST = 256 };
    const int64_t *q = p->shape[PLIM_FUSED_Q].extent, *k = p->shape[PLIM_FUSED_K].extent;
    const int64_t *v = p->shape[PLIM_FUSED_V].extent;
    if (q[3] % MULTIPLE || q[3] > LARGEST || k[3] != q[3] || v[3] != q[3])
        return "a head size that is not a multiple of 8 up to 256";
    return k[1] != v[1] || k[2] != v[2] || q[1] % k[1] ? "heads that do not share evenly" : NULL;
}

/* Returns NULL, or why the call is not supported. A mask in addition to `causal` has the same effect and is omitted:
 * causal engines do half the work. */
static const char *read_call(struct call *c, const struct plim_op *op)
{
    memset(c, 0, sizeof *c);
    c->op = op;
    struct plim_fused_problem *p = &c->key.problem;
    bool backward = op->kind == PLIM_OP_ATTENTION_BACKWARD;
    const struct place *places = backward ? backward_places : forward_places;
    int count = backward ? sizeof backward_places / sizeof *backward_places
                         : sizeof forward_places / sizeof *forward_places;
    int mask = backward ? BACKWARD_MASK : FORWARD_MASK;
    uint8_t dtype = op->in[0]->dtype;
    if (dtype != PLIM_BF16 && dtype != PLIM_F16) return "a type other than bf16 and fp16";
    if (op->alpha != 0 && op->sdpa != PLIM_SDPA_CUDNN)
        return "dropout where PyTorch takes another kernel";
    if (op->alpha >= 1) return "dropout of everything";
    if (backward && plim_attention_mask_gradient(op)) return "a gradient of the mask";
    if (op->window || op->softcap > 0 || plim_attention_ends(op)) return "a window, softcapping or documents";
    const char *refusal = NULL;
    for (int i = 0; i < count && !refusal; i++) {
        const struct place *at = &places[i];
        refusal = read_tensor(c, at->tensor, at->is_output ? op->out[at->index] : op->in[at->index],
                              dtype);
    }
    if (!refusal) refusal = check_heads(p);
    if (!refusal && op->n_in > mask && op->in[mask] && !op->causal)
        refusal = read_mask(c, op->in[mask], dtype);
    const struct plim_array *lse = backward                        ? op->in[BACKWARD_LOGSUMEXP]
                                   : op->n_out > FORWARD_LOGSUMEXP ? op->out[FORWARD_LOGSUMEXP]
                                                                   : NULL;
    p->type = dtype == PLIM_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    p->backward = backward;
    p->causal = op->causal;
    p->has_logsumexp = lse != NULL;
    p->dropped = op->alpha;
    c->address[PLIM_FUSED_LOGSUMEXP] = lse ? lse->data : 0;
    for (int i = 0; i < op->n_scratch; i++)
        c->key.scratch_bytes[i] = plim_array_bytes(op->scratch[i]);
    return refusal;
}

/* Up to 9.15.0 keys beyond the last whole tile of 128 were not masked in backward. With dropout, forward has to use the
 * same kernel as backward: each generates its own random numbers. */
static bool is_wrong_there(const struct plim_fused *f, const struct plim_fused_problem *p)
{
    return f->dnn.library.version <= 91500 && (p->backward || p->dropped > 0) &&
           p->shape[PLIM_FUSED_K].extent[2] % 128 != 0;
}

/* --- memory ----------------------------------------------------------------------------------- */

enum { WORKSPACE, DQ_SUMS, ROW_SUMS, PIECES };

static bool find_room(const struct call *c, int64_t workspace_bytes,
                      struct plim_piece pieces[PIECES])
{
    enum { WORKSPACE_ALIGNMENT = 256 };
    const int64_t *q = c->key.problem.shape[PLIM_FUSED_Q].extent;
    int64_t row_bytes = q[0] * q[1] * q[2] * (int64_t)sizeof(float);
    bool backward = c->key.problem.backward;
    pieces[WORKSPACE] = (struct plim_piece){workspace_bytes, WORKSPACE_ALIGNMENT, 0};
    pieces[DQ_SUMS] = (struct plim_piece){backward ? row_bytes * q[3] : 0, ALIGNMENT, 0};
    pieces[ROW_SUMS] = (struct plim_piece){backward ? row_bytes : 0, ALIGNMENT, 0};
    return plim_place(c->op, pieces, PIECES);
}

/* --- plans ------------------------------------------------------------------------------------ */

static bool is_refusal(cudnnStatus_t status)
{
    return CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED;
}

/* Chooses the best engine that has enough room and compiles. Whatever the failure of one, the next may compile; if none
 * does, the first failure that is not a refusal is returned. */
static cudnnStatus_t choose_engine(const struct call *c, struct entry *e,
                                   const struct plim_dnn_configs *configs)
{
    struct plim_piece pieces[PIECES];
    cudnnStatus_t failure = CUDNN_STATUS_SUCCESS;
    e->refusal = configs->count ? NO_ROOM : NO_ENGINE;
    for (int i = 0; i < configs->count; i++) {
        if (!find_room(c, configs->workspace_bytes[i], pieces)) continue;
        cudnnStatus_t st = plim_dnn_plan_open(configs, i, &e->plan, &e->workspace_bytes);
        if (!st) return CUDNN_STATUS_SUCCESS;
        if (!failure && !is_refusal(st)) failure = st;
    }
    return failure;
}

static cudnnStatus_t make_plan(const struct plim_fused *f, const struct call *c, struct entry *e)
{
    struct plim_dnn_graph graph;
    struct plim_dnn_configs configs = {.dnn = &f->dnn};
    cudnnStatus_t st = plim_fused_graph(&graph, &f->dnn, f->handle, &c->key.problem, e->id);
    if (!st) st = plim_dnn_configs_open(&graph, NULL, &configs);
    if (!st) st = choose_engine(c, e, &configs);
    plim_dnn_configs_close(&configs);
    plim_dnn_graph_close(&graph);
    if (!is_refusal(st)) return st;
    e->refusal = NO_ENGINE;
    return CUDNN_STATUS_SUCCESS;
}

/* --- plans of other processes ----------------------------------------------------------------- */

/* Followed by the plan's text; without text no engine runs the key. */
struct kept_plan {
    int64_t workspace_bytes;
    int32_t refusal, id[PLIM_FUSED_TENSORS];
};

static struct plim_memo_question question_of(const struct plim_fused *f, const struct call *c)
{
    return (struct plim_memo_question){.kind = "attention",
                                       .version = f->dnn.library.version,
                                       .shape = &c->key,
                                       .shape_bytes = sizeof c->key};
}

static bool restore_plan(const struct plim_fused *f, const struct plim_memo_answer *answer,
                         struct entry *e)
{
    struct kept_plan kept;
    if (answer->size < sizeof kept) return false;
    memcpy(&kept, answer->bytes, sizeof kept);
    if (kept.refusal < 0 || kept.refusal >= REFUSALS) return false;
    e->refusal = (enum refusal)kept.refusal;
    for (int i = 0; i < PLIM_FUSED_TENSORS; i++) e->id[i] = kept.id[i];
    if (answer->size == sizeof kept) return true;
    return !plim_dnn_plan_read(&f->dnn, f->handle, NULL, (const char *)answer->bytes + sizeof kept,
                               answer->size - sizeof kept, &e->plan, &e->workspace_bytes) &&
           e->workspace_bytes == kept.workspace_bytes;
}

static bool recall(const struct plim_fused *f, const struct call *c, struct entry *e)
{
    const struct plim_memo_question question = question_of(f, c);
    struct plim_memo_answer answer;
    if (!plim_memo_find(f->host->memo, &question, &answer)) return false;
    bool taken = restore_plan(f, &answer, e);
    if (!taken) entry_finish(f, e);
    plim_memo_release(f->host->memo, &answer);
    return taken;
}

static void store_plan(const struct plim_fused *f, const struct call *c, const struct entry *e)
{
    const struct plim_memo_question question = question_of(f, c);
    struct kept_plan kept = {.workspace_bytes = e->workspace_bytes, .refusal = (int32_t)e->refusal};
    size_t bytes = 0;
    char *text = e->plan ? plim_dnn_plan_write(&f->dnn, e->plan, &bytes) : NULL;
    unsigned char *value = malloc(sizeof kept + bytes);
    for (int i = 0; i < PLIM_FUSED_TENSORS; i++) kept.id[i] = e->id[i];
    if (value && !text == !e->plan) {
        memcpy(value, &kept, sizeof kept);
        if (text) memcpy(value + sizeof kept, text, bytes);
        plim_memo_store(f->host->memo, &question, value, sizeof kept + bytes);
    }
    free(value);
    free(text);
}

/* --- the table -------------------------------------------------------------------------------- */

static enum plim_status find_entry(struct plim_fused *f, const struct call *c, struct entry **out,
                                   struct plim_error *err)
{
    for (int i = 0; i < f->count; i++) {
        *out = &f->entries[i];
        if (memcmp(&(*out)->key, &c->key, sizeof c->key) == 0) return PLIM_OK;
    }
    struct entry e;
    memset(&e, 0, sizeof e);
    memcpy(&e.key, &c->key, sizeof e.key);
    if (!recall(f, c, &e)) {
        enum plim_status st = failed(f, make_plan(f, c, &e), "plan", err);
        if (st) {
            entry_finish(f, &e);
            return st;
        }
        if (f->host->memo) store_plan(f, c, &e);
    }
    int at = f->count < ENTRIES ? f->count++ : f->oldest++ % ENTRIES;
    entry_finish(f, &f->entries[at]);
    f->entries[at] = e;
    *out = &f->entries[at];
    return PLIM_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

static enum plim_status run(const struct plim_fused *f, struct call *c, const struct entry *e,
                            struct plim_error *err)
{
    struct plim_piece pieces[PIECES];
    if (!find_room(c, e->workspace_bytes, pieces))
        return plim_fail(err, PLIM_UNSUPPORTED, "attention by cuDNN: scratch that is not aligned");
    c->address[PLIM_FUSED_DQ_SUMS] = pieces[DQ_SUMS].address;
    c->address[PLIM_FUSED_ROW_SUMS] = pieces[ROW_SUMS].address;
    double dropped = c->op->alpha;
    float number[] = {[PLIM_FUSED_SCALE] = (float)c->op->beta,
                      [PLIM_FUSED_MINUS_INFINITY] = -INFINITY,
                      [PLIM_FUSED_KEEP] = (float)(1 - dropped),
                      [PLIM_FUSED_KEEP_INVERSE] = (float)(1 / (1 - dropped))};
    int64_t integer[PLIM_FUSED_TENSORS] = {[PLIM_FUSED_SEED] = (int64_t)c->op->seed};
    int ids[PLIM_FUSED_TENSORS], count = 0;
    void *address[PLIM_FUSED_TENSORS];
    for (int i = 0; i < PLIM_FUSED_TENSORS; i++) {
        if (e->id[i] < 0) continue;
        ids[count] = e->id[i];
        address[count++] = i >= PLIM_FUSED_SEED    ? (void *)&integer[i]
                           : i >= PLIM_FUSED_SCALE ? (void *)&number[i]
                                                   : (void *)(uintptr_t)c->address[i];
    }
    cudnnStatus_t status = plim_dnn_execute(&f->dnn, f->handle, e->plan, count, ids, address,
                                            (void *)(uintptr_t)pieces[WORKSPACE].address);
    return failed(f, status, "attention", err);
}

enum plim_status plim_fused_attention(struct plim_fused *f, const struct plim_op *op,
                                      struct plim_error *err)
{
    struct call c;
    const char *refusal = read_call(&c, op);
    if (!refusal && is_wrong_there(f, &c.key.problem))
        refusal = "a shape that this version gets wrong";
    struct entry *e = NULL;
    if (!refusal) {
        enum plim_status st = find_entry(f, &c, &e, err);
        if (st) return st;
        if (!e->plan) refusal = refusal_texts[e->refusal];
    }
    return refusal ? plim_fail(err, PLIM_UNSUPPORTED, "attention by cuDNN: %s", refusal)
                   : run(f, &c, e, err);
}
