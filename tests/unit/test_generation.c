/* Generating token by token, on the host's device: what is kept of all tokens before stands for them. What it
 * allocates is in tests/golden/grpo.jsonl. */
#include "devices/host/host.h"
#include "support/arrays.h"
#include "workloads/models/model.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 3, PROMPT = 6, ANSWER = 5, TOKENS = PROMPT + ANSWER, CLASSES = 97 };

static struct plim_device *device;
static struct plim_allocator *allocator;
static struct engine *e;
static struct plim_spec spec;
static struct plim_train_setting setting;
static struct decoder model;

static void open_host(void)
{
    struct plim_error err = PLIM_ERROR_INIT;
    const struct plim_allocator_config config = PLIM_ALLOCATOR_CONFIG_DEFAULT;
    cr_assert_eq(plim_host_open("", &device, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_allocator_create(device, &config, &allocator, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(engine_create(device, allocator, &e, &err), PLIM_OK, "%s", err.text);
    e->grad_enabled = false;
    e->evaluates = true; /* nothing is dropped */
}

static void close_host(void)
{
    decoder_finish(&model);
    engine_destroy(&e);
    plim_allocator_destroy(&allocator);
    plim_device_close(&device);
}

/* A small model of a family; `more`: keys and values, up to NULL */
static void make(const char *family, enum plim_attention attention, enum plim_padding padding,
                 const char *const *more)
{
    static const char *const tiny[] = {"model.vocab_size",
                                       "97",
                                       "model.hidden_size",
                                       "32",
                                       "model.num_hidden_layers",
                                       "3",
                                       "model.num_attention_heads",
                                       "4",
                                       NULL};
    struct plim_error err = PLIM_ERROR_INIT;
    char text[64];
    snprintf(text, sizeof(text), "model: {family: %s}\n", family);
    cr_assert_eq(plim_spec_load_text("s.yaml", text, &spec, &err), PLIM_OK, "%s", err.text);
    const char *const *const lists[] = {tiny, more};
    for (int k = 0; k < 2; k++)
        for (const char *const *key = lists[k]; key && *key; key += 2)
            cr_assert_eq(plim_spec_set(&spec, key[0], key[1], &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_spec_resolve(&spec, &err), PLIM_OK, "%s", err.text);
    setting = (struct plim_train_setting){.micro_batch = ROWS,
                                          .seq = TOKENS,
                                          .prompt = PROMPT,
                                          .loop = PLIM_LOOP_TRL_GRPO,
                                          .precision = PLIM_PRECISION_FP32,
                                          .attention = attention,
                                          .padding = padding};
    cr_assert_eq(decoder_create(e, &spec.model, &setting, &model), PLIM_OK);
    cr_assert(!e->halted, "%s", model.refusal);
}

/* Of the tokens from `first` on a batch, whose mask is of all before them, too; the first row begins with two that are
 * hidden where rows are padded. All named. */
static struct batch batch_of(int64_t first, int64_t count)
{
    int64_t end = first + count, hidden = setting.padding ? 2 : 0;
    struct batch b = {.inputs = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(ROWS, count))),
                      .positions = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(ROWS, count))),
                      .mask = tensor_keep(tensor_empty(e, PLIM_I64, SHAPE(ROWS, end)))};
    for (int64_t row = 0; row < ROWS; row++) {
        int64_t without = row ? 0 : hidden;
        for (int64_t i = 0; i < end; i++) {
            array_put(&b.mask->a, row * end + i, i >= without);
            if (i < first) continue;
            array_put(&b.inputs->a, row * count + i - first,
                      (double)((7 * i * i + 31 * row + 3) % CLASSES));
            array_put(&b.positions->a, row * count + i - first,
                      i < without ? 0 : (double)(i - without));
        }
    }
    return b;
}

static void drop(struct batch *b)
{
    tensor_drop_all(e, b->inputs, b->positions, b->mask);
}

/* (ROWS, 1, CLASSES), named */
static struct tensor *next(struct decoder_cache *cache, int64_t first, int64_t count)
{
    struct batch b = batch_of(first, count);
    struct tensor *logits = decoder_next_logits(e, &model, &b, cache);
    cr_assert(!e->halted);
    drop(&b);
    return logits;
}

