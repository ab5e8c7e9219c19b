/* The user's ONNX model of CLIP's text encoder: embeddings of texts.  The caller owns an encoder: text_encoder_close. */
#ifndef IPW_GRADERS_TEXT_ENCODER_H
#define IPW_GRADERS_TEXT_ENCODER_H

#include "core/err.h"

struct features;
struct text_encoder;

/* `tokenizer`: the folder of vocab.json and merges.txt.  ERR_USAGE: the model has other inputs than token ids and their
 * mask. */
enum err text_encoder_open(const char *path, const char *tokenizer, struct text_encoder **out,
                           struct error *why) MUST_USE;
void text_encoder_close(struct text_encoder *encoder); /* NULL is ignored */

/* Appends the embedding of a text as a row: the output text_embeds, else the first with two dimensions. */
enum err text_encoder_add(struct text_encoder *encoder, const char *text, struct features *out,
                          struct error *why) MUST_USE;

#endif
