/* In-process inference through llama.cpp's libllama, loaded at run time.
 *
 * Nothing of llama.cpp is compiled in: ipw has its own minimal declarations, and rejects a library whose structures
 * differ.  A process opens the library once and never closes it.
 *
 * A model may be shared by several contexts, each of which is used by one thread at a time.
 *
 * Ownership: the caller closes what it opened, contexts before their model.  Text and tokens are returned in the
 * caller's buffers. */
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
    char version[64]; /* as the library reports it, "0.5.0" */
    const char *path; /* the file that was opened */
    char cpu[64];     /* its CPU backend variant for this machine, "haswell"; "" unknown */
    bool is_tested;   /* one of engine_tested_versions */
    bool has_gpu;     /* it can offload layers to a GPU here */
};

/* Opens the library on the first call: IPW_LLAMA_LIB (a file or a directory), then the one installed with ipw or by
 * tools/setup, then the system's.  An untested version is used only if IPW_LLAMA_LIB names it, with a warning.
 * Otherwise ERR_UNSUPPORTED with how to enable it. */
enum err engine_library_open(const struct engine_library **out, struct error *why) MUST_USE;

/* Sets the library to open, a file or a directory, with precedence over all of those; ERR_USAGE if another one is open
 * already. */
enum err engine_library_use(const char *path, struct error *why) MUST_USE;

/* "0.5.0, 0.5.1": the versions of llama.cpp that the declarations were tested with. */
const char *engine_tested_versions(void);

/* ---- models ---- */

struct engine_model_options {
    int gpu_layers;            /* layers to offload to a GPU; -1 all; 0 none */
    bool no_map;               /* read the file instead of mapping it */
    bool check_tensors;        /* check for invalid values while loading */
    const atomic_bool *cancel; /* ends loading with ERR_INTERRUPTED; may be NULL */
};

struct engine_model_facts {
    char description[128]; /* by the library: architecture, size, quantization */
    uint64_t parameters, tensor_bytes;
    int layers, embedding, heads, heads_kv, trained_context, vocabulary;
    bool has_chat_template;
    bool has_tool_call_tag; /* its chat template uses <tool_call>{...}</tool_call> */
    engine_token begin;     /* BOS token (often <s>); -1: none */
};

/* ERR_NOT_FOUND, ERR_BAD_VALUE (not a GGUF file, truncated, corrupt), ERR_UNSUPPORTED (an unknown
 * architecture), ERR_NO_MEMORY: each with the library's own message in *why. */
enum err engine_model_open(const char *path, const struct engine_model_options *options,
                           struct engine_model **out, struct error *why) MUST_USE;
void engine_model_close(struct engine_model *model);
const struct engine_model_facts *engine_model_facts(const struct engine_model *model);
const char *engine_model_path(const struct engine_model *model);

/* Models shared within the process: loaded once per file and options, reference-counted.  The most recently used one
 * stays loaded without users.  *load_s is the loading time, 0 if it was loaded already. */
enum err engine_model_acquire(const char *path, const struct engine_model_options *options,
                              struct engine_model **out, double *load_s, struct error *why)
    MUST_USE;
/* Another reference to the most recently used shared model if its options match; else NULL. */
struct engine_model *engine_model_acquire_last(const struct engine_model_options *options);
void engine_model_release(struct engine_model *model); /* NULL is ignored */

/* ---- text and tokens ---- */

struct engine_tokens {
    engine_token *ids;
    size_t count, capacity;
};

void engine_tokens_release(struct engine_tokens *tokens);

/* Appends the tokens of a text.  `special`: special tokens such as <|im_start|> are parsed; `begin`: the BOS token is
 * added if the model uses one. */
enum err engine_tokenize(const struct engine_model *model, const char *text, size_t length,
                         bool begin, bool special, struct engine_tokens *out, struct error *why)
    MUST_USE;

/* Appends the bytes of one token, which may be part of a UTF-8 character. */
enum err engine_detokenize(const struct engine_model *model, engine_token token, struct text *out)
    MUST_USE;

/* Whether this is an end-of-generation token. */
bool engine_is_end(const struct engine_model *model, engine_token token);

/* A message of a conversation: "system", "user" or "assistant", and its text. */
struct engine_message {
    const char *role, *text;
};

/* Appends a conversation formatted by the model's chat template, with the generation prompt.  ERR_UNSUPPORTED if there
 * is none or the library cannot apply it. */
