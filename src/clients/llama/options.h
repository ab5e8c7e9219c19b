/* What --client-param and --param say to the client llama.  A struct wishes owns its stop strings. */
#ifndef IPW_CLIENTS_LLAMA_OPTIONS_H
#define IPW_CLIENTS_LLAMA_OPTIONS_H

#include "clients/client.h"
#include "engine/engine.h"

enum chat { CHAT_AUTO, CHAT_ON, CHAT_OFF };

struct llama_options {
    struct engine_model_options model;
    struct engine_context_options context;
    enum chat chat;
};

extern const struct param_spec LLAMA_PARAMS[];
enum err llama_options_read(const struct params *params, struct llama_options *out,
                            struct error *why) MUST_USE;

/* Of one question. */
struct wishes {
    uint64_t max_tokens; /* 0: the default */
    struct engine_choice choice;
    char **stops; /* ends with NULL */
    size_t stop_count, stop_capacity;
};

enum err wishes_read(const struct params *params, struct wishes *out, struct error *why) MUST_USE;
void wishes_release(struct wishes *wishes);

#endif
