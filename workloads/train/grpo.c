#include "grpo.h"
#include "autotune/base/hash.h"
#include "grpo_balance.h"
#include "grpo_rewards.h"
#include "measures.h"
#include "trainer_loop.h"
#include "vllm.h"
#include "workloads/engine/ops_trl.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_ITEMS = 1 << 30 }; /* clamp(min=1) has no upper bound */

void grpo_create(const struct decoder *model, struct grpo *grpo)
{
    *grpo = (struct grpo){0};
    if (model->setting->loop == PLIM_LOOP_TRL_GRPO) grpo->model = model;
}

static const struct plim_train_setting *setting_of(const struct grpo *g)
{
    return g->model->setting;
}

static int64_t completion_tokens(const struct grpo *g)
{
    return setting_of(g)->seq - setting_of(g)->prompt;
}

static int64_t steps_of_generation(const struct grpo *g)
{
    return setting_of(g)->grpo.updates * setting_of(g)->grpo.iterations;
}

/* Returns the number of rows of a generation on this rank. */
static int64_t rows_of(const struct grpo *g)
{
    const struct plim_train_setting *s = setting_of(g);
    return s->micro_batch * s->accumulation * s->grpo.updates;
}

static bool is_corrected_by_token(const struct grpo *g)
{
    return setting_of(g)->grpo.correction >= PLIM_GRPO_CORRECTION_TOKEN_MASK;
}

/* --- labels ----------------------------------------------------------------------------------- */

/* Returns the labels for tokens and mask (B, P + C), named: only completions have labels; NULL if the engine is
 * halted. */
static struct tensor *labels_of(struct engine *e, const struct grpo *g, struct tensor *tokens,
                                struct tensor *mask)
{
    struct tensor *is_padding = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, mask, 0));
    struct tensor *labels = tensor_keep(op_masked_fill(e, tokens, is_padding, PLIM_IGNORED_TARGET));
    tensor_drop(e, is_padding);
    if (e->halted) return NULL;
    struct tensor *prompt = tensor_keep(op_slice(e, labels, 1, 0, setting_of(g)->prompt));
    op_fill_(e, prompt, PLIM_IGNORED_TARGET);
    tensor_drop(e, prompt);
    return labels;
}

/* x[:, -C:] of x with one number per label, (B, P + C - 1); floating. */
static struct tensor *of_completions(struct engine *e, const struct grpo *g, struct tensor *x)
{
    return op_slice_end(e, x, 1, e->halted ? 0 : completion_tokens(g));
}

/* --- scores ----------------------------------------------------------------------------------- */

/* The scores of all chunks. A chunk's result lives until that of the next one exists, its log-probabilities until the
 * end. */
struct scores {
    struct tensor *tokens, *mask; /* (N, P + C), lent */
    struct tensor *labels;        /* of the last chunk */
    struct fused_output out;
    struct tensor **log_probs; /* (B, C) of each chunk */
    int64_t count;
};

static void score_chunk(struct engine *e, const struct grpo *g, grpo_score *score, void *user,
                        bool by_reference, struct scores *s)
{
    int64_t rows = setting_of(g)->micro_batch, start = s->count * rows;
    struct batch batch = {.inputs = tensor_hold(op_slice(e, s->tokens, 0, start, rows)),
                          .mask = tensor_hold(op_slice(e, s->mask, 0, start, rows))};
    batch.labels = labels_of(e, g, batch.inputs, batch.mask);
    tensor_drop(e, s->labels);
    s->labels = batch.labels;
    if (!e->halted) {
        struct fused_output out = score(user, &batch, by_reference);
        nn_fused_output_drop(e, &s->out);
        s->out = out;
    }
    if (!e->halted) s->log_probs[s->count++] = tensor_keep(of_completions(e, g, s->out.log_probs));
    tensor_drop_all(e, batch.inputs, batch.mask);
}

