#include "generation.h"
#include "workloads/engine/ops.h"
#include <math.h>

/* Variables of generate() and of _sample(), named. */
struct generation {
    struct tensor *prompts, *mask, *ends,
        *padding; /* the prompts, (N, P) int64; the tokens that end completions; the token appended to ended rows */
    struct tensor *first_positions;            /* of the prompts, (N, P) int64 */
    struct tensor *ids, *all_mask, *positions; /* of all tokens so far, (N, tokens) int64 */
    struct tensor *unfinished;                 /* (N) int64 */
    struct batch given;                        /* model_inputs: arguments of the last forward */
    struct tensor *logits, *scores, *chances, *drawn; /* (N, vocabulary) fp32 twice, (N) int64 */
    struct decoder_cache cache;
    double temperature;
};

static int64_t rows_of(const struct generation *g)
{
    return tensor_size(g->prompts, 0);
}

/* _prepare_position_ids_for_generation() */
static struct tensor *positions_of(struct engine *e, struct tensor *mask)
{
    struct tensor *positions = tensor_keep(op_add_scalar(e, op_cumsum_last(e, mask, PLIM_I64), -1));
    struct tensor *is_hidden = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, mask, 0));
    struct tensor *filled = tensor_keep(op_masked_fill(e, positions, is_hidden, 0));
    tensor_drop_all(e, is_hidden, positions);
    return filled;
}

static void begin(struct engine *e, const struct decoder *m, int64_t rows, struct generation *g)
{
    enum { ENDS = 1 };
    int64_t tokens = m->setting->prompt;
    g->prompts = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows, tokens)));
    g->mask = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, tokens), 1));
    op_random_(e, g->prompts, (double)m->config->vocab_size, 1);
    g->ends = tensor_keep(op_full(e, PLIM_I64, SHAPE(ENDS), 0));
    g->padding = tensor_keep(op_full(e, PLIM_I64, 0, NULL, 0));
    if (e->halted) return;
    g->first_positions = positions_of(e, g->mask);
    g->unfinished = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows), 1));
    g->ids = tensor_ref(g->prompts);
    g->all_mask = tensor_ref(g->mask);
    g->positions = tensor_ref(g->first_positions);
}

/* x[:, -1:], copied; named. */
static struct tensor *last_of(struct engine *e, struct tensor *x)
{
    struct tensor *last = tensor_keep(op_slice_end(e, x, 1, 1));
    struct tensor *copy = tensor_keep(op_clone(e, last));
    tensor_drop(e, last);
    return copy;
}

static void drop_inputs(struct engine *e, struct generation *g)
{
    tensor_drop_all(e, g->given.inputs, g->given.positions, g->given.mask);
    g->given = (struct batch){0};
}

/* prepare_inputs_for_generation() */
static void prepare(struct engine *e, struct generation *g)
{
    bool is_first = !g->cache.tokens;
    struct batch next = {.mask = tensor_ref(g->all_mask)};
    next.inputs = is_first ? tensor_keep(op_clone(e, g->ids)) : last_of(e, g->ids);
    next.positions = is_first ? tensor_ref(g->positions) : last_of(e, g->positions);
    drop_inputs(e, g);
    g->given = next;
}

/* Appends one column, `more` (N, 1), lent, to *x. */
static void append(struct engine *e, struct tensor **x, struct tensor *more)
{
    struct tensor *const both[] = {*x, more};
    tensor_set(e, x, op_cat(e, 2, both, 1));
}

/* _update_model_kwargs_for_generation() */
static void update(struct engine *e, struct generation *g)
{
    struct tensor *count = op_arange(e, PLIM_I64, 1, 0, 1);
    struct tensor *next =
        tensor_keep(op_add_scalar(e, op_add(e, count, op_slice_end(e, g->positions, 1, 1)), 1));
    struct tensor *before = tensor_ref(g->positions);
    append(e, &g->positions, next);
    tensor_drop(e, next);
    struct tensor *one = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows_of(g), 1), 1));
    append(e, &g->all_mask, one);
    tensor_drop_all(e, one, before);
}

/* torch.multinomial(x, num_samples=1).squeeze(1) of x (N, vocabulary): checks that x are probabilities, and returns the
 * argmax of x divided by random numbers (aten/src/ATen/native/Distributions.cpp), (N), named. */
static struct tensor *draw(struct engine *e, struct tensor *x, uint64_t seed)
{
    int64_t rows = tensor_size(x, 0);
    struct tensor *drawn = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows)));
    struct tensor *most = tensor_keep(op_reduce(e, x, 3, false, PLIM_BINARY_MAX, 1, PLIM_F32));
    struct tensor *is_finite = tensor_keep(op_compare_scalar(e, PLIM_BINARY_LT, most, INFINITY));
    struct tensor *least = tensor_keep(op_reduce(e, x, 3, false, PLIM_BINARY_MIN, 1, PLIM_F32));
    struct tensor *is_positive = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GE, least, 0));
    struct tensor *is_valid = tensor_keep(op_compare(e, PLIM_BINARY_AND, is_finite, is_positive));
    tensor_drop_all(e, is_positive, least, is_finite, most);
    struct tensor *sums = tensor_keep(op_sum_dim(e, x, 1));
    struct tensor *is_zero = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, sums, 0));
    struct tensor *has_zero =
        tensor_keep(op_reduce(e, is_zero, 1, false, PLIM_BINARY_OR, 1, PLIM_BOOL));
    tensor_drop_all(e, is_zero, sums);
    tensor_drop(e, tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, has_zero, 0)));
    struct tensor *chance = tensor_keep(tensor_empty(e, PLIM_F32, 2, x->a.shape));
    op_random_(e, chance, 1, seed);
    op_binary_(e, PLIM_BINARY_DIV, chance, x);
    op_argmax_last_to(e, chance, drawn);
    tensor_drop_all(e, chance, has_zero, is_valid);
    return drawn;
}

