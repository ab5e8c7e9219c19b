/* The tokens of BLEU, as mteval-v13a and sacrebleu's "13a" make them.
 * The result is added to a struct text of the caller's, with white space between the tokens. */
#ifndef IPW_GRADERS_BLEU_TOKENIZE_H
#define IPW_GRADERS_BLEU_TOKENIZE_H

#include "core/slice.h"

struct text;

void tokenize_13a(struct text *out, struct slice from);

#endif
