/* Micro-batches: random tokens, images, sounds and labels, and the tensors that describe padding and documents. */
#include "model.h"
#include "workloads/spec/spec_vision.h"
#include <math.h>

/* Returns images in the weights' type, or in fp32 as transformers' Trainer reads them from a data set, with a label for
 * each. */
static struct batch images(struct engine *e, const struct decoder *m, uint64_t seed)
{
    const struct plim_model_config *c = m->config;
    int64_t rows = m->setting->micro_batch;
    enum plim_dtype dtype = plim_loop_is_trainers(m->setting->loop) ? PLIM_F32 : decoder_parameter_dtype(m->setting);
    struct batch b = {
        .inputs = tensor_keep(tensor_empty(e, dtype,
                                           SHAPE(rows, c->channels, c->image_size, c->image_size))),
        .labels = tensor_keep(tensor_empty(e, PLIM_I64, 1, &rows))};
    op_random_(e, b.inputs, 1, seed);
    op_random_(e, b.labels, (double)c->labels, seed - 1);
    return b;
}

/* Writes `value` to `rows` runs of `columns` elements of x; the first starts at element `first`, each next one `step`
 * elements further. The host does this in the real program, so a simulated device, for which it takes no time, skips
 * it. */
static void set_part(struct engine *e, struct tensor *x, double value, int64_t first, int64_t rows, int64_t step,
                     int64_t columns)
{
    if (e->halted || !x || e->device->info.simulated) return;
    const int64_t shape[] = {rows, columns}, stride[] = {step, 1};
    struct tensor *part = tensor_keep(tensor_alias(e, x, 2, shape, stride, first));
    op_fill_(e, part, value);
    tensor_drop(e, part);
}

/* Writes first, first + step, ... to `count` elements of x, from element `start` on and `apart` elements apart. */
static void count_in(struct engine *e, struct tensor *x, int64_t count, int64_t start, int64_t apart, double first,
                     double step)
{
    if (e->halted || !count) return;
    struct tensor *range = tensor_keep(tensor_alias(e, x, 1, &count, &apart, start));
    struct plim_op op = {.kind = PLIM_OP_ARANGE, .n_out = 1, .alpha = step, .beta = first, .out = {&range->a}};
    engine_launch(e, &op);
    tensor_drop(e, range);
}

struct documents decoder_split_documents(const struct decoder *m, int64_t tokens)
{
    struct documents d = {.longest = decoder_longest_document(m)};
    int64_t all = decoder_documents(m), more = d.longest - 1;
    d.of_longest = more && (tokens - all) / more < all ? (tokens - all) / more : all;
    int64_t left = tokens - d.of_longest * d.longest, others = all - d.of_longest;
    d.single = others ? others - 1 : 0;
    d.rest = left - d.single;
    return d;
}

/* Copies the first `length` positions of the first document to `rows` consecutive documents, from element `start`
 * on. */
static void repeat_positions(struct engine *e, struct tensor *positions, int64_t start, int64_t rows, int64_t length)
{
    const int64_t shape[] = {rows, length};
    if (rows < 1 || !length || e->halted) return;
    struct tensor *first = tensor_keep(tensor_alias(e, positions, 2, shape, (const int64_t[]){0, 1}, 0));
    struct tensor *later = tensor_keep(tensor_alias(e, positions, 2, shape, (const int64_t[]){length, 1}, start));
    op_copy_(e, later, first);
    tensor_drop_all(e, first, later);
}

/* Returns positions (1, tokens) int64, which start at 0 in each document; named */
static struct tensor *document_positions(struct engine *e, int64_t tokens, struct documents d)
{
    struct tensor *positions = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(1, tokens)));
    count_in(e, positions, d.longest, 0, 1, 0, 1);
    int64_t behind = d.of_longest * d.longest;
    repeat_positions(e, positions, d.longest, d.of_longest - 1, d.longest);
    repeat_positions(e, positions, behind, d.rest > 0, d.rest);
    repeat_positions(e, positions, behind + d.rest, d.single, 1);
    return positions;
}

