/* What is learned: which heads there are, and what of them is refused. */
#include "support/spec_files.h"
#include "workloads/spec/family.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

TestSuite(spec_tasks, .fini = spec_files_remove);

Test(spec_tasks, an_answer_begins_and_ends)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"model: {family: bert, task: causal-lm}\n",
         "s.yaml:1:29: task is causal-lm, expected of bert: masked-lm, classification, token-classification, "
         "question-answering"},
        {"model: {family: electra, task: question-answering, num_labels: 3}\n",
         "s.yaml:1:64: num_labels is 3, expected 2 of question answering: where an answer begins and ends"},
        {"model: {family: bert, task: question-answering}\n"
         "train: {loop: trainer, evaluation: {batch: 8, batches: 2, keeps: logits}}\n",
         "s.yaml:2:36: train.evaluation.keeps is logits and model.task question-answering, whose answers are two, "
         "which is not supported (plimsoll exec runs the training script as it is)"},
        {"model: {family: bert, task: question-answering}\ntrain: {loop: trainer, label_smoothing: 0.1}\n",
         "s.yaml:2:41: train.label_smoothing is given and model.task question-answering, whose labels Trainer does "
         "not smooth, expected none"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_expect(eq(str, (char *)spec_refusal("s.yaml", cases[i].text), (char *)cases[i].line), "%s", cases[i].text);
}

/* One label is a number, which is checked when all is given: the command line may ask for a loop without its loss. */
Test(spec_tasks, one_label_is_a_number)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"model: {family: vit, num_labels: 1}\n", "model.num_labels is 1: regression of images"},
        {"model: {family: bert, task: classification, num_labels: 1}\ntrain: {precision: [fp32, bf16]}\n",
         "model.num_labels is 1 and train.precision bf16, in which the loss of a number fails"},
        {"model: {family: bert, task: classification, num_labels: 1}\ntrain: {loop: trainer, label_smoothing: 0.1}\n",
         "model.num_labels is 1 and train.label_smoothing given"},
        {"model: {family: bert, task: classification, num_labels: 1}\ntrain: {precision: bf16-mixed}\n", NULL},
        {"model: {family: bert, task: token-classification, num_labels: 1}\ntrain: {precision: bf16}\n", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec spec;
        struct plim_error err = PLIM_ERROR_INIT;
        spec_load_text("s.yaml", cases[i].text, &spec);
        enum plim_status st = plim_spec_resolve(&spec, &err);
        cr_expect(eq(int, st, cases[i].why ? PLIM_SPEC : PLIM_OK), "%s", cases[i].text);
        if (cases[i].why) cr_expect(strstr(err.text, cases[i].why) != NULL, "%s", err.text);
    }
}

/* camembert's classes are xlm-roberta's; the last linear of a head by what it is for. */
Test(spec_tasks, names_of_heads)
{
    static const struct {
        const char *text, *family, *classifier;
    } cases[] = {
        {"{\"model_type\": \"camembert\", \"architectures\": [\"CamembertForTokenClassification\"]}", "xlm-roberta",
         "classifier"},
        {"{\"model_type\": \"xlm-roberta\", \"architectures\": [\"XLMRobertaForSequenceClassification\"]}",
         "xlm-roberta", "out_proj"},
        {"{\"model_type\": \"distilbert\", \"architectures\": [\"DistilBertForQuestionAnswering\"]}", "distilbert",
         "qa_outputs"},
        {"{\"model_type\": \"modernbert\", \"architectures\": [\"ModernBertForQuestionAnswering\"]}", "modernbert",
         "classifier"},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"]}", "llama", "score"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct plim_spec spec;
        spec_load_text("config.json", cases[i].text, &spec);
        cr_expect(eq(str, (char *)plim_family_names[spec.model.family], (char *)cases[i].family));
        cr_expect(eq(str, (char *)plim_model_classifier(&spec.model), (char *)cases[i].classifier), "%s",
                  cases[i].text);
    }
}