/* torch.cat() of all chunks, of which there may be more than a node can have edges: (rows, tokens), named. */
static struct tensor *joined_scores(struct engine *e, const struct scores *s, int64_t rows, int64_t tokens)
{
    const struct plim_array **list = calloc((size_t)s->count, sizeof(*list));
    struct tensor *all = tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(rows, tokens)));
    if (!list) engine_fail(e, PLIM_NOMEM);
    for (int64_t i = 0; i < s->count && list; i++) list[i] = &s->log_probs[i]->a;
    struct plim_op cat = {.kind = PLIM_OP_CAT,
                          .n_out = 1,
                          .n_lists = 1,
                          .out = {&all->a},
                          .lists = {list},
                          .list_length = (size_t)s->count};
    if (!e->halted) engine_launch(e, &cat);
    free(list);
    return all;
}

/* _get_per_token_logps_and_entropies() of all rows: (N, C), named; NULL if the engine is halted. */
static struct tensor *score_all(struct engine *e, const struct grpo *g, grpo_score *score,
                                void *user, bool by_reference, struct tensor *tokens,
                                struct tensor *mask)
{
    int64_t rows = rows_of(g), chunks = rows / setting_of(g)->micro_batch;
    struct scores s = {
        .tokens = tokens, .mask = mask, .log_probs = calloc((size_t)chunks, sizeof(*s.log_probs))};
    struct tensor *all = NULL;
    if (!s.log_probs) engine_fail(e, PLIM_NOMEM);
    for (int64_t i = 0; i < chunks && !e->halted; i++)
        score_chunk(e, g, score, user, by_reference, &s);
    if (!e->halted) all = joined_scores(e, &s, rows, completion_tokens(g));
    if (s.log_probs) tensor_drop_list(e, s.log_probs, (size_t)s.count);
    tensor_drop(e, s.labels);
    nn_fused_output_drop(e, &s.out);
    free(s.log_probs);
    return all;
}

/* --- importance sampling correction of vLLM's log-probabilities ------------------------------- */

/* Variables of _generate_and_score_completions() that live until it returns, named. */
struct corrected {
    struct tensor *difference, *logs, *invalid;
};

static struct tensor *truncate(struct engine *e, struct tensor *ratios)
{
    struct tensor *clipped = tensor_keep(op_clamp(e, ratios, -INFINITY, 3));
    tensor_drop(e, ratios);
    return clipped;
}

static struct tensor *mask_out(struct engine *e, struct tensor *ratios, struct corrected *c)
{
    struct tensor *is_small = tensor_keep(op_compare_scalar(e, PLIM_BINARY_LT, ratios, 0));
    struct tensor *is_large = tensor_keep(op_compare_scalar(e, PLIM_BINARY_GT, ratios, 3));
    c->invalid = tensor_keep(op_compare(e, PLIM_BINARY_OR, is_small, is_large));
    tensor_drop_all(e, is_small, is_large);
    struct tensor *kept = tensor_keep(op_masked_fill(e, ratios, c->invalid, 0));
    tensor_drop(e, ratios);
    return kept;
}

/* Stores exp(difference of the two log-probabilities), truncated or masked if large, in samples->ratios. */
static void correct(struct engine *e, const struct grpo *g, struct samples *s, struct corrected *c)
{
    enum plim_grpo_correction how = plim_grpo_corrects(&setting_of(g)->grpo);
    if (how == PLIM_GRPO_CORRECTION_NONE || e->halted) return;
    c->difference = tensor_keep(op_mul(e, op_sub(e, s->before, s->sampled), s->completion_mask));
    tensor_set(e, &c->difference, op_clone(e, c->difference)); /* nan_to_num() of numbers */
    c->logs = is_corrected_by_token(g) ? tensor_ref(c->difference)
                                       : tensor_keep(op_sum_last(e, c->difference));
    struct tensor *ratios = tensor_keep(op_exp(e, c->logs));
    bool truncates =
        how == PLIM_GRPO_CORRECTION_SEQUENCE_TRUNCATE || how == PLIM_GRPO_CORRECTION_TOKEN_TRUNCATE;
    s->ratios = truncates ? truncate(e, ratios) : mask_out(e, ratios, c);
}

/* The number of variables of its metrics that live as long. */
enum { METRICS = 5 };