/* Writes each token's document number: `rows` documents of `length` tokens from element `start` on, the first one with
 * the number `first`. Skipped on a simulated device, like set_part(). Needs no additional memory: a document's other
 * tokens are copies of its first one. */
static void number_tokens(struct engine *e, struct tensor *document, int64_t start, int64_t rows, int64_t length,
                          int64_t first)
{
    const int64_t shape[] = {rows, length - 1};
    if (e->halted || !rows || e->device->info.simulated) return;
    count_in(e, document, rows, start, length, (double)first, 1);
    if (length < 2) return;
    struct tensor *firsts = tensor_keep(tensor_alias(e, document, 2, shape, (const int64_t[]){length, 0}, start));
    struct tensor *others = tensor_keep(tensor_alias(e, document, 2, shape, (const int64_t[]){length, 1}, start + 1));
    op_copy_(e, others, firsts);
    tensor_drop_all(e, firsts, others);
}

/* Adds the tensors that describe the documents of a packed row: positions, and with TRL's collator
 * (DataCollatorForLanguageModeling with padding_free) cu_seq_lens_q, cu_seq_lens_k and seq_idx, in this order. The
 * first token of a document is not a label. */
static void add_documents(struct engine *e, const struct decoder *m, struct batch *b, bool own_labels)
{
    int64_t tokens = tensor_elements(b->inputs), ends = decoder_documents(m) + 1;
    const struct documents d = decoder_split_documents(m, tokens);
    int64_t behind = d.of_longest * d.longest, last = behind + d.rest;
    b->positions = document_positions(e, tokens, d);
    if (own_labels) {
        set_part(e, b->labels, PLIM_IGNORED_TARGET, 0, d.of_longest, d.longest, 1);
        set_part(e, b->labels, PLIM_IGNORED_TARGET, behind, d.rest > 0, 1, 1);
        set_part(e, b->labels, PLIM_IGNORED_TARGET, last, d.single, 1, 1);
    }
    if (m->setting->loop != PLIM_LOOP_TRL_SFT) return;
    for (int i = 0; i < 2; i++) {
        b->ends[i] = tensor_keep(tensor_empty(e, PLIM_I32, 1, &ends));
        count_in(e, b->ends[i], d.of_longest + 1, 0, 1, 0, (double)d.longest);
        count_in(e, b->ends[i], ends - 1 - d.of_longest, d.of_longest + 1, 1, (double)last, 1);
    }
    b->document = tensor_keep(op_full(e, PLIM_I32, SHAPE(1, tokens), 0));
    number_tokens(e, b->document, 0, d.of_longest, d.longest, 0);
    number_tokens(e, b->document, behind, d.rest > 0, d.rest, d.of_longest);
    number_tokens(e, b->document, last, d.single, 1, d.of_longest + 1);
}

/* Returns the patches of all images as rows; or the images themselves, if all have one size, or for pixtral. Named */
static struct tensor *pixels_of(struct engine *e, const struct plim_vision *v, const struct plim_images *images,
                                int64_t count)
{
    int64_t numbers = v->channels * v->frames * v->patch_size * v->patch_size, patches = plim_image_patches(v, images);
    bool are_rows = !v->image_size && !v->row_ends;
    if (are_rows) return tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(count * patches, numbers)));
    int64_t height = v->image_size ? v->image_size : images->height, width = v->image_size ? height : images->width;
    int64_t tiles = plim_image_tiles(v, images);
    return tensor_keep(tensor_empty(e, PLIM_F32, SHAPE(count * tiles, v->channels, height, width)));
}

