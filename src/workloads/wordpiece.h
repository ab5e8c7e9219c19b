/* Tokens of a text for classifiers: WordPiece, as BERT and its relatives use it, or whole words.  A tokenizer is allocated
 * by wordpiece_load and may be used by any number of threads; the caller owns the struct token_ids. */
#ifndef IPW_WORKLOADS_WORDPIECE_H
#define IPW_WORKLOADS_WORDPIECE_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct model_files;
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
