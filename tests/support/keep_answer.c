/* Keeps a measured answer, as tune would, without measuring: for tests on pretended GPUs, which
 * compute nothing.
 *
 *     keep_answer VERSION SPEC EFFECTIVE_BATCH MICRO_BATCH [fits|fast]
 *
 * VERSION is plimsoll's own. For every GPU that NVML shows a file in the user's store; with `fits`
 * or `fast` the fact that decides that is one that no machine has.
 */
#include "autotune/search/objective.h"
#include "autotune/store/store_question.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_value(struct plim_result_setting *setting, const char *name, const char *text)
{
    struct plim_result_value *value = &setting->values[setting->value_count++];
    snprintf(value->name, sizeof(value->name), "%s", name);
    snprintf(value->text, sizeof(value->text), "%s", text);
}

static struct plim_result result_of(const struct plim_target *target, int64_t effective,
                                    int64_t micro_batch)
{
    struct plim_result r = {.objective = "throughput"};
    snprintf(r.spec.name, sizeof(r.spec.name), "kept");
    snprintf(r.device.name, sizeof(r.device.name), "%.63s", target->name);
    snprintf(r.device.uri, sizeof(r.device.uri), "%s", target->uri);
    r.choice = (struct plim_result_choice){.present = true,
                                           .verified = true,
                                           .world = 1,
                                           .effective_batch = effective,
                                           .setting = {.micro_batch = micro_batch,
                                                       .seq = 1024,
                                                       .accumulation = effective / micro_batch}};
    add_value(&r.choice.setting, "precision", "bf16-mixed");
    add_value(&r.choice.setting, "checkpointing", "none");
    return r;
}

int main(int argc, char **argv)
{
    struct plim_error err = PLIM_ERROR_INIT;
    static struct plim_spec spec;
    static struct plim_target targets[8];
    size_t count;
    struct plim_allowance allowance = PLIM_ALLOWANCE_DEFAULT;
    struct plim_target_place place = plim_target_local();
    static struct plim_store store;
    if (argc < 5) return 2;
    const struct plim_store_asked asked = {
        .version = argv[1], .objective = plim_objectives[0].name, .allowance = &allowance};
    plim_store_init(&store, NULL, false, NULL);
    enum plim_status st = plim_spec_load(argv[2], &spec, &err);
    if (!st) st = plim_spec_set(&spec, "train.effective_batch", argv[3], &err);
    if (!st) st = plim_spec_resolve(&spec, &err);
    if (!st) st = plim_target_list(&place, targets, 8, &count, &err);
    for (size_t i = 0; !st && i < count; i++) {
        struct plim_store_question question = {0};
        struct plim_store_gpu gpu;
        struct plim_report report = {0};
        plim_store_gpu_of_target(&targets[i], false, &gpu);
        plim_store_question_spec(&spec, &asked, &question);
        plim_store_question_gpu(&gpu, &question);
        if (argc > 5)
            plim_facts_add(strcmp(argv[5], "fits") ? &question.fast : &question.fits, "weather",
                           "fine");
        if (PLIM_ARRAY_PUSH(&report.results, result_of(&targets[i], atol(argv[3]), atol(argv[4]))))
            return 6;
        st = plim_store_write(&store, &question, &report, &err);
        plim_report_finish(&report);
        plim_store_question_finish(&question);
    }
    if (st) fprintf(stderr, "keep_answer: %s\n", err.text);
    return (int)st;
}