/* Writes `value` to the image tokens of each row. For pixtral, the token after each line of an image is text. */
static void set_images(struct engine *e, const struct decoder *m, struct tensor *x, double value)
{
    const struct plim_train_setting *s = m->setting;
    const struct plim_vision *v = &m->config->vision;
    int64_t tokens = plim_image_tokens(v, &s->images), extent = plim_image_extent(v, &s->images);
    int64_t lines = extent - tokens, columns = lines ? tokens / lines : tokens;
    for (int64_t i = 0; i < s->images.count; i++)
        for (int64_t line = 0; line == 0 || line < lines; line++)
            set_part(e, x, value, PLIM_IMAGE_LEAD + i * (extent + PLIM_IMAGE_GAP) + line * (columns + 1),
                     s->micro_batch, s->seq, columns);
}

/* Returns rows with images, as a processor and a collator make them, with labels of their own. Image tokens are marked
 * by token types; for some towers only by the last token of the vocabulary, which no other token has. */
static struct batch rows_with_images(struct engine *e, const struct decoder *m, uint64_t seed)
{
    const struct plim_train_setting *s = m->setting;
    const struct plim_vision *v = &m->config->vision;
    int64_t rows = s->micro_batch, images = rows * s->images.count;
    double words = (double)(m->config->vocab_size - (v->by_ids ? 1 : 0));
    struct batch b = {.inputs = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows, s->seq)))};
    op_random_(e, b.inputs, words, seed);
    b.mask = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, s->seq), 1));
    if (!v->by_ids) b.token_types = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, s->seq), 0));
    set_images(e, m, v->by_ids ? b.inputs : b.token_types, v->by_ids ? words : 1);
    b.pixels = pixels_of(e, v, &s->images, images);
    op_random_(e, b.pixels, 1, seed + 1);
    if (!v->image_size) b.grids = tensor_keep(op_full(e, PLIM_I64, SHAPE(images, v->row_ends ? 2 : 3), 1));
    b.labels = tensor_keep(tensor_empty_like(e, b.inputs, PLIM_I64));
    op_random_(e, b.labels, words, seed); /* equal to the inputs */
    int64_t last = rows * s->seq - 1;
    if (decoder_hides_padding(s)) set_part(e, b.mask, 0, last, 1, 1, 1);
    if (decoder_hides_padding(s)) set_part(e, b.labels, PLIM_IGNORED_TARGET, last, 1, 1, 1);
    return b;
}

/* Writes the decoder's input: the start token, then the labels without the last one, none of which is masked yet.
 * Skipped on a simulated device, like set_part(). */
static void shift_labels(struct engine *e, const struct decoder *m, const struct batch *b)
{
    int64_t rows = m->setting->micro_batch, length = m->setting->target_seq;
    const int64_t shape[] = {rows, length - 1}, stride[] = {length, 1};
    set_part(e, b->decoder_inputs, (double)m->config->decoder_start, 0, rows, length, 1);
    if (e->halted || length < 2 || e->device->info.simulated) return;
    struct tensor *from = tensor_keep(tensor_alias(e, b->labels, 2, shape, stride, 0));
    struct tensor *to = tensor_keep(tensor_alias(e, b->decoder_inputs, 2, shape, stride, 1));
    op_copy_(e, to, from);
    tensor_drop_all(e, from, to);
}

/* Returns sources and targets, as made by a tokenizer and DataCollatorForSeq2Seq, which shifts the labels if it is
 * given the model, as programs with Trainer do. */
static struct batch sources_and_targets(struct engine *e, const struct decoder *m, uint64_t seed)
{
    const struct plim_train_setting *s = m->setting;
    double tokens = (double)m->config->vocab_size;
    int64_t rows = s->micro_batch, last = decoder_hides_padding(s) ? rows : 0; /* the row that ends in padding */
    bool is_trainers = plim_loop_is_trainers(s->loop);
    struct batch b = {.inputs = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows, s->seq)))};
    op_random_(e, b.inputs, tokens, seed);
    bool has_mask = is_trainers || s->padding != PLIM_PADDING_NO;
    if (has_mask) b.mask = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, s->seq), 1));
    if (last) set_part(e, b.mask, 0, last * s->seq - 1, 1, 1, 1);
    b.labels = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows, s->target_seq)));
    op_random_(e, b.labels, tokens, seed - 1);
    if (is_trainers) b.decoder_inputs = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, s->target_seq), 0));
    if (is_trainers) shift_labels(e, m, &b);
    if (last) set_part(e, b.labels, PLIM_IGNORED_TARGET, last * s->target_seq - 1, 1, 1, 1);
    return b;
}

