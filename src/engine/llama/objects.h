/* What a model and a context are to the files of the engine.  A context points to its model, which must
 * outlive it. */
#ifndef IPW_ENGINE_LLAMA_OBJECTS_H
#define IPW_ENGINE_LLAMA_OBJECTS_H

#include "engine/engine.h"
#include "engine/llama/api.h"

struct engine_model {
    struct llama_model *llama;
    const struct llama_vocab *vocabulary;
    const char *chat_template; /* of the library; NULL for none */
    struct engine_model_facts facts;
    struct ggml_threadpool *threads; /* of the contexts that keep theirs; NULL: none yet */
};

struct engine_context {
    struct llama_context *llama;
    struct engine_model *model;
    struct engine_context_options facts;
    const struct engine_watch *watch;

    const atomic_bool *cancel;
    nanos until;

    uint32_t position;  /* of the next token, in every sequence */
    uint32_t sequences; /* that are computed in step; 0 before the first */
    bool has_logits;

    struct llama_batch batch;      /* the arrays, with room for facts.batch tokens */
    struct llama_sampler *sampler; /* NULL: the likeliest */
};

#endif
