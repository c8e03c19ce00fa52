/* The heads and losses of transformers' ForCausalLM, ForMaskedLM, ForSequenceClassification, ForTokenClassification and
 * ForQuestionAnswering. A decoder's head is one linear, which the family builds (decoder_build_head()). */
#include "model.h"
#include <math.h>

/* The traits of the encoders' heads. */
static const struct traits {
    bool bias_apart;   /* masked-lm: the output's bias is a parameter of the head, which the linear shares if weights
                        * are tied */
    bool bias_added;   /* masked-lm: the linear has no bias, and the head adds its own */
    bool bias_first;   /* masked-lm: the bias is tied before the weight */
    bool gelu;         /* the activation is always gelu (unless `tanh`), as a function and not as a module */
    bool nested;       /* masked-lm: the head and its transform are modules; classification: the activation is one */
    bool norm_first;   /* masked-lm: the norm is built before the linear; both form a module and have the embedding's
                        * width */
    bool own_function; /* the activation is classifier_activation; masked-lm: the loss in fp32; token tasks: a linear
                        * and a norm before the last linear */
    bool block_dropout; /* token-classification: dropout_residual, as in the blocks */
    bool pooler;       /* classification: the first linear belongs to the model */
    bool bare;           /* classification: one linear, which the family builds (vit) */
    bool drops_first;  /* classification: another dropout before the first linear */
    bool tanh;         /* classification: the activation; otherwise gelu, relu or classifier_activation */
    bool context;      /* classification: a pooler that begins with a dropout; labels below 0 are ignored */
} all_traits[PLIM_FAMILY_COUNT] = {
    [PLIM_FAMILY_BERT] = {.bias_apart = true, .nested = true, .pooler = true, .tanh = true},
    [PLIM_FAMILY_ROBERTA] = {.bias_apart = true, .gelu = true, .drops_first = true, .tanh = true},
    [PLIM_FAMILY_XLM_ROBERTA] = {.bias_apart = true, .gelu = true, .drops_first = true, .tanh = true},
    [PLIM_FAMILY_ELECTRA] = {.gelu = true, .norm_first = true, .drops_first = true},
    [PLIM_FAMILY_DISTILBERT] = {.block_dropout = true},
    [PLIM_FAMILY_MODERNBERT] = {.own_function = true},
    [PLIM_FAMILY_DEBERTA_V2] = {.bias_apart = true, .bias_first = true, .nested = true,
                                .block_dropout = true, .context = true},
    [PLIM_FAMILY_ESM] = {.bias_apart = true, .bias_added = true, .block_dropout = true, .drops_first = true,
                         .tanh = true},
    [PLIM_FAMILY_ALBERT] = {.bias_apart = true, .norm_first = true, .pooler = true, .tanh = true},
    [PLIM_FAMILY_MPNET] = {.bias_apart = true, .gelu = true, .block_dropout = true, .drops_first = true, .tanh = true},
    [PLIM_FAMILY_VIT] = {.bare = true},
};

static const struct traits *traits_of(const struct decoder *m)
{
    return &all_traits[m->config->family];
}

/* --- the modules ------------------------------------------------------------------------------ */

/* Returns the width of the last linear's input. */
static int64_t width_of(const struct decoder *m)
{
    bool is_embeddings = traits_of(m)->norm_first && m->config->task == PLIM_TASK_MASKED_LM;
    return is_embeddings ? m->config->word_embed_proj_dim : m->config->hidden_size;
}

/* Builds the head's own bias, which precedes the parameters of its modules: it becomes number `first`. */
static void build_own_bias(struct engine *e, struct decoder *m, size_t first)
{
    m->own_bias = nn_parameter(e, &m->parameters, INIT_ZEROS, SHAPE(m->config->vocab_size));
    nn_move_last(&m->parameters, first);
}