/* Computes the metrics: mean and maximum of delta[mask & ~isnan(delta)], and of the ratios of the same tokens. Tensors
 * that stay alive are stored in `metrics`, named. */
static void measure_correction(struct engine *e, const struct grpo *g, const struct samples *s,
                               struct tensor *metrics[METRICS])
{
    if (!s->ratios || e->halted) return;
    int64_t chunks = rows_of(g) / setting_of(g)->micro_batch;
    int64_t found = tensor_elements(s->before) - chunks * decoder_hides_padding(setting_of(g));
    struct tensor *delta =
        tensor_keep(op_unary(e, op_sub(e, s->before, s->sampled), PLIM_UNARY_ABS));
    struct tensor *mask = tensor_keep(op_to(e, s->completion_mask, PLIM_BOOL));
    struct tensor *is_nan = tensor_keep(op_compare(e, PLIM_BINARY_NE, delta, delta));
    struct tensor *is_number = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, is_nan, 0));
    tensor_drop(e, is_nan);
    struct tensor *counts = tensor_keep(op_compare(e, PLIM_BINARY_AND, mask, is_number));
    tensor_drop(e, is_number);
    struct tensor *counted = tensor_keep(op_rows_where(e, delta, counts, found)), *ratios = NULL;
    tensor_drop_all(e, counts, delta);
    metrics[0] = measures_mean(e, counted);
    metrics[1] = measures_fold(e, counted, PLIM_BINARY_MAX);
    if (is_corrected_by_token(g)) ratios = tensor_keep(op_rows_where(e, s->ratios, mask, found));
    struct tensor *flat = ratios ? ratios : s->ratios;
    metrics[2] = measures_fold(e, flat, PLIM_BINARY_MIN);
    metrics[3] = measures_mean(e, flat);
    metrics[4] = measures_fold(e, flat, PLIM_BINARY_MAX);
    tensor_drop_all(e, mask, counted, ratios);
}

/* --- a generation ----------------------------------------------------------------------------- */

enum { SAMPLES = sizeof(struct samples) / sizeof(struct tensor *) };

/* Lists the samples in the order of the dictionary that holds them. */
static void list_samples(const struct samples *s, struct tensor *out[SAMPLES])
{
    struct tensor *const list[SAMPLES] = {s->prompts,    s->prompt_mask, s->completions, s->completion_mask,
                                          s->advantages, s->items,       s->before,  s->ratios,
                                          s->sampled,    s->reference};
    for (int i = 0; i < SAMPLES; i++) out[i] = list[i];
}

static void drop_samples(struct engine *e, struct samples *s)
{
    struct tensor *list[SAMPLES];
    list_samples(s, list);
    tensor_drop_list(e, list, SAMPLES);
    *s = (struct samples){0};
}

/* x[permutation] of the rows, with indices copied from the host; named. */
static struct tensor *permuted(struct engine *e, struct tensor *x)
{
    if (!x || e->halted) return NULL;
    if (!x->a.ndim) return tensor_ref(x);
    struct tensor *order = tensor_keep(tensor_empty(e, PLIM_I64, 1, x->a.shape));
    struct tensor *y = tensor_keep(op_clone(e, x));
    tensor_drop(e, order);
    return y;
}

/* shuffle_sequence_dict() */
static struct samples shuffled(struct engine *e, const struct samples *s)
{
    struct samples out;
    out.prompts = permuted(e, s->prompts);
    out.prompt_mask = permuted(e, s->prompt_mask);
    out.completions = permuted(e, s->completions);
    out.completion_mask = permuted(e, s->completion_mask);
    out.advantages = permuted(e, s->advantages);
    out.items = permuted(e, s->items);
    out.before = permuted(e, s->before);
    out.ratios = permuted(e, s->ratios);
    out.sampled = permuted(e, s->sampled);
    out.reference = permuted(e, s->reference);
    return out;
}

