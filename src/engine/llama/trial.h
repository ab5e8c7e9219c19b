/* A trial in a process of its own.  The library checks much of a file by assertions that end the
 * process; so a copy of this one reads the model's description, vocabulary and graph first, without
 * its weights, and a file that ends it is a bad file.  Nothing is kept. */
#ifndef IPW_ENGINE_LLAMA_TRIAL_H
#define IPW_ENGINE_LLAMA_TRIAL_H

#include "core/err.h"
#include "engine/llama/api.h"

/* ERR_BAD_VALUE or ERR_UNSUPPORTED with the library's words.  `has_gpu`: a GPU's library does not
 * survive the copying of its process, so no more than the vocabulary is then tried. */
enum err trial_load(const struct llama_api *api, const char *path, bool has_gpu, struct error *why)
    MUST_USE;

/* What a refusal of the library means, by its words. */
enum err trial_meaning(const char *complaint);

#endif
