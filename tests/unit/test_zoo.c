/* The zoo: dimensions as published, checked by their parameter counts (which are those of the models' pages, not
 * computed by this project). */
#include "support/spec_files.h"
#include "workloads/spec/family.h"
#include "workloads/spec/zoo.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static void load(const char *name, struct plim_spec *spec)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char message[1024];
    enum plim_status st = plim_spec_load(name, spec, &err);
    plim_error_format(&err, message, sizeof(message));
    cr_assert(st == PLIM_OK, "%s", message);
}

Test(zoo, every_name_is_of_one_model)
{
    for (size_t i = 0; i < plim_zoo_count; i++) {
        const struct plim_zoo_model *model = &plim_zoo_models[i];
        cr_expect(eq(str, (char *)plim_zoo_names[i], (char *)model->name));
        cr_expect(eq(ptr, (void *)plim_zoo_find(model->name), (void *)model), "%s", model->name);
        for (const char *const *hub = model->hub; *hub; hub++)
            cr_expect(eq(ptr, (void *)plim_zoo_of_hub(*hub), (void *)model), "%s", *hub);
    }
    cr_expect(eq(ptr, (void *)plim_zoo_find("gpt2"), NULL));
    cr_expect(eq(ptr, (void *)plim_zoo_of_hub("gpt2-124m"), NULL));
}

Test(zoo, parameters_are_the_published_ones)
{
    cr_assert(lt(sz, 0, plim_zoo_count));
    for (size_t i = 0; i < plim_zoo_count; i++) {
        struct plim_spec spec;
        load(plim_zoo_names[i], &spec);
        cr_expect(eq(i64, spec_parameters(&spec.model), plim_zoo_models[i].parameters), "%s", plim_zoo_names[i]);
        cr_expect(eq(str, (char *)plim_family_names[spec.model.family], (char *)plim_zoo_models[i].family));
    }
}

Test(zoo, specs_are_named_and_ready_to_plan)
{
    for (size_t i = 0; i < plim_zoo_count; i++) {
        struct plim_spec spec;
        load(plim_zoo_names[i], &spec);
        cr_expect(eq(str, spec.name, (char *)plim_zoo_names[i]));
        cr_expect(eq(str, spec.source, (char *)plim_zoo_names[i]));
        cr_expect(eq(sz, spec.seq.count, 1));
        cr_expect(eq(int, spec.optimizer.values[0], PLIM_OPTIMIZER_ADAMW_FUSED));
        bool is_checked = !plim_family_info(spec.model.family)->uncheckpointed;
        cr_expect(eq(sz, spec.checkpointing.count, is_checked ? 2 : 1), "%s", plim_zoo_names[i]);
    }
}

/* Of the config.json, or, of gpt2, of its checkpoint; a key of a model's own is in the place of its family's. */
Test(zoo, weights_have_the_published_type)
{
    static const struct {
        const char *name;
        enum plim_weights weights;
        int64_t seq;
    } published[] = {
        {"gpt2-124m", PLIM_WEIGHTS_FP32, 1024},     {"tiny-gpt2", PLIM_WEIGHTS_FP32, 64},
        {"tinyllama-1.1b", PLIM_WEIGHTS_FP32, 2048}, {"tinyllama-1.1b-chat", PLIM_WEIGHTS_BF16, 2048},
        {"llama-2-7b", PLIM_WEIGHTS_FP16, 2048},     {"llama-3-8b", PLIM_WEIGHTS_BF16, 4096},
        {"gemma-2-9b", PLIM_WEIGHTS_FP32, 2048},     {"gemma-2-9b-it", PLIM_WEIGHTS_BF16, 2048},
        {"pythia-410m", PLIM_WEIGHTS_FP16, 2048},    {"bert-base", PLIM_WEIGHTS_FP32, 512},
        {"deberta-v3-base", PLIM_WEIGHTS_FP16, 512},
    };
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        struct plim_spec spec;
        load(published[i].name, &spec);
        cr_expect(eq(int, spec.weights.values[0], (int)published[i].weights), "%s", published[i].name);
        cr_expect(eq(i64, spec.seq.values[0], published[i].seq), "%s", published[i].name);
    }
}

Test(zoo, models_say_what_their_config_json_says)
{
    struct plim_spec spec;
    load("phi-3-mini", &spec);
    cr_expect(eq(i64, spec.model.sliding_window, 2047));
    cr_expect(spec.model.layer_is_sliding[0]);
    load("llama-3.2-1b", &spec);
    cr_expect(eq(int, spec.model.rope, PLIM_ROPE_LLAMA3));
    load("meta-llama/Llama-3.2-3B-Instruct", &spec);
    cr_expect(eq(int, spec.model.rope, PLIM_ROPE_LLAMA3));
    cr_expect(eq(i64, spec.model.hidden_size, 3072));
    load("mistralai/Mistral-7B-v0.1", &spec);
    cr_expect(eq(i64, spec.model.sliding_window, 4096));
    load("gemma-2-2b", &spec);
    cr_expect(spec.model.layer_is_sliding[0]);
    cr_expect(not(spec.model.layer_is_sliding[1]));
    load("opt-1.3b", &spec);
    cr_expect(eq(dbl, spec.model.dropout_residual, 0.1));
}