/* What the model makes of the last of so many tokens, of which nothing is kept */
static struct tensor *at_once(int64_t tokens)
{
    struct tensor *logits;
    struct batch b = batch_of(0, tokens);
    cr_assert_null(decoder_loss(e, &model, &b, &logits));
    struct tensor *last = tensor_keep(op_slice(e, logits, 1, tokens - 1, 1));
    drop(&b);
    tensor_drop(e, logits);
    return last;
}

static void expect_alike(const struct tensor *one, const struct tensor *other, const char *what,
                         int64_t tokens)
{
    double most = 0;
    for (int64_t i = 0; i < ROWS * CLASSES; i++) {
        cr_assert(isfinite(array_at(&one->a, i)));
        most = fmax(most, fabs(array_at(&one->a, i) - array_at(&other->a, i)));
    }
    cr_expect_lt(most, 1e-4, "%s, %d tokens: %g", what, (int)tokens, most);
}

/* Token by token the same comes as of all tokens at once. */
static void expect_the_same(const char *family, enum plim_attention attention,
                            enum plim_padding padding, const char *const *more)
{
    struct decoder_cache cache;
    open_host();
    make(family, attention, padding, more);
    cr_assert_eq(decoder_cache_create(&model, &cache), PLIM_OK);
    tensor_drop(e, at_once(PROMPT)); /* cuBLAS's workspace stays */
    int64_t before = engine_allocated(e);
    for (int64_t tokens = PROMPT; tokens <= TOKENS; tokens++) {
        bool is_first = tokens == PROMPT;
        struct tensor *ours = next(&cache, is_first ? 0 : tokens - 1, is_first ? PROMPT : 1);
        struct tensor *theirs = at_once(tokens);
        expect_alike(ours, theirs, family, tokens);
        tensor_drop_all(e, ours, theirs);
    }
    cr_expect_eq(cache.tokens, TOKENS);
    decoder_cache_drop(e, &cache);
    cr_expect_eq(engine_allocated(e), before, "%s: all that was kept is given back", family);
    close_host();
}

static const char *const grouped[] = {
    "model.num_key_value_heads", "2", "model.head_dim", "8", "model.intermediate_size", "64", NULL};
static const char *const windowed[] = {"model.num_key_value_heads",
                                       "2",
                                       "model.head_dim",
                                       "8",
                                       "model.intermediate_size",
                                       "64",
                                       "model.sliding_window",
                                       "4",
                                       NULL};

static void expect_in_all_ways(const char *family, const char *const *more)
{
    for (int attention = PLIM_ATTENTION_SDPA; attention <= PLIM_ATTENTION_EAGER; attention++)
        for (int padding = PLIM_PADDING_NO; padding <= PLIM_PADDING_YES; padding++)
            expect_the_same(family, (enum plim_attention)attention, (enum plim_padding)padding,
                            more);
}

Test(generation, keeps_the_tokens_of_a_llama)
{
    expect_in_all_ways("llama", grouped);
    expect_in_all_ways("qwen3", grouped);
}

Test(generation, keeps_what_a_window_reaches_back_to)
{
    expect_in_all_ways("mistral", windowed);
    expect_in_all_ways("gemma3_text", windowed);
}

Test(generation, gives_each_row_its_experts)
{
    static const char *const experts[] = {"model.intermediate_size", "64", "model.num_key_value_heads", "2",
                                          "model.moe_intermediate_size", "32", "model.num_experts", "6",
                                          "model.num_experts_per_tok", "2", NULL};
    expect_in_all_ways("qwen3_moe", experts);
}

Test(generation, keeps_the_tokens_of_other_families)
{
    static const char *const narrow[] = {"model.intermediate_size", "64", NULL};
    static const char *const all_heads[] = {"model.intermediate_size", "64",
                                            "model.num_key_value_heads", "4", NULL};
    expect_in_all_ways("gpt2", NULL);
    expect_in_all_ways("gpt_neox", narrow);
    expect_in_all_ways("phi", all_heads);
    expect_in_all_ways("stablelm", all_heads);
}