static void build_dense(struct engine *e, struct decoder *m)
{
    size_t first = m->parameters.count;
    const struct plim_model_config *c = m->config;
    struct parameters *p = &m->parameters;
    bool own = traits_of(m)->own_function, has_norm = own || c->task == PLIM_TASK_MASKED_LM;
    bool norm_first = traits_of(m)->norm_first;
    if (has_norm && norm_first) nn_norm_create(e, p, &m->head_norm, NORM_LAYER, width_of(m), true);
    if (has_norm && norm_first && traits_of(m)->bias_apart) build_own_bias(e, m, first);
    nn_linear_create(e, p, &m->head_dense, c->hidden_size, width_of(m), !own || c->classifier_bias);
    if (has_norm && !norm_first)
        nn_norm_create(e, p, &m->head_norm, NORM_LAYER, width_of(m), !own || c->norm_bias);
    if (!own) m->head_norm.epsilon = 1e-12;
}

static void build_output(struct engine *e, struct decoder *m, int64_t classes, bool bias)
{
    struct parameters *p = &m->parameters;
    m->head = nn_parameter(e, p, INIT_WEIGHT, SHAPE(classes, width_of(m)));
    if (bias) m->head_bias = nn_parameter(e, p, INIT_ZEROS, SHAPE(classes));
}

static void tie_bias(struct engine *e, struct decoder *m)
{
    if (!m->own_bias || !m->head_bias) return;
    nn_tie(e, &m->parameters, &m->head_bias, m->own_bias);
    nn_renew(e, m->head_bias);
}

/* _adjust_bias pads the bias of a tied linear by 0 elements, which copies it; a bias that is itself tied is copied
 * twice. */
void head_tie(struct engine *e, struct decoder *m)
{
    bool bias_first = traits_of(m)->bias_first;
    if (plim_task_classifies(m->config->task) || !m->config->tie_word_embeddings) return;
    if (bias_first) tie_bias(e, m);
    nn_tie(e, &m->parameters, &m->head, m->embedding);
    if (m->head_bias) nn_renew(e, m->head_bias);
    if (!bias_first) tie_bias(e, m);
}

/* True if there is a linear before the last one. */
static bool has_dense(const struct decoder *m)
{
    enum plim_task task = m->config->task;
    bool is_of_tokens = task == PLIM_TASK_TOKEN_CLASSIFICATION || task == PLIM_TASK_QUESTION_ANSWERING;
    return is_of_tokens ? traits_of(m)->own_function : !traits_of(m)->bare;
}

void head_build_pooler(struct engine *e, struct decoder *m)
{
    if (traits_of(m)->pooler && m->config->task == PLIM_TASK_CLASSIFICATION) build_dense(e, m);
}

void head_build(struct engine *e, struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    const struct traits *t = traits_of(m);
    size_t first = m->parameters.count;
    if (has_dense(m) && !m->head_dense.weight) build_dense(e, m);
    if (plim_task_classifies(c->task)) {
        build_output(e, m, c->labels, true);
        return;
    }
    build_output(e, m, c->vocab_size, !t->bias_added && (!t->own_function || c->decoder_bias));
    if (t->bias_apart && !m->own_bias) build_own_bias(e, m, first);
}

int64_t head_weights_a_row(const struct decoder *m)
{
    if (m->config->task != PLIM_TASK_CLASSIFICATION || plim_family_is_decoder(m->config->family)) return 0;
    if (traits_of(m)->bare) return tensor_elements(m->head);
    return tensor_elements(m->head_dense.weight) + tensor_elements(m->head);
}

/* --- the forward ------------------------------------------------------------------------------ */

static struct tensor *activation(struct engine *e, const struct decoder *m, struct tensor *x)
{
    const struct plim_model_config *c = m->config;
    const struct traits *t = traits_of(m);
    bool classifies = c->task == PLIM_TASK_CLASSIFICATION;
    if (t->own_function || (classifies && t->context)) return decoder_activation(e, c->classifier_activation, x);
    if (classifies && t->nested) nn_begin(e);
    if (classifies && t->tanh) x = op_tanh(e, x);
    else if (t->gelu) x = op_gelu(e, x, false);
    else if (classifies) x = op_relu(e, x);
    else return decoder_activation(e, c->activation, x);
    return classifies && t->nested ? nn_end(e, x) : x;
}