/* Adds the labels of a head that classifies: a class for each row or each token; a number for each row, if there is one
 * class; or where an answer begins and ends. */
static void add_classes(struct engine *e, const struct decoder *m, struct batch *b, uint64_t seed)
{
    bool is_of_tokens = m->config->task == PLIM_TASK_TOKEN_CLASSIFICATION;
    bool finds_answers = m->config->task == PLIM_TASK_QUESTION_ANSWERING;
    double classes = (double)(finds_answers ? m->setting->seq : m->config->labels);
    bool is_number = m->config->task == PLIM_TASK_CLASSIFICATION && m->config->labels == 1;
    enum plim_dtype dtype = is_number ? PLIM_F32 : PLIM_I64;
    b->labels = tensor_keep(is_of_tokens ? tensor_empty_like(e, b->inputs, dtype)
                                         : tensor_empty(e, dtype, 1, &m->setting->micro_batch));
    op_random_(e, b->labels, classes, seed);
    if (!finds_answers) return;
    b->answer_ends = tensor_keep(tensor_empty_like(e, b->labels, PLIM_I64));
    op_random_(e, b->answer_ends, classes, seed - 1);
}

/* Returns sounds in the weights' type, or in fp32 as Trainer reads them from a data set, and labels, which the model
 * shifts. */
static struct batch sounds(struct engine *e, const struct decoder *m, uint64_t seed)
{
    const struct plim_model_config *c = m->config;
    const struct plim_train_setting *s = m->setting;
    enum { MOMENTS = 2 }; /* frames per position */
    int64_t rows = s->micro_batch, last = decoder_hides_padding(s) ? rows * s->seq - 1 : -1;
    bool is_wide = plim_loop_is_trainers(s->loop) || e->halted;
    enum plim_dtype dtype = is_wide ? PLIM_F32 : (enum plim_dtype)m->hearing[0].weight->a.dtype;
    struct batch b = {
        .inputs = tensor_keep(tensor_empty(e, dtype, SHAPE(rows, c->mel_bins, MOMENTS * c->source_positions))),
        .labels = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows, s->seq)))};
    op_random_(e, b.inputs, 1, seed);
    op_random_(e, b.labels, (double)c->vocab_size, seed - 1);
    if (last >= 0) set_part(e, b.labels, PLIM_IGNORED_TARGET, last, 1, 1, 1);
    return b;
}

