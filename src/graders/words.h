/* Words of texts, numbered so that equal words are equal numbers.  Zero-initialize a struct words; words_release frees
 * it. */
#ifndef IPW_GRADERS_WORDS_H
#define IPW_GRADERS_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"
#include "core/text.h"

struct words {
    struct text text;    /* filled by the grader before words_split */
    struct slice *items; /* into the text */
    uint32_t *ids;       /* after words_number */
    size_t count, capacity;
};

/* Splits the text at white space (Unicode's). */
void words_split(struct words *words);
/* Numbers the words of several texts; O(n log n). */
void words_number(struct words *const *texts, size_t count);
void words_release(struct words *words);

#endif