enum err engine_apply_chat_template(const struct engine_model *model,
                                    const struct engine_message *messages, size_t count,
                                    struct text *out, struct error *why) MUST_USE;

/* ---- contexts ---- */

/* Observes the compute graph during evaluation.  `wants` is called for every node when a graph starts, in order; where
 * it returns true, the engine computes up to that node, waits for it, and calls `reached`.  Every stop has a cost:
 * request few. */
struct engine_watch {
    bool (*wants)(void *context, const char *node);
    void (*reached)(void *context, const char *node);
    void *context;
};

struct engine_context_options {
    uint32_t context;           /* tokens per sequence; 0: as trained */
    uint32_t batch, ubatch;     /* tokens per call, and per graph; 0: the library's default */
    uint32_t sequences;         /* decoded together, at most 256; 0: one */
    int threads, threads_batch; /* for decode, for prefill; 0: the available cores */
    /* Threads persist between graphs, which makes stopping one cheap.  Contexts of a model that set this must have the
     * same number of threads, share them, and compute one at a time. */
    bool keep_threads;
    int flash_attention;              /* -1 auto, 0 off, 1 on */
    const struct engine_watch *watch; /* may be NULL; must outlive the context */
};

enum err engine_context_open(struct engine_model *model,
                             const struct engine_context_options *options,
                             struct engine_context **out, struct error *why) MUST_USE;
void engine_context_close(struct engine_context *context);
/* The options as the library applied them. */
const struct engine_context_options *engine_context_facts(const struct engine_context *context);

/* Clears the KV cache. */
void engine_clear(struct engine_context *context);
/* Truncates the KV cache to the first `tokens` of each sequence, so that decoding can be repeated from there.  False,
 * without effect, if the model's memory does not support it. */
bool engine_rewind(struct engine_context *context, uint32_t tokens);

/* Aborts later decoding, also within a graph, when *cancel becomes true (it may be NULL) or at the time
 * `deadline` (0: none). */
void engine_set_abort(struct engine_context *context, const atomic_bool *cancel, nanos deadline);

/* Appends tokens to the context and decodes them, the same ones in each of `sequences` sequences (0 and 1: one), as
 * many as in the first call since engine_clear; keeps the logits of the last token.  Synchronous.  ERR_NO_DATA if they
 * exceed the context, without computing; ERR_INTERRUPTED or ERR_TIMEOUT if aborted, with the KV cache cleared. */
enum err engine_decode(struct engine_context *context, const engine_token *tokens, size_t count,
                       uint32_t sequences, struct error *why) MUST_USE;

/* Decodes tokens in one sequence and sums -ln p of the tokens first .. count - 1, each conditional on those before it.
 * Errors as for engine_decode; ERR_BAD_VALUE if a logit is NaN. */
enum err engine_score(struct engine_context *context, const engine_token *tokens, size_t count,
                      size_t first, double *negative_log_likelihood, struct error *why) MUST_USE;

/* ---- sampling ---- */

struct engine_sampling {
    double temperature;    /* 0: greedy */
    double top_p, min_p;   /* 1 and 0: off */
    int top_k;             /* 0: off */
    double repeat_penalty; /* over the last 64 sampled tokens; 1: off */
    uint32_t seed;
};

/* Sets the sampling of the context and reseeds its random generator. */
enum err engine_set_sampling(struct engine_context *context, const struct engine_sampling *sampling,
                             struct error *why) MUST_USE;
/* Samples the next token after those decoded last; -1 if there are none. */
engine_token engine_sample(struct engine_context *context);

/* ---- text of generated tokens (stop_filter.c) ---- */

/* Converts the bytes of tokens to text: complete UTF-8 characters only, truncated at a stop string.  It owns its
 * buffers and borrows the stop strings: zero-initialize, stop_filter_release. */
struct stop_filter {
    char *const *stops; /* ends with NULL; may be NULL */
    struct text text;   /* output; cleared by the caller */
    bool has_stopped;   /* a stop string was found; it and all following bytes are dropped */
    struct text held;   /* incomplete character or possible prefix of a stop string */
};

/* Adds the bytes of a token; bytes that cannot be part of a longer character or stop string are appended to
 * filter->text.  An invalid byte becomes U+FFFD. */
void stop_filter_add(struct stop_filter *filter, const char *bytes, size_t length);
/* End of input: held bytes are appended too. */
void stop_filter_end(struct stop_filter *filter);
void stop_filter_release(struct stop_filter *filter);

#endif
