/* Specs of linear attention: which packages run it, and what these refuse. */
#include "support/spec_files.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

TestSuite(spec_linear, .fini = spec_files_remove);

#define SPEC(model, train) "model: {family: qwen3_5_text, " model "}\ntrain: {" train "}\n"

static void expect_refusal(const char *text, const char *line)
{
    cr_expect(eq(str, (char *)spec_refusal("s.yaml", text), (char *)line), "%s", text);
}

Test(spec_linear, what_the_packages_refuse_is_refused)
{
    struct plim_spec s;
    expect_refusal(SPEC("linear_key_head_dim: 257", "linear_attention: fla"),
                   "s.yaml:2:27: train.linear_attention is fla, which takes keys of at most 256 numbers, and the "
                   "model's have 257, expected torch");
    expect_refusal(SPEC("linear_key_head_dim: 6, linear_num_key_heads: 1", "causal_conv1d: true"),
                   "s.yaml:2:24: train.causal_conv1d is true, and the package takes multiples of 8 channels and 2 to 4 "
                   "tokens, the model's convolution has 4108 and 4, expected false");
    expect_refusal(SPEC("linear_conv_kernel_dim: 5", "causal_conv1d: true"),
                   "s.yaml:2:24: train.causal_conv1d is true, and the package takes multiples of 8 channels and 2 to 4 "
                   "tokens, the model's convolution has 8192 and 5, expected false");
    expect_refusal(SPEC("linear_conv_kernel_dim: 1", "causal_conv1d: true"),
                   "s.yaml:2:24: train.causal_conv1d is true, and the package takes multiples of 8 channels and 2 to 4 "
                   "tokens, the model's convolution has 8192 and 1, expected false");
    spec_load_text("s.yaml", SPEC("linear_conv_kernel_dim: 2", "causal_conv1d: true"), &s);
    spec_load_text("s.yaml", SPEC("linear_key_head_dim: 256", "linear_attention: fla"), &s);
    spec_load_text("s.yaml", SPEC("linear_key_head_dim: 257, linear_conv_kernel_dim: 5", ""), &s);
}

Test(spec_linear, what_is_taken_is_said)
{
    char text[512];
    struct plim_spec s;
    static const struct {
        const char *train, *said;
    } rows[] = {
        {"", "neither flash-linear-attention nor causal-conv1d (train.linear_attention)"},
        {"causal_conv1d: true", "no flash-linear-attention (train.linear_attention)"},
        {"linear_attention: fla", "no causal-conv1d (train.causal_conv1d)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char document[256];
        snprintf(document, sizeof(document), "model: {family: qwen3_5_text}\ntrain: {%s}\n", rows[i].train);
        spec_load_text("s.yaml", document, &s);
        plim_spec_describe_defaults(&s, text, sizeof(text));
        cr_expect(ne(ptr, strstr(text, rows[i].said), NULL), "%s", text);
    }
    spec_load_text("s.yaml", SPEC("", "linear_attention: fla, causal_conv1d: false"), &s);
    plim_spec_describe_defaults(&s, text, sizeof(text));
    cr_expect(eq(ptr, strstr(text, "conv1d"), NULL), "%s", text);
    spec_load_text("s.yaml", "model: {family: llama}\n", &s);
    plim_spec_describe_defaults(&s, text, sizeof(text));
    cr_expect(eq(ptr, strstr(text, "linear"), NULL), "%s", text);
}