/* norm(activation(dense(x))); named */
static struct tensor *transform(struct engine *e, const struct decoder *m, struct tensor *x)
{
    struct tensor *h = tensor_keep(nn_linear(e, &m->head_dense, x));
    tensor_set(e, &h, activation(e, m, h));
    if (m->head_norm.weight) tensor_set(e, &h, nn_norm(e, &m->head_norm, h));
    return h;
}

struct linear head_linear(const struct decoder *m)
{
    return (struct linear){.weight = m->head,
                           .bias = m->head_bias,
                           .in = tensor_size(m->head, 1),
                           .out = tensor_size(m->head, 0),
                           .lora = m->head_lora};
}

/* Returns the logits (.., classes), the last linear's result; named */
static struct tensor *logits_of(struct engine *e, const struct decoder *m, struct tensor *x)
{
    const struct linear head = head_linear(m);
    enum plim_memory_class before = engine_set_class(e, PLIM_MEMORY_LOGITS);
    struct tensor *logits = tensor_keep(nn_linear(e, &head, x));
    engine_set_class(e, before);
    return logits;
}

/* Calls the hook that may replace the logits which the model returns. */
static void hook(struct engine *e, const struct decoder *m, struct tensor **logits)
{
    if (m->hooks && m->hooks->logits) tensor_set(e, logits, m->hooks->logits(e, m->hooks->context, *logits));
}

/* True if a loss is the sum divided by the number of labels in a step, which Trainer passes to the model, and not the
 * mean. */
static bool is_of_items(const struct decoder *m)
{
    bool is_given_count = m->setting->loop != PLIM_LOOP_LLAMAFACTORY_RM && m->setting->loop != PLIM_LOOP_SWIFT_SFT;
    return plim_loop_is_trainers(m->setting->loop) && is_given_count && decoder_accepts_num_items(m);
}

/* Scales the logits as the family does, without the softcap; with cut cross entropy it scales the head's input. */
static void scale(struct engine *e, const struct decoder *m, struct tensor **x)
{
    if (m->config->logits_scaling > 0) tensor_set(e, x, op_div_scalar(e, *x, m->config->logits_scaling));
    if (m->config->logit_scale > 0) tensor_set(e, x, op_mul_scalar(e, *x, m->config->logit_scale));
}

/* cce_forward() of cut-cross-entropy's transformers/llama.py and of its others */
static struct tensor *cut_loss(struct engine *e, const struct decoder *m, struct tensor *x, struct tensor *labels)
{
    const struct linear head = head_linear(m);
    struct tensor *h = tensor_ref(x);
    scale(e, m, &h);
    nn_access_weight(e, NULL, NN_MODEL, head.weight);
    if (head.bias) nn_access_weight(e, NULL, NN_MODEL, head.bias);
    struct tensor *loss = tensor_keep(nn_cut_causal_lm_loss(e, &head, h, labels, decoder_labels(m),
                                                            m->config->final_logit_softcapping, is_of_items(m)));
    tensor_drop(e, h);
    return loss;
}

/* hidden_states[:, logits_to_keep, :]; named */
static struct tensor *kept_of(struct engine *e, const struct decoder *m, struct tensor *x)
{
    if (!m->kept_tokens || e->halted) return tensor_ref(x);
    if (!m->kept) return tensor_keep(op_slice_end(e, x, 1, m->kept_tokens));
    int64_t width = tensor_size(x, -1), tokens = tensor_elements(x) / width;
    struct tensor *rows = op_rows_where(e, op_view(e, x, SHAPE(tokens, width)), m->kept, m->kept_tokens);
    return tensor_keep(op_view(e, rows, SHAPE(1, m->kept_tokens, width)));
}

/* The functions below return the loss, named, NULL if there are no labels, and store the logits in *logits, named;
 * Liger's fused loss and cut cross entropy leave *logits NULL. */
