/* The modules of a model, as needed for adapters, quantisation, loading and saving. */
#ifndef PLIM_MODELS_MODULES_H
#define PLIM_MODELS_MODULES_H

#include "workloads/spec/family.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decoder;

/* A module: its name in transformers, relative to a block ("mlp.up_proj") or in the model ("model.norm"), and its
 * offset in struct decoder_layer or struct decoder. */
enum module_kind {
    MODULE_WEIGHT, /* struct tensor *: an embedding, or a router */
    MODULE_PARAMETER, /* struct tensor *: a parameter that is not a module: of experts, attention, vit's embeddings */
    MODULE_CONVOLUTION, /* struct convolution */
    MODULE_NORM,   /* struct norm; without a weight if the model does not have it */
    MODULE_LINEAR, /* struct linear; likewise */
    MODULE_BLOCKS, /* all blocks */
    MODULE_HEAD,   /* struct tensor *: the output embedding, and m->head_bias */
    MODULE_CLASSIFIER /* the same for classification: for peft an ordinary linear */
};
struct module {
    const char *path; /* NULL ends a list */
    size_t offset;
    enum module_kind kind;
};
/* A module of a block */
#define BLOCK(path, field, kind) {path, offsetof(struct decoder_layer, field), MODULE_##kind}
/* A module outside of the blocks, and all blocks */
#define MODEL(path, field, kind) {path, offsetof(struct decoder, field), MODULE_##kind}
#define BLOCKS(path) {path, 0, MODULE_BLOCKS}

/* The modules of a Mamba-2 layer at `path` */
#define MAMBA(path)                                                                                \
    BLOCK(path ".dt_bias", dt_bias, PARAMETER), BLOCK(path ".A_log", a_log, PARAMETER),            \
        BLOCK(path ".D", skip, PARAMETER), BLOCK(path ".conv1d", conv, WEIGHT),                    \
        BLOCK(path ".conv1d.bias", conv_bias, PARAMETER), BLOCK(path ".in_proj", in_qkv, LINEAR),  \
        BLOCK(path ".norm", linear_norm, NORM), BLOCK(path ".out_proj", linear_out, LINEAR)

/* Return the modules of a family outside of its blocks, and those of a block. Linears are in the order of
 * named_modules(). NULL: neither quantisation nor adapters are supported for this family. */
const struct module *decoder_modules(enum plim_family family);
const struct module *decoder_block_modules(enum plim_family family);
enum { MODULE_NAME_MAX = 128 };
/* Stores the layers of an entry MODULE_BLOCKS of decoder_modules(): the first, and the one after the last. An
 * encoder-decoder has an entry for each of its stacks. */
void module_blocks(const struct decoder *m, const struct module *blocks, int64_t layers[2]);
/* True if the module exists in its owner (a layer, or `m`) for the model's task. False for a parameter. */
bool module_exists(const struct decoder *m, const struct module *module, const void *owner);
/* The modules of vision towers' blocks, mergers and projectors (vision.h). */
extern const struct module plim_vision_block[], plim_vision_merger[], plim_qwen2_vl_block[], plim_qwen2_5_vl_block[],
    plim_qwen2_vl_merger[], plim_siglip_block[], plim_gemma3_projector[],
    plim_pixtral_block[], plim_mistral3_projector[], plim_gemma4_tower_block[], plim_clip_block[],
    plim_llava_projector[], plim_internvit_block[], plim_internvl_projector[];
/* The modules of encoders, for decoder_modules() and decoder_block_modules(). */
extern const struct module plim_bert_model[], plim_bert_block[], plim_distilbert_model[], plim_distilbert_block[],
    plim_modernbert_model[], plim_modernbert_block[], plim_deberta_model[], plim_deberta_block[],
    plim_vit_model[], plim_vit_block[], plim_esm_model[], plim_esm_block[],
    plim_albert_model[], plim_albert_block[], plim_mpnet_model[], plim_mpnet_block[];
extern const struct module plim_falcon_h1_block[], plim_nemotron_h_model[], plim_nemotron_h_block[];
/* Returns the prefix that replaces the first *replaced characters of `path` in this encoder; "" and 0 if the name does
 * not differ. */
const char *encoder_module_begins(const struct decoder *m, const char *path, size_t *replaced);
/* Writes a module's full name in transformers; `layer`: for a module of a block. */
void module_full_name(const struct decoder *m, const struct module *module, int64_t layer, char name[MODULE_NAME_MAX]);

#endif