/* Stores the rows, which come from the host, and the number of tokens. */
static void receive(struct engine *e, const struct grpo *g, struct samples *s)
{
    int64_t world = plim_setting_ranks(setting_of(g));
    struct vllm_completions given = vllm_complete(e, g->model, rows_of(g));
    s->prompts = given.prompts;
    s->prompt_mask = given.prompt_mask;
    s->completions = given.completions;
    s->completion_mask = given.completion_mask;
    s->sampled = given.log_probs;
    struct tensor *own = measures_count(e, s->completion_mask), *all = measures_gather(e, own, world);
    tensor_drop(e, own);
    s->items = measures_fold(e, all, PLIM_BINARY_ADD);
    tensor_drop(e, all);
}

/* _generate_and_score_completions(); named */
static struct samples generate(struct engine *e, const struct grpo *g, grpo_score *score,
                               generation_forward *next, void *user)
{
    const struct plim_grpo *asked = &setting_of(g)->grpo;
    struct samples s = {0};
    struct corrected c = {0};
    struct grpo_rewards rewards = {0};
    int64_t rows = rows_of(g);
    if (asked->vllm == PLIM_VLLM_NONE) {
        generation_run(e, g->model, rows, next, user);
    } else {
        vllm_sync(e, g->model, !g->samples.prompts);
        if (!e->halted) vllm_exchange(e, g->model, rows);
    }
    if (!e->halted) receive(e, g, &s);
    if (e->halted) return s;
    struct tensor *tokens = tensor_keep(op_cat(e, 2, (struct tensor *[]){s.prompts, s.completions}, 1));
    struct tensor *mask =
        tensor_keep(op_cat(e, 2, (struct tensor *[]){s.prompt_mask, s.completion_mask}, 1));
    bool is_late = steps_of_generation(g) > 1; /* some samples are used after the model has changed */
    if (plim_grpo_corrects(asked) || is_late) s.before = score_all(e, g, score, user, false, tokens, mask);
    correct(e, g, &s, &c);
    if (asked->reference && !e->halted)
        s.reference = score_all(e, g, score, user, true, tokens, mask);
    s.advantages = grpo_rewards_compare(e, rows, plim_setting_ranks(setting_of(g)), asked->generations, &rewards);
    struct tensor *metrics[METRICS] = {NULL};
    measure_correction(e, g, &s, metrics);
    tensor_drop_all(e, tokens, mask, c.difference, c.logs, c.invalid);
    tensor_drop_list(e, metrics, METRICS);
    grpo_rewards_drop(e, &rewards);
    return s;
}

void grpo_begin_step(struct engine *e, struct grpo *g, grpo_score *score, generation_forward *next, void *user)
{
    if (!g->model || e->halted) return;
    bool is_due = !g->samples.prompts || g->steps == steps_of_generation(g);
    if (is_due) {
        bool grad = e->grad_enabled;
        e->grad_enabled = false;
        struct samples made = generate(e, g, score, next, user), kept = shuffled(e, &made);
        drop_samples(e, &made);
        drop_samples(e, &g->samples); /* the trainer's variable held them until now */
        g->samples = kept;
        g->steps = 0;
        e->grad_enabled = grad;
    }
    g->steps++;
}

/* --- a micro-step ----------------------------------------------------------------------------- */

/* Returns the rows of x (N, ..) for a micro-step, the first ones, named; NULL if x is NULL. */
static struct tensor *part(struct engine *e, const struct grpo *g, struct tensor *x)
{
    return x && !e->halted ? tensor_hold(op_slice(e, x, 0, 0, setting_of(g)->micro_batch)) : NULL;
}

static struct tensor *joined(struct engine *e, const struct grpo *g, struct tensor *prompts,
                             struct tensor *completions)
{
    struct tensor *parts[2] = {part(e, g, prompts), part(e, g, completions)};
    if (e->halted) return NULL;
    struct tensor *all = tensor_keep(op_cat(e, 2, parts, 1));
    tensor_drop_all(e, parts[0], parts[1]);
    return all;
}

struct batch grpo_batch(struct engine *e, const struct grpo *g)
{
    const struct samples *s = &g->samples;
    struct batch batch = {.inputs = joined(e, g, s->prompts, s->completions),
                          .mask = joined(e, g, s->prompt_mask, s->completion_mask)};
    if (!e->halted) batch.labels = labels_of(e, g, batch.inputs, batch.mask);
    return batch;
}