static struct tensor *causal_lm_loss(struct engine *e, struct decoder *m, struct tensor *x,
                                     struct tensor *labels, struct tensor **logits)
{
    bool is_sum = is_of_items(m);
    struct plim_liger_patches liger = decoder_liger(m);
    if (liger.loss == PLIM_LIGER_LOSS_FUSED && labels) {
        nn_access_weight(e, NULL, NN_MODEL, m->head);
        return tensor_keep(nn_liger_causal_lm_loss(e, x, m->head, labels, liger.loss_budget,
                                                   m->config->final_logit_softcapping, is_sum));
    }
    if (m->setting->cut_cross_entropy && labels) return cut_loss(e, m, x, labels);
    struct tensor *kept = kept_of(e, m, x);
    *logits = logits_of(e, m, kept);
    tensor_drop(e, kept);
    scale(e, m, logits);
    if (m->config->final_logit_softcapping > 0)
        nn_softcap(e, logits, m->config->final_logit_softcapping);
    if (m->config->family == PLIM_FAMILY_NEMOTRON_H) tensor_set(e, logits, op_to(e, *logits, PLIM_F32));
    hook(e, m, logits);
    if (!labels) return NULL;
    return tensor_keep(nn_causal_lm_loss(e, *logits, labels, liger.loss == PLIM_LIGER_LOSS_OF_LOGITS, is_sum));
}

/* Returns the mean cross entropy of logits (.., classes) and as many labels; named */
static struct tensor *cross_entropy(struct engine *e, struct tensor *logits, struct tensor *labels)
{
    if (e->halted) return e->poison;
    int64_t classes = tensor_size(logits, -1), rows = tensor_elements(logits) / classes;
    return tensor_keep(op_cross_entropy(e, op_view(e, logits, SHAPE(rows, classes)),
                                        op_view(e, labels, SHAPE(rows))));
}

/* Returns the mean squared error of logits (rows, 1) and as many numbers if there is one class, otherwise the cross
 * entropy; named */
static struct tensor *row_loss(struct engine *e, const struct decoder *m, struct tensor *logits, struct tensor *labels)
{
    if (m->config->labels != 1 || e->halted) return cross_entropy(e, logits, labels);
    int64_t rows = tensor_elements(logits);
    return tensor_keep(op_mse_loss(e, op_view(e, logits, rows > 1, &rows), op_view(e, labels, rows > 1, &rows)));
}

/* fixed_cross_entropy(): divides a sum by the number of labels; a mean is returned unchanged; named */
static struct tensor *of_items(struct engine *e, const struct decoder *m, struct tensor *loss)
{
    if (is_of_items(m) && !e->halted) tensor_set(e, &loss, op_div_scalar(e, loss, 1));
    return loss;
}

/* The head of a masked language model; floating */
static struct tensor *predict(struct engine *e, const void *module, struct tensor *x)
{
    const struct decoder *m = module;
    bool is_module = traits_of(m)->nested || traits_of(m)->norm_first;
    if (is_module) nn_begin(e);
    struct tensor *h = transform(e, m, x);
    if (is_module) tensor_set(e, &h, nn_end(e, h));
    struct tensor *logits = logits_of(e, m, h);
    if (traits_of(m)->bias_added) tensor_set(e, &logits, op_add(e, logits, m->own_bias));
    tensor_drop(e, h);
    return tensor_yield(logits);
}

static struct tensor *masked_lm_loss(struct engine *e, struct decoder *m, struct tensor *x,
                                     struct tensor *labels, struct tensor **logits)
{
    bool nested = traits_of(m)->nested;
    if (nested) nn_begin(e);
    *logits = tensor_keep(m->own_bias ? nn_run(e, (struct tensor *const[]){m->own_bias, NULL}, NN_HEAD, predict, m, x)
                                      : predict(e, m, x));
    if (nested) tensor_set(e, logits, nn_end(e, *logits));
    hook(e, m, logits);
    if (!labels) return NULL;
    struct tensor *scores =
        tensor_hold(traits_of(m)->own_function ? op_to(e, *logits, PLIM_F32) : *logits);
    struct tensor *loss = cross_entropy(e, scores, labels);
    if (traits_of(m)->own_function) loss = of_items(e, m, loss);
    tensor_drop(e, scores);
    return loss;
}