/* Replaces the new tokens of rows that have ended by padding: tokens * unfinished + padding * (1 - unfinished). */
static void pad_ended(struct engine *e, struct generation *g)
{
    struct tensor *own = tensor_keep(op_mul(e, g->drawn, g->unfinished));
    struct tensor *ended = op_rsub_scalar(e, g->unfinished, 1);
    struct tensor *padding = tensor_keep(op_mul(e, g->padding, ended));
    struct tensor *tokens = op_add(e, own, padding);
    tensor_drop_all(e, own, padding);
    tensor_set(e, &g->drawn, tokens);
}

/* stopping_criteria(): whether each row has the maximum length or ends here, (N) bool, named. */
static struct tensor *find_ends(struct engine *e, struct generation *g)
{
    int64_t rows = rows_of(g);
    struct tensor *is_done = tensor_keep(op_full(e, PLIM_BOOL, SHAPE(rows), 0));
    struct tensor *is_long = op_full(e, PLIM_BOOL, SHAPE(rows), 0);
    tensor_set(e, &is_done, op_compare(e, PLIM_BINARY_OR, is_done, is_long));
    struct tensor *last = op_slice_end(e, g->ids, 1, 1);                           /* (N, 1) */
    struct tensor *ends = tensor_keep(tensor_empty(e, PLIM_BOOL, SHAPE(rows, 1))); /* isin() */
    struct tensor *each = op_compare(e, PLIM_BINARY_EQ, last, g->ends);
    struct tensor *any = tensor_keep(op_reduce(e, each, 2, true, PLIM_BINARY_OR, 1, PLIM_BOOL));
    op_copy_(e, ends, any);
    tensor_drop(e, any);
    struct tensor *has_ended =
        tensor_keep(op_reduce(e, ends, 2, false, PLIM_BINARY_OR, 1, PLIM_BOOL));
    tensor_drop(e, ends);
    tensor_set(e, &is_done, op_compare(e, PLIM_BINARY_OR, is_done, has_ended));
    tensor_drop(e, has_ended);
    return is_done;
}

/* Computes the results that the host waits for. */
static void stop_check(struct engine *e, struct generation *g)
{
    struct tensor *done = find_ends(e, g);
    struct tensor *goes_on = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, done, 0));
    tensor_drop(e, done);
    tensor_set(e, &g->unfinished, op_mul(e, g->unfinished, goes_on));
    tensor_drop(e, goes_on);
    struct tensor *most = op_reduce(e, g->unfinished, 1, false, PLIM_BINARY_MAX, 1, PLIM_I64);
    struct tensor *is_over = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, most, 0));
    engine_item(e, is_over);
    tensor_drop(e, is_over);
}

static void draw_next(struct engine *e, struct generation *g, struct tensor *logits, uint64_t seed)
{
    struct tensor *last = tensor_keep(op_select(e, logits, 1, tensor_size(logits, 1) - 1));
    tensor_set(e, &g->logits,
               last->a.dtype == PLIM_F32 ? op_clone(e, last) : op_to(e, last, PLIM_F32));
    tensor_drop(e, last);
    bool is_tempered = g->temperature > 0 && g->temperature != 1;
    if (is_tempered) tensor_set(e, &g->scores, op_div_scalar(e, g->logits, g->temperature));
    tensor_set(e, &g->chances, op_softmax(e, is_tempered ? g->scores : g->logits, PLIM_F32));
    struct tensor *drawn = draw(e, g->chances, seed);
    tensor_drop(e, g->drawn);
    g->drawn = drawn;
    pad_ended(e, g);
    struct tensor *column = op_unsqueeze(e, g->drawn, 1);
    append(e, &g->ids, column);
    stop_check(e, g);
}

/* Generates one token of each row. */
static void step(struct engine *e, struct generation *g, generation_forward *forward, void *user)
{
    prepare(e, g);
    struct tensor *logits = forward(user, &g->given, &g->cache);
    if (g->cache.tokens == tensor_size(g->prompts, 1)) drop_inputs(e, g); /* _prefill() returned */
    if (!e->halted) update(e, g);
    if (!e->halted) draw_next(e, g, logits, (uint64_t)g->cache.tokens);
    tensor_drop(e, logits);
}

static void end(struct engine *e, struct generation *g)
{
    drop_inputs(e, g);
    decoder_cache_drop(e, &g->cache);
    tensor_drop_all(e, g->first_positions, g->positions, g->all_mask, g->unfinished, g->logits, g->scores,
                    g->chances, g->drawn, g->ends, g->padding, g->ids, g->prompts, g->mask);
}

void generation_run(struct engine *e, const struct decoder *model, int64_t rows,
                    generation_forward *forward, void *user)
{
    struct generation g = {.temperature = model->setting->grpo.temperature};
    if (decoder_cache_create(model, &g.cache) != PLIM_OK) engine_fail(e, PLIM_NOMEM);
    begin(e, model, rows, &g);
    int64_t tokens = model->setting->seq - model->setting->prompt;
    for (int64_t i = 0; i < tokens && !e->halted; i++) step(e, &g, forward, user);
    end(e, &g);
}
