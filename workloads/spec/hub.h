/* Models by their names in the Hugging Face Hub, found offline: in the cache that `hf download` and from_pretrained()
 * fill. */
#ifndef PLIM_WORKLOADS_SPEC_HUB_H
#define PLIM_WORKLOADS_SPEC_HUB_H

#include <stdbool.h>
#include <stddef.h>

/* Is it a valid name in the Hub: "gpt2", "meta-llama/Llama-3.2-1B"? */
bool plim_hub_is_id(const char *text);

/* Finds the config.json of a model in the cache, whose folder comes from HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME,
 * XDG_CACHE_HOME or HOME: that of the branch main, else of any snapshot. False: not found, or its path is too long. */
bool plim_hub_find(const char *id, char *path, size_t size);

#endif
