/* The options of TRL's GRPOTrainer (1.16, trainer/grpo_config.py) besides those of all trainers. Answers are generated
 * by vLLM (use_vllm), on other GPUs or on the training GPUs, or by the trained model itself. */
#ifndef PLIM_WORKLOADS_SPEC_GRPO_H
#define PLIM_WORKLOADS_SPEC_GRPO_H

#include <stdbool.h>
#include <stdint.h>

/* loss_type: the divisor of the sum of the tokens' losses */
enum plim_grpo_loss {
    PLIM_GRPO_LOSS_DAPO,
    PLIM_GRPO_LOSS_GRPO,
    PLIM_GRPO_LOSS_BNPO,
    PLIM_GRPO_LOSS_DR_GRPO,
    PLIM_GRPO_LOSS_COUNT
};
extern const char *const plim_grpo_loss_names[PLIM_GRPO_LOSS_COUNT];

/* vllm_importance_sampling_mode: how samples are weighted by the ratio of their probabilities under the model and under
 * vLLM; NONE: vllm_importance_sampling_correction is false */
enum plim_grpo_correction {
    PLIM_GRPO_CORRECTION_NONE,
    PLIM_GRPO_CORRECTION_SEQUENCE_MASK,
    PLIM_GRPO_CORRECTION_SEQUENCE_TRUNCATE,
    PLIM_GRPO_CORRECTION_TOKEN_MASK,
    PLIM_GRPO_CORRECTION_TOKEN_TRUNCATE,
    PLIM_GRPO_CORRECTION_COUNT
};
extern const char *const plim_grpo_correction_names[PLIM_GRPO_CORRECTION_COUNT];

/* vllm_mode: a server on other GPUs, or an engine in each training process; NONE: use_vllm is false, and the trained
 * model generates the answers itself */
enum plim_vllm { PLIM_VLLM_SERVER, PLIM_VLLM_COLOCATE, PLIM_VLLM_NONE, PLIM_VLLM_COUNT };
extern const char *const plim_vllm_names[PLIM_VLLM_COUNT];

struct plim_grpo {
    int64_t generations; /* answers to each prompt */
    int64_t updates;     /* optimizer steps whose samples are generated together */
    int64_t iterations;  /* how often they are trained on */
    bool reference;      /* beta is not 0 */
    enum plim_grpo_loss loss;
    enum plim_grpo_correction correction;
    enum plim_vllm vllm;
    double vllm_memory; /* vllm_gpu_memory_utilization of an engine in the process: its share of the GPU's memory */
    bool vllm_sleeps;   /* vllm_enable_sleep_mode: it holds its share only while it generates */
    double temperature; /* if the model generates itself; 0 means 1, which has no effect */
};

/* How samples are weighted: if the model generates its own answers, no correction is needed. */
static inline enum plim_grpo_correction plim_grpo_corrects(const struct plim_grpo *grpo)
{
    return grpo->vllm == PLIM_VLLM_NONE ? PLIM_GRPO_CORRECTION_NONE : grpo->correction;
}

#endif