/* Returns (x * mask).sum(1) / mask.sum(1), with the attention mask, or ones if there is none, (B, S); named */
static struct tensor *mean_of_row(struct engine *e, const struct decoder *m, struct tensor *x)
{
    if (e->halted) return e->poison;
    struct tensor *mask = m->attention_mask
                              ? tensor_ref(m->attention_mask)
                              : tensor_keep(op_full(e, PLIM_BOOL, 2, x->a.shape, 1));
    struct tensor *sum = tensor_keep(op_sum_dim(e, op_mul(e, x, op_unsqueeze(e, mask, -1)), 1));
    struct tensor *count = op_reduce(e, mask, 2, true, PLIM_BINARY_ADD, 1, PLIM_I64);
    struct tensor *y = tensor_keep(op_div(e, tensor_yield(sum), count));
    tensor_drop(e, mask);
    return y;
}

/* Returns the input of the classification: each row's mean or first token; named */
static struct tensor *pooled_input(struct engine *e, const struct decoder *m, struct tensor *x)
{
    if (m->config->classifier_pooling == PLIM_POOLING_MEAN) return mean_of_row(e, m, x);
    return tensor_keep(op_select(e, x, 1, 0));
}

void head_pool(struct engine *e, struct decoder *m, struct tensor *x)
{
    bool pools = traits_of(m)->pooler && m->config->task == PLIM_TASK_CLASSIFICATION;
    m->pooled = NULL;
    if (!pools) return;
    nn_begin(e);
    struct tensor *first = pooled_input(e, m, x);
    m->pooled = transform(e, m, first);
    tensor_set(e, &m->pooled, nn_end(e, m->pooled));
    tensor_drop(e, first);
}

/* Returns the index of each row's last token that is not padding, (B) int64, named. Computed in int32, as in
 * GenericForSequenceClassification.forward() (modeling_layers.py); held: its variables, named */
static struct tensor *last_tokens(struct engine *e, const struct decoder *m, struct tensor *held[2])
{
    if (e->halted) return e->poison;
    double padding = m->config->has_padding_idx ? (double)m->config->pad_token_id : 0;
    struct tensor *is_token = op_compare_scalar(e, PLIM_BINARY_NE, m->inputs, padding);
    held[0] = tensor_keep(op_to(e, is_token, PLIM_I32));
    held[1] = tensor_keep(op_arange(e, PLIM_I32, tensor_size(m->inputs, 1), 0, 1));
    return tensor_keep(op_argmax_last(e, op_mul(e, held[1], held[0])));
}

/* x[arange(1), -1] of x (1, S, classes): (1, classes), floating */
static struct tensor *only_row(struct engine *e, struct tensor *x)
{
    struct tensor *order = op_arange(e, PLIM_I64, 1, 0, 1);
    return op_rows(e, op_select(e, x, 1, e->halted ? 0 : tensor_size(x, 1) - 1), order);
}

/* The loss of a decoder's classification: logits are computed for all tokens, and those of each row's last one are
 * used. */
static struct tensor *last_token_loss(struct engine *e, const struct decoder *m, struct tensor *x,
                                      struct tensor *labels, struct tensor **logits)
{
    struct tensor *all = logits_of(e, m, x), *held[2] = {NULL}, *last = NULL;
    int64_t rows = e->halted ? 0 : x->a.shape[0];
    bool has_no_padding = m->config->pad_token_id == PLIM_NO_TOKEN && rows == 1; /* several rows need one */
    if (!has_no_padding) last = last_tokens(e, m, held);
    *logits = tensor_keep(last ? op_rows_at(e, all, last) : only_row(e, all));
    hook(e, m, logits);
    struct tensor *loss = labels ? row_loss(e, m, *logits, labels) : NULL;
    tensor_drop_all(e, all, held[0], held[1], last);
    return loss;
}

