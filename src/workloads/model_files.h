/* What every workload over ONNX models needs: finding the files of a model, opening their sessions with the client
 * parameters, reading the JSON files beside them, checking outputs and describing the models (model_files.c); and the
 * tokenizer of models of text (wordpiece.c).
 *
 * The caller owns every struct here and what the functions return. */
#ifndef IPW_WORKLOADS_MODEL_FILES_H
#define IPW_WORKLOADS_MODEL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "engine/onnx.h"

struct json;
struct jv;
struct workload;
struct workload_config;

/* Rows of a driver's list of client parameters. */
#define MODEL_PARAMS                                                                               \
    {"threads", "COUNT", "threads of an operator (the cores available to ipw)"},                   \
        {"provider", "cpu|cuda", "execution provider of ONNX Runtime (cpu)"},                      \
        {"library", "PATH",                                                                        \
         "libonnxruntime or its directory (IPW_ONNXRUNTIME_LIB, then the one installed with "      \
         "ipw, then the system's)"}

struct model_files {
    char *path;      /* what the configuration names: a file or a directory */
    char *directory; /* `path`, or the directory of that file; "" is the current one */
    bool is_file;
    /* Borrows from the configuration: all sessions are opened in the driver's open. */
    struct onnx_options options;
};

/* Finds a file, a directory or a shipped model, and reads the client parameters.  After a failure nothing is left to
 * release; releasing it is harmless. */
enum err model_files_open(const struct workload_config *config, struct model_files *out,
                          struct error *why) MUST_USE;
void model_files_release(struct model_files *files);

/* A workload's open: finds the files, allocates a zeroed state of `size` bytes and lets `load` fill it; after a failure the
 * driver closes it. */
enum err model_files_load(const struct workload_config *config, size_t size,
                          enum err (*load)(const struct model_files *files, void *state,
                                           struct error *why),
                          struct workload *out, struct error *why) MUST_USE;

/* The path of a file in the directory, to be freed; NULL if it does not exist.  `name` may have a subfolder:
 * "unet/model.onnx". */
char *model_files_find(const struct model_files *files, const char *name);
/* The same for a file whose name is that of the model's file with another ending: "labels.txt" is NAME.labels.txt beside
 * NAME.onnx.  NULL for a directory. */
char *model_files_beside(const struct model_files *files, const char *ending);

/* Opens the model that is the file itself, or the first of these names, which end with NULL, that the directory has.
 * ERR_NOT_FOUND lists the names. */
enum err model_files_session(const struct model_files *files, const char *const *names,
                             struct onnx_session **out, struct error *why) MUST_USE;

/* The JSON object of a file such as config.json: NAME.config.json beside NAME.onnx, or config.json of the directory.  To be
 * freed with jv_free; NULL with ERR_OK if there is no such file. */
enum err model_files_json(const struct model_files *files, const char *name, struct jv **out,
                          struct error *why) MUST_USE;

/* ERR_BAD_VALUE, naming the model and the output, for a tensor with a NaN or an infinity, of another rank (rank 0: any),
 * or without elements. */
enum err model_output_check(const struct onnx_session *session, int output,
                            const struct onnx_tensor *tensor, size_t rank, struct error *why)
    MUST_USE;

/* A shape for messages: "1x3x?x224"; a free dimension is "?". */
struct shape_text {
    char text[160];
};
struct shape_text shape_text(const int64_t *shape, size_t rank);

/* A member with the file, its size in bytes, and its inputs and outputs with their types and shapes. */
void model_describe(const struct onnx_session *session, const char *key, struct json *json);
/* Members for the runtime of a session: its version, provider and threads. */
void model_describe_runtime(const struct onnx_session *session, struct json *json);

/* ---- tokens of a text, for classifiers (wordpiece.c) ---- */

/* WordPiece, as BERT and its relatives use it, or whole words.  Any number of threads may use a tokenizer. */
struct wordpiece;

struct token_ids {
    int64_t *ids;
    size_t count, capacity;
};
void token_ids_release(struct token_ids *tokens);

/* From tokenizer.json (of the types WordPiece and WordLevel; others are ERR_UNSUPPORTED) or NAME.vocab.txt or vocab.txt, which
 * has a token per line.  A vocabulary without pieces ("##ing") is one of words, punctuation marks among them. */
enum err wordpiece_load(const struct model_files *files, struct wordpiece **out, struct error *why)
    MUST_USE;
void wordpiece_free(struct wordpiece *tokenizer); /* NULL is ignored */

/* Appends at most `max` tokens (at least 2): with [CLS] and [SEP] where the model has them, of which the last one stays
 * when the text is truncated.  Invalid UTF-8 becomes [UNK]. */
void wordpiece_encode(const struct wordpiece *tokenizer, const char *text, size_t max,
                      struct token_ids *out);

/* The id of [PAD]; 0 without one. */
int64_t wordpiece_padding(const struct wordpiece *tokenizer);
size_t wordpiece_size(const struct wordpiece *tokenizer);      /* tokens of the vocabulary */
const char *wordpiece_kind(const struct wordpiece *tokenizer); /* "WordPiece" or "words" */

#endif
