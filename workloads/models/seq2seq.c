/* The parts that encoder-decoder models share. */
#include "seq2seq.h"

/* --- the forward -------------------------------------------------------------------------------- */

/* Copies x (rows, length), lent, without its last column to the columns of `to` after the first one. Both may be the
 * same tensor. */
static void copy_behind(struct engine *e, struct tensor *x, struct tensor *to, int64_t length)
{
    struct tensor *most = tensor_keep(op_clone(e, op_slice(e, x, 1, 0, length - 1)));
    struct tensor *behind = tensor_keep(op_slice(e, to, 1, 1, length - 1));
    op_copy_(e, behind, most);
    tensor_drop_all(e, behind, most);
}

/* Replaces ignored labels (-100) by padding. */
static void pad_hidden(struct engine *e, const struct decoder *m, struct tensor **labels)
{
    struct tensor *is_hidden = tensor_keep(op_compare_scalar(e, PLIM_BINARY_EQ, *labels, PLIM_IGNORED_TARGET));
    tensor_set(e, labels, op_masked_fill_(e, *labels, is_hidden, (double)m->config->pad_token_id));
    tensor_drop(e, is_hidden);
}

/* shift_tokens_right(): returns the start token followed by the labels without the last one, with padding instead of
 * ignored labels; named. */
static struct tensor *shift_right(struct engine *e, const struct decoder *m)
{
    int64_t rows = tensor_size(m->labels, 0), length = tensor_size(m->labels, 1);
    struct tensor *shifted = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, length), 0));
    copy_behind(e, m->labels, shifted, length);
    struct tensor *first = tensor_keep(op_select(e, shifted, 1, 0));
    if (!e->halted) op_fill_(e, first, (double)m->config->decoder_start);
    tensor_drop(e, first);
    pad_hidden(e, m, &shifted);
    return shifted;
}

/* Creates the decoder's KV cache if use_cache is set: forward() ignores it if blocks are checkpointed, and Trainer
 * turns it off in the model's configuration, of which the decoder may have a copy (own_config). */
static void begin_cache(struct engine *e, struct decoder *m, const struct seq2seq *family)
{
    bool checkpoints = m->setting->checkpointing == PLIM_CHECKPOINTING_FULL && !e->evaluates;
    bool is_turned_off = plim_loop_is_trainers(m->setting->loop) && !family->own_config;
    if (!m->config->use_cache || checkpoints || is_turned_off || family->keeps_nothing) return;
    enum plim_status st = decoder_cache_create(m, &m->output_cache);
    if (st) engine_fail(e, st);
    m->cache = &m->output_cache;
}

/* mbart's shift_tokens_right(): returns the labels' last token that is not padding, followed by the labels without the
 * last one; named. */
static struct tensor *wrap_right(struct engine *e, const struct decoder *m)
{
    struct tensor *wrapped = tensor_keep(op_clone(e, m->labels));
    pad_hidden(e, m, &wrapped);
    struct tensor *is_token = op_compare_scalar(e, PLIM_BINARY_NE, wrapped, (double)m->config->pad_token_id);
    struct tensor *count = op_reduce(e, is_token, 2, false, PLIM_BINARY_ADD, 1, PLIM_I64);
    struct tensor *last = tensor_keep(op_unsqueeze(e, op_add_scalar(e, count, -1), -1));
    struct tensor *start = tensor_keep(op_gather_last(e, wrapped, last));
    copy_behind(e, wrapped, wrapped, tensor_size(m->labels, 1));
    struct tensor *first = tensor_keep(op_select(e, wrapped, 1, 0));
    struct tensor *starts = tensor_keep(op_select(e, start, 1, 0));
    op_copy_(e, first, starts);
    tensor_drop_all(e, first, starts, start, last);
    return wrapped;
}

static struct tensor *decoder_input(struct engine *e, const struct decoder *m, const struct seq2seq *family)
{
    if (m->decoder_inputs) return tensor_ref(m->decoder_inputs);
    return family->wraps ? wrap_right(e, m) : shift_right(e, m);
}

struct tensor *seq2seq_body(struct engine *e, struct decoder *m, const struct seq2seq *family, struct tensor *inputs)
{
    if (e->halted) return e->poison;
    if (family->shifts_first) m->shifted = decoder_input(e, m, family);
    m->encoded = family->run(e, m, inputs, NULL);
    begin_cache(e, m, family);
    if (!family->shifts_first) m->shifted = decoder_input(e, m, family);
    return family->run(e, m, m->shifted, m->encoded);
}

/* --- floating-point operations ------------------------------------------------------------------- */

int64_t seq2seq_source(const struct decoder *m)
{
    return m->config->source_positions ? m->config->source_positions : m->setting->seq;
}

int64_t seq2seq_target(const struct decoder *m)
{
    return m->config->source_positions ? m->setting->seq : m->setting->target_seq;
}

/* Returns the number of tokens of a row that are multiplied by a parameter. */
static double tokens_of(const struct decoder *m, const struct tensor *x)
{
    const struct plim_model_config *c = m->config;
    double source = (double)seq2seq_source(m), target = (double)seq2seq_target(m);
    const struct decoder_layer *l = decoder_layer_of(m, x);
    if (!l) return x == m->head ? target : 0; /* 0: norms and embeddings */
    bool is_of_source = l - m->layers < c->encoder_layers || x == l->cross_k.weight || x == l->cross_v.weight;
    for (size_t i = 0; i < l->adapters.count; i++) {
        const struct lora_adapter *a = &l->adapters.list[i];
        bool is_key = a->weight == l->cross_k.weight || a->weight == l->cross_v.weight;
        is_of_source |= is_key && (x == a->a || x == a->b);
    }
    if (x == l->relative_bias) return 0;
    return is_of_source ? source : target;
}

double seq2seq_flops_per_token(const struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    const struct parameters *p = &m->parameters;
    double source = (double)seq2seq_source(m), target = (double)seq2seq_target(m), sum = 0;
    for (size_t i = 0; i < p->count; i++) sum += 6 * (double)tensor_elements(p->list[i]) * tokens_of(m, p->list[i]);
    for (size_t i = 0; i < p->frozen_count; i++)
        sum += 4 * (double)tensor_elements(p->frozen[i]) * tokens_of(m, p->frozen[i]);
    double scores = (double)c->encoder_layers * source * source +
                    (double)(c->layers - c->encoder_layers) * target * (target + source);
    sum += 12 * (double)(c->heads * c->head_dim) * scores;
    return sum / (m->config->source_positions ? target : source + target);
}