/* ForConditionalGeneration: labels are not shifted, because the decoder's inputs are */
static struct tensor *seq2seq_loss(struct engine *e, struct decoder *m, struct tensor *x,
                                   struct tensor *labels, struct tensor **logits)
{
    bool scales = m->config->scales_outputs;
    struct tensor *h = scales ? tensor_keep(op_mul_scalar(e, x, 1 / sqrt((double)m->config->hidden_size)))
                              : tensor_ref(x);
    *logits = logits_of(e, m, h);
    if (m->logits_bias) tensor_set(e, logits, op_add(e, *logits, m->logits_bias));
    hook(e, m, logits);
    struct tensor *loss = labels ? cross_entropy(e, *logits, labels) : NULL;
    tensor_drop(e, h);
    return loss;
}

/* ContextPooler; named */
static struct tensor *context_of(struct engine *e, const struct decoder *m, struct tensor *x)
{
    nn_begin(e);
    struct tensor *first = tensor_keep(op_select(e, x, 1, 0));
    tensor_set(e, &first, nn_dropout(e, first, m->config->dropout_pooler));
    struct tensor *y = transform(e, m, first);
    tensor_drop(e, first);
    tensor_set(e, &y, nn_end(e, y));
    return y;
}

/* Returns the cross entropy of the rows whose label is not negative, which holds for all rows; named */
static struct tensor *labelled_loss(struct engine *e, struct tensor *logits, struct tensor *labels)
{
    if (e->halted) return e->poison;
    int64_t rows = logits->a.shape[0];
    struct tensor *is = op_compare_scalar(e, PLIM_BINARY_GE, labels, 0);
    struct tensor *index = tensor_keep(op_coordinates(e, is, rows));
    struct tensor *indices = e->halted ? tensor_ref(e->poison) : tensor_keep(op_view(e, index, 1, &rows));
    struct tensor *known = tensor_keep(op_gather_rows(e, logits, indices));
    struct tensor *targets = tensor_keep(op_gather_last(e, labels, indices));
    struct tensor *wide = tensor_hold(op_to(e, known, PLIM_F32));
    struct tensor *loss = cross_entropy(e, wide, targets);
    tensor_drop_all(e, index, indices, known, targets, wide);
    return loss;
}

/* DebertaV2ForSequenceClassification */
static struct tensor *context_loss(struct engine *e, struct decoder *m, struct tensor *x,
                                   struct tensor *labels, struct tensor **logits)
{
    struct tensor *pooled = context_of(e, m, x);
    tensor_set(e, &pooled, nn_dropout(e, pooled, m->config->dropout_classifier));
    *logits = logits_of(e, m, pooled);
    hook(e, m, logits);
    struct tensor *loss = labels ? labelled_loss(e, *logits, labels) : NULL;
    tensor_drop(e, pooled);
    return loss;
}

static struct tensor *classification_loss(struct engine *e, struct decoder *m, struct tensor *x,
                                          struct tensor *labels, struct tensor **logits)
{
    if (traits_of(m)->context) return context_loss(e, m, x, labels, logits);
    if (plim_family_is_decoder(m->config->family)) return last_token_loss(e, m, x, labels, logits);
    double p = m->config->dropout_classifier;
    bool is_module = traits_of(m)->drops_first; /* all of this is one module, which begins with a dropout */
    struct tensor *input = m->pooled, *h = m->pooled ? tensor_ref(input) : NULL;
    if (is_module) nn_begin(e);
    if (!h) {
        input = pooled_input(e, m, x);
        struct tensor *given = tensor_ref(input);
        if (is_module) tensor_set(e, &given, nn_dropout(e, given, p));
        h = has_dense(m) ? transform(e, m, given) : tensor_ref(given);
        tensor_drop(e, given);
    }
    if (!traits_of(m)->bare) tensor_set(e, &h, nn_dropout(e, h, p));
    *logits = logits_of(e, m, h);
    if (is_module) tensor_set(e, logits, nn_end(e, *logits));
    hook(e, m, logits);
    struct tensor *loss = labels ? row_loss(e, m, *logits, labels) : NULL;
    bool counts = traits_of(m)->bare && m->config->labels > 1;
    if (loss && counts) loss = of_items(e, m, loss);
    tensor_drop_all(e, h, input);
    return loss;
}

