/* Models by their names in the Hugging Face Hub, found offline: in the cache that `hf download` and from_pretrained()
 * fill. */
#ifndef PLIM_WORKLOADS_SPEC_HUB_H
#define PLIM_WORKLOADS_SPEC_HUB_H

#include <stdbool.h>
#include <stddef.h>

/* Is it a name as the Hub has them: "gpt2", "meta-llama/Llama-3.2-1B"? */
bool plim_hub_is_id(const char *text);

/* The config.json of a model in the cache (HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME or HOME says
 * where it is): of the branch main, else of any snapshot. False: it is not there, or its path has no room. */
bool plim_hub_find(const char *id, char *path, size_t size);

#endif
