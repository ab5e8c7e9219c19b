/* Words of a text as numbers: equal words get equal numbers, over any number of texts.
 * A struct tokens owns its arrays: zero-initialise, tokens_release. */
#ifndef IPW_GRADERS_WORDS_TOKENS_H
#define IPW_GRADERS_WORDS_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"

struct tokens {
    struct slice *words; /* they point into the text that was split, which must stay */
    uint32_t *ids;       /* after tokens_number */
    size_t count;
    size_t capacity;
};

/* Adds the words that stand between white space (Unicode's). */
enum err tokens_split(struct tokens *tokens, struct slice text) MUST_USE;

/* Gives numbers to the words of several texts together; n log n. */
enum err tokens_number(struct tokens *const *texts, size_t count) MUST_USE;

void tokens_release(struct tokens *tokens);

#endif