/* --- a head for each token -------------------------------------------------------------------- */

static double dropout_of_tokens(const struct decoder *m)
{
    const struct plim_model_config *c = m->config;
    if (c->task == PLIM_TASK_TOKEN_CLASSIFICATION)
        return traits_of(m)->block_dropout ? c->dropout_residual : c->dropout_classifier;
    return traits_of(m)->own_function ? c->dropout_classifier : c->dropout_answers;
}

/* Returns the last linear's input, which lives until the forward ends; named */
static struct tensor *input_of_tokens(struct engine *e, const struct decoder *m, struct tensor *x)
{
    struct tensor *h = has_dense(m) ? transform(e, m, x) : tensor_ref(x);
    tensor_set(e, &h, nn_dropout(e, h, dropout_of_tokens(m)));
    return h;
}

static struct tensor *token_loss(struct engine *e, struct decoder *m, struct tensor *x, struct tensor *labels,
                                 struct tensor **logits)
{
    struct tensor *h = input_of_tokens(e, m, x);
    *logits = logits_of(e, m, h);
    hook(e, m, logits);
    struct tensor *loss = labels ? cross_entropy(e, *logits, labels) : NULL;
    tensor_drop(e, h);
    return loss;
}

/* Splits the results of the last linear into each token's first and second number, (B, S) each; named */
static void part_numbers(struct engine *e, struct tensor *all, struct tensor *parts[2])
{
    static const int64_t one[] = {1, 1};
    struct tensor *columns[2] = {NULL};
    op_split(e, all, -1, 2, one, columns);
    for (int i = 0; i < 2; i++) tensor_keep(columns[i]);
    for (int i = 0; i < 2; i++) {
        const struct plim_array *a = &columns[i]->a;
        parts[i] = e->halted ? e->poison
                             : tensor_keep(op_contiguous(e, op_view(e, columns[i], SHAPE(a->shape[0], a->shape[1]))));
        tensor_drop(e, columns[i]);
    }
}

/* The labels are the starts of answers. The model's output has the logits of the ends (m->encoded) beside those of the
 * starts. */
static struct tensor *answer_loss(struct engine *e, struct decoder *m, struct tensor *x, struct tensor *labels,
                                  struct tensor **logits)
{
    struct tensor *h = input_of_tokens(e, m, x), *all = logits_of(e, m, h), *parts[2];
    struct tensor *positions[2] = {labels, m->answer_ends}, *losses[2] = {NULL}, *loss = NULL;
    part_numbers(e, all, parts);
    int64_t tokens = e->halted ? 0 : tensor_size(x, 1);
    for (int i = 0; i < 2 && labels; i++) positions[i] = tensor_keep(op_clamp(e, positions[i], 0, (double)tokens));
    for (int i = 0; i < 2 && labels; i++) losses[i] = cross_entropy(e, parts[i], positions[i]);
    if (labels) loss = tensor_keep(op_div_scalar(e, op_add(e, losses[0], losses[1]), 2));
    *logits = parts[0];
    m->encoded = parts[1];
    if (labels) tensor_drop_all(e, positions[0], positions[1], losses[0], losses[1]);
    tensor_drop_all(e, h, all);
    return loss;
}

struct tensor *head_loss(struct engine *e, struct decoder *m, struct tensor *x, struct tensor *labels,
                         struct tensor **logits)
{
    static struct tensor *(*const losses[PLIM_TASK_COUNT])(
        struct engine *, struct decoder *, struct tensor *, struct tensor *, struct tensor **) = {
        [PLIM_TASK_CAUSAL_LM] = causal_lm_loss,
        [PLIM_TASK_MASKED_LM] = masked_lm_loss,
        [PLIM_TASK_CLASSIFICATION] = classification_loss,
        [PLIM_TASK_SEQ2SEQ_LM] = seq2seq_loss,
        [PLIM_TASK_TOKEN_CLASSIFICATION] = token_loss,
        [PLIM_TASK_QUESTION_ANSWERING] = answer_loss,
    };
    *logits = NULL;
    return losses[m->config->task](e, m, x, labels, logits);
}