/* --- the loss --------------------------------------------------------------------------------- */

/* The variables of _compute_loss() in a micro-step, named; for tokens (B, C). */
struct loss {
    struct samples part;
    struct tensor *advantages; /* (B, 1) */
    struct tensor *log_probs, *entropy, *log_ratio, *ratio, *clipped, *kl;
    struct tensor *one, *other, *each, *normalizer;
    struct tensor *aux_loss; /* the load-balancing loss of the experts; NULL: none */
};

static struct samples part_of(struct engine *e, const struct grpo *g)
{
    const struct samples *s = &g->samples;
    return (struct samples){.completion_mask = part(e, g, s->completion_mask),
                            .advantages = part(e, g, s->advantages),
                            .items = s->items ? tensor_ref(s->items) : NULL,
                            .before = part(e, g, s->before),
                            .ratios = part(e, g, s->ratios),
                            .reference = part(e, g, s->reference)};
}

/* cat([x[:, -C:]]); named */
static struct tensor *copy_of_completions(struct engine *e, const struct grpo *g, struct tensor *x)
{
    struct tensor *completions = of_completions(e, g, x);
    return tensor_keep(op_cat(e, 1, &completions, 0));
}

/* (exp(ref - own) - (ref - own) - 1) * ratio */
static struct tensor *kl_of(struct engine *e, const struct loss *l)
{
    struct tensor *power = tensor_keep(op_exp(e, op_sub(e, l->part.reference, l->log_probs)));
    struct tensor *kl = tensor_keep(op_sub(e, power, op_sub(e, l->part.reference, l->log_probs)));
    tensor_drop(e, power);
    tensor_set(e, &kl, op_add_scalar(e, kl, -1));
    tensor_set(e, &kl, op_mul(e, kl, l->ratio));
    return kl;
}

/* Computes the loss of each token. */
static void each_loss(struct engine *e, const struct grpo *g, struct loss *l)
{
    struct tensor *before =
        l->part.before ? tensor_ref(l->part.before) : tensor_keep(tensor_detach(e, l->log_probs));
    l->log_ratio = tensor_keep(op_sub(e, l->log_probs, before));
    l->ratio = tensor_keep(op_exp(e, l->log_ratio));
    if (setting_of(g)->grpo.reference) l->kl = kl_of(e, l);
    l->clipped = tensor_keep(op_clamp(e, l->ratio, 0.8, 1.2));
    l->one = tensor_keep(op_mul(e, l->ratio, l->advantages));
    l->other = tensor_keep(op_mul(e, l->clipped, l->advantages));
    l->each = tensor_keep(op_neg(e, op_trl_minimum(e, l->one, l->other)));
    if (l->part.ratios) tensor_set(e, &l->each, op_mul(e, l->each, l->part.ratios));
    if (l->kl) tensor_set(e, &l->each, op_add(e, l->each, op_mul_scalar(e, l->kl, 0.04)));
    tensor_drop(e, before);
}

/* clamp(min=1.0) of one or several integers, as floating-point numbers; takes x, named. */
static struct tensor *at_least_one(struct engine *e, struct tensor *x)
{
    struct tensor *wide = tensor_keep(op_to(e, x, PLIM_F32));
    tensor_drop(e, x);
    tensor_set(e, &wide, op_clamp(e, wide, 1, MOST_ITEMS));
    return wide;
}

static struct tensor *masked(struct engine *e, const struct loss *l, struct tensor *x)
{
    return op_mul(e, x, l->part.completion_mask);
}

/* mask.sum(-1), (B) int64, named */
static struct tensor *count_rows(struct engine *e, const struct loss *l)
{
    return tensor_keep(op_reduce(e, l->part.completion_mask, 2, false, PLIM_BINARY_ADD, 1, PLIM_I64));
}

