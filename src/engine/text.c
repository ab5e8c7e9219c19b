#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/llama/objects.h"

void engine_tokens_release(struct engine_tokens *tokens)
{
    free(tokens->ids);
    *tokens = (struct engine_tokens){0};
}

static enum err make_room(struct engine_tokens *tokens, size_t more)
{
    if (tokens->capacity - tokens->count >= more)
        return ERR_OK;
    size_t capacity = tokens->count + more;
    engine_token *ids = realloc(tokens->ids, capacity * sizeof *ids);
    if (!ids)
        return ERR_NO_MEMORY;
    tokens->ids = ids;
    tokens->capacity = capacity;
    return ERR_OK;
}

enum err engine_tokenise(const struct engine_model *model, const char *text, size_t length,
                         bool begin, bool special, struct engine_tokens *out, struct error *why)
{
    enum { MOST = 1 << 30 };
    if (length > MOST)
        return err_set(why, ERR_BAD_VALUE, "a text of %zu bytes is too long for tokens", length);
    size_t room = length + 16; /* at most one for each byte, and a few marks */
    for (int attempt = 0; attempt < 2; attempt++) {
        if (make_room(out, room))
            return err_set(why, ERR_NO_MEMORY, "out of memory for %zu tokens", room);
        int32_t count =
            llama_api()->llama_tokenize(model->vocabulary, text, (int32_t)length,
                                        out->ids + out->count, (int32_t)room, begin, special);
        if (count >= 0) {
            out->count += (size_t)count;
            return ERR_OK;
        }
        if (count == INT32_MIN)
            break;
        room = (size_t)-count;
    }
    return err_set(why, ERR_BAD_VALUE, "llama.cpp cannot make tokens of this text");
}

enum err engine_piece(const struct engine_model *model, engine_token token, struct text *out)
{
    char small[64];
    if (token < 0 || token >= model->facts.vocabulary)
        return ERR_BAD_VALUE;
    int32_t length =
        llama_api()->llama_token_to_piece(model->vocabulary, token, small, sizeof small, 0, false);
    if (length >= 0) {
        text_add_bytes(out, small, (size_t)length);
        return out->failed ? ERR_NO_MEMORY : ERR_OK;
    }
    char *large = malloc((size_t)-length);
    if (!large)
        return ERR_NO_MEMORY;
    length = llama_api()->llama_token_to_piece(model->vocabulary, token, large, -length, 0, false);
    if (length >= 0)
        text_add_bytes(out, large, (size_t)length);
    free(large);
    if (length < 0)
        return ERR_BAD_VALUE;
    return out->failed ? ERR_NO_MEMORY : ERR_OK;
}

bool engine_ends(const struct engine_model *model, engine_token token)
{
    return llama_api()->llama_vocab_is_eog(model->vocabulary, token);
}

enum err engine_chat_text(const struct engine_model *model, const char *system, const char *prompt,
                          struct text *out, struct error *why)
{
    if (!model->chat_template)
        return err_set(why, ERR_UNSUPPORTED, "the model has no chat template");
    const struct llama_chat_message messages[] = {{"system", system}, {"user", prompt}};
    const struct llama_chat_message *first = system ? messages : messages + 1;
    size_t count = system ? 2 : 1;
    size_t room = strlen(prompt) + (system ? strlen(system) : 0) + 1024;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (room > INT32_MAX)
            break;
        char *to = malloc(room);
        if (!to)
            return err_set(why, ERR_NO_MEMORY, "out of memory for a prompt");
        int32_t length = llama_api()->llama_chat_apply_template(model->chat_template, first, count,
                                                                true, to, (int32_t)room);
        bool fits = length >= 0 && (size_t)length <= room;
        if (fits)
            text_add_bytes(out, to, (size_t)length);
        free(to);
        if (fits)
            return out->failed ? err_set(why, ERR_NO_MEMORY, "out of memory for a prompt") : ERR_OK;
        if (length < 0)
            break;
        room = (size_t)length + 1;
    }
    return err_set(why, ERR_UNSUPPORTED,
                   "llama.cpp does not know the model's chat template; give chat=off for the "
                   "prompt as it is");
}
