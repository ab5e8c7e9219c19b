/* Is there memory for a context?  The library takes what it is told to and the kernel then ends the
 * process, or another.  Nothing is kept. */
#ifndef IPW_ENGINE_LLAMA_MEMORY_H
#define IPW_ENGINE_LLAMA_MEMORY_H

#include "core/err.h"
#include "engine/engine.h"
#include "engine/llama/api.h"

/* ERR_NO_MEMORY, with how much it takes and how much there is. */
enum err memory_suffices(const struct engine_model_facts *model,
                         const struct llama_context_params *params, struct error *why) MUST_USE;

#endif
