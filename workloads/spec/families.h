/* The model families, by transformers' names. */
#ifndef PLIM_WORKLOADS_SPEC_FAMILIES_H
#define PLIM_WORKLOADS_SPEC_FAMILIES_H

/* enum suffix, model_type in config.json */
#define PLIM_FAMILY_MAP(X)                                                                         \
    X(GPT2, "gpt2")                                                                                \
    X(LLAMA, "llama")                                                                              \
    X(MISTRAL, "mistral")                                                                          \
    X(QWEN2, "qwen2")                                                                              \
    X(QWEN3, "qwen3")                                                                              \
    X(PHI3, "phi3")                                                                                \
    X(PHI, "phi")                                                                                  \
    X(GEMMA2, "gemma2")                                                                            \
    X(GEMMA3_TEXT, "gemma3_text")                                                                  \
    X(GPT_NEOX, "gpt_neox")                                                                        \
    X(OPT, "opt")                                                                                  \
    X(BLOOM, "bloom")                                                                              \
    X(OLMO2, "olmo2")                                                                              \
    X(GEMMA, "gemma")                                                                              \
    X(STARCODER2, "starcoder2")                                                                    \
    X(SMOLLM3, "smollm3")                                                                          \
    X(GRANITE, "granite")                                                                          \
    X(GRANITEMOEHYBRID, "granitemoehybrid")                                                        \
    X(OLMO, "olmo")                                                                                \
    X(OLMO3, "olmo3")                                                                              \
    X(STABLELM, "stablelm")                                                                        \
    X(COHERE, "cohere")                                                                            \
    X(COHERE2, "cohere2")                                                                          \
    X(GLM, "glm")                                                                                  \
    X(GLM4, "glm4")                                                                                \
    X(QWEN3_5_TEXT, "qwen3_5_text")                                                                \
    X(MINISTRAL3, "ministral3")                                                                    \
    X(MINISTRAL, "ministral")                                                                      \
    X(ARCEE, "arcee")                                                                              \
    X(APERTUS, "apertus")                                                                          \
    X(NEMOTRON, "nemotron")                                                                        \
    X(EXAONE4, "exaone4")                                                                          \
    X(SEED_OSS, "seed_oss")                                                                        \
    X(ERNIE4_5, "ernie4_5")                                                                        \
    X(HUNYUAN_V1_DENSE, "hunyuan_v1_dense")                                                        \
    X(LFM2, "lfm2")                                                                                \
    X(FALCON, "falcon")                                                                            \
    X(FALCON_H1, "falcon_h1")                                                                      \
    X(NEMOTRON_H, "nemotron_h")                                                                    \
    X(GPTJ, "gptj")                                                                                \
    X(GPT_BIGCODE, "gpt_bigcode")                                                                  \
    X(BERT, "bert")                                                                                \
    X(ROBERTA, "roberta")                                                                          \
    X(XLM_ROBERTA, "xlm-roberta")                                                                  \
    X(ELECTRA, "electra")                                                                          \
    X(DISTILBERT, "distilbert")                                                                    \
    X(MODERNBERT, "modernbert")                                                                    \
    X(DEBERTA_V2, "deberta-v2")                                                                    \
    X(ALBERT, "albert")                                                                            \
    X(MPNET, "mpnet")                                                                              \
    X(ESM, "esm")                                                                                  \
    X(MIXTRAL, "mixtral")                                                                          \
    X(QWEN2_MOE, "qwen2_moe")                                                                      \
    X(QWEN3_MOE, "qwen3_moe")                                                                      \
    X(GPT_OSS, "gpt_oss")                                                                          \
    X(QWEN3_5_MOE_TEXT, "qwen3_5_moe_text")                                                        \
    X(QWEN3_NEXT, "qwen3_next")                                                                    \
    X(OLMOE, "olmoe")                                                                              \
    X(GRANITEMOE, "granitemoe")                                                                    \
    X(ERNIE4_5_MOE, "ernie4_5_moe")                                                                \
    X(LFM2_MOE, "lfm2_moe")                                                                        \
    X(MINIMAX_M2, "minimax_m2")                                                                    \
    X(AFMOE, "afmoe")                                                                              \
    X(GLM4_MOE, "glm4_moe")                                                                        \
    X(DEEPSEEK_V2, "deepseek_v2")                                                                  \
    X(DEEPSEEK_V3, "deepseek_v3")                                                                  \
    X(GLM4_MOE_LITE, "glm4_moe_lite")                                                              \
    X(QWEN2_VL, "qwen2_vl")                                                                        \
    X(QWEN2_5_VL, "qwen2_5_vl")                                                                    \
    X(QWEN3_VL, "qwen3_vl")                                                                        \
    X(QWEN3_VL_MOE, "qwen3_vl_moe")                                                                \
    X(QWEN3_5, "qwen3_5")                                                                          \
    X(QWEN3_5_MOE, "qwen3_5_moe")                                                                  \
    X(GEMMA3, "gemma3")                                                                            \
    X(MISTRAL3, "mistral3")                                                                        \
    X(LLAVA, "llava")                                                                              \
    X(INTERNVL, "internvl")                                                                        \
    X(T5, "t5")                                                                                    \
    X(MT5, "mt5")                                                                                  \
    X(WHISPER, "whisper")                                                                          \
    X(BART, "bart")                                                                                \
    X(MBART, "mbart")                                                                              \
    X(GEMMA4, "gemma4")                                                                            \
    X(GEMMA4_UNIFIED, "gemma4_unified")                                                            \
    X(GEMMA4_TEXT, "gemma4_text")                                                                  \
    X(GEMMA4_UNIFIED_TEXT, "gemma4_unified_text")                                                  \
    X(VIT, "vit")

enum plim_family {
#define PLIM_FAMILY_ENUM(name, text) PLIM_FAMILY_##name,
    PLIM_FAMILY_MAP(PLIM_FAMILY_ENUM)
#undef PLIM_FAMILY_ENUM
    PLIM_FAMILY_COUNT
};

#endif