struct batch decoder_batch(struct engine *e, const struct decoder *m, uint64_t seed)
{
    const struct plim_train_setting *s = m->setting;
    bool classifies = plim_task_classifies(m->config->task), in_one = s->packing == PLIM_PACKING_ONE_ROW;
    int64_t rows = s->micro_batch * plim_loop_rows(s->loop), length = s->seq;
    if (in_one) length *= rows, rows = 1;
    if (m->config->patch_size) return images(e, m, seed);
    if (m->config->mel_bins) return sounds(e, m, seed);
    if (m->config->encoder_layers) return sources_and_targets(e, m, seed);
    if (m->config->vision.layers && s->images.count) return rows_with_images(e, m, seed);
    struct batch b = {.inputs = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(rows, length)))};
    op_random_(e, b.inputs, (double)m->config->vocab_size, seed);
    bool own_labels = s->padding != PLIM_PADDING_NO || (in_one && plim_loop_is_trainers(s->loop));
    int64_t last = decoder_hides_padding(s) ? rows * length - 1 : -1; /* the padding token; -1: none */
    bool has_mask = plim_loop_has_own_loss(s->loop) || s->loop == PLIM_LOOP_SWIFT_SFT;
    if (s->padding != PLIM_PADDING_NO || (has_mask && !in_one))
        b.mask = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, s->seq), 1));
    if (last >= 0) set_part(e, b.mask, 0, last, 1, 1, 1);
    bool has_completions = s->loop == PLIM_LOOP_TRL_DPO || s->loop == PLIM_LOOP_TRL_KTO;
    if (has_completions || s->loop == PLIM_LOOP_AXOLOTL_DPO) {
        b.completions = tensor_keep(op_full(e, PLIM_I64, SHAPE(rows, s->seq), 1));
    } else if (plim_loop_is_reward(s->loop)) {
        return b; /* RewardTrainer's rows have no labels */
    } else if (classifies) {
        add_classes(e, m, &b, seed - 1);
        if (last >= 0 && m->config->task == PLIM_TASK_TOKEN_CLASSIFICATION)
            set_part(e, b.labels, PLIM_IGNORED_TARGET, last, 1, 1, 1);
    } else if (m->config->task == PLIM_TASK_CAUSAL_LM && own_labels) {
        b.labels = tensor_keep(tensor_empty_like(e, b.inputs, PLIM_I64));
        op_random_(e, b.labels, (double)m->config->vocab_size, seed); /* equal to the inputs */
        if (last >= 0) set_part(e, b.labels, PLIM_IGNORED_TARGET, last, 1, 1, 1);
    } else {
        b.labels = b.inputs;
    }
    if (in_one) add_documents(e, m, &b, own_labels && b.labels != b.inputs && !classifies);
    return b;
}

/* --- by transformers' Trainer and TRL's -------------------------------------------------------- */

/* Masks the labels that decoder_labels() does not count and decoder_batch() has not masked: those of prompts, and for
 * pairs a last token that is padding. */
static void hide_labels(struct engine *e, const struct decoder *m, const struct batch *batch)
{
    const struct plim_train_setting *s = m->setting;
    struct tensor *chosen = batch->completions ? batch->completions : batch->labels;
    double hidden = batch->completions ? 0 : PLIM_IGNORED_TARGET;
    if (e->halted) return;
    int64_t tokens = tensor_elements(batch->inputs);
    /* the first token of ms-swift's rows is not a label */
    int64_t prompt = plim_loop_is_swift(s->loop) ? decoder_unlearned(m) : s->prompt;
    if (prompt) set_part(e, chosen, hidden, 0, tokens / s->seq, s->seq, prompt);
    if (decoder_hides_padding(s)) set_part(e, batch->completions, 0, tokens - 1, 1, 1, 1);
}

/* Adds the precomputed log-probabilities of the reference: those of a model that gives all tokens the same
 * probability. */
static void add_reference(struct engine *e, const struct decoder *m, struct batch *batch)
{
    const struct plim_train_setting *s = m->setting;
    if (!s->precomputed_reference) return;
    double answer = (double)(s->seq - decoder_unlearned(m));
    double known = -answer * log((double)m->config->vocab_size);
    for (int i = 0; i < 2; i++) {
        batch->known[i] = tensor_keep(tensor_empty(e, PLIM_F32, 1, &s->micro_batch));
        set_part(e, batch->known[i], known, 0, 1, 1, s->micro_batch);
    }
}