/* (x * masked).sum(-1).mean(), where all rows have the same weight. */
static struct tensor *mean_of_rows(struct engine *e, struct loss *l)
{
    struct tensor *sums = tensor_keep(op_sum_dim(e, masked(e, l, l->each), 1));
    struct tensor *counts = at_least_one(e, count_rows(e, l));
    struct tensor *means = tensor_keep(op_div(e, sums, counts));
    tensor_drop_all(e, sums, counts);
    struct tensor *loss = tensor_keep(op_mean_vector(e, means));
    tensor_drop(e, means);
    return loss;
}

static struct tensor *divided(struct engine *e, struct tensor *sum, struct tensor *number)
{
    struct tensor *loss = tensor_keep(op_div(e, sum, number));
    tensor_drop(e, sum);
    return loss;
}

/* Reduces the tokens' losses according to loss_type; named. */
static struct tensor *reduced(struct engine *e, const struct grpo *g, struct loss *l)
{
    const struct plim_train_setting *s = setting_of(g);
    struct tensor *loss;
    if (s->grpo.loss == PLIM_GRPO_LOSS_DAPO) {
        l->normalizer = at_least_one(e, tensor_ref(l->part.items));
        tensor_set(e, &l->normalizer,
                   op_div_scalar(e, l->normalizer, (double)plim_setting_ranks(s)));
        tensor_set(e, &l->normalizer,
                   op_div_scalar(e, op_mul_scalar(e, l->normalizer, 1), (double)s->grpo.updates));
        return divided(e, tensor_keep(op_sum_all(e, masked(e, l, l->each))), l->normalizer);
    }
    if (s->grpo.loss == PLIM_GRPO_LOSS_GRPO) {
        loss = mean_of_rows(e, l);
    } else {
        loss = tensor_keep(op_sum_all(e, masked(e, l, l->each)));
        if (s->grpo.loss == PLIM_GRPO_LOSS_BNPO) {
            struct tensor *count = at_least_one(e, measures_count(e, l->part.completion_mask));
            loss = divided(e, loss, count);
            tensor_drop(e, count);
        } else {
            tensor_set(e, &loss, op_div_scalar(e, loss, (double)tensor_elements(l->each)));
        }
    }
    tensor_set(e, &loss, op_div_scalar(e, loss, (double)s->accumulation));
    return loss;
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* torch.stack() of two scalars; named */
static struct tensor *stacked(struct engine *e, struct tensor *a, struct tensor *b)
{
    struct tensor *one = tensor_hold(op_view(e, a, SHAPE(1))), *other = tensor_hold(op_view(e, b, SHAPE(1)));
    struct tensor *both = tensor_keep(op_cat(e, 2, (struct tensor *[]){one, other}, 0));
    tensor_drop_all(e, one, other);
    return both;
}

/* global_masked_mean(x).item() */
static void read_mean(struct engine *e, const struct loss *l, struct tensor *x)
{
    struct tensor *sum = tensor_keep(op_sum_all(e, masked(e, l, x)));
    struct tensor *count = measures_count(e, l->part.completion_mask);
    tensor_set(e, &count, op_to(e, count, PLIM_F32));
    struct tensor *both = stacked(e, sum, count);
    struct tensor *all = tensor_keep(op_clone(e, both)); /* accelerate's reduce() */
    tensor_drop(e, both);
    struct tensor *total = tensor_keep(op_select(e, all, 0, 0)), *number = tensor_keep(op_select(e, all, 0, 1));
    struct tensor *least = tensor_keep(op_clamp(e, number, 1, INFINITY));
    struct tensor *mean = tensor_keep(op_div(e, total, least));
    tensor_drop_all(e, total, number, least);
    engine_item(e, mean);
    tensor_drop_all(e, mean, sum, count, all);
}

static void read_mean_of_whether(struct engine *e, const struct loss *l, struct tensor *is)
{
    struct tensor *wide = tensor_keep(op_to(e, is, PLIM_F32));
    read_mean(e, l, wide);
    tensor_drop(e, wide);
}

/* accelerator.gather(masked_seq_mean(is.float())), (B world), named; its minimum or maximum is logged. */
static struct tensor *gather_rows(struct engine *e, const struct loss *l, struct tensor *is,
                                  int64_t world)
{
    struct tensor *wide = tensor_keep(op_to(e, is, PLIM_F32));
    struct tensor *sums = tensor_keep(op_sum_dim(e, masked(e, l, wide), 1));
    struct tensor *counts = count_rows(e, l);
    struct tensor *means = tensor_keep(op_div(e, sums, counts));
    tensor_drop_all(e, sums, counts, wide);
    struct tensor *all = measures_gather(e, means, world);
    tensor_drop(e, means);
    return all;
}

/* (ratio < or > limit) & (advantages < or > 0); named */
static struct tensor *is_clipped(struct engine *e, const struct loss *l, enum plim_binary how,
                                 double limit)
{
    struct tensor *is_far = tensor_keep(op_compare_scalar(e, how, l->ratio, limit));
    struct tensor *counts = tensor_keep(op_compare_scalar(e, how, l->advantages, 0));
    struct tensor *both = tensor_keep(op_compare(e, PLIM_BINARY_AND, is_far, counts));
    tensor_drop_all(e, is_far, counts);
    return both;
}

static void measure(struct engine *e, const struct grpo *g, const struct loss *l)
{
    enum { LOW, HIGH, REGION, LOW_ROWS, HIGH_ROWS, KEPT };
    int64_t world = plim_setting_ranks(setting_of(g));
    struct tensor *kept[KEPT];
    if (l->kl) read_mean(e, l, l->kl);
    read_mean(e, l, l->entropy);
    kept[LOW] = is_clipped(e, l, PLIM_BINARY_LT, 0.8);
    kept[HIGH] = is_clipped(e, l, PLIM_BINARY_GT, 1.2);
    kept[REGION] = tensor_keep(op_compare(e, PLIM_BINARY_OR, kept[LOW], kept[HIGH]));
    for (int i = LOW; i <= REGION; i++) read_mean_of_whether(e, l, kept[i]);
    kept[LOW_ROWS] = gather_rows(e, l, kept[LOW], world);
    kept[HIGH_ROWS] = gather_rows(e, l, kept[HIGH], world);
    tensor_drop_list(e, kept, KEPT);
}

static void drop_loss(struct engine *e, struct loss *l)
{
    drop_samples(e, &l->part);
    tensor_drop_all(e, l->advantages, l->log_probs, l->entropy, l->log_ratio, l->ratio, l->clipped,
                    l->kl, l->one, l->other, l->each, l->normalizer, l->aux_loss);
}

struct tensor *grpo_loss(struct engine *e, const struct grpo *g, struct fused_output *out,
                         struct batch *batch)
{
    struct tensor *loss = NULL;
    if (!e->halted) {
        struct loss l = {.part = part_of(e, g)};
        l.advantages = tensor_keep(op_unsqueeze(e, l.part.advantages, 1));
        l.log_probs = copy_of_completions(e, g, out->log_probs);
        l.entropy = copy_of_completions(e, g, out->entropy);
        if (out->aux_loss) l.aux_loss = grpo_balance_mean(e, out->aux_loss);
        tensor_drop(e, batch->labels);
        batch->labels = NULL;
        nn_fused_output_drop(e, out);
        each_loss(e, g, &l);
        loss = reduced(e, g, &l);
        if (l.aux_loss) grpo_balance_add(e, g->model, l.aux_loss, &loss);
        bool grad = e->grad_enabled;
        e->grad_enabled = false; /* no graph is needed for metrics */
        if (!e->halted) measure(e, g, &l);
        e->grad_enabled = grad;
        drop_loss(e, &l);
    }
    nn_fused_output_drop(e, out);
    tensor_drop_all(e, batch->inputs, batch->mask, batch->labels);
    *batch = (struct batch){0};
    return loss;
}

/* --- fingerprint ------------------------------------------------------------------------------ */

uint64_t grpo_fingerprint(const struct grpo *g, uint64_t fingerprint)
{
    if (!g->model || !fingerprint) return fingerprint;
    struct tensor *list[SAMPLES];
    list_samples(&g->samples, list);
    for (int i = 0; i < SAMPLES; i++) fingerprint = trainer_loop_add_position(fingerprint, list[i]);
    return plim_hash(fingerprint, &g->steps, sizeof(g->steps)) | 1;
}
