/* In which order a model's parameters are made, as named_parameters() has them: whose head comes first, and where the
 * embedding stands that is tied to it. No peak of the golden runs of small models hangs on it. */
#include "devices/host/host.h"
#include "workloads/models/model.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

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
}

static void close_host(void)
{
    decoder_finish(&model);
    engine_destroy(&e);
    plim_allocator_destroy(&allocator);
    plim_device_close(&device);
}

TestSuite(parameter_order, .init = open_host, .fini = close_host);

static void make(const char *family, const char *task)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char text[200];
    snprintf(text, sizeof(text), "model: {family: %s, task: %s, vocab_size: 97, hidden_size: 32, num_hidden_layers: 1, "
             "num_attention_heads: 2, intermediate_size: 48}\n", family, task);
    cr_assert_eq(plim_spec_load_text("s.yaml", text, &spec, &err), PLIM_OK, "%s", err.text);
    cr_assert_eq(plim_spec_resolve(&spec, &err), PLIM_OK, "%s", err.text);
    setting = (struct plim_train_setting){.micro_batch = 1, .seq = 8, .precision = PLIM_PRECISION_FP32};
    cr_assert_eq(decoder_create(e, &spec.model, &setting, &model), PLIM_OK);
}

static void expect_at(size_t at, const struct tensor *parameter)
{
    cr_expect(model.parameters.list[at] == parameter, "parameter %zu is another one", at);
}

/* XLMRobertaForSequenceClassification creates its classifier before its model, roberta's after it. */
Test(parameter_order, of_a_head_in_front_of_the_model)
{
    make("xlm-roberta", "classification");
    const struct tensor *first[] = {model.head_dense.weight, model.head_dense.bias, model.head, model.head_bias,
                                    model.embedding};
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) expect_at(i, first[i]);
}

Test(parameter_order, of_a_head_behind_the_model)
{
    make("roberta", "classification");
    expect_at(0, model.embedding);
    expect_at(model.parameters.count - 1, model.head_bias);
}

/* A shared parameter is at its first position: after the head's own bias, its linear and its norm. */
Test(parameter_order, of_an_embedding_that_is_tied_to_a_head_in_front)
{
    make("xlm-roberta", "masked-lm");
    const struct tensor *first[] = {model.own_bias, model.head_dense.weight, model.head_dense.bias,
                                    model.head_norm.weight, model.head_norm.bias, model.embedding,
                                    model.type_embedding};
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) expect_at(i, first[i]);
    cr_expect(model.head == model.embedding && model.head_bias == model.own_bias);
}