/* Adds the rows from which the KL is estimated, and which rows are desirable. */
static void add_kto(struct engine *e, const struct decoder *m, struct batch *b, uint64_t seed)
{
    int64_t rows = m->setting->micro_batch;
    for (int i = 0; i < BATCH_KL; i++) {
        b->kl[i] = tensor_keep(tensor_empty_like(e, b->inputs, PLIM_I64));
        if (i == 1 || (i == 2 && b->completions)) op_fill_(e, b->kl[i], 1);
        else op_random_(e, b->kl[i], (double)m->config->vocab_size, seed - 1);
    }
    if (m->setting->loop == PLIM_LOOP_SWIFT_KTO) { /* its tags stay on the host */
        set_part(e, b->kl[2], PLIM_IGNORED_TARGET, 0, rows, m->setting->seq, decoder_unlearned(m));
        return;
    }
    if (m->setting->loop == PLIM_LOOP_TRL_KTO) { /* completions are rotated: the short one is in the first row */
        set_part(e, b->kl[2], 0, 0, rows, m->setting->seq, m->setting->prompt);
        if (decoder_hides_padding(m->setting)) set_part(e, b->kl[1], 0, m->setting->seq - 1, 1, 1, 1);
        if (decoder_hides_padding(m->setting)) set_part(e, b->kl[2], 0, m->setting->seq - 1, 1, 1, 1);
        add_reference(e, m, b);
    }
    b->tags = tensor_keep(op_full(e, PLIM_BOOL, 1, &rows, 0));
    set_part(e, b->tags, 1, 0, 1, 1, (rows + 1) / 2);
}

/* Stores the inputs, the mask and the labels of rows with an answer in `rows`. `last_is_short`: the last row ends in
 * padding. */
static void add_answers(struct engine *e, const struct decoder *m, struct tensor *rows[3], uint64_t seed,
                        bool last_is_short)
{
    const struct plim_train_setting *s = m->setting;
    int64_t count = s->micro_batch, last = count * s->seq - 1;
    for (int i = 0; i < 3; i++) rows[i] = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(count, s->seq)));
    op_random_(e, rows[0], (double)m->config->vocab_size, seed);
    if (!e->halted) op_fill_(e, rows[1], 1);
    op_random_(e, rows[2], (double)m->config->vocab_size, seed); /* equal to the inputs */
    if (s->prompt) set_part(e, rows[2], PLIM_IGNORED_TARGET, 0, count, s->seq, s->prompt);
    if (!last_is_short) return;
    set_part(e, rows[1], 0, last, 1, 1, 1);
    set_part(e, rows[2], PLIM_IGNORED_TARGET, last, 1, 1, 1);
}

/* The batch of TRL's ORPOTrainer and CPOTrainer (DPODataCollatorWithPadding), which concatenate its rows themselves */
static struct batch pairs_apart(struct engine *e, const struct decoder *m, uint64_t seed)
{
    const struct plim_train_setting *s = m->setting;
    struct batch b = {0};
    struct tensor *chosen[3];
    add_answers(e, m, chosen, seed, false);
    b.inputs = chosen[0], b.mask = chosen[1], b.labels = chosen[2];
    add_answers(e, m, b.rejected, seed - 1, decoder_hides_padding(s));
    for (int i = 0; i < 2 && s->prompt; i++)
        b.prompts[i] = tensor_keep(op_full(e, PLIM_I64, SHAPE(s->micro_batch, s->prompt), 1));
    return b;
}

struct batch decoder_trainers_batch(struct engine *e, const struct decoder *m, uint64_t seed)
{
    if (plim_loop_is_trl_orpo(m->setting->loop)) return pairs_apart(e, m, seed);
    struct batch b = decoder_batch(e, m, seed);
    bool has_labels = b.labels != b.inputs;
    if (!has_labels) b.labels = tensor_keep(tensor_empty_like(e, b.inputs, PLIM_I64));
    if (!has_labels) op_random_(e, b.labels, (double)m->config->vocab_size, seed); /* equal to the inputs */
    if (plim_loop_is_trl(m->setting->loop) || plim_loop_is_swift(m->setting->loop)) hide_labels(e, m, &b);
    if (plim_loop_has_kl(m->setting->loop)) add_kto(e, m, &b, seed);
    if (m->setting->loop == PLIM_LOOP_TRL_DPO) add_reference(e, m, &b);
    return b;
}
