/* The parts of workload whisper: the tokens of a model (whisper_tokens.c), with its vocabulary and the rules of its
 * generation_config.json, and its decoder (whisper_decoder.c), greedy with a KV cache, whose tensors are outputs of one
 * step and, without a copy, inputs of the next.  All ids and sizes are those of the model's files.
 *
 * The caller owns the structs: zero-initialize, *_release; the tensors in them are the runtime's. */
#ifndef IPW_WORKLOADS_WHISPER_H
#define IPW_WORKLOADS_WHISPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct jv;
struct model_files;
struct onnx_session;
struct onnx_tensor;
struct text;

/* ---- tokens ---- */

/* tokenizer.json, or vocab.json with added_tokens.json: byte-level BPE. */
struct whisper_vocabulary {
    struct whisper_piece {
        char *text;      /* NULL: no token has this id */
        bool is_added;   /* as it is, not encoded byte by byte */
        bool is_control; /* a language, a task, a time: no part of the transcript */
    } *pieces;
    size_t count;
};

enum err whisper_vocabulary_read(const struct model_files *files, struct whisper_vocabulary *out,
                                 struct error *why) MUST_USE;
void whisper_vocabulary_release(struct whisper_vocabulary *vocabulary);

/* Appends the text of the tokens, without control tokens and with invalid UTF-8 repaired. */
void whisper_vocabulary_decode(const struct whisper_vocabulary *vocabulary, const int64_t *tokens,
                               size_t count, struct text *out);

enum { WHISPER_PROMPT_MAX = 16, WHISPER_ENDS_MAX = 8 };

/* What each transcript starts with: <|startoftranscript|><|en|><|transcribe|><|notimestamps|>. */
struct whisper_prompt {
    int64_t tokens[WHISPER_PROMPT_MAX];
    size_t count;
};

struct whisper_rules {
    struct jv *config;     /* config.json */
    struct jv *generation; /* generation_config.json; NULL: missing */
    int64_t start;
    int64_t ends[WHISPER_ENDS_MAX];
    size_t end_count;
    uint8_t *suppressed; /* by token */
    size_t suppressed_count;
    size_t length_max; /* of a sequence, with its prompt */
};

enum err whisper_rules_read(const struct model_files *files, struct whisper_rules *out,
                            struct error *why) MUST_USE;
void whisper_rules_release(struct whisper_rules *rules);

/* language: "en", NULL: as forced by the model's files, else English.  task: "transcribe", "translate", NULL: as forced,
 * else transcribe.  ERR_USAGE names the languages that the model knows. */
enum err whisper_rules_prompt(const struct whisper_rules *rules, const char *language,
                              const char *task, struct whisper_prompt *out, struct error *why)
    MUST_USE;

/* The most probable token that is allowed, by the last row of logits (1 x tokens x vocabulary).  is_first: the first one
 * after the prompt.  ERR_BAD_VALUE if a logit is NaN, or no token is left. */
enum err whisper_rules_pick(const struct whisper_rules *rules, const struct onnx_tensor *logits,
                            bool is_first, int64_t *out, struct error *why) MUST_USE;
bool whisper_rules_ends(const struct whisper_rules *rules, int64_t token);

/* ---- decoder ---- */

struct whisper_decoder {
    struct onnx_session *first; /* decoder_model.onnx, or decoder_model_merged.onnx */
    struct onnx_session *next;  /* decoder_with_past_model.onnx, the merged one, or NULL */
    bool is_merged;             /* next is first */
    bool uses_cache;
    struct whisper_cache *caches; /* the inputs of `next` for the KV cache */
    size_t cache_count;
    void *zeros; /* for those of a first step, which has no cache yet */
};

struct whisper_decoder_options {
    const char *variant; /* of the files: "fp16" is decoder_model_fp16.onnx; "": none */
    bool uses_cache;
};

/* ERR_NOT_FOUND names the missing files, ERR_UNSUPPORTED an input that is not known here. */
enum err whisper_decoder_open(const struct model_files *files, const struct whisper_rules *rules,
                              const struct whisper_decoder_options *options,
                              struct whisper_decoder *out, struct error *why) MUST_USE;
void whisper_decoder_release(struct whisper_decoder *decoder);

/* The tokens that follow the prompt, without the one that ends them. */
struct whisper_sequence {
    int64_t *tokens;
    size_t count, capacity;
    size_t steps; /* of the decoder: with the token that ends the transcript */
    bool is_cut;  /* ended by the limit */
};
void whisper_sequence_release(struct whisper_sequence *sequence);

struct whisper_decoding {
    const struct whisper_rules *rules;
    const struct whisper_prompt *prompt;
    const struct onnx_tensor *states; /* of the encoder */
    size_t tokens_max;                /* after the prompt */
    const atomic_bool *cancel;        /* may be NULL */
};

/* Appends to the sequence. */
enum err whisper_decoder_run(const struct whisper_decoder *decoder,
                             const struct whisper_decoding *decoding, struct whisper_sequence *out,
                             struct error *why) MUST_USE;

/* Opens "encoder_model" with the variant, also in the subfolder onnx/.  ERR_NOT_FOUND names it. */
enum err whisper_session_open(const struct model_files *files, const char *name,
                              const char *variant, struct onnx_session **out, struct error *why)
    MUST_USE;

#endif
