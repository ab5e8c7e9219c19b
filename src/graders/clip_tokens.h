/* Tokens of CLIP's text encoder, which most diffusion models use, too: byte pairs of lower-case words, framed by a start and
 * an end token and padded to a fixed length.  A tokenizer does not change once loaded; the caller frees it. */
#ifndef IPW_GRADERS_CLIP_TOKENS_H
#define IPW_GRADERS_CLIP_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct clip_tokenizer;

/* Reads vocab.json, merges.txt and, where they exist, tokenizer_config.json and special_tokens_map.json. */
enum err clip_tokenizer_load(const char *directory, struct clip_tokenizer **out, struct error *why)
    MUST_USE;
void clip_tokenizer_free(struct clip_tokenizer *tokenizer); /* NULL is ignored */

size_t clip_tokenizer_length(const struct clip_tokenizer *tokenizer); /* 77 */

/* Fills ids[clip_tokenizer_length].  A text that is too long loses its end, as in diffusers.  Returns the number of tokens
 * before the padding, with start and end. */
size_t clip_tokenize(const struct clip_tokenizer *tokenizer, const char *text, int64_t *ids);

#endif
