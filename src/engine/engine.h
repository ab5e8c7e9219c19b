/* An inference engine inside this process: llama.cpp's libllama, opened at run time.
 *
 * Nothing of llama.cpp is compiled in; the few declarations that are needed are ours, and the library
 * is looked at before it is trusted: one whose structures differ from these declarations is refused
 * with both versions named.  A process opens the library once and never closes it.
 *
 * A model may be shared by several contexts, each of which belongs to one thread at a time.
 *
 * Ownership: the caller closes what it opened, contexts before their model.  Texts and tokens that
 * come back are in the caller's buffers. */
#ifndef IPW_ENGINE_ENGINE_H
#define IPW_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/text.h"
#include "core/units.h"

struct engine_model;
struct engine_context;

typedef int32_t engine_token;

/* ---- the library ---- */

struct engine_library {
    char version[64]; /* as it says itself, "0.5.0" */
    char path[512];   /* the file that was opened */
    char cpu[64]; /* the variant of its CPU code that this machine takes, "haswell"; "" unknown */
    bool has_gpu; /* it can put layers on a GPU here */
};

/* Opens the library on the first call: IPW_LLAMA_LIB (a file or a folder), then what was brought at
 * set-up, then the system's.  ERR_UNSUPPORTED with what enables it when there is none that fits. */
enum err engine_library_open(const struct engine_library **out, struct error *why) MUST_USE;

/* The library to open, a file or a folder, before all of those; ERR_USAGE when another is open. */
enum err engine_library_use(const char *path, struct error *why) MUST_USE;

/* ---- a model ---- */

struct engine_model_options {
    int gpu_layers;     /* how many to put on a GPU; -1 all; 0 none */
    bool no_map;        /* read the file instead of mapping it */
    bool check_tensors; /* look for numbers that are none while loading */
};

struct engine_model_facts {
    char description[128]; /* as the library puts it: architecture, size, quantisation */
    uint64_t parameters, tensor_bytes;
    int layers, embedding, heads, heads_kv, trained_context, vocabulary;
    bool has_chat_template;
};

/* ERR_NOT_FOUND, ERR_BAD_VALUE (not a GGUF, truncated, corrupt), ERR_UNSUPPORTED (an architecture the
 * library does not know), ERR_NO_MEMORY: each with the library's own last words in *why. */
enum err engine_model_open(const char *path, const struct engine_model_options *options,
                           struct engine_model **out, struct error *why) MUST_USE;
void engine_model_close(struct engine_model *model);
const struct engine_model_facts *engine_model_facts(const struct engine_model *model);

/* ---- text and tokens ---- */

struct engine_tokens {
    engine_token *ids;
    size_t count, capacity;
};

void engine_tokens_release(struct engine_tokens *tokens);

/* Appends the tokens of a text.  `special`: marks such as <|im_start|> in it are the tokens of that
 * name; `begin`: what the model wants before a text (often <s>) comes first. */
enum err engine_tokenise(const struct engine_model *model, const char *text, size_t length,
                         bool begin, bool special, struct engine_tokens *out, struct error *why)
    MUST_USE;

/* Appends the bytes of one token, which may be part of a UTF-8 character. */
enum err engine_piece(const struct engine_model *model, engine_token token, struct text *out)
    MUST_USE;

/* Does this token end the answer? */
bool engine_ends(const struct engine_model *model, engine_token token);

/* Appends the text of a conversation of one question in the model's own chat template; system may be
 * NULL.  A template that the library cannot apply is ERR_UNSUPPORTED. */
enum err engine_chat_text(const struct engine_model *model, const char *system, const char *prompt,
                          struct text *out, struct error *why) MUST_USE;

/* ---- computing ---- */

/* Watches the graph as it is computed.  `wants` is asked for every node when a graph begins, in order;
 * where it says yes, the engine computes as far as that node, waits until it is done, and calls
 * `reached`.  Every stop costs a little: ask for few. */
struct engine_watch {
    bool (*wants)(void *context, const char *node);
    void (*reached)(void *context, const char *node);
    void *context;
};

struct engine_context_options {
    uint32_t context;           /* tokens of each sequence; 0: as trained */
    uint32_t batch, ubatch;     /* tokens in one call, and in one graph; 0: the library's default */
    uint32_t sequences;         /* that may be computed together, at most 256; 0: one */
    int threads, threads_batch; /* for one token, for many; 0: as many as cores we may use */
    /* Threads stay between graphs, which makes stopping one cheap.  Contexts of a model that ask for it
     * must ask for as many threads, share them, and compute one at a time. */
    bool keep_threads;
    int flash_attention;              /* -1 as the library thinks best, 0 no, 1 yes */
    const struct engine_watch *watch; /* may be NULL; must outlive the context */
};

enum err engine_context_open(struct engine_model *model,
                             const struct engine_context_options *options,
                             struct engine_context **out, struct error *why) MUST_USE;
void engine_context_close(struct engine_context *context);
/* What it got: context, batch and threads as the library took them. */
const struct engine_context_options *engine_context_facts(const struct engine_context *context);

/* Forgets everything that was computed. */
void engine_forget(struct engine_context *context);
/* Forgets what was computed after the first `tokens` of each sequence, so that the same can be computed
 * again from there.  False, and nothing is forgotten, where the model's memory cannot go back. */
bool engine_rewind(struct engine_context *context, uint32_t tokens);

/* What ends a computation early from now on, looked at within graphs too: *cancel when it turns true
 * (may be NULL), and the time `until` (0: none). */
void engine_end_by(struct engine_context *context, const atomic_bool *cancel, nanos until);

/* Computes tokens after those before, the same ones in each of `sequences` sequences (0 and 1: one),
 * as many as at the first call since engine_forget; the logits of the last token are kept.  Returns
 * when they are computed.  ERR_NO_DATA when the context has no room for them, with nothing computed;
 * ERR_INTERRUPTED or ERR_TIMEOUT when it was ended early, with everything forgotten. */
enum err engine_compute(struct engine_context *context, const engine_token *tokens, size_t count,
                        uint32_t sequences, struct error *why) MUST_USE;

/* ---- choosing the next token ---- */

struct engine_choice {
    double temperature;    /* 0: always the likeliest */
    double top_p, min_p;   /* 1 and 0: off */
    int top_k;             /* 0: off */
    double repeat_penalty; /* of the last 64 tokens that were chosen; 1: off */
    uint32_t seed;
};

/* Sets how the context chooses from now on, from the beginning of the seed's sequence. */
enum err engine_choose_by(struct engine_context *context, const struct engine_choice *choice,
                          struct error *why) MUST_USE;
/* The next token after what was computed last; -1 when nothing was. */
engine_token engine_choose(struct engine_context *context);

#endif
